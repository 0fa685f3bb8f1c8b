//! The history of a run, and what keeps it short: each line has a retention class, lines that only say how a step got to
//! its end are compacted, and a run whose history cannot be compacted any more fails.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::words::limits;
use crate::words::names::StepRef;

/// How long a line of a history is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Retention {
    /// As long as the run: what the run did as a whole, and what people did to it.
    Pinned,
    /// As long as the run, and counted against its limit: how a step has ended.
    Standard,
    /// Until the next compaction: how a step got there, and everything inside of a scatter.
    Compactable,
}

impl Retention {
    /// For people and programs.
    pub fn word(self) -> &'static str {
        match self {
            Retention::Pinned => "pinned",
            Retention::Standard => "standard",
            Retention::Compactable => "compactable",
        }
    }

    /// Of a line about a step that is now in a state.
    pub fn of_step(step: &StepRef, is_end: bool) -> Retention {
        let is_branch = step.as_str().contains('#');
        if is_end && !is_branch {
            Retention::Standard
        } else {
            Retention::Compactable
        }
    }
}

/// A line of a run's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// Its number in the run; the first is 1.
    pub seq: u64,
    /// How long it is kept.
    pub class: Retention,
    /// The step; the run itself without one.
    pub step: Option<StepRef>,
    /// The state that it has now, or what was done.
    pub what: String,
    /// Why, or by whom.
    pub detail: String,
}

/// What a line costs besides its texts.
const LINE_BYTES: u64 = 16;
/// What the line costs that a compaction leaves.
const COMPACTED_BYTES: u64 = 256;
/// What such a line says.
pub const COMPACTED: &str = "compacted";

impl Transition {
    fn bytes(&self) -> u64 {
        let step = self.step.as_ref().map_or(0, |step| step.as_str().len());
        LINE_BYTES + (step + self.what.len() + self.detail.len()) as u64
    }
}

/// What a run's header says of its history, so that no tick counts its rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HistoryCounts {
    /// Lines so far, compacted ones too.
    pub appended: u64,
    /// Bytes of them.
    pub appended_bytes: u64,
    /// Lines that are stored.
    pub kept: u64,
    /// Bytes of them.
    pub kept_bytes: u64,
    /// Those of them that a compaction takes.
    pub compactable: u64,
    /// Bytes of them.
    pub compactable_bytes: u64,
    /// What led to later versions of the run has not been compacted yet.
    pub compacted_to: u64,
}

/// The lines up to here are compacted with this tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction {
    /// Rows of later versions of the run may have lines that go.
    pub after: u64,
    /// The number of the line that is left.
    pub seq: u64,
}

impl HistoryCounts {
    /// One more line, counted.
    pub fn line(&mut self, step: Option<&StepRef>, class: Retention, what: &str, detail: &str) -> Transition {
        let line = Transition {
            seq: self.appended + 1,
            class,
            step: step.cloned(),
            what: what.to_owned(),
            detail: detail.to_owned(),
        };
        self.append(&line);
        line
    }

    /// The number of the line that is appended now.
    pub fn append(&mut self, line: &Transition) {
        let bytes = line.bytes();
        self.appended += 1;
        self.appended_bytes += bytes;
        self.kept += 1;
        self.kept_bytes += bytes;
        if line.class == Retention::Compactable {
            self.compactable += 1;
            self.compactable_bytes += bytes;
        }
    }

    /// True for a run that should end and go on as another one.
    pub fn should_continue_as_new(&self) -> bool {
        self.appended >= limits::HISTORY_LINES_LONG || self.appended_bytes >= limits::HISTORY_BYTES_LONG
    }

    fn is_compaction_due(&self) -> bool {
        let is_at_limit =
            self.kept >= limits::HISTORY_LINES_MAX || self.kept_bytes >= limits::HISTORY_BYTES_MAX;
        self.compactable >= limits::HISTORY_COMPACTED_AT || (is_at_limit && self.compactable > 0)
    }

    /// True when more is left than any run may keep after all was compacted that can be.
    pub fn is_full(&self) -> bool {
        self.kept - self.compactable >= limits::HISTORY_LINES_MAX
            || self.kept_bytes - self.compactable_bytes >= limits::HISTORY_BYTES_MAX
    }

    /// The compaction that is due when a tick leads to this version of the run, counted as done.
    pub fn compact(&mut self, version: u64, has_ended: bool) -> Option<Compaction> {
        let at_end = has_ended && self.compactable >= limits::HISTORY_COMPACTED_AT_END;
        if !self.is_compaction_due() && !at_end {
            return None;
        }
        let compaction = Compaction {
            after: self.compacted_to,
            seq: self.appended + 1,
        };
        self.appended += 1;
        self.appended_bytes += COMPACTED_BYTES;
        self.kept = self.kept - self.compactable + 1;
        self.kept_bytes = self.kept_bytes - self.compactable_bytes + COMPACTED_BYTES;
        self.compactable = 0;
        self.compactable_bytes = 0;
        self.compacted_to = version;
        Some(compaction)
    }
}

/// The lines that a compaction takes.
#[derive(Debug, Default)]
pub struct Dropped {
    by_word: BTreeMap<String, u64>,
    first: Option<u64>,
    last: u64,
}

