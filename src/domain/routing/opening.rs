//! Whether a recipient's windows are open, as a check of the gate.

use super::objects::Recipient;
use super::reason::Reason;
use crate::words::time::Micros;

/// Why it is closed; no schedule is always open.
pub(super) fn closed(recipient: &Recipient, _now: Micros) -> Option<Reason> {
    recipient.schedule.as_ref()?;
    None
}
