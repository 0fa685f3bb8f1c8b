//! Where attempt logs lie, and reading them by byte range. Their lines are written by the worker.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::error::StoreError;
use crate::words::ids::RunId;
use crate::words::names::StepRef;

/// The file of one attempt: `logs/<run>/<step>-<attempt>-<fence>.log`.
pub fn path_of(logs: &Path, run: RunId, step: &StepRef, number: u32, fence: u64) -> PathBuf {
    logs.join(run.to_string())
        .join(format!("{step}-{number}-{fence}.log"))
}

/// Where the files lie that an attempt's command exchanges with its step; what a killed daemon leaves goes with the run.
pub fn files_of(logs: &Path, run: RunId, step: &StepRef, number: u32, fence: u64) -> PathBuf {
    path_of(logs, run, step, number, fence).with_extension("files")
}

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPiece {
    /// Where it begins.
    pub start: u64,
    /// Bytes of the whole file now.
    pub size: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Reads up to `limit` bytes from `offset`; a negative offset counts from the end. A log that was never written is empty.
pub fn read(path: &Path, offset: i64, limit: u64) -> Result<LogPiece, StoreError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(LogPiece {
                start: 0,
                size: 0,
                bytes: Vec::new(),
            });
        }
        Err(error) => return Err(error.into()),
    };
    let size = file.metadata()?.len();
    let start = match u64::try_from(offset) {
        Ok(offset) => offset.min(size),
        Err(_) => size.saturating_sub(offset.unsigned_abs()),
    };
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(LogPiece { start, size, bytes })
}

/// Removes the logs of a run; nothing there is fine.
pub fn forget(logs: &Path, run: RunId) -> Result<(), StoreError> {
    match std::fs::remove_dir_all(logs.join(run.to_string())) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Bytes of all logs of a run.
pub fn bytes_of(logs: &Path, run: RunId) -> Result<u64, StoreError> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(logs.join(run.to_string()))? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

/// Runs that have a log folder.
pub fn runs_with_logs(logs: &Path) -> Result<Vec<RunId>, StoreError> {
    let mut runs = Vec::new();
    for entry in std::fs::read_dir(logs)? {
        if let Some(run) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            runs.push(run);
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_by_range_from_either_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_of(folder.path(), RunId([1; 16]), &StepRef::main(), 1, 7);
        assert_eq!(read(&path, 0, 10).unwrap().size, 0);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "0123456789").unwrap();
        let piece = |offset, limit| {
            let piece = read(&path, offset, limit).unwrap();
            (piece.start, piece.size, String::from_utf8(piece.bytes).unwrap())
        };
        assert_eq!(piece(2, 3), (2, 10, "234".to_owned()));
        assert_eq!(piece(-3, 100), (7, 10, "789".to_owned()));
        assert_eq!(piece(-30, 2), (0, 10, "01".to_owned()));
        assert_eq!(piece(99, 2), (10, 10, String::new()));
        assert_eq!(runs_with_logs(folder.path()).unwrap(), [RunId([1; 16])]);
        forget(folder.path(), RunId([1; 16])).unwrap();
        forget(folder.path(), RunId([1; 16])).unwrap();
        assert!(runs_with_logs(folder.path()).unwrap().is_empty());
    }
}
