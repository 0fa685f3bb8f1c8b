//! `ductor schedule …`: list, next fires, what became of fires, and why one did not run.
//!
//! An expression is previewed here, by the same function that the daemon answers with: whoever writes a configuration has no
//! daemon yet.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::run_view::quoted;
use super::session::Session;
use super::show::{Fit, Show, dash};
use super::table::{Kind, Table, one_line};
use super::times;
use crate::domain::schedule::{
    DayMatch, MOMENT_FORMS, ParseOptions, Schedule, ScheduleError, ZoneClock, preview,
};
use crate::words::time::Millis;

/// What can be asked about schedules.
#[derive(Debug, Subcommand)]
pub(super) enum ScheduleCommand {
    /// All jobs that have a schedule, with their last and next fire.
    Ls(ListArguments),
    /// The next fires of a job, or of an expression, in two zones.
    #[command(after_help = NEXT_EXAMPLES)]
    Next(NextArguments),
    /// What became of the fires of a job, newest first.
    Fires(FiresArguments),
    /// Why a job did or did not run at a time.
    #[command(after_help = WHY_EXAMPLES)]
    Why(WhyArguments),
}

const NEXT_EXAMPLES: &str = "\
Examples:
  ductor schedule next backup -n 10
  ductor schedule next '30 2 * * 1-5' --zone America/New_York
  ductor schedule next '*/15 * * * *' --zone Europe/London --from 2026-10-25
  ductor schedule next '@every 90m'

A job is shown in its own zone and in --zone; an expression is read in --zone and shown
in this machine's too. An expression needs no daemon.";

const WHY_EXAMPLES: &str = "\
Examples:
  ductor schedule why backup --at 08:00                    the newest 08:00
  ductor schedule why backup --at '2026-03-08 02:30'       in the zone of the job
  ductor schedule why backup --at 2026-03-08T02:30:00-05:00
  ductor schedule why backup                               its newest fires";

/// Arguments of `schedule ls`.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArguments {
    /// Only those of whose last due moment nothing is known.
    #[arg(long)]
    overdue: bool,
}

/// Arguments of `schedule next`.
#[derive(Debug, Clone, Args)]
pub(super) struct NextArguments {
    /// A job, or an expression in quotes.
    #[arg(value_name = "NAME|EXPR")]
    what: String,
    /// How many.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=500))]
    count: u32,
    /// Time zone, like Europe/Berlin.
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// After this time instead of now: "2026-10-25", "2026-10-25 01:00".
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// The expression has six fields, the second first.
    #[arg(long)]
    seconds: bool,
    /// Of an expression with both day fields: or, and.
    #[arg(long, value_name = "RULE")]
    day_match: Option<DayRule>,
}

/// `dayMatch`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum DayRule {
    /// Either is enough.
    Or,
    /// Both must match.
    And,
}

/// Arguments of `schedule fires`.
#[derive(Debug, Clone, Args)]
pub(super) struct FiresArguments {
    /// The job's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// How many.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// Only these; may be repeated.
    #[arg(long, value_name = "OUTCOME")]
    outcome: Vec<Outcome>,
}

/// What became of a fire.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Outcome {
    /// It became a run in time.
    Run,
    /// It was made up for later.
    #[value(alias = "caught_up")]
    CaughtUp,
    /// It did not run.
    Skipped,
}

/// Arguments of `schedule why`.
#[derive(Debug, Clone, Args)]
pub(super) struct WhyArguments {
    /// The job's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// The time; without it, its newest fires are shown.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
}

impl ScheduleCommand {
    /// False for an expression, which this program can preview by itself.
    pub(super) fn needs_a_daemon(&self) -> bool {
        match self {
            ScheduleCommand::Next(arguments) => !is_expression(&arguments.what),
            ScheduleCommand::Ls(_) | ScheduleCommand::Fires(_) | ScheduleCommand::Why(_) => true,
        }
    }
}

