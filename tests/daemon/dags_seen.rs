//! What people see of dags: they stand among the workflows, are drawn and started there, and tell how they end.

use serde_json::{Value, json};

use super::support::{Answer, Builder, Daemon, Place, Receiver};
use super::ways::{ended, folder, lines, run, run_id, start};

const DAG: &str = r#"pools: {p: {slots: 1, maxQueued: 4}}
jobs: [{name: a job, command: 'true'}]
dags:
  - name: nightly load
    schedule: '0 3 1 1 *'
    timezone: Europe/Berlin
    tasks:
      - {id: list, command: 'echo "{\"files\": [1, 2, 3]}" > "$DUCTOR_OUTPUT"'}
      - {id: load, command: 'true', dependsOn: [list], expand: {fromTask: list, key: files}, pool: p}
      - {id: mail, command: 'test -e FOLDER/good', dependsOn: [load]}
"#;

fn place() -> Place {
    let place = Place::new("jobs: []\n");
    place.write_config(&DAG.replace("FOLDER", &folder(&place)));
    place
}

fn data(daemon: &Daemon, path: &str) -> Value {
    daemon.get(path).expect_status(200).json()["data"].clone()
}

fn edit(place: &Place, from: &str, to: &str) {
    let text = DAG.replace("FOLDER", &folder(place)).replace(from, to);
    place.write_config(&text);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one life, looked at from all sides")]
fn a_dag_stands_among_the_workflows_and_only_its_file_changes_it() {
    let place = place();
    let daemon = Builder::at(&place).start();
    let listed = data(&daemon, "/api/workflows?include=recent");
    let seen = &listed[0];
    assert_eq!(
        listed.as_array().unwrap().len(),
        1,
        "a job is no workflow: {listed}"
    );
    assert_eq!(
        json!([
            seen["family_slug"],
            seen["source"],
            seen["current_version"],
            seen["schedule"],
            seen["recent"]
        ]),
        json!([
            "nightly load",
            "configuration",
            1,
            "0 3 1 1 * (Europe/Berlin)",
            []
        ])
    );
    let path = "/api/workflows/nightly%20load";
    let shown = data(&daemon, path);
    assert_eq!(shown["document"]["steps"][0]["ref"], "list", "{shown}");
    assert_eq!(shown["sha256"].as_str().unwrap().len(), 64);
    let graph = data(&daemon, &format!("{path}/graph"));
    let refs: Vec<&Value> = graph["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| &node["ref"])
        .collect();
    assert_eq!(refs, ["list", "load[]", "load", "mail"]);
    for (verb, body) in [
        ("publish", json!({})),
        ("validate", json!({})),
        ("deprecate", json!({"version": 1})),
    ] {
        let refused = daemon.post(&format!("{path}:{verb}"), &body).expect_status(409);
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.ends_with("change its file and reload"), "{verb}: {detail}");
    }
    edit(&place, "mail, command", "post, command");
    daemon.post("/api/config:reload", &json!({})).expect_status(200);
    let versions = data(&daemon, &format!("{path}/versions"));
    let numbers: Vec<&Value> = versions
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["version"])
        .collect();
    assert_eq!(numbers, [2, 1]);
    assert_eq!(
        data(&daemon, &format!("{path}/versions/1"))["document"]["steps"][2]["ref"],
        "mail"
    );
    assert_eq!(data(&daemon, path)["document"]["steps"][2]["ref"], "post");
    let diff = data(&daemon, &format!("{path}:diff?from=1&to=2"));
    assert_eq!(
        json!([diff["steps"]["added"], diff["steps"]["removed"]]),
        json!([["post"], ["mail"]])
    );
    let old = data(&daemon, &format!("{path}/graph?version=1"));
    assert_eq!(old["nodes"][3]["ref"], "mail");
    let texts = daemon.cli(&["workflow", "ls"]).expect_status(0).stdout;
    assert!(
        texts.contains("nightly load") && texts.contains("config"),
        "{texts}"
    );
}

