//! The input of a decision.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::objects::Location;
use crate::words::ids::{DecisionId, WorkId};
use crate::words::time::Micros;

/// One unit of work (wire: routable), read and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Assigned by ductor unless the caller names one.
    pub id: WorkId,
    /// The caller's own id.
    pub external_id: Option<String>,
    /// What kind of work.
    pub kind: String,
    /// Where it comes from; `fair` serves sources in turn.
    pub source: Option<String>,
    /// 0 to 9, lower first.
    pub priority: u8,
    /// Plain JSON, as rules see it.
    pub attributes: Map<String, Value>,
    /// Labels.
    pub tags: Vec<String>,
    /// How much of a recipient it takes, 1 to 1,000.
    pub units: u32,
    /// Where it is.
    pub location: Option<Location>,
    /// IANA name.
    pub timezone: Option<String>,
    /// When it must be done.
    pub deadline_at: Option<Micros>,
    /// The decision that this work comes back from.
    pub parent_decision_id: Option<DecisionId>,
    /// What the subject has agreed to.
    pub consent: Vec<String>,
    /// When it was first seen.
    pub created_at: Micros,
}
