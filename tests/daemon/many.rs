//! Several daemons work on one state directory: who does what, what each leaves to the others, and what a dead one leaves.

#![allow(
    clippy::disallowed_methods,
    reason = "how long another process takes is measured from outside"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::{Answer, Builder, Daemon, Place, Receiver, wait_until};
use super::ways::{ended, entries, folder, lines, lives, run, run_id, slots, start};

fn place_with(text: &str) -> Place {
    let place = Place::new("jobs: []\n");
    write(&place, text);
    place
}

fn write(place: &Place, text: &str) {
    place.write_config(&text.replace("FOLDER", &folder(place)));
}

fn named(place: &Place, name: &str) -> Builder {
    Builder::at(place).node(name).leave_store_unchecked()
}

fn wait_lines(place: &Place, name: &str, count: usize) -> Vec<String> {
    wait_until(Duration::from_secs(30), || {
        let lines = lines(place, name);
        (lines.len() >= count).then_some(lines)
    })
    .unwrap_or_else(|| panic!("only {:?} in {name}", lines(place, name)))
}

fn node_of(daemon: &Daemon) -> String {
    let status = daemon.get("/api/status").expect_status(200).json();
    status["data"]["node"].as_str().unwrap().to_owned()
}

fn states(daemon: &Daemon) -> BTreeMap<String, String> {
    let nodes = daemon.get("/api/nodes").expect_status(200).json();
    let nodes = nodes["data"].as_array().unwrap().clone();
    let text = |node: &Value, key: &str| node[key].as_str().unwrap().to_owned();
    nodes
        .iter()
        .map(|node| (text(node, "name"), text(node, "state")))
        .collect()
}

/// A schedule of one moment only, so many seconds from now.
fn once_in(seconds: u64) -> String {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() + seconds;
    let answered = std::process::Command::new("date")
        .args(["-u", "-d", &format!("@{now}"), "+%-S %-M %-H %-d %-m *"])
        .output()
        .unwrap();
    String::from_utf8(answered.stdout).unwrap().trim().to_owned()
}

#[test]
fn generated_names() {
    let place = place_with(
        "pools: {p: {slots: 4}}\njobs:\n  - {name: job, pool: p, command: 'echo $DUCTOR_NODE >> FOLDER/ran'}\n",
    );
    let unnamed = || Builder::at(&place).leave_store_unchecked();
    let (first, second) = (unnamed().start(), unnamed().start());
    let names = [node_of(&first), node_of(&second)];
    assert_ne!(names[0], names[1]);
    for (daemon, name) in [&first, &second].into_iter().zip(&names) {
        assert!(name.starts_with("n-") && name.len() == 14, "{name}");
        ended(daemon, &run_id(&start(daemon, "job")));
    }
    assert_eq!(
        lines(&place, "ran"),
        names,
        "manual entries run where they belong"
    );
    // Restarted, it gets its own name back, and with it what waits for it.
    first.post("/pools/p/pause", &json!({})).expect_status(200);
    let waits = run_id(&start(&second, "job"));
    let mut second = second;
    second.kill9();
    first.post("/pools/p/resume", &json!({})).expect_status(200);
    let second = second.restart();
    assert_eq!(node_of(&second), names[1]);
    assert_eq!(ended(&second, &waits)["state"], "succeeded");
    assert_eq!(lines(&place, "ran")[2], names[1]);
    assert_eq!(states(&first).len(), 2);
    drop(second);
    assert_eq!(states(&first)[&names[1]], "gone");
}

