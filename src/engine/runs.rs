//! Runs of graphs at the desk: they begin, and people tell them something.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::book::Book;
use super::changes::claim::Passed;
use super::changes::fold::{self, Desk, Wish};
use super::changes::graph::{self, Ready};
use super::changes::key_limit;
use super::changes::remember::{Asked, Told};
use super::changes::signal::{self, Signalled};
use super::changes::try_again::{self, NotTried};
use super::changes::workflows::{self, NoStart};
use super::core::Engine;
use super::moving;
use super::runner::{self, Quick};
use crate::domain::payload::Payload;
use crate::domain::workflow::graph::document::Tier;
use crate::domain::workflow::graph::key::{Key, ValueName};
use crate::domain::workflow::graph::kinds::{Checkpoint, StepKind};
use crate::domain::workflow::graph::state::GraphHeader;
use crate::domain::workflow::run::{Run, RunState, Trigger};
use crate::expr::schema::{Issue, Schema};
use crate::store::graph_rows::StoredFact;
use crate::store::tables::WORKFLOWS;
use crate::store::{ChangeError, ReadTx, Rows, StoreError, graphs, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::names::{JobName, StepRef};

const TENANT: TenantId = TenantId::DEFAULT;

/// A wish for a run.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its id.
    pub id: RunId,
    /// The definition.
    pub definition: JobName,
    /// Its version; the newest unless given.
    pub version: Option<u32>,
    /// The input.
    pub input: Arc<Value>,
    /// For filters.
    pub labels: Vec<(String, String)>,
    /// Its tier; that of the definition unless given.
    pub tier: Option<Tier>,
    /// What begins it.
    pub trigger: Trigger,
}

/// What became of a wish.
#[derive(Debug, Clone, PartialEq)]
pub enum Begun {
    /// It runs, or has run already.
    Run {
        /// Its id.
        id: RunId,
        /// The version that it has pinned.
        version: u32,
        /// Where it stands now.
        state: RunState,
        /// Why it has not begun yet.
        waits: Option<String>,
        /// What it has made, if it has ended already.
        result: Option<Payload>,
    },
    /// There is no such definition, or no such version of it.
    NotFound,
    /// The input is not what the definition wants.
    BadInput(Vec<Issue>),
    /// It cannot begin; why.
    Refused(String),
    /// The disk has too little room for a new run.
    NoRoom,
}

/// Why a wish could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// A read.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// The change.
    #[error(transparent)]
    Change(#[from] ChangeError),
}

/// Begins a run.
pub async fn begin(engine: &Engine, wish: NewRun, asked: Asked<Begun>) -> Result<Told<Begun>, BeginError> {
    let book = engine.book();
    begin_as(engine, asked, move |tx, desk| prepare(tx, desk, &book, &wish)).await
}

/// Begins a run with the input and the labels of another, by the newest version.
pub async fn rerun(
    engine: &Engine,
    of: RunId,
    principal: String,
    asked: Asked<Begun>,
) -> Result<Told<Begun>, BeginError> {
    let book = engine.book();
    begin_as(engine, asked, move |tx, desk| {
        let Some(run) = graph_run(tx, of)? else {
            return Ok(Err(Begun::NotFound));
        };
        let input = fold::value_of(tx, desk.blobs, of, &ValueName::Input)?;
        let header = run.graph.as_deref().cloned().unwrap_or_default();
        let wish = NewRun {
            id: RunId::fresh(),
            definition: run.definition,
            version: None,
            input: input.unwrap_or_default(),
            labels: header.labels,
            tier: Some(header.tier),
            trigger: Trigger::Rerun {
                principal: principal.clone(),
                of,
            },
        };
        prepare(tx, desk, &book, &wish)
    })
    .await
}

/// Begins a run that takes over what another one has done and tries the rest again: from a step on, or what failed.
pub async fn retry(
    engine: &Engine,
    of: RunId,
    from: Option<StepRef>,
    principal: String,
    asked: Asked<Begun>,
) -> Result<Told<Begun>, BeginError> {
    begin_as(engine, asked, move |tx, desk| {
        let prepared = try_again::prepare(tx, desk, of, from.as_ref(), &principal)?;
        Ok(prepared.map_err(|why| match why {
            NotTried::NotFound => Begun::NotFound,
            NotTried::Refused(why) => Begun::Refused(why),
        }))
    })
    .await
}

