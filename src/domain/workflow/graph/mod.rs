//! Graphs: definitions of several steps and the edges between them, and how a run of one is moved.
//!
//! A [`document::Document`] is what is written and stored.

pub mod document;
pub mod kinds;
mod launched;
pub mod span;
