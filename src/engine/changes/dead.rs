//! Dead letters: reports that could not be delivered, and steps that were given up because daemons died with them. Each
//! stands in the list until somebody tries it again or puts it away, or it goes with its age or its run.

use crate::domain::report::EffectState;
use crate::store::rows::DeadStep;
use crate::store::tables::DEAD_STEPS;
use crate::store::{Abort, Rows, StoreError, Tx, effects};
use crate::words::ids::{RunId, TenantId};
use crate::words::names::{JobName, StepRef};

const TENANT: TenantId = TenantId::DEFAULT;

/// Which letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Letter {
    /// A report, by its number.
    Report(u64),
    /// A step of a run.
    Step(RunId, StepRef),
}

/// What became of a wish about one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// It is done.
    Yes,
    /// There is no such dead letter.
    NotFound,
}

/// A step was given up.
pub(super) fn bury(
    tx: &mut Tx<'_>,
    run: RunId,
    step: &StepRef,
    job: &JobName,
    deaths: u32,
) -> Result<(), StoreError> {
    let row = DeadStep {
        job: job.clone(),
        at: tx.now().wall,
        deaths,
    };
    tx.put(&DEAD_STEPS, &(TENANT, run, step.clone()), &row)
}

/// Takes a letter out of the list: nobody will look after it.
pub fn discard(tx: &mut Tx<'_>, letter: &Letter) -> Result<Done, Abort> {
    let found = match letter {
        Letter::Report(seq) => {
            let dead = effects::by_seq(tx, *seq)?.filter(effects::is_dead);
            if let Some(effect) = &dead {
                effects::forget(tx, effect)?;
            }
            dead.is_some()
        }
        Letter::Step(run, step) => tx.remove(&DEAD_STEPS, &(TENANT, *run, step.clone()))?,
    };
    if !found {
        return Ok(Done::NotFound);
    }
    tell(tx, letter, "discarded");
    Ok(Done::Yes)
}

/// Has a report delivered anew, from its first try on.
pub fn redeliver(tx: &mut Tx<'_>, seq: u64) -> Result<Done, Abort> {
    let Some(effect) = effects::by_seq(tx, seq)?.filter(effects::is_dead) else {
        return Ok(Done::NotFound);
    };
    let mut after = effect.clone();
    let last_error = if let EffectState::Dead { reason, .. } = &effect.state {
        Some(reason.clone())
    } else {
        None
    };
    after.state = EffectState::Waiting {
        due_at: tx.now().wall,
        tries: 0,
        last_error,
    };
    effects::replace(tx, &effect, &after)?;
    tell(tx, &Letter::Report(seq), "retried");
    Ok(Done::Yes)
}

/// The steps of a run that were given up are tried again by another run: their letters go.
pub fn tried_again(tx: &mut Tx<'_>, run: RunId) -> Result<(), StoreError> {
    for ((tenant, run, step), _) in tx.scan(&DEAD_STEPS, &(TENANT, run), None, usize::MAX)? {
        tx.remove(&DEAD_STEPS, &(tenant, run, step.clone()))?;
        tell(tx, &Letter::Step(run, step), "retried");
    }
    Ok(())
}

fn tell(tx: &mut Tx<'_>, letter: &Letter, what: &str) {
    match letter {
        Letter::Report(seq) => tx.tell("report.letter", format!("report-{seq}"), 0, Some(what)),
        Letter::Step(run, step) => tx.tell("report.letter", format!("step-{run}-{step}"), 0, Some(what)),
    }
}
