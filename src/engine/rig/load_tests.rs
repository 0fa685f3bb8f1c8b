//! What many runs at once cost: commits, counted. The disk is made so slow that those who wait share one, as they do under load.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::bridge_tests::publish;
use super::graph_stage::done;
use super::stage::{Rig, by_hand};
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::graph::lines::INTERNAL_QUEUE;
use crate::domain::workflow::graph::tick::Fact;
use crate::engine::bridge::{self, Poll, TaskEnd};
use crate::engine::changes::graph::EndedClaim;
use crate::engine::changes::remember::{Asked, Told};
use crate::engine::changes::tasks;
use crate::engine::coordinator::Coordinator;
use crate::engine::core::Engine;
use crate::engine::http_steps::HttpSteps;
use crate::engine::mailbox::Ask;
use crate::engine::moving;
use crate::engine::runs::{self, Begun, NewRun};
use crate::os::failpoint::Fault;
use crate::store::runs::by_id;
use crate::words::ids::RunId;
use crate::words::names::JobName;

/// Runs that are under way at once.
const FLIGHT: usize = 64;
/// All runs.
const RUNS: usize = 5 * FLIGHT;

fn chain(step: &dyn Fn(&str) -> Value) -> Value {
    let edge = |from: &str, to: &str| json!({"source_ref": from, "target_ref": to});
    json!({"family_slug": "w", "steps": [step("a"), step("b"), step("c")], "edges": [edge("a", "b"), edge("b", "c")]})
}

/// Begins a run and waits for its end.
async fn one_run(engine: &Engine) {
    let wish = NewRun {
        id: RunId::fresh(),
        definition: JobName::new("w").unwrap(),
        version: Some(1),
        input: Arc::new(json!({"some": "input"})),
        labels: Vec::new(),
        tier: None,
        trigger: by_hand(),
    };
    let mut sequence = engine.store.watch_sequence();
    let told = runs::begin(engine, wish, Asked::new(None, |_, _| Ok(None))).await;
    let Ok(Told::Now(Begun::Run { id, .. }, _)) = told else {
        panic!("{told:?}");
    };
    loop {
        sequence.borrow_and_update();
        let run = engine.read(move |tx| by_id(tx, id)).await.unwrap().unwrap();
        if run.state.is_terminal() {
            assert_eq!(run.state.word(), "succeeded", "{:?}", run.state);
            return;
        }
        sequence.changed().await.unwrap();
    }
}

/// So many clients, each with one run after the other.
async fn all_runs(engine: &Engine) {
    let left = Arc::new(AtomicUsize::new(RUNS));
    let clients = (0..FLIGHT).map(|_| {
        let (engine, left) = (engine.clone(), Arc::clone(&left));
        tokio::spawn(async move {
            let take = |left: usize| left.checked_sub(1);
            while left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
                .is_ok()
            {
                one_run(&engine).await;
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

/// Commits for each run while somebody executes its steps.
fn commits_per_run<W, F>(rig: &Rig, workers: W) -> f64
where
    W: FnOnce(Engine) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let faults = rig.engine.store.faults();
    faults.plan("store.commit", Fault::Stall(Duration::from_millis(25)), u32::MAX);
    let before = rig.commits();
    rig.wait(async {
        let engine = &rig.engine;
        let coordinator = tokio::spawn(Coordinator::new(engine.clone()).run());
        let workers = tokio::spawn(workers(engine.clone()));
        all_runs(engine).await;
        workers.abort();
        coordinator.abort();
    });
    faults.clear("store.commit");
    let count = u32::try_from(rig.commits() - before).unwrap();
    f64::from(count) / f64::from(u32::try_from(RUNS).unwrap())
}

#[test]
fn a2_many_runs_with_a_remote_worker() {
    let rig = Rig::new(&[], &[]);
    let step =
        |name: &str| json!({"ref": name, "type": "STEP_TYPE_TASK", "args": {"queue": "q", "input": "input"}});
    publish(&rig, &chain(&step));
    let found = commits_per_run(&rig, |engine| async move {
        // One worker that brings its results with the request for the next tasks.
        let ask = Poll {
            queue: "q".to_owned(),
            worker: "w".to_owned(),
            max: FLIGHT,
            wait_ms: 10_000,
        };
        let mut items = Vec::new();
        loop {
            let (_, offers) = bridge::say(&engine, items, Some(&ask)).await.unwrap();
            let done =
                |offer: bridge::Offer| (offer.token, TaskEnd::Completed(Arc::new(json!({"ok": true}))));
            items = offers.into_iter().map(done).collect();
        }
    });
    println!("{found:.3} commits for each of {RUNS} runs with a remote worker");
    assert!(found <= 0.6, "{found} commits for each run");
}

/// Answers everything with `{}`.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                let mut bytes = [0; 4096];
                while !seen.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut bytes) {
                        Ok(0) | Err(_) => return,
                        Ok(count) => seen.extend_from_slice(&bytes[..count]),
                    }
                }
                let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                stream.write_all(answer.as_bytes()).ok();
            });
        }
    });
    url
}

