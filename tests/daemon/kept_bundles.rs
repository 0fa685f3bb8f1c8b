//! Bundles that a daemon keeps in force, with the real binary: the examples route work, a file that changes is applied, a signal
//! puts back what was changed by hand, and a bad file is no reason to stop.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::support::{Builder, Daemon, Place, ductor};

/// Folder, its bundle, work, what becomes of it, and where.
const EXAMPLES: [(&str, &str, &str, &str, &[&str]); 5] = [
    (
        "lead-distribution",
        "leads",
        "lead.json",
        "assigned",
        &["exclusive"],
    ),
    (
        "lead-distribution",
        "leads",
        "weak.json",
        "queued_for_claim",
        &["lead-pond"],
    ),
    ("model-routing", "models", "request.json", "assigned", &["models"]),
    ("on-call", "on-call", "alert.json", "", &["offices", "pager"]),
    (
        "support-desk",
        "support-desk",
        "ticket.json",
        "assigned",
        &["billing-desk", "general-desk"],
    ),
];

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/config/examples"))
}

fn copy(name: &str) -> Place {
    let place = Place::new("jobs: []\n");
    for entry in fs::read_dir(folder().join(name)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, place.folder().join(path.file_name().unwrap())).unwrap();
        }
    }
    place
}

fn standing(daemon: &Daemon) -> Value {
    let all = daemon.get("/api/routing/bundles").expect_status(200).json();
    all["data"][0].clone()
}

fn until(daemon: &Daemon, status: &str) -> Value {
    daemon.wait(status, || {
        Some(standing(daemon)).filter(|one| one["status"] == status)
    })
}

#[test]
fn every_example_of_routing_is_good_and_routes_its_work() {
    for (name, bundle, work, outcome, pools) in EXAMPLES {
        let place = copy(name);
        let checked = ductor(&["check", place.config().to_str().unwrap()]).expect_status(0);
        assert!(checked.stdout.contains("1 bundle"), "{name}: {checked:?}");
        let daemon = Builder::at(&place).start();
        assert_eq!(until(&daemon, "synced")["name"], bundle);
        let input = place.folder().join(work);
        let input = input.to_str().unwrap();
        let tried = daemon.cli(&["route", "test", "--input", input, "--json"]);
        let decided = daemon.cli(&["route", "decide", "--input", input, "--json"]);
        for answered in [tried, decided] {
            let data = answered.json()["data"].clone();
            let pool = data["pool"]["name"].as_str().unwrap_or_default();
            assert!(pools.contains(&pool), "{name}: {data}");
            // Who is on call now, and whether somebody is, the calendar says.
            assert!(outcome.is_empty() || data["outcome"] == outcome, "{name}: {data}");
        }
    }
}

const DESK: &str = "\
apiVersion: ductor.io/v1
kind: RoutingBundle
metadata: { name: desk }
pools:
  - { name: front, config: { fallback: queue, queue_ttl_seconds: 600 } }
";

fn ttl(daemon: &Daemon) -> Value {
    let pools = daemon.get("/api/pools").expect_status(200).json();
    pools["data"][0]["config"]["queue_ttl_seconds"].clone()
}

#[test]
fn a_bundle_follows_its_file_and_its_daemon_through_a_restart() {
    let place = Place::new("routing: {bundles: [desk.yaml]}\n");
    place.write("desk.yaml", DESK);
    let mut daemon = Builder::at(&place).start();
    until(&daemon, "synced");
    assert_eq!(ttl(&daemon), 600);
    place.write("desk.yaml", &DESK.replace("600", "700"));
    daemon.wait("the changed file", || (ttl(&daemon) == 700).then_some(()));
    // By hand, seen, and put back by a signal.
    let pools = daemon.get("/api/pools").expect_status(200).json();
    let id = pools["data"][0]["id"].as_str().unwrap().to_owned();
    let by_hand = json!({"config": {"queue_ttl_seconds": 5}});
    daemon
        .send_json("PATCH", &format!("/api/pools/{id}"), &by_hand)
        .expect_status(200);
    until(&daemon, "drifted");
    let told = daemon.cli(&["bundle", "status"]).expect_status(1);
    assert!(
        told.stdout.contains("/config/queue_ttl_seconds: 5 -> 700"),
        "{told:?}"
    );
    daemon.signal("HUP");
    until(&daemon, "synced");
    assert_eq!(ttl(&daemon), 700);
    // A bad file is told with its place; the last good one stays, also over a restart.
    place.write("desk.yaml", &DESK.replace("fallback", "fallbak"));
    let failed = until(&daemon, "failed");
    assert_eq!(
        (&failed["errors"][0]["line"], &failed["errors"][0]["column"]),
        (&json!(5), &json!(30)),
        "{failed}"
    );
    let daemon = daemon.restart();
    until(&daemon, "failed");
    assert_eq!(ttl(&daemon), 700);
    let told = daemon.cli(&["bundle", "status"]).expect_status(1);
    assert!(told.stdout.contains("desk.yaml:5:30: field.unknown"), "{told:?}");
    let checked = ductor(&["check", place.config().to_str().unwrap()]).expect_status(2);
    assert!(checked.stdout.contains("desk.yaml:5:30"), "{checked:?}");
}
