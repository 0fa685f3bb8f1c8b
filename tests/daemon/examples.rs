//! Each folder of `config/examples/` is a configuration that works as it stands: it is checked, and one of its jobs is run,
//! in the foreground and by a daemon.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::support::{Answer, Answered, Builder, Daemon, Place, Receiver, command, ductor};
use super::ways::lines;

/// Folder, a job of it that succeeds, a line that it prints.
const EXAMPLES: [(&str, &str, &str); 8] = [
    ("api-fetchers", "prices", "prices fetched"),
    ("dst-report", "yesterday", "report of 20"),
    ("export", "vacuum", "vacuumed"),
    ("heavy-and-light", "reindex", "reindexing"),
    ("load-and-report", "arrive", "orders arrived"),
    (
        "migrated-crontab",
        "rotate",
        "rotated the logs of /srv/shop on 20",
    ),
    ("nightly-backup", "backup", "kept 1 files"),
    ("webhook-alerts", "sync", "synchronised"),
];

/// Those that route work instead of running jobs: `kept_bundles` runs them.
const ROUTED: [&str; 4] = ["lead-distribution", "model-routing", "on-call", "support-desk"];

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/config/examples"))
}

/// A copy, so that what its jobs write does not lie in the repository.
fn copy(name: &str) -> Place {
    let place = Place::new("jobs: []\n");
    for entry in fs::read_dir(folder().join(name)).unwrap() {
        let path = entry.unwrap().path();
        // What a trial by hand has left.
        if path.is_file() {
            fs::copy(&path, place.folder().join(path.file_name().unwrap())).unwrap();
        }
    }
    place
}

/// In another folder than the example's, as most people would: nothing may depend on where the command was typed.
fn from_elsewhere(arguments: &[&str]) -> Answered {
    let elsewhere = Place::new("");
    let output = command()
        .args(arguments)
        .current_dir(elsewhere.folder())
        .output()
        .expect("the binary");
    Answered {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn every_example_is_known_here_and_has_a_head() {
    let listed = fs::read_dir(folder()).unwrap();
    // The workers stand beside the folders; `bridge` runs them.
    let folders = listed.map(Result::unwrap).filter(|entry| entry.path().is_dir());
    let mut found: Vec<String> = folders
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    let mut known = [EXAMPLES.map(|(name, ..)| name).as_slice(), ROUTED.as_slice()].concat();
    known.sort_unstable();
    assert_eq!(found, known);
    let index = fs::read_to_string(folder().join("../README.md")).unwrap();
    for name in found {
        let text = fs::read_to_string(folder().join(&name).join("ductor.yaml")).unwrap();
        // The first line is for editors.
        let second = text.lines().nth(1).unwrap_or_default();
        assert!(second.starts_with("# "), "{name} does not say what it is");
        assert!(
            index.contains(&format!("`examples/{name}`")),
            "{name} is not in config/README.md"
        );
    }
}

/// Names of keys anywhere below a part of the schema.
fn keys(schema: &Value, found: &mut BTreeSet<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        found.extend(properties.keys().cloned());
    }
    match schema {
        Value::Object(fields) => fields.values().for_each(|part| keys(part, found)),
        Value::Array(items) => items.iter().for_each(|part| keys(part, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_reference_names_every_key() {
    let read = |name: &str| fs::read_to_string(folder().join("..").join(name)).unwrap();
    let mut known = BTreeSet::new();
    keys(
        &serde_json::from_str(&read("ductor.schema.json")).unwrap(),
        &mut known,
    );
    assert!(known.contains("onMissed") && known.len() > 80, "{known:?}");
    let reference = read("ductor.yaml");
    let words = reference.split(|mark: char| !mark.is_ascii_alphanumeric() && mark != '_');
    let named: BTreeSet<&str> = words.collect();
    // Other spellings of keys that are named.
    let missing: Vec<&String> = known
        .iter()
        .filter(|key| !named.contains(key.as_str()) && *key != "env_file" && !key.ends_with("Seconds"))
        .collect();
    assert!(missing.is_empty(), "config/ductor.yaml does not name {missing:?}");
    assert!(named.contains("startingDeadlineSeconds") && named.contains("cpuSeconds"));
}

#[test]
fn every_example_is_good() {
    for name in EXAMPLES.map(|(name, ..)| name).into_iter().chain(ROUTED) {
        let file = folder().join(name).join("ductor.yaml");
        let answered = from_elsewhere(&["check", file.to_str().unwrap()]);
        assert_eq!(answered.status, 0, "{name}: {answered:?}");
        // The one that is about the change of the clock.
        let warns = answered.stdout.contains("warning[");
        assert_eq!(warns, name == "dst-report", "{name}: {answered:?}");
    }
}

#[test]
fn a_job_of_every_example_runs_in_the_foreground() {
    for (name, job, printed) in EXAMPLES {
        let place = copy(name);
        let config = place.config();
        let answered = from_elsewhere(&["job", "run", job, "--config", config.to_str().unwrap()]);
        assert_eq!(answered.status, 0, "{name}: {answered:?}");
        assert!(answered.stdout.contains(printed), "{name}: {answered:?}");
    }
}

fn served(place: &Place, job: &str, status: i32) -> Daemon {
    let daemon = Builder::at(place).start();
    let answered = daemon.cli(&["job", "start", job, "--follow"]);
    assert_eq!(answered.status, status, "{job}: {answered:?}");
    daemon
}

#[test]
fn a_job_of_every_example_runs_under_a_daemon() {
    for (name, job, _) in EXAMPLES {
        let place = copy(name);
        // Nothing goes to an address that another program of this machine might have.
        let receiver = Receiver::new(Answer::Status(204));
        let text = place.read("ductor.yaml").unwrap();
        place.write_config(&text.replace("http://127.0.0.1:9", receiver.url("").trim_end_matches('/')));
        served(&place, job, 0);
    }
}

#[test]
fn the_backup_of_the_example_fails_when_it_does_not_read_back() {
    let place = copy("nightly-backup");
    drop(served(&place, "backup", 0));
    let latest = lines(&place, "backups/latest");
    let kept = format!("backups/{}/data/README", latest[0]);
    assert!(place.read(&kept).is_some(), "{latest:?}");
    place.write("backup.sh", &format!("echo spoilt > '{kept}'\n"));
    served(&place, "backup", 1);
}

#[test]
fn the_alert_of_the_example_arrives_signed() {
    let place = copy("webhook-alerts");
    let receiver = Receiver::new(Answer::Status(204));
    let text = place.read("ductor.yaml").unwrap();
    place.write_config(&text.replace("http://127.0.0.1:9", receiver.url("").trim_end_matches('/')));
    let daemon = served(&place, "broken", 1);
    let alert = daemon.wait("the alert", || {
        receiver.received().into_iter().find(|one| one.path == "/alerts")
    });
    assert!(alert.header("webhook-signature").starts_with("v1,"));
    assert_eq!(alert.json()["job"], "broken");
    daemon.wait("the line of the command", || {
        lines(&place, "failures.txt")
            .first()
            .filter(|line| line.contains("exit code 3"))
            .cloned()
    });
    daemon.wait("the ping", || {
        receiver.received().into_iter().find(|one| one.path == "/ping")
    });
}

#[test]
fn a_broken_example_would_be_found() {
    let place = copy("api-fetchers");
    let text = place.read("ductor.yaml").unwrap();
    place.write_config(&text.replace("maxQueued", "maxQeued"));
    let answered = ductor(&["check", place.config().to_str().unwrap()]);
    assert_eq!(answered.status, 2, "{answered:?}");
}
