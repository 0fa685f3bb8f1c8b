//! What a decision costs: `cargo bench --bench decisions`. Ratios are printed at the end; absolute numbers hold for one
//! machine only. Nothing is committed here: a pass reads a world in memory.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion};
use ductor::domain::routing::candidate::{Candidate, Learned};
use ductor::domain::routing::known::Known;
use ductor::domain::routing::live::Live;
use ductor::domain::routing::objects::{
    Action, ActionKind, Explain, Location, Recipient, RecipientPool, RecipientPoolConfig, RecipientState,
    Rule, Status,
};
use ductor::domain::routing::pass::{Request, route};
use ductor::domain::routing::ready::Prepared;
use ductor::domain::routing::snapshot::take;
use ductor::domain::routing::strategies::CATALOGUE;
use ductor::domain::routing::work::Work;
use ductor::expr::{Profile, Program, Scope};
use ductor::words::ids::{DecisionId, RecipientId, RecipientPoolId, RuleId, WorkId};
use ductor::words::time::Micros;
use serde_json::{Map, json};

const NOW: Micros = Micros(1_764_000_000_000_000);
const HOME: RecipientPoolId = RecipientPoolId([1; 16]);
const PLAIN: &str = "recipient.attributes.level >= 2";

fn numbered(number: u32) -> [u8; 16] {
    let mut id = [0; 16];
    id[12..].copy_from_slice(&number.to_be_bytes());
    id
}

fn candidate(number: u32) -> Candidate {
    let mut live = Live::new(RecipientState::Available, NOW);
    live.current = number % 5;
    live.last_assigned_at = Some(Micros(NOW.0 - i64::from(number % 97) * 1_000_000));
    let mut attributes = Map::new();
    attributes.insert("level".to_owned(), json!(2 + number % 3));
    attributes.insert("tier".to_owned(), json!(number % 3));
    attributes.insert("language".to_owned(), json!(["en", "es"]));
    Candidate {
        recipient: Arc::new(Recipient {
            id: RecipientId(numbered(number)),
            name: format!("recipient {number}"),
            kind: "agent".to_owned(),
            members_of: vec![HOME],
            status: Status::Active,
            weight_micro: 1_000_000 * u64::from(1 + number % 4),
            max_concurrent: 10,
            daily_limit: 0,
            attributes,
            tags: Vec::new(),
            schedule: None,
            timezone: "UTC".to_owned(),
            location: Some(Location {
                latitude: f64::from(number % 90),
                longitude: f64::from(number % 180),
            }),
            external_id: None,
            metadata: BTreeMap::new(),
            record_version: 0,
            created_at: NOW,
            updated_at: NOW,
        }),
        live,
        learned: Learned {
            n: f64::from(1 + number % 9),
            successes: 0.5,
            ewma_us: Some(1_000.0),
            ..Learned::default()
        },
        bid: Some(ductor::domain::routing::candidate::Bid {
            amount: i64::from(number % 50),
            effective: i64::from(number % 50),
            at: NOW,
            expires_at: None,
            quality_micro: 500_000,
            sla_micro: 500_000,
            wallet: None,
        }),
    }
}

fn work() -> Work {
    Work {
        id: WorkId([4; 16]),
        external_id: None,
        kind: "ticket".to_owned(),
        source: None,
        priority: 5,
        attributes: json!({"customer": "c1", "level": 2})
            .as_object()
            .cloned()
            .unwrap_or_default(),
        tags: Vec::new(),
        units: 1,
        location: Some(Location {
            latitude: 33.9,
            longitude: -118.4,
        }),
        timezone: None,
        deadline_at: Some(NOW.plus(3_600_000_000)),
        parent_decision_id: None,
        consent: Vec::new(),
        created_at: NOW,
    }
}