#[test]
fn a_dag_is_started_drawn_and_tried_again_like_a_workflow() {
    let place = place();
    let daemon = Builder::at(&place).start();
    let path = "/api/workflows/nightly%20load/runs";
    let begun = daemon.post(path, &json!({})).expect_status(201).json()["data"].clone();
    let id = begun["id"].as_str().unwrap().to_owned();
    assert_eq!(ended(&daemon, &id)["state"], "failed");
    let refused = daemon
        .post(path, &json!({"input": {"a": 1}}))
        .expect_status(422)
        .json();
    assert_eq!(
        refused["errors"][0]["detail"],
        "a dag of the configuration takes no input"
    );
    daemon.post(path, &json!({"version": 7})).expect_status(409);
    let drawn = daemon.cli(&["run", "graph", &id]).expect_status(0).stdout;
    assert_eq!(
        drawn,
        "✓     list  succeeded\n\
         ✓     load  succeeded  3 of 3 done\n\
         │ ┆ ✓ load  succeeded  3 of 3 done\n\
         ✗     mail  failed\n"
    );
    place.write("good", "");
    let preview = daemon.post(
        "/api/runs:retry_matching",
        &json!({"filter": "job:\"nightly load\"", "preview": true}),
    );
    assert_eq!(preview.expect_status(200).json()["data"]["retry_failed"], 1);
    let retried = daemon.cli(&[
        "--json",
        "run",
        "retry",
        "--where",
        "job:\"nightly load\"",
        "--yes",
    ]);
    let done = retried.expect_status(0).json()["data"].clone();
    let again = done["begun"][0]["id"].as_str().unwrap().to_owned();
    let shown = ended(&daemon, &again);
    assert_eq!(
        json!([shown["state"], shown["rerun_of"]]),
        json!(["succeeded", id])
    );
    let rerun = daemon
        .post(&format!("/api/runs/{id}:rerun"), &json!({}))
        .expect_status(201)
        .json();
    let rerun = rerun["data"]["id"].as_str().unwrap().to_owned();
    assert_eq!(ended(&daemon, &rerun)["state"], "succeeded");
    let seen = data(&daemon, "/api/workflows?include=recent")[0]["recent"].clone();
    let states: Vec<&Value> = seen.as_array().unwrap().iter().map(|run| &run["state"]).collect();
    assert_eq!(states, ["succeeded", "succeeded", "failed"]);
    edit(&place, "schedule: '0 3 1 1 *'", "enabled: false");
    daemon.post("/api/config:reload", &json!({})).expect_status(200);
    let refused = daemon.post(path, &json!({})).expect_status(409).json();
    assert_eq!(refused["detail"], "dag 'nightly load' is disabled");
    place.write_config("jobs: []\n");
    daemon.post("/api/config:reload", &json!({})).expect_status(200);
    daemon.post(path, &json!({})).expect_status(404);
}

#[test]
fn a_dag_tells_what_failed_and_how_its_run_ended() {
    let receiver = Receiver::new(Answer::Status(200));
    let place = Place::new("jobs: []\n");
    let text = r"dags:
  - name: d
    onFailure: {report: {webhook: {url: HOOK}}}
    onPermanentFailure: {report: {shell: {command: 'echo $DUCTOR_REPORT_JOB $DUCTOR_REPORT_OUTCOME $DUCTOR_REPORT_EXIT_CODE >> FOLDER/told'}}}
    onSuccess: {report: {shell: {command: 'echo $DUCTOR_REPORT_JOB $DUCTOR_REPORT_OUTCOME >> FOLDER/told'}}}
    tasks:
      - {id: one, command: 'test -e FOLDER/good || exit 3', retries: 2}
      - {id: two, command: 'true', dependsOn: [one]}
";
    place.write_config(
        &text
            .replace("FOLDER", &folder(&place))
            .replace("HOOK", &receiver.url("hook")),
    );
    let daemon = Builder::at(&place).start();
    let id = run_id(&start(&daemon, "d"));
    assert_eq!(ended(&daemon, &id)["state"], "failed");
    let told: Vec<Value> = receiver
        .wait(3)
        .iter()
        .map(super::support::Received::json)
        .collect();
    let seen = |told: &Value| {
        json!([
            told["type"],
            told["run_id"],
            told["outcome"],
            told["exit_code"],
            told["reason"]
        ])
    };
    let of_attempt = json!(["job.attempt.failed", id, "failed", 3, "task 'one': exit code 3"]);
    assert!(told.iter().all(|told| seen(told) == of_attempt), "{told:?}");
    let mut numbers: Vec<i64> = told.iter().filter_map(|told| told["attempt"].as_i64()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3], "one for each attempt that failed");
    daemon.wait("all reports to be delivered", || {
        let reports = run(&daemon, &id)["reports"].as_array()?.clone();
        let all = reports.iter().all(|report| report["state"] == "delivered");
        (all && reports.len() == 4).then_some(())
    });
    place.write("good", "");
    let id = run_id(&start(&daemon, "d"));
    daemon.wait("the report of the success", || {
        (run(&daemon, &id)["reports"][0]["state"] == "delivered").then_some(())
    });
    assert_eq!(lines(&place, "told"), ["d failed 3", "d succeeded"]);
    assert_eq!(receiver.received().len(), 3);
}
