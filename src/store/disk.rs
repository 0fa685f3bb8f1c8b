//! What the store stands on. The product opens a file, and begins a file anew whose making was cut short; a test puts a
//! simulated disk there through the face [`Disk`].

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::Arc;

use redb::{BackendError, Database, StorageBackend};

use super::error::StoreError;

/// A simulated disk with one file on it.
pub trait Disk: Debug + Send + Sync {
    /// A handle of its own, with locks of its own, as another process would get one.
    fn attach(&self) -> Box<dyn DiskHandle>;
    /// The bytes that the file is said to have: what a commit writes depends on it.
    fn said_bytes(&self) -> u64;
}

/// One opening of the file.
pub trait DiskHandle: Debug + Send + Sync {
    /// The file's length.
    fn length(&self) -> io::Result<u64>;
    /// Fills `out` from `offset` on.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
    /// Writes `data` at `offset`.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Cuts or lengthens the file; what is new is zero.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Returns when everything written before is safe from a loss of power.
    fn sync(&self) -> io::Result<()>;
    /// Takes a lock on a range of bytes; false if it is refused, which it never is for one that waits.
    fn lock(&self, range: Range<u64>, how: LockWish) -> io::Result<bool>;
    /// Gives back a lock of exactly this range.
    fn unlock(&self, range: Range<u64>) -> io::Result<()>;
    /// True if another handle has a lock on any of these bytes.
    fn is_locked(&self, range: Range<u64>) -> io::Result<bool>;
    /// Gives back all locks.
    fn close(&self) -> io::Result<()>;
}

/// What lock is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockWish {
    /// Nobody else may have one.
    pub alone: bool,
    /// Wait until nobody is in the way.
    pub waits: bool,
}

/// The first bytes of every file of redb. They are written last when a file is made.
const MAGIC: &[u8; 9] = b"redb\x1a\x0a\xa9\x0d\x0a";

/// True for the beginning of a file whose making was cut short: it has a length, and its magic number is not there yet.
fn is_unfinished(beginning: &[u8]) -> bool {
    let complete = beginning.len() >= MAGIC.len() && beginning.starts_with(MAGIC);
    let mut pairs = beginning.iter().zip(MAGIC);
    !complete && pairs.all(|(byte, magic)| *byte == 0 || byte == magic)
}

/// A first start that was cut short leaves a file that redb neither reads nor replaces. Nothing was ever in it, so it is
/// emptied, to be made anew. The caller keeps other daemons out (`want.lock`).
pub(super) fn clear_unfinished(path: &Path) -> io::Result<()> {
    let Ok(mut file) = File::options().read(true).write(true).open(path) else {
        return Ok(());
    };
    let mut beginning = Vec::new();
    file.by_ref()
        .take(MAGIC.len() as u64)
        .read_to_end(&mut beginning)?;
    if !beginning.is_empty() && is_unfinished(&beginning) {
        tracing::warn!(path = %path.display(), "the store file was never finished; it is made anew");
        file.set_len(0)?;
    }
    Ok(())
}

/// Opens a simulated disk as a file would be opened.
pub(super) fn open(disk: &Arc<dyn Disk>, builder: &redb::Builder) -> Result<Database, StoreError> {
    let handle = disk.attach();
    let length = handle.length()?;
    let mut beginning = vec![0; MAGIC.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    handle.read(0, &mut beginning)?;
    if length > 0 && is_unfinished(&beginning) {
        handle.set_length(0)?;
    }
    Ok(builder.create_with_backend(Attached(handle))?)
}

#[derive(Debug)]
struct Attached(Box<dyn DiskHandle>);

impl Attached {
    fn take(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
        alone: bool,
        waits: bool,
    ) -> Result<bool, BackendError> {
        Ok(self.0.lock(range_of(start, end), LockWish { alone, waits })?)
    }
}

fn range_of(start: Bound<u64>, end: Bound<u64>) -> Range<u64> {
    let start = match start {
        Bound::Included(at) => at,
        Bound::Excluded(at) => at.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match end {
        Bound::Included(at) => at.saturating_add(1),
        Bound::Excluded(at) => at,
        Bound::Unbounded => u64::MAX,
    };
    start..end
}

impl StorageBackend for Attached {
    fn len(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_length(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.take(start, end, true, false)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.take(start, end, false, false)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.take(start, end, true, true).map(drop)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.take(start, end, false, true).map(drop)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        Ok(self.0.unlock(range_of(start, end))?)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        Ok(self.0.is_locked(range_of(start, end))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_being_made_is_told_from_others() {
        assert!(is_unfinished(&[0; 9]) && is_unfinished(b"") && is_unfinished(&[0; 4]));
        assert!(is_unfinished(b"redb\0\0\0\0\0") && is_unfinished(b"redb"));
        assert!(!is_unfinished(MAGIC) && !is_unfinished(b"redb\x1a\x0a\xa9\x0d\x0a\x03"));
        assert!(!is_unfinished(b"SQLite fo") && !is_unfinished(b"\0\0\0\0\0\0\0\0x"));
    }

    #[test]
    fn a_first_start_that_was_cut_short_is_made_again() {
        use crate::store::{Store, StoreOptions};
        use crate::words::time::SystemClock;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ductor.redb");
        let open = |create: bool| {
            let options = StoreOptions {
                create,
                ..StoreOptions::in_directory(folder.path())
            };
            Store::open(options, Arc::new(SystemClock)).map(drop)
        };
        // Where daemons have been at work, nothing is replaced.
        for (bytes, create) in [(vec![0; 1 << 20], false), (b"somebody's text".to_vec(), true)] {
            std::fs::write(&path, &bytes).unwrap();
            open(create).unwrap_err();
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
        std::fs::write(&path, vec![0; 1 << 20]).unwrap();
        open(true).unwrap();
        open(false).unwrap();
    }

    #[test]
    fn bounds_become_ranges() {
        assert_eq!(range_of(Bound::Unbounded, Bound::Unbounded), 0..u64::MAX);
        assert_eq!(range_of(Bound::Included(3), Bound::Included(3)), 3..4);
        assert_eq!(range_of(Bound::Excluded(3), Bound::Excluded(9)), 4..9);
    }
}
