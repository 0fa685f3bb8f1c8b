//! Dags of the configuration on the real binary: order, retries, sensors, approvals, and how tasks stand in slot pools.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::support::{Builder, Daemon, Place};
use super::ways::{ended, entries, folder, lines, run, run_id, run_state, slots, start};

fn place_with(text: &str) -> Place {
    let place = Place::new("jobs: []\n");
    place.write_config(&text.replace("FOLDER", &folder(&place)));
    place
}

/// A daemon whose pool `p` of one slot is full; the run that fills it, and what else the configuration says of the pool.
fn with_full_pool(pool: &str, rest: &str) -> (Place, Daemon, String) {
    let place = place_with(&format!(
        "shutdown: {{drainTimeout: 0}}\ndefaults: {{killTimeout: 0}}\npools: {{p: {{slots: 1{pool}}}}}\n\
         jobs:\n  - {{name: holder, pool: p, command: 'sleep 60'}}\ndags:\n{rest}"
    ));
    let daemon = Builder::at(&place).start();
    let holder = run_id(&start(&daemon, "holder"));
    wait_full(&daemon);
    (place, daemon, holder)
}

fn wait_full(daemon: &Daemon) {
    daemon.wait("the pool to be full", || {
        (slots(daemon, "p")["used"] == 1).then_some(())
    });
}

/// The states of a run's steps.
fn steps(shown: &Value) -> BTreeMap<String, String> {
    let steps = shown["steps"].as_array().cloned().unwrap_or_default();
    let text = |step: &Value, member: &str| step[member].as_str().unwrap_or_default().to_owned();
    steps
        .iter()
        .map(|step| (text(step, "ref"), text(step, "state")))
        .collect()
}

fn state_of(daemon: &Daemon, id: &str, step: &str) -> String {
    steps(&run(daemon, id)).remove(step).unwrap_or_default()
}

fn attempts(shown: &Value, step: &str) -> Vec<Value> {
    let steps = shown["steps"].as_array().cloned().unwrap_or_default();
    let found = steps.iter().find(|known| known["ref"] == step);
    found
        .and_then(|found| found["attempts"].as_array().cloned())
        .unwrap_or_default()
}

fn wait_for(daemon: &Daemon, id: &str, step: &str, state: &str) {
    daemon.wait(&format!("step {step} to be {state}"), || {
        (state_of(daemon, id, step) == state).then_some(())
    });
}

fn decide(daemon: &Daemon, id: &str, step: &str, verb: &str) {
    let path = format!("/api/checkpoints/{id}:{step}:{verb}");
    daemon.post(&path, &json!({"note": "seen"})).expect_status(202);
}

#[test]
fn tasks_run_in_their_order_and_what_failed_stops_only_what_needs_it() {
    let place = place_with(concat!(
        "dags:\n  - name: load\n    tasks:\n",
        "      - {id: a, command: 'echo a $DUCTOR_DAG $DUCTOR_TASK >> FOLDER/marks'}\n",
        "      - {id: b, command: 'echo b >> FOLDER/marks', dependsOn: [a]}\n",
        "      - {id: bad, command: 'exit 3', dependsOn: [a]}\n",
        "      - {id: never, command: 'echo never >> FOLDER/marks', dependsOn: [b, bad]}\n",
        "      - {id: nor this, command: 'echo never >> FOLDER/marks', dependsOn: [never]}\n",
        "      - {id: last, command: 'echo last >> FOLDER/marks', dependsOn: [nor this, b], triggerRule: all_done}\n",
    ));
    let daemon = Builder::at(&place).start();
    let shown = ended(&daemon, &run_id(&start(&daemon, "load")));
    assert_eq!(shown["state"], "failed", "{shown}");
    let found = steps(&shown);
    let expected = [
        ("a", "succeeded"),
        ("b", "succeeded"),
        ("bad", "failed"),
        ("last", "succeeded"),
        ("never", "upstream_failed"),
        ("nor this", "upstream_failed"),
    ];
    for (step, state) in expected {
        assert_eq!(found[step], state, "{step}: {shown}");
    }
    assert_eq!(lines(&place, "marks"), ["a load a", "b", "last"]);
}

