//! `ductor schedule next`: what a job, or an expression, will do.
//!
//! An expression is previewed here, by the same function that the daemon answers with: whoever writes a configuration has no
//! daemon yet.

use clap::Args;
use serde_json::{Value, json};

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::{Show, dash};
use super::table::{Kind, Table, one_line};
use super::times;
use super::wall::{precision, wall};
use crate::domain::schedule::{
    DayMatch, MOMENT_FORMS, ParseOptions, Schedule, ScheduleError, ZoneClock, preview,
};
use crate::words::time::Millis;

pub(super) const EXAMPLES: &str = "\
Examples:
  ductor schedule next backup -n 10
  ductor schedule next '30 2 * * 1-5' --zone America/New_York
  ductor schedule next '*/15 * * * *' --zone Europe/London --from 2026-10-25
  ductor schedule next '@every 90m'

A job is shown in its own zone and in --zone; an expression is read in --zone
and shown in this machine's too. An expression needs no daemon.";

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
    /// Which of both day fields of an expression must match: either, or both.
    #[arg(long, value_name = "RULE", value_parser = ["or", "and"])]
    day_match: Option<String>,
}

impl NextArguments {
    /// True for an expression, which this program can preview by itself.
    pub(super) fn is_expression(&self) -> bool {
        is_expression(&self.what)
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

/// The next fires of a job.
pub(super) async fn of_job(session: &Session, arguments: &NextArguments) -> Result<Exit, Failure> {
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
    text.chars().any(char::is_alphabetic)
}

/// The next fires of an expression.
pub(super) fn of_expression(show: &Show, arguments: &NextArguments) -> Result<Exit, Failure> {
    let options = ParseOptions {
        seconds: arguments.seconds,
        day_match: arguments.day_match.as_deref().map(|rule| match rule {
            "and" => DayMatch::And,
            _ => DayMatch::Or,
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
    let chosen = match text("timezone_from").as_str() {
        "" => String::new(),
        "CRON_TZ" => " (CRON_TZ of its crontab)".to_owned(),
        from => format!(" (of the daemon's machine, from {from})"),
    };
    pairs.push(("zone", text("timezone") + &chosen));
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
    let precision = precision(next.iter());
    let columns = [(zone, Kind::Whole), (second_zone, Kind::Whole), ("", Kind::Whole)];
    let chosen: Vec<(&str, Kind)> = columns
        .into_iter()
        .enumerate()
        .filter(|(at, _)| both || *at != 1)
        .map(|(_, column)| column)
        .collect();
    let mut table = Table::new(&chosen);
    for fire in next {
        let local =
            |name: &str, zone: &str| wall(&fields::text(fire, &[name]).unwrap_or_default(), zone, precision);
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
    fn a_refused_expression_is_marked() {
        let error = Schedule::parse("0 60 * * *", ParseOptions::default()).unwrap_err();
        let text = refusal("0 60 * * *", &error, false);
        assert!(text.ends_with("\n  0 60 * * *\n    ^^"), "{text}");
        assert!(!refusal("0 60 * * *", &error, true).contains('^'));
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
