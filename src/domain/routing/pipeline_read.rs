//! Reads the pipelines that people write (`strategy_pipelines`), with every fault and its place.

use super::duration;
use serde_json::{Map, Value};

use super::fault::Fault;
use super::pipeline::{
    By, Fallback, Options, Pick, Pipeline, Score, SortKey, Stage, Target, TraitFilter, make_use, sources,
};
use super::recipes::{self, Recipe};
use super::sight;
use super::strategies::{info, options};
use crate::expr::Program;
use crate::words::ids::RecipientPoolId;

/// Stages of a pipeline, the pick included.
const STAGES_MAX: usize = 16;
/// Steps of a fallback.
const FALLBACKS_MAX: usize = 8;
/// Keys of an order.
const SORT_KEYS_MAX: usize = 8;

/// Reads the pipeline `name` that stands at `pointer`.
pub fn read(
    pointer: &str,
    name: &str,
    document: &Value,
    pool_options: &Options,
    request_options: &Options,
) -> Result<Pipeline, Vec<Fault>> {
    let mut reading = Reading {
        name: format!("pipeline:{name}"),
        pool_options: pool_options.clone(),
        request_options,
        recipes: Vec::new(),
        faults: Vec::new(),
    };
    let made = reading.pipeline(pointer, document);
    match made {
        Some(pipeline) if reading.faults.is_empty() => Ok(pipeline),
        _ => Err(reading.faults),
    }
}

/// The pipeline of a recipe.
pub(super) fn recipe(
    pointer: &str,
    recipe: &Recipe,
    pool_options: &Options,
    request_options: &Options,
) -> Result<Pipeline, Vec<Fault>> {
    let mut reading = Reading {
        name: recipe.pinned(),
        pool_options: pool_options.clone(),
        request_options,
        recipes: Vec::new(),
        faults: Vec::new(),
    };
    match reading.recipe(pointer, recipe) {
        Some(pipeline) if reading.faults.is_empty() => Ok(pipeline),
        _ => Err(reading.faults),
    }
}

struct Reading<'r> {
    name: String,
    pool_options: Options,
    request_options: &'r Options,
    /// Recipes that are being read, outermost first.
    recipes: Vec<&'static str>,
    faults: Vec<Fault>,
}

