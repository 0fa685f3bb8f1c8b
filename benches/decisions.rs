//! What a decision costs: `cargo bench --bench decisions`. After criterion's own lines each number that the specification
//! asks for is a line of JSON; with `-- none` only these. Absolute numbers hold for one machine only; each has a ratio to
//! something measured in the same run. Nothing is committed here: a pass reads a world in memory.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion};
use ductor::domain::routing::bundle::{Document, Topology, plan};
use ductor::domain::routing::candidate::{Candidate, Learned};
use ductor::domain::routing::crew::{Crew, Hands, Part};
use ductor::domain::routing::known::Known;
use ductor::domain::routing::live::Live;
use ductor::domain::routing::objects::{
    Action, ActionKind, Explain, Location, PipelineMode, Recipient, RecipientPool, RecipientPoolConfig,
    RecipientState, Rule, Status, Trait, TraitOp, TraitType,
};
use ductor::domain::routing::pass::{Passed, Request, route};
use ductor::domain::routing::ready::Prepared;
use ductor::domain::routing::snapshot::{Declared, take};
use ductor::domain::routing::strategies::CATALOGUE;
use ductor::domain::routing::work::Work;
use ductor::engine::changes::routing::crew::Threads;
use ductor::expr::{Profile, Program, Scope, Unguarded};
use ductor::words::ids::{DecisionId, RecipientId, RecipientPoolId, RuleId, WorkId};
use ductor::words::time::Micros;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

const NOW: Micros = Micros(1_764_000_000_000_000);
const HOME: RecipientPoolId = RecipientPoolId([1; 16]);
const NAMES: &[&str] = &["work", "pool", "hop", "tenant", "now", "recipient"];
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

/// Two rules, three traits and a written pipeline over the same members: what a busy desk asks.
fn desk(count: u32) -> (Known, Request) {
    let (mut known, request) = world(count, "smooth_weighted_round_robin", Some(PLAIN));
    let written = |key: &str, op| Trait {
        key: key.to_owned(),
        kind: TraitType::Set,
        op,
        required: true,
        relax_after_us: 0,
    };
    known.traits = Arc::new(vec![
        written("language", TraitOp::Contains),
        written("level", TraitOp::Gte),
        written("tier", TraitOp::In),
    ]);
    let mut request = request;
    request.work.attributes = json!({"customer": "c1", "language": "es", "level": 3, "tier": [0, 1]})
        .as_object()
        .cloned()
        .unwrap_or_default();
    (known, request)
}

/// Microseconds that this thread has worked: what others do on the machine meanwhile does not count.
#[expect(clippy::cast_precision_loss, reason = "a bench runs for minutes")]
fn worked() -> f64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as f64 * 1e6 + spent.tv_nsec as f64 / 1e3
}

/// Microseconds on the clock: where several threads work.
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn passed() -> f64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed().as_secs_f64() * 1e6
}

