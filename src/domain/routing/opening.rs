//! Whether a recipient's windows are open, as a check of the gate.

use super::hours;
use super::objects::Recipient;
use super::reason::Reason;
use crate::words::time::Micros;

/// Why it is closed; no schedule is always open.
pub(super) fn closed(recipient: &Recipient, now: Micros) -> Option<Reason> {
    let closed = hours::closed(recipient.schedule.as_ref(), &recipient.timezone, now)?;
    Some(Reason::ScheduleClosed {
        zone: closed.zone,
        local: closed.local,
        opens_at: closed.opens_at,
    })
}

/// Whether they are open.
pub(super) fn is_open(recipient: &Recipient, at: Micros) -> bool {
    hours::is_open(recipient.schedule.as_ref(), &recipient.timezone, at)
}
