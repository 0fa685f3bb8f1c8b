//! Lateness: has a job gone too long without a success, did a due fire not start, does a run go on for too long?
//!
//! One passed limit is one [`Breach`], from the moment it is passed to the recovery; who asks again meanwhile is told the
//! same breach again. What the store has seen of the job comes in as [`Seen`].

use serde::{Deserialize, Serialize};

use crate::words::ids::RunId;
use crate::words::time::Millis;

/// The limits of a job, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sla {
    /// The longest time without a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time_since_success_ms: Option<u64>,
    /// The longest wait of a due fire for its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_after_ms: Option<u64>,
    /// The longest run, from its first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_ms: Option<u64>,
}

impl Sla {
    /// True when there is no limit.
    pub fn is_empty(&self) -> bool {
        *self == Sla::default()
    }
}

/// Which limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlaCheck {
    /// No success for too long.
    MaxTimeSinceSuccess,
    /// A due fire did not start.
    LateAfter,
    /// A run goes on for too long.
    MaxRuntime,
}

impl SlaCheck {
    /// The key of the configuration file.
    pub fn word(self) -> &'static str {
        match self {
            SlaCheck::MaxTimeSinceSuccess => "maxTimeSinceSuccess",
            SlaCheck::LateAfter => "lateAfter",
            SlaCheck::MaxRuntime => "maxRuntime",
        }
    }
}

/// A passed limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    /// Which limit.
    pub check: SlaCheck,
    /// The run, for one that goes on for too long.
    pub run: Option<RunId>,
    /// From when the time is counted: the last success, the due moment, the start.
    pub counted_from: Millis,
    /// The limit in milliseconds.
    pub limit_ms: u64,
    /// In words.
    pub reason: String,
}

impl Breach {
    /// When the limit was passed.
    pub fn since(&self) -> Millis {
        self.counted_from.plus(self.limit_ms)
    }
}

/// What became of the newest due moment that is older than `lateAfter`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Its run, or a later one, has started.
    Started,
    /// Nobody expects it: the job was paused, or is one that skips while it runs.
    Excused,
    /// Its run waits.
    Waits,
    /// It was skipped, with this word.
    Skipped(String),
    /// Nothing is known of it: no daemon was there.
    Unknown,
}

/// What the store has seen of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Since when the job is known.
    pub known_since: Millis,
    /// Its newest success.
    pub last_success: Option<Millis>,
    /// The newest due moment that should have started by now, and what became of it.
    pub due: Option<(Millis, Fate)>,
    /// Runs that have started and not ended, with their first start.
    pub running: Vec<(RunId, Millis)>,
}

/// The limits that are passed at `now`.
pub fn judge(sla: &Sla, seen: &Seen, now: Millis) -> Vec<Breach> {
    let mut breaches = Vec::new();
    if let Some(limit_ms) = sla.max_time_since_success_ms {
        let counted_from = seen.last_success.unwrap_or(seen.known_since);
        if now.since(counted_from) > limit_ms {
            let since = match seen.last_success {
                Some(at) => format!("no success since {at}"),
                None => format!("no success since it became known at {}", seen.known_since),
            };
            breaches.push(Breach {
                check: SlaCheck::MaxTimeSinceSuccess,
                run: None,
                counted_from,
                limit_ms,
                reason: format!("{since}, the limit is {}", length(limit_ms)),
            });
        }
    }
    if let (Some(limit_ms), Some((due, fate))) = (sla.late_after_ms, &seen.due)
        && now.since(*due) > limit_ms
        && let Some(why) = not_started(fate)
    {
        breaches.push(Breach {
            check: SlaCheck::LateAfter,
            run: None,
            counted_from: *due,
            limit_ms,
            reason: format!(
                "the fire due at {due} did not start within {}: {why}",
                length(limit_ms)
            ),
        });
    }
    if let Some(limit_ms) = sla.max_runtime_ms {
        let too_long = seen
            .running
            .iter()
            .filter(|(_, started_at)| now.since(*started_at) > limit_ms);
        breaches.extend(too_long.map(|(run, started_at)| Breach {
            check: SlaCheck::MaxRuntime,
            run: Some(*run),
            counted_from: *started_at,
            limit_ms,
            reason: format!(
                "{run} has been running since {started_at}, the limit is {}",
                length(limit_ms)
            ),
        }));
    }
    breaches
}

