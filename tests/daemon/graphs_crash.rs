//! Workflows under kill -9: random nested programs whose steps count by what they leave behind, one branch of a hundred, and
//! a thousand steps.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use serde_json::{Value, json};

use super::graphs::{begin, ended, publish, show, step_state};
use super::support::{Builder, Daemon, Place, wait_until};

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn seeded() -> Dice {
        let given = std::env::var("DUCTOR_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        // Another one in each run.
        let fresh = || {
            let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
            hasher.write_u32(std::process::id());
            hasher.finish()
        };
        let seed = given.unwrap_or_else(fresh);
        println!("DUCTOR_SEED={seed}");
        Dice(seed | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

/// A program and how many commands a run of it executes, its children's included.
struct Program {
    slug: String,
    commands: usize,
}

/// A command that leaves one mark for its run and step, however often it is executed; a flaky one fails the first time.
fn counting(folder: &str, name: &str, is_flaky: bool) -> Value {
    let key = "$DUCTOR_RUN_ID.$DUCTOR_TASK";
    let fails = format!("[ -e \"{folder}/tried/{key}\" ] || {{ touch \"{folder}/tried/{key}\"; exit 1; }}; ");
    let fails = if is_flaky { fails } else { String::new() };
    let command = format!("{fails}touch \"{folder}/done/{key}\"");
    json!({"ref": name, "type": "STEP_TYPE_COMMAND", "args": {"command": command},
        "retry": {"max_attempts": 3, "initial_interval": "20ms"}})
}

/// Writes a random program: a sequence of commands, scatters and runs of programs that exist already.
fn write_program(
    dice: &mut Dice,
    daemon: &Daemon,
    folder: &str,
    known: &[Program],
    number: usize,
) -> Program {
    let slug = format!("program-{number}");
    let (mut steps, mut edges, mut commands) = (Vec::new(), Vec::new(), 0);
    let length = 2 + dice.below(4);
    for place in 0..length {
        let name = format!("s{place}");
        let step = match dice.below(6) {
            0 | 1 => {
                let items = 1 + dice.below(5);
                let is_long = dice.below(2) == 0;
                let mut body = vec![counting(folder, &format!("b{place}"), dice.below(3) == 0)];
                let mut inner = Vec::new();
                commands += items * (1 + usize::from(is_long));
                if is_long {
                    body.push(counting(folder, &format!("c{place}"), false));
                    inner.push(json!({"source_ref": format!("b{place}"), "target_ref": format!("c{place}")}));
                }
                let items: Vec<usize> = (0..items).collect();
                json!({"ref": name, "type": "STEP_TYPE_SCATTER", "args": {"items": json!(items).to_string(),
                    "max_parallel": 1 + dice.below(3), "body": {"steps": body, "edges": inner}}})
            }
            2 if !known.is_empty() => {
                let child = &known[dice.below(known.len())];
                commands += child.commands;
                json!({"ref": name, "type": "STEP_TYPE_SUBWORKFLOW", "args": {"family_slug": child.slug}})
            }
            3 => json!({"ref": name, "type": "STEP_TYPE_WAIT", "args": {"duration": "30ms"}}),
            which => {
                commands += 1;
                counting(folder, &name, which == 4)
            }
        };
        steps.push(step);
        if place > 0 {
            edges.push(json!({"source_ref": format!("s{}", place - 1), "target_ref": name}));
        }
    }
    publish(
        daemon,
        &json!({"family_slug": slug, "steps": steps, "edges": edges}),
    );
    Program { slug, commands }
}

fn marks(place: &Place) -> BTreeSet<String> {
    let found = std::fs::read_dir(place.folder().join("done")).unwrap();
    let names = found.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.collect()
}

#[test]
fn counters_balance_however_often_the_daemon_is_killed() {
    let mut dice = Dice::seeded();
    let place = Place::new("jobs: []\n");
    for folder in ["done", "tried"] {
        std::fs::create_dir(place.folder().join(folder)).unwrap();
    }
    let folder = place.folder().display().to_string();
    let mut daemon = Builder::at(&place).start();
    let mut programs: Vec<Program> = Vec::new();
    for number in 0..5 {
        let program = write_program(&mut dice, &daemon, &folder, &programs, number);
        programs.push(program);
    }
    let (mut runs, mut expected) = (Vec::new(), 0);
    for _ in 0..8 {
        for _ in 0..=dice.below(4) {
            let program = &programs[dice.below(programs.len())];
            runs.push(begin(&daemon, &program.slug, &Value::Null));
            expected += program.commands;
        }
        // Killed after some more steps, wherever everything else stands then.
        let wanted = marks(&place).len() + 1 + dice.below(10);
        let limit = Duration::from_millis(1_500);
        wait_until(limit, || (marks(&place).len() >= wanted).then_some(()));
        daemon.kill9();
        daemon = daemon.restart();
    }
    for run in &runs {
        let shown = ended(&daemon, run);
        assert_eq!(shown["state"], "succeeded", "{shown}");
    }
    assert_eq!(
        marks(&place).len(),
        expected,
        "each step of each run left its mark, and no other run began"
    );
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
