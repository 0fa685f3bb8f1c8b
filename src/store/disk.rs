//! A disk that is not a file: the face through which a test puts a simulated one under the store. The product opens files.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, Range};
use std::sync::Arc;

use redb::{BackendError, Database, StorageBackend};

use super::error::StoreError;

/// A simulated disk with one file on it.
pub trait Disk: Debug + Send + Sync {
    /// A handle of its own, with locks of its own, as another process would get one.
    fn attach(&self) -> Box<dyn DiskHandle>;
    /// Several daemons have the file open.
    fn is_shared(&self) -> bool;
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

/// How much of a file [`is_unfinished`] wants to see.
pub(super) const BEGINNING: u64 = MAGIC.len() as u64;

/// True for the beginning of a file whose making was cut short: it has a length, and its magic number is not there yet.
pub(super) fn is_unfinished(beginning: &[u8]) -> bool {
    let complete = beginning.len() >= MAGIC.len() && beginning.starts_with(MAGIC);
    let mut pairs = beginning.iter().zip(MAGIC);
    !complete && pairs.all(|(byte, magic)| *byte == 0 || byte == magic)
}

/// Opens a simulated disk as a file would be opened.
pub(super) fn open(disk: &Arc<dyn Disk>, builder: &mut redb::Builder) -> Result<Database, StoreError> {
    let handle = disk.attach();
    let length = handle.length()?;
    let mut beginning = vec![0; MAGIC.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    handle.read(0, &mut beginning)?;
    if length > 0 && is_unfinished(&beginning) {
        handle.set_length(0)?;
    }
    if disk.is_shared() {
        builder.set_concurrency_mode(redb::ConcurrencyMode::MultiWriter);
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
    fn bounds_become_ranges() {
        assert_eq!(range_of(Bound::Unbounded, Bound::Unbounded), 0..u64::MAX);
        assert_eq!(range_of(Bound::Included(3), Bound::Included(3)), 3..4);
        assert_eq!(range_of(Bound::Excluded(3), Bound::Excluded(9)), 4..9);
    }
}
