//! Stored facts of random graphs, read back from their rows and replayed through the pure tick: the same rows come out, values,
//! timers, history and places in lines included.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::graph_stage::{broken, done};
use super::stage::{Rig, TENANT, plain};
use crate::domain::payload::Payload;
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::graph::build::Graph;
use crate::domain::workflow::graph::history::Dropped;
use crate::domain::workflow::graph::lines;
use crate::domain::workflow::graph::memory::Memory;
use crate::domain::workflow::graph::model_plan::random_document;
use crate::domain::workflow::graph::state::{GraphHeader, Line};
use crate::domain::workflow::graph::tick::{AttemptEnd, Fact, StepError};
use crate::domain::workflow::run::{Run, RunState, StepPhase};
use crate::domain::workflow::tick as claims;
use crate::engine::changes::complete::Holder;
use crate::engine::changes::fold::{self, Desk, Posted};
use crate::engine::changes::graph::EndedClaim;
use crate::engine::changes::tasks::{self, TaskPass};
use crate::store::graph_rows::{HistoryRow, StoredFact, StoredValue, TaskRow};
use crate::store::tables as all;
use crate::store::{Rows, codec, graphs, runs};
use crate::words::ids::RunId;
use crate::words::names::{JobName, StepRef};
use crate::words::payload::JsonText;
use crate::words::time::Millis;

/// What happened, as it was stored and as the daemon had it in hand.
enum Noted {
    /// A tick: what was stored of facts, byte by byte, what was posted, and the runs that began with it.
    Tick {
        stored: Vec<Vec<u8>>,
        posted: Vec<Fact>,
        children: Vec<RunId>,
    },
    /// A claim.
    Claim { step: StepRef, fence: u64 },
}

/// One thing that is tried.
#[derive(Debug, Clone, Copy)]
struct Try {
    what: u8,
    which: u16,
    how: u8,
}

/// The run as it goes.
struct Going<'r> {
    rig: &'r Rig,
    run: RunId,
    held: Vec<(StepRef, u64)>,
    log: Vec<(Millis, Noted)>,
}

impl Going<'_> {
    fn word(&self) -> &'static str {
        self.rig.run_word(self.run)
    }

    fn fold(&mut self, posted: &Posted) {
        let run = self.run;
        let stored = self.rig.read(|tx| graphs::facts_of(tx, run));
        let stored: Vec<Vec<u8>> = stored.iter().map(|(_, fact)| codec::encode(fact)).collect();
        if stored.is_empty() && posted.facts.is_empty() && posted.timers.is_empty() {
            return;
        }
        let now = self.rig.wall();
        let facts = posted.facts.iter().chain(&posted.timers).cloned().collect();
        let children = self.rig.fold_graph(run, posted, 0).children;
        let tick = Noted::Tick {
            stored,
            posted: facts,
            children,
        };
        self.log.push((now, tick));
    }

    fn claim(&mut self) {
        let now = self.rig.wall();
        let mut claimed: Vec<(StepRef, u64)> = Vec::new();
        for one in self.rig.pass_with(2, plain()).claimed {
            claimed.push((one.step, one.claim.fence));
        }
        let engine = &self.rig.engine;
        let pass = TaskPass {
            node: engine.node.clone(),
            place: engine.place.clone(),
            queue: "q".to_owned(),
            worker: Some("w".to_owned()),
            max: 2,
            shelf: engine.graphs.clone(),
            turns: engine.turns.clone(),
        };
        for task in self.rig.change(move |tx| tasks::claim(tx, &pass)) {
            claimed.push((task.step.step.clone(), task.claim.fence));
        }
        for (step, fence) in claimed {
            self.log.push((
                now,
                Noted::Claim {
                    step: step.clone(),
                    fence,
                },
            ));
            self.held.push((step, fence));
        }
    }

    fn end(&mut self, posted: &mut Posted, one: Try) {
        if self.held.is_empty() {
            return;
        }
        let (step, fence) = self.held.remove(usize::from(one.which) % self.held.len());
        let end = match one.how % 12 {
            0..=6 => done(json!(one.how)),
            7 | 8 => broken(),
            9 => AttemptEnd::NotMet,
            10 => AttemptEnd::Failed(StepError::new("fatal", "it broke").for_good()),
            _ => AttemptEnd::Cancelled("somebody stopped it".to_owned()),
        };
        posted.facts.push(Fact::Attempt {
            step: step.clone(),
            fence,
            end,
        });
        let now = self.rig.wall();
        posted.claims.push(EndedClaim {
            holder: Holder {
                run: self.run,
                step,
                fence,
            },
            attempt: Some(Attempt {
                outcome: Outcome::Succeeded,
                exit_code: None,
                reason: None,
                node: self.rig.engine.node.clone(),
                pid: None,
                started_at: now,
                ended_at: now,
                log_bytes: 0,
            }),
        });
    }

    fn say(&self, one: Try) {
        let by = || "me".to_owned();
        let (rig, run) = (self.rig, self.run);
        let waiting = rig.read(|tx| tx.scan(&all::CHECKPOINTS, &(TENANT, run), None, usize::MAX));
        let fact = match one.what {
            80..=84 => StoredFact::Pause {
                by: by(),
                reason: "why".to_owned(),
            },
            85..=91 => StoredFact::Unpause { by: by() },
            92 => StoredFact::Cancel { by: by() },
            _ => {
                let Some(place) = usize::from(one.which).checked_rem(waiting.len()) else {
                    return;
                };
                let ((_, _, step), row) = waiting[place].clone();
                if row.approval {
                    StoredFact::Decide {
                        step,
                        approve: one.how.is_multiple_of(2),
                        note: "n".to_owned(),
                        by: by(),
                    }
                } else {
                    let value = Payload::Inline(JsonText::of(&json!({"how": one.how})).unwrap());
                    StoredFact::Resume {
                        step,
                        value,
                        by: by(),
                    }
                }
            }
        };
        rig.tell_run(run, fact);
    }

    fn happen(&mut self, one: Try) {
        self.rig.clock().advance(u64::from(one.how % 5) * 400);
        match one.what {
            0..=24 => self.claim(),
            25..=59 => {
                let mut posted = Posted::default();
                for more in 0..=(one.how % 3) {
                    self.end(
                        &mut posted,
                        Try {
                            how: one.how.wrapping_add(more * 5),
                            ..one
                        },
                    );
                }
                if one.how.is_multiple_of(2) {
                    posted.timers = self.rig.timers_due(self.run).timers;
                }
                self.fold(&posted);
            }
            60..=69 => {
                self.rig.clock().advance(2_000);
                let due = self.rig.timers_due(self.run);
                self.fold(&due);
            }
            70..=72 => self.fold(&Posted::default()),
            _ => self.say(one),
        }
    }
}

