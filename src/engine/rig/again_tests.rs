//! Once more: a next attempt that does not wait, and all runs that match, each judged in the change that moves it.

use std::collections::BTreeSet;

use super::jobs::{job, slot_pool};
use super::stage::{BEGIN, Rig, by_hand, queued};
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::bulk::{BulkWish, Deed, Matched};
use crate::domain::workflow::filter::RunFilter;
use crate::domain::workflow::run::Trigger;
use crate::engine::bulk::{self, Survey, Wisher};
use crate::engine::changes::cancel;
use crate::engine::changes::matching::{self, Done, Task};
use crate::engine::changes::remember::Ticket;
use crate::engine::changes::retry::{self, Hastened};
use crate::engine::changes::start::{Start, Started};
use crate::engine::follow_ups::FollowUps;
use crate::os::failpoint::Fault;
use crate::store::run_walk::{Met, RunWalk};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::time::{Clock, Millis};

fn follow_up(rig: &Rig) -> Option<Millis> {
    rig.wait(FollowUps::new(rig.engine.clone()).tick()).unwrap()
}

fn run_of(started: &Started) -> RunId {
    if let Started::Queued { run, .. } | Started::Ready { run } = started {
        return *run;
    }
    panic!("{started:?} is no run")
}

fn step_words(rig: &Rig, run: RunId) -> String {
    let (header, step) = rig.run(run);
    format!("{} {} {}", header.state.word(), step.phase.word(), step.attempt)
}

fn fail(rig: &Rig) {
    let claimed = rig.claim();
    rig.complete(&claimed, Outcome::Failed);
}

fn wisher(key: Option<u8>) -> Wisher {
    Wisher {
        principal: "me".to_owned(),
        ticket: key.map(|key| Ticket {
            tenant: crate::words::ids::TenantId::DEFAULT,
            key: [key; 16],
            request: [9; 16],
        }),
    }
}

fn survey(rig: &Rig, wish: BulkWish) -> (Survey, RunFilter) {
    let filter = wish.narrowed(RunFilter::default()).unwrap();
    let survey = rig.wait(bulk::survey(&rig.engine, wish, &filter)).unwrap();
    (survey, filter)
}

fn act(rig: &Rig, found: &(Survey, RunFilter), wisher: &Wisher) -> Done {
    let acting = bulk::act(&rig.engine, &found.0.matched, &found.1, wisher);
    rig.wait(acting).unwrap()
}

#[test]
fn a_hastened_attempt_is_the_same_attempt_sooner() {
    for pooled in [true, false] {
        let plan = job("a").retries(2);
        let plan = if pooled { plan.on("p") } else { plan };
        let rig = Rig::new(&[slot_pool("p", 1)], &[plan]);
        let run = run_of(&rig.fire("a", BEGIN));
        fail(&rig);
        assert_eq!(follow_up(&rig), Some(BEGIN.plus(1_000)));
        assert_eq!(step_words(&rig, run), "running retrying 2");
        let now = rig.change(move |tx| retry::hasten(tx, run));
        assert_eq!(now, Hastened::Now { attempt: 2 });
        let again = rig.change(move |tx| retry::hasten(tx, run));
        assert_eq!(again, Hastened::Now { attempt: 2 }, "twice is as good as once");
        follow_up(&rig);
        let phase = if pooled { "queued" } else { "ready" };
        assert_eq!(step_words(&rig, run), format!("running {phase} 2"));
        let late = rig.change(move |tx| retry::hasten(tx, run));
        assert_eq!(late, Hastened::NotWaiting { phase, attempt: 2 });
        fail(&rig);
        let (_, step) = rig.run(run);
        assert!(
            format!("{:?}", step.phase).contains("due: Millis(1764439202000)"),
            "its delay is its own: {step:?}"
        );
        let ended = rig.change(|tx| retry::hasten(tx, RunId([0; 16])));
        assert_eq!(ended, Hastened::NotFound);
    }
}

#[test]
fn a_newer_fire_ends_a_hastened_attempt_too() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p").retries(1)]);
    let old = run_of(&rig.fire("a", BEGIN));
    fail(&rig);
    rig.change(move |tx| retry::hasten(tx, old));
    rig.fire("a", BEGIN.plus(1));
    assert_eq!(
        step_words(&rig, old),
        "failed failed 2",
        "the newer moment is what counts"
    );
    assert_eq!(follow_up(&rig), None);
}

#[test]
fn a_run_that_moved_on_is_left_alone() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let (_, first) = queued(&rig.start("a"));
    let (_, second) = queued(&rig.start("a"));
    let found = survey(&rig, BulkWish::Cancel);
    let ids: Vec<RunId> = found.0.matched.iter().map(|run| run.id).collect();
    assert_eq!(ids, [second, first]);
    let claimed = rig.claim();
    rig.complete(&claimed, Outcome::Succeeded);
    let done = act(&rig, &found, &wisher(None));
    assert_eq!(done.cancelled, 1);
    assert_eq!(done.refused, [(first, "it has ended: succeeded".to_owned())]);
    assert_eq!(rig.run_words(second), "cancelled: cancelled by operator");
    let pending_only = RunFilter {
        states: BTreeSet::from(["pending"]),
        ..RunFilter::default()
    };
    let (_, third) = queued(&rig.start("a"));
    rig.claim();
    let tasks = [
        Task::Cancel(third),
        Task::Retry(third),
        Task::Cancel(RunId([0; 16])),
    ];
    let book = rig.engine.book();
    let done = rig.change(move |tx| matching::act(tx, &book, (&pending_only, "me"), &tasks));
    let whys: Vec<&str> = done.refused.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!(
        whys,
        [
            "it is now running",
            "it is now running",
            "it is not there any more"
        ]
    );
    assert_eq!(rig.run_words(third), "running");
}

