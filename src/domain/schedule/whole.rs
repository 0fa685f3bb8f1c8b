//! `Schedule`: the text once checked, and what can be asked of it.

use super::calendar::{DAY_S, MINUTE_S};
use super::day::DayRule;
use super::describe::describe_pattern;
use super::duration::{every_seconds, words};
use super::error::ScheduleError;
use super::expression::{Remarks, read_expression};
use super::field::Field;
use super::instants::CronTimes;
use super::item::{Piece, read_item};
use super::wall::local_time;
use super::zone::Zone;

/// The longest accepted text; a full list of all six fields fits many times.
const TEXT_MAX: usize = 1_024;

/// The first second of year 1 and the last of year 9998: requests from outside are pulled to these, so
/// that no argument makes a search long or an addition overflow.
const EARLIEST_S: i64 = -62_135_596_800;
const LATEST_S: i64 = 253_370_764_799;

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The `dayMatch` of a job or of `defaults`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayMatch {
    Or,
    And,
}

/// What a job says about its schedule beside the text.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParseOptions<'a> {
    /// `seconds: true`: six fields are allowed, the second comes first.
    pub seconds: bool,
    pub day_match: Option<DayMatch>,
    /// An IANA name; none is UTC.
    pub timezone: Option<&'a str>,
    /// What `H` hashes.
    pub job_name: &'a str,
}

/// A checked schedule in its zone. All instants are UTC milliseconds on whole seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    text: String,
    zone: Zone,
    remarks: Remarks,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Cron(Box<CronTimes>),
    Every { period_s: i64 },
    Reboot,
}

/// What `Schedule::missed` found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// The newest missed instants, oldest first, at most the cap.
    pub newest: Vec<i64>,
    /// How many more were missed before those.
    pub older: u64,
}

impl Schedule {
    pub fn parse(text: &str, options: ParseOptions<'_>) -> Result<Schedule, ScheduleError> {
        let length = text.chars().count();
        if length > TEXT_MAX {
            let message = format!("the schedule has {length} characters; at most {TEXT_MAX} are allowed");
            return Err(ScheduleError {
                field: None,
                column: 0,
                length,
                message,
            });
        }
        let pieces = Piece::words(text);
        let (kind, remarks) = match pieces.split_first() {
            Some((first, rest)) if first.text.starts_with('@') => {
                (read_nickname(*first, rest, options)?, Remarks::default())
            }
            _ => read_cron(&pieces, options)?,
        };
        let zone = named_zone(options)?;
        Ok(Schedule {
            text: text.trim().to_owned(),
            zone,
            remarks,
            kind,
        })
    }

    /// The first fire strictly after an instant; `None` for `@reboot` and when there is none within 60
    /// years.
    pub fn next_after(&self, instant_ms: i64) -> Option<i64> {
        let from = whole_second(instant_ms) + 1;
        let next = match &self.kind {
            Kind::Cron(times) => times.first_from(from),
            Kind::Every { period_s } => (from - 1)
                .div_euclid(*period_s)
                .checked_add(1)
                .and_then(|n| n.checked_mul(*period_s)),
            Kind::Reboot => None,
        };
        next.and_then(|seconds| seconds.checked_mul(1_000))
    }

    /// The fires in `(from_exclusive, to_inclusive]`, at most `limit`, oldest first.
    pub fn instants(&self, from_exclusive: i64, to_inclusive: i64, limit: usize) -> Vec<i64> {
        std::iter::successors(self.next_after(from_exclusive), |last| self.next_after(*last))
            .take_while(|instant| *instant <= to_inclusive)
            .take(limit)
            .collect()
    }

    /// How many fires `(from_exclusive, to_inclusive]` holds, without visiting them.
    pub fn count(&self, from_exclusive: i64, to_inclusive: i64) -> u64 {
        if from_exclusive >= to_inclusive {
            return 0;
        }
        let (from, to) = (whole_second(from_exclusive), whole_second(to_inclusive));
        let count = match &self.kind {
            Kind::Cron(times) => times.count(from + 1, to + 1),
            Kind::Every { period_s } => to.div_euclid(*period_s) - from.div_euclid(*period_s),
            Kind::Reboot => 0,
        };
        u64::try_from(count).unwrap_or(0)
    }