#[test]
fn a_task_is_tried_again_by_its_own_rule_and_inherits_launch_keys_only() {
    let place = place_with(concat!(
        "defaults: {environment: {WHO: me}, onFailure: {retry: {maximumRetries: 9}}}\n",
        "dags:\n  - name: d\n    tasks:\n",
        "      - {id: flaky, command: 'echo $WHO $DUCTOR_ATTEMPT >> FOLDER/marks; test $DUCTOR_ATTEMPT -ge 3', retries: 2}\n",
        "      - {id: hopeless, command: 'exit 1', retries: 1, retryDelaySeconds: 0.1}\n",
        "      - {id: once, command: 'exit 1'}\n",
    ));
    let daemon = Builder::at(&place).start();
    let shown = ended(&daemon, &run_id(&start(&daemon, "d")));
    assert_eq!(lines(&place, "marks"), ["me 1", "me 2", "me 3"]);
    let counts = ["flaky", "hopeless", "once"].map(|step| attempts(&shown, step).len());
    assert_eq!(counts, [3, 2, 1], "{shown}");
    assert_eq!(steps(&shown)["flaky"], "succeeded");
}

/// A schedule fires a dag as it fires a job, once over all daemons, and a killed daemon's run goes on.
#[test]
fn a_dag_is_fired_and_goes_on_after_a_kill() {
    let place = place_with(concat!(
        "dags:\n  - name: d\n    schedule: '@every 1h'\n    tasks:\n",
        "      - {id: first, command: 'echo first >> FOLDER/marks'}\n",
        "      - {id: slow, command: 'echo slow >> FOLDER/marks; test -e FOLDER/go', dependsOn: [first], retries: 1000, retryDelaySeconds: 0.2}\n",
        "      - {id: last, command: 'echo last >> FOLDER/marks', dependsOn: [slow]}\n",
        "  - name: ticking\n    schedule: '@every 1s'\n    retainRuns: 3\n    tasks: [{id: t, command: 'true'}]\n",
    ));
    let mut daemon = Builder::at(&place).start();
    let id = run_id(&start(&daemon, "d"));
    daemon.wait("the second task", || {
        lines(&place, "marks").contains(&"slow".to_owned()).then_some(())
    });
    daemon.kill9();
    place.write("go", "");
    let daemon = daemon.restart();
    assert_eq!(ended(&daemon, &id)["state"], "succeeded");
    let marks = lines(&place, "marks");
    assert_eq!(
        (marks.first().unwrap().as_str(), marks.last().unwrap().as_str()),
        ("first", "last")
    );
    assert_eq!(marks.iter().filter(|mark| *mark == "first").count(), 1);
    daemon.wait("a run that a fire began", || {
        let shown = daemon.get("/api/runs?job=ticking").json();
        let found = shown["data"]
            .as_array()?
            .iter()
            .find(|run| run["state"] == "succeeded")?;
        (found["trigger"]["kind"] == "schedule").then_some(())
    });
    // A dag is no job: lists of jobs do not show it.
    assert_eq!(daemon.get("/jobs").json(), json!([]));
}

/// Case P5, and test 74: sensors hold slots only while they ask.
#[test]
fn p5_sensors_fill_no_pool_and_sensor_holds_slots_per_poke() {
    let sensor = "{id: sN, type: sensor, command: 'test -e FOLDER/flag', pokeIntervalSeconds: 1, pool: p}";
    let sensors: Vec<String> = (1..=3)
        .map(|number| format!("      - {}\n", sensor.replace('N', &number.to_string())))
        .collect();
    let place = place_with(&format!(
        "pools: {{p: {{slots: 2}}}}\ndags:\n  - name: d\n    tasks:\n{}      \
         - {{id: touch, command: 'sleep 1; touch FOLDER/flag', pool: p}}\n",
        sensors.concat()
    ));
    let daemon = Builder::at(&place).start();
    let id = run_id(&start(&daemon, "d"));
    daemon.wait("nothing to hold slots between pokes", || {
        let waits = (1..=3).all(|number| state_of(&daemon, &id, &format!("s{number}")) == "waiting");
        let used = slots(&daemon, "p")["used"].as_u64()?;
        (waits && used <= 1).then_some(())
    });
    let shown = ended(&daemon, &id);
    assert_eq!(shown["state"], "succeeded", "{shown}");
    assert_eq!(slots(&daemon, "p")["used"], 0);
    // A poke that was not met is no attempt.
    assert_eq!(attempts(&shown, "s1").len(), 1, "{shown}");
    let closed = entries(&daemon, "p", "finished");
    assert!(closed.iter().any(|entry| entry["kind"] == "poke"), "{closed:?}");
    let task = closed.iter().find(|entry| entry["kind"] == "task").unwrap();
    assert_eq!(
        (&task["job"], &task["dag"], &task["task"]),
        (&json!("d.touch"), &json!("d"), &json!("touch"))
    );
}

