//! Random worlds: every strategy, recipe and kind of pipeline, over members in every state.

use std::sync::Arc;

use serde_json::{Value, json};

use super::rig::{
    NOW, Rig, action, candidate, decision_id, pool_id, recipient_id, recipient_pool, required, rule, work,
};
use crate::domain::routing::candidate::{Bid, Candidate, Members};
use crate::domain::routing::objects::{
    ActionKind, BusyPolicy, Dedup, Explain, FallbackKind, FlowControl, Hours, Location, OnDuplicate, OnLimit,
    RecipientPool, RecipientState, RoutingMode, Rule, ShardBy, Sharding, Status, Trait, TraitOp, Window,
};
use crate::domain::routing::pass::{Flow, Request};
use crate::domain::routing::recipes::{RECIPES, Recipe};
use crate::domain::routing::strategies::CATALOGUE;
use crate::domain::routing::strategies::pacing::window_start;
use crate::domain::routing::work::Work;
use crate::words::chance::Chance;
use crate::words::ids::ClaimQueueId;
use crate::words::time::Micros;

const LANGUAGES: &[&str] = &["en", "es", "fr"];
const EXPRESSIONS: &[&str] = &[
    "recipient.attributes.level >= 2",
    "recipient.attributes.level + work.attributes.n > 2.5",
    "\"en\" in recipient.attributes.language",
    "recipient.current < 3 && recipient.name != \"m3\"",
    "recipient.tags.exists(tag, tag == \"vip\")",
    "has(recipient.attributes.level)",
    "recipient.idle > duration('1h') || recipient.utilization < 0.5",
];

fn pick<T: Clone>(chance: &mut Chance, list: &[T]) -> T {
    chance.pick(list).cloned().expect("the list has something")
}

fn small(chance: &mut Chance, end: u64) -> u32 {
    u32::try_from(chance.below(end)).expect("a small number")
}

fn before(chance: &mut Chance) -> Option<Micros> {
    (!chance.one_in(4)).then(|| Micros(NOW.0 - i64::from(small(chance, 6)) * 1_800_000_000))
}

fn member(chance: &mut Chance, number: u32) -> Candidate {
    let mut made = candidate(number, &format!("m{number}"));
    let recipient = Arc::make_mut(&mut made.recipient);
    recipient.weight_micro = pick(chance, &[0, 500_000, 1_000_000, 1_000_000, 2_000_000, 3_141_593]);
    recipient.max_concurrent = small(chance, 6);
    recipient.daily_limit = if chance.one_in(3) { 2 } else { 0 };
    if chance.one_in(12) {
        recipient.status = Status::Paused;
    }
    let attributes = &mut recipient.attributes;
    if !chance.one_in(4) {
        attributes.insert(
            "language".to_owned(),
            json!([pick(chance, LANGUAGES), pick(chance, LANGUAGES)]),
        );
    }
    if !chance.one_in(4) {
        attributes.insert("level".to_owned(), json!(0.1 + 0.7 * f64::from(small(chance, 5))));
    }
    attributes.insert("tier".to_owned(), json!(small(chance, 3)));
    attributes.insert("never read".to_owned(), json!(chance.number()));
    if chance.one_in(3) {
        recipient.tags = vec!["vip".to_owned()];
    }
    if !chance.one_in(3) {
        recipient.location = Some(Location {
            latitude: f64::from(small(chance, 100)) + 0.123_456_789_012_345_67,
            longitude: -f64::from(small(chance, 100)) / 3.0,
        });
    }
    if chance.one_in(4) {
        recipient.schedule = Some(Hours {
            timezone: Some("America/New_York".to_owned()),
            windows: vec![Window {
                days: 0b111_1111,
                start: 0,
                end: 60 * (1 + u16::try_from(chance.below(24)).expect("hours")),
            }],
            exceptions: Vec::new(),
        });
    }
    live(chance, &mut made);
    made
}

