//! The composition root: opens the state directory, wires the engines, starts, drains and stops them.
//!
//! The only place that knows all engines. It does not know the faces: whoever serves HTTP is given the parts.

mod book;
mod identity;
mod open;
mod run;
mod schedule_check;
mod secret_check;

pub use book::{book_of, definitions_of, schedule_of};
pub use open::{Daemon, OpenError};
pub use run::{Drained, Loops};
pub use schedule_check::Schedules;
pub use secret_check::short_secrets;
