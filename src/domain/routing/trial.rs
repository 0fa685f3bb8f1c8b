//! A rule that is tried on invented work: read, and judged one case at a time.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::candidate::{Candidate, Learned};
use super::fault::Fault;
use super::live::Live;
use super::objects::RecipientState;
use super::read::{self, Memberships, Stamp};
use super::sight::Sight;
use super::work::Work;
use super::{ask, work_limits};
use crate::expr::Program;
use crate::words::ids::{RecipientId, RuleId, WorkId};
use crate::words::limits;
use crate::words::time::Micros;

/// What is said of a recipient that ductor knows of its stored ones; one may be sent as it was answered.
const ANSWERED: [&str; 4] = ["id", "record_version", "created_at", "updated_at"];
/// Fields of the body.
const FIELDS: [&str; 3] = ["expression", "rule_id", "cases"];
/// Fields of a case: the work is `work`.
const CASE_FIELDS: [&str; 3] = [ask::WORK_FIELD, "recipient", "expect"];

/// What is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tried {
    /// An expression as it is written.
    Expression(String),
    /// A rule that is stored.
    Rule(RuleId),
}

/// Who stands in the place of the recipient.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// Nobody: the rule reads the work alone.
    Nobody,
    /// One that is stored.
    Stored(RecipientId),
    /// An invented one.
    Given(Box<Candidate>),
}

/// One case.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The work.
    pub work: Work,
    /// The recipient.
    pub recipient: Subject,
    /// What should come out.
    pub expect: Option<bool>,
}

/// All that is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The rule.
    pub tried: Tried,
    /// What it is tried on.
    pub cases: Vec<Case>,
}

/// What came out of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// An error is never true.
    pub result: bool,
    /// Why it could not be evaluated.
    pub error: Option<String>,
    /// What made it false; empty when it is true.
    pub because: String,
    /// Parts of the expression, and turns of its loops.
    pub steps: u64,
}

/// Judges a case as a decision would.
pub fn judge(program: &Result<Program, String>, sight: &Sight, candidate: Option<&Candidate>) -> Verdict {
    let program = match program {
        Ok(program) => program,
        Err(error) => return Verdict::failed(error.clone(), 0),
    };
    match sight.truth_counted(program, candidate) {
        (Ok(result), steps) => Verdict {
            result,
            error: None,
            because: if result {
                String::new()
            } else {
                sight.because(program, candidate)
            },
            steps,
        },
        (Err(error), steps) => Verdict::failed(error, steps),
    }
}

impl Verdict {
    fn failed(error: String, steps: u64) -> Verdict {
        Verdict {
            result: false,
            error: Some(error),
            because: String::new(),
            steps,
        }
    }
}

/// Whether an expression reads the recipient.
pub fn reads_recipient(program: &Program) -> bool {
    let mut roots = program.references().iter().filter_map(|path| path.first());
    roots.any(|root| root == "recipient")
}

/// Reads the body. `fresh` is the id of work that brings none.
pub fn read(body: &Map<String, Value>, now: Micros, fresh: WorkId) -> Result<Trial, Vec<Fault>> {
    let mut faults = Vec::new();
    unknown("", body, &FIELDS, &mut faults);
    let tried = read_tried(body, &mut faults);
    let mut cases = Vec::new();
    match body.get("cases") {
        Some(Value::Array(list)) if list.len() > limits::RULE_CASES_MAX => {
            let detail = format!(
                "has {} cases; {} are the most",
                list.len(),
                limits::RULE_CASES_MAX
            );
            faults.push(Fault::new("/cases", "field.range", detail));
        }
        Some(Value::Array(list)) => {
            for (index, item) in list.iter().enumerate() {
                let mut wrong = Vec::new();
                cases.extend(read_case(item, now, fresh, &mut wrong));
                faults.extend(wrong.into_iter().map(|fault| {
                    let pointer = format!("/cases/{index}{}", fault.pointer);
                    Fault { pointer, ..fault }
                }));
            }
        }
        Some(_) => faults.push(Fault::new("/cases", "field.type", "must be a list of cases")),
        None => {
            let detail = "say what it is tried on: a list of {\"work\": {…}}";
            faults.push(Fault::new("/cases", "field.required", detail));
        }
    }
    match tried {
        Some(tried) if faults.is_empty() => Ok(Trial { tried, cases }),
        _ => Err(faults),
    }
}

fn unknown(at: &str, fields: &Map<String, Value>, known: &[&str], faults: &mut Vec<Fault>) {
    for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
        let shown: String = name.chars().take(64).collect();
        let pointer = format!("{at}/{}", shown.replace('~', "~0").replace('/', "~1"));
        let detail = format!("`{shown}` is no field here; those are {}", known.join(", "));
        faults.push(Fault::new(pointer, "field.unknown", detail));
    }
}