impl Reading<'_> {
    fn fault(&mut self, pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) {
        self.faults.push(Fault::new(pointer, code, detail));
    }

    fn recipe(&mut self, pointer: &str, recipe: &Recipe) -> Option<Pipeline> {
        if self.recipes.contains(&recipe.name) {
            self.fault(
                pointer,
                "pipeline.cycle",
                format!("the recipe `{}` names itself", recipe.name),
            );
            return None;
        }
        let mut document = recipe.document();
        let own = document
            .as_object_mut()
            .and_then(|object| object.remove("options"));
        let (before, name) = (
            self.pool_options.clone(),
            std::mem::replace(&mut self.name, recipe.pinned()),
        );
        for (key, options) in own.as_ref().and_then(Value::as_object).into_iter().flatten() {
            let known = self.pool_options.entry(key.clone()).or_default();
            for (option, value) in options.as_object().into_iter().flatten() {
                known.entry(option.clone()).or_insert_with(|| value.clone());
            }
        }
        self.recipes.push(recipe.name);
        let made = self.pipeline(pointer, &document).map(|made| Pipeline {
            name: recipe.pinned(),
            ..made
        });
        self.recipes.pop();
        (self.pool_options, self.name) = (before, name);
        made
    }

    fn pipeline(&mut self, pointer: &str, document: &Value) -> Option<Pipeline> {
        let Some(object) = document.as_object() else {
            self.fault(pointer, "field.type", "a pipeline is an object with `stages`");
            return None;
        };
        self.unknown_fields(pointer, object, &["stages", "fallback"]);
        let at = format!("{pointer}/stages");
        let stages = object.get("stages").and_then(Value::as_array);
        let Some(stages) = stages.filter(|stages| !stages.is_empty()) else {
            self.fault(
                at,
                "pipeline.no_pick",
                "a pipeline has 1 to 16 stages, the last of which is a `pick`",
            );
            return None;
        };
        if stages.len() > STAGES_MAX {
            let detail = format!("{} stages, at most {STAGES_MAX}", stages.len());
            self.fault(at, "pipeline.too_long", detail);
            return None;
        }
        let (mut before, mut pick) = (Vec::new(), None);
        for (n, stage) in stages.iter().enumerate() {
            let at = format!("{at}/{n}");
            match self.stage(&at, n + 1, stage) {
                Some(Read::Pick(_)) if pick.is_some() => {
                    self.fault(at, "pipeline.two_picks", "a pipeline has one `pick`");
                }
                Some(Read::Pick(made)) => pick = Some(made),
                Some(Read::Before(_)) if pick.is_some() => {
                    self.fault(at, "pipeline.after_pick", "the `pick` is the last stage");
                }
                Some(Read::Before(made)) => before.push(made),
                None => {}
            }
        }
        let fallback = self.fallbacks(&format!("{pointer}/fallback"), object.get("fallback"));
        if pick.is_none() && self.faults.is_empty() {
            self.fault(at, "pipeline.no_pick", "the last stage is a `pick`");
        }
        Some(Pipeline {
            name: self.name.clone(),
            stages: before,
            fallback,
            source: serde_json::json!({"document": document, "options": pick.as_ref().map(|pick| sources(&pick.used))}),
            pick: *pick?,
        })
    }

    fn unknown_fields(&mut self, pointer: &str, object: &Map<String, Value>, known: &[&str]) {
        for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
            let at = format!("{pointer}/{}", options::escape(name));
            self.fault(
                at,
                "field.unknown",
                format!("there is no field `{name}` here; known are {}", known.join(", ")),
            );
        }
    }

    fn stage(&mut self, pointer: &str, n: usize, stage: &Value) -> Option<Read> {
        let one = stage
            .as_object()
            .filter(|object| object.len() == 1)
            .and_then(|object| object.iter().next());
        let unknown = "a stage has one key: filter, score, sort or pick";
        let Some((key, body)) = one else {
            self.fault(pointer, "pipeline.unknown_stage", unknown);
            return None;
        };
        let at = format!("{pointer}/{}", options::escape(key));
        if !matches!(key.as_str(), "filter" | "score" | "sort" | "pick") {
            self.fault(at, "pipeline.unknown_stage", unknown);
            return None;
        }
        let Some(body) = body.as_object() else {
            self.fault(at, "field.type", "a stage is an object");
            return None;
        };
        match key.as_str() {
            "filter" => self.filter(&at, body).map(Read::Before),
            "score" => self
                .score(&at, body)
                .map(|score| Read::Before(Stage::Score(score))),
            "sort" => self.sort(&at, body).map(|keys| Read::Before(Stage::Sort(keys))),
            _ => self.pick(&at, n, body).map(|pick| Read::Pick(Box::new(pick))),
        }
    }

    /// The text of a member; a fault if it is something else.
    fn text<'v>(&mut self, pointer: &str, body: &'v Map<String, Value>, name: &str) -> Option<&'v str> {
        let value = body.get(name)?;
        if value.as_str().is_none() {
            self.fault(
                format!("{pointer}/{name}"),
                "field.type",
                format!("`{name}` is a text"),
            );
        }
        value.as_str()
    }

    fn program(
        &mut self,
        pointer: &str,
        body: &Map<String, Value>,
        name: &str,
        sees_recipient: bool,
    ) -> Option<Program> {
        let text = self.text(pointer, body, name)?;
        match sight::compile(text, sees_recipient) {
            Ok(program) => Some(program),
            Err(fault) => {
                self.faults
                    .push(sight::fault_at(&format!("{pointer}/{name}"), text, &fault));
                None
            }
        }
    }

    fn filter(&mut self, pointer: &str, body: &Map<String, Value>) -> Option<Stage> {
        if body.contains_key("cel") {
            self.unknown_fields(pointer, body, &["cel"]);
            return self.program(pointer, body, "cel", true).map(Stage::Filter);
        }
        self.unknown_fields(pointer, body, &["trait", "has", "for", "since", "then", "cel"]);
        let Some(key) = self.text(pointer, body, "trait") else {
            self.fault(pointer, "field.required", "a filter has `trait` or `cel`");
            return None;
        };
        let relax_after_us = match self.text(pointer, body, "for").map(duration::read) {
            Some(None) => {
                self.fault(
                    format!("{pointer}/for"),
                    "field.type",
                    "a length of time, like \"45s\"",
                );
                None
            }
            Some(length) => length,
            None => None,
        };
        for (name, words) in [("then", &["relax"][..]), ("since", &["hop", "work"][..])] {
            let word = self.text(pointer, body, name);
            if word.is_some_and(|word| !words.contains(&word)) {
                self.fault(
                    format!("{pointer}/{name}"),
                    "field.range",
                    format!("one of {}", words.join(", ")),
                );
            }
        }
        Some(Stage::Trait(TraitFilter {
            key: key.to_owned(),
            has: self.program(pointer, body, "has", false),
            relax_after_us,
            since_work: body.get("since").and_then(Value::as_str) == Some("work"),
        }))
    }

    fn score(&mut self, pointer: &str, body: &Map<String, Value>) -> Option<Score> {
        self.unknown_fields(pointer, body, &["by", "cel", "order", "weight"]);
        let by = match (body.contains_key("by"), body.contains_key("cel")) {
            (true, false) => {
                let word = self.text(pointer, body, "by")?;
                let by = By::of(word);
                if by.is_none() {
                    self.fault(format!("{pointer}/by"), "field.range", unknown_by(word));
                }
                by?
            }
            (false, true) => By::Cel(self.program(pointer, body, "cel", true)?),
            _ => {
                self.fault(pointer, "field.required", "a score has either `by` or `cel`");
                return None;
            }
        };
        let ascending = match self.text(pointer, body, "order") {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(_) => {
                self.fault(format!("{pointer}/order"), "field.range", "`asc` or `desc`");
                false
            }
        };
        let weight = body.get("weight").map_or(Some(1.0), Value::as_f64);
        let weight = weight.filter(|weight| *weight > 0.0 && *weight <= 1e6);
        if weight.is_none() {
            self.fault(
                format!("{pointer}/weight"),
                "field.range",
                "a weight is above 0 and at most 1000000",
            );
        }
        Some(Score {
            by,
            ascending,
            weight: weight?,
        })
    }

    fn sort(&mut self, pointer: &str, body: &Map<String, Value>) -> Option<Vec<SortKey>> {
        self.unknown_fields(pointer, body, &["by"]);
        let at = format!("{pointer}/by");
        let list = body.get("by").and_then(Value::as_array);
        let Some(list) = list.filter(|list| !list.is_empty() && list.len() <= SORT_KEYS_MAX) else {
            self.fault(
                at,
                "field.required",
                format!("a sort has 1 to {SORT_KEYS_MAX} keys, like [\"score desc\"]"),
            );
            return None;
        };
        let mut keys = Vec::new();
        for (n, key) in list.iter().enumerate() {
            let text = key.as_str().unwrap_or_default();
            let (word, order) = text.split_once(' ').unwrap_or((text, "desc"));
            let by = if word == "score" {
                Some(By::Score)
            } else {
                By::of(word)
            };
            match (by, order) {
                (Some(by), "asc" | "desc") => keys.push(SortKey {
                    by,
                    descending: order == "desc",
                }),
                _ => self.fault(format!("{at}/{n}"), "field.range", unknown_by(text)),
            }
        }
        Some(keys)
    }

    fn pick(&mut self, pointer: &str, n: usize, body: &Map<String, Value>) -> Option<Pick> {
        self.unknown_fields(pointer, body, &["strategy", "among", "within"]);
        let Some(key) = self.text(pointer, body, "strategy") else {
            self.fault(
                format!("{pointer}/strategy"),
                "field.required",
                "a pick names a `strategy`",
            );
            return None;
        };
        let Some(info) = info(key) else {
            self.faults
                .push(options::unknown(&format!("{pointer}/strategy"), key));
            return None;
        };
        let among_top = match self.text(pointer, body, "among") {
            None | Some("top") => true,
            Some("all") => false,
            Some(_) => {
                self.fault(format!("{pointer}/among"), "field.range", "`top` or `all`");
                false
            }
        };
        let within = body
            .get("within")
            .map_or(Some(0.0), Value::as_f64)
            .filter(|within| (0.0..=1e6).contains(within));
        if within.is_none() {
            self.fault(format!("{pointer}/within"), "field.range", "a number from 0 up");
        }
        let stage = format!("{}/{n}/{}", self.name, info.name());
        match make_use(
            "/config/strategy_options",
            info,
            &stage,
            &self.pool_options,
            self.request_options,
            0,
        ) {
            Ok(used) => Some(Pick {
                used,
                among_top,
                within: within?,
            }),
            Err(faults) => {
                self.faults.extend(faults);
                None
            }
        }
    }

    fn fallbacks(&mut self, pointer: &str, list: Option<&Value>) -> Vec<Fallback> {
        let Some(list) = list else {
            return Vec::new();
        };
        let Some(list) = list.as_array().filter(|list| list.len() <= FALLBACKS_MAX) else {
            self.fault(
                pointer,
                "field.type",
                format!("a list of at most {FALLBACKS_MAX} steps"),
            );
            return Vec::new();
        };
        let mut made = Vec::new();
        for (n, step) in list.iter().enumerate() {
            let at = format!("{pointer}/{n}");
            let one = step
                .as_object()
                .filter(|object| object.len() == 1)
                .and_then(|object| object.iter().next());
            match one {
                Some((key, body)) => made.extend(self.fallback(&at, key, body)),
                None => self.fault(
                    at,
                    "pipeline.unknown_stage",
                    "a step has one key: recipe, strategy, overflow, queue or drop",
                ),
            }
        }
        made
    }

    fn fallback(&mut self, pointer: &str, key: &str, body: &Value) -> Option<Fallback> {
        let at = format!("{pointer}/{}", options::escape(key));
        let text = body.as_str();
        match (key, text) {
            ("recipe", Some(name)) => match recipes::find(name) {
                Some(recipe) => self
                    .recipe(&at, recipe)
                    .map(|made| Fallback::Pipeline(Box::new(made))),
                None => {
                    self.fault(at, "recipe.unknown", format!("there is no recipe `{name}`"));
                    None
                }
            },
            ("strategy", Some(name)) => {
                let Some(info) = info(name) else {
                    self.faults.push(options::unknown(&at, name));
                    return None;
                };
                match Pipeline::of_strategy(
                    "/config/strategy_options",
                    info,
                    &self.pool_options,
                    self.request_options,
                ) {
                    Ok(made) => Some(Fallback::Pipeline(Box::new(made))),
                    Err(faults) => {
                        self.faults.extend(faults);
                        None
                    }
                }
            }
            ("overflow", Some(target)) => {
                let target = match target.strip_prefix("pool:") {
                    Some(name) if !name.is_empty() => Some(Target::Name(name.to_owned())),
                    _ => target.parse::<RecipientPoolId>().ok().map(Target::Id),
                };
                if target.is_none() {
                    self.fault(
                        at,
                        "pipeline.target_missing",
                        "write pool:<name>, or the id of a recipient pool",
                    );
                }
                target.map(Fallback::Overflow)
            }
            ("queue", None) => self.queue(&at, body),
            ("drop", None) if body.as_object().is_some_and(Map::is_empty) => Some(Fallback::Drop),
            ("recipe" | "strategy" | "overflow" | "queue" | "drop", _) => {
                self.fault(
                    at,
                    "field.type",
                    "recipe, strategy and overflow name something; queue and drop are objects",
                );
                None
            }
            _ => {
                self.fault(
                    at,
                    "pipeline.unknown_stage",
                    "a step is recipe, strategy, overflow, queue or drop",
                );
                None
            }
        }
    }

    fn queue(&mut self, pointer: &str, body: &Value) -> Option<Fallback> {
        let Some(object) = body.as_object() else {
            self.fault(
                pointer,
                "field.type",
                "`queue` is an object, like {\"ttl\": \"1h\"}",
            );
            return None;
        };
        self.unknown_fields(pointer, object, &["ttl"]);
        let Some(text) = self.text(pointer, object, "ttl") else {
            return Some(Fallback::Queue(None));
        };
        let length = duration::read(text).filter(|us| (1_000_000..=duration::LONGEST_US).contains(us));
        if length.is_none() {
            self.fault(
                format!("{pointer}/ttl"),
                "field.range",
                "a length of time from 1s to 8760h",
            );
        }
        length.map(|us| Fallback::Queue(Some(us)))
    }
}

enum Read {
    Before(Stage),
    Pick(Box<Pick>),
}

fn unknown_by(word: &str) -> String {
    format!(
        "`{word}` is none of utilization, available, idle, weight, distance, sla_headroom, bid, ask, daily_headroom, \
         skill, attribute:<key>"
    )
}
