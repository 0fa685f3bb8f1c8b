//! `ductor job …`: list, show, start, stop, pause, resume.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::args::ConfigArguments;
use super::client::Body;
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::follow::{Watch, Watcher};
use super::pauses::{self, PauseArguments};
use super::run_view::{self, quoted};
use super::session::Session;
use super::show::{Fit, Show, dash};
use super::table::{Kind, Table, one_line};
use crate::words::time::{Millis, parse_instant};

/// What can be done with jobs.
#[derive(Debug, Subcommand)]
pub(super) enum JobCommand {
    /// All jobs with their last and next run.
    Ls(ListArguments),
    /// One job in detail.
    Show(NameArguments),
    /// Start a job now.
    #[command(after_help = START_EXAMPLES)]
    Start(StartArguments),
    /// End what runs and what waits of a job.
    Stop(NameArguments),
    /// What waits for another attempt gets none.
    CancelRetries(NameArguments),
    /// No more fires for a while: an hour, unless said otherwise.
    #[command(after_help = PAUSE_EXAMPLES)]
    Pause(PauseJobArguments),
    /// End a pause.
    Resume(NameArguments),
    /// Run a job here and now, without a daemon, a slot or a record: to try it out.
    #[command(after_help = RUN_EXAMPLES)]
    Run(ForegroundArguments),
}

const START_EXAMPLES: &str = "\
Examples:
  ductor job start backup            print the run's id and return
  ductor job start backup --follow   show its output until it ends
  ductor job start backup --wait     exit 0 if it succeeds, 1 if not
  ductor job start backup --wait --timeout 1h
                                     exit 124 if it takes longer
  ductor job start backup --idempotency-key 2025-11-30
                                     at most once, however often repeated";

const PAUSE_EXAMPLES: &str = "\
Examples:
  ductor job pause backup --for 2h --reason 'disk is being replaced'
  ductor job pause backup --until 06:00";

const RUN_EXAMPLES: &str = "\
Examples:
  ductor job run backup
  ductor job run backup --config ./ductor.yaml

Ends with the command's own exit code; 124 after its executionTimeout, 127 if
it could not start, 128+N after signal N.";

/// Arguments of `job ls`.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArguments {
    /// Only those whose last run failed.
    #[arg(long)]
    failing: bool,
    /// Only paused ones.
    #[arg(long)]
    paused: bool,
}

/// A job by its name.
#[derive(Debug, Clone, Args)]
pub(super) struct NameArguments {
    /// The job's name.
    #[arg(value_name = "NAME")]
    name: String,
}

