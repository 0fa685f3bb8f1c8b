//! Whether a schedule owes a fire of which nothing is recorded: the daemon was away, or its scheduler does not turn.

use crate::domain::schedule::Schedule;
use crate::words::limits;
use crate::words::time::Millis;

/// The newest due moment of which nothing is known although it should be.
///
/// `since`: when the schedule came into force. `newest`: the newest moment with a row.
pub fn overdue(
    schedule: &Schedule,
    since: Option<Millis>,
    newest: Option<Millis>,
    now: Millis,
) -> Option<Millis> {
    let late = i64::try_from(limits::FIRE_LATE_MS).unwrap_or(i64::MAX);
    let due = Millis(schedule.last_before(now.0.saturating_sub(late))?);
    let known = newest.is_some_and(|newest| newest >= due);
    let before_its_time = since.is_none_or(|since| since >= due);
    (!known && !before_its_time).then_some(due)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::schedule::ParseOptions;

    #[test]
    fn a_moment_without_a_row_is_overdue_after_ten_seconds() {
        const HOUR: i64 = 3_600_000;
        let schedule = Schedule::parse("0 * * * *", ParseOptions::default()).unwrap();
        let check = |now: i64, since: Option<i64>, newest: Option<i64>, expected: Option<i64>| {
            let found = overdue(&schedule, since.map(Millis), newest.map(Millis), Millis(now));
            assert_eq!(found, expected.map(Millis), "{now} {since:?} {newest:?}");
        };
        let early = Some(HOUR / 2);
        check(5 * HOUR + 11_000, early, Some(4 * HOUR), Some(5 * HOUR));
        check(5 * HOUR + 9_000, early, Some(4 * HOUR), None);
        check(5 * HOUR + 11_000, early, Some(5 * HOUR), None);
        check(5 * HOUR + 11_000, early, None, Some(5 * HOUR));
        check(5 * HOUR + 11_000, Some(5 * HOUR + 1), None, None);
        check(5 * HOUR + 11_000, None, None, None);
    }
}
