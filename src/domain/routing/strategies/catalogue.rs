//! The catalogue of strategies, as data.

use std::fmt;

/// Which strategy; `dispatch` matches on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is described by its entry in the catalogue")]
pub enum Kind {
    RoundRobin,
    WeightedRoundRobin,
    SmoothWeightedRoundRobin,
    Random,
    WeightedRandom,
    LeastLoaded,
    MostAvailable,
    LeastUtilized,
    WeightedLeastRequest,
    PowerOfTwoChoices,
    PeakEwma,
    LongestIdle,
    Priority,
    Sticky,
    ConsistentHash,
    SkillMatch,
    Nearest,
    HighestBid,
    SecondPrice,
    LowestCost,
    PercentageSplit,
    EpsilonGreedy,
    Ucb1,
    Thompson,
    QuotaPacing,
    CapacityAware,
    Fair,
    SlaDeadline,
    SharkTank,
    Broadcast,
    AvailabilityFallback,
}

/// What kind of value a parameter has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// A number.
    Number,
    /// A whole number.
    Int,
    /// true or false.
    Bool,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A length of time, like `30s`.
    Length,
    /// CEL over the work.
    WorkExpression,
    /// CEL over the work and the recipient, or the name of an attribute of the recipient.
    RecipientExpression,
    /// The key of another strategy; its own options are those of that key.
    Strategy,
    /// A map of names to numbers.
    Numbers,
    /// A list of these words.
    Words(&'static [&'static str]),
}

impl fmt::Display for ParameterType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ParameterType::Number => "number",
            ParameterType::Int => "int",
            ParameterType::Bool => "bool",
            ParameterType::Word(_) => "enum",
            ParameterType::Length => "duration",
            ParameterType::WorkExpression | ParameterType::RecipientExpression => "expression",
            ParameterType::Strategy => "strategy",
            ParameterType::Numbers => "map<string,number>",
            ParameterType::Words(_) => "enum[]",
        })
    }
}

/// A parameter of a strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its key in `strategy_options`.
    pub name: &'static str,
    /// What kind of value.
    pub kind: ParameterType,
    /// As JSON; `null` when it must be given.
    pub default: &'static str,
    /// The least, for numbers and lengths (seconds).
    pub min: Option<f64>,
    /// The most.
    pub max: Option<f64>,
}

/// What is known of a strategy without running it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent properties, told one by one on the wire"
)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Info {
    /// Its key.
    pub key: &'static str,
    /// Changes that alter a result are a new version.
    pub version: u32,
    /// Which one.
    pub kind: Kind,
    /// One sentence.
    pub summary: &'static str,
    /// For the summary of a decision: why the winner won.
    pub phrase: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// What it remembers; empty for nothing.
    pub state: &'static str,
    /// Whether weights count: a weight of 0 leaves.
    pub uses_weight: bool,
    /// Whether it looks at a score, to which boosts are added.
    pub uses_score: bool,
    /// Whether it draws.
    pub seeded: bool,
    /// Whether candidates must have bid.
    pub needs_bids: bool,
    /// How its time grows; n is the number of eligible candidates.
    pub cost: &'static str,
    /// Fewer eligible candidates than this: fallback.
    pub min_candidates: u32,
}

impl Info {
    /// `key@version`.
    pub fn name(&self) -> String {
        format!("{}@{}", self.key, self.version)
    }

    /// A parameter by name.
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }
}

const fn parameter(name: &'static str, kind: ParameterType, default: &'static str) -> Parameter {
    Parameter {
        name,
        kind,
        default,
        min: None,
        max: None,
    }
}

const fn ranged(
    name: &'static str,
    kind: ParameterType,
    default: &'static str,
    min: f64,
    max: f64,
) -> Parameter {
    Parameter {
        name,
        kind,
        default,
        min: Some(min),
        max: Some(max),
    }
}

