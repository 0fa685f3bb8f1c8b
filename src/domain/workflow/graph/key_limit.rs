//! How many runs of one definition and key are under way at once, and what becomes of one more.
//!
//! Runs of the same tenant, definition and key hold a place each until they end. The limit is that of the version that asks:
//! a run that waits begins as soon as fewer runs hold a place than its own version allows, and never before one that waits
//! longer.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::{ConcurrencyDoc, OnLimit};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::time::Millis;

/// What a run says of its place among those of its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPlace {
    /// The key's text; empty for a definition without one.
    pub key: String,
    /// How many its version allows.
    pub limit: u32,
    /// Whether it has one.
    pub stand: KeyStand,
}

/// Whether a run has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyStand {
    /// It has one until it ends.
    Holds,
    /// It has one, and was told to end because of a newer run.
    Leaves,
    /// It waits for one.
    Waits {
        /// Its number: who came first.
        number: u64,
        /// Since when.
        since: Millis,
        /// A newer run may take its turn.
        replaceable: bool,
    },
}

/// The runs of one key, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeyCount {
    /// Those that have a place, the leaving ones too.
    pub holding: u32,
    /// Those of them that were told to end because of newer ones.
    pub leaving: u32,
    /// Those that wait for a place.
    pub waiting: u32,
}

impl KeyCount {
    /// With one more run that stands so.
    #[must_use]
    pub fn with(mut self, stand: KeyStand) -> KeyCount {
        match stand {
            KeyStand::Holds => self.holding += 1,
            KeyStand::Leaves => {
                self.holding += 1;
                self.leaving += 1;
            }
            KeyStand::Waits { .. } => self.waiting += 1,
        }
        self
    }

    /// With one less.
    #[must_use]
    pub fn without(mut self, stand: KeyStand) -> KeyCount {
        match stand {
            KeyStand::Holds => self.holding = self.holding.saturating_sub(1),
            KeyStand::Leaves => {
                self.holding = self.holding.saturating_sub(1);
                self.leaving = self.leaving.saturating_sub(1);
            }
            KeyStand::Waits { .. } => self.waiting = self.waiting.saturating_sub(1),
        }
        self
    }

    /// True when nobody is left.
    pub fn is_empty(&self) -> bool {
        self.holding == 0 && self.waiting == 0
    }
}

/// What becomes of a run that asks for a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It begins.
    Begins,
    /// It waits for its turn.
    Waits,
    /// It waits, and so many older ones are told to end: holders first, then those that wait and may be replaced.
    Replaces(u32),
    /// It never begins.
    Skipped,
    /// It would wait for a run that waits for it.
    Deadlock,
    /// Too many wait already.
    Full,
}

/// Judges a run that asks for a place.
///
/// `above` are the holders of the key that wait for this very run, because a step of theirs has begun it: none of them can
/// end before it.
pub fn judge(limit: u32, on_limit: OnLimit, count: KeyCount, above: u32) -> Verdict {
    if count.holding < limit && count.waiting == 0 {
        return Verdict::Begins;
    }
    if on_limit == OnLimit::Skip {
        return Verdict::Skipped;
    }
    // Those who may end without it are fewer than the places that it needs free.
    if above >= limit {
        return Verdict::Deadlock;
    }
    if count.waiting >= limits::KEY_WAITING_MAX {
        return Verdict::Full;
    }
    let ahead = count.holding - count.leaving + count.waiting;
    match on_limit {
        OnLimit::Queue | OnLimit::Skip => Verdict::Waits,
        OnLimit::Replace => Verdict::Replaces((ahead + 1).saturating_sub(limit)),
    }
}

/// True when the one that waits longest begins.
pub fn is_next(head_limit: u32, count: KeyCount) -> bool {
    count.holding < head_limit
}

/// The text of a key, or why there is none.
pub fn text_of(value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(yes) => yes.to_string(),
        Value::Null => return Err(no_text("null")),
        Value::Array(_) => return Err(no_text("a list")),
        Value::Object(_) => return Err(no_text("an object")),
    };
    if text.len() > limits::KEY_TEXT_BYTES_MAX {
        return Err(format!(
            "it has {} bytes, and {} are allowed",
            text.len(),
            limits::KEY_TEXT_BYTES_MAX
        ));
    }
    if text.contains('\0') {
        return Err("it has a zero byte".to_owned());
    }
    Ok(text)
}

fn no_text(what: &str) -> String {
    format!("it is {what}, and must be a text, a number or a bool")
}

/// The place that a run of this definition takes when nobody is in its way.
pub fn place(doc: &ConcurrencyDoc, key: String) -> KeyPlace {
    KeyPlace {
        key,
        limit: doc.limit,
        stand: KeyStand::Holds,
    }
}

/// Holders that are named in a sentence.
const NAMED: usize = 3;

/// "run_1, run_2 and 3 more".
fn named(holders: &[RunId], count: u32) -> String {
    let mut text = String::new();
    for (at, holder) in holders.iter().take(NAMED).enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        write!(text, "{comma}{holder}").expect("a text takes all");
    }
    let shown = u32::try_from(holders.len().min(NAMED)).unwrap_or(0);
    if count > shown {
        write!(text, " and {} more", count - shown).expect("a text takes all");
    }
    text
}

/// "1 run of key `acme`".
fn allowed(limit: u32, key: &str) -> String {
    let runs = if limit == 1 { "run" } else { "runs" };
    if key.is_empty() {
        format!("{limit} {runs} at once")
    } else {
        format!("{limit} {runs} of key `{key}` at once")
    }
}

