//! Slot pools: entries and their states, who may enter a queue, who may leave it, and what a dead daemon's claim means.
//!
//! Source of the rules: the product's slot pool document; the numbers T1.., E1.., C1.. in comments are its rows.

pub mod admission;
pub mod claim;
pub mod crash;
pub mod entry;
