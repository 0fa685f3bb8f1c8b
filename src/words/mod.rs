//! The words of the house: ids, time, names, limits and checked payloads.
//!
//! Everything above may use these; they use nothing but `os/`. No rule of the product lives here, only the
//! vocabulary in which the rules are written down.

pub mod chance;
pub mod ids;
pub mod limits;
pub mod names;
pub mod network;
pub mod payload;
pub mod time;
