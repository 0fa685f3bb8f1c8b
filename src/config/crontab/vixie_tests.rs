//! A real table against a reference: cron's own rules, written once more in the plainest way and walked minute by minute.
//!
//! The reference shares nothing with the product, not even the time zone: New York in 2026 is two sentences. It follows
//! Vixie's cron: a `*` at the beginning of minute or hour makes a job one that goes by the clock on the wall as it is;
//! every other job runs once for a time that is skipped, right after the gap, and not again when an hour comes twice.

use super::super::crontab_hosts::{Host, schedule_of};
use super::super::{
    CommandConfig, Config, JobConfig, Overrides, Paint, Sources, crontab_as_yaml, load, render,
};

const TABLE: &str = include_str!("../../../tests/field/thirty.crontab");
const HOST: Host = Host("America/New_York");

/// Minutes since 1970, UTC, of 2026-03-08 07:00 (clocks go from 02:00 to 03:00) and 2026-11-01 06:00 (back to 01:00).
const SPRING: i64 = 29_549_220;
const AUTUMN: i64 = 29_891_880;

fn local_of(utc: i64) -> i64 {
    let hours = if (SPRING..AUTUMN).contains(&utc) { 4 } else { 5 };
    utc - hours * 60
}

/// Year, month, day and day of week of a day number, by counting.
fn date_of(day: i64) -> (i64, i64, i64, i64) {
    let weekday = (day + 4) % 7;
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (mut year, mut rest) = (1970, day);
    while rest >= 365 + i64::from(is_leap(year)) {
        rest -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + i64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let mut month = 1;
    for length in lengths {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    (year, month, rest + 1, weekday)
}

struct Line {
    name: String,
    command: String,
    /// Minute, hour, day of month, month, day of week.
    fields: [String; 5],
}

/// The lines of a table as cron reads them, in a few sentences.
fn read_reference(text: &str, stem: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut name = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(given) = line.strip_prefix("# name: ") {
            name = Some(given.to_owned());
        }
        if line.is_empty() || line.starts_with('#') || line.split(' ').next().unwrap().contains('=') {
            continue;
        }
        if line.contains(" = ") && !line.contains('*') && !line.starts_with('@') {
            continue;
        }
        let nickname = |word: &str| match word {
            "@yearly" => Some("0 0 1 1 *"),
            "@monthly" => Some("0 0 1 * *"),
            "@weekly" => Some("0 0 * * 0"),
            "@daily" => Some("0 0 * * *"),
            "@hourly" => Some("0 * * * *"),
            _ => None,
        };
        let first = line.split_whitespace().next().unwrap();
        let (fields, command) = match nickname(first) {
            Some(fields) => (fields.to_owned(), &line[first.len()..]),
            None => {
                let words: Vec<&str> = line.split_whitespace().collect();
                let last = words[4];
                // No field of the table stands in its command too.
                let mut rest = line;
                for word in &words[..5] {
                    rest = &rest[rest.find(word).unwrap() + word.len()..];
                }
                assert!(!last.is_empty());
                (words[..5].join(" "), rest)
            }
        };
        let words: Vec<String> = fields.split(' ').map(str::to_owned).collect();
        found.push(Line {
            name: name.take().unwrap_or_else(|| format!("{stem}-{}", index + 1)),
            command: command.trim_start().replace("\\%", "%"),
            fields: words.try_into().unwrap(),
        });
    }
    found
}

const MONTHS: &str = "jan feb mar apr may jun jul aug sep oct nov dec";
const DAYS: &str = "sun mon tue wed thu fri sat";

fn number(word: &str, lowest: i64) -> i64 {
    let names = if lowest == 1 { MONTHS } else { DAYS };
    names.split(' ').position(|name| name == word).map_or_else(
        || word.parse().unwrap(),
        |place| i64::try_from(place).unwrap() + lowest,
    )
}

/// Whether a field's list holds a value.
fn holds(field: &str, lowest: i64, highest: i64, value: i64) -> bool {
    field.split(',').any(|item| {
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (lowest, highest),
            Some((from, to)) => (number(from, lowest), number(to, lowest)),
            None => (number(range, lowest), number(range, lowest)),
        };
        from <= value && value <= to && (value - from) % step.parse::<i64>().unwrap() == 0
    })
}

impl Line {
    fn is_wild(&self) -> bool {
        self.fields[0].starts_with('*') || self.fields[1].starts_with('*')
    }

    fn matches(&self, local: i64) -> bool {
        let (hour, minute) = (local.rem_euclid(1_440) / 60, local.rem_euclid(60));
        let [minutes, hours, days, months, weekdays] = &self.fields;
        if !holds(minutes, 0, 59, minute) || !holds(hours, 0, 23, hour) {
            return false;
        }
        let (_, month, day, weekday) = date_of(local.div_euclid(1_440));
        let is_day = holds(days, 1, 31, day);
        let is_weekday = holds(weekdays, 0, 7, weekday) || weekday == 0 && holds(weekdays, 0, 7, 7);
        let is_date = if days.starts_with('*') || weekdays.starts_with('*') {
            is_day && is_weekday
        } else {
            is_day || is_weekday
        };
        holds(months, 1, 12, month) && is_date
    }

