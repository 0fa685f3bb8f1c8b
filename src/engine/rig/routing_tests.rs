//! Live routing over a real store: sections 1.4, 1.7, 4.5 to 4.7 of its specification, by the numbers of its test list.

use std::sync::Arc;

use serde_json::{Value, json};

use super::routing_stage::{assigned, rig, winner, word};
use super::stage::TENANT;
use crate::domain::routing::ask;
use crate::domain::routing::assignment::{AssignmentState, EndKind};
use crate::domain::routing::objects::{Explain, RecipientState};
use crate::domain::routing::pass::Refusal;
use crate::domain::routing::snapshot::differences;
use crate::engine::changes::declared::Outcome;
use crate::engine::changes::remember::{Answer, Asked, Ticket, Told};
use crate::engine::changes::routing::assignments::{Act, Acted};
use crate::engine::changes::routing::route::{self, No, Routed, Wish};
use crate::engine::changes::{recipient_pools, recipients};
use crate::engine::router;
use crate::os::failpoint::Fault;
use crate::store::decisions;
use crate::words::chance::Chance;
use crate::words::ids::{DecisionId, WorkId};
use crate::words::payload::JsonText;

const DONE: Act = Act::Complete {
    value_micro: Some(1_000_000),
    result: None,
};

fn reject() -> Act {
    Act::Reject {
        reason: "not mine".to_owned(),
    }
}

/// 9: pause keeps counters and memberships; resume triggers a drain of waiting work.
#[test]
fn resume_drains_what_waits() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let agent = rig.member(team, "a", json!({}));
    rig.route_in(team, json!({}));
    rig.state(agent, RecipientState::Paused);
    let queued = rig.route_in(team, json!({}));
    assert_eq!(word(&queued), "queued");
    rig.settle();
    assert_eq!((rig.live(agent).current, rig.waiting(team).len()), (1, 1));
    rig.state(agent, RecipientState::Available);
    rig.settle();
    assert_eq!((rig.live(agent).current, rig.waiting(team).len()), (2, 0));
    assert_eq!(rig.outcomes(), ["assigned", "queued", "assigned"]);
}

/// 12: capacity reset, then completion of an older assignment: `current` stays 0, never negative.
#[test]
fn completion_after_a_reset_changes_nothing() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let agent = rig.member(team, "a", json!({}));
    let before = rig.route_in(team, json!({}));
    rig.declare(move |tx| recipient_pools::reset_capacity(tx, &super::routing_stage::me(), team).unwrap());
    assert_eq!((rig.live(agent).current, rig.live(agent).daily_count), (0, 0));
    assert!(matches!(rig.act(assigned(&before), DONE), Acted::Done(_)));
    assert_eq!(rig.live(agent).current, 0);
    rig.route_in(team, json!({}));
    assert_eq!((rig.live(agent).current, rig.live(agent).daily_count), (1, 1));
}

/// 13: random assign, complete, expire, reject, reset steps: materialised counters equal recomputed ones. Every rig ends with
/// the check of the whole store, which recomputes them.
#[test]
fn counters_equal_rows_after_a_thousand_random_steps() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({"default_timeout": "90s"}));
    for name in ["a", "b", "c"] {
        rig.member(
            team,
            name,
            json!({"capacity": {"max_concurrent": 4, "daily_limit": 60}}),
        );
    }
    let mut chance = Chance::new(7);
    for step in 0..1_000 {
        let open: Vec<_> = rig
            .assignments()
            .into_iter()
            .filter(|one| one.state.is_live())
            .collect();
        let pick = open.get(usize::try_from(chance.number() % 12).unwrap());
        match (chance.number() % 10, pick) {
            (0..=3, _) => drop(rig.route_in(team, json!({"units": 1 + step % 3}))),
            (4 | 5, Some(one)) => drop(rig.act(one.id, DONE)),
            (6, Some(one)) => drop(rig.act(one.id, reject())),
            (7, Some(one)) => drop(rig.act(one.id, Act::Accept)),
            (8, _) => rig.pass_time(chance.number() % 120_000),
            (9, _) if step % 7 == 0 => {
                rig.declare(move |tx| {
                    recipient_pools::reset_capacity(tx, &super::routing_stage::me(), team).unwrap()
                });
            }
            _ => drop(rig.settle()),
        }
    }
    rig.assert_clean();
}

