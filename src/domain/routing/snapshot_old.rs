//! Snapshots of the first form, read as if they had the second: there everything stood in one text, and each member brought what
//! it did with it.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::snapshot_declared::Kept as KeptDeclared;
use super::snapshot_text::Kept;
use crate::words::time::Micros;

/// What stood in a line, in its order.
const LIVE: [&str; 10] = [
    "state",
    "state_since",
    "current",
    "units",
    "daily_count",
    "daily_reset_at",
    "capacity_epoch",
    "last_assigned_at",
    "last_finished_at",
    "cooldown_until",
];
const LEARNED: [&str; 7] = [
    "n",
    "successes",
    "faded_at",
    "ewma_us",
    "ewma_at",
    "delivered",
    "delivered_since",
];
const BID: [&str; 7] = [
    "amount",
    "effective",
    "at",
    "expires_at",
    "quality_micro",
    "sla_micro",
    "wallet",
];

/// Both halves of a text of the first form.
pub(super) fn read(text: &str) -> Result<(Kept, KeptDeclared), serde_json::Error> {
    let mut kept: Map<String, Value> = serde_json::from_str(text)?;
    let mut declared = Map::new();
    for name in ["pools", "rules", "traits"] {
        declared.extend(kept.remove(name).map(|value| (name.to_owned(), value)));
    }
    let mut members = kept.remove("members").unwrap_or_default();
    let recipient_pools = members.as_object_mut().into_iter().flatten();
    let lines: Map<String, Value> = recipient_pools
        .map(|(id, members)| (id.clone(), lines_of(members)))
        .collect();
    kept.insert("members".to_owned(), Value::Object(lines));
    kept.insert("declared".to_owned(), json!(""));
    declared.insert("members".to_owned(), members);
    Ok((
        serde_json::from_value(Value::Object(kept))?,
        serde_json::from_value(Value::Object(declared))?,
    ))
}

/// Takes out of the members of a recipient pool what moves.
fn lines_of(members: &mut Value) -> Value {
    let (mut live, mut learned, mut bids) = (Vec::new(), Vec::new(), Vec::new());
    for member in members.as_array_mut().into_iter().flatten() {
        live.push(line(member, "live", &LIVE));
        learned.push(line(member, "learned", &LEARNED));
        bids.push(line(member, "bid", &BID));
    }
    json!({"live": live, "learned": learned, "bids": bids})
}

fn line(member: &mut Value, name: &str, order: &[&str]) -> Value {
    let taken = member.as_object_mut().and_then(|member| member.remove(name));
    match taken {
        Some(Value::Object(fields)) => order
            .iter()
            .map(|name| number_of(fields.get(*name).unwrap_or(&Value::Null)))
            .collect(),
        Some(_) | None => Value::Null,
    }
}

/// Instants were texts there.
fn number_of(value: &Value) -> Value {
    match Micros::deserialize(value) {
        Ok(at) if value.is_string() => json!(at.0),
        Ok(_) | Err(_) => value.clone(),
    }
}