/// The median of what one call takes, in microseconds of a clock.
fn median_by(clock: fn() -> f64, calls: usize, mut call: impl FnMut()) -> f64 {
    call();
    let mut times: Vec<f64> = (0..calls)
        .map(|_| {
            let started = clock();
            call();
            clock() - started
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times[calls / 2]
}

/// The same, by the work of this thread.
fn median(calls: usize, call: impl FnMut()) -> f64 {
    median_by(worked, calls, call)
}

fn pass(known: &Known, request: &Request) -> Passed {
    route(request, NOW, DecisionId([3; 16]), known).expect("a decision")
}

fn decide(known: &Known, request: &Request) {
    black_box(pass(known, request));
}

/// From now on the stages remember what a decision leaves.
fn go_on(known: &mut Known, request: &Request) {
    for (id, stage, state) in pass(known, request).states {
        known.states.insert((id, stage), Arc::new(state));
    }
}

/// A decision as it is stored and sent.
fn text(passed: &Passed, explain: Explain) -> String {
    serde_json::to_string(&passed.decision.wire(explain, Map::new())).expect("plain data")
}

fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decision");
    for count in [100, 10_000] {
        let (known, request) = world(count, "smooth_weighted_round_robin", Some(PLAIN));
        group.bench_function(format!("{count} candidates"), |bencher| {
            bencher.iter(|| decide(&known, &request));
        });
        let passed = pass(&known, &request);
        group.bench_function(format!("{count} candidates, its text"), |bencher| {
            bencher.iter(|| black_box(text(&passed, Explain::First)));
        });
        // The declared half is there as long as nothing of it changes.
        let half = Arc::new(Declared::of(&passed.read));
        group.bench_function(format!("{count} candidates, its snapshot"), |bencher| {
            bencher.iter(|| {
                let half = Some(Arc::clone(&half));
                black_box(take(&request, NOW, DecisionId([3; 16]), &passed.read, half))
            });
        });
    }
    group.finish();
}

fn rules(criterion: &mut Criterion) {
    let (program, scope) = plain();
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
            |text| black_box(Program::compile(&text, Profile::Rule, NAMES)),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn plain() -> (Program, Scope) {
    let mut scope = Scope::new();
    scope.set("recipient", &recipient_json());
    (
        Program::compile(PLAIN, Profile::Rule, NAMES).expect("a rule"),
        scope,
    )
}

fn recipient_json() -> Value {
    json!({"attributes": {"level": 3, "tier": 1, "language": ["en", "es"]}})
}

/// One line of JSON for each number that is asked for: what it must be, what it is, and how many times what was measured
/// beside it (`against`) it takes.
struct Figures {
    missed: usize,
    against: &'static str,
    beside: f64,
}

impl Figures {
    fn at_most(&mut self, figure: &str, goal: f64, value: f64) {
        self.line(figure, goal, value, value <= goal);
    }

    /// Nothing is asked for.
    fn only(&self, figure: &str, value: f64) {
        println!(
            "{}",
            json!({"bench": "decisions", "figure": figure, "goal": null, "value": round(value),
                "ratio": round(value / self.beside), "against": self.against, "met": null})
        );
    }

    fn line(&mut self, figure: &str, goal: f64, value: f64, met: bool) {
        self.missed += usize::from(!met);
        println!(
            "{}",
            json!({"bench": "decisions", "figure": figure, "goal": goal, "value": round(value),
                "ratio": round(value / self.beside), "against": self.against, "met": met})
        );
    }
}

fn round(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// What the specification asks for (section 14).
fn figures() -> usize {
    let (program, _) = plain();
    let recipient = recipient_json();
    let interpreted = median(500, || {
        for _ in 0..100 {
            let mut scope = Scope::new();
            scope.set("recipient", &recipient);
            black_box(program.evaluate_bool(&scope)).expect("a truth");
        }
    });
    let mut told = Figures {
        missed: 0,
        against: "one CEL evaluation with its context",
        beside: interpreted / 100.0,
    };
    decision_figures(&mut told);
    rule_figures(&mut told, interpreted);
    bundle_figures(&mut told);
    linear_figures(&mut told);
    told.missed
}

fn decision_figures(told: &mut Figures) {
    let (mut known, request) = world(100, "smooth_weighted_round_robin", Some(PLAIN));
    go_on(&mut known, &request);
    let one = median(3_000, || decide(&known, &request));
    told.at_most("decision over 100, us", 100.0, one);
    let explained = median(2_000, || {
        black_box(text(&pass(&known, &request), Explain::All));
    });
    told.at_most(
        "decision over 100 with its full explanation, us",
        200.0,
        explained,
    );
    let (desk, asked) = desk(100);
    let busy = median(3_000, || decide(&desk, &asked));
    told.at_most("decision over 100 with three traits, us", 100.0, busy);
    // The attributes of 10,000 recipients lie far from each other: a rule over them mostly waits for memory.
    for (name, rule) in [("", None), (" with a plain rule", Some(PLAIN))] {
        let (mut large, request) = world(10_000, "smooth_weighted_round_robin", rule);
        go_on(&mut large, &request);
        let many = median(60, || decide(&large, &request));
        told.at_most(&format!("decision over 10,000{name}, us"), 5_000.0, many);
    }
    dag_figures(told);
    let passed = pass(&known, &request);
    let half = Arc::new(Declared::of(&passed.read));
    let snapshot = median(500, || {
        let half = Some(Arc::clone(&half));
        black_box(take(&request, NOW, DecisionId([3; 16]), &passed.read, half));
    });
    told.only("snapshot of a decision over 100, us", snapshot);
    let declared = median(200, || {
        black_box(Declared::of(&passed.read));
    });
    told.only("its declared half, once for all decisions over it, us", declared);
}

/// Two threads, whatever the machine has.
struct Two;

impl Crew for Two {
    fn hands(&self) -> usize {
        2
    }

    fn run(&self, parts: Vec<Part<'_>>) {
        Threads.run(parts);
    }
}

/// Whether several threads pay: the same pass in both modes, by the clock on the wall.
fn dag_figures(told: &mut Figures) {
    const LOOP: &str =
        "recipient.attributes.language.exists(l, l == 'es') && recipient.attributes.level >= 2";
    for count in [1_024, 10_000] {
        let (mut known, request) = world(count, "smooth_weighted_round_robin", Some(LOOP));
        let linear = median_by(passed, 31, || decide(&known, &request));
        (known.pipeline_mode, known.hands) = (PipelineMode::Dag, Hands(&Two));
        let dag = median_by(passed, 31, || decide(&known, &request));
        told.only(&format!("a rule with a loop over {count}, linear, us"), linear);
        told.only(
            &format!("a rule with a loop over {count}, dag by two threads, us"),
            dag,
        );
    }
}

fn rule_figures(told: &mut Figures, interpreted: f64) {
    let (program, scope) = plain();
    let lowered = median(3_000, || {
        for _ in 0..100 {
            black_box(program.decide(&scope));
        }
    });
    told.at_most("a plain rule over 100 candidates, us", 20.0, lowered);
    let times = interpreted / lowered;
    told.line(
        "a plain rule lowered, times as fast as interpreted",
        50.0,
        times,
        times >= 50.0,
    );
    let mut number = 0;
    let compiled = median_by(passed, 1_000, || {
        number += 1;
        let text = format!("recipient.attributes.level >= {number} && work.attributes.tier == \"gold\"");
        black_box(Program::compile(&text, Profile::Rule, NAMES)).expect("a rule");
    });
    told.at_most("a rule compiled and admitted, us", 100.0, compiled);
    let text =
        "recipient.attributes.level >= 2 && work.tags.exists(t, t in recipient.tags) || work.kind == \"a\"";
    let read = Unguarded::read(text, Profile::Rule).expect("a rule");
    let walk = median(3_000, || {
        black_box(read.guard(NAMES)).expect("it is admitted");
    });
    told.at_most("the guard's walk over a rule, us", 30.0, walk);
}

fn bundle_figures(told: &mut Figures) {
    let (before, document) = bundle();
    let mut fresh = || [7; 16];
    let diff = median(9, || {
        let plan = plan(&before, &document, false, &mut fresh);
        black_box((before.digest(), plan.after.digest()));
    });
    told.at_most(
        "diff of a bundle of 1,000 recipients and 100 rules, us",
        200_000.0,
        diff,
    );
}

fn bundle() -> (Topology, Document) {
    let recipients = (0..1_000).map(|number| {
        json!({"name": format!("recipient {number}"), "pools": ["desk"], "weight": 1.0 + f64::from(number % 4),
            "tags": ["a", "b"], "attributes": {"language": {"list_value": {"values": [{"string_value": "es"}]}},
            "level": {"number_value": number % 5}}, "capacity": {"max_concurrent": 5, "daily_limit": 40}})
    });
    let rules = (0..100).map(|number| {
        json!({"name": format!("rule {number}"), "priority": number,
            "expression": format!("work.attributes.customer == \"c{number}\""),
            "action": {"type": "select_pool", "pool": "desk"}})
    });
    let mut value = json!({"apiVersion": "ductor.io/v1", "kind": "RoutingBundle", "metadata": {"name": "desk"},
        "pools": [{"name": "desk"}], "recipients": recipients.collect::<Vec<_>>(), "rules": rules.collect::<Vec<_>>()});
    let document = |value: &Value| Document::read(value).expect("a document");
    let mut last = 0_u32;
    let mut fresh = || {
        last += 1;
        numbered(last)
    };
    let before = plan(&Topology::default(), &document(&value), false, &mut fresh).after;
    value["recipients"][7]["weight"] = json!(9);
    (before, document(&value))
}

fn linear_figures(told: &mut Figures) {
    for info in CATALOGUE {
        let (mut small, small_request) = world(100, info.key, None);
        let (mut large, large_request) = world(10_000, info.key, None);
        go_on(&mut small, &small_request);
        go_on(&mut large, &large_request);
        let one = median(500, || decide(&small, &small_request));
        let many = median(25, || decide(&large, &large_request));
        (told.against, told.beside) = ("one over 100, in us", one);
        let growth = many / one / 100.0;
        let name = format!("growth from 100 to 10,000: {} ({many:.0} us)", info.key);
        told.missed += usize::from(growth > 1.5);
        println!(
            "{}",
            json!({"bench": "decisions", "figure": name, "goal": 1.5, "value": round(growth),
                "ratio": round(many / one), "against": told.against, "met": growth <= 1.5})
        );
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .configure_from_args()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    decisions(&mut criterion);
    rules(&mut criterion);
    criterion.final_summary();
    let missed = figures();
    println!("{}", json!({"bench": "decisions", "missed": missed}));
}
