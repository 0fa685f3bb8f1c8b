//! Strategies of turns, over decisions that follow each other.

use std::sync::Arc;

use super::rig::{Rig, candidate, pool_id, recipient_id};
use crate::domain::routing::objects::RecipientState;
use crate::domain::routing::reason::Reason;
use crate::domain::routing::state::StageState;
use crate::words::chance::Chance;

const SMOOTH: &str = "smooth_weighted_round_robin@1";

fn currents(rig: &Rig) -> Vec<i64> {
    let state = &rig.world.states[&(pool_id(1), SMOOTH.to_owned())];
    state.members.values().map(|micro| micro / 1_000_000).collect()
}

/// Value of section 12: the smooth sequence, and where each stands before and after each pick.
#[test]
fn value_24_smooth_weighted_turns() {
    let mut rig = Rig::new("", &["a", "b", "c"]);
    rig.weights(&[5, 1, 1]);
    let steps = [
        ([5, 1, 1], "a", [-2, 1, 1]),
        ([3, 2, 2], "a", [-4, 2, 2]),
        ([1, 3, 3], "b", [1, -4, 3]),
        ([6, -3, 4], "a", [-1, -3, 4]),
        ([4, -2, 5], "c", [4, -2, -2]),
        ([9, -1, -1], "a", [2, -1, -1]),
        ([7, 0, 0], "a", [0, 0, 0]),
    ];
    for (before, winner, after) in steps {
        let passed = rig.route();
        assert_eq!(rig.winner(&passed), winner);
        let shown: Vec<i64> = passed
            .decision
            .explanation
            .candidates
            .iter()
            .map(|verdict| verdict.numbers.as_ref().unwrap().cur.unwrap() / 1_000_000)
            .collect();
        assert_eq!(shown, before);
        assert_eq!(currents(&rig), after);
        for verdict in &passed.decision.explanation.candidates {
            if let Some(reason) = &verdict.reason {
                assert!(matches!(reason, Reason::LostTurn { .. }), "{reason:?}");
            }
        }
    }
    assert_eq!(rig.winners(7), "a a b a c a a");
    for (weights, sequence) in [
        (&[1, 2, 4][..], "c b c a c b c"),
        (&[3, 2, 1], "a b a c b a"),
        (&[4, 3, 2], "a b c a b a c b a"),
        (&[1, 1, 1], "a b c a b c"),
    ] {
        let mut rig = Rig::new("", &["a", "b", "c"]);
        rig.weights(weights);
        assert_eq!(rig.winners(sequence.split(' ').count()), sequence);
    }
}

#[test]
fn value_24_interleaved_weighted_turns() {
    let mut rig = Rig::new("weighted_round_robin", &["A", "B", "C"]);
    rig.weights(&[4, 3, 2]);
    assert_eq!(rig.winners(9), "A A B A B C A B C");
    assert_eq!(rig.winners(9), "A A B A B C A B C");
}

/// R1: the turn of somebody who is away does not go to one and the same backup.
#[test]
fn r1_absent_members_turns_do_not_all_go_to_one() {
    for strategy in [
        "round_robin",
        "smooth_weighted_round_robin",
        "weighted_round_robin",
    ] {
        let mut rig = Rig::new(strategy, &["a", "b", "c", "d"]);
        rig.member("b", |_, live| live.state = RecipientState::Offline);
        assert_eq!(rig.winners(12), "a c d a c d a c d a c d", "{strategy}");
        rig.member("b", |_, live| live.state = RecipientState::Available);
        let next = rig.winners(12);
        for name in ["a", "b", "c", "d"] {
            assert_eq!(next.matches(name).count(), 3, "{strategy}: {next}");
        }
    }
}

/// R3: what is remembered is all that counts; it survives a restart.
#[test]
fn r3_turns_go_on_where_they_stood() {
    let mut rig = Rig::new("", &["a", "b", "c", "d", "e"]);
    rig.weights(&[5, 1, 1, 1, 1]);
    let mut names = Vec::new();
    for _ in 0..9 {
        let kept = serde_json::to_string(
            &rig.world
                .states
                .values()
                .map(AsRef::as_ref)
                .collect::<Vec<&StageState>>(),
        )
        .unwrap();
        let again: Vec<_> = serde_json::from_str(&kept).unwrap();
        for (state, again) in rig.world.states.values_mut().zip(again) {
            *state = Arc::new(again);
        }
        names.push(rig.winners(1));
    }
    assert_eq!(names.join(" "), "a b a c a d a e a");
}

#[test]
fn test_25_the_cursor_survives_members_that_come_and_go() {
    let mut rig = Rig::new("round_robin", &["a", "b", "c", "d"]);
    assert_eq!(rig.winners(2), "a b");
    let members = rig.world.candidates.get_mut(&pool_id(1)).unwrap();
    let b = members.remove(1);
    assert_eq!(rig.winners(1), "c");
    rig.world.candidates.get_mut(&pool_id(1)).unwrap().push(b);
    assert_eq!(rig.winners(5), "d a b c d");
}

