//! Losses of power at many moments of the product's own work: what was acknowledged is there afterwards.

#[path = "power_cuts/mod.rs"]
mod power_cuts;

use ductor::words::time::{Clock, SystemClock};
use power_cuts::campaign::{Outcome, Plan, first_start, run};
use power_cuts::record::CommitKind;

/// Another one each day, or the one in `DUCTOR_SEED`; printed, so that a failure can be repeated.
fn seed() -> u64 {
    let today = SystemClock.now().wall.0.unsigned_abs() / 86_400_000;
    let seed =
        std::env::var("DUCTOR_SEED").map_or(today, |text| text.parse().expect("DUCTOR_SEED is a number"));
    println!("DUCTOR_SEED={seed}");
    seed
}

fn assert_nothing_lost(outcome: &Outcome) {
    println!("{outcome:?}");
    assert!(outcome.lost.is_empty(), "{:#?}", outcome.lost);
}

const MOMENTS: [&str; 6] = ["creation", "opening", "migration", "work", "closing", "repair"];

/// A bounded share of the bench `power_cuts`.
#[test]
fn acked_enqueue_survives_power_cut() {
    let plan = Plan {
        cuts: 800,
        starts: 51,
        moments: &MOMENTS,
        seed: seed(),
        lies: false,
    };
    let outcome = run(plan);
    assert_nothing_lost(&outcome);
    let commits: Vec<&str> = outcome.by_commit.keys().copied().collect();
    assert_eq!(commits, ["exclusive", "mixed", "quick_repair", "shared"]);
    for moment in MOMENTS {
        assert!(outcome.by_moment.contains_key(moment), "no cut during {moment}");
    }
    assert!(outcome.starts > 50, "{} starts", outcome.starts);
}

#[test]
fn a_first_start_survives_a_power_cut_at_every_moment() {
    for kind in [CommitKind::Exclusive, CommitKind::Shared] {
        assert_nothing_lost(&first_start(kind, seed()));
    }
}

/// The test of the test: what no store survives is seen.
#[test]
fn a_disk_that_does_not_sync_is_noticed() {
    let plan = Plan {
        cuts: 40,
        starts: 0,
        moments: &[],
        seed: seed(),
        lies: true,
    };
    let outcome = run(plan);
    assert!(outcome.lost.len() > 4, "{outcome:?}");
}
