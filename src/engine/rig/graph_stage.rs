//! Graphs on the rig: they are published, begun and folded by the engine's own changes, and their steps are executed by
//! invented processes. What the coordinator does in one commit is one change here.

use std::sync::Arc;

use serde_json::Value;

use super::stage::{Daemon, by_hand, holder, plain};
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::graph::key::ValueName;
use crate::domain::workflow::graph::read::read;
use crate::domain::workflow::graph::state::GraphHeader;
use crate::domain::workflow::graph::tick::{AttemptEnd, Changes, Fact, StepError, Taken};
use crate::domain::workflow::run::StepPhase;
use crate::engine::changes::claim::{self, Claimed, Pass, Passed};
use crate::engine::changes::fold::{self, Desk, Posted, Wish};
use crate::engine::changes::graph::{self, Applied, EndedClaim};
use crate::engine::changes::key_limit;
use crate::engine::changes::signal::{self, Signalled};
use crate::store::graph_rows::StoredFact;
use crate::store::rows::DefinitionRecord;
use crate::store::tables as all;
use crate::store::{Rows, StoreError, runs};
use crate::words::ids::RunId;
use crate::words::names::{JobName, StepRef};

use super::stage::TENANT;

/// What one commit of a run has done.
#[derive(Debug)]
pub(super) struct Stepped {
    /// What became of each fact that was posted, timers included.
    pub(super) answers: Vec<Taken>,
    /// What was claimed in the same commit.
    pub(super) claimed: Vec<Claimed>,
    /// Rows written or removed, claims not counted.
    pub(super) rows: u64,
    /// Bytes of them.
    pub(super) bytes: usize,
    /// Runs that began with it.
    pub(super) children: Vec<RunId>,
}

impl Daemon {
    /// Publishes a document as the next version of its name.
    pub(super) fn publish_graph(&self, document: &Value) -> u32 {
        let reading = read(document);
        assert!(reading.findings.is_empty(), "{:#?}", reading.findings);
        let document = reading.document.unwrap();
        let name = JobName::new(&document.family_slug).unwrap();
        let definition = Definition::of_graph(name.clone(), document);
        let (json, digest) = definition.stored();
        let published_at = self.wall();
        self.change(move |tx| {
            let version = newest_version(tx, &name)? + 1;
            let record = DefinitionRecord {
                digest: digest.clone(),
                published_at,
                json: json.clone(),
            };
            tx.put(&all::DEFINITIONS, &(TENANT, name.clone(), version), &record)?;
            Ok(version)
        })
    }

    fn pass_of(&self, processes: usize) -> Pass {
        Pass {
            place: self.engine.place.clone(),
            processes: (0..processes).map(|_| self.process()).collect(),
            rules: plain(),
            leave_to: 0,
            turns: self.engine.turns.clone(),
            shelf: self.engine.graphs.clone(),
        }
    }

    /// Begins a run of the newest version and claims what it makes ready, in one commit.
    pub(super) fn begin_graph(&self, slug: &str, input: Value, processes: usize) -> (RunId, Vec<Claimed>) {
        self.begin_graph_with(slug, input, GraphHeader::default(), processes)
    }

    /// The same with a header that says more.
    pub(super) fn begin_graph_with(
        &self,
        slug: &str,
        input: Value,
        header: GraphHeader,
        processes: usize,
    ) -> (RunId, Vec<Claimed>) {
        let (run, claimed, _) = self.begin_whole(slug, input, header, processes);
        (run, claimed)
    }

    /// Begins a run and claims nothing; the runs that began with it.
    pub(super) fn begin_graph_alone(&self, slug: &str, input: Value) -> (RunId, Vec<RunId>) {
        let (run, _, children) = self.begin_whole(slug, input, GraphHeader::default(), 0);
        (run, children)
    }

    fn begin_whole(
        &self,
        slug: &str,
        input: Value,
        header: GraphHeader,
        processes: usize,
    ) -> (RunId, Vec<Claimed>, Vec<RunId>) {
        let name = JobName::new(slug).unwrap();
        let wish = Wish {
            id: RunId::fresh(),
            definition: name.clone(),
            version: self.read(|tx| newest_version(tx, &name)),
            trigger: by_hand(),
            input: Arc::new(input),
            header,
            node: None,
        };
        let blobs = self.engine.store.blobs();
        let begin = self.read(|tx| {
            let desk = Desk {
                shelf: &self.engine.graphs,
                blobs: &blobs,
                now: self.wall(),
                rules: plain(),
            };
            let graph = desk.shelf.get(tx, &wish.definition, wish.version)?.unwrap();
            let mut wish = wish.clone();
            wish.header.key_place = graph.key_place_of(&wish.input).unwrap();
            fold::begin(tx, &desk, graph, wish)
        });
        let children = children_of(&begin.changes);
        let (book, pass, begin) = (self.engine.book(), self.pass_of(processes), Arc::new(begin));
        let claimed = self.change(move |tx| {
            graph::begin(tx, &book, &begin)?;
            Ok(claim_in(tx, &book, &pass)?.claimed)
        });
        (wish.id, claimed, children)
    }

