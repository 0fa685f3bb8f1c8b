//! Times of schedules as they stand on the wall of their zone: with the day of the week and the offset.

use serde_json::Value;

use super::{fields, times};

/// How a time on a wall is written: seconds only where one of its neighbours needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    /// `01:15`.
    Minutes,
    /// `01:15:30`.
    Seconds,
}

/// What a column of times needs.
pub(super) fn precision<'a>(mut fires: impl Iterator<Item = &'a Value>) -> Precision {
    let whole = |fire: &Value| {
        let text = fields::text(fire, &["local"]).unwrap_or_default();
        text.get(16..19).is_none_or(|seconds| seconds == ":00")
    };
    if fires.all(whole) {
        Precision::Minutes
    } else {
        Precision::Seconds
    }
}

/// `2026-10-25T01:15:00+01:00` as `Sun 2026-10-25 01:15 +01:00`; in UTC with that word.
pub(super) fn wall(local: &str, zone: &str, precision: Precision) -> String {
    let Some((date_time, offset)) = local.split_at_checked(19) else {
        return local.to_owned();
    };
    let day = times::weekday(date_time).map_or_else(String::new, |day| format!("{day} "));
    let date_time = match precision {
        Precision::Minutes => &date_time[..16],
        Precision::Seconds => date_time,
    };
    let offset = if zone == "UTC" { zone } else { offset };
    format!("{day}{} {offset}", date_time.replace('T', " "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_on_the_wall_have_their_day_and_offset() {
        let (local, minutes) = ("2026-10-25T01:15:00+01:00", Precision::Minutes);
        assert_eq!(
            wall(local, "Europe/London", minutes),
            "Sun 2026-10-25 01:15 +01:00"
        );
        assert_eq!(
            wall(local, "Europe/London", Precision::Seconds),
            "Sun 2026-10-25 01:15:00 +01:00"
        );
        assert_eq!(
            wall("2026-10-25T01:15:00+00:00", "UTC", minutes),
            "Sun 2026-10-25 01:15 UTC"
        );
        assert_eq!(wall("?", "UTC", minutes), "?");
        let fires = [
            json!({"local": local}),
            json!({"local": "2026-10-25T01:15:30+01:00"}),
        ];
        assert_eq!(precision(fires[..1].iter()), Precision::Minutes);
        assert_eq!(precision(fires.iter()), Precision::Seconds);
    }
}
