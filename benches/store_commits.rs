//! How many changes a second the store takes, beside the disk's own speed in the same run. Prints one JSON document.
//!
//! `cargo bench --bench store_commits -- [seconds for each line]`. Each change writes what a pooled start writes: about
//! ten rows under ascending keys. The floor is `write` of 4 KiB and `fdatasync` on the same file system. The modes take
//! turns, five rounds each, and medians are told: alone by `exclusive`, alone by `auto`, and `shared` with nobody else.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ductor::store::rows::Number;
use ductor::store::tables::META;
use ductor::store::{Store, StoreMode, StoreOptions};
use ductor::words::time::SystemClock;

const SUBMITTERS: [usize; 4] = [1, 8, 64, 256];

const MODES: [StoreMode; 3] = [StoreMode::Exclusive, StoreMode::Auto, StoreMode::Shared];
const ROUNDS: usize = 5;

fn median(rates: impl Iterator<Item = f64>) -> f64 {
    let mut rates: Vec<f64> = rates.collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    let seconds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(3);
    let time = Duration::from_secs(seconds);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let floor = fdatasyncs(folder.path(), time);
    let mut lines = Vec::new();
    for submitters in SUBMITTERS {
        let mut rates: Vec<[f64; 3]> = Vec::new();
        let mut commits_of = [0; 3];
        for round in 0..ROUNDS {
            let mut of_round = [0.0; 3];
            for (place, mode) in MODES.into_iter().enumerate() {
                let (changes, commits) = changes(folder.path(), round, mode, submitters, time);
                of_round[place] = per_second(changes, time);
                commits_of[place] = commits;
            }
            rates.push(of_round);
        }
        for (place, mode) in MODES.into_iter().enumerate() {
            let rate = median(rates.iter().map(|round| round[place]));
            lines.push(serde_json::json!({
                "submitters": submitters,
                "mode": format!("{mode:?}").to_lowercase(),
                "changes_per_second": rate.round(),
                "commits_per_second": per_second(commits_of[place], time).round(),
                "changes_per_fdatasync": (rate / floor * 100.0).round() / 100.0,
                "of_exclusive": (rate / median(rates.iter().map(|round| round[0])) * 1_000.0).round() / 1_000.0,
            }));
        }
    }
    let document = serde_json::json!({
        "bench": "store_commits", "seconds": seconds, "fdatasync_per_second": floor.round(), "lines": lines,
    });
    println!("{document}");
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn fdatasyncs(folder: &std::path::Path, time: Duration) -> f64 {
    let mut file = File::create(folder.join("floor")).expect("a file");
    let block = [7u8; 4096];
    let end = after(time);
    let mut count = 0;
    while before(end) {
        file.write_all(&block).expect("space");
        file.sync_data().expect("a disk");
        count += 1;
    }
    per_second(count, time)
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn after(time: Duration) -> Instant {
    Instant::now() + time
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn before(end: Instant) -> bool {
    Instant::now() < end
}

fn changes(
    folder: &std::path::Path,
    round: usize,
    mode: StoreMode,
    submitters: usize,
    time: Duration,
) -> (u64, u64) {
    let place = folder.join(format!("s{submitters}-{round}-{mode:?}"));
    std::fs::create_dir_all(place.join("nodes")).expect("a folder");
    let options = StoreOptions {
        mode,
        ..StoreOptions::in_directory(&place)
    };
    let store = Store::open(options, Arc::new(SystemClock)).expect("a store");
    store.listen("bench").expect("a thread");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let done = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    runtime.expect("a runtime").block_on(async {
        let tasks: Vec<_> = (0..submitters)
            .map(|number| {
                let (store, done, stop) = (store.clone(), Arc::clone(&done), Arc::clone(&stop));
                tokio::spawn(async move {
                    let mut round = 0u64;
                    while !stop.load(Ordering::Relaxed) {
                        round += 1;
                        let base = format!("{round:012}.{number:04}");
                        let written = store.change("bench", move |tx| {
                            for row in 0..10u64 {
                                tx.put(&META, &(format!("{base}.{row}"),), &Number(row))?;
                            }
                            Ok(())
                        });
                        written.await.expect("a commit");
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        tokio::time::sleep(time).await;
        stop.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await.expect("no panic");
        }
    });
    let counts = (done.load(Ordering::Relaxed), store.stats().commits);
    drop(store);
    std::fs::remove_dir_all(&place).expect("what was made");
    counts
}
