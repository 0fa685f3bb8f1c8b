//! Bundles: one declarative document of all that is declared for routing. Objects are written by name; what differs from what
//! there is becomes changes, and changes become rows. Pure: the rows are read before and written after.
//!
//! `document` is what is written, `topology` what there is; `names` translates ids and back; `plan` is what the one makes of
//! the other, object by object in `planning` and `pruning`; `trials` runs the tests of a document over what there would be; `yaml` writes.
//! `standing` is what a daemon does that keeps one in force.

mod document;
mod names;
mod plan;
mod planning;
mod pruning;
mod standing;
#[cfg(test)]
mod tests;
mod topology;
mod trials;
mod yaml;

pub use document::{Document, Expectation, Test};
pub use names::names_trait;
pub use plan::{Action, Change, Plan, Write, plan};
pub use standing::{Facts, Step, step};
pub use topology::{Declared, Topology};
pub use trials::{Tested, failing, run};
pub use yaml::text as yaml;
