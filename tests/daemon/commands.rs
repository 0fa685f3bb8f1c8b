//! Commands as processes, through the daemon: groups, signals, logs, failures.

use std::time::Duration;

use super::support::{Builder, Place, wait_until};
use super::ways::{ended, folder, lines, lives, run_id, start};

fn place_with(jobs: &str) -> Place {
    let place = Place::new("jobs: []\n");
    place.write_config(&format!("jobs:\n{}", jobs.replace("FOLDER", &folder(&place))));
    place
}

fn log_of(daemon: &super::support::Daemon, run: &str) -> String {
    daemon
        .get(&format!("/api/runs/{run}/steps/main/attempts/1/log"))
        .expect_status(200)
        .text()
}

#[test]
fn timeout_kills_grandchildren() {
    let place = place_with(concat!(
        "  - name: forks\n    concurrencyPolicy: Forbid\n    executionTimeout: 1\n    killTimeout: 1\n",
        "    command: sh -c 'sleep 300 & echo $! >> FOLDER/pids; sleep 300 & echo $! >> FOLDER/pids; wait'\n",
    ));
    let daemon = Builder::at(&place).start();
    let shown = ended(&daemon, &run_id(&start(&daemon, "forks")));
    assert_eq!(shown["attempts"][0]["outcome"], "timed_out", "{shown}");
    assert_eq!(shown["attempts"][0]["exit_code"], -100, "{shown}");
    let pids = lines(&place, "pids");
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| !lives(pid)), "{pids:?}");
    // Forbid is free again.
    start(&daemon, "forks");
    daemon
        .post("/jobs/forks/cancel", &serde_json::json!({}))
        .expect_status(200);
}

#[test]
fn k1_timeout_kills_the_shell_and_its_children() {
    let place = place_with(concat!(
        "  - name: k1\n    executionTimeout: 1\n    killTimeout: 1\n",
        "    command: sleep 600 & echo $! >> FOLDER/pids; sleep 600 & echo $! >> FOLDER/pids; wait\n",
        "  - name: k1-leader-first\n    killTimeout: 1\n",
        "    command: sleep 600 & echo $! >> FOLDER/pids; exit 0\n",
    ));
    let daemon = Builder::at(&place).start();
    let shown = ended(&daemon, &run_id(&start(&daemon, "k1")));
    assert_eq!(shown["attempts"][0]["exit_code"], -100);
    let shown = ended(&daemon, &run_id(&start(&daemon, "k1-leader-first")));
    assert_eq!(shown["state"], "succeeded");
    let pids = lines(&place, "pids");
    assert_eq!(pids.len(), 3);
    assert!(pids.iter().all(|pid| !lives(pid)), "{pids:?}");
}

#[test]
fn sigterm_then_grace_then_kill() {
    let place = place_with(concat!(
        "  - name: deaf\n    killTimeout: 1\n",
        "    command: trap '' TERM; echo $$ > FOLDER/deaf; while true; do sleep 0.1; done\n",
        "  - name: polite\n    killTimeout: 20\n",
        "    command: trap 'echo bye > FOLDER/bye; exit 0' TERM; echo up > FOLDER/polite; while true; do sleep 0.1; done\n",
    ));
    let daemon = Builder::at(&place).start();
    let deaf = run_id(&start(&daemon, "deaf"));
    let polite = run_id(&start(&daemon, "polite"));
    for file in ["deaf", "polite"] {
        wait_until(Duration::from_secs(10), || {
            (!lines(&place, file).is_empty()).then_some(())
        })
        .unwrap();
    }
    for job in ["deaf", "polite"] {
        daemon
            .post(&format!("/jobs/{job}/cancel"), &serde_json::json!({}))
            .expect_status(200);
    }
    assert_eq!(ended(&daemon, &polite)["state"], "cancelled");
    assert_eq!(lines(&place, "bye"), ["bye"]);
    assert_eq!(ended(&daemon, &deaf)["state"], "cancelled");
    assert!(!lives(&lines(&place, "deaf")[0]));
}

#[test]
fn a_command_that_cannot_start_is_a_failure_with_its_cause() {
    let place = place_with(concat!(
        "  - {name: missing, command: [FOLDER/nothing-here]}\n",
        "  - {name: nowhere, command: 'true', workingDirectory: FOLDER/no-such-folder}\n",
        "  - {name: shell, command: no-such-program-anywhere}\n",
    ));
    let daemon = Builder::at(&place).start();
    for (job, part) in [
        ("missing", "launch failed"),
        ("nowhere", "launch failed"),
        ("shell", "exit code 127"),
    ] {
        let shown = ended(&daemon, &run_id(&start(&daemon, job)));
        assert_eq!(
            (
                shown["state"].as_str(),
                shown["attempts"][0]["exit_code"].as_i64()
            ),
            (Some("failed"), Some(127))
        );
        assert!(
            shown["attempts"][0]["reason"]
                .as_str()
                .unwrap_or_default()
                .contains(part),
            "{shown}"
        );
    }
}

#[test]
fn spawn_failure_with_replace() {
    let place = place_with("  - {name: gone, concurrencyPolicy: Replace, command: [FOLDER/nothing-here]}\n");
    let text = std::fs::read_to_string(place.config()).unwrap();
    place.write_config(&format!(
        "pools: {{p: {{slots: 1}}}}\n{}",
        text.replace("{name: gone,", "{name: gone, pool: p,")
    ));
    let daemon = Builder::at(&place).start();
    for _ in 0..3 {
        let shown = ended(&daemon, &run_id(&start(&daemon, "gone")));
        assert_eq!(shown["state"], "failed", "{shown}");
    }
    assert_eq!(super::ways::slots(&daemon, "p")["used"], 0);
}

