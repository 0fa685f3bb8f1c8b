//! Routing: who or what gets a unit of work, and why each other one does not. Pure.
//!
//! `objects` is what people declare: recipient pools, recipients, rules, traits; `work` is what is routed; `live` is what a
//! recipient does now. `read` makes objects of JSON, `patch` changes what is set of them, `print` answers with them. `hours`
//! says when a recipient's windows are open.
//!
//! `pass` is one decision: what it is asked, the world that it reads, what must be written. `route` runs it from recipient
//! pool to recipient pool; `hop` goes through one: `gate` (nine checks in a fixed order), `select` (a `pipeline` of filters,
//! scores and a pick by one of the `strategies`), a fallback. Every candidate that leaves has a `reason`; together they are
//! the `explanation` of the `decision`. `snapshot` keeps what was read, from which `replay` gives the same again.
//!
//! `assignment`, `waiting` and `offer` are what a decision leaves behind and how each goes on; `charge` keeps the live numbers
//! that follow from assignments; `budget` and `sla` are the bounds on claims and the clocks on waiting and answering. `ask` reads
//! what is asked of a decision, `trial` tries a rule on invented work. `bundle` is all that
//! is declared as one document, and what such a document changes.

pub mod ask;
pub mod assignment;
pub mod budget;
pub mod bundle;
pub mod campaign;
pub mod candidate;
pub mod canonical;
pub mod capacity;
pub mod charge;
pub mod crew;
pub mod decision;
pub mod distance;
pub mod duration;
pub mod explanation;
pub mod fault;
mod gate;
mod hop;
mod hop_fallback;
mod hop_pick;
pub mod hours;
#[cfg(test)]
mod hours_tests;
pub mod known;
pub mod live;
mod measure;
pub mod numbers;
pub mod objects;
pub mod offer;
mod opening;
pub mod pass;
pub mod patch;
pub mod pipeline;
mod pipeline_read;
pub mod print;
pub mod read;
pub mod ready;
pub mod reason;
pub mod recipes;
mod route;
pub mod seed;
mod select;
pub mod shadow;
pub mod sight;
pub mod sla;
pub mod snapshot;
mod snapshot_declared;
mod snapshot_old;
mod snapshot_text;
pub mod state;
pub mod strategies;
mod summary;
#[cfg(test)]
mod tests;
mod told;
pub mod trial;
#[cfg(test)]
mod trial_tests;
pub mod turns;
pub mod waiting;
pub mod wants;
pub mod work;
pub mod work_limits;
