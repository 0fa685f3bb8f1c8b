//! A plan in the making: one object of the document after the other, against what there is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::document::Document;
use super::names::{self, Dictionary};
use super::plan::{Action, Change, Plan, Write};
use super::topology::{Declared, Topology};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::patch::same;
use crate::domain::routing::read::{self, Stamp, Target};
use crate::words::ids::{ClaimQueueId, RecipientId, RecipientPoolId, RuleId};
use crate::words::limits;
use crate::words::time::Micros;

/// The stamp of what is only looked at.
pub(super) const STAMP: Stamp = Stamp {
    record_version: 0,
    created_at: Micros(0),
    updated_at: Micros(0),
};

const RECIPIENT_POOLS: &str = "pools";
const RECIPIENTS: &str = "recipients";
const RULES: &str = "rules";
const TRAITS: &str = "traits";
const CLAIM_QUEUES: &str = "claim_queues";

/// What stands in the document, by id.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) recipient_pools: BTreeSet<RecipientPoolId>,
    pub(super) recipients: BTreeSet<RecipientId>,
    pub(super) rules: BTreeSet<RuleId>,
    pub(super) traits: BTreeSet<String>,
    pub(super) claim_queues: BTreeSet<ClaimQueueId>,
}

pub(super) struct Planning<'t> {
    pub(super) before: &'t Topology,
    pub(super) after: Topology,
    pub(super) owner: &'t str,
    fresh: &'t mut dyn FnMut() -> [u8; 16],
    /// Ids by name.
    recipient_pools: Dictionary,
    queues: Dictionary,
    /// Names by id.
    names: Dictionary,
    pub(super) kept: Kept,
    pub(super) plan: Plan,
}

pub(super) fn text_of<'m>(written: &'m Map<String, Value>, key: &str) -> &'m str {
    written.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Fields that differ, down to what is no object on both sides.
fn differences(at: &str, before: &Value, after: &Value, found: &mut Vec<(String, Value, Value)>) {
    match (before, after) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                let side = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or(Value::Null);
                differences(&place, &side(left), &side(right), found);
            }
        }
        (before, after) if same(before, after) => {}
        (before, after) => found.push((at.to_owned(), before.clone(), after.clone())),
    }
}

