//! Steps that route, over a real store: who waits for whose work.

use std::sync::Arc;

use serde_json::json;

use super::routing_stage::{RoutingRig, assigned, rig};
use super::stage::TENANT;
use crate::engine::changes::routing::assignments::Act;
use crate::engine::changes::routing::route::Wish;
use crate::engine::changes::routing::steps::{self, Done};
use crate::engine::deciding;
use crate::store::live_rows::WorkWaiter;
use crate::store::table::Rows;
use crate::store::tables as all;
use crate::words::ids::{DecisionId, RecipientPoolId, RunId, WorkId};
use crate::words::limits;
use crate::words::names::StepRef;

fn waiter(number: u32) -> WorkWaiter {
    WorkWaiter {
        run: RunId([7; 16]),
        step: StepRef::new("r").unwrap(),
        attempt: number,
    }
}

fn numbered(number: u32) -> WorkId {
    let mut id = [9; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    WorkId(id)
}

/// A step with this order, as its worker decides for it.
fn step(rig: &RoutingRig, team: RecipientPoolId, order: &str, own: WorkId) -> Done {
    let tenancy = Arc::new(rig.wait(rig.engine.tenancy(TENANT)).unwrap());
    let body = json!({"work": {"kind": "t", "external_id": order}, "pool_id": team.to_string()});
    let mut request = rig.request(&body);
    request.work.id = own;
    let wish = Wish::fresh(request, DecisionId::fresh());
    let judged = rig
        .wait(deciding::judge(&rig.engine, Arc::clone(&tenancy), wish.clone()))
        .unwrap();
    let shelf = rig.engine.routing.clone();
    rig.change(move |tx| steps::decide(tx, (&shelf, &*tenancy), &wish, &judged, Some(&waiter(1))))
}

fn waiters(rig: &RoutingRig) -> Vec<(WorkId, WorkId)> {
    let rows = rig.read(|tx| tx.scan(&all::WORK_WAITERS, &(TENANT,), None, usize::MAX));
    rows.into_iter()
        .map(|((_, awaited, own), _)| (awaited, own))
        .collect()
}

fn dedup() -> serde_json::Value {
    json!({"dedup": {"enabled": true, "key": "work.external_id", "window": "1h"}})
}

#[test]
fn a_duplicate_waits_once_however_often_its_worker_dies() {
    let rig = rig();
    let team = rig.routing_pool("p", dedup());
    rig.member(team, "a", json!({}));
    let (first, second) = (numbered(1), numbered(2));
    let Done::Decided {
        work,
        is_open,
        written,
        ..
    } = step(&rig, team, "o", first)
    else {
        panic!("it is decided");
    };
    assert_eq!((work, is_open, written.is_some()), (first, true, true));
    for _ in 0..3 {
        let Done::Decided {
            work,
            is_open,
            written,
            ..
        } = step(&rig, team, "o", second)
        else {
            panic!("it is decided");
        };
        assert_eq!((work, is_open, written.is_some()), (first, true, false));
    }
    assert_eq!(waiters(&rig), [(first, first), (first, second)]);
    let held = rig.assignments();
    assert_eq!(held.len(), 1);
    let done = Act::Complete {
        value_micro: None,
        result: None,
    };
    rig.act(held[0].id, done);
    assert_eq!(waiters(&rig), []);
    let Done::Decided { is_open, .. } = step(&rig, team, "o", second) else {
        panic!("it is decided");
    };
    assert!(!is_open, "it has ended, and nobody waits for it");
    rig.assert_clean();
}

#[test]
fn work_is_open_while_it_waits_is_offered_or_held() {
    let rig = rig();
    let team = rig.routing_pool("p", dedup());
    let own = |number| numbered(number);
    // Nobody is there: it waits, and so does its duplicate.
    let open = |done: Done| matches!(done, Done::Decided { is_open: true, .. });
    assert!(open(step(&rig, team, "o", own(1))));
    assert!(open(step(&rig, team, "o", own(2))));
    let agent = rig.member(team, "a", json!({}));
    rig.settle();
    assert_eq!(rig.assignments().len(), 1, "{agent}");
    assert!(open(step(&rig, team, "o", own(3))));
    // It comes back, and stands in a queue again.
    let held = rig.assignments()[0].id;
    rig.act(
        held,
        Act::Return {
            reason: "not mine".to_owned(),
            reroute: true,
        },
    );
    assert!(open(step(&rig, team, "o", own(4))));
    rig.settle();
    assert!(open(step(&rig, team, "o", own(5))));
    assert_eq!(waiters(&rig).len(), 5);
    let item = rig.waiting(team)[0].id;
    rig.change(move |tx| crate::engine::changes::routing::waiting::cancel(tx, TENANT, team, item));
    assert_eq!(waiters(&rig), []);
    assert!(!open(step(&rig, team, "o", own(6))));
    rig.assert_clean();
}

#[test]
fn so_many_wait_for_the_same_work_and_no_more() {
    let rig = rig();
    let team = rig.routing_pool("p", dedup());
    rig.member(team, "a", json!({}));
    let written = rig.route(&json!({"work": {"kind": "t", "external_id": "o"}, "pool_id": team.to_string()}));
    let work = written.decision.work;
    let most = u32::try_from(limits::WORK_WAITERS_MAX).unwrap();
    rig.change(move |tx| {
        for number in 0..most {
            tx.put(
                &all::WORK_WAITERS,
                &(TENANT, work, numbered(number)),
                &waiter(number),
            )?;
        }
        Ok(())
    });
    let crowded = step(&rig, team, "o", numbered(most));
    assert!(
        matches!(crowded, Done::Crowded(known) if known == work),
        "{crowded:?}"
    );
    // Whoever waits already may ask again.
    let known = step(&rig, team, "o", numbered(0));
    assert!(matches!(known, Done::Decided { is_open: true, .. }), "{known:?}");
    let done = Act::Complete {
        value_micro: None,
        result: None,
    };
    rig.act(assigned(&written), done);
    assert_eq!(waiters(&rig), []);
}
