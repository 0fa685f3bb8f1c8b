//! Nobody is eligible: queues, hops, catchalls, and where the way ends.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "values and reasons are asked for the few kinds that matter; every other one is answered alike"
)]

use super::rig::{NOW, Rig, candidate, pool_id, recipient_pool};
use crate::domain::routing::decision::Outcome;
use crate::domain::routing::objects::{FallbackKind, KillSwitch, RecipientState, ShardBy, Sharding};
use crate::domain::routing::pass::{Cause, Ends, Waits};
use crate::domain::routing::reason::Note;
use crate::words::time::Micros;

/// Recipient pools that overflow from one to the next; the last one leads to `last`.
fn chain(count: u32, last: Option<u32>, depth: u32) -> Rig {
    let mut rig = Rig::new("", &[]);
    for number in 1..=count {
        let mut made = recipient_pool(number);
        made.config.max_routing_depth = if number == 1 { depth } else { 9 };
        let next = if number < count { Some(number + 1) } else { last };
        if let Some(next) = next {
            (made.config.fallback, made.config.overflow) = (FallbackKind::Overflow, Some(pool_id(next)));
        }
        rig.add_pool(made);
    }
    rig
}

fn waits(passed: &crate::domain::routing::pass::Passed) -> Waits {
    match &passed.ends {
        Ends::Waits(waits) => *waits,
        other => panic!("{other:?}"),
    }
}

#[test]
fn test_31_depth_and_rings_end_where_the_pass_began() {
    let passed = chain(5, None, 3).look();
    assert_eq!(passed.decision.outcome, Outcome::DepthExceeded);
    assert_eq!(waits(&passed).recipient_pool, pool_id(1));
    assert_eq!(passed.decision.explanation.hops.len(), 4);
    assert_eq!(
        passed.decision.notes,
        [Note::Skipped {
            recipient_pool: "pool-5".to_owned()
        }]
    );

    let passed = chain(2, Some(1), 9).look();
    assert_eq!(passed.decision.outcome, Outcome::Queued);
    assert_eq!(waits(&passed).recipient_pool, pool_id(1));
    assert_eq!(passed.decision.explanation.hops.len(), 2);
    assert_eq!(
        passed.decision.notes,
        [Note::Skipped {
            recipient_pool: "pool-1".to_owned()
        }]
    );

    // A chain that ends in a queue waits there, and says so.
    let passed = chain(3, None, 3).look();
    assert_eq!(
        (passed.decision.outcome, waits(&passed).recipient_pool),
        (Outcome::Overflowed, pool_id(3))
    );
    assert_eq!(passed.trail, [pool_id(1), pool_id(2)]);
    assert_eq!(passed.decision.first_pool.map(|first| first.id), Some(pool_id(1)));
}

#[test]
fn a_later_pass_of_the_same_work_goes_on_counting() {
    let mut rig = chain(5, None, 3);
    rig.request.recipient_pool = Some(pool_id(4));
    rig.request.trail = vec![pool_id(1), pool_id(2), pool_id(3)];
    let passed = rig.look();
    assert_eq!(
        (passed.decision.outcome, waits(&passed).recipient_pool),
        (Outcome::DepthExceeded, pool_id(1))
    );
    rig.request.recipient_pool = Some(pool_id(3));
    rig.request.trail = vec![pool_id(1)];
    rig.request.cause = Cause::Escalation;
    rig.configure(3, |known| known.config.fallback = FallbackKind::Queue);
    let passed = rig.look();
    assert_eq!(
        (passed.decision.outcome, waits(&passed).recipient_pool),
        (Outcome::Escalated, pool_id(3))
    );
}

#[test]
fn a_target_that_does_not_route_sends_the_work_back() {
    let mut rig = chain(2, None, 3);
    rig.configure(2, |known| {
        known.config.kill_switch = Some(KillSwitch {
            reason: "fire".to_owned(),
            at: NOW,
            by: "ops".to_owned(),
        });
    });
    let passed = rig.look();
    assert_eq!(
        (passed.decision.outcome, waits(&passed).recipient_pool),
        (Outcome::PoolUnroutable, pool_id(1))
    );
    rig.request.recipient_pool = Some(pool_id(2));
    let passed = rig.look();
    assert_eq!(
        (passed.decision.outcome, &passed.ends),
        (Outcome::PoolUnroutable, &Ends::Over)
    );
    assert_eq!(
        passed.decision.recipient_pool.map(|chosen| chosen.name),
        Some("pool-2".to_owned())
    );
}

