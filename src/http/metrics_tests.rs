//! The gauges of a scrape against the tables, counted here a second time and without any index.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::fixture::Face;
use crate::domain::slots::entry::EntryState;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::run::RunState;
use crate::engine::changes::claim::Claimed;
use crate::engine::metrics::{
    JobOutcome, KindResult, ResultLabel, SlotPoolJob, SlotPoolLabel, TypeOutcome, WorkflowLabel, in_seconds,
};
use crate::store::Rows;
use crate::store::tables::{RUNS, SLOT_ENTRIES, SLOT_POOLS};
use crate::words::ids::TenantId;
use crate::words::names::JobName;
use crate::words::time::Millis;

/// The promised metrics: name as Prometheus stores it, type, labels.
const PROMISED: [(&str, &str, &[&str]); 48] = [
    ("ductor_build_info", "gauge", &["version", "commit"]),
    ("ductor_start_time_seconds", "gauge", &[]),
    ("ductor_ready", "gauge", &["check"]),
    ("ductor_draining", "gauge", &[]),
    ("ductor_config_reloads_total", "counter", &["result"]),
    ("ductor_config_reload_failed", "gauge", &[]),
    ("ductor_nodes", "gauge", &["state"]),
    (
        "ductor_http_requests_total",
        "counter",
        &["route", "method", "status"],
    ),
    ("ductor_http_request_seconds", "histogram", &["route", "method"]),
    ("ductor_http_rejected_total", "counter", &["reason"]),
    ("ductor_stream_clients", "gauge", &[]),
    ("ductor_runs_started_total", "counter", &["workflow", "trigger"]),
    ("ductor_runs_finished_total", "counter", &["workflow", "outcome"]),
    ("ductor_runs_active", "gauge", &["state"]),
    ("ductor_run_seconds", "histogram", &["workflow"]),
    ("ductor_attempts_total", "counter", &["type", "outcome"]),
    ("ductor_step_wait_seconds", "histogram", &["reason"]),
    ("ductor_effects_pending", "gauge", &["kind"]),
    ("ductor_effects_delivered_total", "counter", &["kind", "result"]),
    ("ductor_dead_letters", "gauge", &["kind"]),
    ("ductor_jobs_running", "gauge", &["job"]),
    ("ductor_job_last_success_timestamp_seconds", "gauge", &["job"]),
    ("ductor_job_cpu_seconds_total", "counter", &["job"]),
    ("ductor_job_memory_peak_bytes", "gauge", &["job"]),
    ("ductor_fires_total", "counter", &["job", "outcome"]),
    ("ductor_fire_lag_seconds", "histogram", &[]),
    ("ductor_schedule_overdue", "gauge", &["job"]),
    ("ductor_slots_configured", "gauge", &["slot_pool"]),
    ("ductor_slots_stored", "gauge", &["slot_pool"]),
    ("ductor_slots_used", "gauge", &["slot_pool"]),
    ("ductor_slot_entries_queued", "gauge", &["slot_pool"]),
    ("ductor_slot_paused", "gauge", &["slot_pool"]),
    ("ductor_slot_oldest_wait_seconds", "gauge", &["slot_pool"]),
    ("ductor_slot_wait_seconds", "histogram", &["slot_pool"]),
    ("ductor_slot_held_seconds_total", "counter", &["slot_pool", "job"]),
    ("ductor_slot_refusals_total", "counter", &["slot_pool", "reason"]),
    (
        "ductor_slot_entries_ended_total",
        "counter",
        &["slot_pool", "state"],
    ),
    ("ductor_slot_readmitted_total", "counter", &["cause"]),
    ("ductor_slot_renewal_failures_total", "counter", &[]),
    ("ductor_claims_lapsed_total", "counter", &["slot_pool"]),
    ("ductor_lease_renewals_total", "counter", &["result"]),
    ("ductor_store_commit_seconds", "histogram", &[]),
    ("ductor_store_errors_total", "counter", &["kind"]),
    ("ductor_store_file_bytes", "gauge", &[]),
    ("ductor_blob_bytes_swept_total", "counter", &[]),
    ("ductor_state_disk_free_bytes", "gauge", &[]),
    ("ductor_backup_last_success_timestamp_seconds", "gauge", &[]),
    ("ductor_process_resident_bytes", "gauge", &[]),
];

/// The gauges of slot pools that are compared with the tables.
const OF_SLOT_POOLS: [&str; 6] = [
    "ductor_slots_configured",
    "ductor_slots_stored",
    "ductor_slots_used",
    "ductor_slot_entries_queued",
    "ductor_slot_paused",
    "ductor_slot_oldest_wait_seconds",
];

