//! The command worker: opens the gate of a waiting process, watches it to its end, and judges the result.
//!
//! It knows nothing of the store: what it returns is recorded by the engine. An end from outside (cancel, replace, stop,
//! lost lease) comes through a watch channel; the process group always ends before the result is known.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::environment;
use super::log_file::LogWriter;
use super::process::{
    Exit, GroupEnd, OutputSink, PumpReport, Running, SavedLines, Shim, Stream, Tag, Usage, pump, records,
    watch_memory,
};
use super::secrets::Secrets;
use super::step_files::{self, StepFiles};
use super::verify;
use crate::domain::report::Tails;
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::{self, CODE_NOT_STARTED, CODE_TIMEOUT, CommandEnd, Outcome};
use crate::domain::workflow::definition::{CommandLine, CommandStep};
use crate::os::user::Credentials;
use crate::words::limits;
use crate::words::payload::JsonText;

/// Why an execution is ended from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Somebody asked; the sentence says who, or what replaces it.
    Requested(String),
    /// The daemon stops and its drain time is over.
    DaemonStopped,
    /// The lease is lost: SIGKILL must be out within this time.
    LeaseLost {
        /// Milliseconds until then.
        kill_within_ms: u64,
    },
}

/// Everything that one execution needs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What to run.
    pub step: CommandStep,
    /// The daemon's own variables.
    pub marks: Vec<(String, String)>,
    /// Where its output goes.
    pub log: PathBuf,
    /// The log's cap.
    pub log_bytes_max: u64,
    /// Files by which the command takes its input and leaves its output, for a step that has them.
    pub files: Option<StepFiles>,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The outcome.
    pub outcome: Outcome,
    /// The code, if there is one.
    pub exit_code: Option<i32>,
    /// Why.
    pub reason: Option<String>,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Members of the group that do not end.
    pub stuck: Vec<u32>,
    /// The end of what it printed, as far as it is captured and `saveLimit` keeps it.
    pub tails: Tails,
    /// What the command has used; without `verify`.
    pub usage: Usage,
    /// What a command that succeeded left as its output, if it was asked for and there is one.
    pub output: Option<JsonText>,
}

/// The reading end of an execution's requests to end.
pub(super) type Stops = watch::Receiver<Option<Stop>>;

/// Runs `plan` in `shim` to its end.
pub async fn execute(shim: Shim, mut plan: Plan, stops: Stops, sizes: watch::Sender<u64>) -> Ended {
    plan.marks.extend(plan.files.iter().flat_map(StepFiles::marks));
    let plan = plan;
    let resolved = resolve_secrets(&plan.step).await;
    let secrets = resolved.as_ref().map(Arc::clone).unwrap_or_default();
    let script = plan.step.command.clone();
    let launched = match resolved {
        Ok(secrets) => launch(shim, &plan, &script, secrets, plan.files.as_ref()).await,
        Err(sentence) => Err(sentence),
    };
    // What the command prints before its log exists waits in the pipes.
    let mut log = Log {
        writer: LogWriter::create(&plan.log, plan.log_bytes_max),
        sizes,
        secrets,
    };
    let ended = match launched {
        Ok((running, credentials)) => {
            let ended = watch_command(running, &plan, stops, &mut log).await;
            with_output_of(&plan, credentials, ended, &log).await
        }
        Err(sentence) => {
            log.remark(&format!("{}: {sentence}", reason::LAUNCH_FAILED))
                .await;
            Ended {
                outcome: Outcome::Failed,
                exit_code: Some(CODE_NOT_STARTED),
                reason: Some(format!("{}: {sentence}", reason::LAUNCH_FAILED)),
                log_bytes: 0,
                stuck: Vec::new(),
                tails: Tails::default(),
                usage: Usage::default(),
                output: None,
            }
        }
    };
    remove_files(&plan).await;
    let report = log.writer.finish().await;
    if let Some(error) = &report.error {
        tracing::warn!(missing_bytes = report.missing_bytes, cause = %error, "a log could not be written whole");
    }
    Ended {
        log_bytes: report.size,
        reason: ended.reason.map(|text| shorten(&log.secrets.masked(&text))),
        ..ended
    }
}