/// The rows that the log alone makes.
struct Replay {
    rows: Memory,
    history: BTreeMap<u64, HistoryRow>,
    /// Tasks get numbers in the order in which they come to stand in lines.
    number: u64,
}

impl Replay {
    fn tick(&mut self, graph: &Graph, facts: &[Fact], now: Millis, children: &[RunId]) {
        let mut children: VecDeque<RunId> = children.iter().copied().collect();
        let mut fresh = || children.pop_front().expect("as many runs begin as did");
        let mut changes = self.rows.tick(graph, facts, now, &mut fresh);
        for (_, step) in &mut changes.steps {
            let dispatched = changes.dispatch.iter().find(|(name, _)| *name == step.step);
            if let (Some((_, node)), StepPhase::Ready { .. }) = (dispatched, &step.phase) {
                let place = lines::line_of(&changes.run, graph.node(*node), || {
                    self.number += 1;
                    Ok::<u64, std::convert::Infallible>(self.number)
                });
                let Ok(place) = place;
                *step = lines::stand_in(step, place);
            } else {
                *step = lines::stand_aside(step);
            }
            // Whatever is written is read again.
            *step = codec::decode(&codec::encode(step)).unwrap();
        }
        self.rows.apply(&changes);
        self.rows.run = codec::decode(&codec::encode(&self.rows.run)).unwrap();
        let mut items = changes.history;
        if let Some(compaction) = changes.compaction {
            let mut dropped = Dropped::default();
            for row in self.history.range_mut(compaction.after + 1..) {
                dropped.take_from(&mut row.1.items);
            }
            self.history.retain(|_, row| !row.items.is_empty());
            dropped.take_from(&mut items);
            items.push(dropped.line(compaction.seq));
        }
        if !items.is_empty() {
            let row = HistoryRow { at: now, items };
            self.history.insert(self.rows.run.record_version, row);
        }
    }

    fn note(&mut self, rig: &Rig, graph: &Graph, noted: &Noted, now: Millis) {
        match noted {
            Noted::Claim { step, fence } => {
                let fact = claims::Fact::Claimed { fence: *fence };
                let ticked = claims::fold(&self.rows.run, &self.rows.steps[step], &fact, now).unwrap();
                self.rows.run = ticked.run;
                self.rows.steps.insert(step.clone(), ticked.step);
            }
            Noted::Tick {
                stored,
                posted,
                children,
            } => {
                let id = self.rows.run.id;
                // What is kept for a run moves its version.
                self.rows.run.record_version += stored.len() as u64;
                let blobs = rig.engine.store.blobs();
                let mut facts = Vec::new();
                for bytes in stored {
                    let fact: StoredFact = codec::decode(bytes).unwrap();
                    let desk = Desk {
                        shelf: &rig.engine.graphs,
                        blobs: &blobs,
                        now,
                        rules: plain(),
                    };
                    facts.push(rig.read(|tx| fold::fact_of(tx, &desk, id, fact.clone())));
                }
                facts.extend(posted.iter().cloned());
                self.tick(graph, &facts, now, children);
            }
        }
    }
}

