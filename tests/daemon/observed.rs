//! What a script or Prometheus sees from outside: the stream of changes, and the cost of commands.

use std::time::Duration;

use super::support::{Daemon, EventStream};
use super::ways::{ended, run_id, start};

const CONFIG: &str = concat!(
    "shutdown: {drainTimeout: 0.1}\npools: {p: {slots: 1}}\njobs:\n",
    "  - {name: quick, pool: p, command: 'true'}\n",
    "  - {name: busy, command: 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 0.3'}\n",
);
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_stream_tells_of_a_run_and_goes_on_after_a_restart() {
    let daemon = Daemon::start(CONFIG);
    let mut stream = daemon.events("/api/stream?topics=runs");
    let run = run_id(&start(&daemon, "quick"));
    let told = |stream: &mut EventStream, run: &str, state: &str| {
        stream.wait_for(PATIENCE, |event| {
            event.kind == "message" && event.json()["id"] == run && event.json()["detail"] == state
        })
    };
    told(&mut stream, &run, "pending");
    let last = told(&mut stream, &run, "succeeded");
    assert_eq!(last.json()["topic"], "run.changed");
    let mut daemon = daemon;
    assert_eq!(daemon.term(), Some(0));
    stream.wait_for(PATIENCE, |event| event.kind == "bye");
    let daemon = daemon.restart();
    // Between the two streams a run came and went.
    let missed = run_id(&start(&daemon, "quick"));
    ended(&daemon, &missed);
    let id = last.id.expect("a place");
    let mut stream = EventStream::open(
        &daemon.client(),
        "/api/stream?topics=runs",
        &[("last-event-id", &id)],
    )
    .expect("the stream is open");
    let first = stream.wait_for(PATIENCE, |event| event.kind == "message");
    assert_eq!(
        first.json()["id"],
        missed.as_str(),
        "nothing of before, nothing lost"
    );
    told(&mut stream, &missed, "succeeded");
}

#[test]
fn the_cost_of_commands_is_measured() {
    let daemon = Daemon::start(CONFIG);
    ended(&daemon, &run_id(&start(&daemon, "busy")));
    let value = |name: &str| {
        let text = daemon.get("/metrics").expect_status(200).text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}\n{text}"))
            .parse::<f64>()
            .unwrap()
    };
    let cpu = value("ductor_job_cpu_seconds_total{job=\"busy\"}");
    assert!((0.01..60.0).contains(&cpu), "{cpu} s of CPU");
    let peak = value("ductor_job_memory_peak_bytes{job=\"busy\"}");
    assert!((100_000.0..1e9).contains(&peak), "{peak} bytes");
    let waited = value("ductor_step_wait_seconds_count{reason=\"ready\"}");
    assert!((waited - 1.0).abs() < f64::EPSILON, "{waited}");
}
