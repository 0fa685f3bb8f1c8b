//! Durations (seconds as a number, or `1h30m`) and sizes (bytes, or `64KiB`, 1024-based).
//! Every odd input is a `QuantityFault`: nothing overflows, nothing panics.

use thiserror::Error;

/// A hundred years: beyond it a value is a typing mistake, and below it no sum of two overflows.
const SECONDS_MAX: f64 = 3_155_760_000.0;

/// 2^53: sizes up to here are exact in the arithmetic used.
const BYTES_MAX: f64 = 9_007_199_254_740_992.0;

/// Why a text is no duration or size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum QuantityFault {
    #[error("is not a quantity")]
    Shape,
    #[error("must be finite")]
    NotFinite,
    #[error("must not be negative")]
    Negative,
    #[error("is too large")]
    TooLarge,
}

/// Milliseconds of `1800`, `1.5`, `30s`, `5m`, `1h30m`, `14d`. Parts below a millisecond count as
/// one, so that a duration above zero stays above zero.
pub(super) fn duration_ms(text: &str) -> Result<u64, QuantityFault> {
    let seconds = match number(text) {
        Some(seconds) => seconds,
        None => duration_seconds(text)?,
    };
    let seconds = in_range(seconds, SECONDS_MAX)?;
    Ok(whole((seconds * 1000.0).ceil()))
}

fn duration_seconds(text: &str) -> Result<f64, QuantityFault> {
    let mut rest = text;
    let mut seconds = 0.0;
    let mut smallest = f64::INFINITY;
    while !rest.is_empty() {
        let (amount, after) = leading_number(rest).ok_or(QuantityFault::Shape)?;
        let unit_length = after
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_length);
        let size = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(QuantityFault::Shape),
        };
        // Units go down: `30m1h` and `1h1h` are typing mistakes.
        if size >= smallest {
            return Err(QuantityFault::Shape);
        }
        smallest = size;
        seconds += amount * size;
        rest = next;
    }
    if smallest.is_infinite() {
        return Err(QuantityFault::Shape);
    }
    Ok(seconds)
}

/// Bytes of `1048576`, `64KiB`, `512M`, `1.5GiB`.
pub(super) fn size_bytes(text: &str) -> Result<u64, QuantityFault> {
    let bytes = match number(text) {
        Some(bytes) if bytes.fract() != 0.0 && bytes.is_finite() => {
            return Err(QuantityFault::Shape);
        }
        Some(bytes) => bytes,
        None => {
            let (amount, unit) = leading_number(text).ok_or(QuantityFault::Shape)?;
            let factor = match unit.trim_start().to_ascii_lowercase().as_str() {
                "b" => 1.0,
                "k" | "kb" | "kib" => 1024.0,
                "m" | "mb" | "mib" => 1024.0 * 1024.0,
                "g" | "gb" | "gib" => 1024.0 * 1024.0 * 1024.0,
                "t" | "tb" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
                _ => return Err(QuantityFault::Shape),
            };
            amount * factor
        }
    };
    Ok(whole(in_range(bytes, BYTES_MAX)?.round()))
}

/// A YAML number: decimal with sign, fraction and exponent, or one of the special words.
pub(super) fn number(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" => {
            let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
            return Some(f64::INFINITY * sign);
        }
        ".nan" | ".NaN" | ".NAN" => return Some(f64::NAN),
        _ => {}
    }
    let has_digit_first = unsigned.starts_with(|letter: char| letter.is_ascii_digit());
    let has_point_first = unsigned.starts_with('.') && unsigned.len() > 1;
    let is_plain = unsigned
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    if (has_digit_first || has_point_first) && is_plain {
        text.parse().ok()
    } else {
        None
    }
}

fn leading_number(text: &str) -> Option<(f64, &str)> {
    let length = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(length);
    if !digits.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}

fn in_range(value: f64, max: f64) -> Result<f64, QuantityFault> {
    if !value.is_finite() {
        Err(QuantityFault::NotFinite)
    } else if value < 0.0 {
        Err(QuantityFault::Negative)
    } else if value > max {
        Err(QuantityFault::TooLarge)
    } else {
        Ok(value)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "callers have checked 0 <= value <= 2^53"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        use QuantityFault::{Negative, NotFinite, Shape, TooLarge};
        for (text, expected) in [
            ("1800", Ok(1_800_000)),
            ("1.5", Ok(1500)),
            ("0", Ok(0)),
            ("-0", Ok(0)),
            ("1e3", Ok(1_000_000)),
            ("30s", Ok(30_000)),
            ("5m", Ok(300_000)),
            ("1h30m", Ok(5_400_000)),
            ("1.5h", Ok(5_400_000)),
            ("14d", Ok(1_209_600_000)),
            ("250ms", Ok(250)),
            ("0.0001", Ok(1)),
            ("-1", Err(Negative)),
            ("-.inf", Err(NotFinite)),
            (".inf", Err(NotFinite)),
            (".nan", Err(NotFinite)),
            ("1e999", Err(NotFinite)),
            ("1e15", Err(TooLarge)),
            ("99999999999999999999d", Err(TooLarge)),
            ("", Err(Shape)),
            ("banana", Err(Shape)),
            ("30m1h", Err(Shape)),
            ("1h1h", Err(Shape)),
            ("1h 30m", Err(Shape)),
            ("5min", Err(Shape)),
            ("1.2.3s", Err(Shape)),
            ("nan", Err(Shape)),
            ("inf", Err(Shape)),
            ("-5m", Err(Shape)),
            ("٣s", Err(Shape)),
        ] {
            assert_eq!(duration_ms(text), expected, "{text}");
        }
    }

    #[test]
    fn sizes() {
        use QuantityFault::{Negative, NotFinite, Shape, TooLarge};
        for (text, expected) in [
            ("0", Ok(0)),
            ("4096", Ok(4096)),
            ("64KiB", Ok(65_536)),
            ("64 KiB", Ok(65_536)),
            ("512M", Ok(536_870_912)),
            ("512mb", Ok(536_870_912)),
            ("1.5GiB", Ok(1_610_612_736)),
            ("-1", Err(Negative)),
            ("1.5", Err(Shape)),
            (".nan", Err(NotFinite)),
            ("1e300", Err(TooLarge)),
            ("9999999999T", Err(TooLarge)),
            ("M", Err(Shape)),
            ("12X", Err(Shape)),
            ("", Err(Shape)),
        ] {
            assert_eq!(size_bytes(text), expected, "{text}");
        }
    }
}
