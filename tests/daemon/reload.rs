//! Reload: the old configuration or the new one, never a bit of both; and everybody is told which.

use serde_json::{Value, json};

use super::support::{Builder, Daemon, Place, Response};
use super::ways::{ended, entries, run_id, slots, start};

const GOOD: &str = concat!(
    "shutdown: {drainTimeout: 0.1}\n",
    "pools:\n  p:\n    slots: 1\n    maxQueued: 10\n",
    "jobs:\n",
    "  - {name: held, pool: p, command: 'sleep 60', killTimeout: 1}\n",
    "  - {name: plain, command: 'echo one'}\n",
);

fn reload(daemon: &Daemon) -> Response {
    daemon.request("POST", "/api/config:reload", &[], b"")
}

fn reloaded(daemon: &Daemon) -> Value {
    reload(daemon).expect_status(200).json()["data"].clone()
}

/// The value of a metric without labels, or with them written out.
fn metric(daemon: &Daemon, name: &str) -> String {
    let text = daemon.get("/metrics").expect_status(200).text();
    let found = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {name} in\n{text}")).to_owned()
}

fn log_of(daemon: &Daemon, run: &str) -> String {
    let path = format!("/api/runs/{run}/steps/main/attempts/1/log");
    daemon.get(&path).expect_status(200).text()
}

fn configuration(daemon: &Daemon) -> Value {
    daemon.get("/api/status").expect_status(200).json()["data"]["configuration"].clone()
}

/// Test 5 of the specification.
#[test]
fn reload_broken_keeps_old() {
    let place = Place::new(GOOD);
    let mut daemon = Builder::at(&place).start();
    start(&daemon, "held");
    let waiting = start(&daemon, "held");
    place.write_config(
        &GOOD
            .replace("maxQueued", "maxQeued")
            .replace("echo one", "echo two"),
    );
    daemon.signal("HUP");
    daemon.wait_log("was not reloaded");
    let status = daemon.wait("the banner", || {
        let shown = configuration(&daemon);
        shown["rejected"].is_object().then_some(shown)
    });
    let error = &status["rejected"]["errors"][0];
    assert_eq!(error["code"], "config/unknown-key", "{status}");
    assert_eq!(error["pointer"], "ductor.yaml:5:5", "{status}");
    assert_eq!(error["help"], "did you mean `maxQueued`?", "{status}");
    assert_eq!(metric(&daemon, "ductor_config_reload_failed"), "1");
    let run = run_id(&start(&daemon, "plain"));
    assert_eq!(ended(&daemon, &run)["state"], "succeeded");
    assert!(log_of(&daemon, &run).contains("one"), "the old job goes on");
    let queued = entries(&daemon, "p", "queued");
    assert_eq!(queued.len(), 1, "no entry is cancelled");
    assert_eq!(queued[0]["id"], waiting["queueId"]);
    assert_eq!(daemon.get("/readyz").status, 200, "it works on");
    // What looks at the store after the end reads the file too.
    place.write_config(GOOD);
}

