//! Records to bytes and back: one version byte, then a bincode body. The only file that names bincode.
//!
//! Decoding never panics and never allocates beyond [`limits::RECORD_BYTES_MAX`]; leftover bytes are an error.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::words::limits;

/// A stored record: its shape is a promise, so a changed shape is a new version.
pub trait Record: Serialize + DeserializeOwned {
    /// The name used in messages and golden files.
    const NAME: &'static str;
    /// The version that this binary writes.
    const VERSION: u8;

    /// Reads a body of any version ever written. The default knows the current one only.
    fn decode(version: u8, body: &[u8]) -> Result<Self, String> {
        if version == Self::VERSION {
            decode_body(body)
        } else {
            Err(format!(
                "{} has version {version}, known are up to {}",
                Self::NAME,
                Self::VERSION
            ))
        }
    }
}

fn configuration() -> impl bincode::config::Config {
    bincode::config::standard()
        .with_little_endian()
        .with_limit::<{ limits::RECORD_BYTES_MAX }>()
}

/// The bytes of `record`.
pub fn encode<R: Record>(record: &R) -> Vec<u8> {
    let mut bytes = vec![R::VERSION];
    let written = bincode::serde::encode_into_std_write(record, &mut bytes, configuration());
    written.expect("a record is plain data");
    bytes
}

/// The record in `bytes`, or the sentence that says why there is none.
pub fn decode<R: Record>(bytes: &[u8]) -> Result<R, String> {
    let (version, body) = bytes.split_first().ok_or_else(|| "it is empty".to_owned())?;
    R::decode(*version, body)
}

/// Reads a bincode body that must be used up to its last byte.
pub fn decode_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let (value, used) = bincode::serde::decode_from_slice::<T, _>(body, configuration())
        .map_err(|error| error.to_string())?;
    if used == body.len() {
        Ok(value)
    } else {
        Err(format!("{} bytes are left over", body.len() - used))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        number: u64,
        text: Option<String>,
    }

    impl Record for Sample {
        const NAME: &'static str = "sample";
        const VERSION: u8 = 3;
    }

    #[test]
    fn what_is_written_is_read() {
        let sample = Sample {
            number: 300,
            text: Some("a".to_owned()),
        };
        let bytes = encode(&sample);
        assert_eq!(bytes, [3, 251, 44, 1, 1, 1, b'a']);
        assert_eq!(decode::<Sample>(&bytes), Ok(sample));
    }

    #[test]
    fn damage_is_a_sentence() {
        let mut bytes = encode(&Sample {
            number: 1,
            text: None,
        });
        bytes.push(0);
        assert_eq!(decode::<Sample>(&bytes).unwrap_err(), "1 bytes are left over");
        bytes[0] = 9;
        assert_eq!(
            decode::<Sample>(&bytes).unwrap_err(),
            "sample has version 9, known are up to 3"
        );
        assert!(decode::<Sample>(&[]).is_err());
        // A length far beyond the input must neither panic nor allocate.
        assert!(decode::<Sample>(&[3, 1, 1, 253, 255, 255, 255, 255, 255, 255, 255, 127]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = decode::<Sample>(&bytes);
        }
    }
}
