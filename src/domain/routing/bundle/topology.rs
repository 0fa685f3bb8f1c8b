//! Everything that a tenant has declared.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::document::{API_VERSION, KIND};
use super::names::{self, Dictionary};
use crate::domain::routing::canonical;
use crate::words::ids::{ClaimQueueId, RecipientId, RecipientPoolId, RuleId};

/// One object as it is stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// What was set.
    pub set: Map<String, Value>,
    /// The bundle that applies it.
    pub bundle: Option<String>,
    /// Of a recipient: where it is a member, the primary one first.
    pub members_of: Vec<RecipientPoolId>,
}

/// All of a tenant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    /// Recipient pools.
    pub recipient_pools: BTreeMap<RecipientPoolId, Declared>,
    /// Recipients.
    pub recipients: BTreeMap<RecipientId, Declared>,
    /// Rules.
    pub rules: BTreeMap<RuleId, Declared>,
    /// Traits, by key.
    pub traits: BTreeMap<String, Declared>,
    /// Claim queues.
    pub claim_queues: BTreeMap<ClaimQueueId, Declared>,
}

impl Topology {
    /// Names by id, of recipient pools and claim queues.
    pub(super) fn names(&self) -> Dictionary {
        let recipient_pools = self.recipient_pools.iter();
        let queues = self.claim_queues.iter();
        recipient_pools
            .map(|(id, one)| (id.to_string(), one.name.clone()))
            .chain(queues.map(|(id, one)| (id.to_string(), one.name.clone())))
            .collect()
    }

    /// How many objects that is.
    pub fn count(&self) -> usize {
        self.recipient_pools.len()
            + self.recipients.len()
            + self.rules.len()
            + self.traits.len()
            + self.claim_queues.len()
    }

    /// The whole as a document of names, in its one order.
    pub fn document(&self, name: &str) -> Value {
        let names = self.names();
        let recipient_pools = self
            .recipient_pools
            .values()
            .map(|one| (one.name.clone(), names::of_recipient_pool(&one.set, &names)));
        let recipients = self.recipients.values().map(|one| {
            let shown = names::of_recipient(&one.set, &one.members_of, &names);
            // Names of recipients are unique within a recipient pool only.
            (format!("{}\0{}", one.name, canonical::text(&shown)), shown)
        });
        let rules = self
            .rules
            .values()
            .map(|one| (one.name.clone(), names::of_rule(&one.set, &names)));
        let plain = |one: &Declared| (one.name.clone(), Value::from(one.set.clone()));
        json!({
            "apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name},
            "pools": sorted(recipient_pools), "recipients": sorted(recipients), "rules": sorted(rules),
            "traits": sorted(self.traits.values().map(plain)),
            "claim_queues": sorted(self.claim_queues.values().map(plain)),
        })
    }

    /// SHA-256 of what is declared, whoever applied it.
    pub fn digest(&self) -> String {
        format!("sha256:{}", canonical::sha256(&self.document("")))
    }

    /// The one bundle that applies everything that is applied by one; none when there are several, or none.
    pub fn owner(&self) -> Option<&str> {
        let all = self
            .recipient_pools
            .values()
            .chain(self.recipients.values())
            .chain(self.rules.values())
            .chain(self.traits.values())
            .chain(self.claim_queues.values());
        let mut owners = all.filter_map(|one| one.bundle.as_deref());
        let first = owners.next()?;
        owners.all(|other| other == first).then_some(first)
    }
}

fn sorted(list: impl Iterator<Item = (String, Value)>) -> Vec<Value> {
    let mut list: Vec<(String, Value)> = list.collect();
    list.sort_by(|left, right| left.0.cmp(&right.0));
    list.into_iter().map(|(_, value)| value).collect()
}
