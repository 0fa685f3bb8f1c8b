//! Memory while a command prints much.

use std::time::Duration;

use super::workshop::{Counted, bounded, launch_shell, pump_task};
use ductor::os::proc::own_rss_bytes;
use ductor::worker::process::PIECE_MAX;
use tokio_util::sync::CancellationToken;

async fn zeros(size: u64) -> Counted {
    let mut running = launch_shell(&format!("head -c {size} /dev/zero")).await;
    let output = running.take_output().unwrap();
    let (sink, report) = bounded(pump_task(output, Counted::default(), &CancellationToken::new()))
        .await
        .unwrap();
    bounded(running.wait_exit()).await.unwrap();
    running.end_group(Duration::ZERO).await;
    assert_eq!((sink.bytes, report.stdout_bytes), (size, size));
    assert!(sink.longest <= PIECE_MAX);
    sink
}

#[tokio::test]
async fn much_output_without_a_line_end_needs_little_memory() {
    // Code and threads are loaded by a small one.
    zeros(1 << 20).await;
    let before = own_rss_bytes().unwrap();
    let sink = zeros(128 << 20).await;
    let grown = sink.rss_max.saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes for 128 MiB of output");
}
