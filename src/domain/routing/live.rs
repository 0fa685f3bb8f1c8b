//! What a recipient does now. People do not write it (but its state); transactions of assignments do.

use serde::{Deserialize, Serialize};

use super::objects::RecipientState;
use crate::words::time::Micros;

/// The live half of a recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// Availability.
    pub state: RecipientState,
    /// Since when.
    pub state_since: Micros,
    /// Assignments that are open or accepted, and count.
    pub current: u32,
    /// Their units.
    pub units: u64,
    /// Assignments of the window.
    pub daily_count: u32,
    /// When the window ends; none before the first assignment.
    pub daily_reset_at: Option<Micros>,
    /// Assignments up to this sequence no longer count.
    pub capacity_epoch: u64,
    /// The newest assignment.
    pub last_assigned_at: Option<Micros>,
    /// The newest end of one.
    pub last_finished_at: Option<Micros>,
    /// No new work before this.
    pub cooldown_until: Option<Micros>,
}

impl Live {
    /// Nothing was ever assigned.
    pub fn new(state: RecipientState, since: Micros) -> Live {
        Live {
            state,
            state_since: since,
            current: 0,
            units: 0,
            daily_count: 0,
            daily_reset_at: None,
            capacity_epoch: 0,
            last_assigned_at: None,
            last_finished_at: None,
            cooldown_until: None,
        }
    }
}
