//! The command of a report: in its own process group, with a time limit, the document on its standard input.
//!
//! It runs as the daemon's user with the daemon's environment, whatever the job's command runs as.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::domain::report::{Delivery, ShellRoute};
use crate::domain::workflow::attempt::code_sentence;
use crate::domain::workflow::definition::CommandLine;
use crate::words::limits;
use crate::worker::process::{
    LaunchSpec, NoFilter, OutputSink, Program, SavedLines, Shim, Stream, close_after, own_exe, pump,
};

/// Lines of its output that are looked at when it fails.
const LINES_MAX: usize = 8;
/// Bytes of them that are shown.
const SHOWN_MAX: usize = 200;

/// A command with all it needs.
#[derive(Debug, Clone)]
pub struct ShellJob {
    /// What is executed, and how long it may take.
    pub route: ShellRoute,
    /// Variables beside the daemon's own.
    pub variables: Vec<(String, String)>,
    /// Its standard input.
    pub input: String,
}

struct Saved(SavedLines);

impl OutputSink for Saved {
    async fn write(&mut self, tagged: &[u8]) {
        self.0.feed(tagged);
    }
}

/// Runs it to its end. Dropping the future kills its group.
pub async fn run_shell(job: ShellJob) -> Delivery {
    match run(job).await {
        Ok(()) => Delivery::Done,
        Err(why) => Delivery::Failed(why),
    }
}

async fn run(job: ShellJob) -> Result<(), String> {
    let limit = Duration::from_millis(job.route.timeout_ms);
    let shim = Shim::spawn(&own_exe()).map_err(|error| format!("could not start: {error}"))?;
    let launched = shim.launch(&spec_of(job)).await;
    let mut running = launched.map_err(|failure| format!("could not start: {}", failure.message))?;
    let Some(output) = running.take_output() else {
        return Err("has no output".to_owned());
    };
    let close = CancellationToken::new();
    let closer = close.clone();
    let reading = tokio::spawn(async move {
        let mut sink = Saved(SavedLines::new(LINES_MAX));
        pump(output, &mut NoFilter, &mut sink, &closer).await;
        sink.0
    });
    let exit = tokio::time::timeout(limit, running.wait_exit()).await;
    running
        .end_group(Duration::from_millis(limits::REPORT_KILL_MS))
        .await;
    let saved = close_after(reading, &close, Duration::from_millis(limits::REPORT_KILL_MS)).await;
    let why = match exit {
        Ok(Ok(exit)) if exit.code == 0 => return Ok(()),
        Ok(Ok(exit)) => code_sentence(exit.code),
        Ok(Err(error)) => format!("the exit status is lost: {error}"),
        Err(_) => format!("timeout of {} s", limit.as_secs_f64()),
    };
    let said = saved.map(|saved| said(&saved)).unwrap_or_default();
    Err(if said.is_empty() {
        why
    } else {
        format!("{why}: {said}")
    })
}

fn spec_of(job: ShellJob) -> LaunchSpec {
    let own = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(key, _)| !key.starts_with("DUCTOR_"));
    let mut environment: std::collections::BTreeMap<String, String> = own.collect();
    environment.extend(job.variables);
    let program = match job.route.command {
        CommandLine::Shell(script) => Program::Shell {
            shell: job.route.shell.into(),
            script,
        },
        CommandLine::List(words) => Program::List(words),
    };
    let mut spec = LaunchSpec::new(program, environment.into_iter().collect());
    spec.input = Some(job.input);
    spec
}

/// What it printed last, on one line.
fn said(saved: &SavedLines) -> String {
    let mut text = saved.tail_text(Stream::Stderr, SHOWN_MAX);
    if text.trim().is_empty() {
        text = saved.tail_text(Stream::Stdout, SHOWN_MAX);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .filter(|letter| !letter.is_control())
        .collect()
}