/// 14, in this process: a commit that fails leaves nothing of a route call; one that lands leaves all of it.
#[test]
fn a_route_call_is_all_or_nothing() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    rig.member(team, "a", json!({}));
    let before = rig.all_rows();
    let tenancy = rig.wait(rig.engine.tenancy(TENANT)).unwrap();
    let body = json!({"work": {"kind": "t"}, "pool_id": team.to_string()});
    let request = ask::read(body.as_object().unwrap(), rig.at(), WorkId::fresh()).unwrap();
    rig.engine.store.faults().plan("store.commit", Fault::NoSpace, 1);
    let failed = rig.wait(router::route(
        &rig.engine,
        tenancy.clone(),
        request.clone(),
        Asked::plain(),
    ));
    assert!(failed.is_err());
    let after = rig.all_rows();
    let differing = after.iter().filter(|row| !before.contains(row)).count();
    assert!(
        differing <= 1,
        "at most the number of the store's last commit: {differing}"
    );
    assert!(rig.assignments().is_empty() && rig.outcomes().is_empty());
    let again = rig.wait(router::route(&rig.engine, tenancy, request, Asked::plain()));
    assert!(matches!(again, Ok(Told::Now(Routed::Decided(_), _))));
    assert_eq!((rig.assignments().len(), rig.outcomes().len()), (1, 1));
}

/// 15: 64 concurrent routes to one free slot: one assigned, 63 with `capacity.concurrent`.
#[test]
fn one_slot_has_one_winner_among_64() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let agent = rig.member(team, "a", json!({"capacity": {"max_concurrent": 1}}));
    let tenancy = rig.wait(rig.engine.tenancy(TENANT)).unwrap();
    let body = json!({"work": {"kind": "t"}, "pool_id": team.to_string()});
    let now = rig.at();
    let told = rig.wait(async {
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..64 {
            let request = ask::read(body.as_object().unwrap(), now, WorkId::fresh()).unwrap();
            let (engine, tenancy) = (rig.engine.clone(), tenancy.clone());
            all.spawn(async move { router::route(&engine, tenancy, request, Asked::plain()).await });
        }
        all.join_all().await
    });
    let mut words = std::collections::BTreeMap::<&str, usize>::new();
    for told in told {
        let Ok(Told::Now(Routed::Decided(written), _)) = told else {
            panic!("{told:?}");
        };
        *words.entry(word(&written)).or_default() += 1;
        if word(&written) == "queued" {
            let histogram = written.decision.explanation.histogram();
            assert_eq!(histogram.get("capacity.concurrent"), Some(&1));
        }
    }
    assert_eq!(words, [("assigned", 1), ("queued", 63)].into());
    assert_eq!(rig.live(agent).current, 1);
}

/// 31: a chain of 5 overflow pools with depth 3 ends `depth_exceeded`; a two-pool ring stops by the visited set.
#[test]
fn hops_are_bounded_by_depth_and_by_the_visited_set() {
    let rig = rig();
    let mut next = rig.routing_pool("p5", json!({}));
    for number in (0..5).rev() {
        let config = json!({
            "fallback": "overflow", "overflow_pool_id": next.to_string(), "max_routing_depth": 3,
        });
        next = rig.routing_pool(&format!("p{number}"), config);
    }
    let deep = rig.route_in(next, json!({}));
    assert_eq!(word(&deep), "depth_exceeded");
    assert_eq!(deep.decision.explanation.hops.len(), 4);
    assert_eq!(rig.waiting(next).len(), 1, "it waits in the first pool");

    let east = rig.routing_pool("one", json!({}));
    let west = rig.routing_pool(
        "two",
        json!({"fallback": "overflow", "overflow_pool_id": east.to_string()}),
    );
    rig.patch_pool(
        east,
        json!({"config": {"fallback": "overflow", "overflow_pool_id": west.to_string()}}),
    );
    let circle = rig.route_in(east, json!({}));
    assert_eq!(word(&circle), "queued");
    assert_eq!((rig.waiting(east).len(), rig.waiting(west).len()), (1, 0));
}

