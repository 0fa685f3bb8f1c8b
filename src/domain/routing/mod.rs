//! Routing: who or what gets a unit of work, and why each other one does not. Pure.
//!
//! `objects` is what people declare: recipient pools, recipients, rules, traits; `work` is what is routed; `live` is what a
//! recipient does now. `read` makes objects of JSON, `patch` changes what is set of them, `print` answers with them. `hours`
//! says when a recipient's windows are open.

pub mod duration;
pub mod fault;
pub mod hours;
pub mod live;
pub mod objects;
pub mod patch;
pub mod print;
pub mod read;
pub mod work;
