//! What became of due moments, in words: why a job ran or did not run at a time, and which moment nothing is known of.
//!
//! Pure functions over what rows say. Not here: which moments are due (`schedule`), and who fires them.

mod overdue;
mod skip;
mod why;

#[cfg(test)]
mod why_tests;

pub use overdue::overdue;
pub use skip::{skip_text, skipped_run_code};
pub use why::{Answer, Life, Question, Seen, SeenFire, SeenRun, why};
