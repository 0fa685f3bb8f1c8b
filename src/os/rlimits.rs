//! Resource limits of this process, set by the shim on itself just before it becomes the command.

use std::fmt;
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// The limits a job may name. The words of [`fmt::Display`] are those of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Limit {
    /// Seconds of processor time.
    CpuSeconds,
    /// Bytes of address space.
    Memory,
    /// Processes and threads of the user.
    Processes,
    /// Highest file descriptor + 1.
    OpenFiles,
    /// Bytes of one written file.
    FileSize,
    /// Bytes of a core file.
    Core,
}

impl Limit {
    fn resource(self) -> Resource {
        match self {
            Self::CpuSeconds => Resource::Cpu,
            Self::Memory => Resource::As,
            Self::Processes => Resource::Nproc,
            Self::OpenFiles => Resource::Nofile,
            Self::FileSize => Resource::Fsize,
            Self::Core => Resource::Core,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CpuSeconds => "cpuSeconds",
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::OpenFiles => "openFiles",
            Self::FileSize => "fileSize",
            Self::Core => "core",
        })
    }
}

/// Sets soft and hard limit of this process to `value`. Raising a hard limit needs privilege.
pub fn set(limit: Limit, value: u64) -> io::Result<()> {
    let both = Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    Ok(setrlimit(limit.resource(), both)?)
}

/// Soft and hard limit of this process; `None` = unlimited.
pub fn get(limit: Limit) -> (Option<u64>, Option<u64>) {
    let both = getrlimit(limit.resource());
    (both.current, both.maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_on_the_wire_are_those_of_the_configuration() {
        for limit in [
            Limit::CpuSeconds,
            Limit::Memory,
            Limit::Processes,
            Limit::OpenFiles,
            Limit::FileSize,
            Limit::Core,
        ] {
            assert_eq!(serde_json::to_string(&limit).unwrap(), format!("\"{limit}\""));
        }
    }

    #[test]
    fn soft_is_not_above_hard() {
        let (soft, hard) = get(Limit::OpenFiles);
        assert!(soft.unwrap_or(u64::MAX) <= hard.unwrap_or(u64::MAX));
    }
}
