//! Fires through the binary: what is listed, and what `why` says of a fire that ran, was skipped, or was missed.

use std::time::Duration;

use super::support::{Builder, Daemon, Place, wait_until};

fn fires(daemon: &Daemon, job: &str) -> Vec<serde_json::Value> {
    let list = daemon
        .get(&format!("/jobs/{job}/fires?limit=500"))
        .expect_status(200);
    list.json().as_array().cloned().unwrap_or_default()
}

fn why(daemon: &Daemon, job: &str, at: &str) -> serde_json::Value {
    daemon
        .get(&format!("/jobs/{job}/why?at={at}"))
        .expect_status(200)
        .json()
}

/// Every fire is a row that can be asked about: run, still running, paused.
#[test]
fn every_fire_is_listed_and_says_why() {
    let daemon = Daemon::start(concat!(
        "jobs:\n",
        "  - {name: each, command: 'true', seconds: true, schedule: '* * * * * *'}\n",
        "  - {name: alone, command: 'sleep 600', killTimeout: 1, seconds: true, schedule: '* * * * * *', concurrencyPolicy: Forbid}\n",
    ));
    let found = |job: &'static str, outcome: &'static str, code: &'static str| {
        daemon.wait("such a fire", || {
            fires(&daemon, job).into_iter().find(|fire| {
                fire["outcome"] == outcome && (code.is_empty() || fire["skipped"]["code"] == code)
            })
        })
    };
    let ran = found("each", "run", "");
    let instant = ran["instant"].as_str().unwrap();
    daemon.wait("its end", || {
        (why(&daemon, "each", instant)["run"]["state"] == "succeeded").then_some(())
    });
    let told = why(&daemon, "each", instant);
    assert_eq!(
        (&told["code"], &told["run"]["id"]),
        (&serde_json::json!("ran"), &ran["run"]["id"])
    );
    assert!(
        told["sentence"].as_str().unwrap().ends_with("which succeeded."),
        "{told}"
    );

    let skipped = found("alone", "skipped", "still_running");
    let told = daemon.cli(&[
        "schedule",
        "why",
        "alone",
        "--at",
        skipped["instant"].as_str().unwrap(),
    ]);
    assert!(
        told.stdout.contains("another instance was still running"),
        "{told:?}"
    );
    // Or it would be started again before the daemon is.
    daemon.cli(&["job", "pause", "alone"]).expect_status(0);
    daemon.cli(&["job", "stop", "alone"]).expect_status(0);

    daemon
        .cli(&["job", "pause", "each", "--for", "1h"])
        .expect_status(0);
    let paused = found("each", "skipped", "job_paused");
    assert_eq!(
        why(&daemon, "each", paused["instant"].as_str().unwrap())["code"],
        "job_paused"
    );
    let list = daemon
        .cli(&["schedule", "fires", "each", "-n", "2"])
        .expect_status(0)
        .stdout;
    assert!(
        list.starts_with("DUE (UTC)") && list.lines().count() == 3,
        "{list}"
    );
}

/// A daemon that was away for longer than a fire may be late.
#[test]
fn m3_a_fire_missed_while_no_daemon_ran_is_told() {
    let place =
        Place::new("jobs:\n  - {name: each, command: 'true', seconds: true, schedule: '* * * * * *'}\n");
    let mut daemon = Builder::at(&place).start();
    daemon.wait("a mark", || (!fires(&daemon, "each").is_empty()).then_some(()));
    assert_eq!(daemon.term(), Some(0));
    let newest = |daemon: &Daemon| fires(daemon, "each")[0].clone();
    // Eleven seconds: what is ten seconds late is missed.
    let away = Duration::from_secs(11);
    assert!(wait_until(away, || None::<()>).is_none());
    let daemon = Builder::at(&place).start();
    let missed = daemon.wait("a missed fire", || {
        let list = fires(&daemon, "each");
        list.into_iter().find(|fire| fire["skipped"]["code"] == "missed")
    });
    let told = daemon.cli(&[
        "schedule",
        "why",
        "each",
        "--at",
        missed["instant"].as_str().unwrap(),
    ]);
    let sentence = told.expect_status(0).stdout;
    assert!(
        sentence.contains("was missed: no daemon is known to have run then")
            && sentence.contains("onMissed is skip"),
        "{sentence}"
    );
    daemon.wait("fires go on", || {
        (newest(&daemon)["outcome"] == "run").then_some(())
    });
}

/// The autumn day of London, by the command that looks ahead: the two passes of an hour look different.
#[test]
fn c5_next_fires_show_the_offset() {
    let line = [
        "schedule",
        "next",
        "*/15 * * * *",
        "--zone",
        "Europe/London",
        "--from",
        "2026-10-25 00:50",
        "-n",
        "8",
        "--utc",
    ];
    let shown = super::support::ductor(&line).expect_status(0).stdout;
    for time in [
        "Sun 2026-10-25 01:15 +01:00  Sun 2026-10-25 00:15 UTC",
        "Sun 2026-10-25 01:15 +00:00  Sun 2026-10-25 01:15 UTC",
    ] {
        assert!(shown.contains(time), "{shown}");
    }
}
