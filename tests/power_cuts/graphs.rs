//! Runs of graphs among the work: commands, branches, tasks of remote workers, people who answer, and runs that wait for others.

use std::sync::Arc;

use ductor::domain::workflow::attempt::{Attempt, Outcome};
use ductor::domain::workflow::definition::Definition;
use ductor::domain::workflow::graph::build::Graph;
use ductor::domain::workflow::graph::canonical;
use ductor::domain::workflow::graph::read::read;
use ductor::domain::workflow::graph::state::GraphHeader;
use ductor::domain::workflow::graph::tick::{AttemptEnd, Fact, StepError};
use ductor::domain::workflow::run::{StepPhase, Trigger};
use ductor::engine::book::Book;
use ductor::engine::changes::complete::Holder;
use ductor::engine::changes::fold::{self, Desk, Posted, Wish};
use ductor::engine::changes::graph::{self, EndedClaim};
use ductor::engine::changes::maintain::Rules;
use ductor::engine::changes::signal;
use ductor::engine::changes::tasks::{self, TaskPass, Turns};
use ductor::engine::changes::workflows::{self, Publication};
use ductor::engine::graphs::GraphShelf;
use ductor::store::graph_rows::StoredFact;
use ductor::store::rows::LiveAttempt;
use ductor::store::tables::{RUNS, STEPS, TIMERS};
use ductor::store::{ReadTx, Rows, Store, StoreError, Tx, runs};
use ductor::words::ids::{RunId, TenantId};
use ductor::words::names::{JobName, StepRef};
use ductor::words::payload::JsonText;
use ductor::words::time::Millis;
use serde_json::{Value, json};

use super::chance::Chance;
use super::work::{Change, Told, place};

const TENANT: TenantId = TenantId::DEFAULT;

fn document() -> Value {
    json!({"family_slug": "graph",
      "concurrency": {"key": "input.shop", "limit": 3},
      "steps": [
        {"ref": "sum", "type": "STEP_TYPE_DATAFLOW", "args": {"operation": "project", "project": {"all": "input.items"}}},
        {"ref": "first", "type": "STEP_TYPE_COMMAND", "args": {"command": "true"}, "retry": {"max_attempts": 2}},
        {"ref": "each", "type": "STEP_TYPE_SCATTER", "args": {"items": "input.items", "max_parallel": 2, "tolerated_failures": "50%",
            "body": {"ref": "one", "type": "STEP_TYPE_TASK", "args": {"queue": "q", "input": "item"}, "retry": {"max_attempts": 2}}}},
        {"ref": "all", "type": "STEP_TYPE_GATHER", "args": {"from": "each"}},
        {"ref": "ask", "type": "STEP_TYPE_CHECKPOINT"}],
      "edges": [
        {"source_ref": "sum", "target_ref": "first"}, {"source_ref": "first", "target_ref": "each"},
        {"source_ref": "each", "target_ref": "all"}, {"source_ref": "all", "target_ref": "ask"}]})
}

/// What the definition is published with.
pub(crate) fn publish(tx: &mut Tx<'_>) -> Result<(), ductor::store::Abort> {
    let document = document();
    let read = read(&document).good().expect("a good document");
    let slug = name();
    let posted = workflows::Posted {
        title: slug.to_string(),
        slug: slug.clone(),
        json: JsonText::of(&document).expect("JSON"),
        sha256: canonical::sha256(&document),
        by: "tester".to_owned(),
    };
    let publication = Publication {
        posted: posted.clone(),
        definition: Definition::of_graph(slug.clone(), read),
    };
    workflows::save(tx, &posted, true)?;
    workflows::publish(tx, &slug, Some(&publication))?;
    Ok(())
}

fn name() -> JobName {
    JobName::new("graph").expect("a name")
}

/// The moment and the caches of one piece of work.
pub(crate) struct Stage<'a> {
    pub(crate) store: &'a Store,
    pub(crate) book: &'a Book,
    pub(crate) now: Millis,
}

