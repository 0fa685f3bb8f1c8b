//! When jobs fire next, with what holds them.

use std::collections::BTreeMap;

use crate::domain::slots::admission::Pause;
use crate::engine::book::BookJob;
use crate::store::tables::JOB_PAUSES;
use crate::store::{Rows, StoreError};
use crate::words::ids::TenantId;
use crate::words::names::JobName;
use crate::words::time::Millis;

/// The jobs that are paused now.
pub(super) fn paused(rows: &mut impl Rows, now: Millis) -> Result<BTreeMap<JobName, Pause>, StoreError> {
    let found = rows.scan_each(&JOB_PAUSES, &(TenantId::DEFAULT,), None, usize::MAX)?;
    let readable = found.into_iter().filter_map(|each| each.row.ok());
    Ok(readable
        .filter(|(_, pause)| pause.holds_at(now))
        .map(|((_, job), pause)| (job, pause))
        .collect())
}

/// The first moment after `now` at which a job fires by itself. What is due before the end of a pause does not.
pub(super) fn next_of(job: &BookJob, pause: Option<&Pause>, now: Millis) -> Option<Millis> {
    if !job.definition.enabled {
        return None;
    }
    let after = match pause {
        None => now.0,
        Some(pause) => pause.until?.0.saturating_sub(1).max(now.0),
    };
    job.schedule.as_ref()?.next_after(after).map(Millis)
}
