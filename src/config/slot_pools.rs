//! The `pools` section: names, slots and queue bounds. Who uses a slot pool is in `jobs.rs`.

use std::collections::HashMap;

use super::fault::{Fault, Place, shown};
use super::keys::{Section, nearest};
use super::model::SlotPoolConfig;
use super::reading::{Field, Reading};

/// Bytes of a slot pool's name.
const NAME_BYTES_MAX: usize = 128;

/// Slot pools of one configuration.
pub const SLOT_POOLS_MAX: usize = 1000;

const NAME_RULE: &str = "pool name must be non-empty and printable";
const MAX_QUEUED_DEFAULT: u32 = 1000;

/// Every name that was given, over all files, also of slot pools whose body is faulty: a job that
/// names one of those must not be told that it does not exist.
#[derive(Default)]
pub(super) struct SlotPools {
    names: HashMap<String, Named>,
    pub(super) configs: Vec<SlotPoolConfig>,
}

struct Named {
    at: Place,
    /// None when the body is faulty.
    slots: Option<u32>,
}

/// What a job finds under a name.
pub(super) enum Found {
    Slots(u32),
    /// It is there, but its body is faulty and has been reported.
    Faulty,
    Unknown,
}

impl SlotPools {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn find(&self, name: &str) -> Found {
        match self.names.get(name) {
            Some(Named {
                slots: Some(slots), ..
            }) => Found::Slots(*slots),
            Some(Named { slots: None, .. }) => Found::Faulty,
            None => Found::Unknown,
        }
    }

    /// The name that was probably meant.
    pub(super) fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.names.keys().map(String::as_str))
    }

    /// Adds those of one file.
    pub(super) fn read(&mut self, reading: &mut Reading<'_>, field: &Field) {
        if field.node.is_null() {
            return;
        }
        let duplicate = |name: &str| duplicate(name);
        let pairs = reading.pairs_named(&field.node, &field.label, &duplicate);
        for (name, key, value) in pairs.unwrap_or_default() {
            if !is_name(&name) {
                reading.error("config/bad-value", &key.at, NAME_RULE);
                continue;
            }
            if let Some(first) = self.names.get(&name) {
                let fault = Fault::error("config/duplicate-name", &key.at, duplicate(&name))
                    .with_related(&first.at, "the first one stands here");
                reading.report(fault);
                continue;
            }
            if self.names.len() == SLOT_POOLS_MAX {
                let message = format!("a configuration may have at most {SLOT_POOLS_MAX} pools");
                reading.error("config/too-large", &key.at, message);
                return;
            }
            let config = body(reading, &name, &key.at, &value);
            let slots = config.as_ref().map(|config| config.slots);
            self.names.insert(
                name,
                Named {
                    at: key.at.clone(),
                    slots,
                },
            );
            self.configs.extend(config);
        }
    }
}

fn duplicate(name: &str) -> String {
    format!("duplicate pool '{}'", shown(name))
}

/// C0 controls and DEL would break logs and terminals; everything else is allowed.
fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.bytes().any(|byte| byte < 0x20 || byte == 0x7f)
}

fn body(
    reading: &mut Reading<'_>,
    name: &str,
    at: &Place,
    node: &super::tree::Node,
) -> Option<SlotPoolConfig> {
    let fields = reading
        .fields(node, Section::SlotPool)?
        .with_subject(&format!("pool '{}': ", shown(name)));
    let max_queued = match fields.get("maxQueued") {
        Some(field) => reading.count(&field, 1..=10_000, "pool maxQueued must be between 1 and 10000"),
        None => Some(MAX_QUEUED_DEFAULT),
    };
    let Some(slots) = fields.get("slots") else {
        let message = format!("pool '{}' needs `slots`", shown(name));
        reading.error("config/missing", at, message);
        return None;
    };
    let slots = reading.count(&slots, 1..=10_000, "pool slots must be between 1 and 10000")?;
    Some(SlotPoolConfig {
        name: name.to_owned(),
        slots,
        max_queued: max_queued?,
        at: at.clone(),
    })
}
