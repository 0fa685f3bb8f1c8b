//! `ductor run …`: list, show, why, logs, follow. What ends runs is in `run_cancel`, what begins them in `run_again`.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Body;
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::filter::{self, Filter};
use super::follow::{LogReader, Watch, Watcher};
use super::run_cancel;
use super::run_pin;
use super::run_view::{
    self, AttemptRef, attempts_of, id_of, job_of, outcome, reason_of, state_of, step_name, waiting_reason,
};
use super::session::Session;
use super::show::{Fit, Show, dash};
use super::sieve::{self, Sieve};
use super::table::{Kind, Table, one_line};
use super::times;
use super::{approvals, graph, run_again, workflow_run};
use crate::words::time::Millis;

/// Items of one page, as the API bounds it.
const PAGE_MAX: usize = 500;

/// What can be done with runs.
#[derive(Debug, Subcommand)]
pub(super) enum RunCommand {
    /// Runs, newest first.
    #[command(after_help = LIST_EXAMPLES)]
    Ls(ListArguments),
    /// Begin a run of a workflow, or of a dag of the configuration.
    #[command(after_help = workflow_run::EXAMPLES)]
    Start(workflow_run::RunArguments),
    /// One run with its steps and attempts.
    Show(IdArguments),
    /// The steps of a run as a picture, with how each stands.
    #[command(after_help = graph::RUN_EXAMPLES)]
    Graph(IdArguments),
    /// What a run waits for, and what would help.
    Why(IdArguments),
    /// What its commands printed.
    #[command(after_help = LOG_EXAMPLES)]
    Logs(LogArguments),
    /// End runs: what waits is withdrawn, what runs gets SIGTERM.
    #[command(after_help = run_cancel::EXAMPLES)]
    Cancel(run_cancel::CancelArguments),
    /// Take the next attempt now; try what failed in a workflow once more.
    #[command(after_help = run_again::RETRY_EXAMPLES)]
    Retry(run_again::RetryArguments),
    /// Start the job or workflow of a run once more, as a new run.
    #[command(after_help = run_again::RERUN_EXAMPLES)]
    Rerun(run_again::RerunArguments),
    /// Hold the run of a workflow: what runs goes on, nothing else begins.
    Pause(workflow_run::PauseArguments),
    /// Let a held run go on.
    Resume(IdArguments),
    /// Keep a run and its logs until `run unpin`, whatever retention says.
    Pin(run_pin::PinArguments),
    /// Keep a run no longer than others.
    Unpin(IdArguments),
    /// Say yes to a step that waits for it; `approval ls` shows all.
    Approve(approvals::StepArguments),
    /// Say no: the step fails or is skipped, as its workflow says.
    Reject(approvals::StepArguments),
    /// Changes of state and output until it ends; exit 1 if it does not succeed.
    Follow(IdArguments),
}

const LIST_EXAMPLES: &str = "\
Examples:
  ductor run ls
  ductor run ls --where 'state:failed state:cancelled job:backup since:1h'
  ductor run ls --where 'job:\"stock sync\"' --limit 5
  ductor run ls --json | jq '.data[].id'

Filters: state, job, trigger, pool, since, until, and q: a part of the job's
name or the beginning of an id. Of one kind any may match, of different kinds
all must.";

const LOG_EXAMPLES: &str = "\
Examples:
  ductor run logs run_01…               the newest attempt of each step
  ductor run logs run_01… -f            until it ends
  ductor run logs run_01… main --attempt 1
  ductor run logs run_01… --grep 'error|warn'
  ductor run logs run_01… --since 10m   attempts of the last ten minutes";

/// Arguments of `run ls`.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArguments {
    /// Only runs like this: 'state:failed job:x since:1h'.
    #[arg(
        long = "where",
        value_name = "FILTER",
        default_value = "",
        hide_default_value = true
    )]
    filter: String,
    /// At most this many.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

/// A run by its id.
#[derive(Debug, Clone, Args)]
pub(super) struct IdArguments {
    /// The run's id.
    #[arg(value_name = "ID")]
    id: String,
}

