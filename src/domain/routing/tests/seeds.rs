//! Strategies that draw: the right frequencies, and the same draw for the same decision.

use serde_json::json;

use super::rig::{Rig, decision_id, pool_id};
use crate::domain::routing::seed;
use crate::domain::routing::strategies::contract::Chances;
use crate::words::chance::Chance;

const DRAWS: u32 = 100_000;

/// How often each wins in so many decisions.
fn frequencies(rig: &Rig, draws: u32) -> Vec<u32> {
    let mut counts = vec![0; rig.world.candidates[&pool_id(1)].len()];
    for number in 0..draws {
        for winner in rig.select(decision_id(number)).winners() {
            counts[winner] += 1;
        }
    }
    counts
}

/// Chi-square against the chances that the strategy itself tells.
#[track_caller]
fn fits(rig: &Rig, name: &str) {
    let Chances::Known(chances) = rig.select(decision_id(1)).chances else {
        panic!("{name} does not tell its chances")
    };
    assert!(
        (chances.iter().sum::<f64>() - 1.0).abs() < 1e-9,
        "{name}: {chances:?}"
    );
    let mut square = 0.0;
    for (count, chance) in frequencies(rig, DRAWS).into_iter().zip(&chances) {
        let expected = chance * f64::from(DRAWS);
        if expected == 0.0 {
            assert_eq!(count, 0, "{name}");
        } else {
            square += (f64::from(count) - expected).powi(2) / expected;
        }
    }
    // 99.99 % of chi-square with 5 degrees of freedom lie below 25.7.
    assert!(square < 25.7, "{name}: {square}");
}

#[test]
fn test_30_draws_have_their_frequencies_and_can_be_repeated() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let strategies = [
        "random",
        "weighted_random",
        "power_of_two_choices",
        "peak_ewma",
        "epsilon_greedy",
    ];
    for strategy in strategies {
        let mut rig = Rig::new(strategy, &names);
        rig.weights(&[1, 2, 3, 1, 5, 2]);
        for (at, name) in names.iter().enumerate() {
            rig.member(name, |_, live| live.current = u32::try_from(at % 4).unwrap());
        }
        if strategy == "power_of_two_choices" {
            rig.options(strategy, &json!({"choices": 3}));
        }
        if strategy == "epsilon_greedy" {
            rig.options(strategy, &json!({"epsilon": 0.3}));
        }
        fits(&rig, strategy);
        for number in 0..100 {
            assert_eq!(
                rig.select(decision_id(number)),
                rig.select(decision_id(number)),
                "{strategy}"
            );
        }
        // Another strategy draws something else in the same decision.
        assert_ne!(
            seed::seed(decision_id(1), strategy),
            seed::seed(decision_id(1), "thompson")
        );
    }
}

#[test]
fn thompson_prefers_what_did_better_and_tells_no_chance() {
    let mut rig = Rig::new("thompson", &["a", "b"]);
    let members = rig.world.candidates.get_mut(&pool_id(1)).unwrap();
    (members[0].learned.n, members[0].learned.successes) = (4.0, 1.0);
    (members[1].learned.n, members[1].learned.successes) = (4.0, 3.0);
    let counts = frequencies(&rig, 2_000);
    assert!(counts[1] > 1_600 && counts[0] > 20, "{counts:?}");
    assert_eq!(rig.select(decision_id(1)).chance_of(0), None);
    assert_eq!(rig.look().decision.randomness.propensity, None);
}

/// Published of the hash: h is the first 8 bytes of SHA-256(decision 0x00 key).
#[test]
fn seeds_are_the_first_eight_bytes_of_the_digest() {
    let digest = crate::words::ids::sha256_hex(b"a\0b");
    assert_eq!(format!("{:016x}", seed::hash("a", "b")), digest[..16]);
    let mut chance = Chance::new(3);
    for end in [1, 2, 3, 10, u64::MAX] {
        assert!(seed::below(&mut chance, end) < end);
    }
    assert!(seed::unit(0) > 0.0 && seed::unit(u64::MAX) < 1.0);
}
