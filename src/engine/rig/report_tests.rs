//! Reports: which ends owe one, what bounds them, and what becomes of a delivery.

use super::jobs::{JobPlan, job, slot_pool};
use super::stage::{BEGIN, Rig, TENANT, holder, plain, queued};
use crate::domain::report::{Delivery, Effect, EffectState, ReportKind, ReportTarget, Tails, sample_effect};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::ConcurrencyPolicy;
use crate::engine::changes::claim::Claimed;
use crate::engine::changes::deliver::Taking;
use crate::engine::changes::{cancel, complete, deliver, maintain, retire, retry};
use crate::engine::core::Engine;
use crate::store::tables::{EFFECTS, JOB_MARKS};
use crate::store::{Abort, Rows, Tx, effects};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::time::Millis;

/// A job that asks for every report.
fn talkative(name: &str) -> JobPlan {
    let mut plan = job(name);
    for kind in ReportKind::ALL {
        plan.0.reports.add(kind, ReportTarget::Webhook);
    }
    plan
}

fn effects_of(rig: &Rig) -> Vec<Effect> {
    let rows = rig.read(|tx| tx.scan(&EFFECTS, &(TENANT,), None, usize::MAX));
    rows.into_iter().map(|(_, effect)| effect).collect()
}

fn kinds_of(rig: &Rig) -> Vec<ReportKind> {
    effects_of(rig).iter().map(|effect| effect.kind).collect()
}

fn end_with_tails(rig: &Rig, claimed: &Claimed, outcome: Outcome) {
    let (holder, attempt) = (holder(claimed), rig.attempt(claimed, outcome));
    let tails = Tails {
        stdout: "the end\n".to_owned(),
        stderr: String::new(),
    };
    rig.change(move |tx| complete::complete(tx, &holder, &attempt, &tails));
}

#[test]
fn a_failed_run_owes_both_failure_reports() {
    let rig = Rig::new(&[], &[talkative("a"), job("quiet")]);
    rig.start("quiet");
    end_with_tails(&rig, &rig.claim(), Outcome::Failed);
    assert_eq!(kinds_of(&rig), [], "nobody asked");
    rig.start("a");
    let claimed = rig.claim();
    rig.clock().advance(5_000);
    end_with_tails(&rig, &claimed, Outcome::TimedOut);
    assert_eq!(
        kinds_of(&rig),
        [ReportKind::Failure, ReportKind::PermanentFailure]
    );
    let effects = effects_of(&rig);
    assert_ne!(effects[0].id, effects[1].id);
    for effect in &effects {
        assert_eq!(effect.run, Some(claimed.run.id));
        assert_eq!(effect.facts.attempt, Some(1));
        assert_eq!(effect.facts.outcome, Some(Outcome::TimedOut));
        assert_eq!(effect.facts.tails.stdout, "the end\n");
        assert_eq!(effect.facts.ended_at, Some(rig.wall()));
    }
}

#[test]
fn a_success_owes_one_and_is_remembered_beyond_its_run() {
    let rig = Rig::new(&[], &[talkative("a")]);
    rig.start("a");
    let claimed = rig.claim();
    end_with_tails(&rig, &claimed, Outcome::Succeeded);
    assert_eq!(kinds_of(&rig), [ReportKind::Success]);
    let key = (TENANT, JobName::new("a").unwrap());
    let marked = rig.read(|tx| tx.get(&JOB_MARKS, &key)).unwrap().last_success;
    assert_eq!(marked, Some(rig.wall()));
    let due = vec![(JobName::new("a").unwrap(), claimed.run.id)];
    rig.change(move |tx| retire::retire(tx, &due));
    let marked = rig.read(|tx| tx.get(&JOB_MARKS, &key)).unwrap().last_success;
    assert_eq!(marked, Some(rig.wall()));
}

#[test]
fn cancelled_replaced_and_skipped_runs_report_nothing() {
    let replacing = talkative("r").policy(ConcurrencyPolicy::Replace);
    let rig = Rig::new(&[slot_pool("p", 1)], &[talkative("a").on("p"), replacing]);
    rig.start("r");
    let first = rig.claim();
    rig.start("r");
    rig.pass();
    rig.complete(&first, Outcome::Cancelled);
    let second = rig.claim();
    let id = second.run.id;
    rig.change(move |tx| cancel::run(tx, id, "me"));
    rig.complete(&second, Outcome::Cancelled);
    rig.start("a");
    let holds = rig.claim();
    let (_, waits) = queued(&rig.start("a"));
    rig.change(move |tx| cancel::run(tx, waits, "me"));
    queued(&rig.start("a"));
    rig.clock().advance(3_600_001);
    rig.change(|tx| maintain::maintain(tx, &plain()));
    let stopped = rig.change(|tx| cancel::job(tx, &JobName::new("a").unwrap(), "me"));
    assert_eq!(stopped.fences, [holds.claim.fence]);
    rig.complete(&holds, Outcome::Cancelled);
    assert_eq!(kinds_of(&rig), [], "{}", rig.snapshot());
}

