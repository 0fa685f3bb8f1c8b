//! The promise of `golden`, for the record of backups.

use super::codec;
use super::golden::{Sample, sample};
use super::rows::{BackupResult, BackupRow};
use crate::words::time::Millis;

/// Record, what of it, version, bytes.
pub(super) const GOLDEN: &str = "\
backup | done | 1 | 01022f62056c6f63616cfbd00700fc70110100026162fb2c01
backup | failed | 1 | 01022f62056c6f63616cfbd00701026e6f
";

pub(super) fn samples(out: &mut Vec<Sample>) {
    let row = |result| BackupRow {
        path: "/b".to_owned(),
        by: "local".to_owned(),
        ended_at: Millis(1_000),
        result,
    };
    let done = BackupResult::Done {
        bytes: 70_000,
        blake3: "ab".to_owned(),
        rows: 300,
    };
    let reason = "no".to_owned();
    out.push(sample("done", &row(done)));
    out.push(sample("failed", &row(BackupResult::Failed { reason })));
}

/// What the reader of the record makes of these bytes is a value or a sentence.
pub(super) fn decode_all(bytes: &[u8]) {
    drop(codec::decode::<BackupRow>(bytes));
}
