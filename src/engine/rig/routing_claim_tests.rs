//! Claim mode and the clocks of SLAs over a real store: section 8 of the specification of routing, by the numbers of its test
//! list.

#![expect(
    clippy::needless_pass_by_value,
    reason = "bodies are made where they are used"
)]

use serde_json::{Map, Value, json};

use super::routing_stage::{RoutingRig, me, rig, word};
use super::stage::TENANT;
use crate::domain::routing::assignment::{AssignmentState, EndKind};
use crate::domain::routing::offer::{NoClaim, OfferState};
use crate::engine::changes::remember::{Asked, Told};
use crate::engine::changes::routing::assignments::Act;
use crate::engine::changes::routing::claims::Claimed;
use crate::engine::changes::traits;
use crate::engine::router::{self, Router};
use crate::store::table::Rows;
use crate::store::tables::{EFFECTS, ROUTING_ALERTS};
use crate::store::{FeedItem, offers};
use crate::words::ids::{ClaimQueueId, RecipientId, RecipientPoolId, WaitingId};

fn queue(rig: &RoutingRig) -> ClaimQueueId {
    let id = ClaimQueueId::fresh();
    let body = Map::from_iter([("name".to_owned(), json!("pond"))]);
    rig.declare(move |tx| traits::create_queue(tx, &me(), id, body.clone()).unwrap());
    id
}

fn pond(rig: &RoutingRig, more: Value) -> (RecipientPoolId, ClaimQueueId) {
    let queue = queue(rig);
    let mut config = json!({"routing_mode": "claim", "claim_queue_id": queue.to_string()});
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    (rig.routing_pool("pond", config), queue)
}

fn offered(rig: &RoutingRig, team: RecipientPoolId, work: Value) -> WaitingId {
    let written = rig.route_in(team, work);
    assert_eq!(word(&written), "queued_for_claim");
    written.item.unwrap()
}

/// 42: a claim race of 50: one has it, 49 hear who; `next` goes in order; a budget that is used up says when it resets.
#[test]
fn of_fifty_claims_one_wins() {
    let rig = rig();
    let (team, queue) = pond(&rig, json!({}));
    let many: Vec<RecipientId> = (0..50)
        .map(|number| rig.member(team, &format!("r{number}"), json!({})))
        .collect();
    let item = offered(&rig, team, json!({}));
    let tenancy = rig.wait(rig.engine.tenancy(TENANT)).unwrap();
    let claims = rig.wait(async {
        let mut all = tokio::task::JoinSet::new();
        for recipient in many {
            let (engine, tenancy) = (rig.engine.clone(), tenancy.clone());
            all.spawn(async move {
                router::claim(&engine, tenancy, (queue, Some(item)), recipient, Asked::plain()).await
            });
        }
        all.join_all().await
    });
    let got = claims
        .iter()
        .filter(|told| matches!(told, Ok(Told::Now(Claimed::Got(_), _))));
    let lost = claims
        .iter()
        .filter(|told| matches!(told, Ok(Told::Now(Claimed::No(NoClaim::Lost { .. }), _))));
    assert_eq!((got.count(), lost.count()), (1, 49), "{claims:?}");
    assert_eq!(rig.assignments().len(), 1);
}

/// 42: next in order, and the budget.
#[test]
fn next_goes_in_order_until_the_budget_is_used_up() {
    let rig = rig();
    let budget = json!({"claim_budget": {"limit": 2, "per": "60s", "max_open": 0}});
    let (team, queue) = pond(&rig, budget);
    let me = rig.member(team, "me", json!({}));
    let late = offered(&rig, team, json!({"priority": 6}));
    rig.clock().advance(10);
    let first = offered(&rig, team, json!({"priority": 2}));
    rig.clock().advance(10);
    let second = offered(&rig, team, json!({"priority": 2}));
    for expected in [first, second] {
        let Claimed::Got(got) = rig.claim(queue, None, me) else {
            panic!("nothing to claim");
        };
        assert_eq!(got.0.claimed.unwrap().offer, expected);
        rig.clock().advance(1_000);
    }
    let Claimed::Budget(exhausted) = rig.claim(queue, Some(late), me) else {
        panic!("beyond the budget");
    };
    assert_eq!((exhausted.used, exhausted.limit), (2, 2));
    let resets_at = exhausted.resets_at.unwrap();
    rig.clock().advance(resets_at.since(rig.at()) / 1_000);
    assert!(matches!(rig.claim(queue, Some(late), me), Claimed::Got(_)));
    assert!(matches!(rig.claim(queue, None, me), Claimed::Nothing));
}

/// A claim is neglected after its queue has gone: nobody would find it there, so it is routed anew.
#[test]
fn a_neglected_claim_does_not_go_back_into_a_queue_that_has_gone() {
    let rig = rig();
    let sla = json!({"sla": {"enabled": true, "max_response_time": "20s"}});
    let (team, queue) = pond(&rig, sla);
    let idle = rig.member(team, "idle", json!({}));
    let item = offered(&rig, team, json!({}));
    let Claimed::Got(got) = rig.claim(queue, Some(item), idle) else {
        panic!("not claimed");
    };
    rig.change(move |tx| Ok(tx.remove(&CLAIM_QUEUES, &(TENANT, queue)).map(drop)?));
    rig.pass_time(20_000);
    let offer = rig.read(|tx| offers::offer(tx, TENANT, item)).unwrap();
    assert!(matches!(offer.state, OfferState::Closed { .. }), "{offer:?}");
    assert_eq!(rig.assignment(got.0.id).end.unwrap().kind, EndKind::Neglected);
}

