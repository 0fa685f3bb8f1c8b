//! When the disk of the state directory has too little room for new runs, and when it has enough again.
//!
//! What runs already goes on, and so does everything that makes room. Between "too little" and "enough again" there is a gap,
//! so that a disk at its limit does not begin a run with each file that is removed.

use crate::words::limits;

/// Why no new run begins; without the place of the directory, which is nobody's business over the network.
pub const NO_ROOM: &str = "the disk of the state directory has too little room: no new run begins until some is free (state.lowDiskBytes)";

/// What is left on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that may still be written.
    pub free_bytes: u64,
    /// All of them.
    pub total_bytes: u64,
    /// Files that may still be made; `None` where there is no such limit.
    pub free_files: Option<u64>,
}

/// What there is too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// Bytes.
    Bytes,
    /// Files (inodes).
    Files,
}

/// The free bytes at which there is enough again.
pub fn enough_bytes(low_bytes: u64) -> u64 {
    low_bytes.saturating_add(low_bytes / 8)
}

/// What is lacking now, when `before` was lacking at the look before. With a `low_bytes` of 0 nothing ever is.
pub fn lack(room: &Room, low_bytes: u64, before: Option<Lack>) -> Option<Lack> {
    if low_bytes == 0 {
        return None;
    }
    let wanted_bytes = if before == Some(Lack::Bytes) {
        enough_bytes(low_bytes)
    } else {
        low_bytes
    };
    if room.free_bytes < wanted_bytes {
        return Some(Lack::Bytes);
    }
    let wanted_files = if before == Some(Lack::Files) {
        limits::LOW_FILES * 2
    } else {
        limits::LOW_FILES
    };
    (room.free_files? < wanted_files).then_some(Lack::Files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(free_bytes: u64, free_files: u64) -> Room {
        Room {
            free_bytes,
            total_bytes: 1_000_000,
            free_files: Some(free_files),
        }
    }

    #[test]
    fn a_disk_at_its_limit_does_not_flap() {
        let mut lacking = None;
        let mut look = |free| {
            lacking = lack(&room(free, u64::MAX), 800, lacking);
            lacking
        };
        assert_eq!(look(800), None);
        assert_eq!(look(799), Some(Lack::Bytes));
        assert_eq!(look(850), Some(Lack::Bytes), "a little more is not enough");
        assert_eq!(look(899), Some(Lack::Bytes));
        assert_eq!(look(900), None);
        assert_eq!(look(850), None, "and a little less is not too little");
    }

    #[test]
    fn files_may_run_out_before_bytes_do() {
        let full = room(u64::MAX, limits::LOW_FILES - 1);
        assert_eq!(lack(&full, 1, None), Some(Lack::Files));
        let some = room(u64::MAX, limits::LOW_FILES + 1);
        assert_eq!(lack(&some, 1, Some(Lack::Files)), Some(Lack::Files));
        assert_eq!(lack(&some, 1, None), None);
        assert_eq!(lack(&full, 0, None), None, "it is switched off");
        let unlimited = Room {
            free_files: None,
            ..full
        };
        assert_eq!(lack(&unlimited, 1, None), None);
    }
}
