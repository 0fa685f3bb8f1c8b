//! Fires as an iCalendar object (RFC 5545): UTC times, CRLF, lines folded at 75 octets, texts escaped.

use std::fmt::Write as _;

use crate::words::ids::{digest_of_parts, hex};
use crate::words::time::Millis;

/// Octets of a line without its line end.
const LINE_OCTETS_MAX: usize = 75;

/// A fire to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The job.
    pub(super) job: String,
    /// When.
    pub(super) at: Millis,
    /// The schedule in words.
    pub(super) description: String,
}

/// The whole object.
pub(super) fn write(events: &[Event], now: Millis) -> String {
    let mut out = String::new();
    for line in [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        concat!("PRODID:-//ductor//ductor ", env!("CARGO_PKG_VERSION"), "//EN"),
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        "X-WR-CALNAME:ductor schedules",
    ] {
        push(&mut out, line);
    }
    if events.is_empty() {
        // An object without a component is none by the grammar.
        for line in [
            "BEGIN:VTIMEZONE",
            "TZID:UTC",
            "BEGIN:STANDARD",
            "DTSTART:19700101T000000",
            "TZOFFSETFROM:+0000",
            "TZOFFSETTO:+0000",
            "END:STANDARD",
            "END:VTIMEZONE",
        ] {
            push(&mut out, line);
        }
    }
    let stamp = utc(now);
    for event in events {
        // The same fire is the same event in every edition.
        let id = hex(&digest_of_parts(&["ics", &event.job, &event.at.to_string()]));
        push(&mut out, "BEGIN:VEVENT");
        push(&mut out, &format!("UID:{id}@ductor"));
        push(&mut out, &format!("DTSTAMP:{stamp}"));
        push(&mut out, &format!("DTSTART:{}", utc(event.at)));
        push(&mut out, &format!("SUMMARY:{}", escaped(&event.job)));
        push(&mut out, &format!("DESCRIPTION:{}", escaped(&event.description)));
        push(&mut out, "TRANSP:TRANSPARENT");
        push(&mut out, "END:VEVENT");
    }
    push(&mut out, "END:VCALENDAR");
    out
}

/// `20260308T070000Z`.
fn utc(at: Millis) -> String {
    let text = at.to_string();
    let digits = text.split('.').next().unwrap_or_default();
    let mut out: String = digits
        .chars()
        .filter(|letter| !matches!(letter, '-' | ':'))
        .collect();
    let _ = write!(out, "Z");
    out
}

/// A text value; control characters have no place in one.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | ';' | ',' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            letter if letter.is_control() => {}
            letter => out.push(letter),
        }
    }
    out
}

/// A line, folded: each further part begins with a blank, which counts.
fn push(out: &mut String, line: &str) {
    let mut room = LINE_OCTETS_MAX;
    for letter in line.chars() {
        if letter.len_utf8() > room {
            out.push_str("\r\n ");
            room = LINE_OCTETS_MAX - 1;
        }
        room -= letter.len_utf8();
        out.push(letter);
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reader does first.
    fn unfolded(text: &str) -> Vec<String> {
        let whole = text.replace("\r\n ", "");
        whole
            .strip_suffix("\r\n")
            .expect("the last line ends")
            .split("\r\n")
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn an_event_is_written_by_the_rules() {
        let event = Event {
            job: "a;b,c\\d".to_owned(),
            at: Millis(1_772_953_200_000),
            description: format!("{} at 02:30 \u{20ac}", "\u{e9}".repeat(90)),
        };
        let text = write(std::slice::from_ref(&event), Millis(1_764_439_200_123));
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "{text:?}");
        for line in text.split("\r\n") {
            assert!(line.len() <= 75, "{} octets: {line}", line.len());
        }
        let lines = unfolded(&text);
        let wanted = [
            "SUMMARY:a\\;b\\,c\\\\d".to_owned(),
            format!("DESCRIPTION:{}", event.description),
            "DTSTART:20260308T070000Z".to_owned(),
            "DTSTAMP:20251129T180000Z".to_owned(),
        ];
        for line in &wanted {
            assert!(lines.contains(line), "{line} in {lines:#?}");
        }
        assert_eq!(
            (lines.first(), lines.last()),
            (
                Some(&"BEGIN:VCALENDAR".to_owned()),
                Some(&"END:VCALENDAR".to_owned())
            )
        );
        let uid = |text: &str| unfolded(text).into_iter().find(|line| line.starts_with("UID:"));
        assert_eq!(
            uid(&text),
            uid(&write(&[event], Millis(0))),
            "the same fire, the same event"
        );
    }

    #[test]
    fn nothing_to_come_is_still_an_object() {
        let lines = unfolded(&write(&[], Millis(0)));
        assert!(lines.contains(&"BEGIN:VTIMEZONE".to_owned()));
        assert!(!lines.contains(&"BEGIN:VEVENT".to_owned()));
    }

    #[test]
    fn line_ends_in_a_text_are_escaped() {
        assert_eq!(escaped("a\r\nb\u{7}"), "a\\nb");
    }
}
