//! Losses of power at many moments of the product's own work: what was acknowledged is there afterwards.

#[path = "power_cuts/mod.rs"]
mod power_cuts;

use power_cuts::campaign::{Plan, run};

/// A bounded share of the bench `power_cuts`; another seed each day, printed, or the one in `DUCTOR_SEED`.
#[test]
fn acked_enqueue_survives_power_cut() {
    let seed = seed();
    println!("seed {seed}");
    let outcome = run(Plan { cuts: 400, seed });
    println!("{outcome:?}");
    assert!(outcome.lost.is_empty(), "seed {seed}: {:#?}", outcome.lost);
}

fn seed() -> u64 {
    std::env::var("DUCTOR_SEED").map_or(1, |text| text.parse().expect("DUCTOR_SEED is a number"))
}