#[test]
fn a_run_that_fails_without_an_attempt_of_its_own_is_told_too() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[talkative("a").on("p")]);
    rig.start("a");
    for _ in 0..limits::DAEMON_DEATHS_MAX {
        rig.settle(&rig.claim(), reason::DAEMON_DIED, true);
    }
    assert_eq!(
        kinds_of(&rig),
        [ReportKind::Failure, ReportKind::PermanentFailure]
    );
    let effect = &effects_of(&rig)[1];
    assert_eq!(effect.facts.reason.as_deref(), Some(reason::CRASH_LIMIT));
    assert_eq!((effect.facts.attempt, effect.facts.exit_code), (None, None));
    // Lost once, then too long in the queue: failed, because it had begun.
    queued(&rig.start("a"));
    rig.settle(&rig.claim(), reason::DAEMON_DIED, true);
    rig.clock().advance(3_600_001);
    rig.change(|tx| maintain::maintain(tx, &plain()));
    assert_eq!(kinds_of(&rig).len(), 4, "{}", rig.snapshot());
}

#[test]
fn what_waits_is_bounded_for_a_job_and_for_all() {
    let names: Vec<String> = (0..11).map(|number| format!("j{number}")).collect();
    let plans: Vec<JobPlan> = names.iter().map(|name| talkative(name)).collect();
    let rig = Rig::new(&[], &plans);
    let owe = |name: &str, count: u64| {
        let job = JobName::new(name).unwrap();
        rig.change(move |tx| {
            let begun = tx.now().wall;
            for number in 0..count {
                let effect = Effect {
                    job: job.clone(),
                    run: None,
                    created_at: begun,
                    ..sample(number)
                };
                effects::insert(tx, effect)?;
            }
            Ok(())
        });
    };
    owe("j0", limits::EFFECTS_OF_JOB_MAX + 1);
    let newest = effects_of(&rig).pop().unwrap();
    let EffectState::Dead { reason, .. } = &newest.state else {
        panic!("{newest:?}");
    };
    assert_eq!(reason, "1000 reports of this job wait already");
    for name in &names[1..10] {
        owe(name, limits::EFFECTS_OF_JOB_MAX);
    }
    owe("j10", 1);
    let newest = effects_of(&rig).pop().unwrap();
    assert!(
        matches!(&newest.state, EffectState::Dead { reason, .. } if reason == "10000 reports wait already")
    );
    let target = ReportTarget::Webhook;
    let (waiting, dead) = rig.read(|tx| {
        Ok((
            effects::waiting_count(tx, target, None)?,
            effects::dead_count(tx, target)?,
        ))
    });
    assert_eq!((waiting, dead), (limits::EFFECTS_MAX, 2));
}

fn sample(number: u64) -> Effect {
    let id = u128::from(number).to_be_bytes();
    Effect {
        id: crate::words::ids::EffectId(id),
        ..sample_effect(number)
    }
}

#[test]
fn endless_retries_leave_no_endless_rows() {
    let rig = Rig::new(&[], &[talkative("a")]);
    rig.start("a");
    let run = rig.claim().run.id;
    for number in 0..200 {
        let effect = Effect {
            run: Some(run),
            ..sample(number)
        };
        let seq = rig.change(move |tx| Ok(effects::insert(tx, effect.clone())?)).seq;
        settled(&rig, seq, Delivery::Done);
    }
    let kept = rig.read(|tx| effects::of_run(tx, run, usize::MAX));
    assert_eq!(kept.len(), limits::EFFECTS_OF_RUN_MAX);
    assert_eq!(kept[0].seq, 151, "the oldest went");
}

fn waiting_of(rig: &Rig, run: Option<RunId>) -> u64 {
    let effect = Effect {
        run,
        created_at: rig.wall(),
        state: EffectState::Waiting {
            due_at: rig.wall(),
            tries: 0,
            last_error: None,
        },
        ..sample(1)
    };
    rig.change(move |tx| Ok(effects::insert(tx, effect.clone())?)).seq
}

fn settled(rig: &Rig, seq: u64, delivery: Delivery) -> Option<&'static str> {
    let mine = taking(&rig.engine, seq, None);
    let fence = rig.change(move |tx| mine(tx)).unwrap_or_default();
    let after = rig.change(move |tx| deliver::settle(tx, seq, fence, &delivery));
    after.map(|effect| effect.state.word())
}

