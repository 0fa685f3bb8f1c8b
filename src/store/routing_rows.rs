//! Rows of what people declare for routing: the JSON of what was set, and beside it what ductor writes. The typed objects are
//! read out of that JSON, by the same reader that checked it.

use serde::{Deserialize, Serialize};

use super::codec::Record;
use crate::domain::routing::live::Live;
use crate::domain::routing::print::Switched;
use crate::words::ids::RecipientPoolId;
use crate::words::names::NodeName;
use crate::words::payload::JsonText;
use crate::words::time::{Micros, Millis};

macro_rules! record {
    ($($type:ty, $name:literal, $version:literal;)*) => {
        $(impl Record for $type {
            const NAME: &'static str = $name;
            const VERSION: u8 = $version;
        })*
    };
}

record! {
    ObjectRow, "routing object", 1;
    RecipientPoolRow, "recipient pool", 1;
    RecipientRow, "recipient", 1;
    RuleRow, "rule", 1;
    NameRow, "name", 1;
    ObjectIdRow, "object id", 1;
    Live, "recipient live", 1;
    BundleLoad, "bundle load", 1;
}

/// What every declared object has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRow {
    /// Its name; a trait's key.
    pub name: String,
    /// What was set, in its one form.
    pub set: JsonText,
    /// Grows by 1 with each stored change, from 0.
    pub record_version: u64,
    /// When it was created.
    pub created_at: Micros,
    /// When it was changed last.
    pub updated_at: Micros,
    /// The bundle that applies it.
    pub bundle: Option<String>,
}

/// A recipient pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipientPoolRow {
    /// What was declared.
    pub object: ObjectRow,
    /// The newest word about its kill-switch.
    pub switched: Option<Switched>,
}

/// A recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipientRow {
    /// What was declared.
    pub object: ObjectRow,
    /// Where it is a member; the primary one first.
    pub members_of: Vec<RecipientPoolId>,
    /// Its owner's id, as declared.
    pub external_id: Option<String>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRow {
    /// What was declared.
    pub object: ObjectRow,
    /// The recipient pool that it belongs to; none for the tenant.
    pub attached_to: Option<RecipientPoolId>,
}

/// The newest file that a daemon has put in force as the bundle of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleLoad {
    /// The daemon.
    pub node: NodeName,
    /// Of what stood in the file.
    pub digest: String,
    /// When.
    pub at: Millis,
}

/// Index row: the name of what the key says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NameRow(pub String);

/// Index row: the id of what the key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectIdRow(pub [u8; 16]);
