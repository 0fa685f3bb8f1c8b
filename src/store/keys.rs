//! Keys as bytes in the order of their tuples: big-endian numbers, sign bit flipped, texts ended by a zero byte.

use crate::words::ids::{
    AssignmentId, CampaignId, ClaimQueueId, DecisionId, EntryId, KeyId, RecipientId, RecipientPoolId, RuleId,
    RunId, TenantId, WaitingId, WorkId,
};
use crate::words::names::{JobName, NodeName, SlotPoolName, StepRef};
use crate::words::time::{Micros, Millis};

/// One part of a key.
pub trait KeyPart: Sized {
    /// Appends the part.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes the part off the front; `None` if the bytes are no such part.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

/// A whole key, or a prefix of one.
pub trait Key: Sized {
    /// Appends the key.
    fn encode_to(&self, out: &mut Vec<u8>);
    /// Reads a key that uses up all bytes.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// The bytes of the key.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(40);
        self.encode_to(&mut bytes);
        bytes
    }
}

macro_rules! tuple_key {
    ($($part:ident),*) => {
        impl<$($part: KeyPart),*> Key for ($($part,)*) {
            fn encode_to(&self, out: &mut Vec<u8>) {
                #[expect(non_snake_case, reason = "a type's name stands for its part")]
                let ($($part,)*) = self;
                $($part.put(out);)*
            }

            fn decode(mut bytes: &[u8]) -> Option<Self> {
                let key = ($($part::take(&mut bytes)?,)*);
                bytes.is_empty().then_some(key)
            }
        }
    };
}

tuple_key!(A);
tuple_key!(A, B);
tuple_key!(A, B, C);
tuple_key!(A, B, C, D);
tuple_key!(A, B, C, D, E);

/// The empty prefix: every row of a table.
impl Key for () {
    fn encode_to(&self, _out: &mut Vec<u8>) {}

    fn decode(bytes: &[u8]) -> Option<()> {
        bytes.is_empty().then_some(())
    }
}

fn take_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = bytes.split_first_chunk::<N>()?;
    *bytes = tail;
    Some(*head)
}

impl KeyPart for u32 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }

    fn take(bytes: &mut &[u8]) -> Option<u32> {
        take_array(bytes).map(u32::from_be_bytes)
    }
}

impl KeyPart for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn take(bytes: &mut &[u8]) -> Option<u8> {
        take_array::<1>(bytes).map(|[byte]| byte)
    }
}

impl KeyPart for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }

    fn take(bytes: &mut &[u8]) -> Option<u64> {
        take_array(bytes).map(u64::from_be_bytes)
    }
}

impl KeyPart for TenantId {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(bytes: &mut &[u8]) -> Option<TenantId> {
        u32::take(bytes).map(TenantId)
    }
}

impl KeyPart for Millis {
    fn put(&self, out: &mut Vec<u8>) {
        (self.0.cast_unsigned() ^ (1 << 63)).put(out);
    }

    fn take(bytes: &mut &[u8]) -> Option<Millis> {
        u64::take(bytes).map(|number| Millis((number ^ (1 << 63)).cast_signed()))
    }
}

impl KeyPart for Micros {
    fn put(&self, out: &mut Vec<u8>) {
        Millis(self.0).put(out);
    }

    fn take(bytes: &mut &[u8]) -> Option<Micros> {
        Millis::take(bytes).map(|same| Micros(same.0))
    }
}

/// A number whose larger values sort first: the priority of a slot entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HighFirst(pub i32);

impl KeyPart for HighFirst {
    fn put(&self, out: &mut Vec<u8>) {
        (!(self.0.cast_unsigned() ^ (1 << 31))).put(out);
    }

    fn take(bytes: &mut &[u8]) -> Option<HighFirst> {
        u32::take(bytes).map(|number| HighFirst((!number ^ (1 << 31)).cast_signed()))
    }
}

macro_rules! sixteen_bytes {
    ($name:ident) => {
        impl KeyPart for $name {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.0);
            }

            fn take(bytes: &mut &[u8]) -> Option<$name> {
                take_array(bytes).map($name)
            }
        }
    };
}

sixteen_bytes!(RunId);
sixteen_bytes!(EntryId);
sixteen_bytes!(RecipientPoolId);
sixteen_bytes!(RecipientId);
sixteen_bytes!(RuleId);
sixteen_bytes!(WorkId);
sixteen_bytes!(DecisionId);
sixteen_bytes!(AssignmentId);
sixteen_bytes!(ClaimQueueId);
sixteen_bytes!(WaitingId);
sixteen_bytes!(CampaignId);
sixteen_bytes!(KeyId);

/// A digest used as a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DigestKey(pub [u8; 16]);

sixteen_bytes!(DigestKey);

impl KeyPart for String {
    fn put(&self, out: &mut Vec<u8>) {
        debug_assert!(!self.contains('\0'), "names have no zero byte");
        out.extend_from_slice(self.as_bytes());
        out.push(0);
    }

    fn take(bytes: &mut &[u8]) -> Option<String> {
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(&bytes[..end]).ok()?.to_owned();
        *bytes = &bytes[end + 1..];
        Some(text)
    }
}

macro_rules! name_part {
    ($name:ident, $make:expr) => {
        impl KeyPart for $name {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.as_str().as_bytes());
                out.push(0);
            }

            fn take(bytes: &mut &[u8]) -> Option<$name> {
                let text = String::take(bytes)?;
                $make(&text)
            }
        }
    };
}

name_part!(JobName, |text: &str| JobName::new(text).ok());
name_part!(SlotPoolName, |text: &str| SlotPoolName::new(text).ok());
name_part!(NodeName, |text: &str| NodeName::new(text).ok());
name_part!(StepRef, StepRef::new);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_sort_like_the_tuples() {
        let key = |priority: i32, at: i64, id: u8| {
            (
                TenantId(0),
                SlotPoolName::new("a").unwrap(),
                HighFirst(priority),
                Millis(at),
                EntryId([id; 16]),
            )
                .encode()
        };
        let ordered = [
            key(1_000_000, 0, 0),
            key(1, -5, 0),
            key(1, 5, 0),
            key(1, 5, 1),
            key(0, 0, 0),
            key(-1, 0, 0),
            key(-1_000_000, 0, 0),
        ];
        assert!(ordered.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(("ab".to_owned(),).encode() < ("ab\u{1}".to_owned(),).encode());
    }

    #[test]
    fn keys_come_back() {
        type Whole = (TenantId, JobName, Millis, HighFirst, u64);
        let key: Whole = (
            TenantId(7),
            JobName::new("nightly \u{e9}").unwrap(),
            Millis(-1),
            HighFirst(i32::MIN),
            u64::MAX,
        );
        assert_eq!(Whole::decode(&key.encode()), Some(key.clone()));
        let mut longer = key.encode();
        longer.push(0);
        assert_eq!(Whole::decode(&longer), None);
        let prefix = (key.0, key.1.clone());
        assert!(key.encode().starts_with(&prefix.encode()));
    }
}
