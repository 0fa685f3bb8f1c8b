//! The promise of `golden`, for fires and what follows from schedules.

use super::feed::{FeedItem, FeedRow};
use super::golden::{Sample, job, sample, why};
use super::rows::{Boot, DeadStep, Fire, Owed, Pin, PoisonedRun, Remembered, ScheduleMark};
use crate::domain::workflow::run::RetryRight;
use crate::words::ids::RunId;
use crate::words::names::StepRef;
use crate::words::payload::JsonText;
use crate::words::time::Millis;

pub(super) fn samples(out: &mut Vec<Sample>) {
    fire_samples(out);
    schedule_samples(out);
}

fn fire_samples(out: &mut Vec<Sample>) {
    let at = Millis(90);
    let json = JsonText::parse("{\"name\":\"nightly\"}").unwrap();
    out.push(sample("run", &Fire::Run(RunId([1; 16]))));
    out.push(sample(
        "skipped",
        &Fire::Skipped {
            reason: "pool_full".to_owned(),
            at,
        },
    ));
    out.push(sample("caught up", &Fire::CaughtUp(RunId([1; 16]))));
    out.push(sample(
        "withdrawn",
        &Fire::Withdrawn {
            reason: "queue_timeout".to_owned(),
            at,
            run: RunId([1; 16]),
        },
    ));
    out.push(sample(
        "any",
        &PoisonedRun {
            job: job(),
            step: StepRef::main(),
            at,
        },
    ));
    out.push(sample(
        "any",
        &Pin {
            at,
            by: "me".to_owned(),
            reason: why(),
        },
    ));
    out.push(sample(
        "any",
        &DeadStep {
            job: job(),
            at,
            deaths: 5,
        },
    ));
    let answer = Remembered {
        key: [1; 16],
        request: [2; 16],
        at,
        status: 202,
        location: Some("/x".to_owned()),
        body: json,
    };
    out.push(sample("any", &answer));
    let item = FeedItem {
        topic: "t".to_owned(),
        id: "i".to_owned(),
        version: 2,
        detail: Some(why()),
    };
    out.push(sample(
        "any",
        &FeedRow {
            at,
            items: vec![item],
        },
    ));
}

fn schedule_samples(out: &mut Vec<Sample>) {
    out.push(sample("none", &RetryRight::No));
    out.push(sample("scoped", &RetryRight::Scoped { generation: 7 }));
    out.push(sample("own", &RetryRight::Own));
    let mark = ScheduleMark {
        at: Millis(90),
        schedule: "@daily".to_owned(),
    };
    out.push(sample("any", &mark));
    let owed = Owed {
        run: Some(RunId([1; 16])),
        not_before: Millis(90),
        refused: Some(why()),
    };
    out.push(sample("refused", &owed));
    let boot = Boot {
        host: "h".to_owned(),
        boot_id: "b".to_owned(),
        digest: "d".to_owned(),
    };
    out.push(sample("any", &boot));
}
