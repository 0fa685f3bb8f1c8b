//! The room on the disk of the state directory, looked at once a second: with too little, no new run begins.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::disk::{self, Lack, Room};
use crate::os::disk::FileSystem;
use crate::os::failpoint;

/// What was found last. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct DiskWatch {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    room: Option<Room>,
    lack: Option<Lack>,
}

impl DiskWatch {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks. The file system may hang: call it where that is allowed.
    pub fn look(&self, root: &Path, low_bytes: u64) {
        let found = FileSystem::of(root).ok().map(|found| Room {
            free_bytes: failpoint::planned_free_bytes().unwrap_or(found.free_bytes),
            total_bytes: found.total_bytes,
            free_files: found.free_inodes,
        });
        self.note(found, low_bytes);
    }

    /// This is what there is; `None`: it cannot be looked at, and what was judged before stays.
    pub fn note(&self, room: Option<Room>, low_bytes: u64) {
        let mut seen = self.lock();
        seen.room = room;
        let Some(room) = room else { return };
        let before = seen.lack;
        seen.lack = disk::lack(&room, low_bytes, before);
        match (before, seen.lack) {
            (None, Some(lack)) => tracing::warn!(
                free_bytes = room.free_bytes,
                free_files = room.free_files,
                "the disk of the state directory has too few {}: no new run begins; what runs goes on",
                if lack == Lack::Bytes {
                    "bytes"
                } else {
                    "files (inodes)"
                }
            ),
            (Some(_), None) => tracing::info!(
                free_bytes = room.free_bytes,
                "the disk of the state directory has room again: runs begin"
            ),
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    /// What there is too little of.
    pub fn lack(&self) -> Option<Lack> {
        self.lock().lack
    }

    /// The room that was found last.
    pub fn room(&self) -> Option<Room> {
        self.lock().room
    }
}