/// A labelled counter is shown from its first event on.
async fn every_event_once(face: &Face) {
    super::health::check(&face.app).await;
    face.backup().await;
    let metrics = &face.app.engine.metrics;
    let (job, slot_pool) = (|| "a".to_owned(), || "p".to_owned());
    metrics.count_refusal("p", "full");
    metrics.count_readmitted("p", "lease lapsed");
    metrics.count_wait("slots", 1.0);
    metrics.count_usage("a", 10, Some(4_096));
    let label = SlotPoolLabel {
        slot_pool: slot_pool(),
    };
    metrics.slot_wait_seconds.get_or_create(&label).observe(1.0);
    drop(metrics.slot_held_seconds.get_or_create(&SlotPoolJob {
        slot_pool: slot_pool(),
        job: job(),
    }));
    let result = || "ok".to_owned();
    drop(
        metrics
            .lease_renewals
            .get_or_create(&ResultLabel { result: result() }),
    );
    let outcome = result;
    drop(metrics.fires.get_or_create(&JobOutcome {
        job: job(),
        outcome: outcome(),
    }));
    drop(metrics.attempts.get_or_create(&TypeOutcome {
        r#type: "command".to_owned(),
        outcome: outcome(),
    }));
    drop(metrics.deliveries.get_or_create(&KindResult {
        kind: "webhook".to_owned(),
        result: result(),
    }));
    let label = WorkflowLabel { workflow: job() };
    metrics.run_seconds.get_or_create(&label).observe(1.0);
    face.post("/jobs/c/start").await;
    let claimed = face.pass(1).await;
    face.complete(&claimed[0], Outcome::Succeeded).await;
}

/// The kinds of all metrics of a scrape, under their stored names.
fn kinds(text: &str) -> BTreeMap<String, String> {
    let types = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types
        .map(|(name, kind)| match kind {
            "counter" => (format!("{name}_total"), kind.to_owned()),
            _ => (name.to_owned(), kind.to_owned()),
        })
        .collect()
}