/// Why a run waits for a place. `ahead` wait longer.
pub fn waits_sentence(place: &KeyPlace, holders: &[RunId], holding: u32, ahead: u64) -> String {
    let mut text = format!("Only {}: ", allowed(place.limit, &place.key));
    if holding == 0 {
        text.push_str("it begins at any moment");
    } else {
        write!(text, "waits for {}", named(holders, holding)).expect("a text takes all");
    }
    match ahead {
        0 => {}
        1 => text.push_str("; 1 run is ahead"),
        more => write!(text, "; {more} runs are ahead").expect("a text takes all"),
    }
    text.push('.');
    text
}

/// Why a run was skipped.
pub fn skipped_reason(place: &KeyPlace, holders: &[RunId], holding: u32) -> String {
    let who = if holding == 0 {
        "others wait".to_owned()
    } else {
        format!("held by {}", named(holders, holding))
    };
    format!("only {}: {who}", allowed(place.limit, &place.key))
}

/// Why a run fails that would wait for one that waits for it.
pub fn deadlock_reason(place: &KeyPlace, above: RunId) -> String {
    format!(
        "only {}: it would wait for {above}, which waits for it",
        allowed(place.limit, &place.key)
    )
}

/// Why a run is refused that nobody will get to.
pub fn full_reason(place: &KeyPlace, waiting: u32) -> String {
    format!(
        "only {}, and {waiting} wait already",
        allowed(place.limit, &place.key)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(holding: u32, leaving: u32, waiting: u32) -> KeyCount {
        KeyCount {
            holding,
            leaving,
            waiting,
        }
    }

    #[test]
    fn what_becomes_of_one_more_run() {
        use OnLimit::{Queue, Replace, Skip};
        for on_limit in [Queue, Skip, Replace] {
            assert_eq!(judge(2, on_limit, count(1, 0, 0), 0), Verdict::Begins);
            assert_eq!(judge(2, on_limit, count(1, 0, 0), 1), Verdict::Begins);
        }
        let full = count(2, 0, 0);
        assert_eq!(judge(2, Queue, full, 0), Verdict::Waits);
        assert_eq!(judge(2, Skip, full, 0), Verdict::Skipped);
        assert_eq!(judge(2, Replace, full, 0), Verdict::Replaces(1));
        // A place is free, and somebody waits for it longer.
        assert_eq!(judge(2, Queue, count(1, 0, 1), 0), Verdict::Waits);
        assert_eq!(judge(2, Skip, count(1, 0, 1), 0), Verdict::Skipped);
        // Who leaves already makes the room.
        assert_eq!(judge(1, Replace, count(1, 1, 0), 0), Verdict::Replaces(0));
        assert_eq!(judge(1, Replace, count(1, 1, 1), 0), Verdict::Replaces(1));
        // Another version had allowed more.
        assert_eq!(judge(1, Replace, count(3, 1, 0), 0), Verdict::Replaces(2));
        // It waits for who waits for it.
        assert_eq!(judge(1, Queue, count(1, 0, 0), 1), Verdict::Deadlock);
        assert_eq!(judge(1, Replace, count(1, 0, 0), 1), Verdict::Deadlock);
        assert_eq!(judge(1, Skip, count(1, 0, 0), 1), Verdict::Skipped);
        assert_eq!(judge(2, Queue, full, 1), Verdict::Waits);
        let many = count(1, 0, limits::KEY_WAITING_MAX);
        assert_eq!(judge(1, Queue, many, 0), Verdict::Full);
        assert!(is_next(2, count(1, 1, 5)) && !is_next(1, count(1, 1, 5)));
    }

    #[test]
    fn counts_follow_what_stands() {
        let waits = KeyStand::Waits {
            number: 1,
            since: Millis(0),
            replaceable: false,
        };
        let all = [KeyStand::Holds, KeyStand::Leaves, waits];
        let sum = all.into_iter().fold(KeyCount::default(), KeyCount::with);
        assert_eq!(sum, count(2, 1, 1));
        let none = all.into_iter().fold(sum, KeyCount::without);
        assert!(none.is_empty() && none == KeyCount::default());
    }

    #[test]
    fn a_key_is_a_short_text() {
        use serde_json::json;
        assert_eq!(text_of(&json!("a")).unwrap(), "a");
        assert_eq!(text_of(&json!(7)).unwrap(), "7");
        assert_eq!(text_of(&json!(true)).unwrap(), "true");
        for (bad, why) in [
            (json!(null), "null"),
            (json!([1]), "a list"),
            (json!({}), "an object"),
            (json!("x".repeat(300)), "300 bytes"),
            (json!("a\0b"), "zero byte"),
        ] {
            assert!(text_of(&bad).unwrap_err().contains(why), "{bad}");
        }
    }

    #[test]
    fn sentences_name_key_and_holders() {
        let place = |key: &str, limit: u32| KeyPlace {
            key: key.to_owned(),
            limit,
            stand: KeyStand::Holds,
        };
        let run = |number: u8| RunId([number; 16]);
        let one = run(1).to_string();
        assert_eq!(
            waits_sentence(&place("acme", 1), &[run(1)], 1, 2),
            format!("Only 1 run of key `acme` at once: waits for {one}; 2 runs are ahead.")
        );
        let many = skipped_reason(&place("", 5), &[run(1), run(2), run(3), run(4)], 5);
        assert!(many.starts_with("only 5 runs at once: held by "), "{many}");
        assert!(many.ends_with(" and 2 more"), "{many}");
    }
}
