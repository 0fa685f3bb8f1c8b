//! From what is stored of a run to its next tick: reads the rows that matter and computes, writes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::graph::{Begin, EndedClaim, Moved};
use super::key_limit::Gate;
use super::routing::steps;
use super::{maintain, workflows};
use crate::domain::payload::Payload;
use crate::domain::workflow::graph::again::{self, NotAgain};
use crate::domain::workflow::graph::build::Graph;
use crate::domain::workflow::graph::items::Items;
use crate::domain::workflow::graph::key::ValueName;
use crate::domain::workflow::graph::kinds::StepKind;
use crate::domain::workflow::graph::state::GraphHeader;
use crate::domain::workflow::graph::tick::{AttemptEnd, Changes, Fact, NewChild, StepError, View, tick};
use crate::domain::workflow::run::{Run, RunState, StepState, Trigger};
use crate::engine::graphs::GraphShelf;
use crate::store::blobs::Blobs;
use crate::store::graph_rows::StoredFact;
use crate::store::tables::STEPS;
use crate::store::{Rows, StoreError, graphs, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::{JobName, StepRef};
use crate::words::payload::JsonText;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// What a tick needs besides rows.
#[derive(Debug)]
pub struct Desk<'a> {
    /// Compiled definitions.
    pub shelf: &'a GraphShelf,
    /// Large values.
    pub blobs: &'a Blobs,
    /// Now.
    pub now: Millis,
    /// Whether what is overdue in slot pools may expire with it.
    pub rules: maintain::Rules,
}

/// What is stored of a run, as its tick reads it.
struct Stored<'a, R: Rows> {
    rows: &'a mut R,
    blobs: &'a Blobs,
    run: RunId,
}

impl<R: Rows> View for Stored<'_, R> {
    type Error = StoreError;

    fn step(&mut self, name: &StepRef) -> Result<Option<StepState>, StoreError> {
        runs::step(self.rows, self.run, name)
    }

    fn value(&mut self, name: &ValueName) -> Result<Option<Arc<Value>>, StoreError> {
        value_of(self.rows, self.blobs, self.run, name)
    }

    fn open_steps(&mut self) -> Result<Vec<StepState>, StoreError> {
        let all = self.rows.scan(&STEPS, &(TENANT, self.run), None, usize::MAX)?;
        let open = all.into_iter().map(|(_, step)| step);
        Ok(open.filter(StepState::is_open).collect())
    }
}

/// What is stored of a run, for who computes something of it without a tick.
pub fn stored<'a, R: Rows>(
    rows: &'a mut R,
    blobs: &'a Blobs,
    run: RunId,
) -> impl View<Error = StoreError> + use<'a, R> {
    Stored { rows, blobs, run }
}

/// A run that has nothing stored yet but its input.
struct Fresh(Arc<Value>);

impl View for Fresh {
    type Error = StoreError;

    fn step(&mut self, _name: &StepRef) -> Result<Option<StepState>, StoreError> {
        Ok(None)
    }

    fn value(&mut self, name: &ValueName) -> Result<Option<Arc<Value>>, StoreError> {
        Ok((*name == ValueName::Input).then(|| Arc::clone(&self.0)))
    }

    fn open_steps(&mut self) -> Result<Vec<StepState>, StoreError> {
        Ok(Vec::new())
    }
}

/// A value of a run.
pub fn value_of(
    rows: &mut impl Rows,
    blobs: &Blobs,
    run: RunId,
    name: &ValueName,
) -> Result<Option<Arc<Value>>, StoreError> {
    let Some(payload) = graphs::value(rows, run, name)? else {
        return Ok(None);
    };
    json_of(blobs, run, &name.to_string(), &payload).map(|value| Some(Arc::new(value)))
}

fn unreadable(run: RunId, name: &str, cause: &str) -> StoreError {
    StoreError::Unreadable {
        table: "values",
        key: format!("{run} {name}"),
        cause: cause.to_owned(),
    }
}

fn json_of(blobs: &Blobs, run: RunId, name: &str, payload: &Payload) -> Result<Value, StoreError> {
    let damaged = |cause: String| unreadable(run, name, &cause);
    let text = blobs.read(payload).map_err(|error| damaged(error.to_string()))?;
    text.read().map_err(|error| damaged(error.to_string()))
}

/// A run that is to begin.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Its id.
    pub id: RunId,
    /// Its definition.
    pub definition: JobName,
    /// The version that it pins.
    pub version: u32,
    /// What begins it.
    pub trigger: Trigger,
    /// Its input.
    pub input: Arc<Value>,
    /// What its header begins with.
    pub header: GraphHeader,
    /// The daemon it is bound to.
    pub node: Option<crate::words::names::NodeName>,
}

