//! `ductor schedule …`: list, what became of fires, and why one did not run. What comes is in `schedule_next`.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::run_view::quoted;
use super::schedule_next::{self, NextArguments};
use super::session::Session;
use super::show::{Fit, Show, dash};
use super::table::{Kind, Table, one_line};
use super::wall::{precision, wall};

/// What can be asked about schedules.
#[derive(Debug, Subcommand)]
pub(super) enum ScheduleCommand {
    /// All jobs that have a schedule, with their last and next fire.
    Ls(ListArguments),
    /// The next fires of a job, or of an expression, in two zones.
    #[command(after_help = schedule_next::EXAMPLES)]
    Next(NextArguments),
    /// What became of the fires of a job, newest first.
    Fires(FiresArguments),
    /// Why a job did or did not run at a time.
    #[command(after_help = WHY_EXAMPLES)]
    Why(WhyArguments),
}

const WHY_EXAMPLES: &str = "\
Examples:
  ductor schedule why backup --at 08:00                the newest 08:00
  ductor schedule why backup --at '2026-03-08 02:30'   in the zone of the job
  ductor schedule why backup --at 2026-03-08T02:30:00-05:00
  ductor schedule why backup                           its newest fires";

/// Arguments of `schedule ls`.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArguments {
    /// Only those of whose last due moment nothing is known.
    #[arg(long)]
    overdue: bool,
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
    #[arg(long, value_name = "OUTCOME", value_parser = ["run", "caught_up", "skipped"])]
    outcome: Vec<String>,
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
            ScheduleCommand::Next(arguments) => !arguments.is_expression(),
            ScheduleCommand::Ls(_) | ScheduleCommand::Fires(_) | ScheduleCommand::Why(_) => true,
        }
    }
}

/// Does what needs no daemon.
pub(super) fn without_a_daemon(show: &Show, command: &ScheduleCommand) -> Result<Exit, Failure> {
    match command {
        ScheduleCommand::Next(arguments) => schedule_next::of_expression(show, arguments),
        ScheduleCommand::Ls(_) | ScheduleCommand::Fires(_) | ScheduleCommand::Why(_) => {
            Err(Failure::Usage("this command needs a daemon".to_owned()))
        }
    }
}

/// Does what needs one.
pub(super) async fn perform(session: &Session, command: ScheduleCommand) -> Result<Exit, Failure> {
    match command {
        ScheduleCommand::Ls(arguments) => list(session, &arguments).await,
        ScheduleCommand::Next(arguments) => schedule_next::of_job(session, &arguments).await,
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
        .list(&["api", "schedules"], query.as_slice(), usize::MAX)
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
            "OVERDUE: nothing is recorded of the fire of {}",
            show.face().instant(since)
        );
    }
    if let Some(late) = fields::list(schedule, &["late"]).first().and_then(Value::as_str) {
        return format!("OVERDUE: {late}");
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
    let outcomes = arguments.outcome.iter();
    let query: Vec<(&str, String)> = outcomes.map(|outcome| ("outcome", outcome.clone())).collect();
    let limit = usize::try_from(arguments.limit).unwrap_or(usize::MAX);
    let path = ["api", "schedules", &arguments.name, "fires"];
    let body = session.client.list(&path, &query, limit).await?;
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
    let precision = precision(fires.iter());
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
            wall(
                &fields::text(fire, &["local"]).unwrap_or_default(),
                zone,
                precision,
            ),
            outcome.replace('_', " "),
            state,
            fields::text(fire, &["run.id"]).unwrap_or_else(dash),
            [node, why].into_iter().flatten().collect::<Vec<_>>().join(": "),
        ]);
    }
    table
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
        show.note(&format!(
            "\nThe next one after that: {}",
            wall(
                &next,
                &zone,
                precision(fields::member(answer, &["after"]).into_iter())
            )
        ));
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::table::assert_80;
    use super::*;

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
}