fn live(chance: &mut Chance, made: &mut Candidate) {
    let live = &mut made.live;
    live.state = match chance.below(8) {
        0 => RecipientState::Busy,
        1 => RecipientState::Offline,
        2 => RecipientState::Paused,
        _ => RecipientState::Available,
    };
    live.current = small(chance, 5);
    live.units = u64::from(small(chance, 50));
    live.daily_count = small(chance, 3);
    live.daily_reset_at = before(chance).map(|at| at.plus(7_200_000_000));
    live.last_assigned_at = before(chance);
    live.last_finished_at = before(chance);
    let learned = &mut made.learned;
    if !chance.one_in(3) {
        learned.n = f64::from(1 + small(chance, 20));
        learned.successes = learned.n * f64::from(small(chance, 11)) / 10.3;
        learned.faded_at = before(chance);
        learned.ewma_us = Some(f64::from(small(chance, 2_000_000_000)) / 7.0);
        learned.ewma_at = before(chance);
        learned.delivered = chance.below(6);
        learned.delivered_since = Some(window_start(NOW, 86_400_000_000));
    }
    made.bid = (!chance.one_in(3)).then(|| Bid {
        amount: i64::from(small(chance, 10)) * 1_000,
        effective: i64::from(small(chance, 10)) * 900,
        at: Micros(NOW.0 - i64::from(small(chance, 3))),
        expires_at: chance.one_in(5).then_some(NOW),
        quality_micro: i64::from(small(chance, 1_000_000)),
        sla_micro: i64::from(small(chance, 1_000_000)),
        wallet: chance.one_in(3).then_some(5_000),
    });
}

fn pipeline(chance: &mut Chance) -> Value {
    let mut stages = Vec::new();
    for _ in 0..chance.below(4) {
        let by = pick(
            chance,
            &[
                "utilization",
                "available",
                "idle",
                "weight",
                "distance",
                "skill",
                "attribute:level",
                "bid",
            ],
        );
        stages.push(match chance.below(5) {
            0 => json!({"filter": {"trait": "language", "has": "work.attributes.language", "for": "45s", "then": "relax"}}),
            1 => json!({"filter": {"cel": pick(chance, EXPRESSIONS)}}),
            2 => json!({"score": {"cel": "recipient.attributes.level * 2.0", "weight": 2}}),
            3 => json!({"score": {"by": by, "order": pick(chance, &["asc", "desc"]), "weight": 1 + chance.below(3)}}),
            _ => json!({"sort": {"by": [format!("{by} desc"), "idle asc"]}}),
        });
    }
    let strategy = pick(
        chance,
        &[
            "smooth_weighted_round_robin",
            "random",
            "least_utilized",
            "longest_idle",
        ],
    );
    stages.push(json!({"pick": {
        "strategy": strategy, "among": pick(chance, &["top", "all"]), "within": f64::from(small(chance, 3)) / 10.0,
    }}));
    let fallback = match chance.below(4) {
        0 => json!([{"recipe": "sla_rescue@1"}, {"overflow": "pool:pool-2"}]),
        1 => json!([{"queue": {"ttl": "1h"}}]),
        2 => json!([{"overflow": "pool:gone"}, {"strategy": "least_loaded"}]),
        _ => json!([]),
    };
    json!({"stages": stages, "fallback": fallback})
}

