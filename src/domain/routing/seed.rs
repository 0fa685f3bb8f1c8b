//! Chance that follows from the decision, and hashes that spread keys. All of it can be computed again.

use std::fmt::Display;

use sha2::{Digest, Sha256};

use crate::words::chance::Chance;
use crate::words::ids::DecisionId;

/// The first eight bytes, big-endian, of SHA-256(`left` 0x00 `right`).
pub fn hash(left: &str, right: &str) -> u64 {
    let mut digest = Sha256::new();
    digest.update(left.as_bytes());
    digest.update([0]);
    digest.update(right.as_bytes());
    let bytes: [u8; 32] = digest.finalize().into();
    u64::from_be_bytes([
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
    ])
}

/// The seed of what `strategy` draws in a decision.
pub fn seed(decision: DecisionId, strategy: &str) -> u64 {
    hash(&decision.to_string(), strategy)
}

/// A number from 0 to 1, neither included, with 53 bits of `bits`.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
pub fn unit(bits: u64) -> f64 {
    let unit = ((bits >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0;
    // The largest of them would be rounded up to 1.
    unit.min(1.0 - f64::EPSILON / 2.0)
}

/// The next number of `chance` from 0 to 1, neither included.
pub fn next_unit(chance: &mut Chance) -> f64 {
    unit(chance.number())
}

/// A number below `end` without bias: numbers of the last, incomplete round are drawn again.
pub fn below(chance: &mut Chance, end: u64) -> u64 {
    if end == 0 {
        return 0;
    }
    let incomplete = (u64::MAX % end + 1) % end;
    loop {
        let number = chance.number();
        if number <= u64::MAX - incomplete {
            return number % end;
        }
    }
}

/// How high a member stands for a key in the rendezvous: the highest one has it. A weight of 0 never does.
pub fn standing(member: &impl Display, key: &str, weight: f64) -> f64 {
    let unit = unit(hash(&member.to_string(), key));
    weight / -unit.ln()
}