use Kind as K;
use ParameterType::{
    Bool, Int, Length, Number, Numbers, RecipientExpression, Strategy, Word, Words, WorkExpression,
};

const fn entry(key: &'static str, kind: Kind, summary: &'static str, phrase: &'static str) -> Info {
    Info {
        key,
        version: 1,
        kind,
        summary,
        phrase,
        parameters: &[],
        state: "",
        uses_weight: false,
        uses_score: false,
        seeded: false,
        needs_bids: false,
        cost: "O(n)",
        min_candidates: 1,
    }
}

const INNER: Parameter = parameter("inner", Strategy, "\"smooth_weighted_round_robin\"");
const YEAR_S: f64 = 31_536_000.0;

/// Every strategy.
pub const CATALOGUE: &[Info] = &[
    Info {
        state: "cursor",
        ..entry(
            "round_robin",
            K::RoundRobin,
            "each in turn, by id",
            "next in turn",
        )
    },
    Info {
        state: "cursor, level",
        uses_weight: true,
        ..entry(
            "weighted_round_robin",
            K::WeightedRoundRobin,
            "each in turn, as often as its weight says, interleaved",
            "next in weighted turn",
        )
    },
    Info {
        state: "current by recipient",
        uses_weight: true,
        ..entry(
            "smooth_weighted_round_robin",
            K::SmoothWeightedRoundRobin,
            "each in turn, as often as its weight says, spread as evenly as can be",
            "next in weighted turn",
        )
    },
    Info {
        seeded: true,
        cost: "O(1)",
        ..entry("random", K::Random, "any of them", "drawn")
    },
    Info {
        seeded: true,
        uses_weight: true,
        ..entry(
            "weighted_random",
            K::WeightedRandom,
            "any of them, by weight",
            "drawn by weight",
        )
    },
    Info {
        parameters: &[parameter("unit", Word(&["count", "cost"]), "\"count\"")],
        ..entry(
            "least_loaded",
            K::LeastLoaded,
            "the fewest open assignments, or units of them",
            "least loaded",
        )
    },
    entry("most_available", K::MostAvailable, "the most room", "most room"),
    entry(
        "least_utilized",
        K::LeastUtilized,
        "the smallest share of its capacity used",
        "least utilized",
    ),
    Info {
        parameters: &[ranged("bias", Number, "1.0", 0.0, 10.0)],
        uses_weight: true,
        ..entry(
            "weighted_least_request",
            K::WeightedLeastRequest,
            "the highest weight / (current + 1)^bias",
            "lightest for its weight",
        )
    },
    Info {
        parameters: &[ranged("choices", Int, "2", 1.0, 100.0)],
        seeded: true,
        cost: "O(d)",
        ..entry(
            "power_of_two_choices",
            K::PowerOfTwoChoices,
            "draws some and takes the least loaded of them",
            "less loaded of those drawn",
        )
    },
    Info {
        parameters: &[
            ranged("tau", Length, "\"10s\"", 0.001, YEAR_S),
            ranged("initial", Length, "\"1s\"", 0.0, YEAR_S),
            ranged("choices", Int, "2", 0.0, 100.0),
        ],
        state: "how long work takes, by recipient",
        uses_weight: true,
        seeded: true,
        cost: "O(d)",
        ..entry(
            "peak_ewma",
            K::PeakEwma,
            "draws some (0 for all) and takes the one with the least time x (current + 1) / weight",
            "fastest of those drawn",
        )
    },
    Info {
        parameters: &[parameter(
            "basis",
            Word(&["assigned", "finished"]),
            "\"assigned\"",
        )],
        ..entry(
            "longest_idle",
            K::LongestIdle,
            "the one that waits longest for work",
            "longest idle",
        )
    },
    Info {
        parameters: &[
            parameter("tier", RecipientExpression, "\"tier\""),
            ranged("tier_timeout", Length, "\"0s\"", 0.0, YEAR_S),
            INNER,
        ],
        state: "that of the inner strategy",
        ..entry(
            "priority",
            K::Priority,
            "the lowest tier that has somebody; inside it another strategy",
            "in the first tier with room",
        )
    },
    Info {
        parameters: &[
            parameter("key", WorkExpression, "null"),
            ranged("ttl", Length, "\"720h\"", 0.001, YEAR_S),
            parameter("rebind", Bool, "true"),
            INNER,
        ],
        state: "holder by key",
        ..entry(
            "sticky",
            K::Sticky,
            "who had the key before; else another strategy",
            "holder of its key",
        )
    },
    Info {
        parameters: &[parameter("key", WorkExpression, "\"work.id\"")],
        uses_weight: true,
        ..entry(
            "consistent_hash",
            K::ConsistentHash,
            "the same recipient for the same key, by weighted rendezvous",
            "chosen by the hash of the key",
        )
    },
    Info {
        parameters: &[
            parameter("traits", Numbers, "{}"),
            ranged("min_score", Number, "0", 0.0, 1.0),
        ],
        uses_score: true,
        cost: "O(n*t)",
        ..entry(
            "skill_match",
            K::SkillMatch,
            "the best score over the preferred traits",
            "best match of skills",
        )
    },
    Info {
        parameters: &[ranged("max_radius", Number, "0", 0.0, 20_100_000.0)],
        ..entry(
            "nearest",
            K::Nearest,
            "the shortest way over the Earth",
            "nearest",
        )
    },
    Info {
        parameters: &[ranged("reserve", Int, "0", 0.0, 9e15)],
        needs_bids: true,
        cost: "O(b log b)",
        ..entry(
            "highest_bid",
            K::HighestBid,
            "the highest bid, which is paid",
            "highest bid",
        )
    },
    Info {
        parameters: &[
            ranged("reserve", Int, "0", 0.0, 9e15),
            ranged("increment", Int, "0", 0.0, 9e15),
        ],
        needs_bids: true,
        ..entry(
            "second_price",
            K::SecondPrice,
            "the highest bid, which pays the second",
            "highest bid",
        )
    },
    Info {
        parameters: &[
            parameter("weights", Numbers, "{}"),
            ranged("quality_floor", Number, "0", 0.0, 1.0),
        ],
        needs_bids: true,
        ..entry(
            "lowest_cost",
            K::LowestCost,
            "the lowest ask, or the best of price, quality and reliability",
            "lowest cost",
        )
    },
    Info {
        parameters: &[
            parameter("shares", Numbers, "null"),
            parameter("key", WorkExpression, "\"work.id\""),
            parameter("exact", Bool, "false"),
        ],
        state: "counts, when exact",
        ..entry(
            "percentage_split",
            K::PercentageSplit,
            "by shares of 10,000, by hash of a key or by exact counts",
            "by its share",
        )
    },
    Info {
        parameters: &[ranged("epsilon", Number, "0.05", 0.0, 1.0)],
        state: "mean value by recipient",
        seeded: true,
        ..entry(
            "epsilon_greedy",
            K::EpsilonGreedy,
            "the best mean value, now and then any",
            "best mean value",
        )
    },
    Info {
        parameters: &[ranged("c", Number, "2", 0.0, 1_000.0)],
        state: "mean value by recipient",
        ..entry(
            "ucb1",
            K::Ucb1,
            "the best mean value it may have, untried ones first",
            "highest upper bound",
        )
    },
    Info {
        parameters: &[ranged("half_life", Length, "\"0s\"", 0.0, YEAR_S)],
        state: "successes and failures by recipient",
        seeded: true,
        ..entry(
            "thompson",
            K::Thompson,
            "the best of a draw from what is known of each",
            "best draw",
        )
    },
    Info {
        parameters: &[
            ranged("quota", Int, "null", 1.0, 1e9),
            ranged("window", Length, "\"24h\"", 1.0, YEAR_S),
            ranged("slack", Number, "0.10", 0.0, 10.0),
        ],
        state: "delivered by recipient",
        ..entry(
            "quota_pacing",
            K::QuotaPacing,
            "whoever is furthest behind its quota",
            "furthest behind its pace",
        )
    },
    Info {
        parameters: &[ranged("floor", Number, "0", 0.0, 1.0), INNER],
        state: "that of the inner strategy",
        uses_weight: true,
        ..entry(
            "capacity_aware",
            K::CapacityAware,
            "weights fall with the room that is left; inside another strategy",
            "by weight and room",
        )
    },
    Info {
        parameters: &[ranged("quantum", Int, "1", 1.0, 1_000.0)],
        state: "deficits by source",
        cost: "O(1) amortised",
        ..entry(
            "fair",
            K::Fair,
            "sources of waiting work are served in turn by deficit; the recipient is the least utilized",
            "least utilized, its source's turn",
        )
    },
    Info {
        parameters: &[parameter("allow_breach", Bool, "false")],
        state: "how long work takes, by recipient",
        ..entry(
            "sla_deadline",
            K::SlaDeadline,
            "the most time to spare before the deadline",
            "most time to spare",
        )
    },
    Info {
        parameters: &[
            ranged("fanout", Int, "50", 1.0, 1_000.0),
            ranged("window", Length, "\"60s\"", 0.1, 86_400.0),
        ],
        state: "the offer",
        ..entry(
            "shark_tank",
            K::SharkTank,
            "offered to all; the first valid claim wins",
            "offered",
        )
    },
    Info {
        parameters: &[
            ranged("max", Int, "100", 1.0, 1_000.0),
            ranged("min", Int, "1", 1.0, 1_000.0),
        ],
        ..entry("broadcast", K::Broadcast, "one assignment for each", "one of all")
    },
    Info {
        parameters: &[parameter(
            "steps",
            Words(&["available", "busy", "over_capacity"]),
            "[\"available\", \"busy\", \"over_capacity\"]",
        )],
        ..entry(
            "availability_fallback",
            K::AvailabilityFallback,
            "whoever is available, else busy, else beyond capacity within the budget",
            "first on the ladder of availability",
        )
    },
];