#[test]
fn replace_in_pool_on_the_binary() {
    let place = place_with(
        "  - {name: one, concurrencyPolicy: Replace, killTimeout: 1, command: 'echo $$ >> FOLDER/pids; sleep 60'}\n",
    );
    let text = std::fs::read_to_string(place.config()).unwrap();
    place.write_config(&format!(
        "pools: {{p: {{slots: 1}}}}\n{}",
        text.replace("{name: one,", "{name: one, pool: p,")
    ));
    let daemon = Builder::at(&place).start();
    let first = run_id(&start(&daemon, "one"));
    wait_until(Duration::from_secs(10), || {
        (lines(&place, "pids").len() == 1).then_some(())
    })
    .unwrap();
    start(&daemon, "one");
    let shown = ended(&daemon, &first);
    assert_eq!(
        (shown["state"].as_str(), shown["reason"].as_str()),
        (Some("cancelled"), Some("replaced by a newer instance"))
    );
    wait_until(Duration::from_secs(10), || {
        (lines(&place, "pids").len() == 2).then_some(())
    })
    .unwrap();
    assert!(!lives(&lines(&place, "pids")[0]));
    daemon
        .post("/jobs/one/cancel", &serde_json::json!({}))
        .expect_status(200);
}

#[test]
fn live_log_follow() {
    let place = place_with(concat!(
        "  - name: talks\n    killTimeout: 1\n    command: echo first line; while [ ! -e FOLDER/go ]; do sleep 0.05; done; echo second line >&2\n",
        "  - {name: flood, command: 'head -c 16777216 /dev/zero'}\n",
    ));
    let daemon = Builder::at(&place).start();
    let id = run_id(&start(&daemon, "talks"));
    daemon.wait("the attempt", || {
        (super::ways::run_state(&daemon, &id) == "running").then_some(())
    });
    let mut stream = daemon.events(&format!("/api/runs/{id}/steps/main/attempts/1/log/tail"));
    stream.wait_for(Duration::from_secs(5), |event| event.data.contains("first line"));
    assert_eq!(
        super::ways::run_state(&daemon, &id),
        "running",
        "seen while it runs"
    );
    place.write("go", "");
    stream.wait_for(Duration::from_secs(5), |event| event.data.contains("second line"));
    stream.wait_for(Duration::from_secs(5), |event| event.kind == "end");
    ended(&daemon, &id);
    assert_eq!(log_of(&daemon, &id), "o first line\ne second line\n");

    let flood = ended(&daemon, &run_id(&start(&daemon, "flood")));
    assert_eq!(flood["state"], "succeeded");
    let followed = daemon.cli(&["run", "logs", &id]);
    assert_eq!(
        (followed.stdout.as_str(), followed.stderr.as_str()),
        ("first line\n", "second line\n")
    );
}

#[test]
fn stderr_fails_only_where_asked() {
    let place = place_with(concat!(
        "  - {name: lenient, command: 'echo oops >&2'}\n",
        "  - {name: strict, command: 'echo oops >&2', failsWhen: {producesStderr: true}}\n",
    ));
    let daemon = Builder::at(&place).start();
    assert_eq!(
        ended(&daemon, &run_id(&start(&daemon, "lenient")))["state"],
        "succeeded"
    );
    assert_eq!(
        ended(&daemon, &run_id(&start(&daemon, "strict")))["state"],
        "failed"
    );
}

#[test]
fn the_command_sees_its_marks_and_cannot_change_them() {
    let place = place_with(concat!(
        "  - name: marks\n    environment: {DUCTOR_FENCE: '0', MINE: yes-mine}\n",
        "    command: echo $DUCTOR_JOB_NAME $DUCTOR_ATTEMPT $DUCTOR_RUN_ID $DUCTOR_FENCE $MINE >> FOLDER/marks\n",
    ));
    let daemon = Builder::at(&place).start();
    let mut fences = Vec::new();
    for _ in 0..3 {
        let id = run_id(&start(&daemon, "marks"));
        ended(&daemon, &id);
        let line = lines(&place, "marks").pop().unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(
            (words[0], words[1], words[2], words[4]),
            ("marks", "1", id.as_str(), "yes-mine")
        );
        fences.push(words[3].parse::<u64>().unwrap());
    }
    assert!(
        fences.windows(2).all(|pair| pair[0] < pair[1]) && fences[0] > 0,
        "{fences:?}"
    );
}

#[test]
fn a_cancel_right_after_the_start_is_never_lost() {
    let place = place_with("  - {name: brief, command: 'sleep 20', killTimeout: 1}\n");
    let daemon = Builder::at(&place).start();
    for _ in 0..40 {
        let id = run_id(&start(&daemon, "brief"));
        daemon
            .post(&format!("/api/runs/{id}:cancel"), &serde_json::json!({}))
            .expect_status(200);
        let shown = ended(&daemon, &id);
        assert_eq!(shown["state"], "cancelled", "{shown}");
    }
}

#[test]
fn replace_goes_to_the_newest_without_delay() {
    let place = place_with(
        "  - {name: one, concurrencyPolicy: Replace, killTimeout: 1, command: 'echo $DUCTOR_RUN_ID >> FOLDER/runs; sleep 60'}\n",
    );
    let daemon = Builder::at(&place).start();
    let ids: Vec<String> = (0..20).map(|_| run_id(&start(&daemon, "one"))).collect();
    let newest = ids.last().unwrap();
    wait_until(Duration::from_secs(10), || {
        lines(&place, "runs").contains(newest).then_some(())
    })
    .expect("the newest begins soon");
    for id in &ids[..19] {
        assert_eq!(ended(&daemon, id)["state"], "cancelled");
    }
    daemon
        .post("/jobs/one/cancel", &serde_json::json!({}))
        .expect_status(200);
}
