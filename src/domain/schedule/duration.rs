//! The length after `@every`: `90s`, `15m`, `1h30m`, `2d`. From 1 s to 366 d, in whole seconds.

use std::fmt::Write as _;

use super::calendar::{DAY_S, HOUR_S, MINUTE_S};

/// The longest `@every`, so that each job moves at least once in a leap year.
const EVERY_MAX_S: i64 = 366 * DAY_S;

/// Seconds, or the end of a sentence that begins with `@every`.
pub(super) fn every_seconds(text: &str) -> Result<i64, String> {
    let mut total_s = 0_i64;
    let mut digits = String::new();
    let mut last_unit_s = i64::MAX;
    for letter in text.chars() {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        let unit_s = match letter {
            'd' => DAY_S,
            'h' => HOUR_S,
            'm' => MINUTE_S,
            's' => 1,
            _ => {
                return Err(format!(
                    "'{text}' has '{letter}'; write whole numbers with s, m, h or d, as in 1h30m"
                ));
            }
        };
        if digits.is_empty() {
            return Err(format!("a number is missing before '{letter}' in '{text}'"));
        }
        if unit_s >= last_unit_s {
            return Err(format!(
                "'{text}' is out of order; write d, h, m, s once each, as in 1h30m"
            ));
        }
        last_unit_s = unit_s;
        let number = digits.parse::<i64>().unwrap_or(i64::MAX);
        total_s = total_s.saturating_add(number.saturating_mul(unit_s));
        digits.clear();
    }
    if !digits.is_empty() {
        return Err(format!(
            "'{text}' ends without a unit; write {text}s, {text}m, {text}h or {text}d"
        ));
    }
    if total_s < 1 {
        return Err(format!("'{text}' is too short; the shortest is 1s"));
    }
    if total_s > EVERY_MAX_S {
        return Err(format!("'{text}' is too long; the longest is 366d"));
    }
    Ok(total_s)
}

/// The shortest way to write it, in units from days to seconds: `1h30m`, `90s` becomes `1m30s`.
pub(super) fn words(seconds: i64) -> String {
    let mut left = seconds;
    let mut text = String::new();
    for (unit_s, letter) in [(DAY_S, 'd'), (HOUR_S, 'h'), (MINUTE_S, 'm'), (1, 's')] {
        if left >= unit_s {
            let _ = write!(text, "{}{letter}", left / unit_s);
            left %= unit_s;
        }
    }
    text
}