    /// The fires after the job's mark, up to and including `until_ms` (10.3). The newest `cap` are named, those before
    /// them counted. Pauses and deadlines are the caller's, and so is how late a fire may be.
    pub fn missed(&self, after_mark_ms: i64, until_ms: i64, cap: usize) -> Missed {
        let last_ms = until_ms.clamp(EARLIEST_S * 1_000, LATEST_S * 1_000);
        let after_mark_ms = after_mark_ms.clamp(EARLIEST_S * 1_000, LATEST_S * 1_000);
        let total = self.count(after_mark_ms, last_ms);
        let wanted = total.min(u64::try_from(cap).unwrap_or(u64::MAX));
        // The latest second after which `wanted` fires are left; halving it keeps a month's outage of a
        // job that fires each second as cheap as a day's.
        let (mut low, mut high) = (after_mark_ms, last_ms.max(after_mark_ms));
        while high - low > 1_000 {
            let middle = low + (high - low) / 2;
            if self.count(middle, last_ms) >= wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        let mut newest = self.instants(low, last_ms, cap.saturating_add(1));
        let extra = newest
            .len()
            .saturating_sub(usize::try_from(wanted).unwrap_or(usize::MAX));
        newest.drain(..extra);
        Missed {
            newest,
            older: total - wanted,
        }
    }

    /// The last fire in `(from_exclusive, to_inclusive]`, found by halving: a long time costs no more than a short one.
    pub fn last_in(&self, from_exclusive: i64, to_inclusive: i64) -> Option<i64> {
        self.missed(from_exclusive, to_inclusive, 1).newest.pop()
    }

    /// True when gaps are skipped and folds run twice (11.3, 11.4): `@every`, or a `*` or `H/n` in second,
    /// minute or hour.
    pub fn is_interval(&self) -> bool {
        match &self.kind {
            Kind::Cron(times) => times.pattern.interval,
            Kind::Every { .. } => true,
            Kind::Reboot => false,
        }
    }

    /// True when times are fixed points of the day: one fire for a gap, one for a fold.
    pub fn is_fixed_time(&self) -> bool {
        matches!(self.kind, Kind::Cron(_)) && !self.is_interval()
    }

    pub fn is_reboot(&self) -> bool {
        matches!(self.kind, Kind::Reboot)
    }

    /// The period of `@every`.
    pub fn every_ms(&self) -> Option<i64> {
        match &self.kind {
            Kind::Every { period_s } => Some(period_s * 1_000),
            Kind::Cron(_) | Kind::Reboot => None,
        }
    }

    /// Whether a day must match one of the day fields or both; `None` without day fields.
    pub fn day_rule(&self) -> Option<DayRule> {
        self.cron().map(|times| times.pattern.days.rule)
    }

    /// The text as given, less blanks at its ends.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The zone's name as the zone data spells it; `UTC` when none was given.
    pub fn timezone(&self) -> &str {
        self.zone.name()
    }

    /// An instant on the schedule's wall clock, with the offset: `2026-03-08T03:00:00-04:00`. From the same
    /// zone data as the fires; `None` outside of the years 1 to 9998.
    pub fn local_time(&self, instant_ms: i64) -> Option<String> {
        local_time(&self.zone, instant_ms)
    }

    pub(super) fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The schedule in plain words, without the zone: `at 02:30 on Mon-Fri`.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Cron(times) => describe_pattern(&times.pattern),
            Kind::Every { period_s: 1 } => "every second".to_owned(),
            Kind::Every { period_s } if *period_s == MINUTE_S => "every minute".to_owned(),
            Kind::Every { period_s } if *period_s == DAY_S => "every day at 00:00 UTC".to_owned(),
            Kind::Every { period_s } => format!("every {}", words(*period_s)),
            Kind::Reboot => "once after each boot".to_owned(),
        }
    }

    pub(super) fn cron(&self) -> Option<&CronTimes> {
        match &self.kind {
            Kind::Cron(times) => Some(times),
            Kind::Every { .. } | Kind::Reboot => None,
        }
    }

    pub(super) fn remarks(&self) -> &Remarks {
        &self.remarks
    }
}

