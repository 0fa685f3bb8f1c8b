//! How many changes a second the store takes, beside the disk's own speed in the same run. Prints one JSON document.
//!
//! `cargo bench --bench store_commits -- [seconds for each line]`. Each change writes what a pooled start writes: about
//! ten rows under ascending keys. The floor is `write` of 4 KiB and `fdatasync` on the same file system.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ductor::store::rows::Number;
use ductor::store::tables::META;
use ductor::store::{Store, StoreOptions};
use ductor::words::time::SystemClock;

const SUBMITTERS: [usize; 4] = [1, 8, 64, 256];

fn main() {
    let seconds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(3);
    let time = Duration::from_secs(seconds);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let floor = fdatasyncs(folder.path(), time);
    let mut lines = Vec::new();
    for submitters in SUBMITTERS {
        let (changes, commits) = changes(folder.path(), submitters, time);
        let rate = per_second(changes, time);
        lines.push(serde_json::json!({
            "submitters": submitters,
            "changes_per_second": rate.round(),
            "commits_per_second": per_second(commits, time).round(),
            "changes_per_fdatasync": (rate / floor * 100.0).round() / 100.0,
        }));
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

fn changes(folder: &std::path::Path, submitters: usize, time: Duration) -> (u64, u64) {
    let place = folder.join(format!("s{submitters}"));
    std::fs::create_dir_all(&place).expect("a folder");
    let store = Store::open(StoreOptions::in_directory(&place), Arc::new(SystemClock)).expect("a store");
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
    (done.load(Ordering::Relaxed), store.stats().commits)
}