/// 32: catchall: a recipient freed during the delay gets the work; otherwise the hop happens at the due time.
#[test]
fn a_catchall_waits_for_its_delay() {
    let rig = rig();
    let last = rig.routing_pool("last", json!({}));
    let rescuer = rig.member(last, "rescuer", json!({}));
    let config = json!({
        "fallback": "catchall", "catchall_pool_id": last.to_string(), "catchall_delay": "30s",
    });
    let team = rig.routing_pool("p", config);
    let agent = rig.member(team, "a", json!({"capacity": {"max_concurrent": 1}}));
    let first = rig.route_in(team, json!({}));
    assert_eq!(winner(&first), agent);
    let second = rig.route_in(team, json!({}));
    assert_eq!(word(&second), "deferred_catchall");
    rig.pass_time(20_000);
    rig.act(assigned(&first), DONE);
    rig.settle();
    assert_eq!(
        rig.assignments().last().unwrap().recipient,
        agent,
        "freed during the delay"
    );
    let third = rig.route_in(team, json!({}));
    assert_eq!(word(&third), "deferred_catchall");
    rig.pass_time(29_999);
    assert_eq!(rig.assignments().len(), 2);
    rig.pass_time(1);
    assert_eq!(rig.assignments().last().unwrap().recipient, rescuer);
    assert!(rig.waiting(team).is_empty());
}

/// 33: work whose agents were all offline is assigned when one comes online, without any polling: the loop has nothing to wait
/// for but the end of the work's time to live.
#[test]
fn work_is_assigned_when_somebody_comes_online() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let agent = rig.member(team, "a", json!({"state": "RECIPIENT_STATE_OFFLINE"}));
    rig.route_in(team, json!({}));
    let next = rig.settle().unwrap();
    assert_eq!(next, rig.at().plus(3_600 * 1_000_000));
    rig.state(agent, RecipientState::Available);
    rig.settle();
    assert_eq!(rig.live(agent).current, 1);
}

/// 34, 35: a backlog drains oldest first within priority, and an item that matches nobody does not block the one behind it.
#[test]
fn a_backlog_drains_in_order_around_what_matches_nobody() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let agent = rig.member(
        team,
        "a",
        json!({"state": "RECIPIENT_STATE_OFFLINE", "capacity": {"max_concurrent": 2}}),
    );
    let late = rig.route_in(team, json!({"priority": 5}));
    let excluded = rig.route(&json!({
        "work": {"kind": "t", "priority": 0}, "pool_id": team.to_string(),
        "exclude_recipient_ids": [agent.to_string()],
    }));
    let old = rig.route_in(team, json!({"priority": 1}));
    rig.clock().advance(10);
    let new = rig.route_in(team, json!({"priority": 1}));
    rig.state(agent, RecipientState::Available);
    rig.settle();
    let works: Vec<WorkId> = rig.assignments().iter().map(|one| one.work).collect();
    assert_eq!(works, [old.decision.work, new.decision.work]);
    let left: Vec<WorkId> = rig.waiting(team).iter().map(|item| item.work).collect();
    assert_eq!(left, [excluded.decision.work, late.decision.work]);
    let first = rig.assignments()[0].id;
    rig.act(first, DONE);
    rig.settle();
    assert_eq!(rig.assignments().last().unwrap().work, late.decision.work);
}

/// 36: low-priority work waits at most priority steps × `age_step` behind a steady stream.
#[test]
fn aged_work_passes_a_steady_stream() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({"age_step": "10s"}));
    let agent = rig.member(team, "a", json!({"capacity": {"max_concurrent": 1}}));
    rig.route_in(team, json!({}));
    let low = rig.route_in(team, json!({"priority": 7}));
    while !rig.assignments().iter().any(|one| one.work == low.decision.work) {
        rig.clock().advance(1_000);
        rig.route_in(team, json!({"priority": 4}));
        let open = rig.assignments().into_iter().find(|one| one.state.is_live());
        rig.act(open.unwrap().id, DONE);
        rig.settle();
        assert!(rig.elapsed_ms() <= 40_000, "three steps of 10 s, and one turn");
    }
    assert!(rig.elapsed_ms() >= 29_000);
    assert_eq!(rig.live(agent).current, 1);
}

