//! How the steps of a document stand to each other and to the world: edges, order, slots, sub-workflows, expressions.
//!
//! `levels` are the graphs of a document (the top one, and the body of each scatter), `order` what is wrong with their
//! edges, `partners` what single steps need of others and of the [`World`], `places` where expressions stand, and
//! `expressions` what is wrong with those; `schemas` are of inputs and checkpoints.

mod expressions;
mod levels;
mod order;
mod partners;
mod places;
mod schemas;
mod whole;
mod world;

#[cfg(test)]
mod tests;

pub use levels::{Level, levels};
pub use places::{Place, places};
pub use schemas::check_input;
pub use whole::check;
pub use world::{Call, Family, Version, World, calls};