fn options(chance: &mut Chance, known: &mut RecipientPool) {
    let inner = pick(
        chance,
        &[
            "smooth_weighted_round_robin",
            "least_loaded",
            "random",
            "round_robin",
        ],
    );
    for (strategy, given) in [
        (
            "sticky",
            json!({"key": "work.attributes.customer", "inner": inner, "rebind": chance.one_in(2)}),
        ),
        (
            "priority",
            json!({"inner": inner, "tier_timeout": pick(chance, &["0s", "10m"])}),
        ),
        ("capacity_aware", json!({"inner": inner, "floor": 0.1})),
        (
            "percentage_split",
            json!({"shares": {"m1": 5_000, "m2": 3_000, "m3": 2_000}, "exact": chance.one_in(2)}),
        ),
        ("quota_pacing", json!({"quota": 5})),
        ("nearest", json!({"max_radius": 9e6})),
        ("highest_bid", json!({"reserve": 3_000})),
        ("second_price", json!({"reserve": 2_000, "increment": 100})),
        ("broadcast", json!({"max": 2})),
        ("peak_ewma", json!({"choices": chance.below(3)})),
        ("sla_deadline", json!({"allow_breach": chance.one_in(2)})),
        (
            "lowest_cost",
            json!({"weights": if chance.one_in(2) { json!({}) } else { json!({"price": 1, "quality": 2}) }}),
        ),
    ] {
        let given = given.as_object().cloned().expect("an object");
        known.config.strategy_options.insert(strategy.to_owned(), given);
    }
}

/// The pipelines that exist without naming one: strategies, then recipes, then one that was written.
pub(super) fn strategies() -> Vec<String> {
    let keys = CATALOGUE.iter().map(|info| info.key.to_owned());
    let recipes = RECIPES.iter().map(Recipe::pinned);
    keys.chain(recipes).chain(["pipeline:own".to_owned()]).collect()
}

fn configure(chance: &mut Chance, known: &mut RecipientPool, strategy: &str) {
    options(chance, known);
    known
        .config
        .strategy_pipelines
        .insert("own".to_owned(), pipeline(chance));
    known.strategy = Some(strategy.to_owned());
    let config = &mut known.config;
    config.explain = pick(chance, &[Explain::First, Explain::First, Explain::All]);
    config.busy_policy = pick(
        chance,
        &[BusyPolicy::Exclude, BusyPolicy::LastResort, BusyPolicy::Include],
    );
    config.allow_over_capacity = chance.one_in(2);
    config.over_capacity_budget_micro = pick(chance, &[0, 10_000_000, 50_000_000]);
    config.default_timeout_us = pick(chance, &[0, 30_000_000]);
    config.exploration_epsilon = pick(chance, &[0.0, 0.0, 0.0, 0.2]);
    (config.fallback, config.overflow, config.catchall) = match chance.below(4) {
        0 => (FallbackKind::Drop, None, None),
        1 => (FallbackKind::Overflow, Some(pool_id(2)), None),
        2 => (FallbackKind::Catchall, None, Some(pool_id(2))),
        _ => (FallbackKind::Queue, None, None),
    };
    config.catchall_delay_us = pick(chance, &[0, 60_000_000]);
    if chance.one_in(8) {
        config.dedup = Some(Dedup {
            key: "work.attributes.customer".to_owned(),
            window_us: 3_600_000_000,
            on_duplicate: pick(chance, &[OnDuplicate::Reject, OnDuplicate::ReturnExisting]),
        });
    }
    if chance.one_in(8) {
        config.flow_control = Some(FlowControl {
            rate: Some((2, 60_000_000)),
            concurrency: 3,
            on_limit: pick(chance, &[OnLimit::Queue, OnLimit::Fallback]),
        });
    }
    if chance.one_in(16) {
        (config.routing_mode, config.claim_queue) = (RoutingMode::Claim, Some(ClaimQueueId([9; 16])));
    }
    if chance.one_in(8) {
        config.sharding = Some(Sharding {
            by: pick(chance, &[ShardBy::Recipient, ShardBy::Work]),
            key: Some("work.attributes.customer".to_owned()),
            shards: vec![pool_id(2), pool_id(3)],
        });
    }
}

