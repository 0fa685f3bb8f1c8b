//! Late jobs: one report of one breach, over daemons and restarts; and its end.

use std::sync::Arc;

use super::jobs::{JobPlan, job, name, slot_pool};
use super::stage::{BEGIN, Daemon, Rig, TENANT, by_hand, holder};
use crate::domain::lateness::Sla;
use crate::domain::report::{Effect, ReportKind, ReportTarget, Tails};
use crate::domain::schedule::{ParseOptions, Schedule};
use crate::domain::slots::admission::Pause;
use crate::domain::workflow::attempt::Outcome;
use crate::engine::changes::start::{self, Start};
use crate::engine::changes::{cancel, complete, late, pause};
use crate::engine::lateness::Lateness;
use crate::store::Rows;
use crate::store::tables::EFFECTS;
use crate::words::time::Millis;

const MINUTE: u64 = 60_000;

fn watched(sla: Sla) -> JobPlan {
    let mut plan = job("a").on("p");
    plan.0.sla = sla;
    plan.0.reports.add(ReportKind::Late, ReportTarget::Webhook);
    plan
}

/// A rig whose job `a` is due every ten minutes.
fn rig_with(sla: Sla) -> Rig {
    let rig = Rig::new(&[slot_pool("p", 1)], &[watched(sla)]);
    schedule(&rig);
    rig
}

fn schedule(daemon: &Daemon) {
    let options = ParseOptions {
        seconds: false,
        day_match: None,
        timezone: None,
        job_name: "a",
    };
    let schedule = Arc::new(Schedule::parse("*/10 * * * *", options).unwrap());
    daemon.edit_book(|book| book.jobs.get_mut(&name("a")).unwrap().schedule = Some(schedule));
}

/// What a judgement of this daemon writes: breaches that began, breaches that ended.
fn judged(daemon: &Daemon) -> (Vec<String>, Vec<String>) {
    let noted = daemon.wait(Lateness::new(daemon.engine.clone()).tick()).unwrap();
    let both = noted.into_iter().map(|noted| (noted.began, noted.ended));
    both.fold((Vec::new(), Vec::new()), |mut all, (began, ended)| {
        all.0.extend(began);
        all.1.extend(ended);
        all
    })
}

fn nothing(daemon: &Daemon) {
    assert_eq!(judged(daemon), (Vec::new(), Vec::new()), "{}", daemon.snapshot());
}

fn reports(rig: &Rig) -> Vec<Effect> {
    let rows = rig.read(|tx| tx.scan(&EFFECTS, &(TENANT,), None, usize::MAX));
    rows.into_iter().map(|(_, effect)| effect).collect()
}

fn due(minutes: u64) -> Millis {
    BEGIN.plus(minutes * MINUTE)
}

fn succeed(rig: &Rig) {
    rig.begin_run(&Start {
        node: None,
        ..rig.wish("a", by_hand())
    })
    .unwrap();
    let claimed = rig.claim();
    let (holder, attempt) = (holder(&claimed), rig.attempt(&claimed, Outcome::Succeeded));
    rig.change(move |tx| complete::complete(tx, &holder, &attempt, &Tails::default()));
}

#[test]
fn late_and_never_ran_alert() {
    let rig = rig_with(Sla {
        late_after_ms: Some(MINUTE),
        max_time_since_success_ms: Some(30 * MINUTE),
        max_runtime_ms: None,
    });
    let other = rig.daemon("n-b");
    schedule(&other);
    nothing(&rig);
    // Due at ten past; nobody fires it.
    rig.clock().advance(11 * MINUTE);
    nothing(&rig);
    rig.clock().advance(1);
    let (began, ended) = judged(&rig);
    assert_eq!(began.len(), 1, "{began:?}");
    assert!(
        began[0].ends_with("did not start within 1m: nothing fired it"),
        "{began:?}"
    );
    assert_eq!(ended, Vec::<String>::new());
    // Another daemon, and one that has started again, find the breach written.
    nothing(&other);
    nothing(&rig);
    rig.clock().advance(10 * MINUTE);
    nothing(&rig);
    // It never ran: half an hour without a success.
    rig.clock().advance(9 * MINUTE);
    let (began, _) = judged(&other);
    assert_eq!(began.len(), 1, "{began:?}");
    assert!(
        began[0].starts_with("no success since it became known at"),
        "{began:?}"
    );
    nothing(&rig);
    let told: Vec<Effect> = reports(&rig);
    assert_eq!(told.len(), 2, "one report of each breach");
    assert!(told.iter().all(|effect| effect.kind == ReportKind::Late));
    assert_ne!(told[0].id, told[1].id);
    let seen = told[1].facts.late.clone().unwrap();
    assert_eq!((seen.limit_ms, seen.observed_ms), (30 * MINUTE, 30 * MINUTE + 1));
    assert_eq!(rig.told("job.late"), 2);
    assert_eq!(rig.read(|tx| late::stored(tx, &name("a"))).len(), 2);
    // A success ends both, and the next breach is told again.
    succeed(&rig);
    let (_, ended) = judged(&rig);
    assert_eq!(ended, ["lateAfter", "maxTimeSinceSuccess"]);
    assert_eq!(rig.read(|tx| late::stored(tx, &name("a"))), []);
    rig.clock().advance(20 * MINUTE);
    assert_eq!(judged(&other).0.len(), 1);
    assert_eq!(reports(&rig).len(), 3);
}