fn shorten(text: &str) -> String {
    let mut end = text.len().min(limits::REASON_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Once for the command and its `verify`, so that they see and hide the same.
async fn resolve_secrets(step: &CommandStep) -> Result<Arc<Secrets>, String> {
    if step.secrets.is_empty() {
        return Ok(Arc::default());
    }
    let step = step.clone();
    let resolved = tokio::task::spawn_blocking(move || Secrets::resolve(&step)).await;
    resolved.map_err(|error| error.to_string())?.map(Arc::new)
}

pub(super) async fn launch(
    shim: Shim,
    plan: &Plan,
    script: &CommandLine,
    secrets: Arc<Secrets>,
    files: Option<&StepFiles>,
) -> Result<(Running, Credentials), String> {
    let (step, script, marks) = (plan.step.clone(), script.clone(), plan.marks.clone());
    let files = files.cloned();
    let resolve = move || {
        let spec = environment::resolve(&step, &script, &secrets, &marks)?;
        files.map_or(Ok(()), |files| files.make(&spec.credentials))?;
        Ok::<_, String>(spec)
    };
    let resolved = tokio::task::spawn_blocking(resolve).await;
    let spec = resolved.map_err(|error| error.to_string())??;
    let running = shim.launch(&spec).await.map_err(|failure| failure.message)?;
    Ok((running, spec.credentials))
}

/// Reads what a command that succeeded left for its step; what is no output makes a failure of it.
async fn with_output_of(plan: &Plan, credentials: Credentials, ended: Ended, log: &Log) -> Ended {
    let Some(files) = plan.files.clone().filter(|_| ended.outcome == Outcome::Succeeded) else {
        return ended;
    };
    let secrets = Arc::clone(&log.secrets);
    let take = move || {
        let text = files.take(&credentials)?;
        let document = |text: String| step_files::document_of(&text, &secrets.masked(&text));
        text.map(document).transpose()
    };
    let taken = tokio::task::spawn_blocking(take).await;
    match taken.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(output) => Ended { output, ..ended },
        Err(sentence) => Ended {
            outcome: Outcome::Failed,
            reason: Some(sentence),
            ..ended
        },
    }
}

async fn remove_files(plan: &Plan) {
    if let Some(files) = plan.files.clone() {
        drop(tokio::task::spawn_blocking(move || files.remove()).await);
    }
}

/// The log with its followers.
pub(super) struct Log {
    writer: LogWriter,
    sizes: watch::Sender<u64>,
    pub(super) secrets: Arc<Secrets>,
}

impl Log {
    pub(super) async fn remark(&mut self, text: &str) {
        self.writer.remark(&self.secrets.masked(text)).await;
        self.sizes.send_replace(self.writer.report().size);
    }
}

/// Takes records to the log, the saved lines, or the daemon's own streams.
struct Sink<'a> {
    log: &'a mut Log,
    saved: SavedLines,
    capture_stdout: bool,
    capture_stderr: bool,
}

impl OutputSink for Sink<'_> {
    async fn write(&mut self, tagged: &[u8]) {
        self.saved.feed(tagged);
        if self.capture_stdout && self.capture_stderr {
            self.log.writer.write(tagged).await;
        } else {
            let kept = self.pass_through(tagged);
            self.log.writer.write(&kept).await;
        }
        self.log.sizes.send_replace(self.log.writer.report().size);
    }
}

impl Sink<'_> {
    /// Writes what is not captured to the daemon's own streams; what is left goes to the log.
    fn pass_through(&self, tagged: &[u8]) -> Vec<u8> {
        let mut kept = Vec::new();
        for record in records(tagged) {
            let (stream, whole) = match record.tag {
                Tag::Line(stream) => (stream, true),
                Tag::Piece(stream) => (stream, false),
                Tag::Remark => continue,
            };
            let captured = match stream {
                Stream::Stdout => self.capture_stdout,
                Stream::Stderr => self.capture_stderr,
            };
            if captured {
                record.append_to(&mut kept);
            } else {
                let end: &[u8] = if whole { b"\n" } else { b"" };
                write_own(stream, &[record.payload, end].concat());
            }
        }
        kept
    }
}

