//! Recipes: pipelines with a name and a version, as data.

use serde_json::{Value, json};

use super::fault::Fault;
use super::pipeline::{Options, Pipeline};
use super::pipeline_read;

/// A named pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// Its name.
    pub name: &'static str,
    /// A change that alters a result is a new version.
    pub version: u32,
    /// One sentence.
    pub summary: &'static str,
}

/// Every recipe.
pub const RECIPES: &[Recipe] = &[
    recipe(
        "sla_rescue",
        "the most time to spare; else whoever is there at all",
    ),
    recipe("even", "smooth weighted turns"),
    recipe(
        "call_center",
        "the best match of skills; among equals the longest idle",
    ),
    recipe("ping_tree", "tier by tier, in each the highest bid"),
    recipe(
        "sticky_even",
        "who had the customer before; else smooth weighted turns",
    ),
    recipe(
        "agents_by_cost",
        "those with the traits, by cost, from a floor of quality up",
    ),
    recipe("low_latency", "the fastest by peak average"),
];

const fn recipe(name: &'static str, summary: &'static str) -> Recipe {
    Recipe {
        name,
        version: 1,
        summary,
    }
}

/// A recipe by `name` or `name@version`.
pub fn find(name: &str) -> Option<&'static Recipe> {
    let (name, version) = match name.split_once('@') {
        Some((name, version)) => (name, Some(version.parse::<u32>().ok()?)),
        None => (name, None),
    };
    let found = RECIPES.iter().find(|recipe| recipe.name == name)?;
    version
        .is_none_or(|version| version == found.version)
        .then_some(found)
}

impl Recipe {
    /// `name@version`: what is stored, so that a later version does not change what was chosen.
    pub fn pinned(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// The pipeline that it stands for, as one would write it.
    pub fn document(&self) -> Value {
        let pick = |strategy: &str| json!([{"pick": {"strategy": strategy}}]);
        match self.name {
            "sla_rescue" => json!({
                "stages": pick("sla_deadline"), "fallback": [{"strategy": "availability_fallback"}],
            }),
            "call_center" => json!({"stages": [
                {"score": {"by": "skill", "weight": 1}}, {"pick": {"strategy": "longest_idle", "among": "top"}},
            ]}),
            "ping_tree" => {
                json!({"stages": pick("priority"), "options": {"priority": {"inner": "highest_bid"}}})
            }
            "sticky_even" => json!({
                "stages": pick("sticky"),
                "options": {"sticky": {"key": "work.attributes.customer", "inner": "smooth_weighted_round_robin"}},
            }),
            "agents_by_cost" => json!({
                "stages": pick("lowest_cost"), "options": {"lowest_cost": {"quality_floor": 0.5}},
            }),
            "low_latency" => json!({"stages": pick("peak_ewma")}),
            _ => json!({"stages": pick("smooth_weighted_round_robin")}),
        }
    }

    /// It, ready to run. Its own options lie below those of the recipient pool.
    pub fn pipeline(
        &self,
        pointer: &str,
        pool_options: &Options,
        request_options: &Options,
    ) -> Result<Pipeline, Vec<Fault>> {
        pipeline_read::recipe(pointer, self, pool_options, request_options)
    }
}