#[test]
fn queues_expire_and_drops_stay() {
    let mut rig = Rig::new("", &["a"]);
    rig.member("a", |_, live| live.state = RecipientState::Offline);
    rig.configure(1, |known| known.config.queue_ttl_us = 60_000_000);
    let passed = rig.look();
    assert_eq!(waits(&passed).expires_at, NOW.plus(60_000_000));
    rig.request.waiting_since = Some(Micros(NOW.0 - 60_000_000));
    let passed = rig.look();
    assert_eq!(passed.decision.outcome, Outcome::Dropped);
    assert_eq!(
        passed.decision.notes,
        [Note::QueueExpired {
            waited_us: 60_000_000,
            ttl_us: 60_000_000
        }]
    );
    assert_eq!(
        passed.decision.summary,
        "Nobody of 1: it waited 1m and was dropped; state.offline for 1."
    );
    rig.request.waiting_since = None;
    rig.configure(1, |known| known.config.fallback = FallbackKind::Drop);
    assert_eq!(rig.look().decision.outcome, Outcome::Dropped);
}

#[test]
fn test_32_the_catchall_is_due_after_its_delay_and_whoever_is_free_before_gets_it() {
    let mut rig = Rig::new("", &["a"]);
    rig.member("a", |_, live| live.state = RecipientState::Offline);
    rig.add_pool(recipient_pool(2));
    rig.world
        .candidates
        .insert(pool_id(2), vec![candidate(9, "z")].into());
    rig.configure(1, |known| {
        known.config.fallback = FallbackKind::Catchall;
        known.config.catchall = Some(pool_id(2));
        known.config.catchall_delay_us = 30_000_000;
    });
    let passed = rig.look();
    assert_eq!(passed.decision.outcome, Outcome::DeferredCatchall);
    assert_eq!(waits(&passed).catchall, Some((NOW.plus(30_000_000), pool_id(2))));
    (rig.request.waiting_since, rig.request.hop_since) = (Some(NOW), Some(NOW));
    rig.now = NOW.plus(29_999_999);
    assert_eq!(rig.look().decision.outcome, Outcome::DeferredCatchall);
    let mut freed = rig.clone();
    freed.member("a", |_, live| live.state = RecipientState::Available);
    assert_eq!(freed.winner(&freed.look()), "a");
    rig.now = NOW.plus(30_000_000);
    let passed = rig.look();
    assert_eq!(
        (rig.winner(&passed).as_str(), passed.decision.outcome),
        ("z", Outcome::Assigned)
    );
}

#[test]
fn shards_spread_members_and_work() {
    let names: Vec<String> = (0..40).map(|number| format!("m{number}")).collect();
    let mut rig = Rig::new("", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let sharding = |by| {
        Some(Sharding {
            by,
            key: Some("work.attributes.region".to_owned()),
            shards: vec![pool_id(2), pool_id(3), pool_id(4)],
        })
    };
    for number in [2, 3, 4] {
        rig.add_pool(recipient_pool(number));
    }
    rig.configure(1, |known| known.config.sharding = sharding(ShardBy::Recipient));
    let mut seen = std::collections::BTreeMap::new();
    for region in 0..60 {
        rig.request.work = super::rig::work(&serde_json::json!({"region": format!("r{region}")}));
        let passed = rig.look();
        let hop = &passed.decision.explanation.hops[0];
        assert_eq!((hop.depth, passed.decision.notes.len()), (1, 1));
        let members: Vec<_> = passed
            .decision
            .explanation
            .candidates
            .iter()
            .map(|one| one.recipient.id)
            .collect();
        let known = seen.entry(hop.id).or_insert_with(|| members.clone());
        assert_eq!(*known, members);
    }
    let all: usize = seen.values().map(Vec::len).sum();
    assert_eq!((seen.len(), all), (3, 40));
    rig.configure(1, |known| known.config.sharding = sharding(ShardBy::Work));
    assert_eq!(rig.look().decision.outcome, Outcome::Overflowed);
}
