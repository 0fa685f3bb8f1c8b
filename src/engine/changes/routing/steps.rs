//! Steps of runs that route: one decision for each attempt, whatever dies meanwhile, and a fact for the run when its work is
//! over. Who waits stands in a row from the decision on, so that no end is missed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::route::{self, Judged, No, Routed, Wish};
use super::shelf::Shelf;
use super::world::Tenancy;
use super::write::Written;
use crate::domain::routing::assignment::{Assignment, EndKind};
use crate::domain::workflow::graph::tick::StepError;
use crate::store::decisions::{self, Filter};
use crate::store::graph_rows::StoredFact;
use crate::store::keys::DigestKey;
use crate::store::live_rows::{DecisionRow, WorkWaiter};
use crate::store::routing_live::{self, Lookup};
use crate::store::tables::{DECISION_INDEX, WORK_WAITERS};
use crate::store::{Abort, Rows, StoreError, Tx, graphs, offers, routing_objects, runs, waiting_work};
use crate::words::ids::{DecisionId, TenantId, WorkId};
use crate::words::limits;
use crate::words::payload::JsonText;

/// Decisions over the same work that are looked through for who has done it.
const DECISIONS_LOOKED_AT: usize = 256;
/// Outcomes after which work waits: where nobody had it after them, it was taken away.
const WAITS: [&str; 6] = [
    "queued",
    "queued_for_claim",
    "offered",
    "overflowed",
    "deferred_catchall",
    "escalated",
];

/// What became of the work of a step.
#[derive(Debug, Clone)]
pub enum Done {
    /// It is decided: the text of the decision, and whether somebody has the work, or may get it yet.
    Decided {
        /// The decision.
        text: JsonText,
        /// Over which work: where the work of the step is a duplicate, the work that was routed before.
        work: WorkId,
        /// The work is not over.
        is_open: bool,
        /// The decision, if it was made now.
        written: Option<Box<Written>>,
    },
    /// It is not.
    Not(No),
    /// It is a duplicate of work for which so many wait that nobody else may.
    Crowded(WorkId),
}

/// Decides, unless this attempt has a decision; with a waiter its step hears when the work is over.
pub fn decide(
    tx: &mut Tx<'_>,
    (shelf, tenancy): (&Shelf, &Tenancy),
    wish: &Wish,
    judged: &Judged,
    waiter: Option<&WorkWaiter>,
) -> Result<Done, Abort> {
    let (tenant, work) = (tenancy.tenant, wish.request.work.id);
    if let Some((_, first)) = of_work(tx, tenant, work, true, 1)?.into_iter().next() {
        return Ok(Done::Decided {
            text: first.text,
            work,
            is_open: tx.has(&WORK_WAITERS, &(tenant, work, work))?,
            written: None,
        });
    }
    let written = match route::commit(tx, shelf, tenancy, wish, Some(judged))? {
        Routed::Decided(written) => written,
        Routed::Existing(existing, text) => {
            let is_open = waiter.is_some() && is_open(tx, tenant, existing)?;
            if let Some(waiter) = waiter.filter(|_| is_open) {
                let key = (tenant, existing, work);
                let most = limits::WORK_WAITERS_MAX;
                let others = tx.scan(&WORK_WAITERS, &(tenant, existing), None, most)?.len();
                if others >= most && !tx.has(&WORK_WAITERS, &key)? {
                    return Ok(Done::Crowded(existing));
                }
                tx.put(&WORK_WAITERS, &key, waiter)?;
            }
            return Ok(Done::Decided {
                text,
                work: existing,
                is_open,
                written: None,
            });
        }
        Routed::Not(no) => return Ok(Done::Not(no)),
    };
    // What nobody has and nobody may get is over already.
    let is_open = written.item.is_some() || !written.decision.winners.is_empty();
    if let Some(waiter) = waiter.filter(|_| is_open) {
        tx.put(&WORK_WAITERS, &(tenant, work, work), waiter)?;
    }
    let kept = decisions::decision(tx, tenant, written.decision.id)?;
    let text = kept.expect("it was kept just now").text;
    Ok(Done::Decided {
        text,
        work,
        is_open,
        written: Some(written),
    })
}

/// Decisions over work, the oldest or the newest first.
fn of_work(
    rows: &mut impl Rows,
    tenant: TenantId,
    work: WorkId,
    oldest_first: bool,
    limit: usize,
) -> Result<Vec<(DecisionId, DecisionRow)>, StoreError> {
    let prefix = (tenant, Filter::Work as u8, DigestKey(work.0));
    let found = if oldest_first {
        rows.scan(&DECISION_INDEX, &prefix, None, limit)?
    } else {
        rows.scan_back(&DECISION_INDEX, &prefix, None, limit)?
    };
    let mut decided = Vec::with_capacity(found.len());
    for ((_, _, _, id), _) in found {
        decided.extend(decisions::decision(rows, tenant, id)?.map(|row| (id, row)));
    }
    Ok(decided)
}

/// Work is over: whoever waits for it hears so.
pub(super) fn over(tx: &mut Tx<'_>, tenant: TenantId, work: WorkId) -> Result<(), StoreError> {
    for (key, waiter) in tx.scan(&WORK_WAITERS, &(tenant, work), None, usize::MAX)? {
        tx.remove(&WORK_WAITERS, &key)?;
        let Some(run) = runs::by_id(tx, waiter.run)?.filter(|run| !run.state.is_terminal()) else {
            continue;
        };
        let fact = StoredFact::WorkOver {
            step: waiter.step,
            attempt: waiter.attempt,
            work,
        };
        graphs::append_fact(tx, &run, &fact)?;
    }
    Ok(())
}

