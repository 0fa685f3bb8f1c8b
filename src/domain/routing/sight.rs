//! What rules and expressions of strategies see, and how they are asked.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "values and reasons are asked for the few kinds that matter; every other one is answered alike"
)]

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::candidate::Candidate;
use super::fault::Fault;
use super::numbers;
use super::objects::RecipientPool;
use super::work::Work;
use crate::expr::{self, Fact, Facts, Profile, Program, Scope, line_and_column};
use crate::words::time::Micros;

/// Every variable.
pub const NAMES: &[&str] = &["work", "pool", "hop", "tenant", "now", "recipient"];
/// Those that exist without a recipient.
const WORK_NAMES: &[&str] = &["work", "pool", "hop", "tenant", "now"];

/// Compiles a rule or an expression of a strategy.
pub fn compile(text: &str, sees_recipient: bool) -> Result<Program, expr::Fault> {
    let names = if sees_recipient { NAMES } else { WORK_NAMES };
    Program::compile(text, Profile::Rule, names)
}

/// The same for the condition of a rule. One that reads nothing gives the same every time: it must be true or false.
pub fn compile_rule(text: &str, sees_recipient: bool) -> Result<Program, expr::Fault> {
    let program = compile(text, sees_recipient)?;
    if program.references().is_empty() {
        program.evaluate_bool(&Scope::new())?;
    }
    Ok(program)
}

/// A fault of a text as a fault of the object, with line and column.
pub fn fault_at(pointer: &str, text: &str, fault: &expr::Fault) -> Fault {
    let found = Fault::new(pointer, fault.code, fault.message.clone());
    match fault.position {
        None => found,
        Some(position) => {
            let (line, column) = line_and_column(text, position);
            found.member("line", line).member("column", column)
        }
    }
}

/// Times of the work that no attribute says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The time of the decision.
    pub now: Micros,
    /// How long the work has waited, in microseconds.
    pub waited_us: u64,
    /// Which try this is, from 1.
    pub attempt: u32,
}

/// What is seen in one hop.
#[derive(Debug, Clone)]
pub struct Sight {
    scope: Scope,
    now: Micros,
}

impl Sight {
    /// What tenant rules see.
    pub fn of_work(work: &Work, times: Times, tenant: &str) -> Sight {
        let mut scope = Scope::new();
        let object = json!({
            "id": work.id, "external_id": work.external_id, "kind": work.kind, "source": work.source,
            "priority": work.priority, "attributes": work.attributes, "tags": work.tags, "units": work.units,
            "location": work.location, "attempt": times.attempt,
            "created_at": null, "deadline_at": null, "waited": null,
        });
        scope
            .set_shared("work", Arc::new(object))
            .set_instant("work.created_at", work.created_at.millis())
            .set_duration("work.waited", times.waited_us);
        if let Some(deadline) = work.deadline_at {
            scope.set_instant("work.deadline_at", deadline.millis());
        }
        scope
            .set("pool", &Value::Null)
            .set("hop", &json!({"depth": 0, "from": null}))
            .set("tenant", &json!(tenant))
            .set_instant("now", times.now.millis());
        Sight {
            scope,
            now: times.now,
        }
    }

    /// What is seen in a recipient pool.
    #[must_use]
    pub fn in_pool(&self, recipient_pool: &RecipientPool, depth: u32, from: Option<&str>) -> Sight {
        let mut scope = self.scope.clone();
        let object = json!({
            "id": recipient_pool.id, "name": recipient_pool.name, "metadata": recipient_pool.metadata,
        });
        scope
            .set_shared("pool", Arc::new(object))
            .set("hop", &json!({"depth": depth, "from": from}));
        Sight { scope, now: self.now }
    }

    /// What a program sees; of a recipient only what it reads.
    fn with(&self, program: &Program, candidate: Option<&Candidate>) -> Scope {
        let mut scope = self.scope.clone();
        let Some(candidate) = candidate else {
            return scope;
        };
        scope.set_shared(
            "recipient",
            Arc::new(recipient_json(candidate, program.references())),
        );
        if let Some(idle_us) = idle_us(candidate, self.now) {
            scope.set_duration("recipient.idle", idle_us);
        }
        scope
    }

    /// Whether it is true; an error is told in words.
    pub fn truth(&self, program: &Program, candidate: Option<&Candidate>) -> Result<bool, String> {
        let view = View {
            sight: self,
            candidate,
        };
        if let Some(truth) = program.decide(&view) {
            return Ok(truth);
        }
        program
            .evaluate_bool(&self.with(program, candidate))
            .map_err(|fault| fault.message)
    }

    /// The same, with the steps that it takes: the parts of the expression, and the turns of its loops.
    pub fn truth_counted(
        &self,
        program: &Program,
        candidate: Option<&Candidate>,
    ) -> (Result<bool, String>, u64) {
        let view = View {
            sight: self,
            candidate,
        };
        if let Some(truth) = program.decide(&view) {
            return (Ok(truth), program.parts());
        }
        let (truth, steps) = program.evaluate_bool_counted(&self.with(program, candidate));
        (truth.map_err(|fault| fault.message), steps)
    }

    /// Its number.
    pub fn number(&self, program: &Program, candidate: Option<&Candidate>) -> Result<f64, String> {
        let value = self.value(program, candidate)?;
        value
            .as_f64()
            .or_else(|| value.as_bool().map(|truth| f64::from(u8::from(truth))))
            .ok_or_else(|| "the expression gives no number".to_owned())
    }