fn write_own(stream: Stream, bytes: &[u8]) {
    use std::io::Write;
    let written = match stream {
        Stream::Stdout => std::io::stdout().lock().write_all(bytes),
        Stream::Stderr => std::io::stderr().lock().write_all(bytes),
    };
    if let Err(error) = written {
        tracing::debug!(cause = %error, "uncaptured output could not be passed on");
    }
}

/// What ended the wait for the command.
pub(super) enum Seen {
    Exited(Exit),
    TimedOut,
    Stopped(Stop),
    /// The exit status is lost.
    Unknown(String),
}

async fn watch_command(mut running: Running, plan: &Plan, mut stops: Stops, log: &mut Log) -> Ended {
    let step = &plan.step;
    let limit = step.execution_timeout_ms.map(Duration::from_millis);
    let mut memory_peak_bytes = None;
    let (seen, end, report, saved) = {
        let mut sink = Sink {
            log,
            saved: SavedLines::new(step.save_limit as usize),
            capture_stdout: step.capture_stdout,
            capture_stderr: step.capture_stderr,
        };
        let (seen, end, report) = with_output(&mut running, &mut sink, async |running| {
            let pid = running.identity().pid;
            let seen = tokio::select! {
                seen = wait(running, limit, &mut stops) => seen,
                never = watch_memory(pid, &mut memory_peak_bytes) => match never {},
            };
            let end = end_group(running, &seen, step.kill_timeout_ms, &mut stops).await;
            (seen, end)
        })
        .await;
        (seen, end, report, sink.saved)
    };
    let stuck = stuck_of(end);
    let wrote = |bytes: u64, stream| bytes > 0 || saved.produced(stream);
    let ended = match seen {
        Seen::Exited(exit) => {
            let command = CommandEnd {
                code: exit.code,
                wrote_stdout: wrote(report.stdout_bytes, Stream::Stdout),
                wrote_stderr: wrote(report.stderr_bytes, Stream::Stderr),
            };
            judge(plan, command, stops, log).await
        }
        Seen::TimedOut => ended_by(
            Outcome::TimedOut,
            Some(CODE_TIMEOUT),
            attempt::timeout_sentence(seconds(step.execution_timeout_ms.unwrap_or(0))),
        ),
        Seen::Stopped(request) => stopped(&request),
        Seen::Unknown(cause) => ended_by(Outcome::Failed, None, format!("the exit status is lost: {cause}")),
    };
    Ended {
        stuck,
        tails: tails_of(step, &saved),
        usage: Usage {
            cpu_ms: running.cpu_ms(),
            memory_peak_bytes,
        },
        ..ended
    }
}

fn tails_of(step: &CommandStep, saved: &SavedLines) -> Tails {
    let tail = |captured: bool, stream| {
        if captured {
            saved.tail_text(stream, limits::REPORT_TAIL_BYTES_MAX)
        } else {
            String::new()
        }
    };
    Tails {
        stdout: tail(step.capture_stdout, Stream::Stdout),
        stderr: tail(step.capture_stderr, Stream::Stderr),
    }
}

/// Runs `work` while the output of `running` is pumped into `sink`; pipes that stay open are closed after a while.
async fn with_output<A, B>(
    running: &mut Running,
    sink: &mut Sink<'_>,
    work: impl AsyncFnOnce(&mut Running) -> (A, B),
) -> (A, B, PumpReport) {
    let Some(output) = running.take_output() else {
        let (first, second) = work(running).await;
        return (first, second, PumpReport::default());
    };
    let close = CancellationToken::new();
    let mut filter = sink.log.secrets.filter();
    let mut pumping = std::pin::pin!(pump(output, &mut filter, sink, &close));
    let mut report = None;
    let (first, second) = {
        let mut working = std::pin::pin!(work(running));
        loop {
            tokio::select! {
                done = &mut working => break done,
                all = &mut pumping, if report.is_none() => report = Some(all),
            }
        }
    };
    if report.is_none() {
        let linger = Duration::from_millis(limits::PIPE_LINGER_MS);
        if let Ok(all) = tokio::time::timeout(linger, &mut pumping).await {
            report = Some(all);
        }
    }
    let report = match report {
        Some(report) => report,
        None => {
            close.cancel();
            pumping.await
        }
    };
    (first, second, report)
}

