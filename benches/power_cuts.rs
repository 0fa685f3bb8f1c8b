//! Losses of power, simulated, for as many cuts as one likes. Prints one JSON document; ends with 1 if anything was lost.
//!
//! `cargo bench --bench power_cuts -- [cuts] [seed]`: the product's own changes on a disk that forgets, reorders and tears what
//! was not synced. See `tests/power_cuts/`.

#[path = "../tests/power_cuts/mod.rs"]
mod power_cuts;

use std::process::ExitCode;

use power_cuts::campaign::{Plan, first_start, run};
use power_cuts::record::CommitKind;

fn main() -> ExitCode {
    let mut numbers = std::env::args().filter_map(|word| word.parse::<u64>().ok());
    let cuts = numbers
        .next()
        .and_then(|cuts| usize::try_from(cuts).ok())
        .unwrap_or(10_000);
    let seed = numbers.next().unwrap_or(1);
    let outcome = run(Plan {
        cuts,
        starts: 0,
        moments: &[],
        seed,
        lies: false,
    });
    let mut lost = outcome.lost;
    let mut first_starts = 0;
    for kind in CommitKind::ALL {
        let every_moment = first_start(kind, seed);
        first_starts += every_moment.cuts;
        lost.extend(every_moment.lost);
    }
    let document = serde_json::json!({
        "bench": "power_cuts", "seed": seed, "cuts": outcome.cuts, "acknowledged_starts": outcome.starts,
        "by_commit": outcome.by_commit, "by_fate": outcome.by_fate, "by_moment": outcome.by_moment,
        "cuts_of_first_starts": first_starts, "lost": lost.len(), "losses": lost,
    });
    println!("{document}");
    ExitCode::from(u8::from(!lost.is_empty()))
}