#[test]
fn a_fire_that_waits_is_late_and_one_that_starts_is_not() {
    let rig = rig_with(Sla {
        late_after_ms: Some(MINUTE),
        ..Sla::default()
    });
    rig.clock().advance(10 * MINUTE);
    rig.fire("a", due(10));
    rig.clock().advance(MINUTE + 1);
    let (began, _) = judged(&rig);
    assert!(began[0].ends_with("its run still waits"), "{began:?}");
    let claimed = rig.claim();
    assert_eq!(judged(&rig).1, ["lateAfter"]);
    rig.complete(&claimed, Outcome::Failed);
    // The next one starts in time.
    rig.clock().advance(9 * MINUTE);
    rig.fire("a", due(20));
    rig.claim();
    rig.clock().advance(2 * MINUTE);
    nothing(&rig);
}

#[test]
fn what_somebody_wanted_is_not_late() {
    let rig = rig_with(Sla {
        late_after_ms: Some(MINUTE),
        max_time_since_success_ms: Some(30 * MINUTE),
        max_runtime_ms: None,
    });
    let skip = |minutes: u64, word: &'static str| {
        rig.change(move |tx| Ok(start::skip(tx, &name("a"), due(minutes), "", word)?));
    };
    rig.clock().advance(12 * MINUTE);
    skip(10, "still_running");
    nothing(&rig);
    rig.clock().advance(10 * MINUTE);
    skip(20, "pool_full");
    assert!(judged(&rig).0[0].ends_with("it was skipped (pool_full)"));
    // A paused job is judged by nobody: what is written stays, and nothing new begins.
    let held = Pause {
        until: None,
        by: "me".to_owned(),
        note: String::new(),
    };
    rig.change(move |tx| pause::job(tx, &name("a"), Some(&held)));
    rig.clock().advance(60 * MINUTE);
    nothing(&rig);
    assert_eq!(rig.read(|tx| late::stored(tx, &name("a"))).len(), 1);
    rig.change(move |tx| pause::job(tx, &name("a"), None));
    assert_eq!(judged(&rig).0.len(), 1, "no success for too long, and still late");
    // Without limits there is no breach left.
    rig.edit_book(|book| {
        let job = book.jobs.get_mut(&name("a")).unwrap();
        let mut definition = (*job.definition).clone();
        definition.sla = Sla::default();
        job.definition = Arc::new(definition);
    });
    assert_eq!(judged(&rig).1.len(), 2);
    nothing(&rig);
}

#[test]
fn a_cancelled_entry_is_not_late() {
    let rig = rig_with(Sla {
        late_after_ms: Some(MINUTE),
        ..Sla::default()
    });
    rig.clock().advance(10 * MINUTE);
    rig.fire("a", due(10));
    rig.change(|tx| cancel::job(tx, &name("a"), "me"));
    rig.clock().advance(2 * MINUTE);
    nothing(&rig);
}

#[test]
fn a_run_that_goes_on_is_told_once_and_ends_with_its_run() {
    let rig = rig_with(Sla {
        max_runtime_ms: Some(MINUTE),
        ..Sla::default()
    });
    rig.start("a");
    let claimed = rig.claim();
    rig.clock().advance(MINUTE);
    nothing(&rig);
    rig.clock().advance(1);
    let (began, _) = judged(&rig);
    assert!(
        began[0].starts_with(&format!("{} has been running since", claimed.run.id)),
        "{began:?}"
    );
    nothing(&rig);
    assert_eq!(reports(&rig)[0].run, Some(claimed.run.id));
    rig.complete(&claimed, Outcome::Succeeded);
    assert_eq!(judged(&rig).1, [format!("maxRuntime {}", claimed.run.id)]);
}

#[test]
fn a_new_definition_owes_nothing_of_before() {
    let sla = Sla {
        late_after_ms: Some(MINUTE),
        ..Sla::default()
    };
    let rig = rig_with(sla);
    rig.clock().advance(15 * MINUTE);
    let mut changed = watched(sla).command("other");
    changed.0.sla.late_after_ms = Some(2 * MINUTE);
    rig.publish(&[changed]);
    schedule(&rig);
    nothing(&rig);
    rig.clock().advance(7 * MINUTE + 1);
    assert_eq!(judged(&rig).0.len(), 1, "the first one after it counts");
}
