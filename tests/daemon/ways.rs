//! What the tests of this binary ask again and again.

use serde_json::{Value, json};

use super::support::{Daemon, Place};

/// Starts a job and gives the answer's body.
pub(crate) fn start(daemon: &Daemon, job: &str) -> Value {
    let answer = daemon.post(&format!("/jobs/{job}/start"), &json!({}));
    assert!(matches!(answer.status, 200 | 202), "{answer:?}");
    answer.json()
}

/// The run's state now.
pub(crate) fn run_state(daemon: &Daemon, id: &str) -> String {
    run(daemon, id)["state"].as_str().unwrap_or_default().to_owned()
}

/// The run as the API shows it, with the attempts of its one step lifted up.
pub(crate) fn run(daemon: &Daemon, id: &str) -> Value {
    let answer = daemon.get(&format!("/api/runs/{id}")).expect_status(200);
    let mut shown = answer.json()["data"].clone();
    shown["attempts"] = shown["steps"][0]["attempts"].clone();
    shown
}

/// Waits until the run has ended; its last word.
pub(crate) fn ended(daemon: &Daemon, id: &str) -> Value {
    daemon.wait("the run's end", || {
        let run = run(daemon, id);
        let state = run["state"].as_str().unwrap_or_default();
        (!matches!(state, "pending" | "running")).then_some(run.clone())
    })
}

/// The id of the run in a start's answer.
pub(crate) fn run_id(answer: &Value) -> String {
    answer["runId"]
        .as_str()
        .expect("a start names its run")
        .to_owned()
}

/// One slot pool as the API shows it.
pub(crate) fn slots(daemon: &Daemon, name: &str) -> Value {
    daemon.get(&format!("/pools/{name}")).expect_status(200).json()
}

/// The entries of a slot pool in one state.
pub(crate) fn entries(daemon: &Daemon, name: &str, state: &str) -> Vec<Value> {
    let shown = slots(daemon, name);
    let all = shown["entries"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|entry| entry["state"] == state).collect()
}

/// Lines of a file in the place's folder; none if it is not there yet.
pub(crate) fn lines(place: &Place, name: &str) -> Vec<String> {
    place
        .read(name)
        .map(|text| text.lines().map(str::to_owned).collect())
        .unwrap_or_default()
}

/// True while a process of that number lives (not as a zombie).
pub(crate) fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// The folder of a place as text, for configurations.
pub(crate) fn folder(place: &Place) -> String {
    place.folder().display().to_string()
}
