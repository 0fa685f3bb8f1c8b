//! What can go wrong in the store, in words that a log can carry.

use std::sync::Arc;

/// A failed read or write. Cheap to clone, because a whole batch may fail for one cause.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The file system or redb refused: the text is the cause, without a path.
    #[error("{0}")]
    Io(Arc<str>),
    /// No space is left for data or for files.
    #[error("no space left on the device")]
    NoSpace,
    /// One row cannot be understood: damage, or a newer version wrote it.
    #[error("row {key} of table {table} cannot be read: {cause}")]
    Unreadable {
        /// The table.
        table: &'static str,
        /// The key in hex digits.
        key: String,
        /// What was wrong.
        cause: String,
    },
    /// The store is not open (starting, reopening after a fault, or stopping).
    #[error("the store is not open")]
    NotOpen,
    /// Too many operations wait for the writer.
    #[error("{0} operations wait for the store already")]
    Overloaded(usize),
    /// The file that is open is no longer the one at its place: somebody deleted or replaced the state directory.
    #[error("the store file is no longer in the state directory; nothing new is accepted until it is back")]
    Moved,
    /// The life lock of this daemon is no longer at its place: others take it for dead.
    #[error(
        "the life lock of this daemon was deleted or replaced, so others take it for dead; nothing new is accepted, restart it"
    )]
    LifeLockGone,
    /// The state directory was used and its store file is gone.
    #[error(
        "the store file is missing or empty although this state directory was used; put it back, or choose an empty directory"
    )]
    Missing,
    /// Another process has the file open.
    #[error("the store file is in use by another process")]
    InUse,
    /// Another daemon has been in the middle of a transaction for too long: it is stopped, or its disk hangs.
    #[error("another daemon holds the store in the middle of a transaction; is it stopped?")]
    Held,
    /// The file was written by a newer ductor.
    #[error("the state directory has format {found}; this ductor reads up to {known}: use the newer version")]
    TooNew {
        /// The number in the file.
        found: u32,
        /// The newest that this binary knows.
        known: u32,
    },
}

impl StoreError {
    /// Wraps any error of the file system or of redb.
    pub(super) fn io(error: &dyn std::fmt::Display) -> StoreError {
        StoreError::Io(Arc::from(error.to_string()))
    }

    /// True for a fault of single rows, false for one of the whole store.
    pub fn is_row_fault(&self) -> bool {
        matches!(self, StoreError::Unreadable { .. })
    }
}

impl From<std::io::Error> for StoreError {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a foreign list that grows; everything else is an I/O fault"
    )]
    fn from(error: std::io::Error) -> StoreError {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => StoreError::NoSpace,
            _ => StoreError::io(&error),
        }
    }
}

impl From<redb::StorageError> for StoreError {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a foreign list that grows; everything else is an I/O fault"
    )]
    fn from(error: redb::StorageError) -> StoreError {
        match error {
            redb::StorageError::Io(cause) => StoreError::from(cause),
            redb::StorageError::DatabaseClosed => StoreError::NotOpen,
            other => StoreError::io(&other),
        }
    }
}

impl From<redb::TableError> for StoreError {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a foreign list that grows; everything else is an I/O fault"
    )]
    fn from(error: redb::TableError) -> StoreError {
        match error {
            redb::TableError::Storage(cause) => StoreError::from(cause),
            other => StoreError::io(&other),
        }
    }
}

impl From<redb::TransactionError> for StoreError {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a foreign list that grows; everything else is an I/O fault"
    )]
    fn from(error: redb::TransactionError) -> StoreError {
        match error {
            redb::TransactionError::Storage(cause) => StoreError::from(cause),
            other => StoreError::io(&other),
        }
    }
}

impl From<redb::CommitError> for StoreError {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a foreign list that grows; everything else is an I/O fault"
    )]
    fn from(error: redb::CommitError) -> StoreError {
        match error {
            redb::CommitError::Storage(cause) => StoreError::from(cause),
            other => StoreError::io(&other),
        }
    }
}

impl From<redb::DatabaseError> for StoreError {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a foreign list that grows; everything else is an I/O fault"
    )]
    fn from(error: redb::DatabaseError) -> StoreError {
        match error {
            redb::DatabaseError::DatabaseAlreadyOpen => StoreError::InUse,
            redb::DatabaseError::Storage(cause) => StoreError::from(cause),
            other => StoreError::io(&other),
        }
    }
}

/// Why a change has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ChangeError {
    /// It was withdrawn while it waited for the writer: it was not applied and never will be.
    #[error("the operation exceeded its time before it began; nothing was changed")]
    Withdrawn,
    /// It was taken into a transaction whose result did not come in time: it may or may not be applied.
    #[error("the disk did not answer in time; the outcome is unknown")]
    Unknown,
    /// It failed and was not applied.
    #[error(transparent)]
    Failed(#[from] StoreError),
    /// A defect: the change panicked and was not applied.
    #[error("internal defect in change {0}")]
    Panicked(&'static str),
}
