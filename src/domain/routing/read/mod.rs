//! JSON in, checked objects out: every fault at once, each with its place and its code. Pure: what other objects there are is
//! seen by the change that stores them.

mod attributes;
mod catalogue;
mod config;
mod fields;
mod hours;
mod recipient;
mod recipient_pool;
#[cfg(test)]
mod tests;

pub use recipient::{Memberships, RecipientRead, recipient};
pub use recipient_pool::{RecipientPoolRead, Stamp, Target, recipient_pool};