#[test]
fn f1_the_silent_reload() {
    let place = Place::new(GOOD);
    let mut daemon = Builder::at(&place).start();
    assert_eq!(metric(&daemon, "ductor_config_reload_failed"), "0");
    start(&daemon, "held");
    start(&daemon, "held");
    place.write_config(&GOOD.replace("maxQueued", "maxQeued"));
    let refused = reload(&daemon).expect_status(422);
    let problem = refused.json();
    assert_eq!(problem["code"], "INVALID_ARGUMENT", "{problem}");
    assert_eq!(problem["errors"][0]["line"], 5, "{problem}");
    let rendered = problem["rendered"].as_str().unwrap();
    for part in [
        "error[config/unknown-key]: unknown key `maxQeued` in a slot pool",
        "ductor.yaml:5:5",
        "^^^^^^^^ did you mean `maxQueued`?",
    ] {
        assert!(rendered.contains(part), "{rendered}");
    }
    let folder = place.folder().display().to_string();
    assert!(
        !refused.text().contains(&folder),
        "no path of the machine: {problem}"
    );
    let told = daemon.cli(&["config", "reload"]).expect_status(2);
    assert!(told.stderr.contains("did you mean `maxQueued`?"), "{told:?}");
    assert!(
        told.stderr
            .ends_with("error: the configuration is not good; the running one stays in force\n")
    );
    let log = daemon.wait_log("ductor.yaml:5:5");
    assert!(
        log.contains(&folder),
        "the log is for whoever looks after the machine: {log}"
    );
    assert_eq!(metric(&daemon, "ductor_config_reload_failed"), "1");
    assert_eq!(
        metric(&daemon, "ductor_config_reloads_total{result=\"rejected\"}"),
        "2"
    );
    let first = configuration(&daemon)["rejected"].clone();
    assert!(first["since"].as_str() <= first["at"].as_str(), "{first}");
    let status = daemon.cli(&["status"]).expect_status(0);
    assert!(
        status.stdout.contains("The last reload was rejected (1 fault)"),
        "{status:?}"
    );
    assert_eq!(
        entries(&daemon, "p", "queued").len(),
        1,
        "waiting entries survive"
    );

    place.write_config(&GOOD.replace("maxQueued: 10", "maxQueued: 20"));
    let told = daemon.cli(&["config", "reload"]).expect_status(0);
    assert_eq!(told.stdout, "~ pool p: maxQueued\n");
    assert_eq!(metric(&daemon, "ductor_config_reload_failed"), "0");
    assert_eq!(
        metric(&daemon, "ductor_config_reloads_total{result=\"applied\"}"),
        "1"
    );
    assert!(configuration(&daemon)["rejected"].is_null());
    assert_eq!(slots(&daemon, "p")["maxQueued"], 20);
    assert_eq!(entries(&daemon, "p", "queued").len(), 1, "its job did not change");
    assert_eq!(
        daemon.cli(&["config", "reload"]).expect_status(0).stdout,
        "Nothing changed.\n"
    );
    // The same by the signal: the log says what changed.
    place.write_config(GOOD);
    daemon.signal("HUP");
    daemon.wait_log("configuration reloaded: pools changed: p");
}

#[test]
fn reload_swaps_jobs_and_cancels_what_waits_for_old_ones() {
    const FOUR: &str = concat!(
        "  - {name: changes, pool: p, command: 'echo one'}\n",
        "  - {name: goes, pool: p, command: 'true'}\n",
        "  - {name: stops, pool: p, command: 'true'}\n",
        "  - {name: stays, pool: p, command: 'true', schedule: '@daily'}\n",
    );
    let place = Place::new(&format!("{GOOD}{FOUR}"));
    let daemon = Builder::at(&place).start();
    let running = run_id(&start(&daemon, "held"));
    daemon.wait("it holds the slot", || {
        (entries(&daemon, "p", "running").len() == 1).then_some(())
    });
    let waiting: Vec<String> = ["stays", "changes", "goes", "stops"]
        .map(|job| run_id(&start(&daemon, job)))
        .to_vec();
    let next = daemon.get("/jobs/stays").json()["schedule"]["next"].clone();
    place.write_config(
        &format!("{GOOD}{FOUR}  - {{name: new, command: 'echo two'}}\n")
            .replace(
                "{name: changes, pool: p, command: 'echo one'}",
                "{name: changes, command: 'echo two'}",
            )
            .replace("  - {name: goes, pool: p, command: 'true'}\n", "")
            .replace("{name: stops, pool: p,", "{name: stops, enabled: false, pool: p,")
            .replace("command: 'sleep 60'", "command: 'sleep 61'"),
    );
    let answer = reloaded(&daemon);
    let expected = json!({
        "added": ["new"], "removed": ["goes"],
        "changed": [
            {"name": "changes", "keys": ["command", "pool", "poolSlots", "queuePriority", "queueTimeout"]},
            {"name": "held", "keys": ["command"]},
            {"name": "stops", "keys": ["enabled"]},
        ],
    });
    assert_eq!(answer["jobs"], expected, "{answer}");
    assert_eq!(answer["cancelled_entries"], 3, "{answer}");
    for run in &waiting[1..] {
        let ended = ended(&daemon, run);
        assert_eq!(ended["state"], "skipped", "{ended}");
        assert_eq!(
            ended["reason"], "job removed, disabled, or configuration changed",
            "{ended}"
        );
    }
    let queued = entries(&daemon, "p", "queued");
    assert_eq!(queued.len(), 1, "{queued:?}");
    assert_eq!(
        queued[0]["runId"],
        json!(waiting[0]),
        "what did not change waits on"
    );
    assert_eq!(
        daemon.get(&format!("/api/runs/{running}")).json()["data"]["state"],
        "running",
        "what runs runs on"
    );
    assert_eq!(daemon.get("/jobs/goes").status, 404);
    assert_eq!(daemon.post("/jobs/stops/start", &json!({})).status, 409);
    assert_eq!(daemon.get("/jobs/stays").json()["schedule"]["next"], next);
    for job in ["changes", "new"] {
        let run = run_id(&start(&daemon, job));
        assert_eq!(ended(&daemon, &run)["state"], "succeeded");
        assert!(log_of(&daemon, &run).contains("two"), "{job}");
    }
}