/// 38: manual assignment over capacity: refused; with force: flagged in the decision.
#[test]
fn a_manual_assignment_goes_beyond_capacity_only_by_force() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let agent = rig.member(team, "a", json!({"capacity": {"max_concurrent": 1}}));
    rig.route_in(team, json!({}));
    let body = json!({
        "work": {"kind": "t"}, "pool_id": team.to_string(), "recipient_id": agent.to_string(),
    });
    let refused = rig.try_route(&body);
    assert!(
        matches!(refused, Routed::Not(No::Refused(Refusal::AtCapacity(_)))),
        "{refused:?}"
    );
    let mut forced = body;
    forced["force"] = json!(true);
    let forced = rig.route(&forced);
    assert!(forced.decision.winners[0].over_capacity);
    assert_eq!(rig.live(agent).current, 2);
    assert!(rig.assignment(assigned(&forced)).over_capacity);
}

/// 39: an assignment whose holder vanished expires, frees capacity, re-routes elsewhere; accept does not stop the clock.
#[test]
fn an_assignment_without_an_answer_goes_elsewhere() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({"default_timeout": "30s"}));
    let (a, b) = (rig.member(team, "a", json!({})), rig.member(team, "b", json!({})));
    let first = rig.route_in(team, json!({}));
    let holder = winner(&first);
    rig.pass_time(29_000);
    rig.act(assigned(&first), Act::Accept);
    rig.pass_time(29_999);
    assert_eq!(rig.assignment(assigned(&first)).state, AssignmentState::Accepted);
    rig.pass_time(1);
    let expired = rig.assignment(assigned(&first));
    assert_eq!(expired.state, AssignmentState::Expired);
    assert_eq!(expired.end.unwrap().kind, EndKind::Deadline);
    let second = rig.assignments().pop().unwrap();
    assert_eq!(second.recipient, if holder == a { b } else { a });
    assert_eq!(second.lineage.parent_assignment, Some(expired.id));
    assert_eq!(rig.live(holder).current, 0);
}

/// 40: `tried.before` excludes the recipient who rejected; alone in the pool, the fallback runs.
#[test]
fn who_rejected_is_not_asked_again() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let (a, b) = (rig.member(team, "a", json!({})), rig.member(team, "b", json!({})));
    let first = rig.route_in(team, json!({}));
    rig.act(assigned(&first), reject());
    rig.settle();
    let second = rig.assignments().pop().unwrap();
    assert_ne!(second.recipient, winner(&first));
    rig.act(second.id, reject());
    rig.settle();
    assert_eq!(rig.outcomes(), ["assigned", "assigned", "queued"]);
    let item = rig.waiting(team).pop().unwrap();
    assert_eq!(item.histogram, [("tried.before".to_owned(), 2)]);
    assert_eq!((rig.live(a).current, rig.live(b).current), (0, 0));

    let strict = rig.routing_pool("strict", json!({"fallback": "drop"}));
    rig.member(strict, "c", json!({}));
    let only = rig.route_in(strict, json!({}));
    assert!(matches!(rig.act(assigned(&only), Act::Accept), Acted::Done(_)));
    assert!(matches!(rig.act(assigned(&only), reject()), Acted::Refused(_)));
    let back = Act::Return {
        reason: String::new(),
        reroute: true,
    };
    rig.act(assigned(&only), back);
    rig.settle();
    assert_eq!(rig.outcomes().last().unwrap(), "dropped");
}

/// 54, second half: `dry_run` leaves the store as it was, to the last byte.
#[test]
fn a_dry_run_writes_nothing() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    rig.member(team, "a", json!({}));
    rig.member(team, "b", json!({}));
    rig.route_in(team, json!({}));
    let before = rig.all_rows();
    let body = json!({"work": {"kind": "t"}, "pool_id": team.to_string(), "dry_run": true});
    for _ in 0..10 {
        let judged = rig.dry(&body);
        let passed = judged.outcome.unwrap();
        assert!(!passed.decision.committed);
        assert_eq!(passed.decision.outcome.word(), "assigned");
    }
    assert!(before == rig.all_rows());
}

