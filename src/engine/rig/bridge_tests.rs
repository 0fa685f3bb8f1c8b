//! Remote workers: whose turn it is, what a silent worker leaves, and what one request costs.

use serde_json::{Value, json};
use std::sync::Arc;

use super::stage::Rig;
use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::graph::canonical;
use crate::domain::workflow::graph::document::Tier;
use crate::domain::workflow::graph::read::read;
use crate::domain::workflow::graph::tick::StepError;
use crate::domain::workflow::run::Trigger;
use crate::engine::bridge::{self, Offer, Poll, Said, TaskEnd};
use crate::engine::changes::remember::{Asked, Told};
use crate::engine::changes::tasks::Heard;
use crate::engine::changes::workflows::{self, Posted, Publication};
use crate::engine::coordinator::Coordinator;
use crate::engine::core::Engine;
use crate::engine::runs::{self, Begun, NewRun};
use crate::engine::silence::Listener;
use crate::store::tables::{ATTEMPTS, POISONED_RUNS, TASK_CLAIMS, TASKS};
use crate::store::{Rows, runs as stored_runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::{JobName, StepRef};
use crate::words::payload::JsonText;

const TENANT: TenantId = TenantId::DEFAULT;

/// Publishes a definition as the API does.
pub(super) fn publish(rig: &Rig, document: &Value) {
    let json = JsonText::of(document).unwrap();
    let sha256 = canonical::sha256(document);
    let document = read(document).good().unwrap();
    let slug = JobName::new(&document.family_slug).unwrap();
    let definition = Definition::of_graph(slug.clone(), document);
    let posted = Posted {
        title: slug.to_string(),
        slug: slug.clone(),
        json,
        sha256,
        by: "tester".to_owned(),
    };
    let publication = Publication {
        posted: posted.clone(),
        definition,
    };
    rig.change(move |tx| {
        workflows::save(tx, &posted, true)?;
        workflows::publish(tx, &slug, Some(&publication))
    });
}

fn tasks(name: &str, steps: &[&str], more: &Value) -> Value {
    let each = steps.iter().map(|step| {
        let mut step = json!({"ref": step, "type": "STEP_TYPE_TASK", "args": {"queue": "q", "input": "input"},
            "retry": {"max_attempts": 2, "initial_interval": "1s", "jitter": 0}});
        if let (Some(step), Some(more)) = (step.as_object_mut(), more.as_object()) {
            step.extend(more.clone());
        }
        step
    });
    let steps_json: Vec<Value> = each.collect();
    let edges: Vec<Value> = steps
        .windows(2)
        .map(|pair| json!({"source_ref": pair[0], "target_ref": pair[1], "type": "EDGE_TYPE_SUCCESS"}))
        .collect();
    json!({"family_slug": name, "fairness": {"key": "input"}, "steps": steps_json, "edges": edges})
}

fn begin(rig: &Rig, name: &str, input: &Value, tier: Option<Tier>) -> RunId {
    let wish = NewRun {
        id: RunId::fresh(),
        definition: JobName::new(name).unwrap(),
        version: Some(1),
        input: Arc::new(input.clone()),
        labels: Vec::new(),
        tier,
        trigger: Trigger::Manual {
            principal: "tester".to_owned(),
        },
    };
    let told = rig.wait(runs::begin(&rig.engine, wish, Asked::new(None, |_, _| Ok(None))));
    let Ok(Told::Now(Begun::Run { id, .. }, _)) = told else {
        panic!("{told:?}");
    };
    id
}

fn ask(max: usize) -> Poll {
    Poll {
        queue: "q".to_owned(),
        worker: "w".to_owned(),
        max,
        wait_ms: 0,
    }
}

fn poll(rig: &Rig, max: usize) -> Vec<Offer> {
    rig.wait(bridge::poll(&rig.engine, &ask(max))).unwrap()
}

fn say(rig: &Rig, items: Vec<(String, TaskEnd)>, more: Option<&Poll>) -> (Vec<Said>, Vec<Offer>) {
    rig.wait(bridge::say(&rig.engine, items, more)).unwrap()
}

fn good() -> TaskEnd {
    TaskEnd::Completed(Arc::new(json!(true)))
}

fn state(rig: &Rig, run: RunId) -> &'static str {
    rig.read(|tx| stored_runs::by_id(tx, run)).unwrap().state.word()
}

fn phase(rig: &Rig, run: RunId, step: &str) -> (&'static str, u32, u32) {
    let step = StepRef::new(step).unwrap();
    let step = rig.read(|tx| stored_runs::step(tx, run, &step)).unwrap();
    (step.phase.word(), step.attempt, step.deaths)
}

/// The share that each offer is of.
fn shares(offers: &[Offer]) -> Vec<String> {
    offers
        .iter()
        .map(|offer| offer.input.read::<String>().unwrap())
        .collect()
}

fn commits(engine: &Engine) -> u64 {
    engine.store.stats().commits
}