pub(super) async fn wait(running: &Running, limit: Option<Duration>, stops: &mut Stops) -> Seen {
    let timeout = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        exit = running.wait_exit() => match exit {
            Ok(exit) => Seen::Exited(exit),
            Err(error) => Seen::Unknown(error.to_string()),
        },
        () = timeout => Seen::TimedOut,
        request = next_stop(stops) => Seen::Stopped(request),
    }
}

async fn next_stop(stops: &mut Stops) -> Stop {
    loop {
        if let Some(stop) = stops.borrow_and_update().clone() {
            return stop;
        }
        if stops.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Ends the group; a lease that is lost meanwhile shortens the time until SIGKILL.
pub(super) async fn end_group(
    running: &mut Running,
    seen: &Seen,
    kill_timeout_ms: u64,
    stops: &mut Stops,
) -> GroupEnd {
    let patience = match seen {
        Seen::Stopped(Stop::LeaseLost { kill_within_ms }) => kill_timeout_ms.min(*kill_within_ms),
        Seen::Exited(_) | Seen::TimedOut | Seen::Unknown(_) | Seen::Stopped(_) => kill_timeout_ms,
    };
    let lease_lost = async {
        loop {
            if stops.changed().await.is_err() {
                return std::future::pending::<u64>().await;
            }
            if let Some(Stop::LeaseLost { kill_within_ms }) = *stops.borrow_and_update() {
                return kill_within_ms;
            }
        }
    };
    let shortened = tokio::select! {
        end = running.end_group(Duration::from_millis(patience)) => return end,
        within = lease_lost => within,
    };
    running
        .end_group(Duration::from_millis(shortened.min(patience)))
        .await
}

pub(super) fn stuck_of(end: GroupEnd) -> Vec<u32> {
    match end {
        GroupEnd::Gone => Vec::new(),
        GroupEnd::WillNotEnd { pids } => pids,
    }
}

pub(super) fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1_000) {
        (ms / 1_000).to_string()
    } else {
        format!("{}.{:03}", ms / 1_000, ms % 1_000)
    }
}

pub(super) fn ended_by(outcome: Outcome, exit_code: Option<i32>, reason: String) -> Ended {
    Ended {
        outcome,
        exit_code,
        reason: Some(reason),
        log_bytes: 0,
        stuck: Vec::new(),
        tails: Tails::default(),
        usage: Usage::default(),
        output: None,
    }
}

pub(super) fn stopped(stop: &Stop) -> Ended {
    match stop {
        Stop::Requested(sentence) => ended_by(Outcome::Cancelled, None, sentence.clone()),
        Stop::DaemonStopped => ended_by(Outcome::Lost, None, reason::DAEMON_STOPPED.to_owned()),
        Stop::LeaseLost { .. } => ended_by(Outcome::Lost, None, reason::LEASE_LOST.to_owned()),
    }
}

async fn judge(plan: &Plan, command: CommandEnd, stops: Stops, log: &mut Log) -> Ended {
    if let Some(sentence) = attempt::failure_of(plan.step.fails_when, command) {
        return ended_by(Outcome::Failed, Some(command.code), sentence);
    }
    let success = Ended {
        outcome: Outcome::Succeeded,
        exit_code: Some(command.code),
        reason: None,
        log_bytes: 0,
        stuck: Vec::new(),
        tails: Tails::default(),
        usage: Usage::default(),
        output: None,
    };
    match &plan.step.verify {
        None => success,
        Some(verify) => verify::result(plan, verify, command.code, stops, log)
            .await
            .unwrap_or(success),
    }
}
