//! Routing: who or what gets a unit of work, and why each other one does not. Pure.
//!
//! `objects` is what people declare: recipient pools, recipients, rules, traits; `work` is what is routed; `live` is what a
//! recipient does now. `read` makes objects of JSON, `patch` changes what is set of them, `print` answers with them. `hours`
//! says when a recipient's windows are open.
//!
//! `assignment`, `waiting` and `offer` are what a decision leaves behind and how each goes on; `charge` keeps the live numbers
//! that follow from assignments; `budget` and `sla` are the bounds on claims and the clocks on waiting and answering. `ask` reads
//! what is asked of a decision.

pub mod ask;
pub mod assignment;
pub mod budget;
pub mod candidate;
pub mod charge;
pub mod duration;
pub mod fault;
pub mod hours;
pub mod live;
pub mod numbers;
pub mod objects;
pub mod offer;
pub mod patch;
pub mod print;
pub mod read;
pub mod sla;
pub mod state;
pub mod waiting;
pub mod work;
