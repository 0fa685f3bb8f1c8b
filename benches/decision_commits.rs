//! Decisions that are written, by one caller and by 64 at once. Prints one JSON document.
//!
//! `cargo bench --bench decision_commits -- [seconds for each line] [strategy]`. One caller waits for the disk after each decision, so that
//! each is a commit of its own; of 64 the writer takes what has come into one. What a caller does is what `POST /api/route`
//! does below HTTP: a pass over a snapshot, then the write where it still holds. Two recipient pools of 100 recipients: one
//! whose pick remembers nothing, and one of the default strategy, in which every decision moves what all others have read. The
//! modes take turns, five rounds each; medians are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ductor::domain::routing::ask;
use ductor::domain::routing::objects::PipelineMode;
use ductor::engine::changes::declared::{Outcome, Wisher};
use ductor::engine::changes::routing::route::{self, Routed, Wish};
use ductor::engine::changes::routing::shelf::Shelf;
use ductor::engine::changes::routing::world::{StoreWorld, Tenancy};
use ductor::engine::changes::{recipient_pools, recipients};
use ductor::store::{Abort, Store, StoreError, StoreOptions, Tx};
use ductor::words::ids::{DecisionId, RecipientId, RecipientPoolId, TenantId, WorkId};
use ductor::words::time::{Clock, Micros, SystemClock};
use serde_json::{Map, Value, json};

const TENANT: TenantId = TenantId::DEFAULT;
const STRATEGIES: [&str; 2] = ["random", "smooth_weighted_round_robin"];
const CALLERS: [usize; 2] = [1, 64];
const RECIPIENTS: u8 = 100;
const ROUNDS: usize = 5;

fn main() {
    let seconds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(3);
    let named = std::env::args().find(|word| STRATEGIES.contains(&word.as_str()));
    let (time, only) = (Duration::from_secs(seconds), named.as_deref());
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir_all(folder.path().join("nodes")).expect("a folder");
    let store =
        Store::open(StoreOptions::in_directory(folder.path()), Arc::new(SystemClock)).expect("a store");
    store.listen("bench").expect("a thread");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        store.change("declare", declare).await.expect("a commit");
        let mut lines = Vec::new();
        let wanted = STRATEGIES.into_iter().enumerate();
        for (place, strategy) in wanted.filter(|(_, name)| only.is_none_or(|only| only == *name)) {
            let mut rounds: Vec<[Load; 2]> = Vec::new();
            for _ in 0..ROUNDS {
                let alone = load(&store, place, CALLERS[0], time).await;
                rounds.push([alone, load(&store, place, CALLERS[1], time).await]);
            }
            let rate = |mode: usize| median(rounds.iter().map(|round| round[mode].per_second));
            lines.push(json!({
                "strategy": strategy, "recipients": RECIPIENTS, "callers": CALLERS[1],
                "alone_per_second": rate(0).round(), "together_per_second": rate(1).round(),
                "decisions_per_commit": hundredths(median(rounds.iter().map(|round| round[1].per_commit))),
                "ratio": hundredths(rate(1) / rate(0)), "goal": 5,
            }));
        }
        println!(
            "{}",
            json!({"bench": "decision_commits", "seconds": seconds, "lines": lines})
        );
    });
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn recipient_pool(place: usize) -> RecipientPoolId {
    RecipientPoolId([u8::try_from(place).expect("few"); 16])
}

fn declare(tx: &mut Tx<'_>) -> Result<(), Abort> {
    let me = Wisher {
        tenant: TENANT,
        principal: "bench".to_owned(),
        egress: [].into(),
    };
    let done = |outcome: Outcome| assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    for (place, strategy) in STRATEGIES.into_iter().enumerate() {
        let (id, body) = (
            recipient_pool(place),
            json!({"name": strategy, "strategy": strategy}),
        );
        done(recipient_pools::create(tx, &me, id, fields(body))?);
        for number in 0..RECIPIENTS {
            let mut of = [number; 16];
            of[0] = u8::try_from(place).expect("few");
            let body = json!({"name": format!("r{number}"), "capacity": {"max_concurrent": 1_000_000}});
            done(recipients::create(tx, &me, id, RecipientId(of), fields(body))?);
        }
    }
    Ok(())
}

struct Load {
    per_second: f64,
    per_commit: f64,
}

async fn load(store: &Store, place: usize, callers: usize, time: Duration) -> Load {
    let (count, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let tenancy = Arc::new(
        store
            .read(|tx| Tenancy::of(tx, TENANT, PipelineMode::Linear))
            .expect("a readable store"),
    );
    let (shelf, before) = (Shelf::default(), store.stats().commits);
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (store, tenancy, shelf) = (store.clone(), Arc::clone(&tenancy), shelf.clone());
            let (count, stop) = (Arc::clone(&count), Arc::clone(&stop));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    decide(&store, &shelf, &tenancy, place).await;
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("no panic");
    }
    let (decided, commits) = (count.load(Ordering::Relaxed), store.stats().commits - before);
    #[expect(clippy::cast_precision_loss, reason = "rates")]
    Load {
        per_second: decided as f64 / time.as_secs_f64(),
        per_commit: decided as f64 / commits as f64,
    }
}

async fn decide(store: &Store, shelf: &Shelf, tenancy: &Arc<Tenancy>, place: usize) {
    let now = Micros::from(SystemClock.now().wall);
    let body = json!({"pool_id": recipient_pool(place).to_string(), "work": {"kind": "ticket"}, "explain": "winners"});
    let request = ask::read(&fields(body), now, WorkId::fresh()).expect("a good request");
    let wish = Wish::fresh(request, DecisionId::fresh());
    let judged = if shelf.rivalry.is_quiet(wish.entrance(TENANT)) {
        let (reader, of, asked, held) = (store.clone(), Arc::clone(tenancy), wish.clone(), shelf.clone());
        let judged = tokio::task::spawn_blocking(move || {
            reader.read(|tx| {
                let world = StoreWorld::new(tx, &held, &of)?;
                Ok::<_, StoreError>(route::judge(&world, &asked, now)?.drawn_up(&world, &asked))
            })
        });
        Some(Arc::new(
            judged.await.expect("no panic").expect("a readable store"),
        ))
    } else {
        None
    };
    let _kept = judged.clone();
    let (shelf, tenancy) = (shelf.clone(), Arc::clone(tenancy));
    let written = store.change("route", move |tx| {
        route::commit(tx, &shelf, &tenancy, &wish, judged.as_deref())
    });
    assert!(matches!(written.await.expect("a commit"), Routed::Decided(_)));
}