fn taking(
    engine: &Engine,
    seq: u64,
    seen: Option<u64>,
) -> impl Fn(&mut Tx<'_>) -> Result<Option<u64>, Abort> + Send + 'static {
    let (node, clock) = (engine.node.clone(), engine.place.clock.clone());
    let wish = Taking {
        seq,
        seen,
        hold_ms: 1_000,
    };
    move |tx| Ok(deliver::take(tx, &node, &clock, std::slice::from_ref(&wish))?[0])
}

#[test]
fn a_delivery_is_written_once_and_shown_with_its_run() {
    let rig = Rig::new(&[], &[talkative("a")]);
    rig.start("a");
    let run = rig.claim().run.id;
    let seq = waiting_of(&rig, Some(run));
    let due = |now: Millis| rig.read(|tx| deliver::due(tx, now)).now.len();
    assert_eq!(due(rig.wall()), 1);
    assert_eq!(
        settled(&rig, seq, Delivery::Failed("no".to_owned())),
        Some("waiting")
    );
    assert_eq!((due(rig.wall()), due(rig.wall().plus(1_000))), (0, 1));
    assert_eq!(settled(&rig, seq, Delivery::Done), Some("delivered"));
    assert_eq!(
        settled(&rig, seq, Delivery::Done),
        None,
        "a late word changes nothing"
    );
    assert_eq!(rig.read(|tx| effects::of_run(tx, run, 9)).len(), 1);
    // Without a run nobody could look at it.
    let alone = waiting_of(&rig, None);
    assert_eq!(settled(&rig, alone, Delivery::Done), Some("delivered"));
    assert_eq!(rig.read(|tx| effects::by_seq(tx, alone)), None);
}

#[test]
fn what_is_owed_outlives_its_run_and_what_is_decided_goes_with_age() {
    let rig = Rig::new(&[], &[talkative("a")]);
    rig.start("a");
    let claimed = rig.claim();
    rig.complete(&claimed, Outcome::Failed);
    let [first, second] = <[Effect; 2]>::try_from(effects_of(&rig)).unwrap();
    assert_eq!(settled(&rig, first.seq, Delivery::Done), Some("delivered"));
    let due = vec![(JobName::new("a").unwrap(), claimed.run.id)];
    rig.change(move |tx| retire::retire(tx, &due));
    assert_eq!(effects_of(&rig), std::slice::from_ref(&second));
    let refused = Delivery::Refused("gone".to_owned());
    assert_eq!(settled(&rig, second.seq, refused), Some("dead"));
    assert_eq!(rig.told("report.dead"), 1);
    let keep = retire::Keep {
        runs: 1,
        age_ms: 1_000,
        logs: retire::KeepLogs::NO_LIMIT,
        audit: retire::KeepAudit::NO_LIMIT,
    };
    rig.change(move |tx| retire::sweep(tx, keep, &[]));
    assert_eq!(effects_of(&rig).len(), 1);
    rig.clock().advance(1_001);
    rig.change(move |tx| retire::sweep(tx, keep, &[]));
    assert_eq!(effects_of(&rig), []);
}

fn fails_at(rig: &Rig, minutes: u64) {
    rig.fire("a", BEGIN.plus(minutes * 60_000));
    end_with_tails(rig, &rig.claim(), Outcome::Failed);
}

#[test]
fn each_failed_attempt_is_told_and_the_end_of_the_run_once() {
    let rig = Rig::new(&[], &[talkative("a").retries(1)]);
    fails_at(&rig, 0);
    assert_eq!(kinds_of(&rig), [ReportKind::Failure], "another attempt follows");
    // A newer fire supersedes it: nothing follows any more.
    fails_at(&rig, 1);
    let effects = effects_of(&rig);
    assert_eq!(
        kinds_of(&rig),
        [
            ReportKind::Failure,
            ReportKind::PermanentFailure,
            ReportKind::Failure
        ]
    );
    assert_eq!(effects[1].run, effects[0].run);
    assert_eq!(effects[1].facts.attempt, Some(1));
    assert_eq!(effects[1].facts.reason.as_deref(), Some(reason::RETRY_SUPERSEDED));
    // What an operator ends, or a success makes needless, is no news.
    rig.change(|tx| retry::cancel(tx, &JobName::new("a").unwrap()));
    fails_at(&rig, 2);
    rig.start("a");
    let by_hand = rig.pass().claimed.remove(0);
    rig.complete(&by_hand, Outcome::Succeeded);
    assert_eq!(kinds_of(&rig)[3..], [ReportKind::Failure, ReportKind::Success]);
}