fn rules(chance: &mut Chance) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (at, text) in EXPRESSIONS.iter().enumerate() {
        if !chance.one_in(6) {
            continue;
        }
        let kind = pick(chance, &[ActionKind::Filter, ActionKind::Boost]);
        let mut made = rule(&format!("rule-{at}"), Some(1), text, action(kind, None));
        made.action.boost = pick(chance, &[-0.5, 0.25, 1.0]);
        rules.push(made);
    }
    if chance.one_in(12) {
        rules.push(rule(
            "away",
            Some(1),
            "work.attributes.n == 1.5",
            action(ActionKind::Redirect, Some(2)),
        ));
    }
    rules
}

fn asked(chance: &mut Chance) -> Work {
    let mut asked = work(&json!({
        "customer": format!("c{}", chance.below(3)), "language": pick(chance, LANGUAGES),
        "n": pick(chance, &[0.0, 1.5, 0.1]),
    }));
    asked.units = 1 + small(chance, 3);
    asked.location = chance.one_in(2).then_some(Location {
        latitude: 33.94,
        longitude: -118.40,
    });
    asked.deadline_at = chance.one_in(2).then(|| NOW.plus(chance.below(3_600_000_000)));
    asked
}

fn traits(chance: &mut Chance) -> Vec<Trait> {
    let mut language = required("language", TraitOp::Contains);
    language.required = chance.one_in(2);
    language.relax_after_us = pick(chance, &[0, 45_000_000]);
    vec![language]
}

/// A random world that routes by this strategy.
pub(super) fn random(chance: &mut Chance, strategy: &str) -> Rig {
    let mut rig = Rig::new("", &[]);
    let count = 1 + small(chance, 8);
    let members: Members = (1..=count).map(|number| member(chance, number)).collect();
    let (second, third) = (small(chance, 3), small(chance, 3));
    rig.world.candidates.insert(pool_id(1), members);
    let more = |chance: &mut Chance, from: u32, count: u32| {
        (from..from + count)
            .map(|number| member(chance, number))
            .collect()
    };
    let made = more(chance, 21, second);
    rig.world.candidates.insert(pool_id(2), made);
    let made = more(chance, 31, third);
    rig.world.candidates.insert(pool_id(3), made);
    let mut first = recipient_pool(1);
    configure(chance, &mut first, strategy);
    let attached = rules(chance);
    rig.add_pool_with(first, attached);
    for number in [2, 3] {
        let mut other = recipient_pool(number);
        other.strategy =
            Some(pick(chance, &["random", "least_loaded", "smooth_weighted_round_robin"]).to_owned());
        if chance.one_in(6) {
            other.status = Status::Paused;
        }
        if chance.one_in(3) {
            (other.config.fallback, other.config.overflow) = (FallbackKind::Overflow, Some(pool_id(1)));
        }
        rig.add_pool(other);
    }
    rig.world.traits = Arc::new(traits(chance));
    rig.request = Request::new(asked(chance));
    rig.request.recipient_pool = (!chance.one_in(6)).then(|| pool_id(1));
    rig.world.default_recipient_pool = chance.one_in(2).then(|| pool_id(1));
    if chance.one_in(3) {
        let select = rule(
            "es",
            None,
            "work.attributes.language == \"es\"",
            action(ActionKind::SelectPool, Some(1)),
        );
        rig.tenant_rules(vec![select]);
    }
    if chance.one_in(4) {
        rig.request.waiting_since = Some(Micros(NOW.0 - 50_000_000));
        rig.request.hop_since = rig.request.waiting_since;
    }
    if chance.one_in(5) {
        rig.world.tried = vec![(recipient_id(1 + small(chance, 4)), decision_id(999))];
    }
    let flow = Flow {
        open: chance.below(5),
        recent: chance.below(4),
        oldest: before(chance),
    };
    rig.world.flows.insert(pool_id(1), flow);
    if chance.one_in(3) {
        rig.world.seen.insert(
            (pool_id(1), "c1".to_owned()),
            (decision_id(998), Micros(NOW.0 - 60_000_000)),
        );
    }
    rig.next = small(chance, 1_000_000);
    rig
}
