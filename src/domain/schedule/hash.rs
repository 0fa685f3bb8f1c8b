//! The number behind `H`: spreads jobs over a span by their names, equal in all daemons.

use sha2::{Digest, Sha256};

use super::field::Field;

/// The first 8 bytes of SHA-256(job name, 0x00, field word), big endian, modulo `span` (> 0).
pub(super) fn hashed_number(job_name: &str, field: Field, span: i64) -> i64 {
    let digest = Sha256::new()
        .chain_update(job_name.as_bytes())
        .chain_update([0_u8])
        .chain_update(field.word().as_bytes())
        .finalize();
    let head = digest
        .iter()
        .take(8)
        .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    let span = u64::try_from(span).unwrap_or(1).max(1);
    i64::try_from(head % span).unwrap_or(0)
}