/// Whether somebody has the work, or may get it yet.
fn is_open(rows: &mut impl Rows, tenant: TenantId, work: WorkId) -> Result<bool, StoreError> {
    if !waiting_work::items_of(rows, tenant, work)?.is_empty() {
        return Ok(true);
    }
    for (id, _) in of_work(rows, tenant, work, false, DECISIONS_LOOKED_AT)? {
        for assignment in routing_live::by(rows, tenant, (Lookup::Decision, id.0), usize::MAX)? {
            let held = routing_live::assignment(rows, tenant, assignment)?;
            if held.is_some_and(|held| held.state.is_live()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Where work is that is not over, in words: who has it, or where it waits and why.
pub fn stand_of(rows: &mut impl Rows, tenant: TenantId, work: WorkId) -> Result<String, StoreError> {
    for (id, _) in of_work(rows, tenant, work, false, DECISIONS_LOOKED_AT)? {
        for assignment in routing_live::by(rows, tenant, (Lookup::Decision, id.0), usize::MAX)? {
            let held = routing_live::assignment(rows, tenant, assignment)?;
            if let Some(held) = held.filter(|held| held.state.is_live()) {
                let recipient = routing_objects::recipient(rows, tenant, held.recipient)?;
                let name = recipient.map_or_else(|| held.recipient.to_string(), |found| found.name);
                let until = held
                    .deadline_at
                    .map_or_else(String::new, |at| format!(", until {at} at most"));
                let since = held.created_at;
                return Ok(format!(
                    "{name} has it since {since} ({}){until}",
                    held.state.word()
                ));
            }
        }
    }
    for id in waiting_work::items_of(rows, tenant, work)? {
        let (recipient_pool, how) = if let Some(item) = waiting_work::item(rows, tenant, id)? {
            let counted = item
                .histogram
                .iter()
                .map(|(code, count)| format!("{count} x {code}"));
            let why = counted.collect::<Vec<_>>().join(", ");
            let why = if why.is_empty() {
                String::new()
            } else {
                format!(" ({why})")
            };
            (item.recipient_pool, format!("nobody can take it yet{why}"))
        } else if let Some(offer) = offers::offer(rows, tenant, id)? {
            (offer.recipient_pool, "nobody has claimed it yet".to_owned())
        } else {
            continue;
        };
        let found = routing_objects::recipient_pool(rows, tenant, recipient_pool)?;
        let name = found.map_or_else(|| recipient_pool.to_string(), |found| found.name);
        return Ok(format!("it waits in pool {name}, where {how}"));
    }
    Ok("it is over, and the run is about to hear so".to_owned())
}

/// What was made of work that is over, or why nothing was.
pub fn end_of(
    rows: &mut impl Rows,
    tenant: TenantId,
    work: WorkId,
) -> Result<Result<Arc<Value>, StepError>, StoreError> {
    let decided = of_work(rows, tenant, work, false, DECISIONS_LOOKED_AT)?;
    let mut last = None;
    for (id, row) in &decided {
        for assignment in routing_live::by(rows, tenant, (Lookup::Decision, id.0), usize::MAX)? {
            let Some(assignment) = routing_live::assignment(rows, tenant, assignment)? else {
                continue;
            };
            let is_done = assignment
                .end
                .as_ref()
                .is_some_and(|end| end.kind == EndKind::Completed);
            if is_done {
                return Ok(Ok(Arc::new(output(&row.text, &assignment))));
            }
            last.get_or_insert(assignment);
        }
    }
    Ok(Err(why(
        decided.first().map(|(id, row)| (*id, row)),
        last.as_ref(),
    )))
}

/// The decision, and what the one who has done the work has made of it.
fn output(decision: &JsonText, assignment: &Assignment) -> Value {
    let mut output: Value = decision.read().unwrap_or_default();
    let result = assignment
        .result
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    let made = json!({
        "assignment_id": assignment.id, "recipient_id": assignment.recipient,
        "value": assignment.value_micro.map(|micro| f64::from(micro) / 1_000_000.0),
        "result": result.unwrap_or(Value::Null),
    });
    if let (Value::Object(fields), Value::Object(made)) = (&mut output, made) {
        fields.extend(made);
    }
    output
}

/// The failure of a step whose work nobody has done.
fn why(newest: Option<(DecisionId, &DecisionRow)>, last: Option<&Assignment>) -> StepError {
    let Some((id, row)) = newest else {
        let message = "nobody can say what became of the work: its decisions are not kept any more";
        return StepError::new("route.gone", message).for_good();
    };
    // Who had it last had it by the newest decision: then its end is the answer, and that decision's otherwise.
    let ended = last.filter(|assignment| assignment.decision == id);
    if let Some((assignment, end)) = ended.and_then(|last| last.end.as_ref().map(|end| (last, end))) {
        let reason = match end.reason.as_str() {
            "" => String::new(),
            reason => format!(": {reason}"),
        };
        let how = match end.kind {
            EndKind::Rejected => "rejected",
            EndKind::GivenBack | EndKind::Warranty => "given back for good",
            EndKind::Completed => "done",
            EndKind::Deadline | EndKind::Neglected | EndKind::Released | EndKind::Escalated => {
                "not done in time"
            }
        };
        return StepError::new(
            format!("route.{}", assignment.state.word()),
            format!("the work was {how}{reason}"),
        );
    }
    let outcome = row.outcome.as_str();
    if WAITS.contains(&outcome) {
        let message = "the work was taken out of its queue before anybody had it";
        return StepError::new("route.cancelled", message);
    }
    let text: Value = row.text.read().unwrap_or_default();
    let said = text["summary"].as_str().filter(|said| !said.is_empty());
    StepError::new(
        format!("route.{outcome}"),
        said.map_or_else(|| format!("the work went to nobody: {outcome}"), str::to_owned),
    )
}