/// 44: a neglected claim returns to the queue without its holder, count 1.
#[test]
fn a_claim_without_an_answer_goes_back_without_its_holder() {
    let rig = rig();
    let sla = json!({"sla": {"enabled": true, "max_response_time": "20s"}});
    let (team, queue) = pond(&rig, sla);
    let (idle, keen) = (
        rig.member(team, "idle", json!({})),
        rig.member(team, "keen", json!({})),
    );
    let item = offered(&rig, team, json!({}));
    let Claimed::Got(got) = rig.claim(queue, Some(item), idle) else {
        panic!("not claimed");
    };
    rig.pass_time(20_000);
    let ended = rig.assignment(got.0.id);
    assert_eq!(ended.end.unwrap().kind, EndKind::Neglected);
    let offer = rig.read(|tx| offers::offer(tx, TENANT, item)).unwrap();
    assert_eq!(offer.neglect_count, 1);
    assert!(matches!(
        rig.claim(queue, Some(item), idle),
        Claimed::No(NoClaim::Tried(_))
    ));
    let Claimed::Got(again) = rig.claim(queue, None, keen) else {
        panic!("not claimed again");
    };
    rig.act(again.0.id, Act::Accept);
    rig.pass_time(60_000);
    assert_eq!(rig.assignment(again.0.id).state, AssignmentState::Accepted);
}

/// An offer that nobody takes ends with its time, and its work is dropped.
#[test]
fn an_offer_ends_with_its_time() {
    let rig = rig();
    let (team, queue) = pond(&rig, json!({"queue_ttl_seconds": 30}));
    let me = rig.member(team, "me", json!({}));
    let item = offered(&rig, team, json!({}));
    rig.pass_time(30_000);
    assert!(matches!(
        rig.claim(queue, Some(item), me),
        Claimed::No(NoClaim::Closed)
    ));
    assert_eq!(rig.outcomes().last().unwrap(), "dropped");
}

fn breaches(rig: &RoutingRig) -> Vec<FeedItem> {
    let rows = rig.read(|tx| tx.scan(&crate::store::tables::CHANGES, &(), None, usize::MAX));
    let items = rows.into_iter().flat_map(|(_, row)| row.items);
    items
        .filter(|item| item.topic == "routing.sla_breached")
        .collect()
}

/// 45: an SLA breach fires once over a restart; a late fire has both times; the alert is owed with it and decides nothing.
#[test]
fn a_breach_fires_once_also_after_a_stop() {
    let rig = rig();
    let sla = json!({
        "enabled": true, "max_queue_time": "10s", "max_response_time": "5s",
        "alert_webhook_url": "https://alerts.example.com/x",
    });
    let team = rig.routing_pool("p", json!({"sla": sla}));
    rig.route_in(team, json!({}));
    rig.clock().advance(25_000);
    // Two daemons find it at once: the loop of one does nothing.
    for _ in 0..2 {
        rig.wait(Router::new(rig.engine.clone()).settle()).unwrap();
    }
    let fired = breaches(&rig);
    assert_eq!(fired.len(), 1);
    let told: Value = serde_json::from_str(fired[0].detail.as_deref().unwrap()).unwrap();
    assert_eq!(told["kind"], "queue");
    assert_eq!(told["due_at"], "2025-11-29T18:00:10.000000Z");
    assert_eq!(told["seen_at"], "2025-11-29T18:00:25.000000Z");
    assert_eq!(rig.waiting(team).len(), 1, "it waits on");
    assert_eq!((rig.raw(&EFFECTS).len(), rig.raw(&ROUTING_ALERTS).len()), (1, 1));
    rig.member(team, "a", json!({}));
    rig.settle();
    rig.pass_time(5_000);
    let fired = breaches(&rig);
    assert_eq!(fired.len(), 2);
    assert!(
        fired[1]
            .detail
            .as_deref()
            .unwrap()
            .contains("\"kind\":\"response\"")
    );
    assert!(
        rig.assignments()[0].state.is_live(),
        "without an escalation it stays where it is"
    );
}

/// 8.4: an escalation is a new pass in another pool, and says so when the work waits there.
#[test]
fn a_breach_escalates() {
    let rig = rig();
    let seniors = rig.routing_pool("seniors", json!({}));
    let sla = json!({
        "enabled": true, "max_queue_time": "10s", "escalation_pool_id": seniors.to_string(),
    });
    let team = rig.routing_pool("p", json!({"sla": sla}));
    let first = rig.route_in(team, json!({}));
    rig.pass_time(10_000);
    assert_eq!(rig.outcomes(), ["queued", "escalated"]);
    let item = rig.waiting(seniors).pop().unwrap();
    assert_eq!(item.work, first.decision.work);
    let senior = rig.member(seniors, "s", json!({}));
    rig.settle();
    assert_eq!(rig.live(senior).current, 1);
}

/// 4.7: the loop sleeps until a window opens, and nothing else has to happen for waiting work to be tried again.
#[test]
fn work_is_tried_again_when_a_window_opens() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let windows = json!([{"days": ["sat"], "start": "18:10", "end": "20:00"}]);
    let schedule = json!({"timezone": "UTC", "windows": windows});
    let agent = rig.member(team, "a", json!({"schedule": schedule}));
    let waits = rig.route_in(team, json!({}));
    assert_eq!(word(&waits), "queued");
    let histogram = waits.decision.explanation.histogram();
    assert_eq!(histogram.get("schedule.closed"), Some(&1));
    assert_eq!(rig.settle(), Some(rig.at().plus(600 * 1_000_000)));
    rig.pass_time(599_999);
    assert_eq!(rig.live(agent).current, 0);
    rig.pass_time(1);
    assert_eq!(rig.live(agent).current, 1);
}
