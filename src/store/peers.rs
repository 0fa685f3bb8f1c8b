//! Other daemons of this state directory: one datagram says that something was committed, or that one wants in.
//!
//! A datagram carries nothing that matters: who misses it finds the same within a quarter of a second. The sockets stand
//! beside the life locks (`nodes/NAME.sock`) and are reached through an open folder, because the path of a socket is short.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::os::clock::boottime_ms;
use crate::words::limits;

/// What a datagram says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Look: something was committed.
    Committed,
    /// Look at `want.lock`: somebody wants in.
    Want,
}

impl Word {
    fn byte(self) -> u8 {
        match self {
            Word::Committed => b'c',
            Word::Want => b'w',
        }
    }
}

/// The sockets of the others.
#[derive(Debug)]
pub(super) struct Peers {
    /// The folder `nodes`; `None` where it is not there (a tool that opens a file alone).
    folder: Option<File>,
    mouth: Option<UnixDatagram>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    own: Option<String>,
    sockets: Vec<String>,
    looked_at: Option<u64>,
}

impl Peers {
    pub(super) fn of(directory: &Path) -> Peers {
        let mouth = UnixDatagram::unbound().ok().filter(|socket| {
            // Nobody waits for a peer that does not read.
            socket.set_nonblocking(true).is_ok()
        });
        Peers {
            folder: File::open(directory.join("nodes")).ok(),
            mouth,
            known: Mutex::default(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path_of(&self, name: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?.as_raw_fd();
        Some(PathBuf::from(format!("/proc/self/fd/{folder}/{name}")))
    }

    /// Binds this daemon's own socket. Its life lock is held, so what stands there is left over.
    pub(super) fn listen(&self, name: &str) -> std::io::Result<UnixDatagram> {
        let own = format!("{name}.sock");
        let path = self
            .path_of(&own)
            .ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))?;
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let socket = UnixDatagram::bind(&path)?;
        socket.set_read_timeout(Some(Duration::from_millis(limits::PEER_LOOK_MS)))?;
        self.lock().own = Some(own);
        Ok(socket)
    }

    /// Says a word to all others, waiting for nobody.
    pub(super) fn tell(&self, word: Word) {
        let Some(mouth) = &self.mouth else { return };
        let mut known = self.lock();
        let now = boottime_ms();
        if known
            .looked_at
            .is_none_or(|at| now.saturating_sub(at) >= limits::PEER_LIST_MS)
        {
            known.sockets = self.sockets(known.own.as_deref());
            known.looked_at = Some(now);
        }
        // A socket without a daemon behind it refuses: it is forgotten until the next look at the folder.
        known.sockets.retain(|name| {
            let sent = self.path_of(name).map(|path| mouth.send_to(&[word.byte()], path));
            match sent {
                Some(Ok(_)) => true,
                Some(Err(error)) => error.kind() == std::io::ErrorKind::WouldBlock,
                None => false,
            }
        });
    }

    fn sockets(&self, own: Option<&str>) -> Vec<String> {
        let Some(path) = self.path_of(".") else {
            return Vec::new();
        };
        let Ok(entries) = std::fs::read_dir(path) else {
            return Vec::new();
        };
        let names = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|name| name.strip_suffix(".sock").is_some() && Some(name.as_str()) != own)
            .collect()
    }
}

/// Waits for a word, or for the time of a look; takes all that wait.
pub(super) fn await_word(socket: &UnixDatagram) {
    let mut byte = [0; 1];
    if socket.recv(&mut byte).is_err() || socket.set_nonblocking(true).is_err() {
        return;
    }
    for _ in 0..limits::PEER_WORDS_MAX {
        if socket.recv(&mut byte).is_err() {
            break;
        }
    }
    drop(socket.set_nonblocking(false));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_reaches_every_living_peer_and_no_dead_one() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("nodes")).unwrap();
        let (a, b) = (Peers::of(folder.path()), Peers::of(folder.path()));
        let ear = a.listen("a").unwrap();
        let own = b.listen("b").unwrap();
        drop(UnixDatagram::bind(folder.path().join("nodes/dead.sock")).unwrap());
        b.tell(Word::Want);
        b.tell(Word::Committed);
        assert_eq!(b.lock().sockets, ["a.sock"]);
        await_word(&ear);
        ear.set_nonblocking(true).unwrap();
        assert!(ear.recv(&mut [0; 1]).is_err(), "both words were taken at once");
        own.set_nonblocking(true).unwrap();
        assert!(own.recv(&mut [0; 1]).is_err(), "nobody speaks to itself");
    }

    #[test]
    fn a_socket_that_was_left_over_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("nodes")).unwrap();
        let peers = Peers::of(folder.path());
        drop(peers.listen("a").unwrap());
        assert!(peers.listen("a").is_ok());
    }
}
