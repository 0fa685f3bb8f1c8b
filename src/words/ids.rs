//! Ids: typed, prefixed, sortable by the time they were made; and the only home of chance.
//!
//! A [`RunId`] is a UUIDv7 written as `run_` and 26 characters of Crockford's base 32, so that text order is time
//! order. An [`EntryId`] is 128 bits of a digest or of chance, written as 32 hex digits. Ids are names, never secrets.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::time::Millis;

/// The interned number of a tenant; the first part of every key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TenantId(pub u32);

impl TenantId {
    /// The tenant of everything that comes from the configuration file.
    pub const DEFAULT: TenantId = TenantId(0);
}

/// One execution of one definition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(pub [u8; 16]);

impl RunId {
    /// A new id; ascending within this process.
    pub fn fresh() -> RunId {
        RunId(fresh_uuid())
    }
}

impl RunId {
    /// The smallest id that a run made at this time can have.
    pub fn first_at(at: Millis) -> RunId {
        let [_, _, time @ ..] = u64::try_from(at.0).unwrap_or(0).to_be_bytes();
        let mut id = [0; 16];
        id[..6].copy_from_slice(&time);
        RunId(id)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("run_")?;
        out.write_str(&base32(u128::from_be_bytes(self.0)))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A text that is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {kind} id")]
pub struct BadId {
    kind: &'static str,
    text: String,
}

impl FromStr for RunId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<RunId, BadId> {
        text.strip_prefix("run_")
            .and_then(unbase32)
            .map(|number| RunId(number.to_be_bytes()))
            .ok_or_else(|| BadId {
                kind: "run",
                text: text.chars().take(64).collect(),
            })
    }
}

/// An id of an object of routing: a UUIDv7, written as the usual 36 characters in lower case.
macro_rules! uuid_id {
    ($($(#[$doc:meta])* $name:ident, $kind:literal;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 16]);

        impl $name {
            /// A new id; ascending within this process.
            pub fn fresh() -> $name {
                $name(fresh_uuid())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&uuid::Uuid::from_bytes(self.0), out)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, out)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<$name, BadId> {
                uuid_of(text).map($name).ok_or_else(|| BadId {
                    kind: $kind,
                    text: text.chars().take(64).collect(),
                })
            }
        }

        /// As text for people (JSON), as sixteen bytes in records.
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    self.0.serialize(serializer)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                if deserializer.is_human_readable() {
                    let text = String::deserialize(deserializer)?;
                    text.parse().map_err(serde::de::Error::custom)
                } else {
                    <[u8; 16]>::deserialize(deserializer).map($name)
                }
            }
        })*
    };
}

uuid_id! {
    /// A container of recipients. The wire calls it `pool_id`.
    RecipientPoolId, "pool";
    /// Who or what gets work.
    RecipientId, "recipient";
    /// A rule of routing.
    RuleId, "rule";
    /// One unit of work that is routed.
    WorkId, "work";
    /// The outcome of one routing pass.
    DecisionId, "decision";
    /// Work that went to a recipient.
    AssignmentId, "assignment";
    /// A queue whose items recipients claim themselves.
    ClaimQueueId, "claim queue";
    /// Work that waits: in a queue of a recipient pool, or offered in a claim queue.
    WaitingId, "item";
    /// A comparison of another strategy with the one in force.
    CampaignId, "campaign";
    /// An API key; public.
    KeyId, "key";
}

impl KeyId {
    /// The 32 hex digits, as they stand in the text of a key.
    pub fn digits(self) -> String {
        hex(&self.0)
    }

    /// The id of such digits.
    pub fn of_digits(text: &str) -> Option<KeyId> {
        unhex(text).map(KeyId)
    }
}

/// Only the usual form: 8-4-4-4-12 lower-case hex digits.
fn uuid_of(text: &str) -> Option<[u8; 16]> {
    let id = uuid::Uuid::try_parse(text).ok()?;
    (id.hyphenated().to_string() == text).then(|| *id.as_bytes())
}

/// One request for slots. The wire calls it `queueId`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntryId(pub [u8; 16]);

impl EntryId {
    /// 128 bits of chance: a manual start without an idempotency key.
    pub fn random() -> EntryId {
        EntryId(random_bytes())
    }

    /// The first 128 bits of SHA-256 over length-prefixed parts, so that the same request has the same id.
    pub fn of_parts(parts: &[&str]) -> EntryId {
        EntryId(digest_of_parts(parts))
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for EntryId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<EntryId, BadId> {
        unhex(text).map(EntryId).ok_or_else(|| BadId {
            kind: "queue",
            text: text.chars().take(64).collect(),
        })
    }
}

/// One report to one receiver. It is derived from its cause, so that a repeated delivery can be told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EffectId(pub [u8; 16]);

impl EffectId {
    /// The same parts have the same id.
    pub fn of_parts(parts: &[&str]) -> EffectId {
        EffectId(digest_of_parts(parts))
    }
}

/// What `webhook-id` carries: no dot in it, for dots separate what is signed.
impl fmt::Display for EffectId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "msg_{}", hex(&self.0))
    }
}

