//! The life of a run as segments of time: when it waited, when an attempt ran, when it waited for the next attempt.
//!
//! Segments follow each other without a gap from the beginning of the run to its end or now. What rows do not keep is
//! one segment, whose text says so. Not here: what a run waits for right now, which is told by whoever asks.

use std::collections::BTreeMap;

use super::attempt::{Attempt, Outcome};
use super::definition::Retry;
use super::run::Trigger;
use crate::words::names::{NodeName, SlotPoolName};
use crate::words::time::Millis;

/// An ended attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// Its number; a lost attempt is followed by one of the same.
    pub number: u32,
    /// How it went.
    pub attempt: Attempt,
}

/// Where the step of the run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The run has ended.
    Ended {
        /// When.
        at: Millis,
        /// Its state and why.
        text: String,
    },
    /// It waits for slots or a process.
    Queued {
        /// Since when.
        since: Millis,
        /// For what.
        text: String,
        /// The end of its waiting.
        until: Option<Millis>,
    },
    /// It waits for the time of its next attempt.
    BackOff {
        /// When that is.
        due: Millis,
        /// Why the slot pool refused it when its time had come.
        refused: Option<String>,
    },
    /// An attempt runs.
    Running {
        /// Since when.
        since: Millis,
        /// Where.
        node: NodeName,
        /// The longest that it may take.
        limit_ms: Option<u64>,
    },
}

/// What rows say about a run.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// When it began to exist.
    pub created_at: Millis,
    /// What began it.
    pub trigger: Trigger,
    /// Where its attempts get their slots.
    pub slot_pool: Option<SlotPoolName>,
    /// The number of the attempt that runs or would be next.
    pub attempt: u32,
    /// Its ended attempts, oldest first.
    pub past: Vec<Past>,
    /// Older attempts that are not among them.
    pub omitted: u32,
    /// When the slot entries of its attempts began to wait, as far as they are kept.
    pub queued_at: BTreeMap<u32, Millis>,
    /// The retries of its definition, if that is kept.
    pub retry: Option<Retry>,
    /// Where it stands.
    pub standing: Standing,
}

/// What a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    /// It waited for slots or a process.
    Queued,
    /// An attempt ran.
    Running,
    /// It waited for the time of its next attempt.
    BackOff,
    /// Attempts that are not shown one by one.
    Omitted,
}

impl SegmentKind {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            SegmentKind::Queued => "queued",
            SegmentKind::Running => "running",
            SegmentKind::BackOff => "backoff",
            SegmentKind::Omitted => "omitted",
        }
    }
}

/// A piece of the life of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// What it was.
    pub kind: SegmentKind,
    /// The attempt that ran, or was waited for.
    pub attempt: u32,
    /// Its beginning.
    pub from: Millis,
    /// Its end; `None` while it goes on.
    pub to: Option<Millis>,
    /// How an attempt ended.
    pub outcome: Option<Outcome>,
    /// Where it ran.
    pub node: Option<NodeName>,
    /// What it was in words.
    pub text: String,
}

/// What a moment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkKind {
    /// The run began to exist.
    Created,
    /// It was due.
    Scheduled,
    /// It will be ended for its slowness, or will not wait any longer.
    Deadline,
    /// Its next attempt is due.
    RetryDue,
    /// It ended.
    Ended,
}

impl MarkKind {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            MarkKind::Created => "created",
            MarkKind::Scheduled => "scheduled",
            MarkKind::Deadline => "deadline",
            MarkKind::RetryDue => "retry_due",
            MarkKind::Ended => "ended",
        }
    }
}

/// A moment in the life of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: Millis,
    /// What.
    pub kind: MarkKind,
    /// In words.
    pub text: String,
}

/// The life of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// When it began to exist.
    pub from: Millis,
    /// Its end, or now.
    pub to: Millis,
    /// In order, without a gap.
    pub segments: Vec<Segment>,
    /// In order; some may lie before `from` or behind `to`.
    pub marks: Vec<Mark>,
}

/// The life of a run until `now`.
pub fn timeline(history: &History, now: Millis) -> Timeline {
    let end = match &history.standing {
        Standing::Ended { at, .. } => *at,
        Standing::Queued { .. } | Standing::BackOff { .. } | Standing::Running { .. } => now,
    };
    // A clock that was set back must not turn time around.
    let to = end.max(history.created_at);
    let mut line = Line {
        history,
        cursor: history.created_at,
        to,
        segments: Vec::new(),
    };
    line.all();
    Timeline {
        from: history.created_at,
        to,
        segments: line.segments,
        marks: marks(history),
    }
}