/// `@daily`, or five words and more that begin like fields: no job is called like that.
fn is_expression(text: &str) -> bool {
    let field = |word: &str| {
        word.chars()
            .all(|letter| letter.is_ascii_digit() || "*/,-H()?".contains(letter))
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    text.trim_start().starts_with('@') || (words.len() >= 5 && words.iter().take(2).all(|word| field(word)))
}

/// Does what needs no daemon.
pub(super) fn without_a_daemon(show: &Show, command: &ScheduleCommand) -> Result<Exit, Failure> {
    match command {
        ScheduleCommand::Next(arguments) => next_of_expression(show, arguments),
        ScheduleCommand::Ls(_) | ScheduleCommand::Fires(_) | ScheduleCommand::Why(_) => {
            Err(Failure::Usage("this command needs a daemon".to_owned()))
        }
    }
}

/// Does what needs one.
pub(super) async fn perform(session: &Session, command: ScheduleCommand) -> Result<Exit, Failure> {
    match command {
        ScheduleCommand::Ls(arguments) => list(session, &arguments).await,
        ScheduleCommand::Next(arguments) => next_of_job(session, &arguments).await,
        ScheduleCommand::Fires(arguments) => fires(session, &arguments).await,
        ScheduleCommand::Why(arguments) => match &arguments.at {
            Some(at) => why(session, &arguments.name, at).await,
            None => {
                let newest = FiresArguments {
                    name: arguments.name,
                    limit: 20,
                    outcome: Vec::new(),
                };
                fires(session, &newest).await
            }
        },
    }
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<Exit, Failure> {
    let show = &session.show;
    let query = arguments.overdue.then(|| ("overdue", "true".to_owned()));
    let body = session
        .client
        .get(&["api", "schedules"], query.as_slice())
        .await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let schedules = fields::items(&body.value);
    if schedules.is_empty() {
        let sentence = if arguments.overdue {
            "No schedule is overdue."
        } else {
            "No job has a schedule. Write `schedule: \"30 2 * * *\"` at one in the configuration."
        };
        show.nothing(sentence)?;
        return Ok(Exit::Done);
    }
    show.fitting(|fit| schedules_table(schedules, show, fit))?;
    Ok(Exit::Done)
}

fn schedules_table(schedules: &[Value], show: &Show, fit: Fit) -> Table {
    let columns = [
        ("JOB", Kind::Name),
        ("NEXT", Kind::Whole),
        ("LAST", Kind::State),
        ("SCHEDULE", Kind::Whole),
        ("ZONE", Kind::Name),
        ("IN WORDS", Kind::Sentence),
        ("", Kind::Below),
    ];
    let wide = fit == Fit::Wide;
    let chosen: Vec<(&str, Kind)> = columns
        .into_iter()
        .filter(|(title, _)| wide || *title != "IN WORDS")
        .collect();
    let mut table = Table::new(&chosen);
    for schedule in schedules {
        let text = |name: &str| fields::text(schedule, &[name]).unwrap_or_default();
        let next = fields::instant(schedule, &["next.instant"]);
        let mut cells = vec![
            text("name"),
            show.moment(next, fit),
            fields::member(schedule, &["last"]).map_or_else(dash, state_of_fire),
            text("expression"),
            text("timezone"),
        ];
        if wide {
            cells.push(text("description"));
        }
        cells.push(notice(schedule, show));
        table.row(&cells);
    }
    table
}

/// What is not as it should be with a schedule.
fn notice(schedule: &Value, show: &Show) -> String {
    if let Some(since) = fields::instant(schedule, &["overdue_since.instant"]) {
        return format!(
            "OVERDUE: nothing is known of the fire of {}",
            show.face().instant(since)
        );
    }
    if fields::member(schedule, &["enabled"]).and_then(Value::as_bool) == Some(false) {
        return "disabled".to_owned();
    }
    let paused = super::pauses::sentence(fields::member(schedule, &["paused"]), show);
    let skipped = fields::text(schedule, &["last.skipped.text"]).map(|why| format!("last skipped: {why}"));
    paused.or(skipped).unwrap_or_default()
}

/// The state of its run, or that it was skipped.
fn state_of_fire(fire: &Value) -> String {
    match fields::text(fire, &["outcome"]).as_deref() {
        Some("run" | "caught_up") => fields::text(fire, &["run.state"]).unwrap_or_else(|| "gone".to_owned()),
        Some(other) => other.to_owned(),
        None => dash(),
    }
}

async fn fires(session: &Session, arguments: &FiresArguments) -> Result<Exit, Failure> {
    let show = &session.show;
    let mut query = vec![("pagination.page_size", arguments.limit.to_string())];
    query.extend(arguments.outcome.iter().map(|outcome| {
        let word = match outcome {
            Outcome::Run => "run",
            Outcome::CaughtUp => "caught_up",
            Outcome::Skipped => "skipped",
        };
        ("outcome", word.to_owned())
    }));
    let path = ["api", "schedules", &arguments.name, "fires"];
    let body = session.client.get(&path, &query).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let fires = fields::items(&body.value);
    let Some(first) = fires.first() else {
        let sentence = if arguments.outcome.is_empty() {
            "Nothing is recorded yet: the job has not been due since it was loaded."
        } else {
            "No fire of the job is like that."
        };
        show.nothing(sentence)?;
        return Ok(Exit::Done);
    };
    let zone = fields::text(first, &["timezone"]).unwrap_or_else(|| "UTC".to_owned());
    show.fitting(|fit| fires_table(fires, &zone, fit))?;
    show.note(&format!(
        "\nWhy one did not run: ductor schedule why {} --at TIME",
        quoted(&arguments.name)
    ));
    Ok(Exit::Done)
}

fn fires_table(fires: &[Value], zone: &str, fit: Fit) -> Table {
    let due = format!("DUE ({zone})");
    let why = if fit == Fit::Wide {
        Kind::Sentence
    } else {
        Kind::Below
    };
    let mut table = Table::new(&[
        (&due, Kind::Whole),
        ("OUTCOME", Kind::Whole),
        ("STATE", Kind::State),
        ("RUN", Kind::Whole),
        ("WHY", why),
    ]);
    for fire in fires {
        let outcome = fields::text(fire, &["outcome"]).unwrap_or_default();
        let node = fields::text(fire, &["node"]).map(|node| format!("on {node}"));
        let why = fields::text(fire, &["skipped.text", "run.reason"]);
        let gone = fields::member(fire, &["run"]).is_some() && fields::text(fire, &["run.state"]).is_none();
        let state = if gone {
            "gone".to_owned()
        } else {
            fields::text(fire, &["run.state"]).unwrap_or_else(dash)
        };
        table.row(&[
            wall(&fields::text(fire, &["local"]).unwrap_or_default(), zone),
            outcome.replace('_', " "),
            state,
            fields::text(fire, &["run.id"]).unwrap_or_else(dash),
            [node, why].into_iter().flatten().collect::<Vec<_>>().join(": "),
        ]);
    }
    table
}

/// `2026-10-25T01:15:00+01:00` as `Sun 2026-10-25 01:15 +01:00`; in UTC with that word.
fn wall(local: &str, zone: &str) -> String {
    let Some((date_time, offset)) = local.split_at_checked(19) else {
        return local.to_owned();
    };
    let day = times::weekday(date_time).map_or_else(String::new, |day| format!("{day} "));
    let date_time = date_time.strip_suffix(":00").unwrap_or(date_time);
    let offset = if zone == "UTC" { zone } else { offset };
    format!("{day}{} {offset}", date_time.replace('T', " "))
}

async fn why(session: &Session, name: &str, at: &str) -> Result<Exit, Failure> {
    let show = &session.show;
    let path = ["api", "schedules", name, "why"];
    let body = session.client.get(&path, &[("at", at.to_owned())]).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let answer = fields::data(&body.value);
    let sentence = fields::text(answer, &["sentence"]).unwrap_or_default();
    show.paragraph(&one_line(&sentence))?;
    for remark in fields::list(answer, &["remarks"])
        .iter()
        .filter_map(Value::as_str)
    {
        show.paragraph(&one_line(remark))?;
    }
    if let Some(run) = fields::text(answer, &["run.id"]) {
        show.note(&format!("\nIts run: ductor run show {run}"));
    } else if let Some(next) = fields::text(answer, &["after.local"]) {
        let zone = fields::text(answer, &["timezone"]).unwrap_or_default();
        show.note(&format!("\nThe next one after that: {}", wall(&next, &zone)));
    }
    Ok(Exit::Done)
}

async fn next_of_job(session: &Session, arguments: &NextArguments) -> Result<Exit, Failure> {
    if arguments.seconds || arguments.day_match.is_some() {
        return Err(Failure::Usage(
            "--seconds and --day-match are for an expression; a job says both in the configuration"
                .to_owned(),
        ));
    }
    let show = &session.show;
    let second = arguments.zone.clone().unwrap_or_else(|| show.face().zone_name());
    let mut query = vec![
        ("count", arguments.count.to_string()),
        ("second_timezone", second),
    ];
    query.extend(arguments.from.iter().map(|from| ("from", from.clone())));
    let path = ["api", "schedules", &arguments.what, "next"];
    let body = match session.client.get(&path, &query).await {
        Err(Failure::Problem(problem)) if problem.status == 404 && !has_name(&arguments.what) => {
            return Err(Failure::Usage(format!(
                "`{}` is neither a job nor an expression; an expression has five fields, as in '30 2 * * *'",
                arguments.what
            )));
        }
        answer => answer?,
    };
    if show.json {
        show.document(&body.text)?;
    } else {
        show_preview(show, Some(&arguments.what), fields::data(&body.value))?;
    }
    Ok(Exit::Done)
}

/// Jobs are not called `30 2 * *`.
fn has_name(text: &str) -> bool {
    text.chars().any(|letter| letter.is_alphabetic())
}

fn next_of_expression(show: &Show, arguments: &NextArguments) -> Result<Exit, Failure> {
    let options = ParseOptions {
        seconds: arguments.seconds,
        day_match: arguments.day_match.map(|rule| match rule {
            DayRule::Or => DayMatch::Or,
            DayRule::And => DayMatch::And,
        }),
        timezone: arguments.zone.as_deref(),
        job_name: "",
    };
    let schedule = Schedule::parse(&arguments.what, options)
        .map_err(|error| Failure::Usage(refusal(&arguments.what, &error, show.json)))?;
    let now = show.now();
    let from = match &arguments.from {
        None => now,
        Some(text) => schedule.clock().read(text, now.0).map_or_else(
            || {
                Err(Failure::Usage(format!(
                    "--from: `{text}` is no time; {MOMENT_FORMS}"
                )))
            },
            |moment| Ok(Millis(moment.at_ms)),
        )?,
    };
    let second = ZoneClock::named(&show.face().zone_name()).unwrap_or_else(ZoneClock::utc);
    let count = usize::try_from(arguments.count).unwrap_or(usize::MAX);
    let data = json!(preview(&schedule, &second, from.0, count, None));
    if show.json {
        show.json_line(&json!({"data": data}))?;
    } else {
        show_preview(show, None, &data)?;
    }
    Ok(Exit::Done)
}

/// The sentence, and below it the expression with the fault marked.
fn refusal(expression: &str, error: &ScheduleError, plain: bool) -> String {
    if plain || error.field == Some("timezone") {
        return error.message.clone();
    }
    let marks = "^".repeat(error.length.max(1));
    let before = " ".repeat(error.column);
    format!("{}\n  {}\n  {before}{marks}", error.message, one_line(expression))
}

fn show_preview(show: &Show, job: Option<&str>, data: &Value) -> Result<(), Failure> {
    let text = |name: &str| fields::text(data, &[name]).unwrap_or_default();
    let mut pairs: Vec<(&str, String)> = Vec::new();
    pairs.extend(job.map(|name| ("job", show.strong(name))));
    pairs.push(("schedule", text("expression")));
    pairs.push(("in words", text("description")));
    pairs.push(("zone", text("timezone")));
    show.pairs(&pairs)?;
    let next = fields::list(data, &["next"]);
    if next.is_empty() {
        show.data("\nNo fires to come.\n")?;
    } else {
        show.data("\n")?;
        show.table(&next_table(
            next,
            &text("timezone"),
            &text("second_timezone"),
            show.now(),
        ))?;
    }
    let lints = fields::list(data, &["lints"]);
    if !lints.is_empty() {
        show.data("\n")?;
    }
    for lint in lints {
        let text = |name: &str| fields::text(lint, &[name]).unwrap_or_default();
        let head = format!("{}[{}]", text("level"), text("code"));
        show.paragraph(&format!("{}: {}", show.strong(&head), text("message")))?;
    }
    Ok(())
}

fn next_table(next: &[Value], zone: &str, second_zone: &str, now: Millis) -> Table {
    let both = zone != second_zone;
    let columns = [(zone, Kind::Whole), (second_zone, Kind::Whole), ("", Kind::Whole)];
    let chosen: Vec<(&str, Kind)> = columns
        .into_iter()
        .enumerate()
        .filter(|(at, _)| both || *at != 1)
        .map(|(_, column)| column)
        .collect();
    let mut table = Table::new(&chosen);
    for fire in next {
        let local = |name: &str, zone: &str| wall(&fields::text(fire, &[name]).unwrap_or_default(), zone);
        let mut cells = vec![local("local", zone)];
        if both {
            cells.push(local("second", second_zone));
        }
        let at = fields::instant(fire, &["instant"]);
        cells.push(at.map_or_else(dash, |at| times::relative(at, now)));
        table.row(&cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::table::assert_80;
    use super::*;

    #[test]
    fn expressions_and_names_are_told_apart() {
        for text in [
            "@daily",
            "@every 5m",
            "30 2 * * *",
            " */5 * * * *",
            "H H * * 1-5",
            "0 0 13 * fri",
        ] {
            assert!(is_expression(text), "{text}");
        }
        for text in [
            "backup",
            "stock sync",
            "report for all five shops",
            "30 2 * *",
            "Hour by hour and more",
        ] {
            assert!(!is_expression(text), "{text}");
        }
    }

    #[test]
    fn times_on_the_wall_have_their_day_and_offset() {
        let london = |local: &str| wall(local, "Europe/London");
        assert_eq!(london("2026-10-25T01:15:00+01:00"), "Sun 2026-10-25 01:15 +01:00");
        assert_eq!(
            london("2026-10-25T01:15:30+00:00"),
            "Sun 2026-10-25 01:15:30 +00:00"
        );
        assert_eq!(
            wall("2026-10-25T01:15:00+00:00", "UTC"),
            "Sun 2026-10-25 01:15 UTC"
        );
        assert_eq!(london("?"), "?");
    }

    #[test]
    fn a_refused_expression_is_marked() {
        let error = Schedule::parse("0 60 * * *", ParseOptions::default()).unwrap_err();
        let text = refusal("0 60 * * *", &error, false);
        assert!(text.ends_with("\n  0 60 * * *\n    ^^"), "{text}");
        assert!(!refusal("0 60 * * *", &error, true).contains('^'));
    }

    #[test]
    fn schedules_fit_a_narrow_terminal() {
        let schedule = json!({"name": "nightly-backup-of-all-shops", "expression": "30 2 * * 1-5",
            "timezone": "America/Argentina/Buenos_Aires", "enabled": true, "overdue": true,
            "next": {"instant": "2025-12-01T03:00:00Z"}, "last": {"outcome": "run", "run": {"state": "succeeded"}},
            "overdue_since": {"instant": "2025-11-30T03:00:00Z"}});
        let table = schedules_table(&[schedule], &Show::plain(), Fit::Narrow);
        assert_80(&table);
    }

    #[test]
    fn fires_fit_a_narrow_terminal() {
        let run = json!({"local": "2026-10-25T01:15:00+01:00", "outcome": "run",
            "run": {"id": "run_01kb7v0n3gf5tb2h6m8w9x4yza", "state": "succeeded", "reason": null}});
        let skipped = json!({"local": "2026-10-25T01:15:00+01:00", "outcome": "skipped", "run": null,
            "skipped": {"code": "still_running", "text": "another instance was still running, and more of that"}});
        assert_80(&fires_table(&[run, skipped], "Europe/London", Fit::Narrow));
    }

    #[test]
    fn next_fires_fit_a_narrow_terminal() {
        let fire = json!({"instant": "2026-10-25T01:15:00Z", "local": "2026-10-25T01:15:00+01:00",
            "second": "2026-10-24T22:15:00-03:00"});
        assert_80(&next_table(
            &[fire],
            "Europe/London",
            "America/Argentina/Buenos_Aires",
            Millis(0),
        ));
    }
}
