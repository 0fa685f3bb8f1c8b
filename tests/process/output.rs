//! What commands print: tagging, bounds, saved lines, the log file.

use std::time::{Duration, Instant};

use super::workshop::{Collected, Counted, bounded, launch_shell, pump_task};
use ductor::worker::log_file::{LogReport, LogWriter};
use ductor::worker::process::{
    Output, OutputFilter, OutputSink, PumpReport, Running, SavedLines, Stream, Tag, pump, records,
};
use tokio_util::sync::CancellationToken;

async fn pumped<S: OutputSink + 'static>(running: &mut Running, sink: S) -> (S, PumpReport) {
    let output = running.take_output().unwrap();
    let done = bounded(pump_task(output, sink, &CancellationToken::new()))
        .await
        .unwrap();
    bounded(running.wait_exit()).await.unwrap();
    running.end_group(Duration::ZERO).await;
    done
}

#[tokio::test]
async fn two_streams_are_tagged() {
    let mut running = launch_shell("echo one; echo two >&2; printf '\\377\\n'; printf tail >&2").await;
    let (sink, report) = pumped(&mut running, Collected::default()).await;
    assert_eq!(sink.bytes(Stream::Stdout), b"one\n\xff\n");
    assert_eq!(sink.bytes(Stream::Stderr), b"two\ntail");
    assert_eq!(
        report,
        PumpReport {
            stdout_bytes: 6,
            stderr_bytes: 8,
            closed_early: false
        }
    );
    let last_of_stderr = records(&sink.0)
        .filter(|record| matches!(record.tag, Tag::Piece(Stream::Stderr)))
        .count();
    assert_eq!(last_of_stderr, 1);
}

/// Tells the test about each write.
struct Told(tokio::sync::mpsc::UnboundedSender<Vec<u8>>);

impl OutputSink for Told {
    async fn write(&mut self, tagged: &[u8]) {
        self.0.send(tagged.to_vec()).unwrap();
    }
}

#[tokio::test]
async fn a_line_is_seen_at_once_and_a_prompt_soon() {
    // The command goes on only when it is killed, so what we see was not flushed by its end.
    let mut running = launch_shell("echo line; printf 'prompt: '; sleep 300").await;
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let task = pump_task(
        running.take_output().unwrap(),
        Told(sender),
        &CancellationToken::new(),
    );
    let mut seen = Vec::new();
    while seen != b"o line\nO prompt: \n" {
        seen.extend(bounded(told.recv()).await.unwrap());
    }
    running.end_group(Duration::from_secs(5)).await;
    bounded(task).await.unwrap();
}

struct Shout;

impl OutputFilter for Shout {
    fn pass(&mut self, _: Stream, bytes: &[u8], out: &mut Vec<u8>) {
        out.extend(bytes.to_ascii_uppercase());
    }
    fn end(&mut self, _: Stream, out: &mut Vec<u8>) {
        out.extend_from_slice(b"!");
    }
}

#[tokio::test]
async fn a_filter_comes_before_the_cutting_and_gets_its_last_word() {
    let mut running = launch_shell("echo hush").await;
    let output = running.take_output().unwrap();
    let mut sink = Collected::default();
    bounded(pump(output, &mut Shout, &mut sink, &CancellationToken::new())).await;
    assert_eq!(sink.bytes(Stream::Stdout), b"HUSH\n!");
    assert_eq!(sink.bytes(Stream::Stderr), b"!");
}

#[tokio::test]
async fn stopping_takes_what_is_there_and_not_more() {
    let mut running = launch_shell("exec yes").await;
    let stop = CancellationToken::new();
    stop.cancel();
    let Output { stdout, stderr } = running.take_output().unwrap();
    bounded(stdout.readable()).await.unwrap();
    let task = pump_task(Output { stdout, stderr }, Counted::default(), &stop);
    let (sink, report) = bounded(task).await.unwrap();
    assert!(report.closed_early && sink.bytes > 0);
    // The pipe is closed: the writer gets SIGPIPE.
    assert_eq!(bounded(running.wait_exit()).await.unwrap().code, -13);
}

