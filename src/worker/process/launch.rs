//! The launch message: what a shim becomes, and how it is written to the socket.
//!
//! One message: length as u32 little-endian, then JSON. One answer: nothing and end of stream (the command runs), or JSON
//! [`Refused`] and end of stream.

use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::os::rlimits::Limit;
use crate::os::user::Credentials;

/// Longest launch message in bytes. The kernel refuses arguments and environment of about 2 MiB together; JSON escapes
/// can double that.
pub const LAUNCH_MESSAGE_MAX: usize = 4 * 1024 * 1024;

/// What to execute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// `shell -c script`
    Shell { shell: PathBuf, script: String },
    /// As it is; the first word is looked up in the PATH of `env`.
    List(Vec<String>),
}

/// All a shim needs to become the command.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchSpec {
    pub program: Program,
    /// Folder to run in; `None`: the daemon's.
    pub cwd: Option<PathBuf>,
    /// The complete environment: nothing is inherited.
    pub env: Vec<(String, String)>,
    pub credentials: Credentials,
    /// Soft = hard.
    pub limits: Vec<(Limit, u64)>,
    /// What stands on standard input; `None`: nothing.
    pub input: Option<String>,
}

impl LaunchSpec {
    /// A program with this environment, and nothing else changed.
    pub fn new(program: Program, env: Vec<(String, String)>) -> Self {
        Self {
            program,
            cwd: None,
            env,
            credentials: Credentials::default(),
            limits: Vec::new(),
            input: None,
        }
    }

    /// The framed message.
    pub(super) fn encode(&self) -> Result<Vec<u8>, LaunchFailure> {
        let mut message = vec![0; 4];
        serde_json::to_writer(&mut message, self)
            .map_err(|error| LaunchFailure::new(format!("cannot write the launch message: {error}")))?;
        let length = message.len() - 4;
        let framed = u32::try_from(length)
            .ok()
            .filter(|_| length <= LAUNCH_MESSAGE_MAX);
        let framed = framed.ok_or_else(|| {
            LaunchFailure::new(format!(
                "command and environment are too long: {length} bytes, at most {LAUNCH_MESSAGE_MAX}"
            ))
        })?;
        message[..4].copy_from_slice(&framed.to_le_bytes());
        Ok(message)
    }
}

/// Values of the environment may be secrets: only its keys are shown. So is what stands on standard input.
impl fmt::Debug for LaunchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchSpec")
            .field("program", &self.program)
            .field("cwd", &self.cwd)
            .field("env", &self.env.iter().map(|(key, _)| key).collect::<Vec<_>>())
            .field("credentials", &self.credentials)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The command could not be started (code 127); nothing of it has run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LaunchFailure {
    pub message: String,
}

impl LaunchFailure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// The shim's answer when it could not become the command.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::worker) struct Refused {
    pub(in crate::worker) error: String,
    pub(in crate::worker) code: i32,
}

/// Reads the one message. `Ok(None)`: the stream ended before it was complete, so nobody wants a launch.
pub(in crate::worker) fn read_message(from: &mut impl Read) -> io::Result<Option<LaunchSpec>> {
    let mut length = [0; 4];
    let Some(()) = complete(from.read_exact(&mut length))? else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LAUNCH_MESSAGE_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("launch message of {length} bytes"),
        ));
    }
    let mut body = vec![0; length];
    let Some(()) = complete(from.read_exact(&mut body))? else {
        return Ok(None);
    };
    Ok(Some(serde_json::from_slice(&body)?))
}

fn complete(read: io::Result<()>) -> io::Result<Option<()>> {
    match read {
        Ok(()) => Ok(Some(())),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> LaunchSpec {
        let program = Program::Shell {
            shell: "/bin/sh".into(),
            script: "echo \"ü\"\n".to_owned(),
        };
        let mut spec = LaunchSpec::new(program, vec![("TOKEN".to_owned(), "hush".to_owned())]);
        spec.limits = vec![(Limit::OpenFiles, 64)];
        spec.credentials.groups = Some(vec![1, 2]);
        spec
    }

    #[test]
    fn a_message_comes_back_as_it_was() {
        let message = spec().encode().unwrap();
        assert_eq!(read_message(&mut message.as_slice()).unwrap(), Some(spec()));
    }

    #[test]
    fn a_message_that_breaks_off_is_no_message() {
        let message = spec().encode().unwrap();
        for length in [0, 1, 3, 4, 5, message.len() - 1] {
            assert_eq!(read_message(&mut &message[..length]).unwrap(), None, "{length}");
        }
    }

    #[test]
    fn nonsense_and_giants_are_refused() {
        assert!(read_message(&mut &[2, 0, 0, 0, b'{', b'!'][..]).is_err());
        assert!(read_message(&mut &u32::MAX.to_le_bytes()[..]).is_err());
        let mut giant = spec();
        giant.env.push(("X".to_owned(), "y".repeat(LAUNCH_MESSAGE_MAX)));
        assert!(giant.encode().unwrap_err().message.contains("too long"));
    }

    #[test]
    fn debug_keeps_secrets() {
        let text = format!("{:?}", spec());
        assert!(text.contains("TOKEN") && !text.contains("hush"), "{text}");
    }
}