/// 57, second half: the dedup window returns the existing decision, and forgets it afterwards.
#[test]
fn the_same_work_within_the_window_has_the_same_decision() {
    let rig = rig();
    let dedup = json!({"enabled": true, "key": "work.attributes.order", "window": "60s"});
    let team = rig.routing_pool("p", json!({"dedup": dedup}));
    rig.member(team, "a", json!({}));
    let body = json!({
        "work": {"kind": "t", "attributes": {"order": "7"}}, "pool_id": team.to_string(),
    });
    let first = rig.route(&body);
    let Routed::Existing(_, text) = rig.try_route(&body) else {
        panic!("another decision");
    };
    let known: serde_json::Value = text.read().unwrap();
    assert_eq!(known["id"], first.decision.id.to_string());
    assert_eq!(rig.assignments().len(), 1);
    rig.pass_time(60_000);
    rig.route(&body);
    assert_eq!(rig.assignments().len(), 2);
}

/// Two clients race for a recipient's last slot: never above capacity. A hundredth of the number; `benches/routing.py` has the
/// whole.
#[test]
fn two_clients_never_share_a_last_slot() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({"fallback": "drop"}));
    let agent = rig.member(team, "a", json!({"capacity": {"max_concurrent": 1}}));
    let tenancy = rig.wait(rig.engine.tenancy(TENANT)).unwrap();
    let body = Arc::new(json!({"work": {"kind": "t"}, "pool_id": team.to_string()}));
    for _ in 0..100 {
        let now = rig.at();
        let (one, two) = rig.wait(async {
            let request = || ask::read(body.as_object().unwrap(), now, WorkId::fresh()).unwrap();
            tokio::join!(
                router::route(&rig.engine, tenancy.clone(), request(), Asked::plain()),
                router::route(&rig.engine, tenancy.clone(), request(), Asked::plain()),
            )
        });
        let words: Vec<&str> = [one, two]
            .iter()
            .map(|told| {
                let Ok(Told::Now(Routed::Decided(written), _)) = told else {
                    panic!("{told:?}");
                };
                word(written)
            })
            .collect();
        assert!(
            words.contains(&"assigned") && words.contains(&"dropped"),
            "{words:?}"
        );
        assert_eq!(rig.live(agent).current, 1);
        let open = rig.assignments().pop().unwrap();
        rig.act(open.id, DONE);
    }
}

/// Work that comes back to a pool that is switched off waits until it is switched on.
#[test]
fn work_that_comes_back_outlasts_a_kill_switch() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let (a, b) = (rig.member(team, "a", json!({})), rig.member(team, "b", json!({})));
    let first = rig.route_in(team, json!({}));
    let me = super::routing_stage::me;
    rig.declare(move |tx| recipient_pools::set_enabled(tx, &me(), team, false, "storm").unwrap());
    rig.act(assigned(&first), reject());
    rig.settle();
    assert_eq!((rig.waiting(team).len(), rig.assignments().len()), (1, 1));
    rig.declare(move |tx| recipient_pools::set_enabled(tx, &me(), team, true, "").unwrap());
    rig.settle();
    let second = rig.assignments().pop().unwrap();
    assert_eq!(second.recipient, if winner(&first) == a { b } else { a });
}

/// A long backlog that nobody can take costs one pass for each event, not one for each item.
#[test]
fn a_hopeless_backlog_costs_one_pass() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let agent = rig.member(team, "a", json!({"capacity": {"max_concurrent": 1}}));
    let first = rig.route_in(team, json!({}));
    for _ in 0..300 {
        rig.route_in(team, json!({}));
    }
    rig.settle();
    rig.act(assigned(&first), DONE);
    rig.settle();
    assert_eq!((rig.live(agent).current, rig.waiting(team).len()), (1, 299));
    let touched = rig
        .waiting(team)
        .iter()
        .filter(|item| item.record_version > 0)
        .count();
    assert_eq!(touched, 0);
}

