//! Slot pools on the real binary: order, width, Forbid, pauses, drains, deadlines, long queues.

use std::time::Duration;

use serde_json::json;

use super::support::{Builder, Daemon, Place, wait_until};
use super::ways::{ended, entries, folder, lines, run, run_id, slots, start};

fn place_with(text: &str) -> Place {
    let place = Place::new("jobs: []\n");
    place.write_config(&text.replace("FOLDER", &folder(&place)));
    place
}

#[test]
fn forbid_waits_in_pool() {
    let place = place_with(concat!(
        "pools: {p: {slots: 4}}\njobs:\n",
        "  - {name: solo, pool: p, concurrencyPolicy: Forbid, command: 'echo b >> FOLDER/marks; sleep 1; echo e >> FOLDER/marks'}\n",
    ));
    let daemon = Builder::at(&place).start();
    let first = run_id(&start(&daemon, "solo"));
    let second = run_id(&start(&daemon, "solo"));
    daemon.wait("the second to wait for the first", || {
        let waiting = entries(&daemon, "p", "queued");
        (waiting.first()?["waitingReason"] == "waiting for concurrency admission").then_some(())
    });
    assert_eq!(ended(&daemon, &first)["state"], "succeeded");
    assert_eq!(ended(&daemon, &second)["state"], "succeeded");
    assert_eq!(lines(&place, "marks"), ["b", "e", "b", "e"]);
}

#[test]
fn m5_forbid_without_a_pool_skips_and_never_starts_late() {
    let place = place_with(
        "jobs:\n  - {name: solo, schedule: '@every 1s', concurrencyPolicy: Forbid, command: 'echo b >> FOLDER/marks; sleep 30', killTimeout: 1}\n",
    );
    let daemon = Builder::at(&place).start();
    wait_until(Duration::from_secs(10), || {
        (lines(&place, "marks").len() == 1).then_some(())
    })
    .unwrap();
    let skipped = "ductor_fires_total{job=\"solo\",outcome=\"skipped\"}";
    daemon.wait("skipped fires", || {
        let text = daemon.get("/metrics").text();
        let line = text.lines().find(|line| line.starts_with(skipped))?;
        line.rsplit(' ')
            .next()?
            .parse::<f64>()
            .ok()
            .filter(|count| *count >= 2.0)
    });
    assert_eq!(lines(&place, "marks").len(), 1, "one process");
    daemon.post("/jobs/solo/pause", &json!({})).expect_status(200);
    daemon.post("/jobs/solo/cancel", &json!({})).expect_status(200);
    daemon.wait("the end", || {
        (daemon.get("/jobs/solo").json()["running"] == 0).then_some(())
    });
    assert_eq!(lines(&place, "marks").len(), 1, "no late start");
}

#[test]
fn verify_holds_slots() {
    let place = place_with(concat!(
        "pools: {p: {slots: 1}}\njobs:\n",
        "  - name: checked\n    pool: p\n    command: echo command >> FOLDER/marks\n",
        "    verify: {command: 'sleep 1; echo verified >> FOLDER/marks', timeout: 20}\n",
    ));
    let daemon = Builder::at(&place).start();
    let first = run_id(&start(&daemon, "checked"));
    let second = run_id(&start(&daemon, "checked"));
    assert_eq!(ended(&daemon, &first)["state"], "succeeded");
    assert_eq!(ended(&daemon, &second)["state"], "succeeded");
    assert_eq!(
        lines(&place, "marks"),
        ["command", "verified", "command", "verified"]
    );
}