    /// Its value as a key: texts as they are, everything else as JSON.
    pub fn key(&self, program: &Program) -> Result<String, String> {
        match self.value(program, None)? {
            Value::String(text) => Ok(text),
            Value::Null => Err("the key is null".to_owned()),
            other => Ok(other.to_string()),
        }
    }

    /// Its value.
    pub fn json(&self, program: &Program, candidate: Option<&Candidate>) -> Result<Value, String> {
        self.value(program, candidate)
    }

    fn value(&self, program: &Program, candidate: Option<&Candidate>) -> Result<Value, String> {
        program
            .evaluate(&self.with(program, candidate))
            .map_err(|fault| fault.message)
    }

    /// What decided that it is false, in words.
    pub fn because(&self, program: &Program, candidate: Option<&Candidate>) -> String {
        let view = View {
            sight: self,
            candidate,
        };
        program.because(&view).unwrap_or_else(|| {
            let text: String = program.text().chars().take(TEXT_CHARACTERS_MAX).collect();
            format!("{text} is false")
        })
    }
}

/// Characters of an expression that are told.
const TEXT_CHARACTERS_MAX: usize = 160;

/// What plain comparisons look at: the recipient as it is, without making JSON of it.
struct View<'v> {
    sight: &'v Sight,
    candidate: Option<&'v Candidate>,
}

impl Facts for View<'_> {
    fn fact(&self, path: &[String]) -> Fact<'_> {
        let (Some((first, rest)), Some(candidate)) = (path.split_first(), self.candidate) else {
            return self.sight.scope.fact(path);
        };
        if first != "recipient" {
            return self.sight.scope.fact(path);
        }
        recipient_fact(candidate, rest)
    }
}

fn recipient_fact<'v>(candidate: &'v Candidate, path: &[String]) -> Fact<'v> {
    let (recipient, live) = (&candidate.recipient, &candidate.live);
    let Some((field, rest)) = path.split_first() else {
        return Fact::Unknown;
    };
    if field == "attributes" {
        return Fact::below(&recipient.attributes, rest);
    }
    if !rest.is_empty() {
        return Fact::Unknown;
    }
    match field.as_str() {
        "name" => Fact::Text(&recipient.name),
        "type" => Fact::Text(&recipient.kind),
        "external_id" => recipient.external_id.as_deref().map_or(Fact::Null, Fact::Text),
        "weight" => Fact::Double(weight(candidate)),
        "state" => Fact::Text(live.state.word()),
        "current" => Fact::Int(i64::from(live.current)),
        "max_concurrent" => Fact::Int(i64::from(recipient.max_concurrent)),
        "utilization" => Fact::Double(utilization(candidate)),
        "daily_count" => Fact::Int(i64::from(live.daily_count)),
        "timezone" => Fact::Text(&recipient.timezone),
        _ => Fact::Unknown,
    }
}

fn weight(candidate: &Candidate) -> f64 {
    numbers::real(candidate.recipient.weight_micro) / 1e6
}

fn utilization(candidate: &Candidate) -> f64 {
    let (used, limit) = numbers::utilization(&candidate.recipient, &candidate.live);
    numbers::real(used) / numbers::real(limit)
}

/// Since its newest assignment; `None` before the first.
pub fn idle_us(candidate: &Candidate, now: Micros) -> Option<u64> {
    candidate.live.last_assigned_at.map(|at| now.since(at))
}

/// Its fields, as rules name them.
const FIELDS: [&str; 15] = [
    "id",
    "name",
    "type",
    "external_id",
    "attributes",
    "tags",
    "weight",
    "state",
    "current",
    "max_concurrent",
    "utilization",
    "daily_count",
    "idle",
    "location",
    "timezone",
];

/// What these paths read of a recipient; the interpreter looks at nothing else.
fn recipient_json(candidate: &Candidate, paths: &[Vec<String>]) -> Value {
    let mut object = Map::new();
    for path in paths {
        let Some((root, rest)) = path.split_first() else {
            continue;
        };
        if root != "recipient" {
            continue;
        }
        match rest {
            [] => {
                let all = FIELDS
                    .iter()
                    .map(|name| ((*name).to_owned(), field_json(candidate, name)));
                return Value::Object(all.collect());
            }
            [field, key, ..] if field == "attributes" => {
                let read = object
                    .entry("attributes")
                    .or_insert_with(|| Value::Object(Map::new()));
                if let (Value::Object(read), Some(value)) = (read, candidate.recipient.attributes.get(key)) {
                    read.entry(key.as_str()).or_insert_with(|| value.clone());
                }
            }
            [field, ..] if FIELDS.contains(&field.as_str()) => {
                object.insert(field.clone(), field_json(candidate, field));
            }
            _ => {}
        }
    }
    Value::Object(object)
}

fn field_json(candidate: &Candidate, field: &str) -> Value {
    let (recipient, live) = (&candidate.recipient, &candidate.live);
    match field {
        "id" => json!(recipient.id),
        "name" => json!(recipient.name),
        "type" => json!(recipient.kind),
        "external_id" => json!(recipient.external_id),
        "attributes" => json!(recipient.attributes),
        "tags" => json!(recipient.tags),
        "weight" => json!(weight(candidate)),
        "state" => json!(live.state.word()),
        "current" => json!(live.current),
        "max_concurrent" => json!(recipient.max_concurrent),
        "utilization" => json!(utilization(candidate)),
        "daily_count" => json!(live.daily_count),
        "location" => json!(recipient.location),
        "timezone" => json!(recipient.timezone),
        _ => Value::Null,
    }
}