/// A recipient that goes with `release`: its assignments expire and its work goes to others.
#[test]
fn a_removed_recipient_leaves_its_work_to_others() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let (a, b) = (rig.member(team, "a", json!({})), rig.member(team, "b", json!({})));
    let first = rig.route_in(team, json!({}));
    let (gone, left) = if winner(&first) == a { (a, b) } else { (b, a) };
    let me = super::routing_stage::me;
    let refused = rig.change(move |tx| recipients::delete(tx, &me(), gone, false));
    assert!(matches!(refused, Outcome::Refused(_)), "{refused:?}");
    rig.declare(move |tx| recipients::delete(tx, &me(), gone, true).unwrap());
    rig.settle();
    let second = rig.assignments().pop().unwrap();
    assert_eq!(second.recipient, left);
    assert_eq!(
        rig.assignment(assigned(&first)).end.unwrap().kind,
        EndKind::Released
    );
}

/// A pool that goes: what waits in it is routed by the rules of the tenant, and says so when there is none.
#[test]
fn work_outlives_its_pool() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    rig.route_in(team, json!({}));
    let me = super::routing_stage::me;
    rig.declare(move |tx| recipient_pools::delete(tx, &me(), team, false).unwrap());
    rig.settle();
    assert_eq!(rig.outcomes(), ["queued", "no_rule_matched"]);
    assert!(rig.waiting(team).is_empty());
}

/// Where looks ahead are spoilt by others the pass is made in the writer's turn, and its texts beside it: what is written, said and
/// kept for a second request is what everybody else gets.
#[test]
fn what_is_decided_in_the_writers_turn_is_whole() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    rig.member(team, "a", json!({}));
    rig.member(team, "b", json!({}));
    let entrance = (TENANT, Some(team));
    for _ in 0..4 {
        rig.engine.routing.rivalry.note(entrance, false);
    }
    let body = json!({"work": {"kind": "ticket"}, "pool_id": team.to_string()});
    let ticket = Ticket {
        tenant: TENANT,
        key: [1; 16],
        request: [2; 16],
    };
    let ask = || {
        let tenancy = rig.wait(rig.engine.tenancy(TENANT)).unwrap();
        let asked = Asked::new(Some(ticket), |_, routed: &Routed| {
            let Routed::Decided(written) = routed else {
                return Ok(None);
            };
            Ok(Some(Answer {
                status: 200,
                location: None,
                body: JsonText::of(&written.document(None)).unwrap(),
            }))
        })
        .answered_after(|_| panic!("its answer is kept"));
        rig.wait(router::route(&rig.engine, tenancy, rig.request(&body), asked))
            .unwrap()
    };
    let Told::Now(Routed::Decided(written), Some(answer)) = ask() else {
        panic!("it is decided");
    };
    let Told::Before(again) = ask() else {
        panic!("it is decided once");
    };
    assert_eq!(again, answer);
    let id = written.decision.id;
    let row = rig.read(|tx| decisions::decision(tx, TENANT, id)).unwrap();
    let digest = format!("sha256:{}", row.snapshot.clone().unwrap());
    let (kept, said): (Value, Value) = (row.text.read().unwrap(), answer.body.read().unwrap());
    assert_eq!(
        (&kept["snapshot"], &said["snapshot"]),
        (&json!(digest), &json!(digest))
    );
    let of = row.clone();
    let source = rig.read(move |tx| decisions::source(tx, TENANT, (id, &of)));
    let replayed = source.unwrap().recall().unwrap().replay().unwrap();
    assert_eq!(differences(&kept, &replayed.decision.to_json(Explain::First)), []);
    // The next one, without a key and in turn: it knows what the first has moved.
    let next = rig.route_in(team, json!({}));
    assert_ne!(winner(&next), winner(&written));
    assert!(next.decision.snapshot.get().is_some_and(|said| said.len() == 64));
    // The turn may have begun before somebody asked: the decision is no earlier than that.
    let later = rig.at().plus(250_000);
    let wish = Wish {
        asked_at: later,
        ..Wish::fresh(rig.request(&body), DecisionId::fresh())
    };
    let (shelf, tenancy) = (
        rig.engine.routing.clone(),
        rig.wait(rig.engine.tenancy(TENANT)).unwrap(),
    );
    let routed = rig.change(move |tx| route::commit(tx, &shelf, &tenancy, &wish, None));
    assert!(matches!(routed, Routed::Decided(written) if written.decision.at == later));
    rig.assert_clean();
}
