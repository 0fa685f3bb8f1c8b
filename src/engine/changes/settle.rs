//! What a dead daemon left: its claims are put back (T12, T13), or given up when too many daemons died with them (T14).

use crate::domain::slots::crash;
use crate::domain::slots::entry::{EntryEvent, reason};
use crate::domain::workflow::attempt::Attempt;
use crate::domain::workflow::tick::Fact;
use crate::engine::changes::complete::{self, Holder, Recorded, close, held, lost_attempt};
use crate::engine::changes::{advance, dead, report};
use crate::store::rows::PoisonedRun;
use crate::store::tables::POISONED_RUNS;
use crate::store::{Abort, Tx};
use crate::words::ids::TenantId;

const TENANT: TenantId = TenantId::DEFAULT;

/// Settles one claim whose process is gone, or whose lease has lapsed. `died`: its daemon is known to be dead.
pub fn settle(tx: &mut Tx<'_>, holder: &Holder, why: &'static str, died: bool) -> Result<Recorded, Abort> {
    let Some(live) = held(tx, holder)? else {
        return Ok(Recorded::Stale);
    };
    let attempt = lost_attempt(&live.claim, why, tx.now().wall);
    let (_, step) = advance::load(tx, holder.run, &holder.step)?;
    let deaths = step.deaths + 1;
    if died && live.ending.is_none() && crash::is_poisoned(deaths) {
        dead::bury(tx, holder.run, &holder.step, &live.job, deaths)?;
        return poison(tx, holder, &live, &attempt);
    }
    complete::put_back(tx, holder, why, died, Some(&attempt))
}

fn poison(
    tx: &mut Tx<'_>,
    holder: &Holder,
    live: &crate::store::rows::LiveAttempt,
    attempt: &Attempt,
) -> Result<Recorded, Abort> {
    let fact = Fact::Failed(reason::CRASH_LIMIT.to_owned());
    let recorded = close(tx, holder, live, Some(attempt), &EntryEvent::Poison, &fact)?;
    if let Recorded::Done(run) = &recorded {
        report::ended_alone(tx, run)?;
    }
    let row = PoisonedRun {
        job: live.job.clone(),
        step: holder.step.clone(),
        at: tx.now().wall,
    };
    tx.put(&POISONED_RUNS, &(TENANT, holder.run), &row)?;
    tx.tell("run.poisoned", holder.run, 0, Some(reason::CRASH_LIMIT));
    Ok(recorded)
}