#[test]
fn test_28_the_sum_stays_zero_while_members_join_and_sets_vary() {
    let mut chance = Chance::new(28);
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut rig = Rig::new("", &names[..2]);
    for step in 0..2_000_u32 {
        if step % 400 == 100 && rig.world.candidates[&pool_id(1)].len() < names.len() {
            let at = rig.world.candidates[&pool_id(1)].len();
            let joining = candidate(u32::try_from(at).unwrap() + 1, names[at]);
            rig.world.candidates.get_mut(&pool_id(1)).unwrap().push(joining);
        }
        let known = rig.world.candidates[&pool_id(1)].len();
        for name in &names[..known] {
            let away = chance.one_in(3);
            rig.member(name, |recipient, live| {
                live.current = 0;
                live.state = if away {
                    RecipientState::Offline
                } else {
                    RecipientState::Available
                };
                recipient.weight_micro = 1_000_000 * u64::from(recipient.id.0[15]);
            });
        }
        rig.route();
        if let Some(state) = rig.world.states.get(&(pool_id(1), SMOOTH.to_owned())) {
            assert_eq!(state.members.values().sum::<i64>(), 0, "step {step}");
        }
    }
    // Over as many picks as the weights sum up to, each is chosen as often as its weight says.
    let weights = [7_u64, 3, 5, 1];
    let mut rig = Rig::new("", &names[..4]);
    rig.weights(&weights);
    for _ in 0..5 {
        let picks = rig.winners(16);
        for (name, weight) in names.iter().zip(weights) {
            assert_eq!(picks.matches(name).count() as u64, weight, "{picks}");
        }
    }
}

/// Over as many picks as the weights of the eligible sum up to, each is chosen as often as its weight says: over random sets
/// and weights, and again for the next set when the turns of the one before are all done. Whoever is away is never chosen.
#[test]
fn test_28_intervals_count_each_as_often_as_its_weight() {
    let mut chance = Chance::new(2_801);
    let names: Vec<String> = (0..9).map(|number| format!("m{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for round in 0..300 {
        let strategy = if round % 2 == 0 {
            ""
        } else {
            "weighted_round_robin"
        };
        let members = 1 + usize::try_from(chance.below(9)).unwrap();
        let mut rig = Rig::new(strategy, &names[..members]);
        let weights: Vec<u64> = (0..members).map(|_| chance.below(6)).collect();
        rig.weights(&weights);
        // The interleaved turn keeps its level from one set to the next, and counts within one set only.
        for _ in 0..if strategy.is_empty() { 3 } else { 1 } {
            let there: Vec<bool> = (0..members).map(|_| !chance.one_in(3)).collect();
            for (name, there) in names.iter().zip(&there) {
                rig.member(name, |_, live| {
                    live.state = if *there {
                        RecipientState::Available
                    } else {
                        RecipientState::Offline
                    };
                });
            }
            let expected = weights
                .iter()
                .zip(&there)
                .map(|(weight, there)| if *there { *weight } else { 0 });
            let expected: Vec<u64> = expected.collect();
            let picks = rig.winners(usize::try_from(expected.iter().sum::<u64>()).unwrap());
            let picked = |name: &&str| picks.split(' ').filter(|pick| pick == name).count() as u64;
            let counts: Vec<u64> = names[..members].iter().map(picked).collect();
            assert_eq!(counts, expected, "{strategy} {weights:?} {there:?}: {picks}");
        }
    }
}

#[test]
fn test_22_a_missing_weight_is_one_wherever_the_member_stands() {
    for missing in 0..3 {
        let mut rig = Rig::new("", &["a", "b", "c"]);
        let weights: Vec<u64> = (0..3).map(|at| if at == missing { 1 } else { 2 }).collect();
        rig.weights(&weights);
        let picks = rig.winners(10);
        for (at, name) in ["a", "b", "c"].iter().enumerate() {
            assert_eq!(
                picks.matches(name).count(),
                if at == missing { 2 } else { 4 },
                "{picks}"
            );
        }
    }
}

#[test]
fn test_23_a_weight_of_zero_leaves_where_weights_count() {
    for info in crate::domain::routing::strategies::CATALOGUE {
        if info.needs_bids
            || matches!(
                info.key,
                "sticky" | "percentage_split" | "quota_pacing" | "shark_tank"
            )
        {
            continue;
        }
        let mut rig = Rig::new(info.key, &["a", "b"]);
        rig.weights(&[0, 1]);
        if info.key == "nearest" {
            rig.place_everybody();
        }
        let passed = rig.look();
        let verdict = passed.decision.explanation.verdict(recipient_id(1)).unwrap();
        let inner_counts = info.key == "priority";
        let left = verdict.reason == Some(Reason::WeightZero);
        assert_eq!(
            left,
            info.uses_weight || inner_counts,
            "{}: {:?}",
            info.key,
            verdict.reason
        );
    }
}

#[test]
fn an_explored_pick_is_nobodys_turn() {
    let mut rig = Rig::new("round_robin", &["a", "b", "c", "d"]);
    rig.configure(1, |known| known.config.exploration_epsilon = 0.5);
    let (mut explored, mut expected) = (0, vec!["a", "b", "c", "d"].into_iter().cycle());
    for _ in 0..200 {
        let passed = rig.route();
        let decision = &passed.decision;
        assert!(decision.randomness.used);
        if passed.states.is_empty() {
            explored += 1;
            assert_eq!(decision.randomness.propensity, Some(0.125));
        } else {
            assert_eq!(Some(rig.winner(&passed).as_str()), expected.next());
            assert_eq!(decision.randomness.propensity, Some(0.625));
        }
        for member in rig.world.candidates.values_mut().flatten() {
            member.live.current = 0;
        }
    }
    assert!((50..100).contains(&explored), "{explored}");
}
