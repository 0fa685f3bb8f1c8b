//! Threads for the large checks of a decision.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::domain::routing::crew::{Crew, Part};

/// Threads for one check: more are of no use to a decision that others wait behind.
const HANDS_MAX: usize = 8;

/// As many threads as there are processors; they end with the check.
pub struct Threads;

impl Crew for Threads {
    fn hands(&self) -> usize {
        thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(HANDS_MAX)
    }

    fn run(&self, parts: Vec<Part<'_>>) {
        let others = parts.len().saturating_sub(1);
        let left = Mutex::new(parts);
        let work = || {
            loop {
                let part = left.lock().unwrap_or_else(PoisonError::into_inner).pop();
                match part {
                    Some(part) => part(),
                    None => break,
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..others {
                // Without another thread this one does it all.
                let builder = thread::Builder::new().name("check".to_owned());
                drop(builder.spawn_scoped(scope, work));
            }
            work();
        });
    }
}