#[test]
fn a_sensor_that_is_never_met_fails() {
    let place = place_with(concat!(
        "dags:\n  - name: d\n    tasks:\n",
        "      - {id: s, type: sensor, command: 'echo p >> FOLDER/marks; exit 1', pokeIntervalSeconds: 0.1, pokeTimeoutSeconds: 1}\n",
        "      - {id: t, command: 'true', dependsOn: [s]}\n",
    ));
    let daemon = Builder::at(&place).start();
    let shown = ended(&daemon, &run_id(&start(&daemon, "d")));
    assert_eq!(shown["state"], "failed", "{shown}");
    assert_eq!(steps(&shown)["t"], "upstream_failed");
    assert!(lines(&place, "marks").len() > 1, "it is asked more than once");
}

/// Test 27.
#[test]
fn approval_takes_no_slots() {
    let dag = concat!(
        "  - name: d\n    tasks:\n",
        "      - {id: ok, type: approval}\n",
        "      - {id: maybe, type: approval, onReject: skip}\n",
        "      - {id: no, type: approval}\n",
        "      - {id: after, command: 'true', dependsOn: [ok]}\n",
        "      - {id: skipped, command: 'true', dependsOn: [maybe]}\n",
    );
    let (_place, daemon, holder) = with_full_pool("", dag);
    let id = run_id(&start(&daemon, "d"));
    for step in ["ok", "maybe", "no"] {
        wait_for(&daemon, &id, step, "waiting");
    }
    assert_eq!(slots(&daemon, "p")["queued"], 0);
    decide(&daemon, &id, "ok", "approve");
    decide(&daemon, &id, "maybe", "reject");
    decide(&daemon, &id, "no", "reject");
    let shown = ended(&daemon, &id);
    let found = steps(&shown);
    let states = ["ok", "after", "maybe", "skipped", "no"].map(|step| found[step].as_str());
    assert_eq!(
        states,
        ["succeeded", "succeeded", "skipped", "skipped", "failed"],
        "{shown}"
    );
    assert_eq!(run_state(&daemon, &holder), "running");
}

/// Test 71.
#[test]
fn task_expiry_is_task_failure() {
    let dags = concat!(
        "  - name: d\n    tasks:\n",
        "      - {id: t, command: 'true', pool: p, queueTimeout: 0.3, retries: 1}\n",
        "      - {id: after, command: 'true', dependsOn: [t], triggerRule: all_done}\n",
        "  - name: cancelled\n    tasks: [{id: t, command: 'true', pool: p}]\n",
    );
    let (_place, daemon, _) = with_full_pool(", maxQueued: 1", dags);
    let shown = ended(&daemon, &run_id(&start(&daemon, "d")));
    assert_eq!(shown["state"], "failed", "{shown}");
    assert!(
        shown["reason"]
            .as_str()
            .unwrap_or_default()
            .contains("queue timeout"),
        "{shown}"
    );
    assert_eq!(steps(&shown)["after"], "succeeded");
    // It asked twice, and no process was ever started for it.
    assert_eq!(entries(&daemon, "p", "expired").len(), 2);
    assert_eq!(attempts(&shown, "t").len(), 0, "{shown}");
    // Both decisions have been folded: the one place in the queue is free.
    let id = run_id(&start(&daemon, "cancelled"));
    wait_for(&daemon, &id, "t", "queued");
    let waiting = entries(&daemon, "p", "queued");
    let path = format!("/pools/p/queue/{}/cancel", waiting[0]["id"].as_str().unwrap());
    daemon.post(&path, &json!({})).expect_status(200);
    let shown = ended(&daemon, &id);
    assert_eq!(shown["state"], "failed", "{shown}");
    assert!(
        shown["reason"]
            .as_str()
            .unwrap_or_default()
            .contains("cancelled by operator"),
        "{shown}"
    );
}