/// A strategy by `key` or `key@version`; `waterfall` is another name of `priority`.
pub fn info(key: &str) -> Option<&'static Info> {
    let (key, version) = match key.split_once('@') {
        Some((key, version)) => (key, Some(version.parse::<u32>().ok()?)),
        None => (key, None),
    };
    let key = if key == "waterfall" { "priority" } else { key };
    let found = CATALOGUE.iter().find(|info| info.key == key)?;
    version
        .is_none_or(|version| version == found.version)
        .then_some(found)
}

/// The three keys nearest to what was written.
pub fn nearest(key: &str) -> Vec<&'static str> {
    let mut keys: Vec<(usize, &'static str)> = CATALOGUE
        .iter()
        .map(|info| (distance(key, info.key), info.key))
        .collect();
    keys.sort_unstable();
    keys.into_iter().take(3).map(|(_, key)| key).collect()
}

/// Letters to insert, drop or change.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, letter) in left.chars().take(200).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (at, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_with_and_without_a_version() {
        assert_eq!(info("random").map(Info::name).as_deref(), Some("random@1"));
        assert_eq!(info("random@1"), info("random"));
        assert_eq!(info("random@2"), None);
        assert_eq!(info("waterfall"), info("priority"));
        assert_eq!(info("nobody"), None);
        assert_eq!(nearest("round-robin")[0], "round_robin");
        for (at, entry) in CATALOGUE.iter().enumerate() {
            assert!(
                CATALOGUE[at + 1..]
                    .iter()
                    .all(|other| other.key != entry.key && other.kind != entry.kind)
            );
            for parameter in entry.parameters {
                assert!(
                    serde_json::from_str::<serde_json::Value>(parameter.default).is_ok(),
                    "{}",
                    entry.key
                );
            }
        }
    }
}
