//! Why a job did or did not run at a time: one answer with a stable code, a sentence, and remarks about the clocks.
//!
//! What is recorded decides; where nothing is, what can be known from the schedule, the pause, the configuration and the
//! lives of the daemons. A daemon's record knows its newest life only, so "no daemon is known to have run" is as far as
//! it goes.

use super::skip::{skip_text, skipped_run_code};
use crate::domain::schedule::{Moment, Schedule, Turn, ZoneClock};
use crate::domain::slots::admission::Pause;
use crate::words::limits;
use crate::words::names::NodeName;
use crate::words::time::Millis;

/// What is asked, and everything that is known about it.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The job.
    pub job: &'a str,
    /// The time.
    pub moment: &'a Moment,
    /// When it is asked.
    pub now: Millis,
    /// The schedule in force at that time; `None` = by hand only.
    pub schedule: Option<&'a Schedule>,
    /// When that schedule was replaced by another.
    pub replaced_at: Option<Millis>,
    /// Whether the job was enabled at that time.
    pub enabled: bool,
    /// `onMissed`, as the configuration writes it.
    pub on_missed: &'a str,
    /// When the job was loaded for the first time.
    pub known_since: Option<Millis>,
    /// What is recorded of that moment; several where every node fires.
    pub seen: &'a [Seen],
    /// The oldest moment of the job that is still recorded.
    pub oldest: Option<Millis>,
    /// The pause that holds now.
    pub pause: Option<&'a Pause>,
    /// The newest lives of the daemons.
    pub lives: &'a [Life],
}

/// What is recorded of a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The daemon that fired for itself; empty unless every node fires.
    pub node: String,
    /// What became of it.
    pub fire: SeenFire,
}

/// What became of a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeenFire {
    /// It became a run.
    Run(SeenRun),
    /// It did not.
    Skipped {
        /// The stable word.
        code: String,
        /// When that was recorded.
        at: Millis,
    },
    /// It was missed and will still run.
    Owed {
        /// Missed moments that run before it.
        ahead: usize,
        /// Why it could not begin the last time it was tried.
        refused: Option<String>,
    },
}

/// The run of a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRun {
    /// Its id.
    pub id: String,
    /// The word of its state; `None` if the run is no longer kept.
    pub state: Option<&'static str>,
    /// Why it ended as it did.
    pub reason: Option<String>,
    /// It was made later, to catch up.
    pub caught_up: bool,
}

/// The newest life of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// The daemon.
    pub node: NodeName,
    /// Since when.
    pub started_at: Millis,
    /// Until when it is known to have lived.
    pub last_seen: Millis,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The stable word: `ran`, `caught_up`, a skip reason, or what is known where nothing is recorded.
    pub code: String,
    /// For people.
    pub sentence: String,
    /// What the clocks did, and which schedule was in force.
    pub remarks: Vec<String>,
    /// The nearest moments of the schedule around the time.
    pub before: Option<Millis>,
    /// The later one.
    pub after: Option<Millis>,
}

/// Answers.
pub fn why(question: &Question<'_>) -> Answer {
    let told = recorded(question).or_else(|| unrecorded(question));
    let (code, sentence) = told.unwrap_or_else(|| lost(question));
    let at = question.moment.at_ms;
    let schedule = question.schedule;
    Answer {
        code,
        sentence,
        remarks: remarks(question),
        before: schedule.and_then(|schedule| schedule.last_before(at)).map(Millis),
        after: schedule.and_then(|schedule| schedule.next_after(at)).map(Millis),
    }
}

type Told = (String, String);

fn told(code: &str, sentence: String) -> Told {
    (code.to_owned(), sentence)
}

impl Question<'_> {
    fn clock(&self) -> ZoneClock {
        self.schedule.map_or_else(ZoneClock::utc, Schedule::clock)
    }

    fn shown(&self, at: Millis) -> String {
        self.clock().shown(at.0)
    }

    /// The time that was asked for, with its zone.
    fn asked(&self) -> String {
        let clock = self.clock();
        let shown = clock.shown(self.moment.at_ms);
        if clock.name() == "UTC" {
            shown
        } else {
            format!("{shown} ({})", clock.name())
        }
    }

    fn at(&self) -> Millis {
        Millis(self.moment.at_ms)
    }

    /// No daemon's newest life covers the time.
    fn nobody_lived(&self) -> bool {
        let covers = |life: &Life| life.started_at <= self.at() && self.at() <= life.last_seen;
        !self.lives.iter().any(covers)
    }

    fn is_due(&self) -> bool {
        self.schedule
            .is_some_and(|schedule| schedule.is_due(self.moment.at_ms))
    }
}