    /// The minutes, UTC, in which cron starts it.
    fn starts(&self, from: i64, to: i64) -> Vec<i64> {
        let mut found = Vec::new();
        let mut latest = local_of(from);
        for utc in from + 1..=to {
            let local = local_of(utc);
            let is_new = local > latest;
            let now = self.matches(local) && (is_new || self.is_wild());
            let skipped = !self.is_wild() && (latest + 1..local).any(|minute| self.matches(minute));
            if now || skipped {
                found.push(utc);
            }
            latest = latest.max(local);
        }
        found
    }
}

fn configured(name: &str, text: &str) -> (Config, Sources) {
    let sources = Sources::in_memory(&[(name, text)]);
    let loaded = load(&sources, &|_| None, &Overrides::default(), &HOST);
    match loaded {
        Ok((config, _)) => (config, sources),
        Err(faults) => panic!("{}\n{text}", render(&faults, &sources, Paint::Plain)),
    }
}

fn next_minutes(job: &JobConfig, from: i64, to: i64) -> Vec<i64> {
    let instants = schedule_of(job).instants(from * 60_000, to * 60_000, usize::MAX);
    instants.into_iter().map(|instant| instant / 60_000).collect()
}

#[test]
fn thirty_lines_fire_as_cron_would_and_so_does_their_import() {
    let reference = read_reference(TABLE, "thirty");
    assert_eq!(reference.len(), 18);
    assert!(TABLE.lines().count() >= 30);
    let (config, sources) = configured("thirty.crontab", TABLE);
    let yaml = crontab_as_yaml(&config, &sources);
    let (imported, _) = configured("ductor.yaml", &yaml);
    for all in [&config.jobs, &imported.jobs] {
        let names: Vec<&str> = all.iter().map(|job| job.name.as_str()).collect();
        let wanted: Vec<&str> = reference.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, wanted);
    }
    let mut compared = 0;
    for (line, (job, again)) in reference.iter().zip(config.jobs.iter().zip(&imported.jobs)) {
        for command in [&job.launch.command, &again.launch.command] {
            assert_eq!(
                *command,
                CommandConfig::Shell(line.command.clone()),
                "{}",
                line.name
            );
        }
        for change in [SPRING, AUTUMN] {
            let (from, to) = (change - 30 * 1_440, change + 30 * 1_440);
            let wanted = line.starts(from, to);
            compared += wanted.len();
            assert_eq!(
                next_minutes(job, from, to),
                wanted,
                "{} {:?}",
                line.name,
                line.fields
            );
            assert_eq!(next_minutes(again, from, to), wanted, "{} imported", line.name);
        }
    }
    assert!(compared > 20_000, "{compared}");
}

#[test]
fn the_reference_knows_its_own_two_nights() {
    let at = |fields: &str| {
        let words: Vec<String> = fields.split(' ').map(str::to_owned).collect();
        Line {
            name: String::new(),
            command: String::new(),
            fields: words.try_into().unwrap(),
        }
    };
    // 02:30 does not exist: once, when the clock shows 03:00; and what goes by the wall leaves it out.
    assert_eq!(at("30 2 * * *").starts(SPRING - 60, SPRING + 60), [SPRING]);
    assert_eq!(
        at("30 */2 * * *").starts(SPRING - 120, SPRING + 120),
        [SPRING - 90, SPRING + 90]
    );
    // 01:30 exists twice: once in the first pass; what goes by the wall runs in both.
    assert_eq!(at("30 1 * * *").starts(AUTUMN - 120, AUTUMN + 120), [AUTUMN - 30]);
    assert_eq!(
        at("30 * * * *").starts(AUTUMN - 60, AUTUMN + 60),
        [AUTUMN - 30, AUTUMN + 30]
    );
    assert_eq!(date_of(SPRING / 1_440), (2026, 3, 8, 0));
    assert_eq!(date_of(AUTUMN / 1_440), (2026, 11, 1, 0));
}

#[test]
fn an_import_is_readable_yaml_with_the_same_definitions() {
    let (config, sources) = configured("thirty.crontab", TABLE);
    let yaml = crontab_as_yaml(&config, &sources);
    for part in [
        "# Written from thirty.crontab.\n",
        "defaults:\n  timezone: America/New_York\n  shell: /bin/bash\n  workingDirectory: \"~\"\n  environment:\n    SHELL: /bin/bash\n",
        "    BACKUP_DIR: /var/backups/nightly runs\n",
        "  # the wiki\n  - name: thirty-9\n    schedule: \"*/10 * * * *\"\n    command: /opt/wiki/bin/refresh --changed\n",
        "  # one file for each day, kept for two weeks\n  - name: wiki-dump\n",
        "    schedule: \"0 5 1,15 * 5\"\n    dayMatch: or\n",
        "    environment:\n      RETRIES: \"3\"\n",
    ] {
        assert!(yaml.contains(part), "{part}\n{yaml}");
    }
    let (imported, _) = configured("ductor.yaml", &yaml);
    let json = |config: &Config| -> Vec<serde_json::Value> {
        let plain = |job: &JobConfig| {
            let job = JobConfig {
                timezone_from: None,
                labels: Vec::new(),
                ..job.clone()
            };
            serde_json::to_value(job).unwrap()
        };
        config.jobs.iter().map(plain).collect()
    };
    assert_eq!(json(&imported), json(&config));
}
