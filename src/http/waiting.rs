//! Why a run or a step does not go on right now: as data, as a code that stays, and as a sentence.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::waits::{for_worker, is_own_queue};
use super::{head, slots};
use crate::domain::slots::admission::{ANY_MOMENT, BEHIND, BlockedBy};
use crate::domain::slots::entry::SlotEntry;
use crate::domain::workflow::graph::build::{Graph, Node};
use crate::domain::workflow::graph::key::Key;
use crate::domain::workflow::graph::kinds::StepKind;
use crate::domain::workflow::graph::state::{Hold, Line, TaskPlace, WaitsFor};
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState};
use crate::engine::book::Book;
use crate::engine::changes::head as slot_head;
use crate::engine::changes::key_limit;
use crate::engine::changes::routing::steps;
use crate::store::tables::{READY_STEPS, STEPS, TASKS};
use crate::store::{Rows, StoreError, entries, graphs, runs};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::StepRef;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
/// Entries of a queue that are named as ahead.
const AHEAD_NAMED: usize = 5;
/// Tasks of a share that are counted as ahead.
const AHEAD_COUNTED: usize = 1_000;

/// Why a run or a step does not go on right now.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(super) struct Waiting {
    /// `slots`, `timer`, `checkpoint`, `child`, `retry`, `fairness`, `paused`, `concurrency`; also `worker` and `ready` (it is
    /// the next), `node`, `drift`, `forbid`, `branches`, and `upstream` (steps before it).
    code: &'static str,
    pub(super) text: String,
    pool: Option<String>,
    queue_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    #[serde(flatten)]
    facts: Facts,
}

/// What a reason is about; each has its own.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
struct Facts {
    /// Slots that it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<u32>,
    /// Slots that are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    free: Option<u32>,
    /// How many are before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<u64>,
    /// The first of those before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ahead_runs: Vec<String>,
    /// When it goes on, or is looked at again.
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<String>,
    /// When it is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// The checkpoint to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    /// Scopes of those who may answer; anybody who may approve, without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    approvers: Option<Vec<String>>,
    /// The run that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    child: Option<String>,
    /// The attempt that comes next.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    /// Attempts at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
    /// How the last attempt ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// The queue of tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    /// The tier of its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<String>,
    /// Its share of the tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// Why it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The key by which runs are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Runs of the key at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    /// The runs that hold a place, the oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    holders: Option<Vec<String>>,
    /// Steps that have to end before.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<String>>,
}

impl Waiting {
    /// With a code and a sentence, and nothing else.
    pub(super) fn plain(code: &'static str, text: impl Into<String>) -> Waiting {
        Waiting {
            code,
            text: text.into(),
            ..Waiting::default()
        }
    }

    /// For steps before it.
    pub(super) fn upstream(steps: Vec<String>) -> Waiting {
        Waiting::plain("upstream", format!("Waits for {}.", steps.join(", "))).with(Facts {
            steps: Some(steps),
            ..Facts::default()
        })
    }

    fn with(self, facts: Facts) -> Waiting {
        Waiting { facts, ..self }
    }
}

/// What is known of a run while its reasons are looked for.
pub(super) struct Asked<'a> {
    /// The configuration in force.
    pub(super) book: &'a Book,
    /// The run.
    pub(super) run: &'a Run,
    /// Its definition, where it is at hand: without it a reason says less.
    pub(super) graph: Option<Arc<Graph>>,
    /// Now.
    pub(super) now: Millis,
    /// Places in queues are counted too, which a list cannot afford for each of its rows.
    pub(super) placed: bool,
}

impl Asked<'_> {
    fn node(&self, step: &StepRef) -> Option<&Node> {
        let graph = self.graph.as_deref()?;
        let key = Key::of_name(graph, step)?;
        Some(graph.node(key.node))
    }
}