/// What the rows say.
fn recorded(question: &Question<'_>) -> Option<Told> {
    let first = question.seen.first()?;
    let code = match &first.fire {
        SeenFire::Run(run) => match (run.state, run.caught_up) {
            (Some("skipped"), _) => skipped_run_code(run.reason.as_deref().unwrap_or_default()).to_owned(),
            (_, true) => "caught_up".to_owned(),
            (_, false) => "ran".to_owned(),
        },
        SeenFire::Skipped { code, .. } => code.clone(),
        SeenFire::Owed { .. } => "owed".to_owned(),
    };
    let sentences = question.seen.iter().map(|seen| {
        let node = if seen.node.is_empty() {
            String::new()
        } else {
            format!(" on node {}", seen.node)
        };
        let subject = format!("The fire of {}{node}", question.asked());
        match &seen.fire {
            SeenFire::Run(run) => ran(&subject, run),
            SeenFire::Skipped { code, at } if code == "missed" => missed(question, &subject, *at),
            SeenFire::Skipped { code, .. } => format!("{subject} was skipped: {}.", skip_text(code)),
            SeenFire::Owed { ahead, refused } => owed(&subject, *ahead, refused.as_deref()),
        }
    });
    let sentence = sentences.collect::<Vec<_>>().join(" ");
    Some((code, sentence))
}

fn ran(subject: &str, run: &SeenRun) -> String {
    let made = if run.caught_up {
        format!("{subject} was missed and made up for later: run {}", run.id)
    } else {
        format!("{subject} became run {}", run.id)
    };
    let reason = run.reason.as_deref().map(|reason| reason.trim_end_matches('.'));
    match (run.state, reason) {
        (None, _) => format!("{made}, which is no longer kept."),
        (Some("pending"), _) => format!(
            "{made}, which still waits; ductor run why {} says for what.",
            run.id
        ),
        (Some("running"), _) => format!("{made}, which still runs."),
        (Some("skipped"), reason) => {
            let code = skipped_run_code(reason.unwrap_or_default());
            format!("{made}, which never started: {}.", skip_text(code))
        }
        (Some(state), Some(reason)) => format!("{made}, which ended as {state}: {reason}."),
        (Some(state), None) => format!("{made}, which {state}."),
    }
}

fn missed(question: &Question<'_>, subject: &str, at: Millis) -> String {
    let cause = if question.nobody_lived() {
        "no daemon is known to have run then"
    } else {
        "it was noticed too late: the machine slept, its clock was set, or the daemon was held up"
    };
    let policy = match question.on_missed {
        "skip" => "onMissed is skip, so nothing makes up for it",
        "run-once" => "onMissed is run-once, so only the newest of those missed together runs",
        "run-all" => {
            "onMissed is run-all, but it was older than the newest 100 or than startingDeadlineSeconds allows"
        }
        _ => "nothing makes up for it",
    };
    let noticed = question.shown(at);
    format!(
        "{subject} was missed: {cause} (noticed {noticed}). {}.",
        capitalised(policy)
    )
}

fn owed(subject: &str, ahead: usize, refused: Option<&str>) -> String {
    let turn = match ahead {
        0 => "it is the next to be caught up on".to_owned(),
        1 => "one earlier moment is caught up on before it".to_owned(),
        _ => format!("{ahead} earlier moments are caught up on before it"),
    };
    match refused {
        Some(why) => {
            format!("{subject} was missed and will still run: {turn}. The last try was refused: {why}.")
        }
        None => format!("{subject} was missed and will still run: {turn}."),
    }
}

fn capitalised(text: &str) -> String {
    // The names of configuration keys keep their case.
    if text.starts_with("onMissed") {
        return format!("Its {text}");
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_ascii_uppercase().to_string() + letters.as_str()
    })
}

/// What can be known although nothing is recorded.
fn unrecorded(question: &Question<'_>) -> Option<Told> {
    let (job, asked) = (question.job, question.asked());
    if let Some(known) = question.known_since.filter(|known| *known > question.at()) {
        let known = question.shown(known);
        return Some(told(
            "before_known",
            format!("Nothing is known of {asked}: job '{job}' was loaded for the first time at {known}."),
        ));
    }
    let Some(schedule) = question.schedule else {
        return Some(told(
            "manual_only",
            format!("Job '{job}' has no schedule: it runs only when somebody starts it."),
        ));
    };
    if !question.enabled {
        return Some(told(
            "disabled",
            format!("Job '{job}' is disabled (enabled: false): it neither fires nor starts."),
        ));
    }
    if schedule.is_reboot() {
        return Some(told(
            "reboot_only",
            format!("Job '{job}' fires once after each boot (@reboot), and at no time of day."),
        ));
    }
    if !question.is_due() || in_a_gap(question) {
        return Some(not_due(question, schedule));
    }
    if question.at() > question.now {
        return Some(told("future", future(question)));
    }
    if question.now.since(question.at()) <= limits::FIRE_LATE_MS {
        return Some(told(
            "due_now",
            format!("The fire of {asked} is due just now and not recorded yet; ask again in a moment."),
        ));
    }
    None
}

/// A time in a gap that an interval schedule would have: nothing stands in for it.
fn in_a_gap(question: &Question<'_>) -> bool {
    match (&question.moment.turn, question.schedule) {
        (Turn::Gap { local_s, .. }, Some(schedule)) => {
            !(schedule.is_fixed_time() && schedule.names_wall(*local_s))
        }
        (_, _) => false,
    }
}