/// Arguments of `run logs`.
#[derive(Debug, Clone, Args)]
pub(super) struct LogArguments {
    /// The run's id.
    #[arg(value_name = "ID")]
    id: String,
    /// The step; all if absent.
    #[arg(value_name = "STEP")]
    step: Option<String>,
    /// Go on until it ends.
    #[arg(long, short)]
    follow: bool,
    /// Which attempt; the newest if absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    attempt: Option<i64>,
    /// Only lines that match this regular expression.
    #[arg(long, value_name = "RE", value_parser = sieve::read_pattern)]
    grep: Option<regex::bytes::Regex>,
    /// Only attempts that ran since then: 10m ago, 08:00, "2025-11-30 06:00".
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
}

/// Does it.
pub(super) async fn perform(session: &Session, command: RunCommand) -> Result<Exit, Failure> {
    match command {
        RunCommand::Ls(arguments) => list(session, &arguments).await,
        RunCommand::Start(arguments) => workflow_run::run(session, &arguments).await,
        RunCommand::Show(arguments) => show(session, &arguments.id).await,
        RunCommand::Graph(arguments) => graph::of_run(session, &arguments.id).await,
        RunCommand::Why(arguments) => why(session, &arguments.id).await,
        RunCommand::Logs(arguments) => logs(session, &arguments).await,
        RunCommand::Cancel(arguments) => run_cancel::cancel(session, &arguments).await,
        RunCommand::Retry(arguments) => run_again::retry(session, &arguments).await,
        RunCommand::Rerun(arguments) => run_again::rerun(session, &arguments).await,
        RunCommand::Pause(arguments) => workflow_run::pause(session, &arguments).await,
        RunCommand::Resume(arguments) => workflow_run::resume(session, &arguments.id).await,
        RunCommand::Pin(arguments) => run_pin::pin(session, &arguments).await,
        RunCommand::Unpin(arguments) => run_pin::unpin(session, &arguments.id).await,
        RunCommand::Approve(arguments) => {
            approvals::decide_step(session, &arguments, "approve", "approved").await
        }
        RunCommand::Reject(arguments) => {
            approvals::decide_step(session, &arguments, "reject", "rejected").await
        }
        RunCommand::Follow(arguments) => follow_run(session, &arguments.id).await,
    }
}

async fn fetch(session: &Session, id: &str) -> Result<Body, Failure> {
    session.client.get(&["api", "runs", id], &[]).await
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<Exit, Failure> {
    let show = &session.show;
    let filter = Filter::read(&arguments.filter, show.face(), show.now())
        .map_err(|error| Failure::Usage(format!("--where: {error}")))?;
    let limit = usize::try_from(arguments.limit).unwrap_or(PAGE_MAX);
    let (runs, text) = pages(session, &filter, limit).await?;
    if show.json {
        show.document(&text)?;
        return Ok(Exit::Done);
    }
    if runs.is_empty() {
        let sentence = if filter.is_empty() {
            "There are no runs yet. `ductor job ls` shows what can be started."
        } else {
            "No run is like that. `ductor run ls` shows all."
        };
        show.nothing(sentence)?;
        return Ok(Exit::Done);
    }
    show.fitting(|fit| runs_table(&runs, show, fit))?;
    Ok(Exit::Done)
}

pub(super) fn runs_table(runs: &[Value], show: &Show, fit: Fit) -> Table {
    let why = |run: &Value| waiting_reason(run).or_else(|| reason_of(run)).unwrap_or_default();
    let created = |run: &Value| show.moment(fields::instant(run, &["created_at"]), fit);
    if fit == Fit::Wide {
        let mut table = Table::new(&[
            ("RUN", Kind::Whole),
            ("JOB", Kind::Whole),
            ("STATE", Kind::State),
            ("TRIGGER", Kind::Whole),
            ("CREATED", Kind::Whole),
            ("TOOK", Kind::Number),
            ("WHY", Kind::Sentence),
        ]);
        for run in runs {
            let (took, trigger) = (took(run, show, fit), trigger_of(run));
            table.row(&[
                id_of(run),
                job_of(run),
                state_of(run),
                trigger,
                created(run),
                took,
                why(run),
            ]);
        }
        return table;
    }
    let mut table = Table::new(&[
        ("RUN", Kind::Whole),
        ("JOB", Kind::Name),
        ("STATE", Kind::State),
        ("CREATED", Kind::Whole),
        ("TOOK", Kind::Number),
        ("", Kind::Below),
    ]);
    for run in runs {
        let took = took(run, show, fit);
        table.row(&[
            id_of(run),
            job_of(run),
            state_of(run),
            created(run),
            took,
            why(run),
        ]);
    }
    table
}

/// The runs of as many pages as are needed, and one document with all of them.
pub(super) async fn pages(
    session: &Session,
    filter: &Filter,
    limit: usize,
) -> Result<(Vec<Value>, String), Failure> {
    let mut runs: Vec<Value> = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut query = filter.query();
        query.push((
            "pagination.page_size",
            (limit - runs.len()).min(PAGE_MAX).to_string(),
        ));
        let is_first = cursor.is_none();
        query.extend(cursor.take().map(|cursor| ("pagination.cursor", cursor)));
        let body = session.client.get(&["api", "runs"], &query).await?;
        runs.extend(fields::items(&body.value).iter().cloned());
        cursor = fields::text(&body.value, &["pagination.next_cursor"]);
        if cursor.is_none() || runs.len() >= limit {
            let text = if is_first {
                body.text
            } else {
                json!({"data": runs}).to_string()
            };
            return Ok((runs, text));
        }
    }
}

