//! The metrics of routing. Gauges are read from the store when somebody scrapes.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::engine::metrics::RoutingMetrics;
use crate::store::tables::RECIPIENT_POOLS;
use crate::store::{Rows, StoreError, routing_live, routing_objects};
use crate::words::limits;

/// A recipient pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabel {
    recipient_pool: String,
}

/// What a scrape sees of one recipient pool.
#[derive(Debug)]
pub(super) struct PoolSeen {
    name: String,
    used: u64,
    capacity: u64,
    waiting: u64,
    offered: u64,
    is_killed: bool,
}

/// All recipient pools, as many as a label may name.
pub(super) fn look(rows: &mut impl Rows) -> Result<Vec<PoolSeen>, StoreError> {
    let mut seen = Vec::new();
    for ((tenant, id), row) in rows.scan(&RECIPIENT_POOLS, &(), None, limits::LABEL_VALUES_MAX)? {
        let mut capacity = 0;
        let mut used = 0;
        for member in routing_objects::members(rows, tenant, id)? {
            let found = routing_objects::recipient(rows, tenant, member)?;
            capacity += found.map_or(0, |found| u64::from(found.max_concurrent));
            let live = routing_live::live(rows, tenant, member)?;
            used += live.map_or(0, |live| u64::from(live.current));
        }
        let counts = routing_live::counts(rows, tenant, id)?;
        seen.push(PoolSeen {
            name: row.object.name.clone(),
            used,
            capacity,
            waiting: counts.waiting,
            offered: counts.offered,
            is_killed: row.kill_switch().is_some(),
        });
    }
    Ok(seen)
}

/// What is counted.
pub(super) fn register_counters(to: &mut Registry, metrics: &RoutingMetrics) {
    let decisions = "Decisions by pool and outcome";
    to.register("ductor_decisions", decisions, metrics.decisions.clone());
    let seconds = "Seconds of parts of decisions: judge (read and decide), commit";
    to.register(
        "ductor_decision_seconds",
        seconds,
        metrics.decision_seconds.clone(),
    );
    let errors = "Rules that could not be evaluated";
    to.register("ductor_rule_errors", errors, metrics.rule_error_counts.clone());
    let zero = "Passes in which every candidate of a pool was rejected by one and the same code";
    to.register("ductor_zero_matches", zero, metrics.zero_matches.clone());
}

/// What a scrape has seen.
pub(super) fn register_pools(to: &mut Registry, metrics: &RoutingMetrics, seen: &[PoolSeen]) {
    let ratio = Family::<PoolLabel, Gauge<f64, AtomicU64>>::default();
    let (kill, waiting, offered) = (
        Family::<PoolLabel, Gauge>::default(),
        Family::<PoolLabel, Gauge>::default(),
        Family::<PoolLabel, Gauge>::default(),
    );
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    for one in seen {
        let label = PoolLabel {
            recipient_pool: metrics.name(&one.name),
        };
        ratio.get_or_create(&label).set(share(one.used, one.capacity));
        kill.get_or_create(&label).set(i64::from(one.is_killed));
        waiting.get_or_create(&label).set(whole(one.waiting));
        offered.get_or_create(&label).set(whole(one.offered));
    }
    let used = "Open assignments of the members of a pool over what they take at once";
    to.register("ductor_recipient_capacity_used_ratio", used, ratio);
    to.register("ductor_kill_switch", "1 while a pool is switched off", kill);
    to.register("ductor_routing_waiting", "Work that waits in a pool", waiting);
    to.register("ductor_routing_offers_open", "Work that a pool offers", offered);
}

/// 1 where nothing is taken at all.
#[expect(clippy::cast_precision_loss, reason = "a gauge needs no more than 52 bits")]
fn share(used: u64, capacity: u64) -> f64 {
    if capacity == 0 {
        1.0
    } else {
        used as f64 / capacity as f64
    }
}
