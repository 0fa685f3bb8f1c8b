//! Numbers as decisions print and compare them.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::live::Live;
use super::objects::Recipient;

/// Seconds of what a year has at most.
const LONGEST_US: u64 = 8_760 * 3_600_000_000;

/// A length of time as objects of routing write it: `1h30m`, `250ms`; parts that are nothing are left out.
pub fn length(us: u64) -> String {
    let units = [
        ("h", 3_600_000_000),
        ("m", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1_000),
    ];
    let (mut rest, mut text) = (us, String::new());
    for (word, unit) in units {
        if rest >= unit {
            text += &format!("{}{word}", rest / unit);
            rest %= unit;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Microseconds of such a text, at most a year; `None` if it is none.
pub fn read_length(text: &str) -> Option<u64> {
    let mut units = [
        ("h", 3_600_000_000_u64),
        ("m", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1_000),
    ]
    .iter();
    let (mut rest, mut total) = (text, 0_u64);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest
            .find(|letter: char| letter.is_ascii_digit())
            .unwrap_or(rest.len());
        let (unit, after) = rest.split_at(end);
        let (_, us) = units.find(|(word, _)| *word == unit)?;
        total = total.checked_add(number.checked_mul(*us)?)?;
        rest = after;
    }
    (total <= LONGEST_US).then_some(total)
}

/// A number with six decimals at most, for people; null if it is none. Nothing is computed from it.
pub fn rounded(number: f64) -> Value {
    let scaled = (number * 1e6).round() / 1e6;
    let shown = if scaled.is_finite() { scaled } else { number };
    Number::from_f64(shown).map_or(Value::Null, Value::Number)
}

/// A number as it is; null if it is none.
pub fn exact(number: f64) -> Value {
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

/// An amount in micros of its currency, as text: JSON numbers are not exact everywhere.
pub fn money(micros: i64) -> Value {
    Value::from(micros.to_string())
}

/// The whole number nearest to `value` in millionths, held inside the range of the type.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the conversion holds it inside the range"
)]
pub fn micro(value: f64) -> i64 {
    (value * 1e6).round() as i64
}

/// A count as a number with a fraction.
#[expect(clippy::cast_precision_loss, reason = "counts of this size are exact")]
pub fn real(count: u64) -> f64 {
    count as f64
}

/// The same of a number with a sign.
#[expect(
    clippy::cast_precision_loss,
    reason = "used where a fraction is wanted anyway"
)]
pub fn real_signed(count: i64) -> f64 {
    count as f64
}

/// Used and limit, such that used / limit is the utilization; 1 when nothing is taken at all.
pub fn utilization(recipient: &Recipient, live: &Live) -> (u64, u64) {
    match recipient.max_concurrent {
        0 => (1, 1),
        max => (u64::from(live.current), u64::from(max)),
    }
}

/// Compares a/b with c/d without division.
pub fn compare_shares((a, b): (u64, u64), (c, d): (u64, u64)) -> Ordering {
    (u128::from(a) * u128::from(d)).cmp(&(u128::from(c) * u128::from(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_and_printed_in_one_form() {
        for (text, us, printed) in [
            ("0s", 0, "0s"),
            ("1500ms", 1_500_000, "1s500ms"),
            ("90m", 5_400_000_000, "1h30m"),
            ("8760h", LONGEST_US, "8760h"),
        ] {
            assert_eq!(read_length(text), Some(us), "{text}");
            assert_eq!(length(us), printed);
        }
        for bad in [
            "",
            "1",
            "s",
            "1d",
            "1.5h",
            "-1s",
            "1s1h",
            "8761h",
            "99999999999999999999s",
        ] {
            assert_eq!(read_length(bad), None, "{bad}");
        }
    }

    #[test]
    fn shares_are_compared_without_rounding() {
        assert_eq!(
            compare_shares((1, 3), (33_333_333, 100_000_000)),
            Ordering::Greater
        );
        assert_eq!(compare_shares((2, 4), (1, 2)), Ordering::Equal);
        assert_eq!(compare_shares((u64::MAX, u64::MAX), (1, 2)), Ordering::Greater);
        assert_eq!(micro(0.1), 100_000);
        assert_eq!(micro(f64::MAX), i64::MAX);
    }
}
