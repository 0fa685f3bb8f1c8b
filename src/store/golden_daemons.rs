//! The promise of `golden`, for the records that several daemons need between them.

use super::codec;
use super::golden::{Sample, sample};
use super::rows::{Delivering, NodeDrain, PublishedBy};
use crate::domain::slots::claim::ClockId;
use crate::words::names::NodeName;
use crate::words::time::{BootMillis, Millis};

/// Record, what of it, version, bytes.
pub(super) const GOLDEN: &str = "\
delivering | any | 1 | 01036e2d31fb2c0103623a31fc70110100fb409c
node drain | any | 1 | 01fbd007026d6503776879
published by | any | 1 | 01036e2d31fbd007
";

pub(super) fn samples(out: &mut Vec<Sample>) {
    let node = NodeName::new("n-1").unwrap();
    out.push(sample(
        "any",
        &Delivering {
            node: node.clone(),
            fence: 300,
            clock: ClockId("b:1".to_owned()),
            since: BootMillis(70_000),
            hold_ms: 40_000,
        },
    ));
    out.push(sample(
        "any",
        &NodeDrain {
            since: Millis(1_000),
            by: "me".to_owned(),
            note: "why".to_owned(),
        },
    ));
    out.push(sample(
        "any",
        &PublishedBy {
            node,
            at: Millis(1_000),
        },
    ));
}

/// What the reader of each record makes of these bytes is a value or a sentence.
pub(super) fn decode_all(bytes: &[u8]) {
    drop(codec::decode::<Delivering>(bytes));
    drop(codec::decode::<NodeDrain>(bytes));
    drop(codec::decode::<PublishedBy>(bytes));
}