/// One recipient pool with so many members, and what its members must be.
fn world(count: u32, strategy: &str, rule: Option<&str>) -> (Known, Request) {
    let mut document = RecipientPool {
        id: HOME,
        name: "bench".to_owned(),
        description: String::new(),
        status: Status::Active,
        strategy: Some(strategy.to_owned()),
        config: RecipientPoolConfig::plain(),
        parent: None,
        metadata: BTreeMap::new(),
        record_version: 0,
        created_at: NOW,
        updated_at: NOW,
    };
    for (key, options) in [
        ("sticky", json!({"key": "work.attributes.customer"})),
        (
            "percentage_split",
            json!({"shares": {"recipient 1": 5_000, "recipient 2": 5_000}}),
        ),
        ("quota_pacing", json!({"quota": 100})),
    ] {
        let options = options.as_object().cloned().unwrap_or_default();
        document.config.strategy_options.insert(key.to_owned(), options);
    }
    let rules = rule.map(|expression| Rule {
        id: RuleId([1; 16]),
        name: "level".to_owned(),
        description: String::new(),
        attached_to: Some(HOME),
        priority: 1,
        expression: expression.to_owned(),
        action: Action {
            kind: ActionKind::Filter,
            target: None,
            boost: 0.0,
            reason: None,
        },
        enabled: true,
        valid_from: None,
        valid_until: None,
        record_version: 0,
        created_at: NOW,
        updated_at: NOW,
    });
    let mut known = Known::new("default");
    known
        .recipient_pools
        .insert(HOME, Some(Arc::new(Prepared::new(document, rules))));
    known
        .candidates
        .insert(HOME, (1..=count).map(candidate).collect());
    let mut request = Request::new(work());
    request.recipient_pool = Some(HOME);
    (known, request)
}

/// The median time of one call, in microseconds.
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn median(calls: usize, mut call: impl FnMut()) -> f64 {
    let mut times: Vec<Duration> = (0..calls)
        .map(|_| {
            let started = Instant::now();
            call();
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[calls / 2].as_secs_f64() * 1e6
}

fn decide(known: &Known, request: &Request) {
    black_box(route(request, NOW, DecisionId([3; 16]), known).expect("a decision"));
}

fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decision");
    for count in [100, 10_000] {
        let (known, request) = world(count, "smooth_weighted_round_robin", Some(PLAIN));
        group.bench_function(format!("{count} candidates"), |bencher| {
            bencher.iter(|| decide(&known, &request));
        });
        let passed = route(&request, NOW, DecisionId([3; 16]), &known).expect("a decision");
        group.bench_function(format!("{count} candidates, its JSON"), |bencher| {
            bencher.iter(|| black_box(passed.decision.to_json(Explain::First).to_string()));
        });
        group.bench_function(format!("{count} candidates, its snapshot"), |bencher| {
            bencher.iter(|| black_box(take(&request, NOW, DecisionId([3; 16]), &passed.read)));
        });
    }
    group.finish();
}

fn rules(criterion: &mut Criterion) {
    let mut scope = Scope::new();
    scope.set(
        "recipient",
        &json!({"attributes": {"level": 3, "tier": 1, "language": ["en", "es"]}}),
    );
    let names = ["work", "pool", "hop", "tenant", "now", "recipient"];
    let program = Program::compile(PLAIN, Profile::Rule, &names).expect("a rule");
    let mut group = criterion.benchmark_group("rule");
    group.bench_function("lowered", |bencher| {
        bencher.iter(|| black_box(program.decide(&scope)));
    });
    group.bench_function("interpreted", |bencher| {
        bencher.iter(|| black_box(program.evaluate_bool(&scope)));
    });
    let mut number = 0_u64;
    group.bench_function("compiled for the first time", |bencher| {
        bencher.iter_batched(
            || {
                number += 1;
                format!("recipient.attributes.level >= {number}")
            },
            |text| black_box(Program::compile(&text, Profile::Rule, &names)),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// What the specification asks for, as ratios.
fn ratios() {
    println!("\nstrategy: 10,000 candidates / (100 x 100 candidates); at most 1.5 where the cost is O(n)");
    for info in CATALOGUE {
        let (small, small_request) = world(100, info.key, None);
        let (large, large_request) = world(10_000, info.key, None);
        let one = median(300, || decide(&small, &small_request));
        let many = median(15, || decide(&large, &large_request));
        println!(
            "  {:28} {:6.2}   ({one:8.1} us, {many:9.1} us)",
            info.key,
            many / one / 100.0
        );
    }
    let mut scope = Scope::new();
    let recipient = json!({"attributes": {"level": 3, "tier": 1, "language": ["en", "es"]}});
    let program = Program::compile(PLAIN, Profile::Rule, &["recipient"]).expect("a rule");
    scope.set("recipient", &recipient);
    let lowered = median(2_000, || {
        for _ in 0..100 {
            black_box(program.decide(&scope));
        }
    });
    let interpreted = median(200, || {
        for _ in 0..100 {
            let mut scope = Scope::new();
            scope.set("recipient", &recipient);
            black_box(program.evaluate_bool(&scope)).expect("a truth");
        }
    });
    println!(
        "a plain rule, 100 candidates: lowered {lowered:.1} us, interpreted {interpreted:.1} us: {:.0} times",
        interpreted / lowered
    );
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(20);
    decisions(&mut criterion);
    rules(&mut criterion);
    criterion.final_summary();
    ratios();
}
