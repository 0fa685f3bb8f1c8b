//! The names of strategies and recipes, as objects may refer to them.

/// Keys of the catalogue, all of version 1.
pub(super) const STRATEGIES: [&str; 32] = [
    "availability_fallback",
    "broadcast",
    "capacity_aware",
    "consistent_hash",
    "epsilon_greedy",
    "fair",
    "highest_bid",
    "least_loaded",
    "least_utilized",
    "longest_idle",
    "lowest_cost",
    "most_available",
    "nearest",
    "peak_ewma",
    "percentage_split",
    "power_of_two_choices",
    "priority",
    "quota_pacing",
    "random",
    "round_robin",
    "second_price",
    "shark_tank",
    "skill_match",
    "sla_deadline",
    "smooth_weighted_round_robin",
    "sticky",
    "thompson",
    "ucb1",
    "waterfall",
    "weighted_least_request",
    "weighted_random",
    "weighted_round_robin",
];

const RECIPES: [&str; 7] = [
    "agents_by_cost",
    "call_center",
    "even",
    "low_latency",
    "ping_tree",
    "sla_rescue",
    "sticky_even",
];

/// What a text like `even@1` names, with its version pinned; `None` if there is no such recipe or version.
pub(super) fn recipe(text: &str) -> Option<String> {
    let (name, version) = text.split_once('@').unwrap_or((text, "1"));
    (RECIPES.contains(&name) && version == "1").then(|| format!("{name}@1"))
}

/// True for a key of the catalogue, with or without its version.
pub(super) fn is_strategy(text: &str) -> bool {
    let (name, version) = text.split_once('@').unwrap_or((text, "1"));
    STRATEGIES.contains(&name) && version == "1"
}

/// The three keys that are nearest to a text.
pub(super) fn nearest(text: &str) -> String {
    let mut keys: Vec<(usize, &str)> = STRATEGIES
        .iter()
        .map(|key| (strsim::damerau_levenshtein(text, key), *key))
        .collect();
    keys.sort_unstable();
    let near: Vec<String> = keys.iter().take(3).map(|(_, key)| format!("`{key}`")).collect();
    near.join(", ")
}
