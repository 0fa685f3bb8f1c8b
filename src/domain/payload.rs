//! A payload: the input or output of a run or a step, as a row keeps it. Small ones stand in the row, larger ones in the
//! content-addressed blob area (`store/blobs.rs`), and the row has their name.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::ids;
use crate::words::limits;
use crate::words::payload::JsonText;

/// The SHA-256 of the text of a payload: the name of its blob.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sha256Name(pub [u8; 32]);

impl fmt::Display for Sha256Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&ids::hex(&self.0))
    }
}

impl fmt::Debug for Sha256Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sha256:{self}")
    }
}

/// A JSON document that a row names or has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Payload {
    /// At most [`limits::PAYLOAD_INLINE_BYTES_MAX`] bytes, in the row itself.
    Inline(JsonText),
    /// In the blob area, where it was synced before the row was committed.
    Blob {
        /// Its name.
        sha256: Sha256Name,
        /// Bytes of its text.
        bytes: u64,
    },
}

impl Payload {
    /// Bytes of the document.
    pub fn bytes(&self) -> u64 {
        match self {
            Payload::Inline(text) => text.as_str().len() as u64,
            Payload::Blob { bytes, .. } => *bytes,
        }
    }

    /// The document, if the row has it.
    pub fn inline(&self) -> Option<&JsonText> {
        match self {
            Payload::Inline(text) => Some(text),
            Payload::Blob { .. } => None,
        }
    }

    /// The name of the blob, if it is one.
    pub fn blob(&self) -> Option<Sha256Name> {
        match self {
            Payload::Inline(_) => None,
            Payload::Blob { sha256, .. } => Some(*sha256),
        }
    }
}

/// A payload that is larger than any may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the payload has {bytes} bytes; at most {} ({} MiB) are kept",
    limits::PAYLOAD_BYTES_MAX,
    limits::PAYLOAD_BYTES_MAX >> 20
)]
pub struct TooLarge {
    /// Its size.
    pub bytes: u64,
}

impl TooLarge {
    /// The code of this refusal.
    pub const CODE: &'static str = "payload.too_large";
}

/// Refuses a payload of so many bytes if that is too many.
pub fn check_bytes(bytes: u64) -> Result<(), TooLarge> {
    if bytes > limits::PAYLOAD_BYTES_MAX {
        return Err(TooLarge { bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_more_than_the_limit_is_refused_with_size_and_limit() {
        assert_eq!(check_bytes(limits::PAYLOAD_BYTES_MAX), Ok(()));
        let refused = check_bytes(limits::PAYLOAD_BYTES_MAX + 1).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the payload has 33554433 bytes; at most 33554432 (32 MiB) are kept"
        );
    }

    #[test]
    fn a_payload_says_where_it_is() {
        let inline = Payload::Inline(JsonText::parse("[1]").unwrap());
        assert_eq!((inline.bytes(), inline.blob()), (3, None));
        assert_eq!(inline.inline().unwrap().as_str(), "[1]");
        let sha256 = Sha256Name([0xab; 32]);
        let blob = Payload::Blob {
            sha256,
            bytes: 70_000,
        };
        assert_eq!((blob.bytes(), blob.blob()), (70_000, Some(sha256)));
        assert_eq!(blob.inline(), None);
        assert_eq!(sha256.to_string(), "ab".repeat(32));
    }
}