/// Executes the steps of this program in no time: what is counted is not how fast a request goes.
async fn executor(engine: Engine) {
    let ask = || Ask {
        queue: INTERNAL_QUEUE.to_owned(),
        worker: None,
        max: FLIGHT,
    };
    loop {
        let mut moved = std::pin::pin!(engine.mailboxes.requests.notified());
        moved.as_mut().enable();
        let pass = moving::pass_of(&engine, &ask());
        let waits = engine
            .read(|tx| tasks::is_waiting(tx, INTERNAL_QUEUE))
            .await
            .unwrap();
        let mut claimed = Vec::new();
        if waits {
            let change = engine.store.change("claim", move |tx| tasks::claim(tx, &pass));
            claimed = change.await.unwrap();
        }
        if claimed.is_empty() {
            let (seat, told) = engine.waiting_workers.sit(ask());
            let mut told = std::pin::pin!(told);
            let answered = tokio::select! {
                biased;
                answered = &mut told => Some(answered.unwrap_or_default()),
                () = &mut moved => None,
            };
            claimed = match answered {
                Some(answered) => answered,
                None if seat.leave() => Vec::new(),
                None => told.await.unwrap_or_default(),
            };
        }
        for task in claimed {
            let attempt = Attempt {
                outcome: Outcome::Succeeded,
                exit_code: None,
                reason: None,
                node: engine.node.clone(),
                pid: None,
                started_at: task.claim.claimed_at,
                ended_at: task.claim.claimed_at,
                log_bytes: 0,
            };
            let fact = Fact::Attempt {
                step: task.step.step.clone(),
                fence: task.claim.fence,
                end: done(json!({"ok": true})),
            };
            let claim = EndedClaim {
                holder: task.holder(),
                attempt: Some(attempt),
            };
            // Nobody waits for the answer: a run that does not end is seen.
            drop(engine.mailboxes.tell(task.run.id, fact, Some(claim)));
        }
    }
}

#[test]
fn a2_many_runs_in_the_engine() {
    let rig = Rig::new(&[], &[]);
    let step =
        |name: &str| json!({"ref": name, "type": "STEP_TYPE_HTTP", "args": {"url": "http://localhost/"}});
    publish(&rig, &chain(&step));
    let found = commits_per_run(&rig, executor);
    println!("{found:.3} commits for each of {RUNS} runs in the engine");
    assert!(found <= 0.30, "{found} commits for each run");
}

/// One run alone costs one commit for its begin and one for each step, whoever executes it.
#[test]
fn a1_one_run_in_the_engine_costs_four_commits() {
    let rig = Rig::new(&[], &[]);
    rig.allow_loopback();
    let url = server();
    let step = |name: &str| json!({"ref": name, "type": "STEP_TYPE_HTTP", "args": {"url": url}});
    publish(&rig, &chain(&step));
    let found = rig.wait(async {
        let engine = &rig.engine;
        let coordinator = tokio::spawn(Coordinator::new(engine.clone()).run());
        let executor = tokio::spawn(HttpSteps::new(engine.clone()).run());
        // It sits down.
        while engine.waiting_workers.is_empty() {
            tokio::task::yield_now().await;
        }
        let before = engine.store.stats().commits;
        one_run(engine).await;
        executor.abort();
        coordinator.abort();
        engine.store.stats().commits - before
    });
    assert_eq!(found, 4);
}