impl Dropped {
    /// Takes the compactable lines out of these; true if there was one.
    pub fn take_from(&mut self, lines: &mut Vec<Transition>) -> bool {
        let before = lines.len();
        lines.retain(|line| {
            let goes = line.class == Retention::Compactable;
            if goes {
                *self.by_word.entry(line.what.clone()).or_default() += 1;
                self.first.get_or_insert(line.seq);
                self.last = line.seq;
            }
            !goes
        });
        lines.len() < before
    }

    /// The line that is left of them.
    pub fn line(self, seq: u64) -> Transition {
        let count: u64 = self.by_word.values().sum();
        let first = self.first.unwrap_or(0);
        let mut detail = format!("{count} lines between {first} and {}:", self.last);
        for (place, (word, count)) in self.by_word.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(detail, "{comma} {count} {word}").ok();
        }
        Transition {
            seq,
            class: Retention::Pinned,
            step: None,
            what: COMPACTED.to_owned(),
            detail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(counts: &HistoryCounts, step: Option<&str>, what: &str, is_end: bool) -> Transition {
        let step = step.map(|step| StepRef::new(step).unwrap());
        let of_step = |step: &StepRef| Retention::of_step(step, is_end);
        Transition {
            seq: counts.appended + 1,
            class: step.as_ref().map_or(Retention::Pinned, of_step),
            step,
            what: what.to_owned(),
            detail: String::new(),
        }
    }

    fn append(counts: &mut HistoryCounts, step: Option<&str>, what: &str, is_end: bool) -> Transition {
        let line = line(counts, step, what, is_end);
        counts.append(&line);
        line
    }

    #[test]
    fn what_the_run_did_is_pinned_and_the_way_of_a_step_is_not() {
        let counts = HistoryCounts::default();
        let class = |step, what, is_end| line(&counts, step, what, is_end).class;
        assert_eq!(class(None, "running", false), Retention::Pinned);
        assert_eq!(class(Some("a"), "succeeded", true), Retention::Standard);
        assert_eq!(class(Some("a"), "retrying", false), Retention::Compactable);
        assert_eq!(class(Some("a#7"), "failed", true), Retention::Compactable);
    }

    #[test]
    fn at_two_thousand_compactable_lines_one_is_left() {
        let mut counts = HistoryCounts::default();
        let mut lines = vec![append(&mut counts, None, "running", false)];
        for number in 1..limits::HISTORY_COMPACTED_AT {
            lines.push(append(
                &mut counts,
                Some("a#1"),
                if number % 2 == 0 { "ready" } else { "failed" },
                false,
            ));
            assert_eq!(counts.compact(number, false), None);
        }
        lines.push(append(&mut counts, Some("b"), "succeeded", true));
        lines.push(append(&mut counts, Some("b"), "ready", false));
        let before = counts.clone();
        let compaction = counts.compact(77, false).unwrap();
        assert_eq!((compaction.after, compaction.seq), (0, before.appended + 1));
        let mut dropped = Dropped::default();
        assert!(dropped.take_from(&mut lines) && !dropped.take_from(&mut lines));
        lines.push(dropped.line(compaction.seq));
        let last = lines.last().unwrap();
        assert_eq!(
            last.detail,
            "2000 lines between 2 and 2002: 1000 failed, 1000 ready"
        );
        assert_eq!((lines.len() as u64, counts.kept), (3, 3));
        assert_eq!((counts.compactable, counts.compacted_to), (0, 77));
        assert_eq!(counts.compact(78, true), None, "nothing is left to compact");
    }

    #[test]
    fn a_short_history_stays_whole_when_its_run_ends() {
        let mut counts = HistoryCounts::default();
        for _ in 1..limits::HISTORY_COMPACTED_AT_END {
            append(&mut counts, Some("a"), "ready", false);
        }
        assert_eq!(counts.clone().compact(9, true), None);
        append(&mut counts, Some("a"), "ready", false);
        assert_eq!(counts.clone().compact(9, false), None);
        assert!(counts.compact(9, true).is_some());
    }

    #[test]
    fn a_history_is_long_and_full_by_lines_and_by_bytes() {
        let mut counts = HistoryCounts {
            appended: limits::HISTORY_LINES_LONG - 1,
            kept: limits::HISTORY_LINES_MAX - 1,
            ..HistoryCounts::default()
        };
        assert!(!counts.should_continue_as_new() && !counts.is_full());
        append(&mut counts, Some("a"), "succeeded", true);
        assert!(counts.should_continue_as_new() && counts.is_full());
        let by_bytes = HistoryCounts {
            appended_bytes: limits::HISTORY_BYTES_LONG,
            kept_bytes: limits::HISTORY_BYTES_MAX,
            ..HistoryCounts::default()
        };
        assert!(by_bytes.should_continue_as_new() && by_bytes.is_full());
        // What the next compaction takes does not fill it, however much one tick appends.
        let mut many = HistoryCounts::default();
        for _ in 0..=limits::HISTORY_LINES_MAX {
            append(&mut many, Some("a#1"), "ready", false);
        }
        assert!(!many.is_full());
    }
}
