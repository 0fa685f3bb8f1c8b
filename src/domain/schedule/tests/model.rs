//! `instants_strictly_rise`: random schedules against a slow model that shares nothing with the code
//! under test but the time zone data. The model walks UTC step by step, looks at each local time and
//! decides by the words of 11.1, 11.3 and 11.4. Schedules are made as text and as predicates at once, so
//! the parser is compared as well. A failure prints the seed and the round that repeat it.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::{shown, zone_named};
use crate::domain::schedule::{ParseOptions, Schedule};

const SEED: u64 = 0x5eed_2026_11f0_0001;
/// Schedules for each change of an offset.
const ROUNDS: usize = 8;
/// More fires than this in a window are compared near the change only (and counted everywhere).
const COMPARED_MAX: usize = 1_000;

const ZONES: [&str; 22] = [
    "America/New_York",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Dublin",
    "Europe/Chisinau",
    "Europe/Kyiv",
    "Atlantic/Azores",
    "America/Nuuk",
    "America/St_Johns",
    "America/Havana",
    "America/Santiago",
    "Pacific/Easter",
    "America/Los_Angeles",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Pacific/Norfolk",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Antarctica/Troll",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Jerusalem",
];

/// A small generator of numbers (splitmix64), so that a seed repeats a run everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn from(&mut self, low: i8, high: i8) -> i8 {
        let span = u64::try_from(i64::from(high) - i64::from(low) + 1).unwrap();
        low + i8::try_from(self.next() % span).unwrap()
    }

    fn within(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.next() % u64::try_from(high - low).unwrap()).unwrap()
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// A time field or the month: its text and its values.
struct Plain {
    text: String,
    values: Vec<i8>,
    star: bool,
}

fn plain(dice: &mut Dice, low: i8, high: i8, likely_high: i8) -> Plain {
    let all = || (low..=high).collect::<Vec<i8>>();
    let stepped = |from: i8, to: i8, step: i8| {
        (from..=to)
            .filter(|v| (v - from) % step == 0)
            .collect::<Vec<i8>>()
    };
    match dice.from(0, 7) {
        0 => Plain {
            text: "*".to_owned(),
            values: all(),
            star: true,
        },
        1 => {
            let step = dice.from(2, 20);
            Plain {
                text: format!("*/{step}"),
                values: stepped(low, high, step),
                star: true,
            }
        }
        2 => {
            let (from, step) = (dice.from(low, likely_high), dice.from(1, 20));
            Plain {
                text: format!("{from}/{step}"),
                values: stepped(from, high, step),
                star: false,
            }
        }
        3 => {
            let from = dice.from(low, likely_high);
            let (to, step) = (dice.from(from, high), dice.from(1, 9));
            Plain {
                text: format!("{from}-{to}/{step}"),
                values: stepped(from, to, step),
                star: false,
            }
        }
        _ => {
            let count = dice.from(1, 3);
            let values: Vec<i8> = (0..count).map(|_| dice.from(low, likely_high)).collect();
            let text = values.iter().map(i8::to_string).collect::<Vec<_>>().join(",");
            Plain {
                text,
                values,
                star: false,
            }
        }
    }
}

/// A day field: its text and its own idea of a matching day.
struct Days {
    text: String,
    open: bool,
    matches: Box<dyn Fn(DateTime) -> bool>,
}

fn days(text: String, open: bool, matches: impl Fn(DateTime) -> bool + 'static) -> Days {
    Days {
        text,
        open,
        matches: Box::new(matches),
    }
}

fn workday(day: DateTime) -> bool {
    day.weekday().to_sunday_zero_offset() % 6 != 0
}

/// The working day of the month of `day` that is nearest to the date `wanted`.
fn nearest_workday(day: DateTime, wanted: i8) -> i8 {
    let in_month = |date: i8| day.with().day(date).build().unwrap();
    (1..=day.days_in_month())
        .filter(|date| workday(in_month(*date)))
        .min_by_key(|date| (date - wanted).abs())
        .unwrap()
}

fn month_days(dice: &mut Dice) -> Days {
    match dice.from(0, 9) {
        0 => days("L".to_owned(), false, |d| d.day() == d.days_in_month()),
        1 => {
            let n = dice.from(0, 30);
            days(format!("L-{n}"), false, move |d| d.day() + n == d.days_in_month())
        }
        2 => days("LW".to_owned(), false, |d| {
            d.day() == nearest_workday(d, d.days_in_month())
        }),
        3 => {
            let n = dice.from(1, 31);
            days(format!("{n}W"), false, move |d| {
                n <= d.days_in_month() && d.day() == nearest_workday(d, n)
            })
        }
        4 => days("*/2".to_owned(), true, |d| d.day() % 2 == 1),
        5 => {
            let (a, b) = (dice.from(1, 15), dice.from(16, 31));
            days(format!("{a}-{b}"), false, move |d| a <= d.day() && d.day() <= b)
        }
        6 => days("?".to_owned(), true, |_| true),
        _ => days("*".to_owned(), true, |_| true),
    }
}

