//! Room, days and what may be beyond both.

use super::rig::{NOW, Rig, candidate, pool_id};
use crate::domain::routing::capacity::{available, daily_count, refusal};
use crate::domain::routing::decision::Outcome;
use crate::domain::routing::reason::Reason;
use crate::words::time::Micros;
use std::sync::Arc;

#[test]
fn test_10_the_truth_table_of_capacity() {
    // current, max, daily count, daily limit; at capacity; available.
    for (current, max, count, limit, at_capacity, room) in [
        (0, 0, 0, 0, true, 0),
        (0, 1, 0, 0, false, 1),
        (1, 1, 0, 0, true, 0),
        (2, 1, 0, 0, true, 0),
        (0, 5, 9, 0, false, 5),
        (0, 5, 0, 1, false, 1),
        (0, 5, 1, 1, true, 0),
        (0, 5, 2, 1, true, 0),
        (3, 5, 3, 9, false, 2),
        (3, 5, 8, 9, false, 1),
        (5, 5, 9, 9, true, 0),
    ] {
        let mut member = candidate(1, "a");
        let recipient = Arc::make_mut(&mut member.recipient);
        (recipient.max_concurrent, recipient.daily_limit) = (max, limit);
        (member.live.current, member.live.daily_count) = (current, count);
        member.live.daily_reset_at = Some(NOW.plus(1));
        let case = (current, max, count, limit);
        assert_eq!(refusal(&member, NOW).is_some(), at_capacity, "{case:?}");
        assert_eq!(available(&member, NOW), room, "{case:?}");
    }
}

#[test]
fn test_11_the_daily_window_ends_to_the_microsecond() {
    let mut member = candidate(1, "a");
    Arc::make_mut(&mut member.recipient).daily_limit = 2;
    (member.live.daily_count, member.live.daily_reset_at) = (2, Some(NOW));
    assert!(refusal(&member, Micros(NOW.0 - 1)).is_some());
    assert_eq!((refusal(&member, NOW), daily_count(&member, NOW)), (None, 0));
    member.live.daily_reset_at = None;
    assert_eq!(refusal(&member, NOW), None);
}

fn crowd(budget_micro: u64) -> Rig {
    let names: Vec<String> = (0..12).map(|number| format!("m{number:02}")).collect();
    let mut rig = Rig::new(
        "least_utilized",
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    for name in &names {
        rig.member(name, |recipient, live| {
            (recipient.max_concurrent, live.current) = (5, 5);
        });
    }
    rig.configure(1, |known| {
        known.config.allow_over_capacity = true;
        known.config.over_capacity_budget_micro = budget_micro;
    });
    rig
}

fn most(rig: &Rig) -> (u32, u32) {
    let members = &rig.world.candidates[&pool_id(1)];
    let above = members
        .iter()
        .map(|member| member.live.current.saturating_sub(5))
        .sum();
    (
        above,
        members.iter().map(|member| member.live.current).max().unwrap(),
    )
}

#[test]
fn test_16_over_capacity_within_its_budget() {
    let mut rig = crowd(10_000_000);
    for _ in 0..6 {
        let passed = rig.route();
        assert_eq!(passed.decision.outcome, Outcome::AssignedOverCapacity);
        assert!(passed.decision.winners[0].over_capacity);
    }
    assert_eq!(most(&rig), (6, 6));
    let passed = rig.route();
    assert_eq!(passed.decision.outcome, Outcome::Queued);
    let reasons: Vec<_> = passed
        .decision
        .explanation
        .candidates
        .iter()
        .filter_map(|one| one.reason.clone())
        .collect();
    assert!(
        reasons.contains(&Reason::CapacityOverBudget { over: 7, budget: 6 }),
        "{reasons:?}"
    );
    // With room somewhere nobody goes beyond.
    rig.member("m03", |_, live| live.current = 4);
    assert_eq!(rig.look().decision.outcome, Outcome::Assigned);
}

#[test]
fn test_17_without_a_budget_each_may_go_one_above() {
    let mut rig = crowd(0);
    for _ in 0..12 {
        assert_eq!(rig.route().decision.outcome, Outcome::AssignedOverCapacity);
    }
    assert_eq!(most(&rig), (12, 6));
    assert_eq!(rig.route().decision.outcome, Outcome::Queued);
    // Whoever takes nothing takes nothing.
    let mut rig = Rig::new("", &["a"]);
    rig.configure(1, |known| known.config.allow_over_capacity = true);
    rig.member("a", |recipient, _| recipient.max_concurrent = 0);
    assert_eq!(rig.look().decision.outcome, Outcome::Queued);
}

#[test]
fn the_ladder_of_availability_goes_step_by_step() {
    let mut rig = Rig::new("availability_fallback", &["a", "b", "c"]);
    rig.member("b", |_, live| {
        live.state = crate::domain::routing::objects::RecipientState::Busy;
    });
    rig.member("c", |recipient, live| {
        (recipient.max_concurrent, live.current) = (1, 1);
    });
    assert_eq!(rig.winner(&rig.look()), "a");
    rig.member("a", |_, live| {
        live.state = crate::domain::routing::objects::RecipientState::Offline;
    });
    assert_eq!(rig.winner(&rig.look()), "b");
    rig.member("b", |_, live| {
        live.state = crate::domain::routing::objects::RecipientState::Offline;
    });
    let passed = rig.look();
    assert_eq!(
        (rig.winner(&passed).as_str(), passed.decision.outcome),
        ("c", Outcome::AssignedOverCapacity)
    );
    rig.options(
        "availability_fallback",
        &serde_json::json!({"steps": ["available", "busy"]}),
    );
    assert_eq!(rig.look().decision.outcome, Outcome::Queued);
}