#[test]
fn claim_race_two_daemons() {
    const JOBS: usize = 200;
    let place = place_with("jobs: []\n");
    let schedule = once_in(8);
    let mut text = "pools: {p: {slots: 4, maxQueued: 1000}}\njobs:\n".to_owned();
    for number in 0..JOBS {
        text += &format!(
            "  - {{name: j{number}, pool: p, schedule: '{schedule}', seconds: true, command: 'echo b j{number} $DUCTOR_NODE >> FOLDER/log; sleep 0.01; echo e >> FOLDER/log'}}\n"
        );
    }
    write(&place, &text);
    let daemons = [named(&place, "a").start(), named(&place, "b").start()];
    let log = wait_until(Duration::from_secs(60), || {
        let log = lines(&place, "log");
        (log.len() >= 2 * JOBS).then_some(log)
    })
    .unwrap_or_else(|| panic!("{} lines", lines(&place, "log").len()));
    let begun: Vec<&String> = log.iter().filter(|line| line.starts_with('b')).collect();
    let names: BTreeSet<&str> = begun.iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!((begun.len(), names.len()), (JOBS, JOBS), "each ran exactly once");
    let (mut at_once, mut most) = (0, 0);
    for line in &log {
        at_once = if line.starts_with('b') {
            at_once + 1
        } else {
            at_once - 1
        };
        most = most.max(at_once);
    }
    assert!(most <= 4, "{most} at one time");
    let of = |node: &str| begun.iter().filter(|line| line.ends_with(node)).count();
    let parts = [of(" a"), of(" b")];
    assert!(
        parts.iter().all(|part| *part >= JOBS / 10),
        "a fair part: {parts:?}"
    );
    for daemon in &daemons {
        daemon.wait("all slots to be free", || {
            let shown = slots(daemon, "p");
            (shown["used"] == 0 && shown["queued"] == 0).then_some(())
        });
    }
}

#[test]
fn forbid_waits_in_pool() {
    let place = place_with(concat!(
        "pools: {p: {slots: 4}}\njobs:\n  - name: job\n    pool: p\n    concurrencyPolicy: Forbid\n",
        "    command: 'echo b $DUCTOR_NODE >> FOLDER/log; while [ ! -e FOLDER/go ]; do sleep 0.02; done; echo e >> FOLDER/log'\n",
    ));
    let (a, b) = (named(&place, "a").start(), named(&place, "b").start());
    start(&a, "job");
    wait_lines(&place, "log", 1);
    let (here, there) = (run_id(&start(&a, "job")), run_id(&start(&b, "job")));
    a.wait("both to wait for the live instance", || {
        let queued = entries(&a, "p", "queued");
        let reason = &queued.first()?["waitingReason"];
        (queued.len() == 2 && reason == "waiting for concurrency admission").then_some(())
    });
    // Seen from there, the first one is another node's.
    let head = entries(&b, "p", "queued")[0]["waitingReason"].clone();
    assert_eq!(head, "Waiting for node a");
    place.write("go", "");
    assert_eq!(ended(&a, &here)["state"], "succeeded");
    assert_eq!(ended(&b, &there)["state"], "succeeded");
    assert_eq!(
        lines(&place, "log"),
        ["b a", "e", "b a", "e", "b b", "e"],
        "one at a time, in order, over both daemons"
    );
}

#[test]
fn a_newer_instance_replaces_one_of_another_daemon() {
    let place = place_with(concat!(
        "jobs:\n  - {name: job, concurrencyPolicy: Replace, killTimeout: 2, ",
        "command: 'echo $$ $DUCTOR_NODE >> FOLDER/log; exec sleep 60'}\n",
    ));
    let (a, b) = (named(&place, "a").start(), named(&place, "b").start());
    let earlier = run_id(&start(&a, "job"));
    let first = wait_lines(&place, "log", 1)[0].clone();
    let newer = run_id(&start(&b, "job"));
    let second = wait_lines(&place, "log", 2)[1].clone();
    assert!(first.ends_with(" a") && second.ends_with(" b"));
    assert!(!lives(first.split(' ').next().unwrap()), "it ended first");
    let shown = ended(&b, &earlier);
    assert_eq!(shown["state"], "cancelled", "{shown}");
    cancel(&a, &newer);
    assert_eq!(ended(&b, &newer)["state"], "cancelled");
}

fn cancel(daemon: &Daemon, run: &str) {
    let answer = daemon.post(&format!("/api/runs/{run}:cancel"), &json!({}));
    assert!(matches!(answer.status, 200 | 202), "{answer:?}");
}

