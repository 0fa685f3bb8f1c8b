//! Numbers of the store that metrics and the status show.

/// Upper bounds of the classes in which commits are counted by their time; a further class is for longer ones.
pub const COMMIT_BOUNDS_MS: [u64; 9] = [1, 2, 5, 10, 25, 100, 500, 2_000, 10_000];

/// Numbers that metrics show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Commits since the start.
    pub commits: u64,
    /// Changes in them.
    pub changes: u64,
    /// Milliseconds spent in commits.
    pub commit_ms: u64,
    /// Commits by their time, in the classes of [`COMMIT_BOUNDS_MS`].
    pub commits_by_time: [u64; COMMIT_BOUNDS_MS.len() + 1],
    /// Faults of the file.
    pub faults: u64,
    /// Requests that wait for the writer.
    pub waiting: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// How the file is open, in the words of `state.mode`.
    pub mode: &'static str,
}