/// Arguments of `job start`.
#[derive(Debug, Clone, Args)]
pub(super) struct StartArguments {
    /// The job's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// Wait until the run ends; exit 1 if it does not succeed.
    #[arg(long)]
    wait: bool,
    /// Show its output, and wait.
    #[arg(long, short)]
    follow: bool,
    /// Failed attempts are repeated, as those of a fire are.
    #[arg(long)]
    retries: bool,
    /// Repeated with the same key, it starts nothing new for 24 hours.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

/// Arguments of `job pause`.
#[derive(Debug, Clone, Args)]
pub(super) struct PauseJobArguments {
    /// The job's name.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    pause: PauseArguments,
}

/// Arguments of `job run`.
#[derive(Debug, Clone, Args)]
pub(super) struct ForegroundArguments {
    /// The job's name.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Where the configuration is.
    #[command(flatten)]
    pub(super) config: ConfigArguments,
}

/// Does it.
pub(super) async fn perform(session: &Session, command: JobCommand) -> Result<Exit, Failure> {
    match command {
        JobCommand::Ls(arguments) => list(session, &arguments).await,
        JobCommand::Show(arguments) => show(session, &arguments.name).await,
        JobCommand::Start(arguments) => start(session, &arguments).await,
        JobCommand::Stop(arguments) => stop(session, &arguments.name).await,
        JobCommand::CancelRetries(arguments) => cancel_retries(session, &arguments.name).await,
        JobCommand::Pause(arguments) => {
            let body = arguments.pause.body(&session.show)?;
            let answer = change(session, &arguments.name, "pause", Some(&body)).await?;
            let paused = pauses::sentence(pause_of(&answer.value), &session.show);
            told(
                session,
                &answer,
                &format!(
                    "job {}: {}",
                    arguments.name,
                    paused.unwrap_or_else(|| "paused".to_owned())
                ),
            )
        }
        JobCommand::Resume(arguments) => {
            let answer = change(session, &arguments.name, "resume", None).await?;
            told(session, &answer, &format!("job {}: active", arguments.name))
        }
        JobCommand::Run(_) => Err(Failure::Usage("`job run` needs no daemon".to_owned())),
    }
}

fn told(session: &Session, answer: &Body, sentence: &str) -> Result<Exit, Failure> {
    if session.show.json {
        session.show.document(&answer.text)?;
    } else {
        session.show.data(&format!("{sentence}\n"))?;
    }
    Ok(Exit::Done)
}

async fn change(session: &Session, name: &str, verb: &str, body: Option<&Value>) -> Result<Body, Failure> {
    session.client.post(&["jobs", name, verb], body, None).await
}

fn pause_of(job: &Value) -> Option<&Value> {
    fields::member(job, &["paused"])
}

/// The state of a job in one word, and more.
fn state_of(job: &Value) -> String {
    let enabled = fields::member(job, &["enabled"]).and_then(Value::as_bool) != Some(false);
    let running = count(job, &["running"]);
    let waiting = count(job, &["pool.queued"]);
    if !enabled {
        "disabled".to_owned()
    } else if !fields::list(job, &["late"]).is_empty() {
        "late".to_owned()
    } else if running > 0 {
        format!("running {running}")
    } else if pause_of(job).is_some_and(|paused| paused.as_bool() != Some(false)) {
        "paused".to_owned()
    } else if waiting > 0 {
        "queued".to_owned()
    } else {
        "idle".to_owned()
    }
}

/// A number, or the length of a list, or 1 for true.
fn count(value: &Value, names: &[&str]) -> usize {
    match fields::member(value, names) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Bool(truth)) => usize::from(*truth),
        Some(Value::Number(number)) => number
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
            .unwrap_or(0),
        Some(Value::Null | Value::String(_) | Value::Object(_)) | None => 0,
    }
}

fn last_run(job: &Value) -> Option<&Value> {
    fields::member(job, &["last_run"])
}

fn last_state(job: &Value) -> Option<String> {
    fields::text(job, &["last_run.state"])
}

/// The next due moment.
fn next_fire(job: &Value) -> Option<Millis> {
    let first = fields::list(job, &["schedule.next"]).first()?;
    parse_instant(first.as_str()?)
}