fn not_started(fate: &Fate) -> Option<String> {
    match fate {
        Fate::Started | Fate::Excused => None,
        Fate::Waits => Some("its run still waits".to_owned()),
        Fate::Skipped(word) => Some(format!("it was skipped ({word})")),
        Fate::Unknown => Some("nothing fired it".to_owned()),
    }
}

/// A limit as the configuration would write it: `1h30m`, `0.5s`.
fn length(ms: u64) -> String {
    let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
    let (seconds, rest) = (ms / 1_000 % 60, ms % 1_000);
    let mut text = String::new();
    for (count, unit) in [(hours, "h"), (minutes, "m")] {
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    match (seconds, rest) {
        (0, 0) if !text.is_empty() => text,
        (_, 0) => text + &format!("{seconds}s"),
        (_, _) => text + format!("{seconds}.{rest:03}").trim_end_matches('0') + "s",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 60_000;

    fn quiet() -> Seen {
        Seen {
            known_since: Millis(1_000_000),
            last_success: None,
            due: None,
            running: Vec::new(),
        }
    }

    fn check(sla: Sla, seen: &Seen, now: i64, expected: &[&str]) {
        let found: Vec<String> = judge(&sla, seen, Millis(now))
            .into_iter()
            .map(|breach| format!("{}: {}", breach.check.word(), breach.reason))
            .collect();
        assert_eq!(found, expected, "{seen:?} at {now}");
    }

    #[test]
    fn the_time_since_the_last_success() {
        let sla = Sla {
            max_time_since_success_ms: Some(LIMIT),
            ..Sla::default()
        };
        let never = "maxTimeSinceSuccess: no success since it became known at 1970-01-01T00:16:40.000Z, the limit is 1m";
        check(sla, &quiet(), 1_060_000, &[]);
        check(sla, &quiet(), 1_060_001, &[never]);
        let succeeded = |at: i64| Seen {
            last_success: Some(Millis(at)),
            ..quiet()
        };
        check(sla, &succeeded(1_050_000), 1_110_000, &[]);
        let since = "maxTimeSinceSuccess: no success since 1970-01-01T00:17:30.000Z, the limit is 1m";
        check(sla, &succeeded(1_050_000), 1_110_001, &[since]);
        check(sla, &quiet(), 0, &[]);
        check(Sla::default(), &quiet(), i64::MAX, &[]);
    }

    #[test]
    fn a_due_fire_that_did_not_start() {
        let sla = Sla {
            late_after_ms: Some(LIMIT),
            ..Sla::default()
        };
        let due = |fate: Fate| Seen {
            due: Some((Millis(2_000_000), fate)),
            ..quiet()
        };
        let late = |why: &str| {
            format!("lateAfter: the fire due at 1970-01-01T00:33:20.000Z did not start within 1m: {why}")
        };
        check(sla, &due(Fate::Waits), 2_060_000, &[]);
        check(sla, &due(Fate::Waits), 2_060_001, &[&late("its run still waits")]);
        check(
            sla,
            &due(Fate::Skipped("pool_full".to_owned())),
            2_070_000,
            &[&late("it was skipped (pool_full)")],
        );
        check(sla, &due(Fate::Unknown), 2_070_000, &[&late("nothing fired it")]);
        check(sla, &due(Fate::Started), 2_070_000, &[]);
        check(sla, &due(Fate::Excused), 2_070_000, &[]);
        check(sla, &quiet(), 2_070_000, &[]);
    }

    #[test]
    fn each_run_that_goes_on_is_told_by_itself() {
        let sla = Sla {
            max_runtime_ms: Some(1_500),
            ..Sla::default()
        };
        let run = RunId([1; 16]);
        let seen = Seen {
            running: vec![(RunId([2; 16]), Millis(1_000)), (run, Millis(0))],
            ..quiet()
        };
        check(sla, &seen, 1_500, &[]);
        let long =
            format!("maxRuntime: {run} has been running since 1970-01-01T00:00:00.000Z, the limit is 1.5s");
        check(sla, &seen, 1_501, &[&long]);
        assert_eq!(judge(&sla, &seen, Millis(9_000)).len(), 2);
        let breach = &judge(&sla, &seen, Millis(1_501))[0];
        assert_eq!((breach.run, breach.since()), (Some(run), Millis(1_500)));
    }

    #[test]
    fn lengths_are_those_of_the_configuration() {
        for (ms, expected) in [
            (1, "0.001s"),
            (1_000, "1s"),
            (90_500, "1m30.5s"),
            (3_600_000, "1h"),
            (93_784_000, "26h3m4s"),
            (0, "0s"),
        ] {
            assert_eq!(length(ms), expected);
        }
    }
}