#[test]
fn many_are_ended_in_bounded_changes_and_one_that_fails_stops_the_rest() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let count = limits::BULK_RUNS_PER_CHANGE * 2 + 5;
    for _ in 0..count {
        rig.start("a");
    }
    let found = survey(&rig, BulkWish::Cancel);
    assert_eq!((found.0.matched.len(), found.0.truncated), (count, false));
    let (first, rest) = found.0.matched.split_at(limits::BULK_RUNS_PER_CHANGE);
    let done = rig.wait(bulk::act(&rig.engine, first, &found.1, &wisher(None)));
    assert_eq!(done.unwrap().cancelled, first.len());
    rig.engine.store.faults().plan("store.commit", Fault::NoSpace, 1);
    let broken = rig.wait(bulk::act(&rig.engine, rest, &found.1, &wisher(None)));
    assert!(broken.is_err(), "{broken:?}");
    let left = survey(&rig, BulkWish::Cancel);
    assert_eq!(
        left.0.matched.len(),
        rest.len(),
        "what was done is done, and nothing else"
    );
    assert_eq!(act(&rig, &left, &wisher(None)).cancelled, left.0.matched.len());
    assert!(survey(&rig, BulkWish::Cancel).0.matched.is_empty());
}

#[test]
fn under_one_key_no_job_begins_twice_over_a_crash() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p"), job("b").on("p")]);
    for name in ["a", "b", "a"] {
        rig.start(name);
        fail(&rig);
    }
    let found = survey(&rig, BulkWish::Retry);
    let deeds: Vec<Deed> = found.0.matched.iter().map(|run| run.deed).collect();
    assert_eq!(deeds, [Deed::Rerun, Deed::Rerun, Deed::Collapsed]);
    // A daemon that dies in between has done a part of it.
    let part: Vec<Matched> = found.0.matched[..1].to_vec();
    let first = rig
        .wait(bulk::act(&rig.engine, &part, &found.1, &wisher(Some(1))))
        .unwrap();
    let again = act(&rig, &found, &wisher(Some(1)));
    assert_eq!(again.begun.len(), 2);
    assert_eq!(
        again.begun[0], first.begun[0],
        "the run that began the first time"
    );
    assert_eq!(rig.waiting("p"), 2);
    let other = act(&rig, &found, &wisher(Some(2)));
    assert_ne!(other.begun[0], first.begun[0], "another key is another wish");
    let (header, _) = rig.run(first.begun[0].run);
    let of = found.0.matched[0].id;
    assert_eq!(
        header.trigger,
        Trigger::Rerun {
            principal: "me".to_owned(),
            of
        }
    );
}

/// Against a look at every run, for filters, orders and times of all kinds.
#[test]
fn a_walk_meets_exactly_what_the_filter_wants() {
    let rig = Rig::new(
        &[slot_pool("p", 1)],
        &[job("a").on("p"), job("b"), job("c").on("p")],
    );
    let mut all = Vec::new();
    for number in 0..60_u64 {
        let name = ["a", "b", "c"][usize::try_from(number % 3).unwrap()];
        let trigger = if number % 4 == 0 {
            Trigger::Schedule { instant: rig.wall() }
        } else {
            by_hand()
        };
        // An id as it is made in life: its time first.
        let ms = u128::try_from(rig.wall().0).unwrap();
        let wish = Start {
            run: RunId((ms << 80 | u128::from(number)).to_be_bytes()),
            ..rig.wish(name, trigger)
        };
        all.push(run_of(&rig.begin_run(&wish).unwrap()));
        if number % 5 == 0 {
            let id = all[all.len() - 1];
            rig.change(move |tx| cancel::run(tx, id, "me"));
        }
        rig.clock().advance(30_000);
    }
    let now = rig.clock().now().wall;
    let time = |text: &str| crate::domain::workflow::filter::time_before(text, now);
    for text in [
        "",
        "job:a",
        "job:a job:c",
        "state:cancelled",
        "state:pending",
        "state:pending state:running job:b",
        "trigger:schedule",
        "pool:p state:cancelled",
        "since:10m",
        "until:10m",
        "since:20m until:10m",
        "since:20m until:10m job:b",
        "since:1d",
        "until:1d",
        "q:b since:15m",
    ] {
        let filter = RunFilter::read(text, &time).unwrap();
        for ascending in [true, false] {
            let walked = rig.read(|tx| {
                let mut walk = RunWalk::begin(tx, &filter, ascending, None)?;
                let mut met = Vec::new();
                while let Some((id, row)) = walk.next(tx)? {
                    if let Met::Wanted(_) = row {
                        met.push(id);
                    }
                }
                Ok(met)
            });
            let mut slot_pools = crate::store::run_walk::SlotPoolsOf::default();
            let mut expected = Vec::new();
            for id in &all {
                let (header, _) = rig.run(*id);
                let slot_pool = rig.read(|tx| slot_pools.of(tx, &header));
                if filter.matches(&header, slot_pool.as_ref()) {
                    expected.push(*id);
                }
            }
            if !ascending {
                expected.reverse();
            }
            assert_eq!(walked, expected, "{text} {ascending}");
        }
    }
}