/// The first tick of a run.
#[expect(clippy::needless_pass_by_value, reason = "a wish is for one run")]
pub fn begin(
    rows: &mut impl Rows,
    desk: &Desk<'_>,
    graph: Arc<Graph>,
    wish: Wish,
) -> Result<Begin, StoreError> {
    let run = run_of(&wish, desk.now);
    let mut view = Fresh(Arc::clone(&wish.input));
    let changes = tick(
        &graph,
        &run,
        &[Fact::Begun],
        desk.now,
        &mut view,
        &mut RunId::fresh,
    )?;
    let mut values = payloads(desk.blobs, &changes)?;
    let input = vec![(ValueName::Input, payload(desk.blobs, &wish.input)?)];
    values.extend(input.iter().cloned());
    let children = children(rows, desk, &graph, &changes)?;
    let gate = Gate::of(&graph, run, Vec::new(), input);
    Ok(Begin {
        gate,
        graph,
        changes,
        values,
        children,
        rules: desk.rules,
    })
}

/// A run that takes over what another has done, as its first tick reads it.
struct TakenOver<'a, R: Rows> {
    stored: Stored<'a, R>,
    names: BTreeSet<ValueName>,
}

impl<R: Rows> View for TakenOver<'_, R> {
    type Error = StoreError;

    fn step(&mut self, _name: &StepRef) -> Result<Option<StepState>, StoreError> {
        Ok(None)
    }

    fn value(&mut self, name: &ValueName) -> Result<Option<Arc<Value>>, StoreError> {
        if self.names.contains(name) {
            self.stored.value(name)
        } else {
            Ok(None)
        }
    }

    fn open_steps(&mut self) -> Result<Vec<StepState>, StoreError> {
        Ok(Vec::new())
    }
}

