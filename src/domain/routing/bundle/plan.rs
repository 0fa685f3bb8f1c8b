//! What a bundle would change, and the rows that make it so.

use serde_json::{Map, Value};

use super::document::Document;
use super::planning::Planning;
use super::topology::Topology;
use crate::domain::routing::fault::Fault;
use crate::words::ids::{ClaimQueueId, RecipientId, RecipientPoolId, RuleId};

/// What becomes of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// It is new.
    Create,
    /// Some of its fields change.
    Update,
    /// It goes.
    Delete,
    /// It is so already.
    Noop,
}

impl Action {
    /// As the wire has it.
    pub fn word(self) -> &'static str {
        match self {
            Action::Create => "create",
            Action::Update => "update",
            Action::Delete => "delete",
            Action::Noop => "noop",
        }
    }
}

/// One object, and what of it changes: pointer, before, after.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// `pool`, `recipient`, `rule`, `trait`, `claim_queue`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub action: Action,
    /// Of an update.
    pub fields: Vec<(String, Value, Value)>,
}

/// One row to write; an object without a change gets its owner only.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// A recipient pool.
    RecipientPool(RecipientPoolId, String, Map<String, Value>),
    /// A recipient with its memberships.
    Recipient(RecipientId, String, Map<String, Value>, Vec<RecipientPoolId>),
    /// A rule and the recipient pool that it belongs to.
    Rule(RuleId, String, Map<String, Value>, Option<RecipientPoolId>),
    /// A trait.
    Trait(String, Map<String, Value>),
    /// A claim queue.
    ClaimQueue(ClaimQueueId, String, Map<String, Value>),
    /// A recipient pool that goes.
    RemoveRecipientPool(RecipientPoolId, String),
    /// A recipient that goes.
    RemoveRecipient(RecipientId, String),
    /// A rule that goes.
    RemoveRule(RuleId),
    /// A trait that goes.
    RemoveTrait(String),
    /// A claim queue that goes.
    RemoveClaimQueue(ClaimQueueId, String),
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// By kind, then by name.
    pub changes: Vec<Change>,
    /// In the order in which they are written.
    pub writes: Vec<Write>,
    /// All that is wrong, with places in the document.
    pub faults: Vec<Fault>,
    /// Objects of other bundles that would change, and traits and claim queues that are still in use.
    pub conflicts: Vec<Fault>,
    /// What may be meant otherwise.
    pub warnings: Vec<Fault>,
    /// Before.
    pub digest_current: String,
    /// After.
    pub digest_after: String,
    /// What there is then.
    pub after: Topology,
}

/// What `document` makes of what there is. `fresh` gives the ids of new objects; with `prune` objects that this bundle once
/// applied and no longer has go.
pub fn plan(
    before: &Topology,
    document: &Document,
    prune: bool,
    fresh: &mut dyn FnMut() -> [u8; 16],
) -> Plan {
    let mut planning = Planning::new(before, document, fresh);
    planning.claim_queues(&document.claim_queues);
    planning.traits(&document.traits);
    planning.recipient_pools(&document.recipient_pools);
    planning.recipients(&document.recipients);
    planning.rules(&document.rules);
    planning.check_parents(&document.recipient_pools);
    if prune {
        planning.prune();
    }
    planning.done()
}
