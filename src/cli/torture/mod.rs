//! `ductor torture`: the crash test on the disk of whoever asks, with the real binary and real processes.
//!
//! * `verb` is the command: arguments, header, end. `site` is the directory, `jobs` the configuration made in it.
//! * `plan` is pure: from a seed and the number of a round to deeds and their instants. What is random stands there.
//! * `round` does one round with the `fleet` (daemons as children) while `load` asks for work; `ledger` is what the clients
//!   were told, and `told` what a person reads.
//! * `step` is the command of all jobs. It is the oracle and knows no store: it holds kernel locks while it runs, so that two
//!   live copies of a run, or one slot too many, are found by the second one. `evidence` reads what steps wrote.
//! * `verdict` is pure: ledger, evidence and the audit of the store together, and every sentence that should not be.
//!
//! What it must never do: end, or signal, a process that it did not start.

mod args;
mod damage;
mod evidence;
mod fleet;
mod jobs;
mod ledger;
mod load;
mod plan;
mod round;
mod settle;
mod site;
mod step;
mod told;
mod verb;
mod verdict;

pub(super) use args::TortureArguments;
pub use step::{STEP_WORD, run_step};
pub(super) use verb::torture;
