//! Waiting for something to become true: the only sleep of the tests.

#![allow(
    clippy::disallowed_methods,
    reason = "polling from outside has no event to wait for"
)]

use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for what should come soon, on a slow and busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Asks `probe` until it answers; `None` when `timeout` has passed. It is asked at least once, and once more at the end.
pub(crate) fn wait_until<T>(timeout: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Deadline::after(timeout);
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        let left = deadline.left();
        if left.is_zero() {
            return None;
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// A moment after which waiting is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(timeout: Duration) -> Deadline {
        Deadline(Instant::now() + timeout)
    }

    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}