/// The labels of the first sample of a metric.
fn labels<'t>(text: &'t str, name: &str) -> Option<Vec<&'t str>> {
    let sample = text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        let rest = rest.strip_prefix("_sum").unwrap_or(rest);
        rest.starts_with(['{', ' ']).then_some(rest)
    })?;
    let Some((inner, _)) = sample.strip_prefix('{').and_then(|rest| rest.rsplit_once('}')) else {
        return Some(Vec::new());
    };
    let names = inner.split(',').filter_map(|pair| Some(pair.split_once('=')?.0));
    Some(names.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_promised_metric_is_there_and_no_other() {
    let face = Face::new().await;
    every_event_once(&face).await;
    face.edit_book(|book| {
        let job = book.jobs.get_mut(&JobName::new("a").unwrap()).unwrap();
        std::sync::Arc::make_mut(&mut job.definition)
            .sla
            .max_time_since_success_ms = Some(1);
    });
    face.post("/jobs/a/start").await;
    face.pass(1).await;
    let text = face.get("/metrics").await.text;
    let mut found = kinds(&text);
    for (name, kind, wanted) in PROMISED {
        assert_eq!(found.remove(name).as_deref(), Some(kind), "{name}\n{text}");
        assert_eq!(labels(&text, name).as_deref(), Some(wanted), "{name}\n{text}");
    }
    assert_eq!(found, BTreeMap::new(), "metrics that nobody has promised");
}

/// What is shipped for Prometheus and Grafana asks for nothing that does not exist.
#[test]
fn shipped_dashboards_and_alerts_name_real_metrics() {
    let files = [
        (
            "grafana/ductor.json",
            include_str!("../../packaging/grafana/ductor.json"),
        ),
        (
            "prometheus/ductor.rules.yml",
            include_str!("../../packaging/prometheus/ductor.rules.yml"),
        ),
    ];
    let mut shown = BTreeSet::new();
    for (file, text) in files {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let words = text.split(|letter: char| !is_letter(letter));
        let names = words.filter(|word| word.starts_with("ductor_"));
        for name in names {
            let of_histogram = |(base, kind, _): &(&str, &str, _)| {
                *kind == "histogram"
                    && ["_bucket", "_sum", "_count"]
                        .iter()
                        .any(|end| name.strip_suffix(end) == Some(base))
            };
            let promised = PROMISED
                .iter()
                .find(|row| (row.0 == name && row.1 != "histogram") || of_histogram(row));
            let promised = promised.unwrap_or_else(|| panic!("{file}: there is no metric {name}"));
            shown.insert(promised.0);
        }
    }
    let all: BTreeSet<&str> = PROMISED.iter().map(|row| row.0).collect();
    assert_eq!(shown, all, "the dashboard shows every metric");
}

#[derive(Debug, Clone)]
enum Step {
    Start(&'static str),
    Pass(usize),
    /// Ends the n-th claim, counted round.
    End(usize, bool),
    Cancel(&'static str),
    Pause(&'static str, bool),
    Configure(u32),
    Advance(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let slot_pools = || prop_oneof![Just("p"), Just("q")];
    let jobs = || prop_oneof![Just("a"), Just("b"), Just("c"), Just("free"), Just("timed")];
    let one = prop_oneof![
        6 => jobs().prop_map(Step::Start),
        3 => (1..4_usize).prop_map(Step::Pass),
        3 => (0..8_usize, proptest::bool::ANY).prop_map(|(which, good)| Step::End(which, good)),
        1 => jobs().prop_map(Step::Cancel),
        1 => (slot_pools(), proptest::bool::ANY).prop_map(|(name, paused)| Step::Pause(name, paused)),
        1 => (1..5_u32).prop_map(Step::Configure),
        2 => (1..5_000_u64).prop_map(Step::Advance),
    ];
    proptest::collection::vec(one, 1..40)
}

async fn take(face: &Face, held: &mut Vec<Claimed>, step: Step) {
    match step {
        Step::Start(job) => drop(face.post(&format!("/jobs/{job}/start")).await),
        Step::Pass(count) => held.extend(face.pass(count).await),
        Step::End(_, _) if held.is_empty() => {}
        Step::End(which, good) => {
            let claimed = held.swap_remove(which % held.len());
            let outcome = if good { Outcome::Succeeded } else { Outcome::Failed };
            face.complete(&claimed, outcome).await;
        }
        Step::Cancel(job) => drop(face.post_json(&format!("/jobs/{job}/cancel"), "{}").await),
        Step::Pause(name, true) => drop(face.post_json(&format!("/pools/{name}/pause"), "{}").await),
        Step::Pause(name, false) => drop(face.post_json(&format!("/pools/{name}/resume"), "{}").await),
        Step::Configure(slots) => face.configure_slots("p", slots).await,
        Step::Advance(ms) => face.clock.advance(ms),
    }
}

/// What the scrape should say, from the main rows alone.
fn expected(face: &Face) -> BTreeMap<String, f64> {
    let (book, now) = (face.app.engine.book(), face.app.engine.now().wall);
    let read = face.app.engine.store.read(|tx| {
        Ok((
            tx.scan(&SLOT_ENTRIES, &(), None, usize::MAX)?,
            tx.scan(&RUNS, &(), None, usize::MAX)?,
            tx.scan(&SLOT_POOLS, &(), None, usize::MAX)?,
        ))
    });
    let (entries, runs, states) = read.unwrap();
    let mut all = BTreeMap::new();
    for (name, configured) in &book.slot_pools {
        let of = |wanted: &str| format!("{wanted}{{slot_pool=\"{name}\"}}");
        let state = states
            .iter()
            .find(|((tenant, found), _)| *tenant == TenantId::DEFAULT && found == name)
            .map(|(_, state)| state);
        let (mut used, mut queued, mut oldest) = (0, 0, 0);
        for (_, entry) in entries.iter().filter(|(_, entry)| entry.slot_pool == *name) {
            match entry.state {
                EntryState::Running { .. } => used += entry.slots,
                EntryState::Queued { .. } => {
                    queued += 1;
                    oldest = oldest.max(now.since(entry.queued_at));
                }
                EntryState::Finished { .. } | EntryState::Expired { .. } | EntryState::Cancelled { .. } => {}
            }
        }
        let stored = state.map_or(configured.slots, |state| state.stored_slots);
        let paused = state.is_some_and(|state| state.paused.is_some());
        all.insert(of("ductor_slots_configured"), f64::from(configured.slots));
        all.insert(of("ductor_slots_stored"), f64::from(stored));
        all.insert(of("ductor_slots_used"), f64::from(used));
        all.insert(of("ductor_slot_entries_queued"), f64::from(queued));
        all.insert(of("ductor_slot_paused"), f64::from(u8::from(paused)));
        all.insert(of("ductor_slot_oldest_wait_seconds"), in_seconds(oldest));
    }
    for word in ["pending", "running"] {
        all.insert(format!("ductor_runs_active{{state=\"{word}\"}}"), 0.0);
    }
    for (_, run) in &runs {
        if let RunState::Succeeded { .. } = run.state {
            let name = format!(
                "ductor_job_last_success_timestamp_seconds{{job=\"{}\"}}",
                run.definition
            );
            let at = in_seconds(run.state.ended_at().unwrap().since(Millis(0))).floor();
            let newest = all.entry(name).or_insert(at);
            *newest = newest.max(at);
        }
        if run.state.is_terminal() {
            continue;
        }
        *all.entry(format!("ductor_runs_active{{state=\"{}\"}}", run.state.word()))
            .or_default() += 1.0;
        if matches!(run.state, RunState::Running { .. }) {
            *all.entry(format!("ductor_jobs_running{{job=\"{}\"}}", run.definition))
                .or_default() += 1.0;
        }
    }
    all
}

/// The same gauges as the scrape has them.
fn scraped(text: &str) -> BTreeMap<String, f64> {
    let gauges = [
        "ductor_runs_active",
        "ductor_jobs_running",
        "ductor_job_last_success_timestamp_seconds",
    ];
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .filter(|(name, _)| {
            let bare = name.split('{').next().unwrap_or_default();
            OF_SLOT_POOLS.contains(&bare) || gauges.contains(&bare)
        })
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn metrics_equal_rows(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let face = Face::new().await;
            every_event_once(&face).await;
            let mut held = Vec::new();
            for step in steps {
                take(&face, &mut held, step).await;
                let text = face.get("/metrics").await.text;
                assert_eq!(scraped(&text), expected(&face));
            }
        });
    }
}