/// Test 72.
#[test]
fn ended_run_retires_entries() {
    let dags = "  - name: d\n    tasks: [{id: t, command: 'true', pool: p}]\n";
    let (_place, daemon, _) = with_full_pool(", maxQueued: 1", dags);
    for _ in 0..2 {
        // The second one finds the place of the first one free.
        let id = run_id(&start(&daemon, "d"));
        wait_for(&daemon, &id, "t", "queued");
        daemon.post(&format!("/api/runs/{id}:cancel"), &json!({}));
        assert_eq!(ended(&daemon, &id)["state"], "cancelled");
    }
    assert_eq!(slots(&daemon, "p")["queued"], 0);
    let closed = entries(&daemon, "p", "cancelled");
    assert_eq!(closed.len(), 2);
    assert!(
        closed
            .iter()
            .all(|entry| entry["reason"] == "task is no longer waiting"),
        "{closed:?}"
    );
}

/// Test 73.
#[test]
fn full_pool_does_not_fail_dag() {
    let tasks: Vec<String> = (0..200)
        .map(|number| format!("      - {{id: t{number}, command: 'echo t >> FOLDER/marks', pool: p}}\n"))
        .collect();
    let place = place_with(&format!(
        "pools: {{p: {{slots: 8, maxQueued: 100}}}}\ndags:\n  - name: d\n    tasks:\n{}",
        tasks.concat()
    ));
    let daemon = Builder::at(&place).start();
    let id = run_id(&start(&daemon, "d"));
    let shown = ended(&daemon, &id);
    assert_eq!(shown["state"], "succeeded", "{}", shown["reason"]);
    assert_eq!(lines(&place, "marks").len(), 200);
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 200);
    for step in steps {
        let attempts = step["attempts"].as_array().unwrap();
        assert_eq!((attempts.len(), &attempts[0]["number"]), (1, &json!(1)), "{step}");
    }
}

/// The same over two daemons on one directory: what did not fit in is let in by whoever finds room, and both work.
#[test]
fn a_full_pool_over_two_daemons_fails_no_task() {
    let tasks: Vec<String> = (0..40)
        .map(|number| {
            format!("      - {{id: t{number}, command: 'echo t >> FOLDER/marks; sleep 0.02', pool: p}}\n")
        })
        .collect();
    let place = place_with(&format!(
        "pools: {{p: {{slots: 4, maxQueued: 5}}}}\ndags:\n  - name: d\n    tasks:\n{}",
        tasks.concat()
    ));
    let first = Builder::at(&place).node("first").leave_store_unchecked().start();
    let second = Builder::at(&place).node("second").start();
    let id = run_id(&start(&first, "d"));
    let shown = ended(&second, &id);
    assert_eq!(shown["state"], "succeeded", "{}", shown["reason"]);
    assert_eq!(lines(&place, "marks").len(), 40);
    let mut nodes = BTreeMap::new();
    for step in shown["steps"].as_array().unwrap() {
        let attempts = step["attempts"].as_array().unwrap();
        assert_eq!((attempts.len(), &attempts[0]["number"]), (1, &json!(1)), "{step}");
        *nodes.entry(attempts[0]["node"].to_string()).or_insert(0) += 1;
    }
    println!("{nodes:?}");
    drop(first);
    assert_eq!(slots(&second, "p")["queued"], 0);
}

/// A task that its slot pool does not let in waits as long as the queue's deadline says, and says why.
#[test]
fn a_refused_task_fails_with_the_last_refusal_after_its_queue_timeout() {
    let dag = "  - name: d\n    tasks: [{id: t, command: 'true', pool: p, queueTimeout: 1.5}]\n";
    let (_place, daemon, _) = with_full_pool(", maxQueued: 1", dag);
    start(&daemon, "holder");
    let id = run_id(&start(&daemon, "d"));
    wait_for(&daemon, &id, "t", "ready");
    let shown = ended(&daemon, &id);
    assert_eq!(shown["state"], "failed", "{shown}");
    assert!(
        shown["reason"]
            .as_str()
            .unwrap_or_default()
            .contains("pool queue is full"),
        "{shown}"
    );
}

/// Test 75.
#[test]
fn task_wakes_by_foreign_release() {
    let place = place_with(concat!(
        "pools: {p: {slots: 1}}\n",
        "jobs:\n  - {name: holder, pool: p, command: 'until test -e FOLDER/go; do sleep 0.02; done; date +%s%N >> FOLDER/marks'}\n",
        "dags:\n  - name: d\n    tasks: [{id: t, command: 'date +%s%N >> FOLDER/marks', pool: p}]\n",
    ));
    let daemon = Builder::at(&place).start();
    let mut best = u64::MAX;
    for round in 0..3 {
        start(&daemon, "holder");
        wait_full(&daemon);
        let id = run_id(&start(&daemon, "d"));
        wait_for(&daemon, &id, "t", "queued");
        place.write("go", "");
        assert_eq!(ended(&daemon, &id)["state"], "succeeded");
        let marks: Vec<u64> = lines(&place, "marks")
            .iter()
            .map(|line| line.parse().unwrap())
            .collect();
        assert_eq!(marks.len(), 2 * (round + 1));
        best = best.min(marks[2 * round + 1] - marks[2 * round]);
        std::fs::remove_file(place.folder().join("go")).unwrap();
    }
    // The task is claimed with the job's completion; a pass of its own would come up to a second later.
    assert!(best < 500_000_000, "{best} ns");
}