#[test]
fn a_busy_key_delays_others_by_no_more_than_its_share() {
    let rig = Rig::new(&[], &[]);
    publish(&rig, &tasks("w", &["a"], &json!({})));
    for _ in 0..60 {
        begin(&rig, "w", &json!("flood"), None);
    }
    for name in ["k1", "k2", "k3"] {
        for _ in 0..5 {
            begin(&rig, "w", &json!(name), None);
        }
    }
    let served = shares(&poll(&rig, 20));
    for name in ["flood", "k1", "k2", "k3"] {
        let count = served.iter().filter(|share| *share == name).count();
        assert_eq!(count, 5, "{name}: {served:?}");
    }
    assert_eq!(poll(&rig, 100).len(), 55, "the rest of the flood");
}

#[test]
fn tiers_wait_by_their_weight() {
    let rig = Rig::new(&[], &[]);
    publish(&rig, &tasks("w", &["a"], &json!({})));
    for (tier, name) in [
        (Tier::Background, "b"),
        (Tier::Default, "d"),
        (Tier::Interactive, "i"),
    ] {
        for _ in 0..25 {
            begin(&rig, "w", &json!(name), Some(tier));
        }
    }
    let served = shares(&poll(&rig, 21));
    let parts = ["i", "d", "b"].map(|name| served.iter().filter(|share| *share == name).count());
    assert_eq!(parts, [16, 4, 1]);
}

#[test]
fn a_chain_of_remote_steps_is_one_commit_a_step() {
    let rig = Rig::new(&[], &[]);
    publish(&rig, &tasks("w", &["a", "b", "c"], &json!({})));
    // The key of tokens is made with the first claim ever.
    begin(&rig, "w", &json!("x"), None);
    poll(&rig, 1);
    let before = commits(&rig.engine);
    let engine = rig.engine.clone();
    let run = rig.wait(async move {
        let waits = Poll {
            wait_ms: 60_000,
            ..ask(1)
        };
        let (polling, asked) = (engine.clone(), waits.clone());
        let polled = tokio::spawn(async move { bridge::poll(&polling, &asked).await.unwrap() });
        while engine.waiting_workers.is_empty() {
            tokio::task::yield_now().await;
        }
        let wish = NewRun {
            id: RunId::fresh(),
            definition: JobName::new("w").unwrap(),
            version: Some(1),
            input: Arc::new(json!("y")),
            labels: Vec::new(),
            tier: None,
            trigger: Trigger::Manual {
                principal: "tester".to_owned(),
            },
        };
        runs::begin(&engine, wish, Asked::new(None, |_, _| Ok(None)))
            .await
            .unwrap();
        let mut offers = polled.await.unwrap();
        let run = offers[0].task.run.id;
        for _ in 0..3 {
            let token = offers[0].token.clone();
            let next = ask(1);
            let (said, more) = bridge::say(&engine, vec![(token, good())], Some(&next))
                .await
                .unwrap();
            assert_eq!(said, [Said::Done]);
            offers = more;
        }
        run
    });
    assert_eq!(state(&rig, run), "succeeded");
    assert_eq!(
        commits(&rig.engine) - before,
        4,
        "one to begin and one for each step"
    );
}

#[test]
fn many_completions_and_the_next_claims_are_one_commit() {
    let rig = Rig::new(&[], &[]);
    publish(&rig, &tasks("w", &["a", "b"], &json!({})));
    let runs: Vec<RunId> = (0..50)
        .map(|number| begin(&rig, "w", &json!(format!("k{}", number % 7)), None))
        .collect();
    let first = poll(&rig, 50);
    assert_eq!(first.len(), 50);
    let before = commits(&rig.engine);
    let items = first.iter().map(|offer| (offer.token.clone(), good())).collect();
    let (said, second) = say(&rig, items, Some(&ask(50)));
    assert!(said.iter().all(|said| *said == Said::Done));
    assert_eq!((second.len(), commits(&rig.engine) - before), (50, 1));
    let items = second.iter().map(|offer| (offer.token.clone(), good())).collect();
    say(&rig, items, None);
    assert_eq!(commits(&rig.engine) - before, 2);
    assert!(runs.iter().all(|run| state(&rig, *run) == "succeeded"));
    let again = say(&rig, vec![(first[0].token.clone(), good())], None).0;
    assert_eq!(again, [Said::Already]);
}

#[test]
fn the_same_word_twice_in_one_request_counts_once() {
    let rig = Rig::new(&[], &[]);
    publish(&rig, &tasks("w", &["a"], &json!({})));
    let run = begin(&rig, "w", &json!("x"), None);
    let token = poll(&rig, 1)[0].token.clone();
    let fails = TaskEnd::Failed(StepError::new("no", "no"));
    let items = vec![(token.clone(), good()), (token.clone(), good()), (token, fails)];
    assert_eq!(say(&rig, items, None).0, [Said::Done, Said::Stale, Said::Stale]);
    assert_eq!(state(&rig, run), "succeeded");
    let attempts = rig.read(|tx| tx.scan(&ATTEMPTS, &(TENANT, run), None, 9));
    assert_eq!(attempts.len(), 1);
    assert!(
        rig.read(|tx| tx.scan(&TASK_CLAIMS, &(TENANT,), None, 9))
            .is_empty()
    );
}