/// Whether a word could be a field of its own. For readers of crontab lines: a command that looks like a
/// sixth field deserves the hint about `seconds: true`.
pub fn looks_like_field(word: &str) -> bool {
    [Field::DayOfMonth, Field::Month, Field::DayOfWeek]
        .iter()
        .any(|field| {
            let word = Piece {
                text: word.strip_prefix('+').unwrap_or(word),
                column: 0,
            };
            word.text == "?"
                || word
                    .list()
                    .iter()
                    .all(|item| read_item(*field, *item, "").is_ok())
        })
}

pub(super) fn whole_second(instant_ms: i64) -> i64 {
    instant_ms.div_euclid(1_000).clamp(EARLIEST_S, LATEST_S)
}

fn named_zone(options: ParseOptions<'_>) -> Result<Zone, ScheduleError> {
    Zone::named(options.timezone).ok_or_else(|| ScheduleError {
        field: Some("timezone"),
        column: 0,
        length: 0,
        message: format!("unknown time zone '{}'", options.timezone.unwrap_or_default()),
    })
}

fn read_cron(pieces: &[Piece<'_>], options: ParseOptions<'_>) -> Result<(Kind, Remarks), ScheduleError> {
    let choice = options.day_match.map(|choice| match choice {
        DayMatch::Or => DayRule::Or,
        DayMatch::And => DayRule::And,
    });
    let (pattern, remarks) = read_expression(pieces, options.seconds, choice, options.job_name)?;
    let zone = named_zone(options)?;
    Ok((Kind::Cron(Box::new(CronTimes { pattern, zone })), remarks))
}

fn read_nickname(
    name: Piece<'_>,
    rest: &[Piece<'_>],
    options: ParseOptions<'_>,
) -> Result<Kind, ScheduleError> {
    let refuse = |piece: Piece<'_>, message: String| {
        Err(ScheduleError {
            field: None,
            column: piece.column,
            length: piece.length(),
            message,
        })
    };
    if name.text == "@every" {
        return match rest {
            [] => {
                let end = Piece {
                    text: "",
                    column: name.column + name.length(),
                };
                refuse(
                    end,
                    "@every: a length is missing; write it as in @every 15m".to_owned(),
                )
            }
            [length] => match every_seconds(length.text) {
                Ok(period_s) => Ok(Kind::Every { period_s }),
                Err(why) => refuse(*length, format!("@every: {why}")),
            },
            [_, extra, ..] => refuse(
                *extra,
                "@every: one length only, without blanks, as in 1h30m".to_owned(),
            ),
        };
    }
    let meaning = NICKNAMES
        .iter()
        .find(|(word, _)| *word == name.text)
        .map(|(_, fields)| *fields);
    if name.text != "@reboot" && meaning.is_none() {
        return refuse(name, unknown_nickname(name.text));
    }
    if let Some(extra) = rest.first() {
        return refuse(*extra, format!("nothing may follow {}", name.text));
    }
    match meaning {
        Some(fields) => Ok(read_cron(&Piece::words(fields), options)?.0),
        None => Ok(Kind::Reboot),
    }
}

fn unknown_nickname(word: &str) -> String {
    let known = NICKNAMES
        .iter()
        .map(|(known, _)| *known)
        .chain(["@every", "@reboot"]);
    let nearest = known.min_by_key(|known| strsim::osa_distance(known, &word.to_ascii_lowercase()));
    match nearest.filter(|known| strsim::osa_distance(known, &word.to_ascii_lowercase()) <= 3) {
        Some(nearest) => format!("'{word}' is not known; did you mean {nearest}?"),
        None => format!(
            "'{word}' is not known; there are @yearly, @monthly, @weekly, @daily, @hourly, @every and @reboot"
        ),
    }
}
