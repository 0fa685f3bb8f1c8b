//! The snapshot of a decision: the canonical JSON of what was read, and the replay from it alone. What is declared is kept apart
//! from what moves, and shared: a snapshot names its digest.

use std::convert::Infallible;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::known::Known;
use super::pass::{Passed, Request, Stopped, route};
pub use super::snapshot_declared::Declared;
use super::snapshot_declared::Kept as KeptDeclared;
use super::snapshot_old;
pub use super::snapshot_text::about;
use super::snapshot_text::{Kept, written};
use crate::words::ids::{DecisionId, sha256_hex};
use crate::words::payload::JsonText;
use crate::words::time::Micros;

/// The form of snapshots that this program writes. Form 1 held everything in one text.
pub(super) const VERSION: u32 = 2;

/// A snapshot: its text, and the digest that it is stored under.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Canonical JSON.
    pub text: JsonText,
    /// SHA-256 over it, in hex digits.
    pub digest: String,
    /// The declared half, whose digest the text names.
    pub declared: Arc<Declared>,
}

/// Why a snapshot cannot be replayed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unreadable {
    /// It is none.
    #[error("the snapshot cannot be read: {0}")]
    Text(String),
    /// It asks for something that this program refuses.
    #[error("the snapshot is not admitted any more: {0}")]
    Refused(String),
}

/// The snapshot of a pass over what it read. `declared` is the declared half of it, where somebody has it already.
pub fn take(
    request: &Request,
    now: Micros,
    decision: DecisionId,
    read: &Known,
    declared: Option<Arc<Declared>>,
) -> Snapshot {
    let declared = declared
        .filter(|declared| declared.is_of(read))
        .unwrap_or_else(|| Arc::new(Declared::of(read)));
    let text = written(request, now, decision, read, &declared.digest).expect("a snapshot is plain data");
    Snapshot {
        digest: sha256_hex(text.as_str().as_bytes()),
        text,
        declared,
    }
}

/// A snapshot, read again.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// What was asked.
    pub request: Request,
    /// When.
    pub now: Micros,
    /// Its decision.
    pub decision: DecisionId,
    /// The program that decided then.
    pub engine: String,
    /// What was read.
    pub read: Known,
}

/// Reads a snapshot and its declared half; one of the first form has none.
pub fn recall(text: &str, declared: Option<&str>) -> Result<Recalled, Unreadable> {
    #[derive(Deserialize)]
    struct Form {
        version: u32,
    }
    let unreadable = |error: serde_json::Error| Unreadable::Text(error.to_string());
    let (kept, declared): (Kept, KeptDeclared) =
        match serde_json::from_str::<Form>(text).map_err(unreadable)?.version {
            1 => snapshot_old::read(text).map_err(unreadable)?,
            VERSION => {
                let declared =
                    declared.ok_or_else(|| Unreadable::Text("its declared half is gone".to_owned()))?;
                let kept = serde_json::from_str(text).map_err(unreadable)?;
                (kept, serde_json::from_str(declared).map_err(unreadable)?)
            }
            other => return Err(Unreadable::Text(format!("it has the form {other}"))),
        };
    let mut read = Known::new(&kept.tenant);
    declared.lay_out(&mut read);
    read.default_recipient_pool = kept.default_pool;
    read.pipeline_mode = kept.mode;
    read.names = kept.names;
    read.flows = kept.flows;
    read.tried = kept.tried;
    for (id, members) in &mut read.candidates {
        let lines = kept.members.get(id);
        if !lines.is_some_and(|lines| lines.lay_over(members)) {
            return Err(Unreadable::Text(format!(
                "its halves differ in the members of {id}"
            )));
        }
    }
    for (id, stage, state) in kept.states {
        read.states.insert((id, stage), Arc::new(state));
    }
    for (id, stage, key, holder) in kept.holders {
        read.holders.insert((id, stage, key), holder);
    }
    for (id, key, decision, at) in kept.seen {
        read.seen.insert((id, key), (decision, at));
    }
    Ok(Recalled {
        request: kept.request,
        now: kept.now,
        decision: kept.decision,
        engine: kept.engine,
        read,
    })
}

impl Recalled {
    /// Decides again; with a changed request it is what would have been.
    pub fn replay(&self) -> Result<Passed, Unreadable> {
        route(&self.request, self.now, self.decision, &self.read).map_err(|stopped: Stopped<Infallible>| {
            Unreadable::Refused(match stopped {
                Stopped::World(never) => match never {},
                Stopped::Invalid(faults) => faults
                    .iter()
                    .map(|fault| fault.detail.as_str())
                    .collect::<Vec<_>>()
                    .join("; "),
                Stopped::Refused(refusal) => format!("{refusal:?}"),
            })
        })
    }
}

/// What a replay may differ in without being another decision: times, and ids that the store gave.
const OF_THE_PASS: &[&str] = &[
    "micros",
    "duration_micros",
    "assignment_id",
    "snapshot",
    "shadow",
    "committed",
    "engine",
];

/// The places where two decisions on the wire differ: pointer, first, second. At most 100 of them.
pub fn differences(first: &Value, second: &Value) -> Vec<(String, Value, Value)> {
    let mut found = Vec::new();
    compare("", first, second, &mut found);
    found
}

fn compare(pointer: &str, first: &Value, second: &Value, found: &mut Vec<(String, Value, Value)>) {
    if first == second || found.len() >= 100 {
        return;
    }
    match (first, second) {
        (Value::Object(left), Value::Object(right)) => {
            let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names
                .into_iter()
                .filter(|name| !OF_THE_PASS.contains(&name.as_str()))
            {
                let of = |side: &Map<String, Value>| side.get(name).cloned().unwrap_or(Value::Null);
                compare(&format!("{pointer}/{name}"), &of(left), &of(right), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                compare(&format!("{pointer}/{at}"), left, right, found);
            }
        }
        _ => found.push((pointer.to_owned(), first.clone(), second.clone())),
    }
}
