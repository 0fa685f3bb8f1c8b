//! Reading both streams of a command as they come, and handing them on as records.
//!
//! Memory is bounded whatever the command prints: one read of at most 64 KiB and less than 64 KiB of waiting line for each
//! stream. A slow sink makes the command wait; nothing is dropped here.

use std::io;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::record::Stream;
use super::split::Splitter;

/// One read.
const READ_MAX: usize = 64 * 1024;
/// A line without its end is shown after this time.
const FLUSH_AFTER: Duration = Duration::from_millis(200);
/// What may still lie in a pipe when we are told to stop; more comes from a writer that does not stop.
const DRAIN_READS_MAX: usize = 16;

/// Read ends of both streams of a command.
#[derive(Debug)]
pub struct Output {
    pub stdout: Receiver,
    pub stderr: Receiver,
}

/// Takes records, always whole ones. Must not fail: what it cannot keep it counts.
pub trait OutputSink: Send {
    fn write(&mut self, tagged: &[u8]) -> impl Future<Output = ()> + Send;
}

/// Both get everything.
impl<A: OutputSink, B: OutputSink> OutputSink for (A, B) {
    async fn write(&mut self, tagged: &[u8]) {
        self.0.write(tagged).await;
        self.1.write(tagged).await;
    }
}

/// Changes the bytes of a stream before they are cut into records (masking of secrets).
pub trait OutputFilter: Send {
    /// Appends to `out` what may be shown; may hold back bytes until it has seen what follows.
    fn pass(&mut self, stream: Stream, bytes: &[u8], out: &mut Vec<u8>);
    /// The stream has ended: appends what was held back.
    fn end(&mut self, stream: Stream, out: &mut Vec<u8>);
}

/// Leaves everything as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFilter;

impl OutputFilter for NoFilter {
    fn pass(&mut self, _: Stream, bytes: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(bytes);
    }
    fn end(&mut self, _: Stream, _: &mut Vec<u8>) {}
}

/// What went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PumpReport {
    /// Bytes, after the filter.
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    /// A pipe was still open when we were told to stop.
    pub closed_early: bool,
}

/// Reads until both streams end, or `stop` is cancelled; then closes them.
pub async fn pump<S: OutputSink, F: OutputFilter>(
    output: Output,
    filter: &mut F,
    sink: &mut S,
    stop: &CancellationToken,
) -> PumpReport {
    let mut sides = [
        Side::new(output.stdout, Stream::Stdout),
        Side::new(output.stderr, Stream::Stderr),
    ];
    let mut work = Work {
        filter,
        read: vec![0; READ_MAX],
        shown: Vec::new(),
        records: Vec::new(),
    };
    let mut flush_at: Option<Instant> = None;
    let mut closed_early = false;
    while sides.iter().any(Side::is_open) {
        let [stdout, stderr] = &mut sides;
        tokio::select! {
            () = stop.cancelled() => {
                closed_early = true;
                work.drain(stdout);
                work.drain(stderr);
            }
            () = stdout.readable(), if stdout.is_open() => work.read_once(stdout),
            () = stderr.readable(), if stderr.is_open() => work.read_once(stderr),
            () = sleep_until(flush_at), if flush_at.is_some() => {
                stdout.splitter.flush(&mut work.records);
                stderr.splitter.flush(&mut work.records);
            }
        }
        if work.records.is_empty() {
            // Only held back bytes, or a false alarm.
        } else {
            sink.write(&work.records).await;
            work.records.clear();
        }
        let pending = sides.iter().any(|side| side.splitter.is_pending());
        flush_at = pending.then(|| {
            flush_at
                .filter(|at| *at > Instant::now())
                .unwrap_or_else(next_flush)
        });
    }
    let [stdout, stderr] = &sides;
    PumpReport {
        stdout_bytes: stdout.splitter.seen(),
        stderr_bytes: stderr.splitter.seen(),
        closed_early,
    }
}

/// Gives a pump `grace` to reach the end of both streams after its group has ended, then makes it close them: a child
/// that left the group may hold them open for ever. `None` if the task panicked.
pub async fn close_after<T>(mut task: JoinHandle<T>, stop: &CancellationToken, grace: Duration) -> Option<T> {
    if let Ok(done) = tokio::time::timeout(grace, &mut task).await {
        return done.ok();
    }
    stop.cancel();
    task.await.ok()
}

fn next_flush() -> Instant {
    Instant::now() + FLUSH_AFTER
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}

/// One stream: its pipe until it ends, and its unfinished line.
struct Side {
    pipe: Option<Receiver>,
    stream: Stream,
    splitter: Splitter,
}

impl Side {
    fn new(pipe: Receiver, stream: Stream) -> Self {
        Self {
            pipe: Some(pipe),
            stream,
            splitter: Splitter::new(stream),
        }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    async fn readable(&self) {
        if let Some(pipe) = &self.pipe {
            // An error shows again in the read.
            let _ready = pipe.readable().await;
        }
    }
}

/// What a read left behind.
#[derive(PartialEq, Eq)]
enum After {
    More,
    Nothing,
    Closed,
}

/// Buffers shared by both streams.
struct Work<'a, F> {
    filter: &'a mut F,
    read: Vec<u8>,
    shown: Vec<u8>,
    /// Records to be written.
    records: Vec<u8>,
}

impl<F: OutputFilter> Work<'_, F> {
    fn read_once(&mut self, side: &mut Side) {
        if self.try_read(side) == After::Closed {
            self.close(side);
        }
    }

    /// Reads what is there, not more than a pipe holds, and closes.
    fn drain(&mut self, side: &mut Side) {
        for _ in 0..DRAIN_READS_MAX {
            if !side.is_open() || self.try_read(side) != After::More {
                break;
            }
        }
        self.close(side);
    }

    fn try_read(&mut self, side: &mut Side) -> After {
        let Some(pipe) = &side.pipe else {
            return After::Closed;
        };
        match pipe.try_read(&mut self.read) {
            Ok(0) => After::Closed,
            Ok(length) => {
                self.shown.clear();
                self.filter
                    .pass(side.stream, &self.read[..length], &mut self.shown);
                side.splitter.feed(&self.shown, &mut self.records);
                After::More
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                After::Nothing
            }
            Err(_) => After::Closed,
        }
    }

    fn close(&mut self, side: &mut Side) {
        if side.pipe.take().is_some() {
            self.shown.clear();
            self.filter.end(side.stream, &mut self.shown);
            side.splitter.feed(&self.shown, &mut self.records);
            side.splitter.flush(&mut self.records);
        }
    }
}
