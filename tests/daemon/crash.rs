//! kill -9 at every interesting moment: nothing lost, never two live copies, the right processes ended.

use std::time::Duration;

use super::support::{Builder, Daemon, Place, wait_until};
use super::ways::{ended, folder, lines, lives, run, run_id, slots, start};

fn place_with(jobs: &str) -> Place {
    let place = Place::new("jobs: []\n");
    let text = jobs.replace("FOLDER", &folder(&place));
    place.write_config(&format!(
        "pools: {{p: {{slots: 1}}, wide: {{slots: 4, maxQueued: 1000}}}}\njobs:\n{text}"
    ));
    place
}

fn begun(place: &Place, count: usize) -> Vec<String> {
    wait_until(Duration::from_secs(20), || {
        let lines = lines(place, "begun");
        (lines.len() >= count).then_some(lines)
    })
    .unwrap_or_else(|| panic!("only {:?} began", lines(place, "begun")))
}

#[test]
fn kill9_same_host_restart() {
    let place = place_with(
        "  - {name: long, pool: p, command: 'echo $$ >> FOLDER/begun; sleep 90', killTimeout: 1}\n",
    );
    let mut daemon = Builder::at(&place).start();
    start(&daemon, "long");
    let first = begun(&place, 1)[0].clone();
    daemon.kill9();
    assert!(lives(&first), "the command outlives its daemon for now");
    let daemon = daemon.restart();
    let second = begun(&place, 2)[1].clone();
    assert!(!lives(&first), "the old group was ended before the new run began");
    assert!(lives(&second));
    let entry = super::ways::entries(&daemon, "p", "running")[0].clone();
    assert_eq!(
        (entry["attempt"].as_u64(), entry["readmitted"].as_u64()),
        (Some(1), Some(1)),
        "{entry}"
    );
    daemon
        .post("/jobs/long/cancel", &serde_json::json!({}))
        .expect_status(200);
}

#[test]
fn kill9_before_gate() {
    let place = place_with("  - {name: quick, pool: p, command: 'echo ran >> FOLDER/begun'}\n");
    let fail = place.write("fail", "gate.before=once:kill\n");
    let daemon = Builder::at(&place)
        .env("DUCTOR_FAIL", format!("@{}", fail.display()))
        .start();
    let answer = start(&daemon, "quick");
    let mut daemon = daemon;
    daemon.wait_exit();
    assert_eq!(
        lines(&place, "begun"),
        Vec::<String>::new(),
        "the gate never opened"
    );
    let daemon = daemon.restart();
    let shown = ended(&daemon, &run_id(&answer));
    assert_eq!(shown["state"], "succeeded", "{shown}");
    assert_eq!(lines(&place, "begun").len(), 1);
}

#[test]
fn kill9_after_command_end() {
    let place = place_with("  - {name: quick, pool: p, command: 'echo ran >> FOLDER/begun'}\n");
    let fail = place.write("fail", "complete.before=once:kill\n");
    let mut daemon = Builder::at(&place)
        .env("DUCTOR_FAIL", format!("@{}", fail.display()))
        .start();
    let answer = start(&daemon, "quick");
    daemon.wait_exit();
    let daemon = daemon.restart();
    let shown = ended(&daemon, &run_id(&answer));
    assert_eq!(shown["state"], "succeeded", "{shown}");
    assert_eq!(lines(&place, "begun").len(), 2, "at least once: it ran again");
    let outcomes: Vec<&str> = shown["attempts"]
        .as_array()
        .expect("attempts")
        .iter()
        .filter_map(|attempt| attempt["outcome"].as_str())
        .collect();
    assert_eq!(outcomes, ["lost", "succeeded"], "{shown}");
}

#[test]
fn leader_gone_children_alive() {
    let place = place_with(
        "  - {name: fork, pool: p, killTimeout: 1, command: '(echo $$ >> FOLDER/begun; exec sleep 120) & sleep 90'}\n",
    );
    let mut daemon = Builder::at(&place).start();
    start(&daemon, "fork");
    let leader = begun(&place, 1)[0].clone();
    let child = wait_until(Duration::from_secs(10), || child_of(&leader, "120")).expect("the child");
    daemon.kill9();
    // The leader ends; the child in its group lives on.
    std::process::Command::new("kill")
        .args(["-KILL", &leader])
        .status()
        .unwrap();
    wait_until(Duration::from_secs(10), || (!lives(&leader)).then_some(())).expect("the leader's end");
    assert!(lives(&child));
    let daemon = daemon.restart();
    begun(&place, 2);
    assert!(!lives(&child), "the group was ended before the work ran again");
    daemon
        .post("/jobs/fork/cancel", &serde_json::json!({}))
        .expect_status(200);
}