#[tokio::test]
async fn saved_lines_and_log_are_fed_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run/step-1-7.log");
    let log = LogWriter::create(&path, 1 << 20);
    let mut size = log.subscribe();
    let mut running = launch_shell("seq 1 9; echo bad >&2").await;
    let ((log, saved), _) = pumped(&mut running, (log, SavedLines::new(4))).await;
    assert!(saved.produced(Stream::Stderr));
    assert_eq!(
        saved.text(Stream::Stdout),
        "1\n2\n... 5 lines left out ...\n8\n9\n"
    );
    let report = log.finish().await;
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        report,
        LogReport {
            size: u64::try_from(text.len()).unwrap(),
            missing_bytes: 0,
            error: None
        }
    );
    assert!(text.contains("o 9\n") && text.contains("e bad\n"), "{text}");
    assert_eq!(*size.borrow_and_update(), report.size);
    assert!(size.changed().await.is_err(), "the log is complete");
}

fn numbered(from: usize, to: usize) -> Vec<u8> {
    (from..to)
        .flat_map(|number| format!("o line {number:06}\n").into_bytes())
        .collect()
}

#[tokio::test]
async fn a_full_log_keeps_its_beginning_and_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.log");
    let mut log = LogWriter::create(&path, 100);
    let watch = log.subscribe();
    let lines = 200_000;
    for start in (0..lines).step_by(1000) {
        log.write(&numbered(start, start + 1000)).await;
    }
    assert_eq!(*watch.borrow(), 98, "7 whole records of 14 bytes");
    let report = log.finish().await;
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(report.size, u64::try_from(bytes.len()).unwrap());
    let kept: Vec<_> = records(&bytes).collect();
    assert_eq!(kept[0].payload, b"line 000000");
    assert_eq!(kept[6].payload, b"line 000006");
    assert_eq!(kept[7].tag, Tag::Remark);
    assert_eq!(kept.last().unwrap().payload, b"line 199999");
    let shown: u64 = kept.iter().map(ductor::worker::process::Record::output_len).sum();
    assert_eq!(report.missing_bytes, 200_000 * 12 - shown);
    let remark = String::from_utf8_lossy(kept[7].payload);
    let expected = format!(
        "{} bytes of output are missing here (the log is limited to 100 bytes)",
        report.missing_bytes
    );
    assert_eq!(remark, expected);
    let tail = bytes.len() - 98;
    assert!(tail > (1 << 20) - 100 && tail < (1 << 20) + 200, "{tail}");
}

#[tokio::test]
async fn a_log_just_over_its_limit_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edge.log");
    let mut log = LogWriter::create(&path, 100);
    log.write(&numbered(0, 10)).await;
    assert_eq!(log.report().missing_bytes, 3 * 12, "as of now");
    let report = log.finish().await;
    assert_eq!((report.size, report.missing_bytes), (140, 0));
    assert_eq!(std::fs::read(&path).unwrap(), numbered(0, 10));
}

#[tokio::test]
async fn a_full_disk_does_not_fail_the_run() {
    let mut log = LogWriter::create(std::path::Path::new("/dev/full"), 1 << 20);
    let mut running = launch_shell("seq 1 10; exit 4").await;
    log.remark("it\nbegins").await;
    let (log, _) = pumped(&mut running, log).await;
    assert_eq!(running.exit().unwrap().code, 4);
    let report = log.finish().await;
    assert_eq!((report.size, report.missing_bytes), (0, 21));
    assert!(report.error.unwrap().contains("No space left"));
}

#[tokio::test]
async fn a_log_that_cannot_be_made_is_reported() {
    let mut log = LogWriter::create(std::path::Path::new("/proc/no/such.log"), 1 << 20);
    log.write(b"o a\n").await;
    let report = log.finish().await;
    assert_eq!((report.size, report.missing_bytes), (0, 2));
    assert!(report.error.is_some());
}

#[tokio::test]
async fn a_line_reaches_a_follower_while_the_command_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.log");
    let log = LogWriter::create(&path, 1 << 20);
    let mut size = log.subscribe();
    let mut running = launch_shell("echo now; sleep 300").await;
    let task = pump_task(running.take_output().unwrap(), log, &CancellationToken::new());
    let start = Instant::now();
    bounded(size.wait_for(|&size| size == 6)).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(std::fs::read(&path).unwrap(), b"o now\n");
    running.end_group(Duration::from_secs(5)).await;
    bounded(task).await.unwrap();
}
