//! What becomes of due moments that nobody could fire in time (section 10.3).

use crate::domain::workflow::definition::OnMissed;
use crate::words::limits;

/// What becomes of one missed moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It runs, in its turn.
    Owe,
    /// It gets a row with this word.
    Skip(&'static str),
}

/// How missed moments of a job are judged.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The policy.
    pub on_missed: OnMissed,
    /// Older moments do not run any more, in milliseconds.
    pub deadline_ms: Option<u64>,
    /// The job is paused until then: what was due before owes nothing. `i64::MAX` = open end.
    pub paused_until: Option<i64>,
}

/// Judges missed moments, which ascend. Of those that may run, `RunOnce` takes the newest and `RunAll` the newest 100.
pub fn judge(rules: Rules, missed: &[i64], now: i64) -> Vec<(i64, Verdict)> {
    let word_of = |instant: i64| {
        if rules.paused_until.is_some_and(|until| instant < until) {
            return Some("job_paused");
        }
        let age = u64::try_from(now.saturating_sub(instant)).unwrap_or(0);
        rules
            .deadline_ms
            .is_some_and(|deadline| age > deadline)
            .then_some("missed")
    };
    let mut left = match rules.on_missed {
        OnMissed::Skip => 0,
        OnMissed::RunOnce => 1,
        OnMissed::RunAll => limits::CAUGHT_UP_MAX,
    };
    let mut judged: Vec<(i64, Verdict)> = missed
        .iter()
        .rev()
        .map(|instant| match word_of(*instant) {
            Some(word) => (*instant, Verdict::Skip(word)),
            None if left == 0 => (*instant, Verdict::Skip("missed")),
            None => {
                left -= 1;
                (*instant, Verdict::Owe)
            }
        })
        .collect();
    judged.reverse();
    judged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rules: Rules, missed: &[i64], now: i64, expected: &str) {
        let words: Vec<String> = judge(rules, missed, now)
            .into_iter()
            .map(|(instant, verdict)| match verdict {
                Verdict::Owe => format!("{instant} run"),
                Verdict::Skip(word) => format!("{instant} {word}"),
            })
            .collect();
        assert_eq!(words.join(", "), expected);
    }

    #[test]
    fn each_policy_decides_which_missed_moments_run() {
        let rules = |on_missed| Rules {
            on_missed,
            deadline_ms: None,
            paused_until: None,
        };
        let missed = [10, 20, 30];
        check(
            rules(OnMissed::Skip),
            &missed,
            40,
            "10 missed, 20 missed, 30 missed",
        );
        check(
            rules(OnMissed::RunOnce),
            &missed,
            40,
            "10 missed, 20 missed, 30 run",
        );
        check(rules(OnMissed::RunAll), &missed, 40, "10 run, 20 run, 30 run");
        let deadline = Rules {
            deadline_ms: Some(15),
            ..rules(OnMissed::RunAll)
        };
        check(deadline, &missed, 40, "10 missed, 20 missed, 30 run");
        let late = Rules {
            deadline_ms: Some(5),
            ..rules(OnMissed::RunOnce)
        };
        check(late, &missed, 40, "10 missed, 20 missed, 30 missed");
        let paused = Rules {
            paused_until: Some(25),
            ..rules(OnMissed::RunAll)
        };
        check(paused, &missed, 40, "10 job_paused, 20 job_paused, 30 run");
        check(rules(OnMissed::RunOnce), &[], 40, "");
    }

    #[test]
    fn m1_of_111_missed_minutes_the_newest_100_run() {
        let missed: Vec<i64> = (1..=111).collect();
        let rules = Rules {
            on_missed: OnMissed::RunAll,
            deadline_ms: None,
            paused_until: None,
        };
        let judged = judge(rules, &missed, 200);
        let skipped: Vec<i64> = judged
            .iter()
            .filter(|(_, verdict)| *verdict == Verdict::Skip("missed"))
            .map(|(instant, _)| *instant)
            .collect();
        assert_eq!(skipped, (1..=11).collect::<Vec<i64>>());
    }
}