#[test]
fn a_run_of_another_daemon_is_ended_at_once() {
    let place = place_with("jobs:\n  - {name: job, command: 'echo $$ >> FOLDER/log; exec sleep 60'}\n");
    let (a, b) = (named(&place, "a").start(), named(&place, "b").start());
    let mut took = Vec::new();
    for number in 1..=3 {
        let id = run_id(&start(&a, "job"));
        let pid = wait_lines(&place, "log", number)[number - 1].clone();
        let asked = Instant::now();
        cancel(&b, &id);
        b.wait("the process to end", || (!lives(&pid)).then_some(()));
        took.push(asked.elapsed());
        let shown = ended(&b, &id);
        assert_eq!(shown["state"], "cancelled", "{shown}");
        assert_eq!(shown["attempts"][0]["node"], "a");
    }
    let best = took.iter().min().unwrap();
    assert!(*best < Duration::from_millis(300), "{took:?}");
}

/// Kills the daemon that holds the run of `job`, whose fires are anybody's; what the other one says of it then.
fn kill_its_daemon(text: &str, check: impl FnOnce(&Place, &Daemon, &Daemon, Instant, &str)) {
    let place = place_with(text);
    let mut daemons = vec![named(&place, "a").start(), named(&place, "b").start()];
    let first = wait_lines(&place, "log", 1)[0].clone();
    let node = first.split(' ').nth(1).unwrap().to_owned();
    let dead = daemons.iter().position(|daemon| node_of(daemon) == node).unwrap();
    let mut dead = daemons.remove(dead);
    let killed = Instant::now();
    dead.kill9();
    check(&place, &daemons[0], &dead, killed, &first);
}

#[test]
fn kill9_second_daemon_takes_over() {
    let schedule = once_in(4);
    let text = format!(
        "pools: {{p: {{slots: 1}}}}\njobs:\n  - {{name: job, pool: p, schedule: '{schedule}', seconds: true, killTimeout: 1, command: 'echo $$ $DUCTOR_NODE >> FOLDER/log; exec sleep 90'}}\n"
    );
    kill_its_daemon(&text, |place, other, _, killed, first| {
        let second = wait_lines(place, "log", 2)[1].clone();
        let took = killed.elapsed();
        assert!(!lives(first.split(' ').next().unwrap()), "never two alive");
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert_eq!(second.split(' ').nth(1), Some(node_of(other).as_str()));
        let entry = entries(other, "p", "running")[0].clone();
        assert_eq!(
            (entry["attempt"].as_u64(), entry["readmitted"].as_u64()),
            (Some(1), Some(1)),
            "{entry}"
        );
        let id = entry["runId"].as_str().unwrap().to_owned();
        cancel(other, &id);
        let shown = ended(other, &id);
        let attempts = shown["attempts"].as_array().unwrap();
        let outcome = |at: usize| attempts[at]["outcome"].as_str().unwrap();
        assert_eq!((outcome(0), outcome(1)), ("lost", "cancelled"), "{shown}");
        assert!(attempts[0]["fence"].as_u64() < attempts[1]["fence"].as_u64());
        other.wait_log("re-admitted after ending its process");
    });
}

#[test]
fn kill9_manual_entry_stays() {
    let place = place_with(concat!(
        "pools: {p: {slots: 2}}\njobs:\n",
        "  - {name: job, pool: p, killTimeout: 1, command: 'echo $$ $DUCTOR_NODE >> FOLDER/log; exec sleep 90'}\n",
        "  - {name: free, killTimeout: 1, command: 'echo $$ $DUCTOR_NODE >> FOLDER/log; exec sleep 90'}\n",
    ));
    let (a, b) = (named(&place, "a").start(), named(&place, "b").start());
    let ids = [run_id(&start(&a, "job")), run_id(&start(&a, "free"))];
    let before = wait_lines(&place, "log", 2);
    let mut a = a;
    a.kill9();
    for line in &before {
        let pid = line.split(' ').next().unwrap();
        b.wait("the other daemon to end the process", || {
            (!lives(pid)).then_some(())
        });
    }
    b.wait("the entry to wait for its node", || {
        let head = entries(&b, "p", "queued").pop()?;
        let reason = head["waitingReason"].as_str()?;
        (reason.contains("node a") && reason.contains("gone")).then_some(())
    });
    assert_eq!(slots(&b, "p")["used"], 0);
    assert_eq!(lines(&place, "log").len(), 2, "it does not run there");
    let a = a.restart();
    let after = wait_lines(&place, "log", 4);
    assert!(after[2..].iter().all(|line| line.ends_with(" a")), "{after:?}");
    for id in &ids {
        cancel(&a, id);
        assert_eq!(ended(&a, id)["state"], "cancelled");
    }
}

