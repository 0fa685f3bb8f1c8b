//! Who this daemon is: its node name and its place.

use std::time::Duration;

use super::open::OpenError;
use crate::domain::slots::claim::{ClockId, Place};
use crate::os;
use crate::store::coordination::{HeldLock, StateDirectory};
use crate::store::rows::NodeRecord;
use crate::store::tables::NODES;
use crate::store::{Rows, Store};
use crate::words::ids;
use crate::words::names::NodeName;
use crate::words::time::Now;

/// How long a configured name may still be held by a daemon that is just ending.
const PATIENCE: Duration = Duration::from_secs(1);

/// Other daemons look now and then whether a lock is free, and hold it for an instant: that is nobody's name taken.
const GLANCE: Duration = Duration::from_millis(30);

/// Where this process runs.
pub(super) fn place() -> std::io::Result<Place> {
    Ok(Place {
        host: os::host::host_id()?,
        boot_id: os::clock::boot_id()?,
        pid_namespace: os::host::pid_namespace()?,
        clock: ClockId(os::clock::ClockId::current()?.as_str().to_owned()),
    })
}

/// Takes the configured name, or says who has it.
pub(super) fn take_configured(
    directory: &StateDirectory,
    text: &str,
) -> Result<(NodeName, HeldLock), OpenError> {
    let name = NodeName::new(text).map_err(|error| OpenError::Other(error.to_string()))?;
    match directory.lock_node(&name, PATIENCE)? {
        Some(lock) => Ok((name, lock)),
        None => Err(OpenError::NodeTaken {
            holder: directory.holder_of(&name),
            name,
        }),
    }
}

/// Takes the first generated name of this host that is free, or makes one: a restarted daemon gets its name back.
pub(super) fn take_generated(
    directory: &StateDirectory,
    store: &Store,
    place: &Place,
) -> Result<(NodeName, HeldLock), OpenError> {
    let known = store.read(|tx| tx.scan(&NODES, &(), None, 10_000))?;
    for ((name,), record) in known {
        if !record.generated || record.host != place.host {
            continue;
        }
        if let Some(lock) = directory.lock_node(&name, GLANCE)? {
            return Ok((name, lock));
        }
    }
    let name = NodeName::new(&ids::fresh_node_name()).map_err(|error| OpenError::Other(error.to_string()))?;
    match directory.try_lock_node(&name)? {
        Some(lock) => Ok((name, lock)),
        None => Err(OpenError::NodeTaken { holder: None, name }),
    }
}

/// What the daemon writes about itself.
pub(super) fn record_of(place: &Place, generated: bool, now: Now) -> NodeRecord {
    let pid = os::proc::own_pid();
    NodeRecord {
        generated,
        host: place.host.clone(),
        boot_id: place.boot_id.clone(),
        pid_namespace: place.pid_namespace,
        pid,
        start_ticks: os::proc::identity_of(pid).map_or(0, |identity| identity.start_ticks),
        started_at: now.wall,
        last_seen: now.wall,
    }
}
