//! A pipeline as a decision runs it: stages that end in a pick, and what happens when nobody is left. A strategy is a
//! pipeline of one stage, a recipe is a named one. `pipeline_read` reads those that people write.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "values and reasons are asked for the few kinds that matter; every other one is answered alike"
)]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::candidate::Forgetting;
use super::fault::Fault;
use super::objects::{RecipientPool, RecipientPoolConfig};
use super::pass::Request;
use super::recipes;
use super::strategies::contract::Use;
use super::strategies::{Info, Kind, Params, info, options};
use crate::expr::Program;
use crate::words::ids::RecipientPoolId;

pub use super::pipeline_read::read;

/// Options by strategy.
pub type Options = BTreeMap<String, Map<String, Value>>;

/// Stages, the last of which is the pick, and what happens when nobody is left.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// `strategy@version`, `recipe@version` or `pipeline:name`.
    pub name: String,
    /// Filters, scores and sorts before the pick.
    pub stages: Vec<Stage>,
    /// Who gets it.
    pub pick: Pick,
    /// What happens when nobody is left; empty for what the recipient pool says.
    pub fallback: Vec<Fallback>,
    /// What it was made from, for digests.
    pub source: Value,
}

/// One stage before the pick.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// Candidates with what the work wants stay.
    Trait(TraitFilter),
    /// Candidates for whom it is true stay.
    Filter(Program),
    /// Each gets a number from 0 to 1.
    Score(Score),
    /// They are put in order.
    Sort(Vec<SortKey>),
}

/// Candidates with what the work wants stay.
#[derive(Debug, Clone, PartialEq)]
pub struct TraitFilter {
    /// The trait.
    pub key: String,
    /// What the work wants; none for the attribute of the same name.
    pub has: Option<Program>,
    /// After so long it no longer counts; none for never.
    pub relax_after_us: Option<u64>,
    /// Counted from when the work came, and not from the hop.
    pub since_work: bool,
}

/// Each candidate gets a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// From what.
    pub by: By,
    /// The smaller the better.
    pub ascending: bool,
    /// How much it counts.
    pub weight: f64,
}

/// Where a number comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum By {
    /// The share of its capacity in use.
    Utilization,
    /// The room that it has.
    Available,
    /// Since its newest assignment.
    Idle,
    /// Its weight.
    Weight,
    /// From the work.
    Distance,
    /// To spare before the deadline.
    SlaHeadroom,
    /// What it bids.
    Bid,
    /// What it asks.
    Ask,
    /// Left of its daily limit.
    DailyHeadroom,
    /// How well it matches the preferred traits.
    Skill,
    /// The score so far; only in a sort.
    Score,
    /// A number among its attributes.
    Attribute(String),
    /// An expression.
    Cel(Program),
}

/// One key of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// By what.
    pub by: By,
    /// The largest first.
    pub descending: bool,
}

/// The last stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Pick {
    /// How.
    pub used: Use,
    /// Only among the best; else among all that are left.
    pub among_top: bool,
    /// How far below the best score one may be.
    pub within: f64,
}

/// What happens when nobody is left.
#[derive(Debug, Clone, PartialEq)]
pub enum Fallback {
    /// Another pipeline over the same candidates.
    Pipeline(Box<Pipeline>),
    /// Another recipient pool.
    Overflow(Target),
    /// The work waits, for so long; none for what the recipient pool says.
    Queue(Option<u64>),
    /// The work is over.
    Drop,
}

/// Another recipient pool, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// By name (`pool:tier3`).
    Name(String),
    /// By id.
    Id(RecipientPoolId),
}

impl Pipeline {
    /// The pipeline of one stage.
    pub fn of_strategy(
        pointer: &str,
        info: &'static Info,
        pool_options: &Options,
        request_options: &Options,
    ) -> Result<Pipeline, Vec<Fault>> {
        let used = make_use(pointer, info, &info.name(), pool_options, request_options, 0)?;
        Ok(Pipeline {
            source: json!({"strategy": info.name(), "options": sources(&used)}),
            name: info.name(),
            stages: Vec::new(),
            pick: Pick {
                used,
                among_top: false,
                within: 0.0,
            },
            fallback: Vec::new(),
        })
    }

