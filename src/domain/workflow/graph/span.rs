//! Lengths of time as people write them in a graph: `2s`, `500ms`, `1h30m`, `7d`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
];

/// A length of time in milliseconds, written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

impl Span {
    /// The longest: ten years.
    pub const LONGEST: Span = Span(3_660 * 86_400_000);
}

/// A text that is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no duration; write it like `90s`, `1h30m` or `500ms`, at most 10 years")]
pub struct BadSpan(String);

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Span, BadSpan> {
        let bad = || BadSpan(text.chars().take(64).collect());
        let mut rest = text;
        let mut total: u64 = 0;
        if rest.is_empty() {
            return Err(bad());
        }
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
            let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
            rest = &rest[digits..];
            let unit = UNITS.iter().find(|(unit, _)| {
                rest.strip_prefix(unit)
                    .is_some_and(|after| after.chars().next().is_none_or(|sign| sign.is_ascii_digit()))
            });
            let (unit, ms) = unit.ok_or_else(bad)?;
            rest = &rest[unit.len()..];
            let part = number.checked_mul(*ms).ok_or_else(bad)?;
            total = total
                .checked_add(part)
                .filter(|sum| *sum <= Span::LONGEST.0)
                .ok_or_else(bad)?;
        }
        Ok(Span(total))
    }
}

/// The shortest text with the same meaning.
impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return out.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, ms) in [UNITS[1], UNITS[2], UNITS[3], UNITS[4], UNITS[0]] {
            if rest >= ms {
                write!(out, "{}{unit}", rest / ms)?;
                rest %= ms;
            }
        }
        Ok(())
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_lengths_and_back() {
        for (text, ms, again) in [
            ("2s", 2_000, "2s"),
            ("500ms", 500, "500ms"),
            ("90s", 90_000, "1m30s"),
            ("1h30m", 5_400_000, "1h30m"),
            ("1d1ms", 86_400_001, "1d1ms"),
            ("0s", 0, "0s"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.0, span.to_string().as_str()), (ms, again), "{text}");
        }
        for text in [
            "",
            "2",
            "s",
            "2 s",
            "-1s",
            "1.5s",
            "2sec",
            "99999999999999999999s",
            "4000d",
            "1h-2m",
            "2S",
        ] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
