//! Graphs: definitions of several steps and the edges between them, and how a run of one is moved.
//!
//! A [`document::Document`] is what is written and stored; `read` makes one of what was posted, `check` judges how its
//! steps stand to each other, and `judge` does both. `canonical` is the text that a digest is made of. [`build::Graph`] is
//! the document, compiled. [`tick::tick`] moves a run.

mod accept;
pub mod again;
mod asks;
mod braces;
pub mod build;
pub mod canonical;
pub mod check;
mod compute;
pub mod diff;
pub mod document;
pub mod finding;
pub mod history;
pub mod items;
pub mod judge;
pub mod key;
pub mod key_limit;
pub mod kinds;
mod launched;
pub mod lines;
pub mod memory;
mod moves;
mod reach;
pub mod read;
pub mod request;
pub mod routed;
mod scatter;
mod scope;
pub mod simulate;
pub mod span;
pub mod state;
pub mod template;
pub mod tick;
pub mod timers;
mod tries;

#[cfg(test)]
mod model;
#[cfg(test)]
mod model_follow;
#[cfg(test)]
pub(crate) mod model_plan;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod model_trial;
#[cfg(test)]
mod scatter_tests;
#[cfg(test)]
mod tests;