#[test]
fn a_silent_worker_loses_its_task_with_the_same_attempt_and_another_fence() {
    let rig = Rig::new(&[], &[]);
    publish(&rig, &tasks("w", &["a"], &json!({})));
    let run = begin(&rig, "w", &json!("x"), None);
    let first = poll(&rig, 1).remove(0);
    let mut listener = Listener::new(rig.engine.clone());
    rig.clock().advance(limits::VISIBILITY_MS - 1);
    assert_eq!(rig.wait(listener.look()).unwrap(), 0);
    let heard = rig.wait(bridge::heartbeat(&rig.engine, &first.token)).unwrap();
    assert!(matches!(heard, Some(Heard::Holds(_, None))), "{heard:?}");
    rig.clock().advance(limits::VISIBILITY_MS);
    assert_eq!(rig.wait(listener.look()).unwrap(), 0, "it was heard of");
    rig.clock().advance(limits::VISIBILITY_MS);
    // Another daemon sees it as well.
    let other = rig.daemon("n-b");
    let mut listener = Listener::new(other.engine.clone());
    assert_eq!(rig.wait(listener.look()).unwrap(), 1);
    assert_eq!(phase(&rig, run, "a"), ("ready", 1, 1));
    let second = poll(&rig, 1).remove(0);
    assert!(second.task.claim.fence > first.task.claim.fence);
    assert_eq!(second.task.step.attempt, 1);
    assert_eq!(say(&rig, vec![(first.token, good())], None).0, [Said::Stale]);
    assert_eq!(say(&rig, vec![(second.token, good())], None).0, [Said::Done]);
    assert_eq!(state(&rig, run), "succeeded");
}

#[test]
fn a_task_of_which_five_workers_die_is_given_up_once() {
    let rig = Rig::new(&[], &[]);
    publish(&rig, &tasks("w", &["a"], &json!({})));
    let run = begin(&rig, "w", &json!("x"), None);
    let mut listener = Listener::new(rig.engine.clone());
    for death in 1..=5 {
        assert_eq!(poll(&rig, 1).len(), 1, "{death}");
        rig.clock().advance(limits::VISIBILITY_MS);
        assert_eq!(rig.wait(listener.look()).unwrap(), 1);
    }
    assert_eq!(
        rig.read(|tx| tx.scan(&POISONED_RUNS, &(TENANT,), None, 9)).len(),
        1
    );
    fold(&rig, run);
    assert_eq!(state(&rig, run), "failed");
    assert_eq!(rig.wait(listener.look()).unwrap(), 0);
}

/// Folds what is stored for a run, as the coordinator's loop would.
fn fold(rig: &Rig, run: RunId) {
    let engine = rig.engine.clone();
    rig.wait(async move {
        let working = tokio::spawn(Coordinator::new(engine.clone()).run());
        engine.mailboxes.look();
        loop {
            let read = engine.read(move |tx| stored_runs::by_id(tx, run)).await;
            if read.unwrap().is_some_and(|run| run.state.is_terminal()) {
                break;
            }
            tokio::task::yield_now().await;
        }
        working.abort();
    });
}

#[test]
fn a_claim_outlives_its_daemon() {
    let mut rig = Rig::new(&[], &[]);
    publish(&rig, &tasks("w", &["a"], &json!({})));
    let run = begin(&rig, "w", &json!("x"), None);
    let offer = poll(&rig, 1).remove(0);
    let other = rig.daemon("n-b");
    let mut hunter = crate::engine::hunt::Hunter::new(other.engine.clone());
    rig.die_first();
    rig.wait(hunter.look()).unwrap();
    assert_eq!(phase(&rig, run, "a").0, "running", "the hunt leaves it alone");
    let said = rig.wait(bridge::say(&other.engine, vec![(offer.token, good())], None));
    assert_eq!(said.unwrap().0, [Said::Done]);
    assert_eq!(state(&rig, run), "succeeded");
}

#[test]
fn a_failed_attempt_of_a_run_that_is_being_ended_is_not_tried_again() {
    let rig = Rig::new(&[], &[]);
    publish(&rig, &tasks("w", &["a"], &json!({})));
    let run = begin(&rig, "w", &json!("x"), None);
    let offer = poll(&rig, 1).remove(0);
    let cancel = crate::store::graph_rows::StoredFact::Cancel { by: "me".to_owned() };
    let asked = Asked::new(None, |_, _| Ok(None));
    rig.wait(runs::tell(&rig.engine, run, cancel, asked)).unwrap();
    let fails = TaskEnd::Failed(StepError::new("no", "no"));
    assert_eq!(say(&rig, vec![(offer.token, fails)], None).0, [Said::Done]);
    assert_eq!(state(&rig, run), "cancelled");
    assert!(rig.read(|tx| tx.scan(&TASKS, &(TENANT,), None, 9)).is_empty());
}
