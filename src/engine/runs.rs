//! Runs of graphs at the desk: they begin, and people tell them something.

use std::sync::Arc;

use serde_json::Value;

use super::bridge;
use super::changes::claim::Passed;
use super::changes::fold::{self, Desk, Wish};
use super::changes::graph;
use super::changes::maintain::Rules;
use super::changes::remember::{Asked, Told};
use super::changes::signal::{self, Signalled};
use super::core::Engine;
use super::runner::{self, Quick};
use crate::domain::workflow::graph::document::Tier;
use crate::domain::workflow::graph::state::GraphHeader;
use crate::domain::workflow::run::{RunState, Trigger};
use crate::store::graph_rows::StoredFact;
use crate::store::{ChangeError, StoreError};
use crate::words::ids::RunId;
use crate::words::names::JobName;

/// A wish for a run.
#[derive(Debug, Clone)]
pub struct NewRun {
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
    },
    /// There is no such definition, or no such version of it.
    NotFound,
    /// The input is not what the definition wants.
    BadInput(Vec<String>),
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
pub async fn begin(
    engine: &Engine,
    wish: NewRun,
    mut asked: Asked<Begun>,
) -> Result<Told<Begun>, BeginError> {
    let for_read = engine.clone();
    let blobs = engine.store.blobs();
    let prepared = engine.read(move |tx| {
        let desk = Desk {
            shelf: &for_read.graphs,
            blobs: &blobs,
            now: for_read.now().wall,
            rules: Rules {
                expiry_held: for_read.clock_watch.holds_expiry(for_read.now()),
            },
        };
        prepare(tx, &desk, &wish)
    });
    let prepared = match prepared.await? {
        Ok(prepared) => prepared,
        Err(refused) => return Ok(Told::Now(refused, None)),
    };
    let wants_process = !prepared.changes.dispatch.is_empty();
    let (mut shims, quick) = if wants_process {
        Quick::prepare(engine, None)
    } else {
        Quick::nothing(engine)
    };
    let queues = bridge::queues_of(&prepared.graph, &prepared.changes);
    let meeting = bridge::Meeting::of(engine, &queues);
    let passes = meeting.passes();
    let book = engine.book();
    let prepared = Arc::new(prepared);
    let begun = Begun::Run {
        id: prepared.changes.run.id,
        version: prepared.changes.run.version,
        state: prepared.changes.run.state.clone(),
    };
    let changed = engine.store.change("begin run", move |tx| {
        let told = asked.once(tx, |tx| {
            graph::begin(tx, &book, &prepared)?;
            Ok(begun.clone())
        })?;
        let passed = match &told {
            Told::Now(Begun::Run { .. }, _) => quick.claim(tx)?,
            Told::Now(..) | Told::Before(_) | Told::KeyReused | Told::Moved(_) => Passed::default(),
        };
        let met = bridge::meet(tx, &passes)?;
        Ok((told, passed, met))
    });
    let (told, passed, met) = changed.await?;
    meeting.hand_over(engine, met);
    runner::act(engine, passed, &mut shims);
    engine.warm.give_back(shims);
    engine.mailboxes.look();
    if wants_process {
        engine.wake.notify_one();
        engine.mailboxes.tasks.notify_waiters();
    }
    Ok(told)
}

fn prepare(
    tx: &mut crate::store::ReadTx,
    desk: &Desk<'_>,
    wish: &NewRun,
) -> Result<Result<graph::Begin, Begun>, StoreError> {
    let newest = fold::newest_version(tx, &wish.definition)?;
    let Some(version) = wish.version.or(newest) else {
        return Ok(Err(Begun::NotFound));
    };
    let Some(graph) = desk.shelf.get(tx, &wish.definition, version)? else {
        return Ok(Err(Begun::NotFound));
    };
    let mut labels = wish.labels.clone();
    for (name, value) in &graph.document.labels {
        if !labels.iter().any(|(known, _)| known == name) {
            labels.push((name.clone(), value.clone()));
        }
    }
    let fairness_key = match graph.share_of(&wish.input) {
        Ok(share) => share,
        Err(fault) => {
            return Ok(Err(Begun::BadInput(vec![format!(
                "fairness.key of the workflow: {}",
                fault.message
            )])));
        }
    };
    let header = GraphHeader {
        fairness_key,
        tier: wish.tier.unwrap_or(graph.document.fairness.tier),
        labels,
        ..GraphHeader::default()
    };
    let wish = Wish {
        id: RunId::fresh(),
        definition: wish.definition.clone(),
        version,
        trigger: wish.trigger.clone(),
        input: Arc::clone(&wish.input),
        header,
        node: None,
    };
    fold::begin(tx, desk, graph, wish).map(Ok)
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