fn week_days(dice: &mut Dice) -> Days {
    let day_of = |d: DateTime| d.weekday().to_sunday_zero_offset();
    match dice.from(0, 9) {
        0 => {
            let w = dice.from(0, 7);
            days(format!("{w}L"), false, move |d| {
                day_of(d) == w % 7 && d.day() + 7 > d.days_in_month()
            })
        }
        1 => {
            let (w, n) = (dice.from(0, 6), dice.from(1, 5));
            days(format!("{w}#{n}"), false, move |d| {
                day_of(d) == w && (d.day() - 1) / 7 + 1 == n
            })
        }
        2 => days("sat-mon".to_owned(), false, move |d| {
            [6, 0, 1].contains(&day_of(d))
        }),
        3 => days("*/3".to_owned(), true, move |d| [0, 3, 6].contains(&day_of(d))),
        4 | 5 => {
            let (a, b) = (dice.from(0, 7), dice.from(0, 6));
            days(format!("{a},{b}"), false, move |d| {
                day_of(d) == a % 7 || day_of(d) == b
            })
        }
        _ => days("*".to_owned(), true, |_| true),
    }
}

/// A random schedule, as the model sees it.
struct Model {
    text: String,
    second: Plain,
    minute: Plain,
    hour: Plain,
    month: Plain,
    month_days: Days,
    week_days: Days,
    both_days: bool,
}

impl Model {
    fn random(dice: &mut Dice, seconds: bool) -> Model {
        let zero = || Plain {
            text: "0".to_owned(),
            values: vec![0],
            star: false,
        };
        let second = if seconds { plain(dice, 0, 59, 59) } else { zero() };
        let minute = plain(dice, 0, 59, 59);
        let likely_hour = if dice.one_in(3) { 23 } else { 4 };
        let hour = plain(dice, 0, 23, likely_hour);
        let any_month = Plain {
            text: "*".to_owned(),
            values: (1..=12).collect(),
            star: true,
        };
        let month = if dice.one_in(4) {
            plain(dice, 1, 12, 12)
        } else {
            any_month
        };
        let (month_days, week_days) = (month_days(dice), week_days(dice));
        let plus = dice.one_in(4);
        let head = if seconds {
            format!("{} ", second.text)
        } else {
            String::new()
        };
        let text = format!(
            "{head}{} {} {} {} {}{}",
            minute.text,
            hour.text,
            month_days.text,
            month.text,
            if plus { "+" } else { "" },
            week_days.text
        );
        let both_days = plus || month_days.open || week_days.open;
        Model {
            text,
            second,
            minute,
            hour,
            month,
            month_days,
            week_days,
            both_days,
        }
    }

    fn interval(&self) -> bool {
        self.second.star || self.minute.star || self.hour.star
    }

    fn matches(&self, local: DateTime) -> bool {
        if !self.second.values.contains(&local.second())
            || !self.minute.values.contains(&local.minute())
            || !self.hour.values.contains(&local.hour())
            || !self.month.values.contains(&local.month())
        {
            return false;
        }
        let (date, week) = ((self.month_days.matches)(local), (self.week_days.matches)(local));
        if self.both_days {
            date && week
        } else {
            date || week
        }
    }

    fn fires_at(&self, moment: &Moment) -> bool {
        if self.interval() {
            return self.matches(moment.local);
        }
        let now = !moment.seen_before && self.matches(moment.local);
        now || moment.left_out.iter().any(|local| self.matches(*local))
    }
}

/// One step of the walk.
struct Moment {
    utc_ms: i64,
    local: DateTime,
    /// This local time was there already: the second pass of a fold.
    seen_before: bool,
    /// Local times jumped over since the step before: the gap that ends here.
    left_out: Vec<DateTime>,
}