#[test]
fn a_changed_number_of_slots_starts_the_drain() {
    let place = Place::new(GOOD);
    let daemon = Builder::at(&place).start();
    let run = run_id(&start(&daemon, "held"));
    daemon.wait("it holds the slot", || {
        (entries(&daemon, "p", "running").len() == 1).then_some(())
    });
    place.write_config(&GOOD.replace("slots: 1", "slots: 3"));
    let answer = reloaded(&daemon);
    assert_eq!(
        answer["pools"]["changed"],
        json!([{"name": "p", "keys": ["slots"]}]),
        "{answer}"
    );
    let pool = slots(&daemon, "p");
    assert_eq!(
        (&pool["slots"], &pool["configuredSlots"]),
        (&json!(1), &json!(3)),
        "{pool}"
    );
    let refused = daemon.post("/jobs/held/start", &json!({}));
    assert_eq!(refused.status, 409);
    assert_eq!(
        refused.json()["error"],
        "pool is draining before a capacity change"
    );
    daemon.post(&format!("/api/runs/{run}:cancel"), &json!({}));
    daemon.wait("the new number is in force", || {
        (slots(&daemon, "p")["slots"] == 3).then_some(())
    });
    assert_eq!(daemon.post("/jobs/held/start", &json!({})).status, 202);
}

#[test]
fn what_needs_a_restart_is_named_and_stays() {
    let place = Place::new(GOOD);
    let daemon = Builder::at(&place).args(&["--node", "first"]).start();
    // `--node` and `--listen` lie over the file: what the file says of them cannot matter, now or later.
    place.write_config(&format!(
        "{GOOD}node: {{name: second}}\nstate: {{cacheBytes: 1MiB, lowDiskBytes: 0}}\nretention: {{runs: 7}}\nlogging: {{level: debug}}\n"
    ));
    let answer = reloaded(&daemon);
    let cache = json!([{"key": "state.cacheBytes", "from": 16 << 20, "to": 1 << 20}]);
    assert_eq!(answer["needs_restart"], cache, "{answer}");
    let keys: Vec<&str> = answer["settings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|setting| setting["key"].as_str().unwrap())
        .collect();
    assert_eq!(
        keys,
        ["logging.level", "retention.runs", "state.lowDiskBytes"],
        "{answer}"
    );
    assert_eq!(configuration(&daemon)["needs_restart"], cache);
    let config = daemon.get("/api/config").json()["data"].clone();
    assert_eq!(config["state"]["cacheBytes"], 16 << 20, "{config}");
    assert_eq!(config["retention"]["runs"], 7, "{config}");
    assert_eq!(daemon.get("/api/nodes").json()["data"][0]["name"], "first");
    // Lines of the level that came with the reload.
    daemon.get("/version");
    daemon.wait_log("answered");
}

#[test]
fn two_reloads_never_overlap() {
    let place = Place::new(GOOD);
    let daemon = Builder::at(&place).start();
    place.write_config(&format!("{GOOD}  - {{name: new, command: 'true'}}\n"));
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(|| reloaded(&daemon))).collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let added = answers
        .iter()
        .filter(|answer| answer["jobs"]["added"] == json!(["new"]));
    assert_eq!(
        added.count(),
        1,
        "one of them did it, the others found it done: {answers:?}"
    );
    assert_eq!(
        metric(&daemon, "ductor_config_reloads_total{result=\"applied\"}"),
        "4"
    );
}

/// Entries that began to wait under a definition that changed while no daemon was there.
#[test]
fn a_start_with_another_file_cancels_what_waits_for_old_jobs() {
    let place = Place::new(GOOD);
    let mut daemon = Builder::at(&place).start();
    start(&daemon, "held");
    daemon.wait("it holds the slot", || {
        (entries(&daemon, "p", "running").len() == 1).then_some(())
    });
    let waiting = run_id(&start(&daemon, "held"));
    daemon.kill9();
    place.write_config(&GOOD.replace("sleep 60", "sleep 61"));
    let daemon = Builder::at(&place).start();
    let shown = ended(&daemon, &waiting);
    assert_eq!(shown["state"], "skipped", "{shown}");
}
