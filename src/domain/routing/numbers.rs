//! Numbers as decisions print and compare them.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::live::Live;
use super::objects::Recipient;

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