/// The first tick of a run that tries another one again, from a step on or from what failed.
#[expect(clippy::needless_pass_by_value, reason = "a wish is for one run")]
pub fn begin_again(
    rows: &mut impl Rows,
    desk: &Desk<'_>,
    of: &Run,
    from: Option<&StepRef>,
    wish: Wish,
) -> Result<Result<Begin, NotAgain>, StoreError> {
    let graph = desk.shelf.get(rows, &of.definition, of.version)?;
    let graph = graph.ok_or_else(|| missing_version(of))?;
    let steps = steps_of(rows, of.id)?;
    let done = match again::taken_over(&graph, &steps, from, desk.now) {
        Ok(done) => done,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let mut names = BTreeSet::from([ValueName::Input]);
    for step in &done {
        names.insert(ValueName::Output(step.step.clone()));
        names.insert(ValueName::Error(step.step.clone()));
        let items = ValueName::Items(step.step.clone());
        if let Some(kept) = value_of(rows, desk.blobs, of.id, &items)? {
            let pages = 0..Items::read(&kept).count();
            names.extend(pages.map(|page| ValueName::ItemPage(step.step.clone(), page)));
            names.insert(items);
        }
    }
    let run = run_of(&wish, desk.now);
    let mut view = TakenOver {
        stored: Stored {
            rows,
            blobs: desk.blobs,
            run: of.id,
        },
        names: names.clone(),
    };
    let facts = [Fact::BegunWith(done.clone())];
    let changes = tick(&graph, &run, &facts, desk.now, &mut view, &mut RunId::fresh)?;
    let mut values = payloads(desk.blobs, &changes)?;
    let mut taken_over = Vec::new();
    for name in names {
        if let Some(payload) = graphs::value(rows, of.id, &name)? {
            // The other run may go before this one is written, and what it named with it.
            let renewed = desk.blobs.renew(&payload);
            renewed.map_err(|error| unreadable(of.id, &name.to_string(), &error.to_string()))?;
            taken_over.push((name, payload));
        }
    }
    values.extend(taken_over.iter().cloned());
    let children = children(rows, desk, &graph, &changes)?;
    let gate = Gate::of(&graph, run, done, taken_over);
    Ok(Ok(Begin {
        gate,
        graph,
        changes,
        values,
        children,
        rules: desk.rules,
    }))
}

fn steps_of(rows: &mut impl Rows, run: RunId) -> Result<Vec<StepState>, StoreError> {
    let all = rows.scan(&STEPS, &(TENANT, run), None, usize::MAX)?;
    Ok(all.into_iter().map(|(_, step)| step).collect())
}

fn missing_version(run: &Run) -> StoreError {
    StoreError::Unreadable {
        table: "definitions",
        key: format!("{} version {}", run.definition, run.version),
        cause: "it is missing".to_owned(),
    }
}

fn run_of(wish: &Wish, now: Millis) -> Run {
    Run {
        id: wish.id,
        definition: wish.definition.clone(),
        version: wish.version,
        trigger: wish.trigger.clone(),
        node: wish.node.clone(),
        created_at: now,
        record_version: 0,
        state: RunState::Pending,
        graph: Some(Box::new(wish.header.clone())),
    }
}

/// The first tick of a run that has no input, of a graph whose first steps read nothing and begin no runs: needs no rows.
pub fn begin_without_input(graph: Arc<Graph>, wish: &Wish, now: Millis, rules: maintain::Rules) -> Begin {
    let run = run_of(wish, now);
    let mut view = Fresh(Arc::clone(&wish.input));
    let changes = match tick(&graph, &run, &[Fact::Begun], now, &mut view, &mut RunId::fresh) {
        Ok(changes) => changes,
        Err(error) => panic!("run {}: nothing was read: {error}", run.id),
    };
    assert!(
        changes.values.is_empty() && changes.children.is_empty(),
        "the first steps of {} are work",
        run.definition
    );
    let null = Payload::Inline(JsonText::of(&*wish.input).expect("a JSON value is JSON"));
    Begin {
        gate: None,
        graph,
        changes,
        values: vec![(ValueName::Input, null)],
        children: Vec::new(),
        rules,
    }
}

/// What was posted to a run.
#[derive(Debug, Default)]
pub struct Posted {
    /// Facts, in order.
    pub facts: Vec<Fact>,
    /// Claims that have ended.
    pub claims: Vec<EndedClaim>,
    /// Timers that are due.
    pub timers: Vec<Fact>,
}

/// The next tick of a run: what is stored first, then what was posted, then timers. `None` if there is no such run.
pub fn fold(
    rows: &mut impl Rows,
    desk: &Desk<'_>,
    id: RunId,
    posted: &Posted,
) -> Result<Option<(Moved, usize)>, StoreError> {
    let Some(run) = runs::by_id(rows, id)?.filter(|run| run.graph.is_some()) else {
        return Ok(None);
    };
    let graph = desk.shelf.get(rows, &run.definition, run.version)?;
    let graph = graph.ok_or_else(|| missing_version(&run))?;
    let mut facts = Vec::new();
    let mut folded = Vec::new();
    for (number, stored) in graphs::facts_of(rows, id)? {
        folded.push(number);
        facts.push(fact_of(rows, desk, id, stored)?);
    }
    let stored = facts.len();
    facts.extend(posted.facts.iter().cloned());
    facts.extend(posted.timers.iter().cloned());
    let mut view = Stored {
        rows,
        blobs: desk.blobs,
        run: id,
    };
    let changes = tick(&graph, &run, &facts, desk.now, &mut view, &mut RunId::fresh)?;
    let values = payloads(desk.blobs, &changes)?;
    let children = children(rows, desk, &graph, &changes)?;
    let moved = Moved {
        version: run.record_version,
        graph,
        changes,
        values,
        claims: posted.claims.clone(),
        folded,
        children,
        rules: desk.rules,
    };
    Ok(Some((moved, stored)))
}

fn payloads(blobs: &Blobs, changes: &Changes) -> Result<Vec<(ValueName, Payload)>, StoreError> {
    let each = changes.values.iter();
    each.map(|(name, value)| Ok((name.clone(), payload(blobs, value)?)))
        .collect()
}

fn payload(blobs: &Blobs, value: &Value) -> Result<Payload, StoreError> {
    let json = JsonText::of(value).expect("a JSON value is JSON");
    blobs.put_json(json).map_err(|error| StoreError::Unreadable {
        table: "values",
        key: "a new value".to_owned(),
        cause: error.to_string(),
    })
}

/// A stored fact, as a tick takes it.
pub fn fact_of(
    rows: &mut impl Rows,
    desk: &Desk<'_>,
    run: RunId,
    stored: StoredFact,
) -> Result<Fact, StoreError> {
    Ok(match stored {
        StoredFact::EntryClosed { step, entry, reason } => Fact::EntryClosed { step, entry, reason },
        StoredFact::AttemptEnded {
            step,
            fence,
            cancelled,
            reason,
        } => Fact::Attempt {
            step,
            fence,
            end: if cancelled {
                AttemptEnd::Cancelled(reason)
            } else {
                AttemptEnd::Failed(StepError::new("attempt.given_up", reason).for_good())
            },
        },
        StoredFact::Child { step, run } => {
            let end = child_end(rows, desk, run)?;
            Fact::Child { step, run, end }
        }
        StoredFact::WorkOver { step, attempt, work } => {
            let end = steps::end_of(rows, TENANT, work)?;
            Fact::WorkOver { step, attempt, end }
        }
        StoredFact::Resume { step, value, by } => {
            let value = Arc::new(json_of(desk.blobs, run, "an answer", &value)?);
            Fact::Resume { step, value, by }
        }
        StoredFact::Decide {
            step,
            approve,
            note,
            by,
        } => Fact::Decide {
            step,
            approve,
            note,
            by,
        },
        StoredFact::Begin => match steps_of(rows, run)? {
            done if done.is_empty() => Fact::Begun,
            done => Fact::BegunWith(done),
        },
        StoredFact::Cancel { by } => Fact::Cancel { by },
        StoredFact::Pause { by, reason } => Fact::Pause { by, reason },
        StoredFact::Unpause { by } => Fact::Unpause { by },
    })
}

type ChildEnd = Result<Option<Arc<Value>>, StepError>;

fn child_end(rows: &mut impl Rows, desk: &Desk<'_>, id: RunId) -> Result<ChildEnd, StoreError> {
    let Some(run) = runs::by_id(rows, id)? else {
        return Ok(Err(StepError::new("child.gone", format!("{id} was removed"))));
    };
    if matches!(run.state, RunState::Succeeded { .. }) {
        return value_of(rows, desk.blobs, id, &ValueName::Result).map(Ok);
    }
    let word = run.state.word();
    let reason = run.state.reason().unwrap_or_default();
    Ok(Err(StepError::new(
        format!("child.{word}"),
        format!("{id} {word}: {reason}"),
    )))
}

/// The runs that begin with a tick, each with its own first tick.
fn children(
    rows: &mut impl Rows,
    desk: &Desk<'_>,
    graph: &Graph,
    changes: &Changes,
) -> Result<Vec<Begin>, StoreError> {
    let mut begun = Vec::with_capacity(changes.children.len());
    for child in &changes.children {
        begun.push(begin_child(rows, desk, graph, &changes.run, child)?);
    }
    Ok(begun)
}

fn begin_child(
    rows: &mut impl Rows,
    desk: &Desk<'_>,
    graph: &Graph,
    parent: &Run,
    child: &NewChild,
) -> Result<Begin, StoreError> {
    let (step, _) = child
        .step
        .split_instance()
        .unwrap_or((child.step.clone(), Vec::new()));
    let node = graph.find(&step).map(|id| graph.node(id));
    let unknown = || StoreError::Unreadable {
        table: "definitions",
        key: format!("step {step}"),
        cause: "it is no sub-workflow".to_owned(),
    };
    let Some(StepKind::Subworkflow(sub)) = node.map(|node| &node.doc.kind) else {
        return Err(unknown());
    };
    let name = JobName::new(&sub.family_slug).map_err(|_| unknown())?;
    let found = workflows::version_of_new_run(rows, &name, sub.version)?;
    let version = found.unwrap_or(sub.version.unwrap_or(0));
    let refused = found.err().map(|why| why.sentence(&name));
    let header = parent.graph.as_deref().cloned().unwrap_or_default();
    let depth = header.depth + 1;
    let found = desk.shelf.get(rows, &name, version)?;
    let place = found.as_ref().map(|graph| graph.key_place_of(&child.input));
    let (key_place, no_key) = match place.transpose() {
        Ok(place) => (place.flatten(), None),
        Err(why) => (None, Some(no_key(&why))),
    };
    let header = GraphHeader {
        key_place,
        parent: sub.wait.then(|| (parent.id, child.step.clone())),
        depth,
        tier: header.tier,
        fairness_key: header.fairness_key,
        ..GraphHeader::default()
    };
    let wish = Wish {
        id: child.run,
        definition: name,
        version,
        trigger: Trigger::Child {
            parent: parent.id,
            step: child.step.clone(),
        },
        input: Arc::clone(&child.input),
        header,
        node: parent.node.clone(),
    };
    if let Some(why) = refused.or(no_key) {
        return Ok(stillborn(desk, wish, &why));
    }
    match found {
        Some(graph) if depth <= limits::RUN_DEPTH_MAX => begin(rows, desk, graph, wish),
        Some(_) => Ok(stillborn(desk, wish, "runs begin runs more than 8 levels deep")),
        None => Ok(stillborn(desk, wish, "there is no such workflow")),
    }
}

/// Why a run cannot begin whose key has no value.
pub fn no_key(why: &str) -> String {
    format!("`concurrency.key` of the workflow has no value for this input: {why}")
}

/// A run that fails where it begins, so that who waits for it hears why.
fn stillborn(desk: &Desk<'_>, wish: Wish, why: &str) -> Begin {
    let run = Run {
        id: wish.id,
        definition: wish.definition,
        version: wish.version,
        trigger: wish.trigger,
        node: wish.node,
        created_at: desk.now,
        record_version: 1,
        state: RunState::Failed {
            started_at: None,
            ended_at: desk.now,
            reason: why.to_owned(),
        },
        graph: Some(Box::new(wish.header)),
    };
    let document = crate::domain::workflow::graph::document::Document::empty(run.definition.as_str());
    Begin {
        gate: None,
        graph: Arc::new(Graph::build(document).expect("a graph without steps")),
        changes: Changes::none(run),
        values: Vec::new(),
        children: Vec::new(),
        rules: desk.rules,
    }
}