impl fmt::Debug for EffectId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The first 128 bits of SHA-256 over `parts`, each preceded by its length as eight big-endian bytes.
pub fn digest_of_parts(parts: &[&str]) -> [u8; 16] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let full = hasher.finalize();
    let mut first = [0u8; 16];
    first.copy_from_slice(&full[..16]);
    first
}

/// The 64 hex digits of SHA-256 over `bytes`.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The first 64 bits of SHA-256: a checksum, not a seal.
pub fn checksum_of(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&Sha256::digest(bytes)[..8]);
    u64::from_be_bytes(first)
}

/// A generated node name: `n-` and 12 hex digits.
pub fn fresh_node_name() -> String {
    let bytes: [u8; 16] = random_bytes();
    format!("n-{}", &hex(&bytes)[..12])
}

/// A request id: 26 characters, sortable by time.
pub fn fresh_request_id() -> String {
    base32(u128::from_be_bytes(fresh_uuid()))
}

/// 128 bits of chance that are a secret, as two numbers.
pub fn secret_numbers() -> [u64; 2] {
    [
        u64::from_be_bytes(random_bytes()),
        u64::from_be_bytes(random_bytes()),
    ]
}

/// 256 bits of chance that are a secret.
pub fn secret_bytes() -> [u8; 32] {
    random_bytes()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that makes time-ordered ids"
)]
fn fresh_uuid() -> [u8; 16] {
    *uuid::Uuid::now_v7().as_bytes()
}

#[expect(clippy::disallowed_methods, reason = "the one place that asks for chance")]
fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0u8; N];
    getrandom::fill(&mut bytes).expect("the kernel's source of chance does not fail");
    bytes
}

/// Lower-case hex digits of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The bytes of lower-case hex digits.
pub fn of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    if rest.is_empty() { bytes.collect() } else { None }
}

fn unhex(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}

const CROCKFORD: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

fn base32(number: u128) -> String {
    (0..26)
        .rev()
        .map(|place| char::from(CROCKFORD[((number >> (place * 5)) & 31) as usize]))
        .collect()
}

fn unbase32(text: &str) -> Option<u128> {
    if text.len() != 26 {
        return None;
    }
    let mut number: u128 = 0;
    for (place, byte) in text.bytes().enumerate() {
        let digit = CROCKFORD.iter().position(|candidate| *candidate == byte)? as u128;
        if place == 0 && digit > 7 {
            return None;
        }
        number = (number << 5) | digit;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::time::{Clock, SystemClock};

    #[test]
    fn the_first_id_of_a_time_is_not_larger_than_one_made_then() {
        let now = SystemClock.now().wall;
        let id = RunId::fresh();
        assert!(RunId::first_at(now) <= id && id < RunId::first_at(now.plus(60_000)));
        assert_eq!(RunId::first_at(Millis(-1)), RunId([0; 16]));
    }

    #[test]
    fn ids_come_back_from_their_text_and_sort_like_it() {
        let mut last: Option<RunId> = None;
        for _ in 0..1000 {
            let id = RunId::fresh();
            assert_eq!(id.to_string().parse::<RunId>(), Ok(id));
            if let Some(before) = last {
                assert!(before < id && before.to_string() < id.to_string());
            }
            last = Some(id);
        }
        let entry = EntryId::random();
        assert_eq!(entry.to_string().parse::<EntryId>(), Ok(entry));
        let top = RunId([255; 16]);
        assert_eq!(top.to_string().parse::<RunId>(), Ok(top));
    }

    #[test]
    fn a_text_that_is_no_id_is_refused() {
        for text in [
            "",
            "run_",
            "run_0",
            "run_8zzzzzzzzzzzzzzzzzzzzzzzzz",
            "RUN_00000000000000000000000000",
            "run_\u{e9}",
        ] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
        for text in [
            "",
            "xyz",
            "0x000000000000000000000000000000",
            "+0000000000000000000000000000000",
        ] {
            assert!(text.parse::<EntryId>().is_err(), "{text}");
        }
    }

    #[test]
    fn parts_are_prefixed_by_their_length() {
        assert_ne!(EntryId::of_parts(&["ab", "c"]), EntryId::of_parts(&["a", "bc"]));
        assert_eq!(
            EntryId::of_parts(&["fire", "job"]),
            EntryId::of_parts(&["fire", "job"])
        );
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
