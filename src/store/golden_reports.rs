//! The promise of `golden`, for the records of reports and lateness.

use super::codec;
use super::golden::{self, Sample, sample};
use super::rows::{BreachRow, EffectDueRow, JobMark};
use crate::domain::lateness::{Breach, SlaCheck};
use crate::domain::report::{
    Effect, EffectState, Facts, LateFacts, ReportKind, ReportTarget, ReportWishes, Tails,
};
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::run::Run;
use crate::words::ids::{EffectId, RunId};
use crate::words::names::{JobName, NodeName};
use crate::words::time::Millis;

/// Record, what of it, version, bytes.
pub(super) const GOLDEN: &str = "\
published reports | any | 1 | 010400010001010002010003020001
job mark | never succeeded | 1 | 01fbd00700
job mark | succeeded | 1 | 01fbd00701fba00f
effect | waiting | 1 | 0107090909090909090909090909090909090000076e696768746c790101010101010101010101010101010101fbd00701020103010377687901c701fbd00701fba00f010001036e2d31016f01650000fb70170101026e6f
effect | delivered | 1 | 0107090909090909090909090909090909090101076e696768746c790101010101010101010101010101010101fbd00701020103010377687901c701fbd00701fba00f010001036e2d31016f01650001fb701702
effect | dead | 1 | 0107090909090909090909090909090909090301076e696768746c7900fbd007000000000000000000000101fb60eafb48ee01fba00f02fb7017fb2201026e6f
effect | of a success | 1 | 0107090909090909090909090909090909090200076e696768746c790101010101010101010101010101010101fbd007000000000000000000000001fb701702
effect due row | any | 1 | 01076e696768746c7901
breach | no success | 1 | 010000fbd007fb60ea03776879fc60e40100
breach | late | 1 | 010100fbd007fb60ea03776879fc60e40100
breach | too long | 1 | 01020101010101010101010101010101010101fbd007fb60ea03776879fc60e40100
";

fn job() -> JobName {
    JobName::new("nightly").unwrap()
}

fn effect(kind: ReportKind, target: ReportTarget, facts: Facts, state: EffectState) -> Effect {
    Effect {
        seq: 7,
        id: EffectId([9; 16]),
        kind,
        target,
        job: job(),
        run: (kind != ReportKind::Late).then_some(RunId([1; 16])),
        created_at: Millis(1_000),
        facts,
        state,
    }
}

pub(super) fn samples(out: &mut Vec<Sample>) {
    let mut wishes = ReportWishes::default();
    for kind in ReportKind::ALL {
        wishes.add(kind, ReportTarget::Webhook);
    }
    wishes.add(ReportKind::Late, ReportTarget::Shell);
    out.push(sample("any", &wishes));
    let known_since = Millis(1_000);
    let mark = |last_success| JobMark {
        known_since,
        last_success,
    };
    out.push(sample("never succeeded", &mark(None)));
    out.push(sample("succeeded", &mark(Some(Millis(2_000)))));
    effect_samples(out);
    let row = EffectDueRow {
        job: job(),
        target: ReportTarget::Shell,
    };
    out.push(sample("any", &row));
    for (what, check, run) in [
        ("no success", SlaCheck::MaxTimeSinceSuccess, None),
        ("late", SlaCheck::LateAfter, None),
        ("too long", SlaCheck::MaxRuntime, Some(RunId([1; 16]))),
    ] {
        let breach = Breach {
            check,
            run,
            counted_from: Millis(1_000),
            limit_ms: 60_000,
            reason: "why".to_owned(),
        };
        let noticed_at = Millis(62_000);
        out.push(sample(what, &BreachRow { breach, noticed_at }));
    }
}

fn effect_samples(out: &mut Vec<Sample>) {
    let facts = Facts {
        attempt: Some(2),
        outcome: Some(Outcome::TimedOut),
        reason: Some("why".to_owned()),
        exit_code: Some(-100),
        started_at: Some(Millis(1_000)),
        ended_at: Some(Millis(2_000)),
        scheduled_at: Some(Millis(0)),
        node: NodeName::new("n-1").ok(),
        tails: Tails {
            stdout: "o".to_owned(),
            stderr: "e".to_owned(),
        },
        late: None,
    };
    let late = Facts {
        late: Some(LateFacts {
            check: SlaCheck::LateAfter,
            limit_ms: 60_000,
            observed_ms: 61_000,
            last_success: Some(Millis(2_000)),
        }),
        ..Facts::default()
    };
    let waiting = EffectState::Waiting {
        due_at: Millis(3_000),
        tries: 1,
        last_error: Some("no".to_owned()),
    };
    let delivered = EffectState::Delivered {
        at: Millis(3_000),
        tries: 2,
    };
    let dead = EffectState::Dead {
        at: Millis(3_000),
        tries: 290,
        reason: "no".to_owned(),
    };
    let (webhook, shell) = (ReportTarget::Webhook, ReportTarget::Shell);
    out.push(sample(
        "waiting",
        &effect(ReportKind::Failure, webhook, facts.clone(), waiting),
    ));
    out.push(sample(
        "delivered",
        &effect(ReportKind::PermanentFailure, shell, facts, delivered.clone()),
    ));
    out.push(sample("dead", &effect(ReportKind::Late, shell, late, dead)));
    out.push(sample(
        "of a success",
        &effect(ReportKind::Success, webhook, Facts::default(), delivered),
    ));
}

/// What the reader of each record makes of these bytes is a value or a sentence.
pub(super) fn decode_all(bytes: &[u8]) {
    drop(codec::decode::<ReportWishes>(bytes));
    drop(codec::decode::<JobMark>(bytes));
    drop(codec::decode::<Effect>(bytes));
    drop(codec::decode::<EffectDueRow>(bytes));
    drop(codec::decode::<BreachRow>(bytes));
}

#[test]
fn a_record_cut_short_is_no_record() {
    for sample in golden::samples() {
        if sample.name == "run" {
            for length in 0..sample.bytes.len() {
                assert!(
                    codec::decode::<Run>(&sample.bytes[..length]).is_err(),
                    "{} at {length}",
                    sample.what
                );
            }
        }
    }
}
