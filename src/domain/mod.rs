//! The rules, as pure functions over values: no clock, no chance, no store, no logging.
//!
//! The shape everywhere is `(state, event, now) -> Result<next state and effects, Refusal>`; engines load, decide by one
//! of these, save, and act.

pub mod access;
pub mod catch_up;
pub mod cause;
pub mod disk;
pub mod fair;
pub mod fires;
pub mod lateness;
pub mod layout;
pub mod payload;
pub mod report;
pub mod routing;
pub mod schedule;
pub mod slots;
pub mod workflow;
