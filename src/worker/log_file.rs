//! The log file of one attempt: the records of both streams, appended as they come.
//!
//! A log that cannot be written never fails its run. Beyond the limit, or after a write error, the last 1 MiB is kept in
//! memory and appended at the end, after a remark (tag `i`) that says how much is missing. The format of records is that of
//! `process/record.rs`. Not here: where logs lie, how they are served, when they are deleted.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::process::{OutputSink, Record, Tag};

/// Bytes of records kept for the end once the file is full.
const TAIL_MAX: usize = 1024 * 1024;

/// Writer of one log. A follower watches the size; when the sender is gone, the log is complete.
#[derive(Debug)]
pub struct LogWriter {
    log: Arc<Mutex<Log>>,
    size: watch::Sender<u64>,
}

/// What became of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogReport {
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of the command's output that are not in the file.
    pub missing_bytes: u64,
    /// The first write error, or why the file could not be made.
    pub error: Option<String>,
}

impl LogWriter {
    /// Makes the file (and its folder), readable by its owner only. An existing one is continued: one (attempt, fence)
    /// has one file. Never fails: what goes wrong is in the report. Blocks for the time of an `open`.
    pub fn create(path: &Path, log_bytes_max: u64) -> Self {
        let mut log = Log {
            bytes_max: log_bytes_max,
            ..Log::default()
        };
        match open(path) {
            Ok((file, size)) => {
                log.file = Some(file);
                log.size = size;
            }
            Err(error) => log.note_error(&error),
        }
        let (size, _) = watch::channel(log.size);
        Self {
            log: Arc::new(Mutex::new(log)),
            size,
        }
    }

    /// The size of the file, changed after each write.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.size.subscribe()
    }

    /// Bytes of output, and the error, as of now. What waits for the end counts as missing.
    pub fn report(&self) -> LogReport {
        lock(&self.log).report()
    }

    /// Appends a remark of ductor's own, one line.
    pub async fn remark(&mut self, text: &str) {
        let text: String = text
            .chars()
            .map(|letter| if letter == '\n' { ' ' } else { letter })
            .collect();
        let mut record = Vec::new();
        Record {
            tag: Tag::Remark,
            payload: text.as_bytes(),
        }
        .append_to(&mut record);
        self.write(&record).await;
    }

    /// Appends what was kept for the end.
    pub async fn finish(self) -> LogReport {
        if lock(&self.log).waits() {
            let log = Arc::clone(&self.log);
            self.blocking(move || lock(&log).finish()).await;
        }
        self.report()
    }

    /// File writes may block on a slow disk: not on a thread of the runtime.
    async fn blocking(&self, work: impl FnOnce() + Send + 'static) {
        if spawn_blocking(work).await.is_err() {
            lock(&self.log).note_error(&io::Error::other("the writer stopped"));
        }
        self.size.send_replace(lock(&self.log).size);
    }
}

impl OutputSink for LogWriter {
    async fn write(&mut self, tagged: &[u8]) {
        let in_memory = {
            let mut log = lock(&self.log);
            log.full && {
                log.keep(tagged);
                true
            }
        };
        if !in_memory {
            let (log, batch) = (Arc::clone(&self.log), tagged.to_vec());
            self.blocking(move || lock(&log).append(&batch)).await;
        }
    }
}

fn lock(log: &Mutex<Log>) -> std::sync::MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    let file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            options.open(path)?
        }
        other => other?,
    };
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// The file and what waits for its end. Invariant: the file ends with a whole record, or with what a failed write and a
/// failed truncation left there.
#[derive(Debug, Default)]
struct Log {
    file: Option<File>,
    size: u64,
    bytes_max: u64,
    /// The limit is reached or a write has failed: records go to `tail`.
    full: bool,
    tail: VecDeque<u8>,
    tail_output: u64,
    dropped: u64,
    error: Option<String>,
}

impl Log {
    fn append(&mut self, tagged: &[u8]) {
        let fits = self.fitting(tagged);
        let (now, later) = tagged.split_at(fits);
        if !now.is_empty() && !self.try_write(now) {
            self.keep(now);
        }
        if !later.is_empty() {
            self.full = true;
            self.keep(later);
        }
    }

    /// How many bytes, in whole records, fit under the limit.
    fn fitting(&self, tagged: &[u8]) -> usize {
        let room = usize::try_from(self.bytes_max.saturating_sub(self.size)).unwrap_or(usize::MAX);
        if tagged.len() <= room {
            return tagged.len();
        }
        tagged[..room]
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end + 1)
    }

    /// Writes all or, as far as it can, nothing.
    fn try_write(&mut self, bytes: &[u8]) -> bool {
        let Some(file) = &mut self.file else {
            return false;
        };
        match file.write_all(bytes) {
            Ok(()) => {
                self.size += u64::try_from(bytes.len()).unwrap_or(0);
                true
            }
            Err(error) => {
                // A part may be there; a later record must not be glued to it.
                let _best_effort = file.set_len(self.size);
                self.note_error(&error);
                false
            }
        }
    }

    fn note_error(&mut self, error: &io::Error) {
        self.full = true;
        self.error.get_or_insert_with(|| error.to_string());
    }

    /// Keeps records for the end; the oldest go when there are too many.
    fn keep(&mut self, tagged: &[u8]) {
        self.tail.extend(tagged);
        self.tail_output += output_of(tagged);
        let excess = self.tail.len().saturating_sub(TAIL_MAX);
        if excess == 0 {
            return;
        }
        let more = self
            .tail
            .iter()
            .skip(excess - 1)
            .position(|&byte| byte == b'\n')
            .unwrap_or(0);
        let gone: Vec<u8> = self.tail.drain(..excess + more).collect();
        let lost = output_of(&gone);
        self.tail_output -= lost;
        self.dropped += lost;
    }

    fn waits(&self) -> bool {
        !self.tail.is_empty() || self.dropped > 0
    }

    fn finish(&mut self) {
        let tail: Vec<u8> = std::mem::take(&mut self.tail).into();
        let mut end = Vec::with_capacity(tail.len() + 200);
        if self.dropped > 0 {
            let why = self.error.as_ref().map_or_else(
                || format!("the log is limited to {} bytes", self.bytes_max),
                |error| format!("the log could not be written: {error}"),
            );
            let text = format!("{} bytes of output are missing here ({why})", self.dropped);
            Record {
                tag: Tag::Remark,
                payload: text.as_bytes(),
            }
            .append_to(&mut end);
        }
        end.extend_from_slice(&tail);
        // Space may be free again.
        if self.try_write(&end) {
            self.tail_output = 0;
        }
    }

    fn report(&self) -> LogReport {
        LogReport {
            size: self.size,
            missing_bytes: self.dropped + self.tail_output,
            error: self.error.clone(),
        }
    }
}

fn output_of(tagged: &[u8]) -> u64 {
    super::process::records(tagged)
        .map(|record| record.output_len())
        .sum()
}
