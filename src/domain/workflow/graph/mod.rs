//! Graphs: definitions of several steps and the edges between them, and how a run of one is moved.
//!
//! A [`document::Document`] is what is written and stored; `read` makes one of what was posted, `check` judges how its
//! steps stand to each other, and `judge` does both. `canonical` is the text that a digest is made of.

pub mod canonical;
pub mod check;
pub mod document;
pub mod finding;
pub mod judge;
pub mod kinds;
pub mod read;
pub mod span;
pub mod template;
