//! What strategies remember from one decision to the next.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::words::ids::RecipientId;
use crate::words::time::Micros;

/// What one stage of one recipient pool remembers: one row for (tenant, recipient pool, name of the stage).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageState {
    /// Who was picked last.
    pub cursor: Option<RecipientId>,
    /// The level of the interleaved turn.
    pub level: i64,
    /// By member: where it stands in the smooth turn, or how many it got. A member that leaves loses its entry.
    pub members: BTreeMap<RecipientId, i64>,
}

impl StageState {
    /// Where a member stands.
    pub fn of(&self, id: RecipientId) -> i64 {
        self.members.get(&id).copied().unwrap_or(0)
    }
}

/// Who holds a key of a sticky stage: one row for (tenant, recipient pool, name of the stage, digest of the key).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Who.
    pub recipient: RecipientId,
    /// Until when.
    pub expires_at: Micros,
}