/// Why a run as a whole has not begun or is held; what its steps wait for is said of them.
pub(super) fn of_run(rows: &mut impl Rows, asked: &Asked<'_>) -> Result<Option<Waiting>, StoreError> {
    let run = asked.run;
    if run.graph.is_none() || run.state.is_terminal() {
        return Ok(None);
    }
    if let Some(hold) = run.graph.as_deref().and_then(|header| header.hold.as_ref()) {
        return Ok(Some(held(hold)));
    }
    if run.state != RunState::Pending {
        return Ok(None);
    }
    let Some(why) = key_limit::why(rows, run)? else {
        return Ok(Some(Waiting::plain("ready", "It begins at any moment.")));
    };
    let since =
        if let crate::domain::workflow::graph::key_limit::KeyStand::Waits { since, .. } = why.place.stand {
            Some(since.to_string())
        } else {
            None
        };
    let facts = Facts {
        key: Some(why.place.key),
        limit: Some(why.place.limit),
        holders: Some(why.holders.iter().map(ToString::to_string).collect()),
        ahead: Some(why.ahead),
        since,
        ..Facts::default()
    };
    Ok(Some(Waiting::plain("concurrency", why.sentence).with(facts)))
}

pub(super) fn held(hold: &Hold) -> Waiting {
    let why = if hold.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", hold.reason)
    };
    let text = format!("The run is paused by {} since {}{why}", hold.by, hold.since);
    Waiting::plain("paused", text).with(Facts {
        by: Some(hold.by.clone()),
        since: Some(hold.since.to_string()),
        reason: Some(hold.reason.clone()).filter(|reason| !reason.is_empty()),
        ..Facts::default()
    })
}

/// Why a step that was reached does not go on.
pub(super) fn of_step(
    rows: &mut impl Rows,
    asked: &Asked<'_>,
    step: &StepState,
) -> Result<Option<Waiting>, StoreError> {
    match &step.phase {
        StepPhase::Ready { .. } => ready(rows, asked, step).map(Some),
        StepPhase::Queued { entry, .. } => {
            let Some(entry) = entries::by_seq(rows, *entry)? else {
                return Ok(None);
            };
            for_slots(rows, asked, &entry).map(Some)
        }
        StepPhase::Retrying { due, reason, refused } => {
            Ok(Some(retry(asked, step, *due, reason, refused.as_deref())))
        }
        StepPhase::Waiting { on, .. } => waits_on(rows, asked, step, on).map(Some),
        StepPhase::Held { .. } => {
            let hold = asked.run.graph.as_deref().and_then(|header| header.hold.as_ref());
            Ok(Some(match hold {
                Some(hold) => held(hold),
                None => Waiting::plain("paused", "The run is paused."),
            }))
        }
        StepPhase::Running { .. }
        | StepPhase::Succeeded { .. }
        | StepPhase::Failed { .. }
        | StepPhase::Skipped { .. }
        | StepPhase::UpstreamFailed { .. }
        | StepPhase::Cancelled { .. } => Ok(None),
    }
}

fn ready(rows: &mut impl Rows, asked: &Asked<'_>, step: &StepState) -> Result<Waiting, StoreError> {
    let graph = step.graph.as_ref();
    if let Some(why) = graph.and_then(|graph| graph.refused.as_deref()) {
        let demand = asked.node(&step.step).and_then(|node| node.doc.slots.as_ref());
        let due = graph.and_then(|graph| graph.timer);
        let again = due.map_or_else(String::new, |due| format!("; asked again at {due}"));
        return Ok(Waiting {
            pool: demand.map(|demand| demand.slot_pool.to_string()),
            ..Waiting::plain("slots", format!("Not let in: {why}{again}"))
        }
        .with(Facts {
            needs: demand.map(|demand| demand.slots),
            due: due.map(|due| due.to_string()),
            ..Facts::default()
        }));
    }
    if let Some(Line::Tasks(place)) = graph.and_then(|graph| graph.line.as_ref()) {
        return in_line(rows, asked, place);
    }
    let ready = rows.get(&READY_STEPS, &(TENANT, asked.run.id, step.step.clone()))?;
    let elsewhere = ready
        .and_then(|ready| ready.node)
        .filter(|node| *node != asked.book.node);
    Ok(match elsewhere {
        Some(node) => Waiting::plain("node", head::for_node(rows, &node)?),
        None => Waiting::plain("ready", ANY_MOMENT),
    })
}

