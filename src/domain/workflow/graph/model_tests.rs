//! Random graphs with random outcomes in a random order: the tick against the model, and against itself in other groupings.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::model_plan::plan;
use super::model_trial::{Trial, Try};
use super::state::WaitsFor;
use crate::domain::workflow::run::{StepPhase, StepState};

fn tries() -> impl Strategy<Value = Vec<Try>> {
    let one = (0..100u8, any::<u16>(), any::<u8>());
    let one = one.prop_map(|(what, which, how)| Try { what, which, how });
    proptest::collection::vec(one, 1..50)
}

fn timeout() -> impl Strategy<Value = Option<u64>> {
    proptest::option::weighted(0.2, 3..20u64)
}

/// What is compared with the model is worth it: the random runs meet everything that a step and a run can be.
#[test]
fn random_runs_meet_every_state() {
    let mut runner = TestRunner::deterministic();
    let mut met: BTreeSet<String> = BTreeSet::new();
    for _ in 0..300 {
        let tree = (plan(1..9, 2), tries(), timeout()).new_tree(&mut runner).unwrap();
        let (plan, tries, timeout) = tree.current();
        let mut trial = Trial::new(&plan, timeout);
        for one in &tries {
            trial.happen(*one);
            met.insert(format!("run {}", trial.rows.run.state.word()));
            for step in trial.rows.steps.values() {
                let is_held = matches!(step.phase, StepPhase::Held { .. });
                met.insert(if is_held {
                    "held".to_owned()
                } else {
                    step.phase.word().to_owned()
                });
                if let StepPhase::Waiting {
                    on: WaitsFor::Work { .. },
                    ..
                } = step.phase
                {
                    met.insert("waits for work".to_owned());
                }
                if step.graph.as_ref().is_some_and(|graph| graph.over.is_some()) {
                    met.insert(format!("over {}", kind_word(&trial, step)));
                }
            }
        }
        trial.drain();
    }
    let steps =
        "ready held queued running waiting retrying succeeded failed skipped cancelled upstream_failed";
    let runs = ["running", "paused", "succeeded", "failed", "cancelled"];
    let runs = runs.iter().map(|word| format!("run {word}"));
    let over = [
        "over STEP_TYPE_SCATTER".to_owned(),
        "over STEP_TYPE_COMMAND".to_owned(),
        "waits for work".to_owned(),
    ];
    let wanted: BTreeSet<String> = steps
        .split(' ')
        .map(str::to_owned)
        .chain(runs)
        .chain(over)
        .collect();
    let missing: Vec<&String> = wanted.difference(&met).collect();
    assert!(missing.is_empty(), "never met: {missing:?}");
}

fn kind_word(trial: &Trial<'_>, step: &StepState) -> &'static str {
    trial.node_of(&step.step).word()
}

/// More of them: `PROPTEST_CASES`.
const CASES: u32 = 300;

fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    ProptestConfig {
        cases: asked.cases.max(CASES),
        ..asked
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_run_is_what_the_model_says(plan in plan(1..9, 2), tries in tries(), timeout in timeout()) {
        let mut trial = Trial::new(&plan, timeout);
        for one in &tries {
            trial.happen(*one);
        }
        trial.drain();
    }

    #[test]
    fn facts_mean_the_same_in_any_grouping(plan in plan(1..9, 1), tries in tries()) {
        let mut trial = Trial::new(&plan, Some(30));
        for group in tries.chunks(3) {
            for one in group {
                trial.claim(one.which);
            }
            trial.happen_together(group);
        }
        trial.drain();
    }
}
