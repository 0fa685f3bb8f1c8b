//! Lengths of time as objects of routing write them: `30s`, `1h30m`, `250ms`; at most a year of 8760 hours.

/// The longest, in microseconds.
pub const LONGEST_US: u64 = 8_760 * HOUR;
const HOUR: u64 = 3_600_000_000;
/// Largest first: a text has them in this order, each at most once.
const UNITS: [(&str, u64); 4] = [("h", HOUR), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000)];

/// Microseconds of such a text; `None` if it is none.
pub fn read(text: &str) -> Option<u64> {
    let (mut rest, mut total, mut units) = (text, 0_u64, UNITS.iter());
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
    Some(total)
}

/// The same as text, without parts that are nothing.
pub fn print(us: u64) -> String {
    let (mut rest, mut text) = (us, String::new());
    for (word, unit) in UNITS {
        if rest >= unit {
            text += &format!("{}{word}", rest / unit);
            rest %= unit;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_printed_in_one_form() {
        let check = |text: &str, us: u64, printed: &str| {
            assert_eq!(read(text), Some(us), "{text}");
            assert_eq!(print(us), printed, "{text}");
        };
        check("0s", 0, "0s");
        check("0h", 0, "0s");
        check("250ms", 250_000, "250ms");
        check("1500ms", 1_500_000, "1s500ms");
        check("90s", 90_000_000, "1m30s");
        check("1h30m", 5_400_000_000, "1h30m");
        check("90m", 5_400_000_000, "1h30m");
        check("8760h", LONGEST_US, "8760h");
        for bad in [
            "",
            "1",
            "s",
            "1d",
            "1.5h",
            "-1s",
            "1s1h",
            "1s1s",
            "1 s",
            "1h 30m",
            "30S",
            "1\u{b5}s",
            "99999999999999999999s",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_is_read(ms in 0..LONGEST_US / 1_000) {
            proptest::prop_assert_eq!(read(&print(ms * 1_000)), Some(ms * 1_000));
        }
    }
}