    /// Folds everything that is stored and posted, and claims what it makes ready, in one commit.
    pub(super) fn fold_graph(&self, run: RunId, posted: &Posted, processes: usize) -> Stepped {
        let blobs = self.engine.store.blobs();
        let (mut moved, stored) = self
            .read(|tx| {
                let desk = Desk {
                    shelf: &self.engine.graphs,
                    blobs: &blobs,
                    now: self.wall(),
                    rules: plain(),
                };
                fold::fold(tx, &desk, run, posted)
            })
            .expect("there is such a run");
        let answers = moved.changes.answers.split_off(stored);
        let (book, pass, moved) = (self.engine.book(), self.pass_of(processes), Arc::new(moved));
        self.change(move |tx| {
            let before = (tx.rows_written(), tx.bytes_written());
            let applied = graph::apply(tx, &book, &moved)?;
            assert!(matches!(applied, Applied::Done(_)), "nobody else moves it");
            let (rows, bytes) = (tx.rows_written() - before.0, tx.bytes_written() - before.1);
            let claimed = claim_in(tx, &book, &pass)?.claimed;
            Ok(Stepped {
                answers: answers.clone(),
                claimed,
                rows,
                bytes,
                children: children_of(&moved.changes),
            })
        })
    }

    /// The same, if there is anything to fold; what was claimed.
    pub(super) fn fold_graph_if(&self, run: RunId, posted: &Posted, processes: usize) -> Vec<Claimed> {
        if posted.timers.is_empty() {
            return Vec::new();
        }
        self.fold_graph(run, posted, processes).claimed
    }

    /// Claims of one run end so, all in one commit; what that makes ready is claimed in it too.
    pub(super) fn end_steps(&self, claims: &[(Claimed, AttemptEnd)], processes: usize) -> Stepped {
        let run = claims[0].0.run.id;
        self.fold_graph(run, &self.posted(claims), processes)
    }

    /// What is posted to a run when claims of it end so.
    pub(super) fn posted(&self, claims: &[(Claimed, AttemptEnd)]) -> Posted {
        let mut posted = Posted::default();
        for (claimed, end) in claims {
            posted.facts.push(Fact::Attempt {
                step: claimed.step.clone(),
                fence: claimed.claim.fence,
                end: end.clone(),
            });
            let outcome = match end {
                AttemptEnd::Succeeded(_) | AttemptEnd::Routed(_) => Outcome::Succeeded,
                AttemptEnd::Failed(_) | AttemptEnd::NotMet => Outcome::Failed,
                AttemptEnd::Cancelled(_) => Outcome::Cancelled,
            };
            posted.claims.push(EndedClaim {
                holder: holder(claimed),
                attempt: Some(self.attempt(claimed, outcome)),
            });
        }
        posted
    }

    /// The timers of a run that are due now.
    pub(super) fn timers_due(&self, run: RunId) -> Posted {
        let now = self.wall();
        let rows = self.read(|tx| tx.scan(&all::TIMERS, &(TENANT,), None, usize::MAX));
        let due = rows
            .into_iter()
            .filter(|((_, at, of, _), _)| *of == run && *at <= now);
        let timers = due.map(|((_, _, _, step), _)| match StepRef::new(&step) {
            Some(step) => Fact::Due { step },
            None => Fact::Deadline,
        });
        Posted {
            timers: timers.collect(),
            ..Posted::default()
        }
    }

    /// Somebody tells a run something; it is kept, and not folded yet.
    pub(super) fn tell_run(&self, run: RunId, fact: StoredFact) -> Signalled {
        self.change(move |tx| signal::signal(tx, run, &fact))
    }

    /// The word of a step; `pending` if it was not reached.
    pub(super) fn step_word(&self, run: RunId, step: &str) -> &'static str {
        let step = StepRef::new(step).unwrap();
        let state = self.read(|tx| runs::step(tx, run, &step));
        state.map_or("pending", |state| state.phase.word())
    }

    /// The phase of a step that was reached.
    pub(super) fn phase_of(&self, run: RunId, step: &str) -> StepPhase {
        let step = StepRef::new(step).unwrap();
        self.read(|tx| runs::step(tx, run, &step)).unwrap().phase
    }

    /// Why a run is as it is, or why it has not begun.
    pub(super) fn run_reason(&self, run: RunId) -> String {
        self.read(|tx| {
            let header = runs::by_id(tx, run)?.unwrap();
            let waits = key_limit::why(tx, &header)?.map(|why| why.sentence);
            Ok(waits
                .or(header.state.reason().map(str::to_owned))
                .unwrap_or_default())
        })
    }

    /// The word of a run.
    pub(super) fn run_word(&self, run: RunId) -> &'static str {
        self.read(|tx| runs::by_id(tx, run)).unwrap().state.word()
    }

    /// What a run has made.
    pub(super) fn result_of(&self, run: RunId) -> Option<Value> {
        let blobs = self.engine.store.blobs();
        let value = self.read(|tx| fold::value_of(tx, &blobs, run, &ValueName::Result));
        value.map(|value| (*value).clone())
    }

    /// Commits so far.
    pub(super) fn commits(&self) -> u64 {
        self.engine.store.stats().commits
    }
}

/// The newest version of a definition; 0 without any.
fn newest_version(rows: &mut impl Rows, name: &JobName) -> Result<u32, StoreError> {
    let newest = rows.scan_back(&all::DEFINITIONS, &(TENANT, name.clone()), None, 1)?;
    Ok(newest.first().map_or(0, |((_, _, version), _)| *version))
}

fn claim_in(
    tx: &mut crate::store::Tx<'_>,
    book: &crate::engine::book::Book,
    pass: &Pass,
) -> Result<Passed, crate::store::Abort> {
    if pass.processes.is_empty() {
        return Ok(Passed::default());
    }
    claim::quick_pass(tx, book, pass, None)
}

fn children_of(changes: &Changes) -> Vec<RunId> {
    changes.children.iter().map(|child| child.run).collect()
}

/// Well, with this.
pub(super) fn done(value: Value) -> AttemptEnd {
    AttemptEnd::Succeeded(Some(Arc::new(value)))
}

/// Not well.
pub(super) fn broken() -> AttemptEnd {
    AttemptEnd::Failed(StepError::new("boom", "it broke"))
}
