//! Workflows that are large or go wrong: parallel failures under kill -9, one branch of a hundred, and a thousand steps.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::graphs::{begin, ended, publish, show, step_state};
use super::interpreter::Dice;
use super::support::{Builder, Place, wait_until};

/// Field case W5: parallel steps that fail have their own attempts and no others, also when the daemon is killed in between;
/// what a kill loses comes on top, with the number that it had.
#[test]
fn w5_parallel_failures_multiply_no_attempts() {
    let mut dice = Dice::seeded();
    let place = Place::new("jobs: []\n");
    let mut daemon = Builder::at(&place).start();
    let steps: Vec<Value> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| {
            json!({"ref": name, "type": "STEP_TYPE_COMMAND", "args": {"command": "exit 1"},
                "retry": {"max_attempts": 3, "initial_interval": "100ms"}})
        })
        .collect();
    publish(&daemon, &json!({"family_slug": "w5", "steps": steps}));
    let mut runs = Vec::new();
    for _ in 0..6 {
        for _ in 0..4 {
            runs.push(begin(&daemon, "w5", &Value::Null));
        }
        let ms = dice.below(300) as u64;
        wait_until(Duration::from_millis(ms), || None::<()>);
        daemon.kill9();
        daemon = daemon.restart();
    }
    let mut lost = 0;
    for run in &runs {
        let shown = ended(&daemon, run);
        assert_eq!(shown["state"], "failed", "{shown}");
        let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for step in shown["steps"].as_array().unwrap() {
            assert_eq!(step["state"], "failed", "{shown}");
            for attempt in step["attempts"].as_array().unwrap() {
                if attempt["outcome"] == "lost" {
                    lost += 1;
                    continue;
                }
                assert_eq!(attempt["outcome"], "failed", "{shown}");
                let of_step = numbers
                    .entry(step["ref"].as_str().unwrap().to_owned())
                    .or_default();
                of_step.push(attempt["number"].as_u64().unwrap());
            }
        }
        assert_eq!(numbers.len(), 4, "{shown}");
        for (step, numbers) in &mut numbers {
            numbers.sort_unstable();
            assert_eq!(*numbers, [1, 2, 3], "{step}: {shown}");
        }
    }
    println!("{} runs, {lost} attempts were lost", runs.len());
}

/// Field case W7: what one branch of a hundred means, and that trying it again does no other again.
#[test]
fn w7_one_of_a_hundred_branches_fails() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    let folder = place.folder().display().to_string();
    let command =
        format!("echo $DUCTOR_INDEX >> {folder}/ran; [ $DUCTOR_INDEX != 90 ] || test -e {folder}/good");
    let items: Vec<u32> = (0..100).collect();
    for tolerated in [1, 0] {
        let slug = format!("w7-{tolerated}");
        publish(
            &daemon,
            &json!({"family_slug": slug, "steps": [
                {"ref": "each", "type": "STEP_TYPE_SCATTER", "args": {"items": json!(items).to_string(), "tolerated_failures": tolerated,
                    "body": {"ref": "one", "type": "STEP_TYPE_COMMAND", "args": {"command": command}}}},
                {"ref": "all", "type": "STEP_TYPE_GATHER", "args": {"from": "each"}}],
              "edges": [{"source_ref": "each", "target_ref": "all"}]}),
        );
    }
    let gathered =
        |run: &str| daemon.get(&format!("/api/runs/{run}/steps/all")).json()["data"]["output"].clone();
    let tolerant = begin(&daemon, "w7-1", &Value::Null);
    assert_eq!(ended(&daemon, &tolerant)["state"], "succeeded");
    let all = gathered(&tolerant);
    assert_eq!(all["results"].as_array().unwrap().len(), 99, "{all}");
    assert_eq!(all["failed"][0]["index"], 90);
    assert_eq!(all["failed"].as_array().unwrap().len(), 1);

    let strict = begin(&daemon, "w7-0", &Value::Null);
    assert_eq!(ended(&daemon, &strict)["state"], "failed");
    assert_eq!(step_state(&daemon, &strict, "one%2389"), "succeeded");
    let before = place.read("ran").unwrap().lines().count();
    assert_eq!(before, 200);
    place.write("good", "");
    let again = daemon
        .post(&format!("/api/runs/{strict}:retry"), &json!({}))
        .expect_status(201)
        .json();
    let again = again["data"]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        ended(&daemon, &again)["state"],
        "succeeded",
        "{}",
        show(&daemon, &again)
    );
    let ran = place.read("ran").unwrap();
    assert_eq!(
        ran.lines().skip(before).collect::<Vec<_>>(),
        ["90"],
        "one command only"
    );
    assert_eq!(gathered(&again)["results"].as_array().unwrap().len(), 100);
}

#[test]
fn a_definition_of_a_thousand_steps_runs() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    let step = |number: usize| {
        let value = if number == 0 {
            "0".to_owned()
        } else {
            format!("steps.s{}.output.v + 1", number - 1)
        };
        json!({"ref": format!("s{number}"), "type": "STEP_TYPE_DATAFLOW",
            "args": {"operation": "project", "project": {"v": value}}})
    };
    let steps: Vec<Value> = (0..1_000).map(step).collect();
    let edge =
        |number: usize| json!({"source_ref": format!("s{}", number - 1), "target_ref": format!("s{number}")});
    let edges: Vec<Value> = (1..1_000).map(edge).collect();
    publish(
        &daemon,
        &json!({"family_slug": "long", "steps": steps, "edges": edges}),
    );
    let run = begin(&daemon, "long", &Value::Null);
    let shown = ended(&daemon, &run);
    assert_eq!(shown["state"], "succeeded", "{shown}");
    let values = daemon.get(&format!("/api/runs/{run}/values")).json();
    assert_eq!(values["data"]["output"], json!({"v": 999}));
}
