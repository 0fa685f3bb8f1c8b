//! Graphs: definitions of several steps and the edges between them, and how a run of one is moved.
//!
//! A [`document::Document`] is what is written and stored; `read` makes one of what was posted, `check` judges how its
//! steps stand to each other, and `judge` does both.

pub mod document;
pub mod finding;
pub mod kinds;
pub mod read;
pub mod span;