    /// Every expression of it, its fallbacks included.
    pub fn programs(&self) -> Vec<&Program> {
        let mut found = Vec::new();
        for stage in &self.stages {
            match stage {
                Stage::Trait(filter) => found.extend(&filter.has),
                Stage::Filter(program) => found.push(program),
                Stage::Score(score) => found.extend(score.by.program()),
                Stage::Sort(keys) => found.extend(keys.iter().filter_map(|key| key.by.program())),
            }
        }
        let mut at = Some(&self.pick.used);
        while let Some(used) = at {
            found.extend(used.params.programs());
            at = used.inner.as_deref();
        }
        for fallback in &self.fallback {
            if let Fallback::Pipeline(next) = fallback {
                found.extend(next.programs());
            }
        }
        found
    }

    /// Every other recipient pool that it names.
    pub fn targets(&self) -> Vec<&Target> {
        let mut found = Vec::new();
        for fallback in &self.fallback {
            match fallback {
                Fallback::Overflow(target) => found.push(target),
                Fallback::Pipeline(next) => found.extend(next.targets()),
                Fallback::Queue(_) | Fallback::Drop => {}
            }
        }
        found
    }

    /// How fast what is learned of the members is forgotten.
    pub fn forgetting(&self) -> Forgetting {
        let mut forgetting = Forgetting::default();
        let mut at = Some(&self.pick.used);
        while let Some(used) = at {
            let length = |name: &str| used.info.parameter(name).map(|_| used.params.length_us(name));
            forgetting.tau_us = length("tau").unwrap_or(forgetting.tau_us);
            forgetting.half_life_us = length("half_life").unwrap_or(forgetting.half_life_us);
            if used.info.kind == Kind::QuotaPacing {
                forgetting.pacing_us = used.params.length_us("window");
            }
            at = used.inner.as_deref();
        }
        forgetting
    }

    /// Whether weights or scores count somewhere: boosts have an effect.
    pub fn uses_boosts(&self) -> bool {
        let scores = self.stages.iter().any(|stage| matches!(stage, Stage::Score(_)));
        let mut at = Some(&self.pick.used);
        let mut counts = scores;
        while let Some(used) = at {
            counts |= used.info.uses_weight || used.info.uses_score;
            at = used.inner.as_deref();
        }
        counts
    }
}

impl By {
    /// The expression, if it is one.
    pub fn program(&self) -> Option<&Program> {
        match self {
            By::Cel(program) => Some(program),
            _ => None,
        }
    }

    /// A word of the language of pipelines.
    pub fn of(word: &str) -> Option<By> {
        Some(match word {
            "utilization" => By::Utilization,
            "available" => By::Available,
            "idle" => By::Idle,
            "weight" => By::Weight,
            "distance" => By::Distance,
            "sla_headroom" => By::SlaHeadroom,
            "bid" => By::Bid,
            "ask" => By::Ask,
            "daily_headroom" => By::DailyHeadroom,
            "skill" => By::Skill,
            other => By::Attribute(
                other
                    .strip_prefix("attribute:")
                    .filter(|key| !key.is_empty())?
                    .to_owned(),
            ),
        })
    }

    /// The word.
    pub fn word(&self) -> String {
        match self {
            By::Utilization => "utilization".to_owned(),
            By::Available => "available".to_owned(),
            By::Idle => "idle".to_owned(),
            By::Weight => "weight".to_owned(),
            By::Distance => "distance".to_owned(),
            By::SlaHeadroom => "sla_headroom".to_owned(),
            By::Bid => "bid".to_owned(),
            By::Ask => "ask".to_owned(),
            By::DailyHeadroom => "daily_headroom".to_owned(),
            By::Skill => "skill".to_owned(),
            By::Score => "score".to_owned(),
            By::Attribute(key) => format!("attribute:{key}"),
            By::Cel(program) => program.text().to_owned(),
        }
    }
}

/// How deep strategies may stand inside of each other.
const NESTING_MAX: usize = 4;

