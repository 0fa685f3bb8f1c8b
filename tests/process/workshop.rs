//! What the process tests share: a launched shell, polling with a deadline, collected output.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(unreachable_pub, reason = "shared by test binaries")]

use std::path::Path;
use std::time::{Duration, Instant};

use ductor::os::proc;
use ductor::worker::process::{
    LaunchFailure, LaunchSpec, NoFilter, Output, OutputSink, Program, PumpReport, Record, Running, Shim,
    Stream, Tag, pump, records,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Not the PATH of whoever runs the tests: a folder in it that may not be searched changes the error of an exec.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
pub const DEADLINE: Duration = Duration::from_secs(20);

pub fn exe() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_ductor"))
}

pub fn shell(script: &str) -> LaunchSpec {
    let program = Program::Shell {
        shell: "/bin/sh".into(),
        script: script.to_owned(),
    };
    LaunchSpec::new(program, vec![("PATH".to_owned(), PATH.to_owned())])
}

pub fn list(words: &[&str]) -> LaunchSpec {
    let mut spec = shell("");
    spec.program = Program::List(words.iter().map(|word| (*word).to_owned()).collect());
    spec
}

pub async fn launch(spec: &LaunchSpec) -> Result<Running, LaunchFailure> {
    Shim::spawn(exe()).unwrap().launch(spec).await
}

pub async fn launch_shell(script: &str) -> Running {
    launch(&shell(script)).await.unwrap()
}

/// Waits until `true`; the deadline is for a broken test only.
pub async fn until(what: &str, mut check: impl FnMut() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < DEADLINE, "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub async fn bounded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("took too long")
}

pub fn exists(pid: u32) -> bool {
    proc::stat_of(pid).unwrap().is_some()
}

pub fn lives(pid: u32) -> bool {
    proc::stat_of(pid).unwrap().is_some_and(|stat| !stat.is_dead())
}

/// Collects records.
#[derive(Default)]
pub struct Collected(pub Vec<u8>);

impl OutputSink for Collected {
    async fn write(&mut self, tagged: &[u8]) {
        self.0.extend_from_slice(tagged);
    }
}

impl Collected {
    /// The exact bytes of one stream.
    pub fn bytes(&self, wanted: Stream) -> Vec<u8> {
        let mut bytes = Vec::new();
        for Record { tag, payload } in records(&self.0) {
            match tag {
                Tag::Line(stream) if stream == wanted => {
                    bytes.extend_from_slice(payload);
                    bytes.push(b'\n');
                }
                Tag::Piece(stream) if stream == wanted => bytes.extend_from_slice(payload),
                Tag::Line(_) | Tag::Piece(_) | Tag::Remark => {}
            }
        }
        bytes
    }

    pub fn stdout(&self) -> String {
        String::from_utf8(self.bytes(Stream::Stdout)).unwrap()
    }
}

pub fn pump_task<S: OutputSink + 'static>(
    output: Output,
    mut sink: S,
    stop: &CancellationToken,
) -> JoinHandle<(S, PumpReport)> {
    let stop = stop.clone();
    tokio::spawn(async move {
        let report = pump(output, &mut NoFilter, &mut sink, &stop).await;
        (sink, report)
    })
}

/// Runs to the end: exit code, stdout.
pub async fn run(spec: &LaunchSpec) -> (i32, String) {
    let mut running = launch(spec).await.unwrap();
    let stop = CancellationToken::new();
    let task = pump_task(running.take_output().unwrap(), Collected::default(), &stop);
    let exit = bounded(running.wait_exit()).await.unwrap();
    running.end_group(Duration::ZERO).await;
    let (sink, _) = bounded(task).await.unwrap();
    (exit.code, sink.stdout())
}

/// Counts, and looks at the memory.
#[derive(Default)]
pub struct Counted {
    pub bytes: u64,
    pub longest: usize,
    pub rss_max: u64,
}

impl OutputSink for Counted {
    async fn write(&mut self, tagged: &[u8]) {
        for record in records(tagged) {
            self.bytes += record.output_len();
            self.longest = self.longest.max(record.payload.len());
        }
        self.rss_max = self.rss_max.max(proc::own_rss_bytes().unwrap());
    }
}