struct Line<'h> {
    history: &'h History,
    /// Everything before is told.
    cursor: Millis,
    to: Millis,
    segments: Vec<Segment>,
}

impl Line<'_> {
    fn all(&mut self) {
        let history = self.history;
        let mut before: Option<&Past> = None;
        if let Some(first) = history.past.first().filter(|_| history.omitted > 0) {
            let text = format!("{} earlier attempts are not shown", history.omitted);
            self.piece(SegmentKind::Omitted, first.number, first.attempt.started_at, text);
            self.ran(first);
            before = Some(first);
        }
        let rest = history.past.iter().skip(usize::from(before.is_some()));
        for past in rest {
            self.wait(before, past.number, past.attempt.started_at, None);
            self.ran(past);
            before = Some(past);
        }
        match &history.standing {
            Standing::Ended { text, .. } => self.ended(before, text),
            Standing::Queued { since, text, .. } => {
                self.wait(before, history.attempt, *since, Some(*since));
                self.open(SegmentKind::Queued, None, text.clone());
            }
            Standing::BackOff { due, refused } => {
                let text = Self::back_off_text(before, history.attempt, *due, refused.as_deref());
                self.open(SegmentKind::BackOff, None, text);
            }
            Standing::Running { since, node, .. } => {
                self.wait(before, history.attempt, *since, None);
                let text = format!("attempt {} runs", history.attempt);
                self.open(SegmentKind::Running, Some(node.clone()), text);
            }
        }
    }

    /// What lies between an attempt, or the beginning, and `until`. `entered`: when its last waiting began.
    fn wait(&mut self, before: Option<&Past>, number: u32, until: Millis, entered: Option<Millis>) {
        let queue = self.queue_text();
        let Some(past) = before else {
            return self.piece(SegmentKind::Queued, number, until, queue);
        };
        if past.number >= number {
            let why = past.attempt.reason.as_deref().unwrap_or("the attempt was lost");
            return self.piece(
                SegmentKind::Queued,
                number,
                until,
                format!("{queue} again: {why}"),
            );
        }
        let delay = self.history.retry.map(|retry| retry.delay_before(number));
        let due = delay.map(|delay| past.attempt.ended_at.plus(delay));
        let entered = entered.or_else(|| self.history.queued_at.get(&number).copied());
        let text = match (delay, entered, due) {
            (Some(delay), Some(entered), Some(due)) if entered.since(due) > SLACK_MS => format!(
                "waited {} before attempt {number}, and longer for its admission",
                length(delay)
            ),
            (Some(delay), _, _) => format!("waited {} before attempt {number}", length(delay)),
            (None, Some(_), _) => format!("waited before attempt {number}"),
            (None, None, _) => {
                format!("waited before attempt {number}; how long for slots is not recorded")
            }
        };
        let split = entered.or(due).unwrap_or(until).min(until);
        self.piece(SegmentKind::BackOff, number, split, text);
        self.piece(SegmentKind::Queued, number, until, queue);
    }

    fn ran(&mut self, past: &Past) {
        let attempt = &past.attempt;
        let (from, to) = (self.cursor, self.clamped(attempt.ended_at));
        let why = attempt
            .reason
            .as_deref()
            .filter(|why| *why != attempt.outcome.word());
        let word = attempt.outcome.word().replace('_', " ");
        self.segments.push(Segment {
            kind: SegmentKind::Running,
            attempt: past.number,
            from,
            to: Some(to),
            outcome: Some(attempt.outcome),
            node: Some(attempt.node.clone()),
            text: match why {
                Some(why) => format!("attempt {} {word}: {why}", past.number),
                None => format!("attempt {} {word}", past.number),
            },
        });
        self.cursor = to;
    }

    /// What lies between the last attempt and the end of the run.
    fn ended(&mut self, before: Option<&Past>, text: &str) {
        let number = self.history.attempt;
        let decided = before.filter(|past| past.number == number && past.attempt.outcome != Outcome::Lost);
        match (decided, self.segments.last_mut()) {
            // Its end is recorded a moment after the attempt's.
            (Some(_), Some(last)) => {
                last.to = Some(self.to);
                self.cursor = self.to;
            }
            (_, _) => {
                let is_retry = before.is_some_and(|past| past.number < number);
                let kind = if is_retry {
                    SegmentKind::BackOff
                } else {
                    SegmentKind::Queued
                };
                let waited = match (is_retry, &self.history.queued_at.get(&number)) {
                    (true, Some(entered)) => {
                        let until = **entered;
                        self.wait(before, number, until, Some(until));
                        return self.piece(SegmentKind::Queued, number, self.to, text.to_owned());
                    }
                    (true, None) => format!("waited for attempt {number}: {text}"),
                    (false, _) => text.to_owned(),
                };
                self.piece(kind, number, self.to, waited);
            }
        }
        if self.segments.is_empty() {
            self.segments.push(Segment {
                kind: SegmentKind::Queued,
                attempt: number,
                from: self.cursor,
                to: Some(self.to),
                outcome: None,
                node: None,
                text: text.to_owned(),
            });
        }
    }

    fn back_off_text(before: Option<&Past>, number: u32, due: Millis, refused: Option<&str>) -> String {
        let delay = before.map_or(0, |past| due.since(past.attempt.ended_at));
        match refused {
            Some(why) => format!("waits for admission of attempt {number}: {why}"),
            None => format!("waits {} before attempt {number}", length(delay)),
        }
    }

    fn queue_text(&self) -> String {
        match &self.history.slot_pool {
            Some(name) => format!("waited in slot pool {name}"),
            None => "waited for a process".to_owned(),
        }
    }

    /// Appends what lies between the cursor and `until`; nothing if that is no time.
    fn piece(&mut self, kind: SegmentKind, attempt: u32, until: Millis, text: String) {
        let (from, to) = (self.cursor, self.clamped(until));
        if from < to {
            self.segments.push(Segment {
                kind,
                attempt,
                from,
                to: Some(to),
                outcome: None,
                node: None,
                text,
            });
            self.cursor = to;
        }
    }

    /// Appends what goes on.
    fn open(&mut self, kind: SegmentKind, node: Option<NodeName>, text: String) {
        self.segments.push(Segment {
            kind,
            attempt: self.history.attempt,
            from: self.cursor,
            to: None,
            outcome: None,
            node,
            text,
        });
    }

    fn clamped(&self, at: Millis) -> Millis {
        at.min(self.to).max(self.cursor)
    }
}