/// A strategy with its parameters and the one inside of it.
pub(super) fn make_use(
    pointer: &str,
    info: &'static Info,
    stage: &str,
    pool_options: &Options,
    request_options: &Options,
    depth: usize,
) -> Result<Use, Vec<Fault>> {
    let levels = [pool_options.get(info.key), request_options.get(info.key)];
    let at = format!("{pointer}/{}", info.key);
    let params = Params::resolve(&at, info, &levels)?;
    let mut used = Use {
        info,
        stage: stage.to_owned(),
        inner: None,
        params,
    };
    if info.parameter("inner").is_some() {
        let key = used.params.text("inner");
        let Some(inner) = super::strategies::info(key) else {
            return Err(vec![options::unknown(&format!("{at}/inner"), key)]);
        };
        if depth + 1 >= NESTING_MAX {
            let detail = format!("strategies stand inside of each other more than {NESTING_MAX} deep");
            return Err(vec![Fault::new(format!("{at}/inner"), "option.range", detail)]);
        }
        let name = format!("{stage}>{}", inner.name());
        let inner = make_use(pointer, inner, &name, pool_options, request_options, depth + 1)?;
        used.inner = Some(Box::new(inner));
    }
    Ok(used)
}

/// The parameters of a strategy and of those inside of it.
pub(super) fn sources(used: &Use) -> Value {
    let mut all = Map::new();
    let mut at = Some(used);
    while let Some(used) = at {
        all.insert(
            used.info.key.to_owned(),
            Value::Object(used.params.values().clone()),
        );
        at = used.inner.as_deref();
    }
    Value::Object(all)
}

/// The pipeline that a recipient pool routes by: what the request names, else its own strategy, its default, or smooth
/// weighted turns.
pub fn effective(
    config: &RecipientPoolConfig,
    strategy: Option<&str>,
    asked: Option<&str>,
    request_options: &Options,
) -> Result<Pipeline, Vec<Fault>> {
    let default_pipeline = config
        .default_strategy_pipeline
        .as_ref()
        .map(|name| format!("pipeline:{name}"));
    let chosen = [
        ("/strategy", asked),
        ("/strategy", strategy),
        ("/config/default_recipe", config.default_recipe.as_deref()),
        ("/config/default_strategy_pipeline", default_pipeline.as_deref()),
        ("/config/default_strategy", config.default_strategy.as_deref()),
    ];
    let found = chosen
        .into_iter()
        .find_map(|(pointer, name)| name.map(|name| (pointer, name)));
    let (pointer, name) = found.unwrap_or(("/strategy", "smooth_weighted_round_robin"));
    named(pointer, name, config, request_options)
}

/// The pipeline that a request asks for in place of the recipient pool's own; none when it asks for nothing else.
pub fn of_request(recipient_pool: &RecipientPool, request: &Request) -> Option<Result<Pipeline, Vec<Fault>>> {
    let (config, options) = (&recipient_pool.config, &request.strategy_options);
    if let Some(document) = &request.pipeline {
        return Some(read(
            "/pipeline",
            "asked",
            document,
            &config.strategy_options,
            options,
        ));
    }
    let asked = request.strategy.as_deref();
    (asked.is_some() || !options.is_empty())
        .then(|| effective(config, recipient_pool.strategy.as_deref(), asked, options))
}

/// The pipeline of a name: `pipeline:<name>` of this recipient pool, a strategy, or a recipe.
pub fn named(
    pointer: &str,
    name: &str,
    config: &RecipientPoolConfig,
    request_options: &Options,
) -> Result<Pipeline, Vec<Fault>> {
    let options_pointer = "/config/strategy_options";
    if let Some(entry) = name.strip_prefix("pipeline:") {
        let Some(document) = config.strategy_pipelines.get(entry) else {
            let detail = format!("there is no entry `{entry}` in strategy_pipelines");
            return Err(vec![Fault::new(pointer, "pipeline.unknown", detail)]);
        };
        let at = format!("/config/strategy_pipelines/{}", options::escape(entry));
        return read(&at, entry, document, &config.strategy_options, request_options);
    }
    if let Some(info) = info(name) {
        return Pipeline::of_strategy(options_pointer, info, &config.strategy_options, request_options);
    }
    match recipes::find(name) {
        Some(recipe) => recipe.pipeline(options_pointer, &config.strategy_options, request_options),
        None if name.contains('@') => {
            let detail = format!("there is no strategy and no recipe `{name}`");
            Err(vec![Fault::new(pointer, "recipe.unknown", detail)])
        }
        None => Err(vec![options::unknown(pointer, name)]),
    }
}