#[test]
fn m7_restart_of_a_peer_fails_living_work() {
    let place = place_with(concat!(
        "pools: {p: {slots: 2}}\njobs:\n",
        "  - {name: job, pool: p, command: 'echo b >> FOLDER/log; while [ ! -e FOLDER/go ]; do sleep 0.05; done'}\n",
    ));
    let (a, b) = (named(&place, "a").start(), named(&place, "b").start());
    let id = run_id(&start(&b, "job"));
    wait_lines(&place, "log", 1);
    let lease = |daemon: &Daemon| entries(daemon, "p", "running")[0]["claim"]["leaseUntil"].clone();
    let before = lease(&b);
    let mut a = a;
    a.kill9();
    let a = a.restart();
    a.wait("the lease of the other to be renewed", || {
        (lease(&a) != before).then_some(())
    });
    place.write("go", "");
    let shown = ended(&a, &id);
    assert_eq!(shown["state"], "succeeded");
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(lines(&place, "log").len(), 1);
}

#[test]
fn p3_a_slot_held_by_nobody() {
    let schedule = once_in(4);
    let place = place_with(&format!(
        "pools: {{p: {{slots: 1}}}}\njobs:\n  - {{name: job, pool: p, schedule: '{schedule}', seconds: true, command: 'echo $DUCTOR_NODE $DUCTOR_ATTEMPT >> FOLDER/log'}}\n"
    ));
    // Both die there, once each: whoever claims first leaves a claim without a begun command.
    let fail = place.write("fail", "gate.before=once:kill\n");
    let failing = |name: &str| {
        named(&place, name)
            .env("DUCTOR_FAIL", format!("@{}", fail.display()))
            .start()
    };
    let mut daemons = [failing("a"), failing("b")];
    let dead = wait_until(Duration::from_secs(20), || {
        daemons.iter_mut().position(|daemon| !daemon.is_running())
    });
    let dead = dead.expect("one claims and dies");
    let other = &daemons[1 - dead];
    let ran = wait_lines(&place, "log", 1);
    assert_eq!(ran, [format!("{} 1", node_of(other))], "the same attempt number");
    let shown = other.wait("the slot to be free", || {
        let shown = slots(other, "p");
        (shown["used"] == 0).then_some(shown)
    });
    assert_eq!(shown["queued"], 0, "{shown}");
}

#[test]
fn pool_pause_holds_everywhere() {
    let place = place_with(concat!(
        "pools: {p: {slots: 1}}\njobs:\n",
        "  - {name: job, pool: p, command: 'echo $DUCTOR_RUN_ID >> FOLDER/ran'}\n",
        "  - {name: long, pool: p, command: 'echo b >> FOLDER/long; while [ ! -e FOLDER/go ]; do sleep 0.05; done'}\n",
        "  - {name: hasty, pool: p, queueTimeout: 2, command: 'true'}\n",
    ));
    let (a, b) = (named(&place, "a").start(), named(&place, "b").start());
    let long = run_id(&start(&b, "long"));
    wait_lines(&place, "long", 1);
    a.post("/pools/p/pause", &json!({"note": "repair"}))
        .expect_status(200);
    let hasty = run_id(&start(&b, "hasty"));
    let ids = [run_id(&start(&b, "job")), run_id(&start(&b, "job"))];
    // Deadlines run, running work goes on.
    assert_eq!(ended(&b, &hasty)["state"], "skipped");
    assert_eq!(slots(&b, "p")["paused"]["note"], "repair");
    assert_eq!(slots(&b, "p")["blockedBy"]["kind"], "pool_paused");
    place.write("go", "");
    assert_eq!(ended(&b, &long)["state"], "succeeded");
    let b = b.restart();
    assert_eq!(slots(&b, "p")["paused"]["note"], "repair", "over a restart");
    assert_eq!(slots(&b, "p")["queued"], 2);
    assert_eq!(lines(&place, "ran"), Vec::<String>::new());
    a.post("/pools/p/resume", &json!({})).expect_status(200);
    for id in &ids {
        assert_eq!(ended(&b, id)["state"], "succeeded");
    }
    assert_eq!(lines(&place, "ran"), ids, "order kept");
}

