//! The gauges of a scrape against the tables, counted here a second time and without any index.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::fixture::{Face, pool};
use crate::domain::slots::entry::EntryState;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::run::RunState;
use crate::engine::changes::claim::Claimed;
use crate::engine::metrics::{ResultLabel, SlotPoolJob, SlotPoolLabel, in_seconds};
use crate::store::Rows;
use crate::store::tables::{RUNS, SLOT_ENTRIES, SLOT_POOLS};
use crate::words::ids::TenantId;

/// Every metric of slot pools and leases. The first six are gauges.
const NAMES: [&str; 14] = [
    "ductor_slots_configured",
    "ductor_slots_stored",
    "ductor_slots_used",
    "ductor_slot_entries_queued",
    "ductor_slot_paused",
    "ductor_slot_oldest_wait_seconds",
    "ductor_slot_wait_seconds",
    "ductor_slot_held_seconds",
    "ductor_slot_refusals",
    "ductor_slot_entries_ended",
    "ductor_claims_lapsed",
    "ductor_lease_renewals",
    "ductor_slot_readmitted",
    "ductor_slot_renewal_failures",
];

/// A labelled counter is shown from its first event on.
async fn every_event_once(face: &Face) {
    let metrics = &face.app.engine.metrics;
    let slot_pool = || "p".to_owned();
    metrics.count_refusal("p", "full");
    metrics.count_readmitted("p", "lease lapsed");
    let label = SlotPoolLabel {
        slot_pool: slot_pool(),
    };
    metrics.slot_wait_seconds.get_or_create(&label).observe(1.0);
    drop(metrics.claims_lapsed.get_or_create(&label));
    drop(metrics.slot_held_seconds.get_or_create(&SlotPoolJob {
        slot_pool: slot_pool(),
        job: "a".to_owned(),
    }));
    drop(metrics.lease_renewals.get_or_create(&ResultLabel {
        result: "ok".to_owned(),
    }));
    face.post("/jobs/c/start").await;
    let claimed = face.pass(1).await;
    face.complete(&claimed[0], Outcome::Succeeded).await;
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
        Step::Configure(slots) => face.edit_book(|book| {
            book.slot_pools.get_mut(&pool("p")).unwrap().slots = slots;
        }),
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
    let gauges = ["ductor_runs_active", "ductor_jobs_running"];
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .filter(|(name, _)| {
            let bare = name.split('{').next().unwrap_or_default();
            NAMES[..6].contains(&bare) || gauges.contains(&bare)
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
                for name in NAMES {
                    assert!(text.contains(&format!("# TYPE {name} ")), "{name}\n{text}");
                }
            }
        });
    }
}