/// A process whose parent is `parent` and whose command line has `word`.
fn child_of(parent: &str, word: &str) -> Option<String> {
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let pid = entry.file_name().to_str()?.to_owned();
        if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let group = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(2).map(str::to_owned));
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if group.as_deref() == Some(parent)
            && line.contains(word)
            && pid != parent
            && line.starts_with("sleep")
        {
            return Some(pid);
        }
    }
    None
}

#[test]
fn stop_gracefully() {
    let place = place_with(concat!(
        "  - {name: short, pool: p, command: 'echo begun >> FOLDER/begun; sleep 1; echo end >> FOLDER/ends'}\n",
        "  - {name: stubborn, command: 'echo begun >> FOLDER/stubborn; sleep 60', killTimeout: 1}\n",
    ));
    let mut daemon = Builder::at(&place).start();
    let first = run_id(&start(&daemon, "short"));
    let second = run_id(&start(&daemon, "short"));
    begun(&place, 1);
    assert_eq!(daemon.term(), Some(0));
    assert_eq!(lines(&place, "ends").len(), 1, "the running one was waited for");
    let daemon = daemon.restart();
    assert_eq!(ended(&daemon, &first)["state"], "succeeded");
    assert_eq!(
        ended(&daemon, &second)["state"],
        "succeeded",
        "the waiting one was still there"
    );

    // With a drain time of one second the rest is ended, put back, and runs again.
    let text = place
        .read("ductor.yaml")
        .or_else(|| std::fs::read_to_string(place.config()).ok())
        .unwrap();
    place.write_config(&format!("{text}shutdown: {{drainTimeout: 1}}\n"));
    let mut daemon = daemon.restart();
    let third = run_id(&start(&daemon, "stubborn"));
    wait_until(Duration::from_secs(10), || {
        (lines(&place, "stubborn").len() == 1).then_some(())
    })
    .unwrap();
    assert_eq!(daemon.term(), Some(0));
    let daemon = daemon.restart();
    wait_until(Duration::from_secs(10), || {
        (lines(&place, "stubborn").len() == 2).then_some(())
    })
    .unwrap();
    let shown = run(&daemon, &third);
    assert_eq!(shown["attempts"][0]["outcome"], "lost", "{shown}");
    daemon
        .post("/jobs/stubborn/cancel", &serde_json::json!({}))
        .expect_status(200);
}

#[test]
fn k5_a_failure_during_the_drain() {
    let place = place_with("  - {name: fails, command: 'echo begun >> FOLDER/begun; sleep 2; exit 7'}\n");
    let mut daemon = Builder::at(&place).start();
    let id = run_id(&start(&daemon, "fails"));
    begun(&place, 1);
    assert_eq!(daemon.term(), Some(0));
    let daemon = daemon.restart();
    let shown = run(&daemon, &id);
    assert_eq!(shown["state"], "failed", "{shown}");
    assert_eq!(shown["attempts"][0]["exit_code"], 7, "{shown}");
}

#[test]
fn kill9_during_200_queued_starts() {
    let place = place_with(
        "  - {name: mark, pool: wide, command: 'echo $DUCTOR_RUN_ID >> FOLDER/begun', queueTimeout: 600}\n",
    );
    let mut daemon = Builder::at(&place).start();
    let mut acknowledged: Vec<String> = Vec::new();
    for number in 0..200 {
        acknowledged.push(run_id(&start(&daemon, "mark")));
        if number == 120 {
            daemon.kill9();
            daemon = daemon.restart();
        }
    }
    daemon.kill9();
    let daemon = daemon.restart();
    daemon.wait("an empty queue", || {
        let shown = slots(&daemon, "wide");
        (shown["queued"] == 0 && shown["used"] == 0).then_some(())
    });
    let ran: std::collections::BTreeSet<String> = lines(&place, "begun").into_iter().collect();
    for id in &acknowledged {
        assert!(ran.contains(id), "{id} was acknowledged and never ran");
    }
    let mut daemon = daemon;
    // A clean end runs the store's check.
    assert_eq!(daemon.term(), Some(0));
}

#[test]
fn an_unpooled_run_is_started_again_once() {
    let place =
        place_with("  - {name: plain, command: 'echo $$ >> FOLDER/begun; sleep 90', killTimeout: 1}\n");
    let mut daemon: Daemon = Builder::at(&place).start();
    start(&daemon, "plain");
    let first = begun(&place, 1)[0].clone();
    daemon.kill9();
    let daemon = daemon.restart();
    begun(&place, 2);
    assert!(!lives(&first));
    daemon
        .post("/jobs/plain/cancel", &serde_json::json!({}))
        .expect_status(200);
    daemon.wait("the end", || {
        (daemon.get("/jobs/plain").json()["running"] == 0).then_some(())
    });
    assert_eq!(lines(&place, "begun").len(), 2);
}