fn check(document: &Value, tries: &[Try]) {
    let rig = Rig::new(&[], &[]);
    rig.publish_graph(document);
    let input = json!({"list": [1, 2]});
    let (run, children) = rig.begin_graph_alone("w", input.clone());
    let begun_at = rig.wall();
    let tick = Noted::Tick {
        stored: Vec::new(),
        posted: vec![Fact::Begun],
        children,
    };
    let mut going = Going {
        rig: &rig,
        run,
        held: Vec::new(),
        log: vec![(begun_at, tick)],
    };
    for one in tries {
        if !matches!(going.word(), "running" | "paused") {
            break;
        }
        going.happen(*one);
    }
    // What was said last is folded in.
    going.fold(&Posted::default());
    let log = going.log;
    let stored = rig.read(|tx| runs::by_id(tx, run)).unwrap();
    let deadline = stored.graph.as_ref().and_then(|header| header.deadline);
    let first = stored.graph.clone().unwrap_or_default();
    let fresh = Run {
        record_version: 0,
        state: RunState::Pending,
        graph: Some(Box::new(GraphHeader {
            deadline,
            tier: first.tier,
            fairness_key: first.fairness_key.clone(),
            ..GraphHeader::default()
        })),
        ..stored.clone()
    };
    let mut replay = Replay {
        rows: Memory::new(fresh, input),
        history: BTreeMap::new(),
        number: 0,
    };
    let name = JobName::new("w").unwrap();
    let graph = rig.read(|tx| rig.engine.graphs.get(tx, &name, 1)).unwrap();
    for (now, noted) in &log {
        replay.note(&rig, &graph, noted, *now);
    }
    compare(&rig, &stored, &replay);
}

fn compare(rig: &Rig, stored: &Run, replay: &Replay) {
    let run = stored.id;
    assert_eq!(replay.rows.run, *stored);
    let steps = rig.read(|tx| tx.scan(&all::STEPS, &(TENANT, run), None, usize::MAX));
    let steps: BTreeMap<_, _> = steps
        .into_iter()
        .map(|((_, _, name), step)| (name, step))
        .collect();
    assert_eq!(replay.rows.steps, steps);
    let values = rig.read(|tx| tx.scan(&all::VALUES, &(TENANT, run), None, usize::MAX));
    let values: BTreeMap<String, Vec<u8>> = values
        .into_iter()
        .map(|((_, _, name), value)| (name, codec::encode(&value)))
        .collect();
    let again = replay.rows.values.iter().map(|(name, value)| {
        let payload = Payload::Inline(JsonText::of(&**value).unwrap());
        (name.to_string(), codec::encode(&StoredValue(payload)))
    });
    assert_eq!(again.collect::<BTreeMap<_, _>>(), values);
    let history = rig.read(|tx| tx.scan(&all::HISTORY, &(TENANT, run), None, usize::MAX));
    let history: BTreeMap<u64, HistoryRow> = history
        .into_iter()
        .map(|((_, _, version), row)| (version, row))
        .collect();
    assert_eq!(replay.history, history);
    let timers = rig.read(|tx| tx.scan(&all::TIMERS, &(TENANT,), None, usize::MAX));
    let timers: Vec<(Millis, String)> = { timers.into_iter() }
        .filter(|((_, _, of, _), _)| *of == run)
        .map(|((_, at, _, step), _)| (at, step))
        .collect();
    let of_steps = replay.rows.steps.values().filter_map(|step| {
        let at = step.graph.as_ref()?.timer?;
        Some((at, step.step.to_string()))
    });
    let of_run = graphs::deadline_of(&replay.rows.run).map(|at| (at, String::new()));
    let mut again: Vec<(Millis, String)> = of_steps.chain(of_run).collect();
    again.sort();
    assert_eq!(again, timers);
    let tasks = rig.read(|tx| tx.scan(&all::TASKS, &(TENANT,), None, usize::MAX));
    let again = replay.rows.steps.values().filter_map(|step| {
        let Some(Line::Tasks(place)) = step.graph.as_ref()?.line.as_ref() else {
            return None;
        };
        let row = TaskRow {
            run,
            step: step.step.clone(),
        };
        Some((graphs::task_key(place), row))
    });
    let again: BTreeMap<_, _> = again.collect();
    assert_eq!(again, tasks.into_iter().collect::<BTreeMap<_, _>>());
}

fn tries() -> impl Strategy<Value = Vec<Try>> {
    let one = (0..100u8, any::<u16>(), any::<u8>());
    let one = one.prop_map(|(what, which, how)| Try { what, which, how });
    proptest::collection::vec(one, 10..40)
}

/// More of them: `PROPTEST_CASES`, when it asks for more than usual.
fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    let cases = if asked.cases > 256 { asked.cases } else { 24 };
    ProptestConfig { cases, ..asked }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn replayed_facts_give_the_rows_that_are_stored(document in random_document(2..9, 2), tries in tries()) {
        check(&document, &tries);
    }
}