fn trigger_of(run: &Value) -> String {
    fields::text(run, &["trigger.kind", "trigger"]).unwrap_or_else(dash)
}

fn took(value: &Value, show: &Show, fit: Fit) -> String {
    let took = run_view::took_ms(value, show.now());
    let form = if fit == Fit::Wide {
        times::length
    } else {
        times::short_length
    };
    took.map_or_else(dash, form)
}

async fn show(session: &Session, id: &str) -> Result<Exit, Failure> {
    let show = &session.show;
    let body = fetch(session, id).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let run = fields::data(&body.value);
    let mut pairs = vec![
        ("run", show.strong(&id_of(run))),
        ("job", job_of(run)),
        ("state", show.state(&state_of(run))),
    ];
    pairs.extend(reason_of(run).map(|text| ("reason", text)));
    pairs.extend(waiting_reason(run).map(|text| ("waits", text)));
    pairs.push(("trigger", trigger_line(run, show)));
    pairs.extend(fields::text(run, &["rerun_of"]).map(|of| ("repeats", of)));
    pairs.push((
        "created",
        show.instant_and_distance(fields::instant(run, &["created_at"])),
    ));
    pairs.push(("started", show.instant(fields::instant(run, &["started_at"]))));
    pairs.push(("ended", show.instant(fields::instant(run, &["ended_at"]))));
    pairs.push(("took", took(run, show, Fit::Wide)));
    pairs.extend(fields::text(run, &["node"]).map(|text| ("node", text)));
    pairs.extend(pinned_line(run, show).map(|text| ("pinned", text)));
    if fields::truth(run, &["should_continue_as_new"]) {
        let text = "is long: the run should end and go on as another one";
        pairs.push(("history", text.to_owned()));
    }
    show.pairs(&pairs)?;
    for step in fields::list(run, &["steps"]) {
        show_step(session, step)?;
    }
    show_reports(show, run)?;
    show.note(&format!("\nIts output: ductor run logs {}", id_of(run)));
    Ok(Exit::Done)
}

/// Who keeps the run, and why.
fn pinned_line(run: &Value, show: &Show) -> Option<String> {
    let pin = fields::member(run, &["pinned"])?;
    let by = fields::text(pin, &["by"])?;
    let since = show.instant(fields::instant(pin, &["since"]));
    let reason = fields::text(pin, &["reason"]).filter(|text| !text.is_empty());
    let reason = reason.map_or_else(String::new, |text| format!(": {}", one_line(&text)));
    Some(format!("by {by} since {since}{reason}"))
}

/// Who was told of the run.
fn show_reports(show: &Show, run: &Value) -> Result<(), Failure> {
    let reports = fields::list(run, &["reports"]);
    if reports.is_empty() {
        return Ok(());
    }
    show.data("\nreports\n")?;
    show.fitting(|fit| reports_table(reports, show, fit))
}

