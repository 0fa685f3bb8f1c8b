//! A schedule as it stands in the file: one text, or a map of fields that becomes one.
//! What the text means is asked of the caller's `ScheduleCheck`; this file finds the place in the
//! source for what that answers.

use std::ops::Range;
use std::rc::Rc;

use super::fault::{Fault, Place};
use super::keys::Section;
use super::model::ScheduleText;
use super::reading::{Field, Reading};
use super::tree::{Node, Value};
use crate::os::zone::HostZone;

/// Characters of a schedule; the longest sensible list of minutes has 170.
const CHARS_MAX: usize = 1000;

/// What is wrong with a schedule's text. The message stands without the job's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleFault {
    pub message: String,
    /// Where in the text, in characters from 0; None is the whole text.
    pub column: Option<usize>,
    /// In characters.
    pub length: usize,
}

/// Knowledge about schedules and time zones that the configuration borrows from its caller.
pub trait ScheduleCheck {
    /// Is called with a zone that `knows_zone`, or none.
    fn check(
        &self,
        job_name: &str,
        text: &str,
        seconds: bool,
        timezone: Option<&str>,
    ) -> Result<(), ScheduleFault>;

    /// Whether this is the name of a time zone.
    fn knows_zone(&self, timezone: &str) -> bool;

    /// The zone in which crontabs are read that do not name one. The error is a sentence.
    fn host_zone(&self) -> Result<HostZone, String>;

    /// Whether a word could be a field of a schedule: it is a strange beginning of a command then.
    fn looks_like_field(&self, word: &str) -> bool;
}

/// A schedule before its meaning is checked, with the values its text was made from.
pub(super) struct RawSchedule {
    pub(super) text: String,
    at: Place,
    parts: Vec<Part>,
}

/// A range of the text, in bytes, that is the text of one scalar.
struct Part {
    range: Range<usize>,
    node: Rc<Node>,
}

impl RawSchedule {
    /// One that was checked already, at the place of its text.
    pub(super) fn of_text(text: String, at: &Place) -> Self {
        Self {
            text,
            at: at.clone(),
            parts: Vec::new(),
        }
    }

    pub(super) fn read(reading: &mut Reading<'_>, field: &Field, subject: &str) -> Option<Self> {
        let raw = match &field.node.value {
            Value::Mapping(_) => Self::from_map(reading, field, subject)?,
            Value::Scalar { .. } | Value::Sequence(_) => {
                if field.node.scalar().is_none() {
                    let message = format!("{} must be text or a map of fields", field.label);
                    reading.wrong_type(&message, &field.node);
                    return None;
                }
                let text = reading.word(field)?;
                let parts = vec![Part {
                    range: 0..text.len(),
                    node: field.node.clone(),
                }];
                Self {
                    text,
                    at: field.at().clone(),
                    parts,
                }
            }
        };
        if raw.text.chars().count() > CHARS_MAX {
            let message = format!("{subject}schedule: longer than {CHARS_MAX} characters");
            reading.error("config/schedule", field.at(), message);
            return None;
        }
        Some(raw)
    }

    fn from_map(reading: &mut Reading<'_>, field: &Field, subject: &str) -> Option<Self> {
        let fields = reading
            .fields(&field.node, Section::Schedule)?
            .with_subject(subject)
            .with_path("schedule.");
        let mut text = String::new();
        let mut parts = Vec::new();
        let mut is_good = true;
        for word in ["second", "minute", "hour", "dayOfMonth", "month", "dayOfWeek"] {
            let given = fields.get(word);
            // Without it the schedule has no seconds at all, rather than a fire in each second.
            if word == "second" && given.is_none() {
                continue;
            }
            if !text.is_empty() {
                text.push(' ');
            }
            let Some(given) = given else {
                text.push('*');
                continue;
            };
            match reading.word(&given) {
                Some(part) if !part.contains(char::is_whitespace) => {
                    parts.push(Part {
                        range: text.len()..text.len() + part.len(),
                        node: given.node.clone(),
                    });
                    text.push_str(&part);
                }
                Some(_) => {
                    let message = format!("{} must be one field without spaces", given.label);
                    reading.error("config/schedule", given.at(), message);
                    is_good = false;
                }
                None => is_good = false,
            }
        }
        is_good.then(|| Self {
            text,
            at: field.key_at.clone(),
            parts,
        })
    }

    pub(super) fn report(&self, reading: &mut Reading<'_>, subject: &str, fault: &ScheduleFault) {
        let at = self.place(reading, fault);
        reading.report(Fault::error(
            "config/schedule",
            &at,
            format!("{subject}schedule: {}", fault.message),
        ));
    }

    fn place(&self, reading: &Reading<'_>, fault: &ScheduleFault) -> Place {
        let Some(column) = fault.column else {
            return self.at.clone();
        };
        let offset_of = |count: usize| {
            self.text
                .char_indices()
                .nth(count)
                .map_or(self.text.len(), |(offset, _)| offset)
        };
        let start = offset_of(column);
        let end = offset_of(column.saturating_add(fault.length.max(1)));
        let part = self
            .parts
            .iter()
            .find(|part| (part.range.start..=part.range.end).contains(&start));
        match part {
            Some(Part { range, node }) => {
                let end = end.min(range.end).max(start);
                reading.inside(node, start - range.start, end - range.start)
            }
            None => self.at.clone(),
        }
    }

    pub(super) fn into_text(self) -> ScheduleText {
        ScheduleText {
            text: self.text,
            at: self.at,
        }
    }
}
