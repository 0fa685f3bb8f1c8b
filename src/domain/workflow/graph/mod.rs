//! Graphs: definitions of several steps and the edges between them, and how a run of one is moved.
//!
//! A [`document::Document`] is what is written and stored. [`build::Graph`] is the same, compiled. [`tick::tick`] moves a run.

mod asks;
pub mod build;
mod compute;
pub mod document;
pub mod key;
pub mod kinds;
mod launched;
mod moves;
mod reach;
mod scope;
pub mod span;
pub mod state;
pub mod template;
pub mod tick;
mod timers;
mod tries;

#[cfg(test)]
mod tests;
