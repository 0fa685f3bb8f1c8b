//! Losses of power, simulated, for as many cuts as one likes. Prints one JSON document; ends with 1 if anything was lost.
//!
//! `cargo bench --bench power_cuts -- [cuts] [seed]`: the product's own changes on a disk that forgets, reorders and tears what
//! was not synced. See `tests/power_cuts/`.

#[path = "../tests/power_cuts/mod.rs"]
mod power_cuts;

use std::process::ExitCode;

use power_cuts::campaign::{Plan, run};

fn main() -> ExitCode {
    let mut numbers = std::env::args().filter_map(|word| word.parse::<u64>().ok());
    let cuts = numbers
        .next()
        .and_then(|cuts| usize::try_from(cuts).ok())
        .unwrap_or(10_000);
    let seed = numbers.next().unwrap_or(1);
    let outcome = run(Plan {
        cuts,
        seed,
        lies: false,
    });
    let document = serde_json::json!({
        "bench": "power_cuts", "seed": seed, "cuts": outcome.cuts, "acknowledged_starts": outcome.starts,
        "by_commit": outcome.by_commit, "by_fate": outcome.by_fate, "by_moment": outcome.by_moment,
        "lost": outcome.lost.len(), "losses": outcome.lost,
    });
    println!("{document}");
    ExitCode::from(u8::from(!outcome.lost.is_empty()))
}