/// The loop that brings retries back may be this late.
const SLACK_MS: u64 = 2_000;

fn marks(history: &History) -> Vec<Mark> {
    let mark = |kind, at, text: &str| Mark {
        at,
        kind,
        text: text.to_owned(),
    };
    let mut marks = Vec::new();
    if let Some(at) = history.trigger.scheduled_at() {
        let text = match history.trigger {
            Trigger::CatchUp { .. } => "was due, and missed",
            Trigger::Boot { .. } => "the machine had booted",
            Trigger::Schedule { .. }
            | Trigger::Manual { .. }
            | Trigger::Rerun { .. }
            | Trigger::Child { .. }
            | Trigger::RetryFrom { .. } => "was due",
        };
        marks.push(mark(MarkKind::Scheduled, at, text));
    }
    let text = match &history.trigger {
        Trigger::Manual { principal } => format!("started by {principal}"),
        Trigger::Schedule { .. } => "fired".to_owned(),
        Trigger::CatchUp { .. } => "caught up".to_owned(),
        Trigger::Boot { .. } => "fired for the boot".to_owned(),
        Trigger::Rerun { principal, of } => format!("started by {principal} as a rerun of {of}"),
        Trigger::Child { parent, step } => format!("started by step {step} of {parent}"),
        Trigger::RetryFrom { principal, of, step } => match step {
            Some(step) => format!("started by {principal} to try {of} again from {step}"),
            None => format!("started by {principal} to try {of} again where it failed"),
        },
    };
    marks.push(mark(MarkKind::Created, history.created_at, &text));
    marks.extend(match &history.standing {
        Standing::Ended { at, text } => Some(mark(MarkKind::Ended, *at, text)),
        Standing::Queued { until, .. } => {
            until.map(|until| mark(MarkKind::Deadline, until, "does not wait any longer"))
        }
        Standing::BackOff { due, .. } => {
            let text = format!("attempt {} is due", history.attempt);
            Some(mark(MarkKind::RetryDue, *due, &text))
        }
        Standing::Running { since, limit_ms, .. } => limit_ms.map(|limit| {
            let text = format!("is ended after {}", length(limit));
            mark(MarkKind::Deadline, since.plus(limit), &text)
        }),
    });
    marks.sort_by_key(|mark| mark.at);
    marks
}

/// A length of time for people.
pub(super) fn length(ms: u64) -> String {
    let (seconds, minutes, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        _ if ms % 1_000 >= 100 && seconds < 60 => format!("{seconds}.{} s", ms % 1_000 / 100),
        _ if seconds < 120 => format!("{seconds} s"),
        _ if minutes < 120 && seconds % 60 == 0 => format!("{minutes} min"),
        _ if minutes < 120 => format!("{minutes} min {} s", seconds % 60),
        _ if minutes % 60 == 0 => format!("{hours} h"),
        _ => format!("{hours} h {} min", minutes % 60),
    }
}