#[test]
fn a_reload_tells_what_became_of_dags() {
    let place =
        place_with("dags:\n  - {name: d, tasks: [{id: a, command: 'true'}, {id: b, command: 'true'}]}\n");
    let daemon = Builder::at(&place).start();
    place.write_config(concat!(
        "dags:\n  - {name: d, retainRuns: 9, tasks: [{id: a, command: 'true'}, {id: b, command: 'true', dependsOn: [a]}]}\n",
        "  - {name: more, tasks: [{id: a, command: 'true'}]}\n",
    ));
    let answered = daemon.cli(&["config", "reload"]).expect_status(0);
    assert_eq!(
        answered.stdout, "+ dag more\n~ dag d: retainRuns, tasks.b\n",
        "{answered:?}"
    );
    assert_eq!(
        ended(&daemon, &run_id(&start(&daemon, "more")))["state"],
        "succeeded"
    );
    place.write_config("dags:\n  - {name: d, tasks: [{id: a, command: 'true', dependsOn: [a]}]}\n");
    let answered = daemon.cli(&["config", "reload"]).expect_status(2);
    assert!(answered.stderr.contains("dag 'd': cycle: a -> a"), "{answered:?}");
    place.write_config("jobs: []\n");
    let answered = daemon.cli(&["config", "reload"]).expect_status(0);
    assert_eq!(answered.stdout, "- dag d\n- dag more\n", "{answered:?}");
    daemon.post("/jobs/more/start", &json!({})).expect_status(404);
}

/// A task runs once for each item that another has written; who depends on it waits for all of them, and nothing is a success.
#[test]
fn an_expanded_task_runs_once_for_each_item() {
    let place = place_with(concat!(
        "dags:\n  - name: d\n    tasks:\n",
        "      - id: list it\n        command: |\n          echo '{\"files\": [\"a b\", {\"n\": 1}, 7], \"none\": [], \"word\": \"x\"}' > \"$DUCTOR_OUTPUT\"\n",
        "      - id: load\n        dependsOn: [list it]\n        expand: {fromTask: list it, key: files}\n        retries: 1\n",
        "        command: |\n          test \"$DUCTOR_INDEX\" != 1 || test \"$DUCTOR_ATTEMPT\" = 2 || exit 1\n          echo \"$DUCTOR_TASK $DUCTOR_INDEX $DUCTOR_ITEM\" >> FOLDER/marks\n",
        "      - {id: after, command: 'echo after >> FOLDER/marks', dependsOn: [load]}\n",
        "      - {id: nothing, command: 'exit 1', dependsOn: [list it], expand: {fromTask: list it, key: none}}\n",
        "      - {id: then, command: 'true', dependsOn: [nothing]}\n",
        "  - name: wrong\n    tasks:\n",
        "      - {id: l, command: 'echo 1 > \"$DUCTOR_OUTPUT\"'}\n",
        "      - {id: e, command: 'true', dependsOn: [l], expand: {fromTask: l, key: files}}\n",
    ));
    let daemon = Builder::at(&place).start();
    let shown = ended(&daemon, &run_id(&start(&daemon, "d")));
    assert_eq!(shown["state"], "succeeded", "{shown}");
    let mut marks = lines(&place, "marks");
    assert_eq!(marks.pop().as_deref(), Some("after"));
    marks.sort();
    assert_eq!(marks, ["load#0 0 a b", "load#1 1 {\"n\":1}", "load#2 2 7"]);
    let found = steps(&shown);
    for step in ["load[]", "load#0", "load#1", "load#2", "nothing[]", "then"] {
        assert_eq!(found[step], "succeeded", "{step}: {shown}");
    }
    assert_eq!(attempts(&shown, "load#1").len(), 2);
    let wrong = ended(&daemon, &run_id(&start(&daemon, "wrong")));
    assert_eq!(wrong["state"], "failed", "{wrong}");
}
