//! What goes, because a bundle once applied it and no longer has it.

use serde_json::Value;

use super::names;
use super::plan::{Action, Change, Write};
use super::planning::{Planning, text_of};
use super::topology::Declared;
use crate::domain::routing::fault::Fault;

impl Planning<'_> {
    /// What this bundle once applied and the document no longer has. What others need goes last.
    pub(super) fn prune(&mut self) {
        let owner = Some(self.owner.to_owned());
        let before = self.before;
        let mut gone: Vec<(&'static str, String, Write)> = Vec::new();
        for (id, one) in before.rules.iter().filter(|(_, one)| one.bundle == owner) {
            if !self.kept.rules.contains(id) {
                gone.push(("rule", one.name.clone(), Write::RemoveRule(*id)));
            }
        }
        for (id, one) in before.recipients.iter().filter(|(_, one)| one.bundle == owner) {
            if !self.kept.recipients.contains(id) {
                let write = Write::RemoveRecipient(*id, one.name.clone());
                gone.push(("recipient", one.name.clone(), write));
            }
        }
        for (id, one) in before
            .recipient_pools
            .iter()
            .filter(|(_, one)| one.bundle == owner)
        {
            if !self.kept.recipient_pools.contains(id) {
                let write = Write::RemoveRecipientPool(*id, one.name.clone());
                gone.push(("pool", one.name.clone(), write));
            }
        }
        for (key, one) in before.traits.iter().filter(|(_, one)| one.bundle == owner) {
            if !self.kept.traits.contains(key) {
                gone.push(("trait", one.name.clone(), Write::RemoveTrait(key.clone())));
            }
        }
        for (id, one) in before.claim_queues.iter().filter(|(_, one)| one.bundle == owner) {
            if !self.kept.claim_queues.contains(id) {
                let write = Write::RemoveClaimQueue(*id, one.name.clone());
                gone.push(("claim_queue", one.name.clone(), write));
            }
        }
        for (kind, name, write) in gone {
            self.forget(&write);
            self.plan.changes.push(Change {
                kind,
                name,
                action: Action::Delete,
                fields: Vec::new(),
            });
            self.plan.writes.push(write);
        }
        self.look_for_orphans();
    }

    fn forget(&mut self, write: &Write) {
        let after = &mut self.after;
        match write {
            Write::RemoveRecipientPool(id, _) => {
                after.recipient_pools.remove(id);
                for one in after.recipients.values_mut() {
                    one.members_of.retain(|member_of| member_of != id);
                }
                let text = id.to_string();
                after.rules.retain(|_, one| text_of(&one.set, "pool_id") != text);
            }
            Write::RemoveRecipient(id, _) => drop(after.recipients.remove(id)),
            Write::RemoveRule(id) => drop(after.rules.remove(id)),
            Write::RemoveTrait(key) => drop(after.traits.remove(key)),
            Write::RemoveClaimQueue(id, _) => drop(after.claim_queues.remove(id)),
            Write::RecipientPool(..)
            | Write::Recipient(..)
            | Write::Rule(..)
            | Write::Trait(..)
            | Write::ClaimQueue(..) => {}
        }
    }

    /// What still names something that goes.
    fn look_for_orphans(&mut self) {
        for write in &self.plan.writes {
            match write {
                Write::RemoveRecipientPool(id, name) => {
                    let id = id.to_string();
                    let names_it = |one: &&Declared| Value::from(one.set.clone()).to_string().contains(&id);
                    let recipient_pools = self.after.recipient_pools.values().filter(names_it);
                    let rules = self.after.rules.values().filter(names_it);
                    let all = recipient_pools
                        .map(|one| ("pool", one))
                        .chain(rules.map(|one| ("rule", one)));
                    for (kind, one) in all {
                        let detail = format!(
                            "the {kind} `{}` still names the pool `{name}`, which goes",
                            one.name
                        );
                        self.plan.warnings.push(Fault::new("", "pool.referenced", detail));
                    }
                }
                Write::RemoveTrait(key) => {
                    let mut users = self.after.recipient_pools.values();
                    let user = users.find(|one| {
                        one.set
                            .get("config")
                            .is_some_and(|config| names::names_trait(config, key))
                    });
                    if let Some(user) = user {
                        let detail = format!("pool `{}` filters by the trait `{key}`", user.name);
                        self.plan.conflicts.push(Fault::new("", "trait.in_use", detail));
                    }
                }
                Write::RemoveClaimQueue(id, name) => {
                    let id = id.to_string();
                    let mut users = self.after.recipient_pools.values();
                    let offers = |one: &&Declared| {
                        let config = one.set.get("config").and_then(Value::as_object);
                        config.is_some_and(|config| text_of(config, "claim_queue_id") == id)
                    };
                    if let Some(user) = users.find(offers) {
                        let detail = format!("pool `{}` offers into the claim queue `{name}`", user.name);
                        let fault = Fault::new("", "claim_queue.in_use", detail);
                        self.plan.conflicts.push(fault);
                    }
                }
                Write::RecipientPool(..)
                | Write::Recipient(..)
                | Write::Rule(..)
                | Write::Trait(..)
                | Write::ClaimQueue(..)
                | Write::RemoveRecipient(..)
                | Write::RemoveRule(_) => {}
            }
        }
    }
}
