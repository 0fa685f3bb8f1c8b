//! From posted JSON to a [`Document`](super::document::Document): every key known, every word one of its list, every
//! default filled in, and ALL that is wrong said at once.
//!
//! `fields` reads single values, `document` the top, `step` what all steps have, `coordinator`, `worker` and `command` the
//! arguments of each type. A value that is wrong is a finding and is read as something harmless, so that what else is
//! wrong can be found behind it. What steps are to each other is judged in `check`.

mod command;
mod coordinator;
mod document;
mod fields;
mod step;
mod worker;

#[cfg(test)]
pub(super) mod tests;

pub use document::{Reading, read, slug_of};