impl<'t> Planning<'t> {
    /// New objects get their ids first, so that others can name them.
    pub(super) fn new(
        before: &'t Topology,
        document: &'t Document,
        fresh: &'t mut dyn FnMut() -> [u8; 16],
    ) -> Planning<'t> {
        let known = before.recipient_pools.iter();
        let mut recipient_pools: Dictionary = known
            .map(|(id, one)| (one.name.clone(), id.to_string()))
            .collect();
        for written in &document.recipient_pools {
            let name = text_of(written, "name").to_owned();
            recipient_pools
                .entry(name)
                .or_insert_with(|| RecipientPoolId(fresh()).to_string());
        }
        let known = before.claim_queues.iter();
        let mut queues: Dictionary = known
            .map(|(id, one)| (one.name.clone(), id.to_string()))
            .collect();
        for written in &document.claim_queues {
            let name = text_of(written, "name").to_owned();
            queues
                .entry(name)
                .or_insert_with(|| ClaimQueueId(fresh()).to_string());
        }
        let pairs = recipient_pools.iter().chain(&queues);
        Planning {
            before,
            after: before.clone(),
            owner: &document.name,
            fresh,
            names: pairs.map(|(name, id)| (id.clone(), name.clone())).collect(),
            recipient_pools,
            queues,
            kept: Kept::default(),
            plan: Plan::default(),
        }
    }

    fn fault(&mut self, list: &str, index: usize, fault: Fault) {
        let pointer = format!("/{list}/{index}{}", names::pointer(&fault.pointer));
        self.plan.faults.push(Fault { pointer, ..fault });
    }

    /// True if any.
    fn faults(&mut self, list: &str, index: usize, faults: Vec<Fault>) -> bool {
        let is_bad = !faults.is_empty();
        for fault in faults {
            self.fault(list, index, fault);
        }
        is_bad
    }

    fn twice(&mut self, list: &str, index: usize, key: &str) {
        let fault = Fault::new(format!("/{key}"), "bundle.twice", "stands in the list before");
        self.fault(list, index, fault);
    }

    /// Notes a change of an object, and says whether it is to be written.
    fn note(
        &mut self,
        kind: &'static str,
        name: &str,
        before: Option<(&Value, Option<&str>)>,
        after: &Value,
    ) -> bool {
        let mut fields = Vec::new();
        let action = match before {
            None => Action::Create,
            Some((before, _)) => {
                differences("", before, after, &mut fields);
                if fields.is_empty() {
                    Action::Noop
                } else {
                    Action::Update
                }
            }
        };
        let owner = before.and_then(|(_, bundle)| bundle);
        if let Some(other) = owner.filter(|other| *other != self.owner && action == Action::Update) {
            let detail = format!("the {kind} `{name}` belongs to the bundle `{other}`");
            let fault = Fault::new("", "bundle.owned", detail).member("bundle", other);
            self.plan.conflicts.push(fault);
        }
        self.plan.changes.push(Change {
            kind,
            name: name.to_owned(),
            action,
            fields,
        });
        // One that nobody owns is taken over as it is.
        let is_unowned = before.is_some_and(|(_, bundle)| bundle.is_none());
        action != Action::Noop || is_unowned
    }

    /// What an object is then; one of another bundle that stays as it is stays with that.
    fn declared(&self, name: &str, set: Map<String, Value>, before: Option<&Declared>) -> Declared {
        Declared {
            name: name.to_owned(),
            set,
            bundle: before
                .and_then(|before| before.bundle.clone())
                .or_else(|| Some(self.owner.to_owned())),
            members_of: Vec::new(),
        }
    }

    /// What an object names must be there afterwards.
    fn check(&mut self, list: &str, index: usize, targets: &[Target], own: Option<RecipientPoolId>) {
        for target in targets {
            let missing = |pointer: &str| Fault::new(pointer, "pool.not_found", "there is no such pool");
            let is_there = |id: &RecipientPoolId| self.names.contains_key(&id.to_string());
            let fault = match target {
                Target::Other(pointer, id) if own == Some(*id) => {
                    let detail = "is the pool itself; name another";
                    Some(Fault::new(pointer, "pool.self_target", detail))
                }
                Target::Other(pointer, id) | Target::RecipientPool(pointer, id) => {
                    (!is_there(id)).then(|| missing(pointer))
                }
                Target::Parent(id) => (!is_there(id)).then(|| missing("/parent_pool_id")),
                Target::Named(pointer, name) => {
                    let detail = format!("there is no pool `{name}`");
                    (!self.recipient_pools.contains_key(name))
                        .then(|| Fault::new(pointer, "pipeline.target_missing", detail))
                }
                Target::ClaimQueue(pointer, id) => {
                    let detail = "there is no such claim queue";
                    (!self.names.contains_key(&id.to_string()))
                        .then(|| Fault::new(pointer, "claim_queue.not_found", detail))
                }
            };
            if let Some(fault) = fault {
                self.fault(list, index, fault);
            }
        }
    }

    pub(super) fn recipient_pools(&mut self, list: &[Map<String, Value>]) {
        for (index, written) in list.iter().enumerate() {
            let name = text_of(written, "name").to_owned();
            let id = self.recipient_pools.get(&name).and_then(|id| id.parse().ok());
            let Some(id) = id else {
                continue;
            };
            if !self.kept.recipient_pools.insert(id) {
                self.twice(RECIPIENT_POOLS, index, "name");
                continue;
            }
            let set = names::to_recipient_pool(written, &self.recipient_pools, &self.queues);
            let read = read::recipient_pool(id, STAMP, None, set);
            let is_bad = self.faults(RECIPIENT_POOLS, index, read.faults);
            self.check(RECIPIENT_POOLS, index, &read.targets, Some(id));
            if is_bad {
                continue;
            }
            for warning in read.warnings {
                let pointer = names::pointer(&warning.pointer);
                let pointer = format!("/{RECIPIENT_POOLS}/{index}{pointer}");
                self.plan.warnings.push(Fault { pointer, ..warning });
            }
            let before = self.before.recipient_pools.get(&id);
            let shown = before.map(|one| names::of_recipient_pool(&one.set, &self.names));
            let pair = shown.as_ref().zip(before.map(|one| one.bundle.as_deref()));
            let after = names::of_recipient_pool(&read.set, &self.names);
            if self.note("pool", &name, pair, &after) {
                let write = Write::RecipientPool(id, name.clone(), read.set.clone());
                self.plan.writes.push(write);
            }
            let declared = self.declared(&name, read.set, before);
            self.after.recipient_pools.insert(id, declared);
        }
    }

    /// The recipient pools that a recipient names.
    fn memberships(&mut self, index: usize, written: Option<&Value>) -> Vec<RecipientPoolId> {
        let list = match written {
            Some(Value::Array(list)) if !list.is_empty() => list.as_slice(),
            Some(_) | None => {
                let detail = "must be the names of its pools, the primary one first";
                self.fault(RECIPIENTS, index, Fault::new("/pools", "field.required", detail));
                &[]
            }
        };
        if list.len() > limits::MEMBERSHIPS_MAX {
            let most = limits::MEMBERSHIPS_MAX;
            let detail = format!("a recipient is a member of at most {most} pools");
            self.fault(RECIPIENTS, index, Fault::new("/pools", "field.range", detail));
            return Vec::new();
        }
        let mut members_of = Vec::new();
        for (place, name) in list.iter().enumerate() {
            let known = name.as_str().and_then(|name| self.recipient_pools.get(name));
            let pointer = format!("/pools/{place}");
            match known.and_then(|id| id.parse::<RecipientPoolId>().ok()) {
                Some(id) if members_of.contains(&id) => {
                    let fault = Fault::new(pointer, "bundle.twice", "stands in the list before");
                    self.fault(RECIPIENTS, index, fault);
                }
                Some(id) => members_of.push(id),
                None => {
                    let fault = Fault::new(pointer, "pool.not_found", format!("there is no pool {name}"));
                    self.fault(RECIPIENTS, index, fault);
                }
            }
        }
        members_of
    }

    pub(super) fn recipients(&mut self, list: &[Map<String, Value>]) {
        let before = self.before;
        let by_external: BTreeMap<&str, RecipientId> = before
            .recipients
            .iter()
            .filter_map(|(id, one)| Some((one.set.get("external_id")?.as_str()?, *id)))
            .collect();
        let by_name: BTreeMap<(Option<RecipientPoolId>, &str), RecipientId> = before
            .recipients
            .iter()
            .map(|(id, one)| ((one.members_of.first().copied(), one.name.as_str()), *id))
            .collect();
        for (index, written) in list.iter().enumerate() {
            let mut set = written.clone();
            let members_of = self.memberships(index, set.remove("pools").as_ref());
            let name = text_of(written, "name").to_owned();
            let external = written.get("external_id").and_then(Value::as_str);
            let named = by_name.get(&(members_of.first().copied(), name.as_str()));
            let known = match external {
                None => named,
                // One that had no id of its owner yet gets it.
                Some(external) => by_external
                    .get(external)
                    .or_else(|| named.filter(|id| !before.recipients[*id].set.contains_key("external_id"))),
            };
            let id = known.copied().unwrap_or_else(|| RecipientId((self.fresh)()));
            if !self.kept.recipients.insert(id) {
                self.twice(RECIPIENTS, index, "name");
                continue;
            }
            let read = read::recipient(id, STAMP, members_of.clone(), set);
            if self.faults(RECIPIENTS, index, read.faults) {
                continue;
            }
            let known = before.recipients.get(&id);
            let shown = known.map(|one| names::of_recipient(&one.set, &one.members_of, &self.names));
            let pair = shown.as_ref().zip(known.map(|one| one.bundle.as_deref()));
            let after = names::of_recipient(&read.set, &members_of, &self.names);
            if self.note("recipient", &name, pair, &after) {
                let write = Write::Recipient(id, name.clone(), read.set.clone(), members_of.clone());
                self.plan.writes.push(write);
            }
            let mut declared = self.declared(&name, read.set, known);
            declared.members_of = members_of;
            self.after.recipients.insert(id, declared);
        }
    }

    pub(super) fn rules(&mut self, list: &[Map<String, Value>]) {
        let known = self.before.rules.iter();
        let by_name: BTreeMap<&str, RuleId> = known.map(|(id, one)| (one.name.as_str(), *id)).collect();
        let mut seen = BTreeSet::new();
        for (index, written) in list.iter().enumerate() {
            let name = text_of(written, "name").to_owned();
            if !seen.insert(name.clone()) {
                self.twice(RULES, index, "name");
                continue;
            }
            let known = by_name.get(name.as_str()).copied();
            let id = known.unwrap_or_else(|| RuleId((self.fresh)()));
            self.kept.rules.insert(id);
            let read = read::rule(id, STAMP, names::to_rule(written, &self.recipient_pools));
            let is_bad = self.faults(RULES, index, read.faults);
            let attached_to = read.object.attached_to;
            self.check(RULES, index, &read.targets, attached_to);
            if is_bad {
                continue;
            }
            let before = self.before.rules.get(&id);
            let shown = before.map(|one| names::of_rule(&one.set, &self.names));
            let pair = shown.as_ref().zip(before.map(|one| one.bundle.as_deref()));
            let after = names::of_rule(&read.set, &self.names);
            if self.note("rule", &name, pair, &after) {
                let write = Write::Rule(id, name.clone(), read.set.clone(), attached_to);
                self.plan.writes.push(write);
            }
            let declared = self.declared(&name, read.set, before);
            self.after.rules.insert(id, declared);
        }
    }

    pub(super) fn traits(&mut self, list: &[Map<String, Value>]) {
        for (index, written) in list.iter().enumerate() {
            let key = text_of(written, "key").to_owned();
            if !self.kept.traits.insert(key.clone()) {
                self.twice(TRAITS, index, "key");
                continue;
            }
            let read = read::declared_trait(&key, written.clone());
            if self.faults(TRAITS, index, read.faults) {
                continue;
            }
            let before = self.before.traits.get(&key);
            let shown = before.map(|one| Value::from(one.set.clone()));
            let pair = shown.as_ref().zip(before.map(|one| one.bundle.as_deref()));
            if self.note("trait", &key, pair, &Value::from(read.set.clone())) {
                self.plan.writes.push(Write::Trait(key.clone(), read.set.clone()));
            }
            let declared = self.declared(&key, read.set, before);
            self.after.traits.insert(key, declared);
        }
    }

    pub(super) fn claim_queues(&mut self, list: &[Map<String, Value>]) {
        for (index, written) in list.iter().enumerate() {
            let name = text_of(written, "name").to_owned();
            let id = self.queues.get(&name).and_then(|id| id.parse().ok());
            let Some(id) = id else {
                continue;
            };
            if !self.kept.claim_queues.insert(id) {
                self.twice(CLAIM_QUEUES, index, "name");
                continue;
            }
            let read = read::claim_queue(written.clone());
            if self.faults(CLAIM_QUEUES, index, read.faults) {
                continue;
            }
            let before = self.before.claim_queues.get(&id);
            let shown = before.map(|one| Value::from(one.set.clone()));
            let pair = shown.as_ref().zip(before.map(|one| one.bundle.as_deref()));
            if self.note("claim_queue", &name, pair, &Value::from(read.set.clone())) {
                let write = Write::ClaimQueue(id, name.clone(), read.set.clone());
                self.plan.writes.push(write);
            }
            let declared = self.declared(&name, read.set, before);
            self.after.claim_queues.insert(id, declared);
        }
    }

    /// No recipient pool above itself, and none too deep.
    pub(super) fn check_parents(&mut self, list: &[Map<String, Value>]) {
        let parent_of = |one: &Declared| {
            text_of(&one.set, "parent_pool_id")
                .parse::<RecipientPoolId>()
                .ok()
        };
        let all = self.after.recipient_pools.iter();
        let parents: BTreeMap<RecipientPoolId, RecipientPoolId> =
            all.filter_map(|(id, one)| Some((*id, parent_of(one)?))).collect();
        for first in parents.keys() {
            let (mut levels, mut at) = (1, first);
            while let Some(above) = parents.get(at).filter(|_| levels <= limits::PARENTS_MAX) {
                (levels, at) = (levels + 1, above);
            }
            if levels <= limits::PARENTS_MAX {
                continue;
            }
            let name = self.names.get(&first.to_string()).cloned().unwrap_or_default();
            let place = list.iter().position(|written| text_of(written, "name") == name);
            let pointer = place.map_or_else(
                || format!("/{RECIPIENT_POOLS}"),
                |index| format!("/{RECIPIENT_POOLS}/{index}/parent_pool"),
            );
            let most = limits::PARENTS_MAX;
            let detail = format!("pool `{name}` would be above itself, or have more than {most} levels");
            self.plan
                .faults
                .push(Fault::new(pointer, "pool.too_deep", detail));
        }
    }

    /// Names of recipients are unique in each recipient pool.
    fn check_names(&mut self) {
        let mut seen: BTreeSet<(RecipientPoolId, &str)> = BTreeSet::new();
        for one in self.after.recipients.values() {
            for member_of in &one.members_of {
                if !seen.insert((*member_of, &one.name)) {
                    let detail = format!("two recipients of one pool would have the name `{}`", one.name);
                    let pointer = format!("/{RECIPIENTS}");
                    self.plan
                        .faults
                        .push(Fault::new(pointer, "recipient.name_taken", detail));
                }
            }
        }
    }

    fn check_counts(&mut self) {
        let after = &self.after;
        for (list, count, most) in [
            (
                RECIPIENT_POOLS,
                after.recipient_pools.len(),
                limits::RECIPIENT_POOLS_MAX,
            ),
            (RECIPIENTS, after.recipients.len(), limits::BUNDLE_RECIPIENTS_MAX),
            (RULES, after.rules.len(), limits::RULES_MAX),
            (TRAITS, after.traits.len(), limits::TRAITS_MAX),
            (CLAIM_QUEUES, after.claim_queues.len(), limits::CLAIM_QUEUES_MAX),
        ] {
            if count > most {
                let detail = format!("there would be {count}, and {most} are kept");
                let fault = Fault::new(format!("/{list}"), "field.range", detail);
                self.plan.faults.push(fault);
            }
        }
    }

    pub(super) fn done(mut self) -> Plan {
        self.check_names();
        self.check_counts();
        let mut plan = self.plan;
        plan.changes
            .sort_by(|left, right| (left.kind, &left.name).cmp(&(right.kind, &right.name)));
        plan.digest_current = self.before.digest();
        plan.digest_after = self.after.digest();
        plan.after = self.after;
        plan
    }
}