fn graph_run(tx: &mut ReadTx, id: RunId) -> Result<Option<Run>, StoreError> {
    let run = runs::by_id(tx, id)?;
    Ok(run.filter(|run| run.graph.is_some()))
}

type Prepared = Result<graph::Begin, Begun>;

async fn begin_as<F>(engine: &Engine, mut asked: Asked<Begun>, prepare: F) -> Result<Told<Begun>, BeginError>
where
    F: FnMut(&mut ReadTx, &Desk<'_>) -> Result<Prepared, StoreError> + Send + 'static,
{
    if engine.disk.lack().is_some() {
        return Ok(Told::Now(Begun::NoRoom, None));
    }
    let prepared = moving::at_desk(engine, prepare);
    let prepared = match prepared.await? {
        Ok(prepared) => prepared,
        Err(refused) => return Ok(Told::Now(refused, None)),
    };
    let ready = Ready::of(&prepared.graph, &prepared.changes, &prepared.children);
    let (mut shims, quick) = if ready.processes > 0 {
        Quick::prepare(engine, None, 1)
    } else {
        Quick::nothing(engine)
    };
    let timed = graph::is_timed(&prepared.changes, &prepared.children);
    let meeting = moving::Meeting::of(engine, &ready.sought());
    let (waiting, queues) = (meeting.passes(), ready.sought());
    let book = engine.book();
    let result = prepared
        .values
        .iter()
        .find(|(name, _)| *name == ValueName::Result);
    let result = result.map(|(_, payload)| payload.clone());
    let changed = engine.store.change("begin run", move |tx| {
        let told = asked.once(tx, |tx| {
            let run = graph::begin(tx, &book, &prepared)?;
            Ok(Begun::Run {
                id: run.id,
                version: run.version,
                waits: key_limit::why(tx, &run)?.map(|why| why.sentence),
                result: result
                    .clone()
                    .filter(|_| matches!(run.state, RunState::Succeeded { .. })),
                state: run.state,
            })
        })?;
        let passed = match &told {
            Told::Now(Begun::Run { .. }, _) => quick.claim(tx)?,
            Told::Now(..) | Told::Before(_) | Told::KeyReused | Told::Moved(_) => Passed::default(),
        };
        let met = moving::meet(tx, &waiting, &queues)?;
        Ok((told, passed, met, tx.has_told(graphs::FACT)))
    });
    let (told, passed, met, tells) = changed.await?;
    meeting.hand_over(engine, met);
    runner::act(engine, passed, &mut shims);
    engine.warm.give_back(shims);
    if timed || tells {
        engine.mailboxes.look();
    }
    engine.rouse(&ready);
    Ok(told)
}

/// A dag begins as the configuration in force says it, and with nothing.
fn dag_of(book: &Book, wish: &NewRun) -> Result<(), Begun> {
    let name = &wish.definition;
    let Some(job) = book.jobs.get(name).filter(|job| job.definition.is_graph()) else {
        return Err(Begun::NotFound);
    };
    if !job.definition.enabled {
        return Err(Begun::Refused(format!("dag '{name}' is disabled")));
    }
    if wish.version.is_some_and(|version| version != job.version) {
        let why = format!(
            "dag '{name}' begins by the configuration in force, which is version {}",
            job.version
        );
        return Err(Begun::Refused(why));
    }
    let is_empty = match &*wish.input {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    };
    if !is_empty {
        return Err(Begun::BadInput(vec![Issue {
            pointer: String::new(),
            message: "a dag of the configuration takes no input".to_owned(),
        }]));
    }
    Ok(())
}

fn prepare(tx: &mut ReadTx, desk: &Desk<'_>, book: &Book, wish: &NewRun) -> Result<Prepared, StoreError> {
    if !tx.has(&WORKFLOWS, &(TENANT, wish.definition.clone()))?
        && let Err(refused) = dag_of(book, wish)
    {
        return Ok(Err(refused));
    }
    let version = match workflows::version_of_new_run(tx, &wish.definition, wish.version)? {
        Ok(version) => version,
        Err(NoStart::Missing | NoStart::NoVersion(_)) => return Ok(Err(Begun::NotFound)),
        Err(why @ (NoStart::Deprecated(_) | NoStart::AllDeprecated)) => {
            return Ok(Err(Begun::Refused(why.sentence(&wish.definition))));
        }
    };
    let Some(graph) = desk.shelf.get(tx, &wish.definition, version)? else {
        return Ok(Err(Begun::NotFound));
    };
    // Nothing is an object without members where one is wanted.
    let wants_object = graph
        .document
        .input_schema
        .as_ref()
        .is_some_and(|schema| schema["type"] == "object");
    let input = if wants_object && wish.input.is_null() {
        Arc::new(Value::Object(Map::new()))
    } else {
        Arc::clone(&wish.input)
    };
    let issues = graph.input_issues(&input);
    if !issues.is_empty() {
        return Ok(Err(Begun::BadInput(issues)));
    }
    let mut labels = wish.labels.clone();
    for (name, value) in &graph.document.labels {
        if !labels.iter().any(|(known, _)| known == name) {
            labels.push((name.clone(), value.clone()));
        }
    }
    let fairness_key = match graph.share_of(&input) {
        Ok(share) => share,
        Err(fault) => {
            let why = format!(
                "`fairness.key` of the workflow has no value for this input: {}",
                fault.message
            );
            return Ok(Err(Begun::Refused(why)));
        }
    };
    let key_place = match graph.key_place_of(&wish.input) {
        Ok(place) => place,
        Err(why) => return Ok(Err(Begun::Refused(fold::no_key(&why)))),
    };
    let header = GraphHeader {
        key_place,
        fairness_key,
        tier: wish.tier.unwrap_or(graph.document.fairness.tier),
        labels,
        ..GraphHeader::default()
    };
    let wish = Wish {
        id: wish.id,
        definition: wish.definition.clone(),
        version,
        trigger: wish.trigger.clone(),
        input,
        header,
        node: None,
    };
    fold::begin(tx, desk, graph, wish).map(Ok)
}

/// What is wrong with an answer to a checkpoint, by the schema of its definition. Nothing is wrong with one that nobody waits
/// for: that is told where it would be kept.
pub async fn faults_of_answer(
    engine: &Engine,
    id: RunId,
    step: StepRef,
    value: Value,
) -> Result<Vec<Issue>, StoreError> {
    let shelf = engine.graphs.clone();
    let read = engine.read(move |tx| {
        let Some(run) = graph_run(tx, id)? else {
            return Ok(Vec::new());
        };
        let graph = shelf.get(tx, &run.definition, run.version)?;
        let key = graph.as_deref().and_then(|graph| Key::of_name(graph, &step));
        let kind = graph.as_deref().zip(key.as_ref());
        let kind = kind.map(|(graph, key)| &graph.node(key.node).doc.kind);
        let Some(StepKind::Checkpoint(Checkpoint {
            schema: Some(schema), ..
        })) = kind
        else {
            return Ok(Vec::new());
        };
        Ok(faults_by(schema, &value))
    });
    read.await
}

fn faults_by(schema: &Value, value: &Value) -> Vec<Issue> {
    match Schema::compile(schema) {
        Ok(schema) => schema.check(value),
        Err(issues) => issues,
    }
}

/// Tells a run something; it is kept at once and folded into the run a moment later.
pub async fn tell(
    engine: &Engine,
    id: RunId,
    fact: StoredFact,
    mut asked: Asked<Signalled>,
) -> Result<Told<Signalled>, ChangeError> {
    let told = engine
        .store
        .change("signal", move |tx| {
            asked.once(tx, |tx| signal::signal(tx, id, &fact))
        })
        .await?;
    engine.mailboxes.look();
    Ok(told)
}
