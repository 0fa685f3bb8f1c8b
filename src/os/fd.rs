//! File descriptors: the flags that matter over an `exec`, and the standard input of the shim.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_getfd, fcntl_setfd};

/// The descriptor is closed by `exec`.
pub fn is_cloexec(fd: impl AsFd) -> io::Result<bool> {
    Ok(fcntl_getfd(fd)?.contains(FdFlags::CLOEXEC))
}

/// Makes `exec` close the descriptor, or keep it.
pub fn set_cloexec(fd: impl AsFd, on: bool) -> io::Result<()> {
    let flags = fcntl_getfd(fd.as_fd())?;
    let wanted = if on {
        flags | FdFlags::CLOEXEC
    } else {
        flags - FdFlags::CLOEXEC
    };
    Ok(fcntl_setfd(fd, wanted)?)
}

/// A second descriptor of the same open file, number 3 or higher, closed by `exec`.
pub fn duplicate_above_stdio(fd: impl AsFd) -> io::Result<OwnedFd> {
    Ok(fcntl_dupfd_cloexec(fd, 3)?)
}

/// Puts /dev/null on descriptor 0.
pub fn null_to_stdin() -> io::Result<()> {
    let null = File::open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdin(&null)?)
}

/// Puts a file without a name that holds `text` on descriptor 0, to be read from its beginning.
pub fn text_to_stdin(text: &str) -> io::Result<()> {
    let mut file = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(rustix::stdio::dup2_stdin(&file)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cloexec_is_seen_and_set() {
        let file = File::open("/dev/null").unwrap();
        assert!(is_cloexec(&file).unwrap());
        set_cloexec(&file, false).unwrap();
        assert!(!is_cloexec(&file).unwrap());
        let copy = duplicate_above_stdio(&file).unwrap();
        assert!(is_cloexec(&copy).unwrap());
        set_cloexec(&file, true).unwrap();
        assert!(is_cloexec(&file).unwrap());
    }
}
