//! Steps of runs that route: a decision for each attempt, made like every other one and written once.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::super::changes::routing::route::{No, Wish};
use super::super::changes::routing::steps::{self, Done};
use super::super::changes::tasks::ClaimedTask;
use super::super::core::Engine;
use super::super::deciding::{self, RouterError};
use crate::domain::routing::ask;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::pass::Request;
use crate::domain::workflow::graph::routed::{Wanted, work_id};
use crate::domain::workflow::graph::tick::{AttemptEnd, StepError};
use crate::store::live_rows::WorkWaiter;
use crate::store::routing_objects;
use crate::words::ids::{DecisionId, RecipientPoolId, TenantId, WorkId};
use crate::words::limits;
use crate::words::time::Micros;

/// Workflows are those of the first tenant.
const TENANT: TenantId = TenantId::DEFAULT;

/// Decides for one claimed step.
pub(in crate::engine) async fn execute(
    engine: &Engine,
    task: &ClaimedTask,
    wanted: Wanted,
) -> Result<AttemptEnd, RouterError> {
    let work = work_id(task.run.id, &task.step.step, task.step.attempt);
    let waits = wanted.waits;
    let request = match request_of(engine, wanted, work).await? {
        Ok(request) => request,
        Err(error) => return Ok(AttemptEnd::Failed(error)),
    };
    let tenancy = Arc::new(engine.tenancy(TENANT).await?);
    let wish = Wish::fresh(request, DecisionId::fresh());
    let judged = deciding::draw_up(engine, Arc::clone(&tenancy), wish.clone()).await?;
    let waiter = waits.then(|| WorkWaiter {
        run: task.run.id,
        step: task.step.step.clone(),
        attempt: task.step.attempt,
    });
    let shelf = engine.routing.clone();
    let change = engine.store.change("route step", move |tx| {
        steps::decide(tx, (&shelf, &*tenancy), &wish, &judged, waiter.as_ref())
    });
    let (text, decided, is_open) = match change.await? {
        Done::Decided {
            text,
            work,
            is_open,
            written,
        } => {
            if let Some(written) = written {
                deciding::note(engine, &written);
            }
            (text, work, is_open)
        }
        Done::Not(no) => return Ok(AttemptEnd::Failed(refused(&no))),
        Done::Crowded(existing) => return Ok(AttemptEnd::Failed(crowded(existing))),
    };
    if waits && is_open {
        return Ok(AttemptEnd::Routed(decided));
    }
    if waits {
        let end = engine.read(move |tx| steps::end_of(tx, TENANT, decided)).await?;
        return Ok(match end {
            Ok(output) => AttemptEnd::Succeeded(Some(output)),
            Err(error) if decided != work => AttemptEnd::Failed(duplicate(decided, &error)),
            Err(error) => AttemptEnd::Failed(error),
        });
    }
    Ok(match text.read::<Value>() {
        Ok(output) => AttemptEnd::Succeeded(Some(Arc::new(output))),
        Err(error) => AttemptEnd::Failed(StepError::new("route.broken", error.to_string())),
    })
}

/// What the step asks, read as the body of `POST /api/route` is.
async fn request_of(
    engine: &Engine,
    wanted: Wanted,
    work: WorkId,
) -> Result<Result<Request, StepError>, RouterError> {
    let mut body = Map::from_iter([("work".to_owned(), Value::Object(wanted.work))]);
    if let Some(strategy) = wanted.strategy {
        body.insert("strategy".to_owned(), Value::from(strategy));
    }
    if let Some(name) = wanted.recipient_pool {
        let found = match name.parse::<RecipientPoolId>() {
            Ok(id) => Some(id),
            Err(_) => {
                let named = name.clone();
                engine
                    .read(move |tx| routing_objects::recipient_pool_named(tx, TENANT, &named))
                    .await?
            }
        };
        let Some(id) = found else {
            let message = format!("there is no pool `{name}`");
            return Ok(Err(StepError::new("pool.not_found", message)));
        };
        body.insert("pool_id".to_owned(), Value::from(id.to_string()));
    }
    let now = Micros::from(engine.now().wall);
    Ok(ask::read(&body, now, work).map_err(|faults| invalid(&faults)))
}

/// The same work was routed before, and nothing has come of it.
fn duplicate(existing: WorkId, error: &StepError) -> StepError {
    let message = format!(
        "a duplicate of work {existing}, which has ended: {}",
        error.message
    );
    StepError::new(error.code.clone(), message)
}

fn crowded(existing: WorkId) -> StepError {
    let most = limits::WORK_WAITERS_MAX;
    let message = format!("a duplicate of work {existing}, for which {most} steps wait already");
    StepError::new("route.crowded", message)
}

fn invalid(faults: &[Fault]) -> StepError {
    let said = faults
        .iter()
        .map(|fault| format!("{}: {}", fault.pointer, fault.detail));
    StepError::new("route.invalid", said.collect::<Vec<_>>().join("; ")).for_good()
}

fn refused(no: &No) -> StepError {
    match no {
        No::Invalid(faults) => invalid(faults),
        // Only requests that name a recipient are refused, and steps name none.
        No::Refused(refusal) => StepError::new("route.refused", format!("{refusal:?}")).for_good(),
    }
}
