//! JSON in, checked objects out: every fault at once, each with its place and its code. Pure: what other objects there are is
//! seen by the change that stores them.

mod attributes;
mod campaign;
mod config;
mod fields;
mod hours;
mod others;
mod recipient;
mod recipient_pool;
mod rule;
#[cfg(test)]
mod tests;

pub use campaign::campaign;
pub use others::{ClaimQueue, Read, claim_queue, declared_trait};
pub use recipient::{Memberships, RecipientRead, recipient};
pub use recipient_pool::{RecipientPoolRead, Stamp, Target, recipient_pool};
pub use rule::{RuleRead, rule};
