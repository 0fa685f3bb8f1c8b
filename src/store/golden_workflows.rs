//! The promise of `golden`, for definitions of the API.

use super::codec;
use super::golden::{Sample, sample};
use super::rows::{Deprecation, WorkflowDraft, WorkflowRecord, WorkflowVersion};
use crate::words::payload::JsonText;
use crate::words::time::Millis;

/// Record, what of it, version, bytes.
pub(super) const GOLDEN: &str = "\
workflow | any | 1 | 010301740201010164fbd007fba00f
workflow draft | any | 1 | 01027b7d026d65fbd007
workflow version | in use | 1 | 010173027b7d026d65fbd00700
workflow version | deprecated | 1 | 010173027b7d026d65fbd00701fba00f03796f75
";

pub(super) fn samples(out: &mut Vec<Sample>) {
    let record = WorkflowRecord {
        record_version: 3,
        title: "t".to_owned(),
        newest: 2,
        current: 1,
        draft: Some("d".to_owned()),
        created_at: Millis(1_000),
        updated_at: Millis(2_000),
    };
    out.push(sample("any", &record));
    let draft = WorkflowDraft {
        json: JsonText::parse("{}").unwrap(),
        by: "me".to_owned(),
        at: Millis(1_000),
    };
    out.push(sample("any", &draft));
    let version = WorkflowVersion {
        sha256: "s".to_owned(),
        posted: JsonText::parse("{}").unwrap(),
        by: "me".to_owned(),
        published_at: Millis(1_000),
        deprecated: None,
    };
    out.push(sample("in use", &version));
    let deprecated = Some(Deprecation {
        at: Millis(2_000),
        by: "you".to_owned(),
    });
    out.push(sample(
        "deprecated",
        &WorkflowVersion {
            deprecated,
            ..version
        },
    ));
}

/// What the reader of each record makes of these bytes is a value or a sentence.
pub(super) fn decode_all(bytes: &[u8]) {
    drop(codec::decode::<WorkflowRecord>(bytes));
    drop(codec::decode::<WorkflowDraft>(bytes));
    drop(codec::decode::<WorkflowVersion>(bytes));
}