/// In a queue of tasks: behind others of its share, or for a worker.
fn in_line(rows: &mut impl Rows, asked: &Asked<'_>, place: &TaskPlace) -> Result<Waiting, StoreError> {
    let ahead = if asked.placed {
        let (_, _, tier, _, _) = graphs::task_key(place);
        let prefix = (TENANT, place.queue.clone(), tier, place.partition.clone());
        let line = rows.scan_each(&TASKS, &prefix, None, AHEAD_COUNTED)?;
        let numbers = line.into_iter().filter_map(|each| each.row.ok());
        let before = numbers.take_while(|((_, _, _, _, number), _)| *number < place.number);
        Some(before.count() as u64)
    } else {
        None
    };
    let is_own = is_own_queue(&place.queue);
    let tier = serde_json::to_value(place.tier).ok();
    let tier = tier.and_then(|tier| tier.as_str().map(str::to_owned));
    let (code, text) = match ahead {
        Some(ahead) if ahead > 0 => {
            let many = if ahead == 1 {
                "1 task is".to_owned()
            } else {
                format!("{ahead} tasks are")
            };
            let first = if is_own {
                String::new()
            } else {
                for_worker(&place.queue) + "; "
            };
            let text = format!(
                "{first}{many} ahead in share `{}` of tier {}",
                place.partition,
                tier.as_deref().unwrap_or_default()
            );
            ("fairness", text)
        }
        _ if is_own => ("ready", ANY_MOMENT.to_owned()),
        _ => ("worker", for_worker(&place.queue)),
    };
    Ok(Waiting::plain(code, text).with(Facts {
        queue: Some(place.queue.clone()).filter(|_| !is_own),
        tier,
        partition: Some(place.partition.clone()),
        ahead,
        ..Facts::default()
    }))
}

fn for_slots(rows: &mut impl Rows, asked: &Asked<'_>, entry: &SlotEntry) -> Result<Waiting, StoreError> {
    let head = head::of(rows, asked.book, &entry.slot_pool, asked.now)?;
    let mut facts = Facts {
        needs: Some(entry.slots),
        until: Some(entry.expires_at.to_string()),
        ..Facts::default()
    };
    let mut position = None;
    if asked.placed {
        let before = slots::place_of(rows, entry)?;
        position = Some(before + 1);
        facts.ahead = Some(before as u64);
        for (_, row) in entries::waiting(rows, &entry.slot_pool, before.min(AHEAD_NAMED))? {
            if let Some(other) = entries::by_seq(rows, row.seq)? {
                facts.ahead_runs.push(other.run.to_string());
            }
        }
        let state = slot_head::slot_pool(rows, &entry.slot_pool)?;
        let stored = slot_head::stored_slots(state.as_ref(), asked.book, &entry.slot_pool);
        facts.free = Some(stored.saturating_sub(entries::used_slots(rows, &entry.slot_pool)?));
    }
    let (code, text) = match head.filter(|head| head.id == entry.id) {
        None => ("slots", BEHIND.to_owned()),
        Some(head) => (head.blocked.map_or("ready", code_of), head.sentence),
    };
    Ok(Waiting {
        pool: Some(entry.slot_pool.to_string()),
        queue_id: Some(entry.id.to_string()),
        position,
        ..Waiting::plain(code, text)
    }
    .with(facts))
}

pub(super) fn code_of(blocked: BlockedBy) -> &'static str {
    match blocked {
        BlockedBy::Slots => "slots",
        BlockedBy::Node => "node",
        BlockedBy::JobPaused | BlockedBy::PoolPaused => "paused",
        BlockedBy::Forbid => "forbid",
        BlockedBy::Drift => "drift",
    }
}

fn retry(asked: &Asked<'_>, step: &StepState, due: Millis, reason: &str, refused: Option<&str>) -> Waiting {
    let doc = asked.node(&step.step).and_then(|node| node.doc.retry.as_ref());
    let max_attempts = doc.map(|doc| doc.max_attempts);
    let text = match (refused, max_attempts) {
        (Some(why), _) => {
            let retry = step.attempt.saturating_sub(1);
            format!("Retry {retry} waits for pool admission: {why}")
        }
        (None, Some(most)) => {
            format!(
                "Attempt {} of {most} starts at {due}; the last attempt: {reason}",
                step.attempt
            )
        }
        (None, None) => {
            let retry = step.attempt.saturating_sub(1);
            format!("Retry {retry} starts at {due}; the last attempt: {reason}")
        }
    };
    Waiting::plain("retry", text).with(Facts {
        attempt: Some(step.attempt),
        max_attempts,
        due: Some(due.to_string()),
        last_error: Some(reason.to_owned()),
        ..Facts::default()
    })
}

