//! Strategies of keys: rendezvous, sticky holders, shares.

use serde_json::json;

use super::rig::{NOW, Rig, pool_id, recipient_id, work};
use crate::domain::routing::objects::RecipientState;
use crate::domain::routing::reason::Note;
use crate::domain::routing::seed;

fn highest<'m>(members: &[(&'m str, f64)], key: &str) -> &'m str {
    let standing = |member: &(&str, f64)| seed::standing(&member.0, key, member.1);
    let best = members
        .iter()
        .max_by(|left, right| standing(left).total_cmp(&standing(right)));
    best.expect("somebody").0
}

#[test]
fn value_24_rendezvous() {
    let three = [("a", 1.0), ("b", 1.0), ("c", 1.0)];
    let winners: Vec<&str> = (0..8)
        .map(|number| highest(&three, &format!("k{number}")))
        .collect();
    assert_eq!(winners.join(","), "a,a,a,b,a,a,a,b");

    let names: Vec<String> = (0..10).map(|number| format!("n{number}")).collect();
    let ten: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 1.0)).collect();
    let weighted = [("a", 5.0), ("b", 1.0), ("c", 1.0)];
    let (mut counts, mut shares, mut moved) = ([0_u32; 10], [0_u32; 3], 0);
    for number in 0..100_000 {
        let key = format!("k{number}");
        let with = highest(&ten, &key);
        counts[with[1..].parse::<usize>().unwrap()] += 1;
        moved += u32::from(with != highest(&ten[..9], &key));
        let heavy = highest(&weighted, &key);
        shares[usize::from(heavy.as_bytes()[0] - b'a')] += 1;
    }
    assert_eq!(
        (counts.iter().min(), counts.iter().max()),
        (Some(&9_843), Some(&10_133))
    );
    let square: f64 = counts
        .iter()
        .map(|count| (f64::from(*count) - 10_000.0).powi(2) / 10_000.0)
        .sum();
    assert!((square - 10.32).abs() < 0.005, "{square}");
    assert_eq!((counts[9], moved), (9_947, 9_947));
    assert_eq!(shares, [71_335, 14_332, 14_333]);
}

#[test]
fn the_same_key_goes_to_the_same_recipient() {
    let mut rig = Rig::new("consistent_hash", &["a", "b", "c", "d"]);
    rig.options("consistent_hash", &json!({"key": "work.attributes.customer"}));
    for number in 0..20 {
        rig.request.work = work(&json!({"customer": number}));
        let first = rig.winners(1);
        assert_eq!(rig.winners(3), [first.as_str(); 3].join(" "));
    }
}

fn sticky(rebind: bool) -> Rig {
    let mut rig = Rig::new("sticky", &["a", "b"]);
    rig.options(
        "sticky",
        &json!({"key": "work.attributes.customer", "rebind": rebind, "inner": "least_loaded"}),
    );
    rig.request.work = work(&json!({"customer": "c1"}));
    rig
}

/// R9, and test 26.
#[test]
fn test_26_a_holder_that_went_home_is_replaced_and_noted() {
    for rebind in [true, false] {
        let mut rig = sticky(rebind);
        assert_eq!(rig.winners(1), "a");
        let hit = rig.look();
        assert_eq!(rig.winner(&hit), "a");
        assert!(
            hit.decision.summary.contains("holder of its key"),
            "{}",
            hit.decision.summary
        );
        rig.member("a", |_, live| live.state = RecipientState::Offline);
        let passed = rig.route();
        assert_eq!(rig.winner(&passed), "b");
        assert_eq!(
            passed.decision.notes,
            [Note::StickyHolderIneligible {
                holder: recipient_id(1),
                reason: "state.offline".to_owned()
            }]
        );
        assert!(
            passed.decision.summary.contains("least loaded"),
            "{}",
            passed.decision.summary
        );
        rig.member("a", |_, live| live.state = RecipientState::Available);
        assert_eq!(rig.winners(1), if rebind { "b" } else { "a" });
    }
    let mut rig = sticky(true);
    assert_eq!(rig.winners(1), "a");
    rig.world.candidates.get_mut(&pool_id(1)).unwrap().remove(0);
    let passed = rig.look();
    assert!(
        matches!(&passed.decision.notes[..], [Note::StickyHolderIneligible { reason, .. }] if reason == "gone")
    );
}

#[test]
fn a_key_is_held_for_its_time() {
    let mut rig = sticky(true);
    assert_eq!(rig.winners(1), "a");
    rig.member("a", |_, live| live.current = 5);
    assert_eq!(rig.winner(&rig.look()), "a");
    rig.now = NOW.plus(721 * 3_600_000_000);
    assert_eq!(rig.winner(&rig.look()), "b");
    // Work without the key goes by the inner strategy, and nothing is bound.
    rig.request.work = work(&json!({}));
    assert_eq!(
        (rig.look().bound, rig.winner(&rig.look())),
        (Vec::new(), "b".to_owned())
    );
}

#[test]
fn shares_are_kept_by_hash_and_exactly() {
    let mut rig = Rig::new("percentage_split", &["a", "b", "c"]);
    let shares = json!({"a": 7_000, "b": 2_000, "c": 1_000});
    rig.options(
        "percentage_split",
        &json!({"shares": shares, "key": "work.attributes.n"}),
    );
    let route = |rig: &mut Rig, number: u32| {
        rig.request.work = work(&json!({"n": number}));
        rig.winner(&rig.look())
    };
    let before: Vec<String> = (0..1_000).map(|number| route(&mut rig, number)).collect();
    let count = |name: &str| before.iter().filter(|winner| *winner == name).count();
    assert!(
        (650..750).contains(&count("a")) && (160..240).contains(&count("b")),
        "{}",
        count("a")
    );
    rig.member("c", |_, live| live.state = RecipientState::Offline);
    for (number, was) in (0..).zip(&before) {
        let now = route(&mut rig, number);
        assert!(now == *was || was == "c", "{number}: {was} {now}");
    }
    let mut rig = Rig::new("percentage_split", &["a", "b", "c"]);
    rig.options("percentage_split", &json!({"shares": shares, "exact": true}));
    for _ in 0..3 {
        let winners = rig.winners(10);
        let count = |name: &str| winners.matches(name).count();
        assert_eq!((count("a"), count("b"), count("c")), (7, 2, 1), "{winners}");
    }
}
