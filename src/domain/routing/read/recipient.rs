//! A recipient: who or what gets work.

use serde_json::{Map, Value};

use super::attributes;
use super::config::micro;
use super::fields::Fields;
use super::hours;
use super::recipient_pool::Stamp;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::{Location, Recipient, RecipientState, Status};
use crate::words::ids::{RecipientId, RecipientPoolId};
use crate::words::limits;

const KNOWN: [&str; 12] = [
    "name",
    "type",
    "status",
    "weight",
    "capacity",
    "attributes",
    "tags",
    "schedule",
    "timezone",
    "location",
    "external_id",
    "metadata",
];

const MAX_CONCURRENT: u32 = 10;
const CONCURRENT_MAX: u32 = 1_000_000;
const DAILY_MAX: u32 = 1_000_000_000;
const WEIGHT_MAX: f64 = 1_000_000.0;

/// A recipient that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct RecipientRead {
    /// With every default; of no use while there are faults.
    pub object: Recipient,
    /// What was set, in its one form.
    pub set: Map<String, Value>,
    /// All that is wrong.
    pub faults: Vec<Fault>,
}

/// Reads a recipient out of what is set of it. Memberships and its state are stored beside that.
pub fn recipient(
    id: RecipientId,
    stamp: Stamp,
    members_of: Vec<RecipientPoolId>,
    mut set: Map<String, Value>,
) -> RecipientRead {
    let mut faults = Vec::new();
    let mut fields = Fields::new("", &mut set, &mut faults, &KNOWN);
    let name = fields.name("name").unwrap_or_default();
    let kind = fields.text("type", 64);
    let status = fields.word("status", Status::of, Status::WORDS);
    let weight = fields.number("weight", 0.0, WEIGHT_MAX).unwrap_or(1.0);
    let (mut max_concurrent, mut daily_limit) = (None, None);
    if let Some(mut capacity) = fields.part("capacity", &["max_concurrent", "daily_limit"]) {
        max_concurrent = capacity.whole32("max_concurrent", 0, CONCURRENT_MAX);
        daily_limit = capacity.whole32("daily_limit", 0, DAILY_MAX);
    }
    let attributes = attributes_of(&mut fields);
    let tags = tags_of(&mut fields);
    let schedule = fields.part("schedule", &["timezone", "windows", "exceptions"]);
    let schedule = schedule.map(hours::read);
    let timezone = hours::zone(&mut fields, "timezone");
    let location = location_of(&mut fields);
    let external_id = fields.text("external_id", limits::ROUTING_NAME_CHARS_MAX);
    if external_id
        .as_deref()
        .is_some_and(|id| id.is_empty() || id.chars().any(char::is_control))
    {
        let detail = "must have 1 to 200 characters, none of them a control character; null for none";
        fields.fault("external_id", "field.value", detail);
    }
    let metadata = fields.metadata();
    let object = Recipient {
        id,
        name,
        kind: kind.unwrap_or_default(),
        members_of,
        status: status.unwrap_or(Status::Active),
        weight_micro: micro(weight),
        max_concurrent: max_concurrent.unwrap_or(MAX_CONCURRENT),
        daily_limit: daily_limit.unwrap_or(0),
        attributes,
        tags,
        schedule,
        timezone: timezone.unwrap_or_else(|| "UTC".to_owned()),
        location,
        external_id,
        metadata,
        record_version: stamp.record_version,
        created_at: stamp.created_at,
        updated_at: stamp.updated_at,
    };
    RecipientRead { object, set, faults }
}

fn attributes_of(fields: &mut Fields<'_>) -> Map<String, Value> {
    let Some(map) = fields.map("attributes") else {
        return Map::new();
    };
    let mut faults = Vec::new();
    let read = attributes::read(&fields.pointer("attributes"), &map, &mut faults);
    if faults.is_empty() {
        fields.set("attributes", read.wrapped);
    }
    for fault in faults {
        fields.push(fault);
    }
    read.plain
}