#[test]
fn verify_fails_attempt() {
    let place = place_with(concat!(
        "jobs:\n",
        "  - {name: bad, command: 'true', verify: {command: 'echo three rows missing; exit 1'}}\n",
        "  - {name: slow, command: 'true', killTimeout: 0, verify: {command: 'sleep 60', timeout: 0.2}}\n",
    ));
    let daemon = Builder::at(&place).start();
    let bad = ended(&daemon, &run_id(&start(&daemon, "bad")));
    assert_eq!(bad["state"], "failed");
    let reason = bad["attempts"][0]["reason"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(reason.contains("three rows missing"), "{bad}");
    let slow = ended(&daemon, &run_id(&start(&daemon, "slow")));
    assert_eq!(
        (slow["state"].as_str(), slow["attempts"][0]["exit_code"].as_i64()),
        (Some("failed"), Some(-100))
    );
}

#[test]
fn pool_pause_holds_over_a_restart() {
    let place = place_with(
        "pools: {p: {slots: 1}}\njobs:\n  - {name: a, pool: p, command: 'echo a >> FOLDER/marks'}\n",
    );
    let daemon = Builder::at(&place).start();
    daemon
        .post("/pools/p/pause", &json!({"note": "maintenance"}))
        .expect_status(200);
    let id = run_id(&start(&daemon, "a"));
    let daemon = daemon.restart();
    let shown = slots(&daemon, "p");
    assert_eq!(shown["paused"]["note"], "maintenance", "{shown}");
    assert_eq!(shown["entries"][0]["waitingReason"], "Pool is paused", "{shown}");
    assert_eq!(lines(&place, "marks").len(), 0);
    daemon.post("/pools/p/resume", &json!({})).expect_status(200);
    assert_eq!(ended(&daemon, &id)["state"], "succeeded");
}

#[test]
fn queue_deadline_without_traffic_on_the_binary() {
    let place = place_with(concat!(
        "pools: {p: {slots: 1}}\njobs:\n",
        "  - {name: holder, pool: p, command: 'sleep 30', killTimeout: 1}\n",
        "  - {name: brief, pool: p, command: 'true', queueTimeout: 1}\n",
    ));
    let daemon = Builder::at(&place).start();
    start(&daemon, "holder");
    daemon.wait("the holder", || {
        (entries(&daemon, "p", "running").len() == 1).then_some(())
    });
    let shown = ended(&daemon, &run_id(&start(&daemon, "brief")));
    assert_eq!(
        (shown["state"].as_str(), shown["reason"].as_str()),
        (Some("skipped"), Some("queue timeout"))
    );
    daemon.post("/jobs/holder/cancel", &json!({})).expect_status(200);
}

#[test]
fn a_changed_capacity_drains_over_a_restart() {
    let text = "shutdown: {drainTimeout: 0.1}\npools: {p: {slots: SLOTS}}\njobs:\n  - {name: a, pool: p, command: 'sleep 30', killTimeout: 1}\n";
    let place = place_with(&text.replace("SLOTS", "1"));
    let daemon = Builder::at(&place).start();
    let first = run_id(&start(&daemon, "a"));
    daemon.wait("the first", || {
        (entries(&daemon, "p", "running").len() == 1).then_some(())
    });
    daemon.post("/pools/p/pause", &json!({})).expect_status(200);
    let waiting = run_id(&start(&daemon, "a"));
    place.write_config(&text.replace("SLOTS", "3"));
    let daemon = daemon.restart();
    let refused = daemon.post("/jobs/a/start", &json!({}));
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(
        refused.json()["error"],
        "pool is draining before a capacity change"
    );
    let shown = slots(&daemon, "p");
    assert_eq!(
        (shown["slots"].as_u64(), shown["configuredSlots"].as_u64()),
        (Some(1), Some(3)),
        "{shown}"
    );
    daemon.post("/pools/p/resume", &json!({})).expect_status(200);
    daemon.post("/jobs/a/cancel", &json!({})).expect_status(200);
    for id in [first, waiting] {
        ended(&daemon, &id);
    }
    daemon.wait("the new capacity", || {
        (slots(&daemon, "p")["slots"] == 3).then_some(())
    });
    assert_eq!(daemon.post("/jobs/a/start", &json!({})).status, 202);
    daemon.post("/jobs/a/cancel", &json!({})).expect_status(200);
}

#[test]
fn lists_1000_waiting_by_pages() {
    let place = place_with(concat!(
        "pools: {p: {slots: 1, maxQueued: 2000}}\njobs:\n",
        "  - {name: holder, pool: p, command: 'sleep 60', killTimeout: 1, queuePriority: 5}\n",
        "  - {name: a, pool: p, command: 'true'}\n",
    ));
    let daemon = Builder::at(&place).start();
    start(&daemon, "holder");
    daemon.wait("the holder", || {
        (entries(&daemon, "p", "running").len() == 1).then_some(())
    });
    for _ in 0..1000 {
        assert_eq!(daemon.post("/jobs/a/start", &json!({})).status, 202);
    }
    let shown = slots(&daemon, "p");
    let queued = shown["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["state"] == "queued")
        .count();
    assert_eq!(
        (shown["queued"].as_u64(), queued, shown["truncated"].as_bool()),
        (Some(1000), 200, Some(true))
    );
    let all = daemon.get("/pools/p?limit=10000").json();
    let positions: Vec<u64> = all["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["state"] == "queued")
        .filter_map(|entry| entry["position"].as_u64())
        .collect();
    assert_eq!(positions, (1..=1000).collect::<Vec<u64>>());
    daemon.post("/jobs/holder/cancel", &json!({})).expect_status(200);
    daemon.wait("claims go on while it is listed", || {
        let shown = slots(&daemon, "p");
        (shown["queued"].as_u64()? < 900).then_some(())
    });
    daemon.post("/jobs/a/cancel", &json!({})).expect_status(200);
    let listed = daemon.cli(&["slots", "show", "p"]);
    assert_eq!(listed.status, 0, "{listed:?}");
}

#[test]
fn a_run_that_waits_says_why() {
    let place = place_with(concat!(
        "pools: {p: {slots: 2}}\njobs:\n",
        "  - {name: one, pool: p, command: 'sleep 30', killTimeout: 1}\n",
        "  - {name: two, pool: p, poolSlots: 2, command: 'true'}\n",
    ));
    let daemon = Builder::at(&place).start();
    start(&daemon, "one");
    daemon.wait("the first", || {
        (entries(&daemon, "p", "running").len() == 1).then_some(())
    });
    let wide = run_id(&start(&daemon, "two"));
    let behind = run_id(&start(&daemon, "one"));
    let shown = run(&daemon, &wide);
    assert!(
        shown.to_string().contains("Needs 2 slot(s); 1 available"),
        "{shown}"
    );
    let why = daemon.cli(&["run", "why", &behind]);
    assert_eq!(why.status, 0, "{why:?}");
    assert!(
        why.stdout
            .contains("Waiting behind higher-priority or earlier work"),
        "{why:?}"
    );
    daemon.post("/jobs/one/cancel", &json!({})).expect_status(200);
    assert_eq!(ended(&daemon, &wide)["state"], "succeeded");
}

#[test]
fn p7_low_priority_expires_and_says_so() {
    let place = place_with(concat!(
        "pools: {p: {slots: 1}}\njobs:\n",
        "  - {name: high, pool: p, queuePriority: 10, command: 'sleep 0.4', schedule: '@every 1s'}\n",
        "  - {name: hold, pool: p, queuePriority: 20, command: 'sleep 20', killTimeout: 1}\n",
        "  - {name: low, pool: p, queueTimeout: 2, command: 'true'}\n",
    ));
    let daemon: Daemon = Builder::at(&place).start();
    start(&daemon, "hold");
    daemon.wait("the holder", || {
        (!entries(&daemon, "p", "running").is_empty()).then_some(())
    });
    let low = run_id(&start(&daemon, "low"));
    let shown = ended(&daemon, &low);
    assert_eq!(
        (shown["state"].as_str(), shown["reason"].as_str()),
        (Some("skipped"), Some("queue timeout"))
    );
    daemon.post("/jobs/hold/cancel", &json!({})).expect_status(200);
}