/// What a step waits for that takes no slots.
fn waits_on(
    rows: &mut impl Rows,
    asked: &Asked<'_>,
    step: &StepState,
    on: &WaitsFor,
) -> Result<Waiting, StoreError> {
    let due_at = |due: &Millis| Facts {
        due: Some(due.to_string()),
        ..Facts::default()
    };
    Ok(match on {
        WaitsFor::Timer { due } => Waiting::plain("timer", format!("Waits until {due}.")).with(due_at(due)),
        WaitsFor::Poke { due } => {
            Waiting::plain("timer", format!("Is asked again at {due}.")).with(due_at(due))
        }
        WaitsFor::Checkpoint | WaitsFor::Approval => for_people(asked, step, *on == WaitsFor::Approval),
        WaitsFor::Child { run } => {
            let child = runs::by_id(rows, *run)?;
            let state = child.map_or("gone", |child| child.state.word());
            Waiting::plain("child", format!("Waits for {run}, which is {state}.")).with(Facts {
                child: Some(run.to_string()),
                ..Facts::default()
            })
        }
        WaitsFor::Work { work } => {
            let stand = steps::stand_of(rows, TenantId::DEFAULT, *work)?;
            Waiting::plain("work", format!("Waits until the work {work} is done: {stand}."))
        }
        WaitsFor::Branches(branches) => {
            let ended = branches.succeeded + branches.failed;
            Waiting::plain(
                "branches",
                format!("{ended} of {} branches have ended.", branches.total),
            )
        }
    })
}

fn for_people(asked: &Asked<'_>, step: &StepState, approval: bool) -> Waiting {
    let until = step.graph.as_ref().and_then(|graph| graph.timer);
    let kind = asked.node(&step.step).map(|node| &node.doc.kind);
    let approvers = if let Some(StepKind::Approval(doc)) = kind {
        Some(doc.approvers.clone())
    } else {
        None
    };
    let who = approvers.as_deref().filter(|scopes| !scopes.is_empty());
    let who = who.map_or_else(String::new, |scopes| format!(" by {}", scopes.join(" or ")));
    let limit = until.map_or_else(String::new, |until| format!(", until {until}"));
    let text = if approval {
        format!("Waits for an approval{who}{limit}.")
    } else {
        format!("Waits until somebody resumes it{limit}.")
    };
    Waiting::plain("checkpoint", text).with(Facts {
        checkpoint: Some(format!("{}:{}", asked.run.id, step.step)),
        approvers,
        until: until.map(|until| until.to_string()),
        ..Facts::default()
    })
}

/// The reason of a run for a list: of itself, or of the first of its steps that has one.
pub(super) fn standing_of(
    rows: &mut impl Rows,
    book: &Book,
    run: &Run,
    now: Millis,
) -> Result<(u32, Option<Waiting>), StoreError> {
    let asked = Asked {
        book,
        run,
        graph: None,
        now,
        placed: false,
    };
    let mut standing = (1, of_run(rows, &asked)?);
    for (_, state) in rows.scan(&STEPS, &(TENANT, run.id), None, limits::PAGE_MAX)? {
        standing.0 = standing.0.max(state.attempt);
        if standing.1.is_none() && !run.state.is_terminal() {
            standing.1 = of_step(rows, &asked, &state)?;
        }
    }
    Ok(standing)
}

/// The run of an id with what its reasons are looked for with.
pub(super) fn asked<'a>(
    rows: &mut impl Rows,
    app: &App,
    book: &'a Book,
    run: &'a Run,
    now: Millis,
) -> Result<Asked<'a>, StoreError> {
    let graph = if run.graph.is_some() {
        app.engine.graphs.get(rows, &run.definition, run.version)?
    } else {
        None
    };
    Ok(Asked {
        book,
        run,
        graph,
        now,
        placed: true,
    })
}