impl Stage<'_> {
    fn desk<T>(&self, read: impl Fn(&mut ReadTx, &Desk<'_>) -> Result<T, StoreError>) -> T {
        let (graphs, blobs) = (GraphShelf::default(), self.store.blobs());
        let desk = Desk {
            shelf: &graphs,
            blobs: &blobs,
            now: self.now,
            rules: Rules::plain(),
        };
        self.store.read(|tx| read(tx, &desk)).expect("a readable store")
    }

    /// A run begins, or waits until others have ended.
    pub(crate) fn begin(&self, run: RunId, chance: &mut Chance) -> Change {
        let wish = Wish {
            id: run,
            definition: name(),
            version: 1,
            trigger: Trigger::Manual {
                principal: "tester".to_owned(),
            },
            input: Arc::new(
                json!({"shop": chance.below(3), "items": (0..=chance.below(5)).collect::<Vec<_>>()}),
            ),
            header: GraphHeader::default(),
            node: None,
        };
        let begin = self.desk(|tx, desk| {
            let Some(graph) = desk.shelf.get(tx, &wish.definition, 1)? else {
                return Ok(None);
            };
            fold::begin(tx, desk, graph.clone(), limited(&graph, &wish)).map(Some)
        });
        let book = self.book.clone();
        Box::new(move |tx| {
            let Some(begin) = &begin else { return Ok(None) };
            graph::begin(tx, &book, begin)?;
            Ok(Some(Told { run, entry: None }))
        })
    }

    /// A claim of a run's step ends, and the run goes on.
    pub(crate) fn end(
        &self,
        (run, step, live): &(RunId, StepRef, LiveAttempt),
        chance: &mut Chance,
    ) -> Change {
        let fails = chance.once_in(4);
        let end = if fails {
            AttemptEnd::Failed(StepError::new("broken", "it broke"))
        } else {
            AttemptEnd::Succeeded(Some(Arc::new(json!({"by": chance.below(100)}))))
        };
        let fence = live.claim.fence;
        let attempt = Attempt {
            outcome: if fails {
                Outcome::Failed
            } else {
                Outcome::Succeeded
            },
            exit_code: None,
            reason: None,
            node: live.claim.node.clone(),
            pid: None,
            started_at: live.claim.claimed_at,
            ended_at: self.now,
            log_bytes: 0,
        };
        let holder = Holder {
            run: *run,
            step: step.clone(),
            fence,
        };
        let posted = Posted {
            facts: vec![Fact::Attempt {
                step: step.clone(),
                fence,
                end,
            }],
            claims: vec![EndedClaim {
                holder,
                attempt: Some(attempt),
            }],
            timers: Vec::new(),
        };
        self.fold(*run, &posted)
    }

    /// Everything that is stored of a run is folded into it, and what its timers say.
    pub(crate) fn fold_one(&self, chance: &mut Chance) -> Change {
        let now = self.now;
        let open: Vec<RunId> = self.desk(|tx, _| {
            let all = tx.scan(&RUNS, &(TENANT,), None, usize::MAX)?;
            let open = all
                .into_iter()
                .filter(|(_, run)| run.graph.is_some() && !run.state.is_terminal());
            Ok(open.map(|((_, id), _)| id).collect())
        });
        if open.is_empty() {
            return Box::new(|_| Ok(None));
        }
        let run = open[chance.below(open.len())];
        let timers = self.desk(|tx, _| tx.scan(&TIMERS, &(TENANT,), None, usize::MAX));
        let due = timers
            .into_iter()
            .filter(|((_, at, of, _), _)| *of == run && *at <= now);
        let due = due.map(|((_, _, _, step), _)| {
            StepRef::new(&step).map_or(Fact::Deadline, |step| Fact::Due { step })
        });
        let posted = Posted {
            timers: due.collect(),
            ..Posted::default()
        };
        self.fold(run, &posted)
    }

    fn fold(&self, run: RunId, posted: &Posted) -> Change {
        let moved = self.desk(|tx, desk| fold::fold(tx, desk, run, posted));
        let book = self.book.clone();
        Box::new(move |tx| {
            // Who ended the claim before has moved the run: then nothing is written.
            if let Some((moved, _)) = &moved {
                graph::apply(tx, &book, moved)?;
            }
            Ok(None)
        })
    }

    /// A worker asks for tasks.
    pub(crate) fn poll(&self) -> Change {
        let pass = TaskPass {
            node: self.book.node.clone(),
            place: place(),
            queue: "q".to_owned(),
            worker: Some("w".to_owned()),
            max: 3,
            shelf: GraphShelf::default(),
            turns: Turns::default(),
        };
        Box::new(move |tx| {
            tasks::claim(tx, &pass)?;
            Ok(None)
        })
    }

    /// Somebody says something to a run: an answer, a pause, a cancel.
    pub(crate) fn say(&self, chance: &mut Chance) -> Change {
        let waiting: Vec<(RunId, StepRef)> = self.desk(|tx, _| {
            let all = tx.scan(&STEPS, &(TENANT,), None, usize::MAX)?;
            let waiting = all
                .into_iter()
                .filter(|(_, step)| step.graph.is_some() && matches!(step.phase, StepPhase::Waiting { .. }));
            Ok(waiting.map(|((_, run, step), _)| (run, step)).collect())
        });
        let Some((run, step)) = waiting.get(chance.below(waiting.len().max(1))).cloned() else {
            return Box::new(|_| Ok(None));
        };
        let by = "tester".to_owned();
        let fact = match chance.below(8) {
            0 => StoredFact::Cancel { by },
            1 => StoredFact::Pause {
                by,
                reason: String::new(),
            },
            2 | 3 => StoredFact::Unpause { by },
            _ => StoredFact::Resume {
                step,
                value: ductor::domain::payload::Payload::Inline(
                    JsonText::of(&json!({"go": true})).expect("JSON"),
                ),
                by,
            },
        };
        Box::new(move |tx| {
            if runs::by_id(tx, run)?.is_some() {
                signal::signal(tx, run, &fact)?;
            }
            Ok(None)
        })
    }
}

/// The wish with the place of its key.
fn limited(graph: &Graph, wish: &Wish) -> Wish {
    let mut wish = wish.clone();
    wish.header.key_place = graph.key_place_of(&wish.input).expect("a key");
    wish
}