fn schedule_of(job: &Value) -> String {
    fields::text(job, &["schedule.text", "schedule"]).unwrap_or_else(|| "by hand".to_owned())
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<Exit, Failure> {
    let show = &session.show;
    let body = session.client.get(&["jobs"], &[]).await?;
    if show.json && !arguments.failing && !arguments.paused {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let wanted = |job: &&Value| {
        let failing = last_state(job).is_some_and(|state| matches!(state.as_str(), "failed" | "timed_out"));
        let paused = pause_of(job).is_some_and(|paused| paused.as_bool() != Some(false));
        (!arguments.failing || failing) && (!arguments.paused || paused)
    };
    let items = fields::items(&body.value);
    let jobs: Vec<&Value> = items.iter().filter(wanted).collect();
    if show.json {
        show.json_line(&json!(jobs))?;
        return Ok(Exit::Done);
    }
    if jobs.is_empty() {
        let sentence = if items.is_empty() {
            "There are no jobs. Write one under `jobs:` in the configuration; `ductor config show` shows what is read."
        } else {
            "No job is like that. `ductor job ls` shows all."
        };
        show.nothing(sentence)?;
        return Ok(Exit::Done);
    }
    show.fitting(|fit| jobs_table(&jobs, show, fit))?;
    Ok(Exit::Done)
}

fn jobs_table(jobs: &[&Value], show: &Show, fit: Fit) -> Table {
    let ended =
        |job: &Value| last_run(job).and_then(|last| fields::instant(last, &["ended_at", "started_at"]));
    let columns = [
        ("JOB", Kind::Whole),
        ("STATE", Kind::State),
        ("LAST", Kind::State),
        ("ENDED", Kind::Whole),
        ("NEXT", Kind::Whole),
        ("POOL", Kind::Whole),
        ("SCHEDULE", Kind::Sentence),
    ];
    let count = match fit {
        Fit::Wide => columns.len(),
        Fit::Narrow => columns.len() - 1,
        Fit::Least => columns.len() - 2,
    };
    let mut table = Table::new(&columns[..count]);
    for job in jobs {
        let cells = [
            fields::text(job, &["name"]).unwrap_or_default(),
            state_of(job),
            last_state(job).unwrap_or_else(dash),
            show.moment(ended(job), fit),
            show.moment(next_fire(job), fit),
            fields::text(job, &["pool.name", "pool"]).unwrap_or_else(dash),
            schedule_of(job),
        ];
        table.row(&cells[..count]);
    }
    table
}

async fn show(session: &Session, name: &str) -> Result<Exit, Failure> {
    let show = &session.show;
    let body = session.client.get(&["jobs", name], &[]).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let job = fields::data(&body.value);
    let mut pairs = vec![
        (
            "job",
            show.strong(&fields::text(job, &["name"]).unwrap_or_else(|| name.to_owned())),
        ),
        ("state", show.state(&state_of(job))),
    ];
    for late in fields::list(job, &["late"]) {
        pairs.extend(fields::text(late, &["reason"]).map(|text| ("late", text)));
    }
    pairs.extend(pauses::sentence(pause_of(job), show).map(|text| ("paused", text)));
    let zone = fields::text(job, &["schedule.timezone"]).unwrap_or_else(|| "UTC".to_owned());
    let mut schedule = schedule_of(job);
    if schedule != "by hand" {
        schedule = format!("{schedule} ({zone})");
    }
    pairs.push(("schedule", schedule));
    pairs.extend(fields::text(job, &["schedule.description"]).map(|text| ("in words", text)));
    pairs.push(("next", show.instant_and_distance(next_fire(job))));
    if let Some(last) = last_run(job) {
        pairs.push(("last run", run_view::outcome(last)));
        let ended = fields::instant(last, &["ended_at", "started_at", "created_at"]);
        pairs.push(("ended", show.instant_and_distance(ended)));
    }
    pairs.extend(pool_line(job).map(|text| ("pool", text)));
    pairs.extend(fields::text(job, &["concurrency_policy"]).map(|text| ("overlap", text)));
    pairs.extend(command_line(job).map(|text| ("command", text)));
    show.pairs(&pairs)?;
    show.note(&show_hint(name));
    Ok(Exit::Done)
}

fn show_hint(name: &str) -> String {
    let filter = if name.contains(' ') {
        format!("job:\"{name}\"")
    } else {
        format!("job:{name}")
    };
    format!(
        "\nIts runs: ductor run ls --where {}   Start it: ductor job start {} --follow",
        quoted(&filter),
        quoted(name)
    )
}

fn pool_line(job: &Value) -> Option<String> {
    if fields::truth(job, &["queue_unavailable"]) {
        return Some("its state is unavailable".to_owned());
    }
    let name = fields::text(job, &["pool.name", "pool"])?;
    let slots = fields::number(job, &["pool.slots"]).unwrap_or(1);
    let priority = fields::number(job, &["pool.priority"]).unwrap_or(0);
    let queued = fields::number(job, &["pool.queued"]).unwrap_or(0);
    Some(format!(
        "{name}: takes {slots}, priority {priority}, {queued} waiting"
    ))
}

fn command_line(job: &Value) -> Option<String> {
    let command = fields::member(job, &["command"])?;
    match command {
        Value::String(text) => Some(first_line(text)),
        Value::Array(words) => Some(
            words
                .iter()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join(" "),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// A script is told by its first line.
fn first_line(script: &str) -> String {
    let mut lines = script.trim().lines();
    let first = one_line(lines.next().unwrap_or_default());
    match lines.count() {
        0 => first,
        more => format!("{first} … ({more} more lines)"),
    }
}

async fn start(session: &Session, arguments: &StartArguments) -> Result<Exit, Failure> {
    let show = &session.show;
    let key = arguments.idempotency_key.as_deref();
    if key.is_some_and(|key| {
        key.is_empty() || key.len() > 128 || !key.bytes().all(|byte| (0x20..0x7f).contains(&byte))
    }) {
        return Err(Failure::Usage(
            "--idempotency-key must be 1 to 128 printable ASCII characters".to_owned(),
        ));
    }
    let body = arguments.retries.then(|| json!({"retries": true}));
    let answer = session
        .client
        .post(&["jobs", &arguments.name, "start"], body.as_ref(), key)
        .await?;
    let watched = arguments.wait || arguments.follow;
    let run = fields::text(&answer.value, &["run_id"]);
    let sentence = started_sentence(&arguments.name, &answer.value);
    let Some(run) = run.filter(|_| watched) else {
        if watched {
            return Err(Failure::Negative(
                "the daemon gave no run id to wait for".to_owned(),
            ));
        }
        return told(session, &answer, &sentence);
    };
    show.note(&sentence);
    watch(session, &run, arguments.follow).await
}

/// Waits for the end of a run that has just begun, and shows its output if that is wanted.
pub(super) async fn watch(session: &Session, run: &str, follow: bool) -> Result<Exit, Failure> {
    let show = &session.show;
    session.say_when_left(format!("the run goes on; watch it with: ductor run follow {run}"));
    let watch = if follow { Watch::Log } else { Watch::Silently };
    let body = Watcher::of_new_run(session, run).until_end(watch).await?;
    let ended = fields::data(&body.value);
    if show.json && !follow {
        show.document(&body.text)?;
    } else if show.json {
        show.json_line(&json!({"type": "end", "run": ended}))?;
    } else if follow {
        show.note(&run_view::outcome(ended));
    } else {
        show.data(&format!("{}\n", run_view::outcome(ended)))?;
    }
    Ok(run_view::exit_of(ended))
}

fn started_sentence(name: &str, answer: &Value) -> String {
    let run = fields::text(answer, &["run_id"]).unwrap_or_default();
    match (
        fields::text(answer, &["pool"]),
        fields::text(answer, &["queue_id"]),
    ) {
        (Some(pool), Some(entry)) => format!("{name} queued as {run} in pool {pool} (entry {entry})"),
        (_, _) => format!("{name} started as {run}"),
    }
}

async fn stop(session: &Session, name: &str) -> Result<Exit, Failure> {
    let answer = change(session, name, "cancel", None).await?;
    let instances = fields::number(&answer.value, &["instances"]);
    let sentence = match instances {
        Some(1) | None => format!("job {name}: 1 instance is being ended"),
        Some(count) => format!("job {name}: {count} instances are being ended"),
    };
    told(session, &answer, &sentence)
}

async fn cancel_retries(session: &Session, name: &str) -> Result<Exit, Failure> {
    let path = ["jobs", name, "retries", "cancel"];
    let answer = session.client.post(&path, None, None).await?;
    let sentence = match fields::number(&answer.value, &["runs"]) {
        Some(0) | None => format!("job {name}: nothing waited for another attempt"),
        Some(1) => format!("job {name}: 1 run gets no other attempt"),
        Some(count) => format!("job {name}: {count} runs get no other attempt"),
    };
    told(session, &answer, &sentence)
}

#[cfg(test)]
mod tests {
    use super::super::table::assert_80;
    use super::*;

    #[test]
    fn a_list_of_jobs_fits_a_narrow_terminal() {
        let job = json!({"name": "nightly-stock-sync", "running": 12, "pool": {"name": "warehouse-a"},
            "last_run": {"state": "succeeded", "ended_at": "2025-11-28T10:00:00Z"},
            "schedule": {"text": "0 3 * * 1-5", "next": ["2025-12-01T03:00:00Z"]}});
        assert_80(&jobs_table(&[&job], &Show::plain(), Fit::Least));
    }

    #[test]
    fn the_state_of_a_job_is_its_most_urgent_one() {
        let check = |job: Value, expected: &str| assert_eq!(state_of(&job), expected, "{job}");
        check(json!({"enabled": false, "running": 1}), "disabled");
        check(
            json!({"running": [{"runId": "run_1"}], "paused": {"until": null}}),
            "running 1",
        );
        check(json!({"paused": {"until": null}}), "paused");
        check(json!({"paused": false, "pool": {"queued": 2}}), "queued");
        check(json!({"paused": null}), "idle");
        check(json!({"running": 1, "late": [{"check": "maxRuntime"}]}), "late");
        check(json!({"late": []}), "idle");
    }

    #[test]
    fn a_start_is_told_with_its_run() {
        let queued = json!({"queued": "a", "queueId": "0f", "pool": "p", "runId": "run_1"});
        assert_eq!(
            started_sentence("a", &queued),
            "a queued as run_1 in pool p (entry 0f)"
        );
        assert_eq!(
            started_sentence("a", &json!({"started": "a", "runId": "run_1"})),
            "a started as run_1"
        );
    }
}
