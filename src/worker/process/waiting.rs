//! A shim that waits for its launch message.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;

use super::launch::{LaunchFailure, LaunchSpec, Refused};
use super::leader::Leader;
use super::pump::Output;
use super::running::Running;
use crate::os::children;
use crate::os::proc::ProcessIdentity;

/// How long a shim may take to become the command. It is a matter of milliseconds; a working directory on a dead network
/// mount, or a machine that swaps, can make it long.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer we read.
const ANSWER_MAX: u64 = 64 * 1024;

/// This binary, also when its file has been replaced since the start: what to give to [`Shim::spawn`].
pub fn own_exe() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// A process that has run nothing yet. Dropped, it exits 125 by itself and is reaped.
#[derive(Debug)]
pub struct Shim {
    // Order matters: closing the socket ends the shim, then the leader is waited for.
    socket: UnixStream,
    output: Output,
    leader: Leader,
}

impl Shim {
    /// Starts `exe __exec` in a process group of its own. Needs a runtime; blocks for about a millisecond.
    pub fn spawn(exe: &Path) -> io::Result<Self> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let (child, mut process) = children::own(|| {
            let mut command = Command::new(exe);
            command.arg("__exec").env_clear().process_group(0);
            command
                .stdin(OwnedFd::from(theirs))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let process = command.spawn()?;
            Ok((process.id(), process))
        })?;
        let pipes = (process.stdout.take(), process.stderr.take());
        let held = receivers(pipes).and_then(|output| Ok((output, Leader::hold(child)?)));
        match held {
            Ok((output, leader)) => Ok(Self {
                socket,
                output,
                leader,
            }),
            Err(error) => {
                // Out of descriptors, most likely. It has run nothing and ends at once.
                drop(socket);
                let _gone = process.wait();
                Err(error)
            }
        }
    }

    /// Pid, start time and group of the command to be.
    pub fn identity(&self) -> ProcessIdentity {
        self.leader.identity()
    }

    /// It is still there to be launched; a warm one may have been killed meanwhile.
    pub fn is_waiting(&self) -> bool {
        matches!(self.leader.exit(), Ok(None))
    }

    /// Turns it into the command. After an error nothing of the command has run. Dropping the future kills the group.
    pub async fn launch(self, spec: &LaunchSpec) -> Result<Running, LaunchFailure> {
        let Self {
            mut socket,
            output,
            mut leader,
        } = self;
        let message = spec.encode()?;
        leader.may_be_command();
        let mut answer = Vec::new();
        let exchange = async {
            socket.write_all(&message).await?;
            socket.take(ANSWER_MAX).read_to_end(&mut answer).await
        };
        match tokio::time::timeout(LAUNCH_TIMEOUT, exchange).await {
            Ok(Ok(0)) => Ok(Running::new(leader, output)),
            Ok(Ok(_)) => Err(match serde_json::from_slice::<Refused>(&answer) {
                Ok(refused) => LaunchFailure::new(refused.error),
                Err(_) => LaunchFailure::new("the launcher gave an answer that is not understood"),
            }),
            Ok(Err(error)) => Err(LaunchFailure::new(format!(
                "the waiting process has ended: {error}"
            ))),
            Err(_) => {
                let seconds = LAUNCH_TIMEOUT.as_secs();
                Err(LaunchFailure::new(format!(
                    "the command did not start within {seconds} s"
                )))
            }
        }
    }
}

fn receivers(pipes: (Option<ChildStdout>, Option<ChildStderr>)) -> io::Result<Output> {
    let (Some(stdout), Some(stderr)) = pipes else {
        return Err(io::Error::other("no output pipes"));
    };
    let stdout = Receiver::from_owned_fd(stdout.into())?;
    let stderr = Receiver::from_owned_fd(stderr.into())?;
    Ok(Output { stdout, stderr })
}