/// Every step in `from..=to`, UTC seconds.
fn walk(zone: &TimeZone, from: i64, to: i64, step_s: i64) -> Vec<Moment> {
    let mut moments = Vec::new();
    let mut latest: Option<DateTime> = None;
    for utc in (from..=to).step_by(usize::try_from(step_s).unwrap()) {
        let instant = Timestamp::from_second(utc).unwrap();
        let local = zone.to_datetime(instant);
        let mut left_out = Vec::new();
        if let Some(latest) = latest {
            let mut between = latest.checked_add(step_s.seconds()).unwrap();
            while between < local {
                left_out.push(between);
                between = between.checked_add(step_s.seconds()).unwrap();
            }
        }
        let seen_before = latest.is_some_and(|latest| local <= latest);
        latest = latest.max(Some(local));
        moments.push(Moment {
            utc_ms: utc * 1_000,
            local,
            seen_before,
            left_out,
        });
    }
    moments
}

/// The UTC seconds of 2026 at which the offset of a zone changes, found by looking at each minute.
fn changes_of_2026(zone: &TimeZone) -> Vec<i64> {
    let offset = |utc: i64| zone.to_offset(Timestamp::from_second(utc).unwrap());
    let start = 1_767_225_600;
    let hours = (0..365 * 24).map(|hour| start + hour * 3_600);
    hours
        .filter(|hour| offset(*hour) != offset(hour + 3_600))
        .filter_map(|hour| {
            (1..=60)
                .map(|minute| hour + minute * 60)
                .find(|utc| offset(*utc) != offset(utc - 60))
        })
        .collect()
}

fn compare(model: &Model, zone: &str, moments: &[Moment], change: i64, dice: &mut Dice) {
    let options = ParseOptions {
        seconds: model.text.split(' ').count() == 6,
        timezone: Some(zone),
        ..ParseOptions::default()
    };
    let schedule =
        Schedule::parse(&model.text, options).unwrap_or_else(|error| panic!("{}: {error}", model.text));
    let (first, last) = (moments.first().unwrap().utc_ms, moments.last().unwrap().utc_ms);
    // The first step has nothing before it, so its gap is unknown; it is left out on both sides.
    let mut expected: Vec<i64> = moments[1..]
        .iter()
        .filter(|m| model.fires_at(m))
        .map(|m| m.utc_ms)
        .collect();
    let counted = schedule.count(first, last);
    assert_eq!(
        counted,
        u64::try_from(expected.len()).unwrap(),
        "count of {} in {zone}",
        model.text
    );
    let (mut from, mut to) = (first, last);
    if expected.len() > COMPARED_MAX {
        let near = |away_s: i64| (change + away_s) * 1_000;
        (from, to) = (first.max(near(-5 * 3_600)), last.min(near(5 * 3_600)));
        expected.retain(|instant| from < *instant && *instant <= to);
    }
    let found = schedule.instants(from, to, usize::MAX);
    assert!(
        found.windows(2).all(|pair| pair[0] < pair[1]),
        "{} in {zone} rises",
        model.text
    );
    if found != expected {
        let odd = found.iter().zip(&expected).find(|(a, b)| a != b);
        let odd = odd.map(|(a, b)| (shown(zone, *a), shown(zone, *b)));
        panic!(
            "{} in {zone}: {} found, {} expected, first difference {odd:?}",
            model.text,
            found.len(),
            expected.len()
        );
    }
    let around = [-1, 0, 1, 999, -1_000, -1_001].map(|away_ms| change * 1_000 + away_ms);
    let hours_near = [(); 10].map(|()| change * 1_000 + dice.within(-7_200_000, 7_200_000));
    let anywhere = [(); 10].map(|()| dice.within(from, to));
    for instant in around.into_iter().chain(hours_near).chain(anywhere) {
        let next = schedule.next_after(instant).filter(|next| *next <= to);
        let wanted = expected.iter().copied().find(|fire| *fire > instant);
        assert_eq!(
            next,
            wanted,
            "seed {SEED:#x}: {} in {zone} after {}",
            model.text,
            shown(zone, instant)
        );
    }
}

fn run(seconds: bool, half_width_s: i64, step_s: i64) {
    let mut dice = Dice(SEED ^ u64::from(seconds));
    let mut changes = 0;
    for name in ZONES {
        let zone = zone_named(name);
        for change in changes_of_2026(&zone) {
            changes += 1;
            let moments = walk(&zone, change - half_width_s, change + half_width_s, step_s);
            for _ in 0..ROUNDS {
                let model = Model::random(&mut dice, seconds);
                compare(&model, name, &moments, change, &mut dice);
            }
        }
    }
    assert!(changes >= 40, "{changes} changes");
}

#[test]
fn instants_strictly_rise() {
    run(false, 30 * 86_400, 60);
}

#[test]
fn instants_strictly_rise_with_seconds() {
    run(true, 3 * 3_600, 1);
}
