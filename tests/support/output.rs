//! The lines a child writes, collected as they come; waited for with a condition variable.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::wait::Deadline;

/// Both streams of one child; clones share the lines.
#[derive(Clone, Default)]
pub(crate) struct Output(Arc<Shared>);

#[derive(Default)]
struct Shared {
    lines: Mutex<Lines>,
    news: Condvar,
}

#[derive(Default)]
struct Lines {
    stdout: Vec<String>,
    stderr: Vec<String>,
    /// Streams that have not ended.
    open: usize,
}

impl Output {
    /// Starts to read a child's streams, each on a thread of its own that ends with the stream.
    pub(crate) fn collect(stdout: impl Read + Send + 'static, stderr: impl Read + Send + 'static) -> Output {
        let output = Output::default();
        output.lock().open = 2;
        output.read(stdout, |lines| &mut lines.stdout);
        output.read(stderr, |lines| &mut lines.stderr);
        output
    }

    fn read(&self, stream: impl Read + Send + 'static, side: fn(&mut Lines) -> &mut Vec<String>) {
        let output = self.clone();
        thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut bytes = Vec::new();
            while reader.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
                let line = String::from_utf8_lossy(&bytes)
                    .trim_end_matches(['\r', '\n'])
                    .to_owned();
                bytes.clear();
                side(&mut output.lock()).push(line);
                output.0.news.notify_all();
            }
            output.lock().open -= 1;
            output.0.news.notify_all();
        });
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stdout(&self) -> Vec<String> {
        self.lock().stdout.clone()
    }

    pub(crate) fn stderr(&self) -> Vec<String> {
        self.lock().stderr.clone()
    }

    /// How many lines of either stream contain `text`.
    pub(crate) fn count(&self, text: &str) -> usize {
        let lines = self.lock();
        lines
            .stdout
            .iter()
            .chain(&lines.stderr)
            .filter(|line| line.contains(text))
            .count()
    }

    /// The first line of either stream that contains `text`, also one that came before the call; `None` at the timeout or when
    /// both streams have ended.
    pub(crate) fn wait_for(&self, text: &str, timeout: Duration) -> Option<String> {
        self.wait(timeout, |stdout, stderr| {
            stdout
                .iter()
                .chain(stderr)
                .find(|line| line.contains(text))
                .cloned()
        })
    }

    /// The same for standard output only and any test of a line.
    pub(crate) fn wait_stdout<T>(&self, timeout: Duration, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.wait(timeout, |stdout, _| stdout.iter().find_map(|line| find(line)))
    }

    /// True when both streams have ended within the timeout. A grandchild that holds them keeps them open.
    pub(crate) fn wait_end(&self, timeout: Duration) -> bool {
        let deadline = Deadline::after(timeout);
        let mut lines = self.lock();
        while lines.open > 0 && !deadline.left().is_zero() {
            lines = self.next(lines, deadline);
        }
        lines.open == 0
    }

    fn wait<T>(&self, timeout: Duration, find: impl Fn(&[String], &[String]) -> Option<T>) -> Option<T> {
        let deadline = Deadline::after(timeout);
        let mut lines = self.lock();
        loop {
            let found = find(&lines.stdout, &lines.stderr);
            if found.is_some() || lines.open == 0 || deadline.left().is_zero() {
                return found;
            }
            lines = self.next(lines, deadline);
        }
    }

    fn next<'a>(&self, lines: MutexGuard<'a, Lines>, deadline: Deadline) -> MutexGuard<'a, Lines> {
        let waited = self.0.news.wait_timeout(lines, deadline.left());
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Both streams, for the message of a failed test.
impl fmt::Display for Output {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lock();
        for line in &lines.stdout {
            writeln!(out, "  out | {line}")?;
        }
        for line in &lines.stderr {
            writeln!(out, "  err | {line}")?;
        }
        Ok(())
    }
}
