//! What is known of past ends: the same whether it was brought along by the feed or read anew; and its bounds.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::endings::{Endings, Seen};
use super::fixture::Face;
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState, Trigger};
use crate::store::rows::ReadyStep;
use crate::store::{removal, runs};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::{JobName, StepRef};
use crate::words::time::Millis;

const KEPT: u32 = 500;
const JOBS: [&str; 3] = ["a", "b", "free"];

fn job(name: &str) -> JobName {
    JobName::new(name).unwrap()
}

fn run_of(name: &str, created_at: Millis) -> Run {
    Run {
        graph: None,
        id: RunId::fresh(),
        definition: job(name),
        version: 1,
        trigger: Trigger::Manual {
            principal: "local".to_owned(),
        },
        node: None,
        created_at,
        record_version: 1,
        state: RunState::Pending,
    }
}

fn insert(tx: &mut crate::store::Tx<'_>, run: &Run) -> Result<(), crate::store::Abort> {
    let step = StepState {
        graph: None,
        step: StepRef::main(),
        attempt: 1,
        deaths: 0,
        phase: StepPhase::Ready {
            since: run.created_at,
        },
    };
    let ready = ReadyStep {
        job: run.definition.clone(),
        node: None,
    };
    Ok(runs::insert(tx, run, &step, Some(&ready))?)
}

fn ended(run: &Run, how: u8, ended_at: Millis) -> Run {
    let (started_at, reason) = (run.created_at, "exit code 1".to_owned());
    let state = match how % 5 {
        0 => RunState::Succeeded { started_at, ended_at },
        1 => RunState::Failed {
            started_at: Some(started_at),
            ended_at,
            reason,
        },
        2 => RunState::Failed {
            started_at: Some(started_at),
            ended_at,
            reason: "execution timeout of 5 s".to_owned(),
        },
        3 => RunState::Cancelled {
            started_at: None,
            ended_at,
            reason,
        },
        _ => RunState::Skipped { ended_at, reason },
    };
    Run { state, ..run.clone() }
}

async fn look(face: &Face, endings: &Endings) -> Seen {
    let (endings, now) = (endings.clone(), face.app.engine.now().wall);
    let names: Vec<JobName> = JOBS.iter().map(|name| job(name)).collect();
    let read = move |tx: &mut crate::store::ReadTx| endings.look(tx, names.iter(), (now, KEPT));
    face.app.engine.read(read).await.unwrap()
}

/// What happens next: a run begins, the oldest or newest one ends, or time passes.
#[derive(Debug, Clone, Copy)]
enum Event {
    Begin(usize),
    End { newest: bool, how: u8 },
    Pass(u64),
    Forget,
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..JOBS.len()).prop_map(Event::Begin),
        3 => (any::<bool>(), any::<u8>()).prop_map(|(newest, how)| Event::End { newest, how }),
        2 => (0_u64..8_000_000).prop_map(Event::Pass),
        1 => Just(Event::Forget),
    ]
}

async fn play(events: Vec<Event>) {
    let face = Face::new().await;
    let (mut alive, mut over): (Vec<Run>, Vec<Run>) = (Vec::new(), Vec::new());
    let endings = Endings::default();
    // Runs that were removed are still in the bars that saw them, so those are compared until then.
    let mut forgot = false;
    for event in events {
        match event {
            Event::Begin(which) => {
                let run = run_of(JOBS[which], face.app.engine.now().wall);
                alive.push(run.clone());
                face.change(move |tx| insert(tx, &run)).await;
            }
            Event::End { newest, how } if !alive.is_empty() => {
                let run = alive.remove(if newest { alive.len() - 1 } else { 0 });
                let after = ended(&run, how, face.app.engine.now().wall);
                over.push(after.clone());
                face.change(move |tx| Ok(runs::replace(tx, &run, &after)?)).await;
            }
            Event::Forget if !over.is_empty() => {
                let run = over.remove(0);
                forgot = true;
                face.change(move |tx| Ok(removal::begin(tx, &run.definition, run.id, &mut 1_000)?))
                    .await;
            }
            Event::Pass(ms) => face.clock.advance(ms),
            Event::End { .. } | Event::Forget => {}
        }
        let (known, anew) = (
            look(&face, &endings).await,
            look(&face, &Endings::default()).await,
        );
        let failures = |seen: &Seen| -> BTreeMap<JobName, RunId> {
            let failed = seen.newest.iter().filter(|(_, newest)| newest.failure.is_some());
            failed.map(|(job, newest)| (job.clone(), newest.run)).collect()
        };
        if forgot {
            continue;
        }
        assert_eq!(failures(&known), failures(&anew));
        assert_eq!(known.newest, anew.newest);
        assert_eq!(known.hours, anew.hours);
        assert_eq!(known.counted_from, None);
    }
    // Nothing is told to fail that is no longer kept.
    let known = look(&face, &endings).await;
    let failing = known.newest.values().filter(|newest| newest.failure.is_some());
    assert!(
        failing
            .into_iter()
            .all(|newest| over.iter().any(|run| run.id == newest.run))
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_brought_along_is_what_would_be_read_anew(events in proptest::collection::vec(any_event(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(play(events));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_counted_is_told() {
    let face = Face::new().await;
    let begin = face.app.engine.now().wall;
    let fill = |count: u32| {
        face.change(move |tx| {
            for number in 0..count {
                let run = run_of("a", begin.plus(u64::from(number)));
                insert(tx, &run)?;
                runs::replace(tx, &run, &ended(&run, 0, run.created_at))?;
            }
            Ok(())
        })
    };
    fill(KEPT).await;
    face.clock.advance(1_000);
    let seen = look(&face, &Endings::default()).await;
    assert_eq!(
        seen.counted_from,
        Some(begin),
        "older runs of a job with as many as are kept may be gone"
    );
    assert_eq!(seen.hours[23].1.succeeded, KEPT);
    face.clock.advance(25 * 3_600_000);
    let seen = look(&face, &Endings::default()).await;
    assert_eq!(seen.counted_from, None, "they are not of the last day");
    assert!(limits::HOURS_RUNS_MAX.is_multiple_of(limits::PAGE_MAX));
}