fn tags_of(fields: &mut Fields<'_>) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    let at = fields.pointer("tags");
    for (index, item) in fields
        .list("tags", limits::TAGS_MAX)
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        let pointer = format!("{at}/{index}");
        let fault = match item.as_str() {
            None => ("field.type", "must be a text".to_owned()),
            Some("") => ("field.required", "must not be empty".to_owned()),
            Some(tag) if tag.chars().count() > limits::TAGS_MAX => {
                ("field.too_long", "has more than 64 characters".to_owned())
            }
            Some(tag) if tags.iter().any(|before| before == tag) => {
                ("tag.duplicate", format!("`{tag}` stands in the list before"))
            }
            Some(tag) => {
                tags.push(tag.to_owned());
                continue;
            }
        };
        fields.push(Fault::new(pointer, fault.0, fault.1));
    }
    tags
}

fn location_of(fields: &mut Fields<'_>) -> Option<Location> {
    let mut part = fields.part("location", &["latitude", "longitude"])?;
    for key in ["latitude", "longitude"] {
        if !part.has(key) {
            part.fault(key, "field.required", "must be given");
        }
    }
    let latitude = part.number("latitude", -90.0, 90.0);
    let longitude = part.number("longitude", -180.0, 180.0);
    Some(Location {
        latitude: latitude?,
        longitude: longitude?,
    })
}

/// What a request says of memberships and availability, which are stored beside the object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memberships {
    /// The primary one.
    pub primary: Option<RecipientPoolId>,
    /// All of them.
    pub all: Option<Vec<RecipientPoolId>>,
    /// Whether it is there.
    pub state: Option<RecipientState>,
}

impl Memberships {
    /// Takes `pool_id`, `pool_ids` and `state` out of a request.
    pub fn take(request: &mut Map<String, Value>, faults: &mut Vec<Fault>) -> Memberships {
        let mut own = Map::new();
        let was_null = request.get("pool_id").is_some_and(Value::is_null);
        for key in ["pool_id", "pool_ids", "state"] {
            own.extend(request.remove(key).map(|value| (key.to_owned(), value)));
        }
        let mut fields = Fields::new("", &mut own, faults, &["pool_id", "pool_ids", "state"]);
        if was_null {
            let detail = "a membership is dropped by DELETE /api/pools/{pool_id}/recipients/{recipient_id}";
            fields.fault("pool_id", "field.required", detail);
        }
        let primary = fields.id::<RecipientPoolId>("pool_id", "pool.not_found");
        let state = fields.word("state", RecipientState::of, RecipientState::WORDS);
        let at = fields.pointer("pool_ids");
        let mut all = None;
        if let Some(items) = fields.list("pool_ids", limits::MEMBERSHIPS_MAX) {
            let ids = all.get_or_insert_with(Vec::new);
            for (index, item) in items.iter().enumerate() {
                match item
                    .as_str()
                    .and_then(|text| text.parse::<RecipientPoolId>().ok())
                {
                    None => {
                        let pointer = format!("{at}/{index}");
                        fields.push(Fault::new(pointer, "pool.not_found", "is no id of a pool"));
                    }
                    Some(id) => ids.push(id),
                }
            }
        }
        Memberships { primary, all, state }
    }

    /// What the memberships are then: the primary one first. A new primary one takes the place of the one before.
    pub fn after(&self, before: &[RecipientPoolId]) -> Vec<RecipientPoolId> {
        let primary = self.primary.or(before.first().copied());
        let rest = match &self.all {
            Some(all) => all.as_slice(),
            None => before.get(1..).unwrap_or_default(),
        };
        let mut after: Vec<RecipientPoolId> = Vec::new();
        for id in primary.iter().chain(rest) {
            if !after.contains(id) {
                after.push(*id);
            }
        }
        after
    }
}
