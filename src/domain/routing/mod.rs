//! Routing: who or what gets a unit of work, and why each other one does not. Pure.
//!
//! `objects` is what people declare: recipient pools, recipients, rules, traits; `work` is what is routed; `live` is what a
//! recipient does now. `hours` says when a recipient's windows are open.

pub mod fault;
pub mod live;
pub mod objects;
pub mod work;