fn reports_table(reports: &[Value], show: &Show, fit: Fit) -> Table {
    let mut table = Table::new(&[
        ("ON", Kind::Whole),
        ("BY", Kind::Whole),
        ("STATE", Kind::State),
        ("TRIES", Kind::Number),
        ("WHEN", Kind::Whole),
        ("WHY", Kind::Below),
    ]);
    for report in reports {
        let at = fields::instant(report, &["at", "next_try_at"]);
        table.row(&[
            fields::text(report, &["on"]).unwrap_or_else(dash),
            fields::text(report, &["target"]).unwrap_or_else(dash),
            state_of(report),
            fields::text(report, &["tries"]).unwrap_or_else(dash),
            show.moment(at, fit),
            fields::text(report, &["reason"]).unwrap_or_default(),
        ]);
    }
    table
}

fn trigger_line(run: &Value, show: &Show) -> String {
    let word = trigger_of(run);
    let due = fields::instant(run, &["trigger.scheduled_at"]);
    let by = fields::text(run, &["trigger.principal"]);
    match (due, by) {
        (Some(due), _) => format!("{word}, due {}", show.face().instant(due)),
        (None, Some(by)) => format!("{word} by {by}"),
        (None, None) => word,
    }
}

fn show_step(session: &Session, step: &Value) -> Result<(), Failure> {
    let show = &session.show;
    let why = waiting_reason(step).or_else(|| reason_of(step));
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    show.data(&format!(
        "\nstep {} {}{why}\n",
        step_name(step),
        show.state(&state_of(step))
    ))?;
    let ended = fields::list(step, &["attempts"]);
    let attempts: Vec<&Value> = ended.iter().chain(fields::member(step, &["live"])).collect();
    if attempts.is_empty() {
        return Ok(());
    }
    show.fitting(|fit| attempts_table(&attempts, show, fit))
}

fn attempts_table(attempts: &[&Value], show: &Show, fit: Fit) -> Table {
    let (node, why) = if fit == Fit::Wide {
        (Kind::Whole, Kind::Sentence)
    } else {
        (Kind::Name, Kind::Below)
    };
    let mut table = Table::new(&[
        ("ATTEMPT", Kind::Number),
        ("OUTCOME", Kind::State),
        ("CODE", Kind::Number),
        ("NODE", node),
        ("STARTED", Kind::Whole),
        ("TOOK", Kind::Number),
        ("WHY", why),
    ]);
    for attempt in attempts {
        table.row(&[
            fields::text(attempt, &["number"]).unwrap_or_else(dash),
            fields::text(attempt, &["outcome"]).unwrap_or_else(|| "running".to_owned()),
            fields::text(attempt, &["exit_code"]).unwrap_or_else(dash),
            fields::text(attempt, &["node"]).unwrap_or_else(dash),
            show.moment(fields::instant(attempt, &["started_at", "claimed_at"]), fit),
            took(attempt, show, fit),
            fields::text(attempt, &["reason", "ending.cause"]).unwrap_or_default(),
        ]);
    }
    table
}

