//! When a recipient's windows are open. Windows are wall time, never instants: an instant is converted to local time and
//! compared, so that a window inside a gap of the clock is empty that day, and one inside a fold is open in both passes.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

use super::objects::Hours;
use crate::words::limits;
use crate::words::time::Micros;

/// From the data inside the binary, never from the machine's, so that daemons agree.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(|| TimeZoneDatabase::bundled().clone());

const DAY_MINUTES: u16 = 1_440;

/// True when the zone data has such a name.
pub fn is_zone(name: &str) -> bool {
    zone(name).is_some()
}

fn zone(name: &str) -> Option<TimeZone> {
    if name == "UTC" {
        return Some(TimeZone::UTC);
    }
    ZONES.get(name).ok().filter(|zone| !zone.is_unknown())
}

/// What a closed schedule says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The zone whose wall time counts.
    pub zone: String,
    /// That wall time, like `Sun 09:44`.
    pub local: String,
    /// The next opening; none within 400 days.
    pub opens_at: Option<Micros>,
}

/// The name of the zone in which windows are read: the schedule's, else the recipient's.
pub fn zone_name<'h>(hours: &'h Hours, recipient_zone: &'h str) -> &'h str {
    hours.timezone.as_deref().unwrap_or(recipient_zone)
}

/// Whether the windows are open at an instant. No schedule is always open.
pub fn is_open(hours: Option<&Hours>, recipient_zone: &str, at: Micros) -> bool {
    let Some(hours) = hours else {
        return true;
    };
    let Some((_, local)) = local_time(hours, recipient_zone, at) else {
        return false;
    };
    is_member(hours, local)
}

/// `None` while open.
pub fn closed(hours: Option<&Hours>, recipient_zone: &str, at: Micros) -> Option<Closed> {
    let hours = hours?;
    if is_open(Some(hours), recipient_zone, at) {
        return None;
    }
    let local = local_time(hours, recipient_zone, at).map(|(_, local)| local);
    let word = local.map_or_else(String::new, |local| local.strftime("%a %H:%M").to_string());
    Some(Closed {
        zone: zone_name(hours, recipient_zone).to_owned(),
        local: word,
        opens_at: opens_at(hours, recipient_zone, at),
    })
}

fn zone_of(hours: &Hours, recipient_zone: &str) -> TimeZone {
    // Names were checked when they were written.
    zone(zone_name(hours, recipient_zone)).unwrap_or(TimeZone::UTC)
}

fn local_time(hours: &Hours, recipient_zone: &str, at: Micros) -> Option<(TimeZone, DateTime)> {
    let zone = zone_of(hours, recipient_zone);
    let instant = Timestamp::from_microsecond(at.0).ok()?;
    let local = zone.to_datetime(instant);
    Some((zone, local))
}

/// Whether a wall time lies in a window of its day, or in one of the day before that goes over midnight.
fn is_member(hours: &Hours, local: DateTime) -> bool {
    let minute = minute_of(local);
    let today = windows_of(hours, local.date());
    let over = |(start, end): (u16, u16)| end < start;
    if today.iter().any(|window| {
        let (start, end) = *window;
        minute >= start && (over(*window) || minute < end)
    }) {
        return true;
    }
    let Ok(yesterday) = local.date().yesterday() else {
        return false;
    };
    let before = windows_of(hours, yesterday);
    before.iter().any(|window| over(*window) && minute < window.1)
}

fn minute_of(local: DateTime) -> u16 {
    let (hour, minute) = (local.hour().unsigned_abs(), local.minute().unsigned_abs());
    u16::from(hour) * 60 + u16::from(minute)
}

/// The windows that begin on a day: an exception's in place of the usual.
fn windows_of(hours: &Hours, day: Date) -> Vec<(u16, u16)> {
    let date = (day.year(), day.month(), day.day());
    if let Some(exception) = hours.exceptions.iter().find(|exception| exception.date == date) {
        return exception.windows.clone();
    }
    let bit = 1_u8 << day.weekday().since(Weekday::Monday).unsigned_abs();
    let usual = hours.windows.iter().filter(|window| window.days & bit != 0);
    usual.map(|window| (window.start, window.end)).collect()
}

/// The next instant, after this one, at which the windows are open; none within 400 days.
///
/// Openings are where local time enters a window: at its start on the wall clock, at the end of the day before where an
/// exception cuts nothing, or where the clock jumps into it. So only those instants are tried, not every minute.
pub fn opens_at(hours: &Hours, recipient_zone: &str, after: Micros) -> Option<Micros> {
    let zone = zone_of(hours, recipient_zone);
    let from = Timestamp::from_microsecond(after.0).ok()?;
    let first = zone.to_datetime(from).date().yesterday().ok()?;
    let horizon = i64::from(limits::OPENS_AT_DAYS_MAX) * 86_400;
    let until = from.as_second().saturating_add(horizon);
    let mut changes = zone.following(from).map(|change| change.timestamp());
    let mut change = changes.next();
    let mut day = first;
    for _ in 0..=limits::OPENS_AT_DAYS_MAX + 2 {
        let mut tries: Vec<Timestamp> = Vec::new();
        for (start, _) in windows_of(hours, day) {
            let wall = at_minute(day, start);
            tries.extend(wall.iter().flat_map(|wall| instants_of(&zone, *wall)));
        }
        // A change of the offset may put the clock into a window whose start it passed over.
        let end = at_minute(day, 0).and_then(|wall| wall.date().tomorrow().ok());
        let end = end.and_then(|next| {
            instants_of(&zone, next.to_datetime(jiff::civil::Time::midnight()))
                .last()
                .copied()
        });
        while let Some(at) = change.filter(|at| end.is_none_or(|end| *at <= end)) {
            tries.push(at);
            change = changes.next();
        }
        tries.sort_unstable();
        let opening = tries
            .into_iter()
            .find(|at| *at > from && at.as_second() <= until && is_member(hours, zone.to_datetime(*at)));
        if let Some(at) = opening {
            return Some(Micros(at.as_microsecond()));
        }
        day = day.tomorrow().ok()?;
    }
    None
}

fn at_minute(day: Date, minute: u16) -> Option<DateTime> {
    debug_assert!(minute < DAY_MINUTES, "a window begins inside of its day");
    let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
    Some(day.at(hour, minute, 0, 0))
}

/// The instants at which the wall clock shows a time: none in a gap, two in a fold; ascending.
fn instants_of(zone: &TimeZone, wall: DateTime) -> Vec<Timestamp> {
    let ambiguous = zone.to_ambiguous_zoned_datetime(wall).offset();
    let at = |offset: Offset| offset.to_timestamp(wall).ok();
    let found = match ambiguous {
        jiff::tz::AmbiguousOffset::Unambiguous { offset } => [at(offset), None],
        jiff::tz::AmbiguousOffset::Gap { .. } => [None, None],
        jiff::tz::AmbiguousOffset::Fold { before, after } => [at(before), at(after)],
    };
    found.into_iter().flatten().collect()
}