fn not_due(question: &Question<'_>, schedule: &Schedule) -> Told {
    let clock = question.clock();
    let at = question.moment.at_ms;
    let nearest = match (schedule.last_before(at), schedule.next_after(at)) {
        (Some(before), Some(after)) => {
            format!(
                "the nearest are {} and {}",
                clock.shown(before),
                clock.shown(after)
            )
        }
        (Some(before), None) => format!("the last was {}", clock.shown(before)),
        (None, Some(after)) => format!("the first is {}", clock.shown(after)),
        (None, None) => "it has none".to_owned(),
    };
    if let Turn::Gap { wall, local_s, .. } = &question.moment.turn {
        let named = schedule.names_wall(*local_s);
        let code = if named { "dst_gap" } else { "not_due" };
        let why = if named {
            "a schedule of intervals has no fire for times that the clocks leave out"
        } else {
            "it is no time of this schedule either"
        };
        return told(
            code,
            format!("There was no {wall} in {}, and {why}; {nearest}.", clock.name()),
        );
    }
    let asked = question.asked();
    if let Some(first) = schedule.first_pass_of(at) {
        let first = clock.shown(first);
        return told(
            "dst_fold",
            format!(
                "{asked} is the second time that the clocks showed this; a fixed time fires the first time, {first}."
            ),
        );
    }
    told(
        "not_due",
        format!(
            "{asked} is no time of this schedule, which fires {}; {nearest}.",
            schedule.describe()
        ),
    )
}

fn future(question: &Question<'_>) -> String {
    let asked = question.asked();
    match question.pause {
        Some(pause) if pause.holds_at(question.at()) => {
            format!(
                "The fire of {asked} is still to come and will be skipped: {}.",
                pause_text(question, pause)
            )
        }
        Some(_) | None => format!("The fire of {asked} is still to come."),
    }
}

fn pause_text(question: &Question<'_>, pause: &Pause) -> String {
    let until = pause.until.map_or_else(
        || "without an end".to_owned(),
        |until| format!("until {}", question.shown(until)),
    );
    let note = if pause.note.is_empty() {
        String::new()
    } else {
        format!(" ({})", pause.note)
    };
    format!("the job is paused {until} by {}{note}", pause.by)
}

/// A moment of the past that was due and of which nothing is recorded.
fn lost(question: &Question<'_>) -> Told {
    let asked = question.asked();
    if let Some(oldest) = question.oldest.filter(|oldest| question.at() < *oldest)
        && !question.nobody_lived()
    {
        let oldest = question.shown(oldest);
        return told(
            "no_longer_kept",
            format!(
                "What became of {asked} is no longer kept; the oldest record of this job is of {oldest}."
            ),
        );
    }
    if question.nobody_lived() {
        let started = question.lives.iter().map(|life| life.started_at);
        let since = started
            .filter(|at| *at > question.at())
            .min()
            .map_or_else(String::new, |at| {
                format!(" (one has run since {})", question.shown(at))
            });
        let pause = question.pause.map_or_else(String::new, |pause| {
            format!(
                " Now {}, and what was due in a pause is not made up for.",
                pause_text(question, pause)
            )
        });
        return told(
            "no_daemon",
            format!(
                "Nothing is recorded of the fire of {asked}: no daemon is known to have run then{since}.{pause}"
            ),
        );
    }
    told(
        "not_recorded",
        format!(
            "The fire of {asked} was due while a daemon ran, and nothing is recorded of it; the log of that time may say \
             why, and ductor doctor looks for trouble."
        ),
    )
}

fn remarks(question: &Question<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    let zone = question.clock().name().to_owned();
    let fixed = question.schedule.is_some_and(Schedule::is_fixed_time);
    match &question.moment.turn {
        Turn::Plain => {}
        Turn::Gap {
            wall,
            from,
            to,
            local_s,
            ..
        } => {
            let named = question
                .schedule
                .is_some_and(|schedule| schedule.names_wall(*local_s));
            let stands = if named && fixed {
                format!(" A fixed time in between fires once, at {to}.")
            } else {
                String::new()
            };
            let date = wall.split(' ').next().unwrap_or_default();
            remarks.push(format!(
                "On {date} the clocks in {zone} go from {from} to {to}.{stands}"
            ));
        }
        Turn::Fold { second_ms } => {
            let second = question.clock().local_time(*second_ms).unwrap_or_default();
            let rule = if fixed {
                "a fixed time fires the first time only".to_owned()
            } else {
                format!("for the second ask for {second}")
            };
            remarks.push(format!(
                "The clocks in {zone} show this time twice; this is the first, and {rule}."
            ));
        }
    }
    if let Some(replaced) = question.replaced_at {
        let text = question
            .schedule
            .map_or("none".to_owned(), |schedule| format!("`{}`", schedule.text()));
        remarks.push(format!(
            "The schedule in force then was {text}; it was replaced at {}.",
            question.shown(replaced)
        ));
    }
    remarks
}