async fn why(session: &Session, id: &str) -> Result<Exit, Failure> {
    let show = &session.show;
    if show.json {
        let body = session.client.get(&["api", "runs", id, "waiting"], &[]).await?;
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let body = fetch(session, id).await?;
    for sentence in run_view::reasons(fields::data(&body.value), show.face()) {
        show.paragraph(&sentence)?;
    }
    Ok(Exit::Done)
}

async fn logs(session: &Session, arguments: &LogArguments) -> Result<Exit, Failure> {
    let body = fetch(session, &arguments.id).await?;
    let run = fields::data(&body.value);
    let steps: BTreeSet<String> = fields::list(run, &["steps"]).iter().map(step_name).collect();
    if let Some(step) = arguments.step.as_ref().filter(|step| !steps.contains(*step)) {
        let known: Vec<&str> = steps.iter().map(String::as_str).collect();
        return Err(Failure::NotFound(format!(
            "this run has no step `{step}`; it has {}",
            known.join(", ")
        )));
    }
    let since = arguments.since.as_ref().map(|text| {
        filter::past(text, session.show.face(), session.show.now())
            .map_err(|error| Failure::Usage(format!("--since: {error}")))
    });
    let since = since.transpose()?;
    let sieve = arguments.grep.clone().map(Sieve::new);
    let wanted = wanted_logs(run, arguments, since);
    if let Some(number) = arguments
        .attempt
        .filter(|_| wanted.is_empty() && !arguments.follow)
    {
        let text = format!(
            "this run has no attempt {number}; `ductor run show {}` lists them",
            arguments.id
        );
        return Err(Failure::NotFound(text));
    }
    if wanted.is_empty() && since.is_some() && !arguments.follow && !attempts_of(run).is_empty() {
        session.show.note("No attempt has run since then.");
        return Ok(Exit::Done);
    }
    if wanted.is_empty() && !arguments.follow {
        let sentence = waiting_reason(run).map_or_else(String::new, |why| format!(": {why}"));
        session.show.note(&format!(
            "Nothing has been printed yet; the run is {}{sentence}",
            state_of(run)
        ));
        return Ok(Exit::Done);
    }
    if !arguments.follow {
        for attempt in &wanted {
            LogReader::new(&arguments.id, attempt, sieve.clone())
                .rest(session)
                .await?;
        }
        return Ok(Exit::Done);
    }
    let mut watcher = Watcher::new(session, &arguments.id).sieved(sieve);
    if arguments.attempt.is_some() || arguments.step.is_some() {
        let attempts = if wanted.is_empty() {
            watcher
                .await_attempt(arguments.step.as_deref())
                .await?
                .into_iter()
                .collect()
        } else {
            wanted
        };
        for attempt in &attempts {
            watcher.log_to_end(attempt).await?;
        }
    } else {
        watcher.until_end(Watch::Log).await?;
    }
    Ok(Exit::Done)
}

/// The attempt that was asked for, or the newest of each step.
fn wanted_logs(run: &Value, arguments: &LogArguments, since: Option<Millis>) -> Vec<AttemptRef> {
    let mut wanted: Vec<AttemptRef> = Vec::new();
    let ended = |attempt: &AttemptRef| run_view::ended_at(run, attempt);
    let too_old =
        |attempt: &AttemptRef| since.is_some_and(|since| ended(attempt).is_some_and(|at| at < since));
    for attempt in attempts_of(run) {
        if too_old(&attempt) {
            continue;
        }
        if arguments.step.as_ref().is_some_and(|step| *step != attempt.step) {
            continue;
        }
        if arguments.attempt.is_some_and(|number| number != attempt.number) {
            continue;
        }
        match wanted.last_mut().filter(|last| last.step == attempt.step) {
            Some(last) => *last = attempt,
            None => wanted.push(attempt),
        }
    }
    wanted
}

async fn follow_run(session: &Session, id: &str) -> Result<Exit, Failure> {
    session.say_when_left(format!("the run goes on; end it with: ductor run cancel {id}"));
    let body = Watcher::new(session, id).until_end(Watch::Everything).await?;
    let run = fields::data(&body.value);
    if session.show.json {
        session.show.json_line(&json!({"type": "end", "run": run}))?;
    } else {
        session.show.data(&format!("{}\n", outcome(run)))?;
    }
    Ok(run_view::exit_of(run))
}

#[cfg(test)]
mod tests {
    use super::super::table::assert_80;
    use super::*;

    #[test]
    fn a_list_of_runs_fits_a_narrow_terminal() {
        let run = json!({"id": "run_01kb7v0n3gf5tb2h6m8w9x4yza", "job": "nightly-backup-of-all-shops",
            "state": "succeeded", "trigger": {"kind": "schedule"}, "created_at": "1970-01-02T10:00:00Z",
            "started_at": "1970-01-02T10:00:00Z", "ended_at": "1970-01-03T09:59:00Z",
            "reason": "the command ended with code 3, which is a long story that is told elsewhere in full"});
        let table = runs_table(&[run], &Show::plain(), Fit::Narrow);
        assert_80(&table);
    }

    #[test]
    fn attempts_fit_a_narrow_terminal() {
        let attempt = json!({"number": 1, "outcome": "timed_out", "exit_code": 143, "node": "n-0123456789abcdef-host",
            "started_at": "1970-01-02T10:00:00Z", "ended_at": "1970-01-03T09:59:00Z", "reason": "x"});
        assert_80(&attempts_table(&[&attempt], &Show::plain(), Fit::Narrow));
    }
}