#[test]
fn job_pause_holds_everywhere() {
    let place =
        place_with("jobs:\n  - {name: tick, schedule: '@every 1s', command: 'echo r >> FOLDER/ran'}\n");
    let (a, b) = (named(&place, "a").start(), named(&place, "b").start());
    wait_lines(&place, "ran", 1);
    a.post("/jobs/tick/pause", &json!({})).expect_status(200);
    let fires = |outcome: &str| {
        let path = format!("/jobs/tick/fires?limit=500&outcome={outcome}");
        b.get(&path).expect_status(200).json().as_array().unwrap().clone()
    };
    b.wait("two fires to be skipped", || {
        let skipped = fires("skipped");
        let paused = skipped
            .iter()
            .filter(|fire| fire["skipped"]["code"] == "job_paused");
        (paused.count() >= 2).then_some(())
    });
    b.post("/jobs/tick/resume", &json!({})).expect_status(200);
    let ran = lines(&place, "ran").len();
    wait_lines(&place, "ran", ran + 1);
}

/// The moments of a job with a row, as `instant`.
fn moments(daemon: &Daemon, job: &str) -> Vec<String> {
    let path = format!("/jobs/{job}/fires?limit=500&outcome=run");
    let fires = daemon.get(&path).expect_status(200).json();
    let fires = fires.as_array().unwrap();
    fires
        .iter()
        .map(|fire| fire["instant"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn no_double_fire() {
    let place = place_with(
        "jobs:\n  - {name: tick, schedule: '@every 1s', command: 'echo $DUCTOR_SCHEDULED_AT >> FOLDER/ran'}\n",
    );
    let daemons = ["a", "b", "c"].map(|name| named(&place, name).start());
    let ran = wait_lines(&place, "ran", 20);
    let distinct: BTreeSet<&String> = ran.iter().collect();
    assert_eq!(distinct.len(), ran.len(), "{ran:?}");
    let fired = moments(&daemons[0], "tick");
    assert!(ran.iter().all(|moment| fired.contains(moment)));
    // No moment was passed over between the first and the last.
    let path = "/jobs/tick/fires?limit=500&outcome=skipped";
    let skipped = daemons[1].get(path).expect_status(200).json();
    assert_eq!(skipped, json!([]));
}

#[test]
fn every_node_fires_each() {
    let place = place_with(concat!(
        "jobs:\n  - {name: each, schedule: '@every 2s', clusterPolicy: EveryNode, ",
        "command: 'echo $DUCTOR_SCHEDULED_AT $DUCTOR_NODE >> FOLDER/ran'}\n",
    ));
    let _daemons = ["a", "b", "c"].map(|name| named(&place, name).start());
    let complete = wait_until(Duration::from_secs(30), || {
        let mut of: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in lines(&place, "ran") {
            let (moment, node) = line.split_once(' ')?;
            of.entry(moment.to_owned()).or_default().push(node.to_owned());
        }
        let mut whole: Vec<Vec<String>> = of.into_values().filter(|nodes| nodes.len() >= 3).collect();
        for nodes in &mut whole {
            nodes.sort();
        }
        (whole.len() >= 3).then_some(whole)
    });
    let complete = complete.unwrap_or_else(|| panic!("{:?}", lines(&place, "ran")));
    assert!(
        complete.iter().all(|nodes| *nodes == ["a", "b", "c"]),
        "{complete:?}"
    );
}

#[test]
fn an_idempotency_key_holds_for_all_daemons() {
    let place = place_with(
        "pools: {p: {slots: 2}}\njobs:\n  - {name: job, pool: p, command: 'echo r >> FOLDER/ran'}\n",
    );
    let (a, b) = (named(&place, "a").start(), named(&place, "b").start());
    let headers = [("content-type", "application/json"), ("idempotency-key", "k1")];
    let first = a
        .request("POST", "/jobs/job/start", &headers, b"{}")
        .expect_status(202);
    let again = b
        .request("POST", "/jobs/job/start", &headers, b"{}")
        .expect_status(202);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.text(), first.text());
    ended(&b, &run_id(&first.json()));
    assert_eq!(lines(&place, "ran").len(), 1);
}

#[test]
fn work_of_another_daemon_is_followed_here() {
    let place = place_with(concat!(
        "pools: {p: {slots: 2}}\njobs:\n",
        "  - {name: job, pool: p, command: 'echo first; while [ ! -e FOLDER/go ]; do sleep 0.05; done; echo last'}\n",
    ));
    let (a, b) = (named(&place, "a").start(), named(&place, "b").start());
    let mut stream = b.events("/api/stream?topics=runs");
    let id = run_id(&start(&a, "job"));
    stream.wait_for(Duration::from_secs(5), |event| event.data.contains(&id));
    let tail = format!("/api/runs/{id}/steps/main/attempts/1/log/tail");
    b.wait("the attempt to be shown", || {
        let running = run(&b, &id)["state"] == "running";
        (running && b.get(&format!("/api/runs/{id}/steps/main/attempts/1/log")).status == 200).then_some(())
    });
    let mut log = b.events(&tail);
    log.wait_for(Duration::from_secs(5), |event| event.data.contains("first"));
    place.write("go", "");
    log.wait_for(Duration::from_secs(5), |event| event.data.contains("last"));
    stream.wait_for(Duration::from_secs(5), |event| {
        event.data.contains(&id) && event.data.contains("succeeded")
    });
    let shown = b.cli(&["run", "follow", &id]);
    assert_eq!(shown.status, 0, "{shown:?}");
}

const DRIFTING: &str = concat!(
    "pools: {p: {slots: SLOTS}}\njobs:\n",
    "  - {name: job, pool: p, command: 'echo TEXT >> FOLDER/ran'}\n",
    "  - {name: tick, schedule: '@every 1s', command: 'echo TEXT $DUCTOR_NODE >> FOLDER/ticks'}\n",
);

#[test]
fn a_load_of_another_daemon_is_told_and_respected() {
    let old = DRIFTING.replace("SLOTS", "2").replace("TEXT", "old");
    let place = place_with(&old);
    let (a, b) = (named(&place, "a").start(), named(&place, "b").start());
    wait_lines(&place, "ticks", 2);
    write(&place, &DRIFTING.replace("SLOTS", "3").replace("TEXT", "new"));
    let mut b = b;
    b.signal("HUP");
    b.wait_log("configuration reloaded");
    a.wait_log("pool p: configuration differs from node b");
    let refused = a.post("/jobs/job/start", &json!({})).expect_status(409);
    assert_eq!(
        refused.json()["error"],
        "pool p: configuration differs from node b"
    );
    ended(&b, &run_id(&start(&b, "job")));
    assert_eq!(lines(&place, "ran"), ["new"]);
    // The fires are those of the last load, whoever runs them.
    let seen = lines(&place, "ticks").len();
    let ticks = wait_lines(&place, "ticks", seen + 4);
    assert!(
        ticks[seen + 1..].iter().all(|line| line.starts_with("new")),
        "{ticks:?}"
    );
    let status = a.get("/api/status").expect_status(200).json();
    let drift = &status["data"]["drift"];
    assert_eq!(drift["pools"][0]["name"], "p", "{status}");
    assert_eq!(drift["pools"][0]["node"], "b");
    let jobs: Vec<&str> = drift["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|job| job["name"].as_str())
        .collect();
    assert_eq!(jobs, ["job", "tick"]);
    assert_eq!(slots(&a, "p")["differsFrom"], "b");
    let said = a.cli(&["status"]).stdout;
    assert!(said.contains("configuration differs from node b"), "{said}");
    // The same load here ends it.
    let mut a = a;
    a.signal("HUP");
    a.wait_log("the configuration of this node is the one that was loaded last");
    ended(&a, &run_id(&start(&a, "job")));
    assert_eq!(lines(&place, "ran"), ["new", "new"]);
}

#[test]
fn a_node_is_drained_and_undrained() {
    let place = place_with(concat!(
        "pools: {p: {slots: 4}}\njobs:\n",
        "  - {name: job, pool: p, command: 'echo b >> FOLDER/log; while [ ! -e FOLDER/go ]; do sleep 0.05; done'}\n",
        "  - {name: tick, schedule: '@every 1s', command: 'echo $DUCTOR_NODE >> FOLDER/ticks'}\n",
        "  - {name: each, schedule: '@every 1s', clusterPolicy: EveryNode, command: 'echo $DUCTOR_NODE >> FOLDER/each'}\n",
    ));
    let (a, b) = (named(&place, "a").start(), named(&place, "b").start());
    let id = run_id(&start(&a, "job"));
    wait_lines(&place, "log", 1);
    let drained = b.cli(&["node", "drain", "a", "--no-wait", "--reason", "new disk"]);
    assert_eq!(drained.status, 0, "{drained:?}");
    assert!(drained.stdout.contains("1 command still runs"), "{drained:?}");
    assert_eq!(states(&b)["a"], "draining", "its run goes on");
    let refused = a.post("/jobs/job/start", &json!({})).expect_status(409);
    assert!(
        refused.json()["error"]
            .as_str()
            .unwrap()
            .contains("node a is drained")
    );
    let (ticks, each) = (lines(&place, "ticks").len(), lines(&place, "each").len());
    // One that was claimed before the drain may still be on its way.
    let later = wait_lines(&place, "ticks", ticks + 4);
    assert!(later[ticks + 1..].iter().all(|node| node == "b"), "{later:?}");
    let later = wait_lines(&place, "each", each + 4);
    assert!(later[each + 1..].iter().all(|node| node == "b"), "{later:?}");
    let waits = b.cli(&["node", "drain", "a", "--timeout", "1s"]);
    assert_eq!(waits.status, 124, "{waits:?}");
    place.write("go", "");
    assert_eq!(ended(&b, &id)["state"], "succeeded");
    let waits = b.cli(&["node", "drain", "a", "--timeout", "20s"]);
    assert_eq!(waits.status, 0, "{waits:?}");
    assert_eq!(states(&b)["a"], "drained");
    let a = a.restart();
    assert_eq!(states(&a)["a"], "drained", "over a restart");
    let listed = a.cli(&["node", "ls"]).stdout;
    assert!(listed.contains("drained"), "{listed}");
    assert_eq!(b.cli(&["node", "drain", "nobody"]).status, 3);
    assert_eq!(a.cli(&["node", "undrain", "a"]).status, 0);
    assert_eq!(states(&b)["a"], "live");
    let each = lines(&place, "each").len();
    wait_until(Duration::from_secs(10), || {
        lines(&place, "each")[each..]
            .iter()
            .any(|node| node == "a")
            .then_some(())
    })
    .expect("it fires again");
}

#[test]
fn each_report_is_delivered_by_one_daemon() {
    let inbox = Receiver::new(Answer::Status(200));
    let text = concat!(
        "jobs:\n  - name: bad\n    schedule: '@every 1s'\n    command: 'echo r >> FOLDER/ran; exit 1'\n",
        "    onFailure: {report: {webhook: {url: 'HOOK'}}}\n",
    );
    let place = place_with(&text.replace("HOOK", &inbox.url("hook")));
    let (a, _b) = (named(&place, "a").start(), named(&place, "b").start());
    wait_lines(&place, "ran", 6);
    a.post("/jobs/bad/pause", &json!({})).expect_status(200);
    a.wait("all reports to be delivered", || {
        let ran = lines(&place, "ran").len();
        (inbox.received().len() >= ran).then_some(())
    });
    let received = inbox.received();
    let ids: BTreeSet<&str> = received.iter().map(|each| each.header("webhook-id")).collect();
    assert_eq!(ids.len(), received.len(), "none was delivered twice");
}