fn read_tried(body: &Map<String, Value>, faults: &mut Vec<Fault>) -> Option<Tried> {
    let text = |name: &str, faults: &mut Vec<Fault>| match body.get(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => {
            faults.push(Fault::new(format!("/{name}"), "field.type", "must be a text"));
            None
        }
    };
    let before = faults.len();
    match (text("expression", faults), text("rule_id", faults)) {
        (Some(_), Some(_)) => {
            let detail = "either `expression` or `rule_id`, not both";
            faults.push(Fault::new("/rule_id", "field.value", detail));
            None
        }
        (Some(expression), None) => Some(Tried::Expression(expression)),
        (None, Some(id)) => {
            let found = id.parse().ok().map(Tried::Rule);
            if found.is_none() {
                let detail = "is not the id of a rule";
                faults.push(Fault::new("/rule_id", "rule.not_found", detail));
            }
            found
        }
        (None, None) => {
            if faults.len() == before {
                let detail = "say what is tried: `expression`, or `rule_id` of one that is stored";
                faults.push(Fault::new("/expression", "field.required", detail));
            }
            None
        }
    }
}

fn read_case(item: &Value, now: Micros, fresh: WorkId, faults: &mut Vec<Fault>) -> Option<Case> {
    let Value::Object(fields) = item else {
        faults.push(Fault::new("", "field.type", "a case is an object"));
        return None;
    };
    unknown("", fields, &CASE_FIELDS, faults);
    let recipient = read_subject(fields.get("recipient"), faults);
    let expect = match fields.get("expect") {
        None | Some(Value::Null) => None,
        Some(Value::Bool(expect)) => Some(*expect),
        Some(_) => {
            faults.push(Fault::new("/expect", "field.type", "must be true or false"));
            None
        }
    };
    let at_work = format!("/{}", ask::WORK_FIELD);
    let work = match fields.get(ask::WORK_FIELD) {
        Some(Value::Object(work)) => match ask::read_work(work, now, fresh) {
            Ok(work) => {
                faults.extend(work_limits::check(&work));
                Some(work)
            }
            Err(wrong) => {
                faults.extend(wrong);
                None
            }
        },
        Some(_) => {
            faults.push(Fault::new(at_work, "field.type", "must be an object"));
            None
        }
        None => {
            faults.push(Fault::new(at_work, "field.required", "must be given"));
            None
        }
    };
    Some(Case {
        work: work?,
        recipient: recipient?,
        expect,
    })
}

fn read_subject(value: Option<&Value>, faults: &mut Vec<Fault>) -> Option<Subject> {
    let mut given = match value {
        None | Some(Value::Null) => return Some(Subject::Nobody),
        Some(Value::String(text)) => {
            let found = text.parse().ok().map(Subject::Stored);
            if found.is_none() {
                let detail = "is not the id of a recipient";
                faults.push(Fault::new("/recipient", "recipient.not_found", detail));
            }
            return found;
        }
        Some(Value::Object(fields)) => fields.clone(),
        Some(_) => {
            let detail = "must be the id of a recipient, or an invented one with the fields of one";
            faults.push(Fault::new("/recipient", "field.type", detail));
            return None;
        }
    };
    let mut wrong = Vec::new();
    let subject = invented(&mut given, &mut wrong);
    let is_good = wrong.is_empty();
    faults.extend(wrong.into_iter().map(|fault| {
        let pointer = format!("/recipient{}", fault.pointer);
        Fault { pointer, ..fault }
    }));
    is_good.then_some(Subject::Given(Box::new(subject)))
}

/// An invented recipient; it needs no name, and may say how much it does now.
fn invented(given: &mut Map<String, Value>, faults: &mut Vec<Fault>) -> Candidate {
    let id = given
        .get("id")
        .and_then(Value::as_str)
        .and_then(|id| id.parse().ok());
    for answered in ANSWERED {
        given.remove(answered);
    }
    if !given.contains_key("name") {
        given.insert("name".to_owned(), Value::from("somebody"));
    }
    let mut live = Live::new(RecipientState::Available, Micros(0));
    if let Some(Value::Object(capacity)) = given.get_mut("capacity") {
        live.current = taken(capacity, "current", faults);
        live.daily_count = taken(capacity, "daily_count", faults);
        capacity.remove("daily_reset_at");
    }
    if given.get("pool_id").is_some_and(Value::is_null) {
        given.remove("pool_id");
    }
    let said = Memberships::take(given, faults);
    live.state = said.state.unwrap_or(RecipientState::Available);
    let stamp = Stamp {
        record_version: 0,
        created_at: Micros(0),
        updated_at: Micros(0),
    };
    let read = read::recipient(
        id.unwrap_or(RecipientId([0; 16])),
        stamp,
        said.after(&[]),
        given.clone(),
    );
    faults.extend(read.faults);
    Candidate {
        recipient: Arc::new(read.object),
        live,
        learned: Learned::default(),
        bid: None,
    }
}

fn taken(capacity: &mut Map<String, Value>, name: &str, faults: &mut Vec<Fault>) -> u32 {
    let Some(value) = capacity.remove(name) else {
        return 0;
    };
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.unwrap_or_else(|| {
        let pointer = format!("/capacity/{name}");
        faults.push(Fault::new(pointer, "field.type", "must be a whole number"));
        0
    })
}
