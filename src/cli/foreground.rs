//! `ductor job run`: the command of a job in the foreground, as the daemon would start it, and nothing else of it.
//!
//! Only the configuration is needed. No store, no slots, no overlap check, no retries, no record: it is for trying out.

use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::configuration::{self, Loaded};
use super::exit::Exit;
use super::failure::Failure;
use super::jobs::ForegroundArguments;
use super::show::{Show, write_stderr};
use super::table::one_line;
use crate::daemon::definitions_of;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::{CommandStep, Definition};
use crate::words::ids::RunId;
use crate::words::time::{Clock, SystemClock};
use crate::worker::command::{self, Ended, Plan, Stop};
use crate::worker::process::{Shim, own_exe};

/// What `DUCTOR_NODE` says where there is no daemon.
const NODE: &str = "foreground";

/// Runs it to its end.
pub(super) async fn run(
    arguments: &ForegroundArguments,
    timeout_ms: Option<u64>,
    show: &Show,
) -> Result<Exit, Failure> {
    let loaded = match configuration::load_for_tool(&arguments.config) {
        Ok(loaded) => loaded,
        Err(text) => {
            write_stderr(text.as_bytes());
            return Ok(Exit::Usage);
        }
    };
    write_stderr(loaded.warnings.as_bytes());
    let definition = find(&loaded, &arguments.name)?;
    if definition.is_graph() {
        return Err(Failure::Usage(format!(
            "`{}` is a dag, and only a daemon runs dags: ductor job start {}",
            definition.name, definition.name
        )));
    }
    let name = &definition.name;
    show.note(&format!(
        "job {name}, in the foreground: it takes no slots, checks no overlap, is not retried and not recorded; Ctrl-C ends it"
    ));
    let plan = plan_of(&definition);
    let shim = Shim::spawn(&own_exe())
        .map_err(|error| Failure::Negative(format!("no process can be started: {error}")))?;
    let (stop, stops) = watch::channel(None);
    let (sizes, _size) = watch::channel(0);
    let work = command::execute(shim, plan, stops, sizes);
    let ended = until_ended(work, &stop, timeout_ms).await?;
    Ok(told(&ended, show))
}

fn find(loaded: &Loaded, name: &str) -> Result<Definition, Failure> {
    let definitions = definitions_of(&loaded.config).map_err(|error| Failure::Usage(error.to_string()))?;
    let known: Vec<String> = definitions
        .iter()
        .map(|definition| definition.name.to_string())
        .collect();
    definitions
        .into_iter()
        .find(|definition| definition.name.as_str() == name)
        .ok_or_else(|| {
            let known = if known.is_empty() {
                "no jobs".to_owned()
            } else {
                known.join(", ")
            };
            Failure::NotFound(format!(
                "job '{name}' is not in {}; it has {known}",
                loaded.path.display()
            ))
        })
}

fn plan_of(definition: &Definition) -> Plan {
    let step = CommandStep {
        // What is not captured goes to this process's own streams.
        capture_stdout: false,
        capture_stderr: false,
        ..definition.main_step().command.clone()
    };
    let now = SystemClock.now().wall;
    let marks = [
        ("DUCTOR_RUN_ID", RunId::fresh().to_string()),
        ("DUCTOR_JOB_NAME", definition.name.to_string()),
        ("DUCTOR_ATTEMPT", "1".to_owned()),
        ("DUCTOR_NODE", NODE.to_owned()),
        ("DUCTOR_SCHEDULED_AT", now.to_string()),
    ];
    Plan {
        step,
        marks: marks.map(|(key, value)| (key.to_owned(), value)).to_vec(),
        log: PathBuf::from("/dev/null"),
        log_bytes_max: u64::MAX,
        files: None,
    }
}

/// Waits for the end; the first signal asks for it, the second insists.
async fn until_ended(
    work: impl Future<Output = Ended>,
    stop: &watch::Sender<Option<Stop>>,
    timeout_ms: Option<u64>,
) -> Result<Ended, Failure> {
    let cannot = |error: std::io::Error| Failure::Negative(format!("signals cannot be received: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut over = std::pin::pin!(async {
        match timeout_ms {
            Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            None => std::future::pending().await,
        }
    });
    let mut timed_out = false;
    let mut asked = false;
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            ended = &mut work => {
                return if timed_out {
                    Err(Failure::TimedOut("the command was ended when its time was over".to_owned()))
                } else {
                    Ok(ended)
                };
            }
            () = &mut over, if !timed_out => timed_out = true,
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        let wish = if asked {
            Stop::LeaseLost { kill_within_ms: 0 }
        } else {
            Stop::Requested("interrupted".to_owned())
        };
        asked = true;
        stop.send_replace(Some(wish));
    }
}

/// Says what cannot be seen from the output, and gives the exit code.
fn told(ended: &Ended, show: &Show) -> Exit {
    for pid in &ended.stuck {
        show.note(&format!("process {pid} does not end"));
    }
    if let Some(reason) = &ended.reason {
        show.note(&one_line(reason));
    }
    exit_of(ended.outcome, ended.exit_code)
}

/// The command's own code as a shell would have it.
fn exit_of(outcome: Outcome, code: Option<i32>) -> Exit {
    match (outcome, code) {
        (Outcome::Succeeded, _) => Exit::Done,
        (Outcome::TimedOut, _) => Exit::TimedOut,
        (Outcome::Cancelled | Outcome::Lost, _) => Exit::Interrupted,
        (Outcome::Failed, Some(code @ 1..=255)) => Exit::Own(u8::try_from(code).unwrap_or(1)),
        (Outcome::Failed, Some(signal @ -64..=-1)) => Exit::Own(u8::try_from(128 - signal).unwrap_or(1)),
        // `verify` or another rule of failsWhen said no to a command that ended with 0; or verify timed out.
        (Outcome::Failed, _) => Exit::Negative,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_the_commands_own() {
        let table = [
            (Outcome::Succeeded, Some(0), 0),
            // failsWhen.nonzeroReturn: false
            (Outcome::Succeeded, Some(3), 0),
            (Outcome::Failed, Some(3), 3),
            (Outcome::Failed, Some(127), 127),
            (Outcome::Failed, Some(-9), 137),
            (Outcome::Failed, Some(0), 1),
            (Outcome::Failed, None, 1),
            (Outcome::TimedOut, Some(-100), 124),
            (Outcome::Cancelled, None, 130),
        ];
        for (outcome, code, expected) in table {
            assert_eq!(exit_of(outcome, code).code(), expected, "{outcome:?} {code:?}");
        }
    }
}
