//! Routing: who or what gets a unit of work, and why each other one does not. Pure.
//!
//! `objects` is what people declare: recipient pools, recipients, rules, traits; `work` is what is routed; `live` is what a
//! recipient does now. `read` makes objects of JSON, `patch` changes what is set of them, `print` answers with them. `hours`
//! says when a recipient's windows are open.

pub mod candidate;
pub mod canonical;
pub mod capacity;
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
pub mod sight;
pub mod state;
pub mod strategies;
mod summary;
#[cfg(test)]
mod tests;
pub mod wants;
pub mod work;
pub mod work_limits;
