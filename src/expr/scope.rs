//! What an expression sees, and the way of values into the interpreter and out of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cel_interpreter::ExecutionError;
use cel_interpreter::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional,
    CelString, CelTimestamp, CelType, CelUInt,
};
use cel_interpreter::common::value::{CowVal, Val};
use serde_json::Value;

use super::functions::ENVIRONMENT;
use super::limits::{NODE_WORK, RESULT_DEPTH_MAX, SEEN_DEPTH_MAX};
use super::meter;
use super::predicate::{Fact, Facts};
use crate::words::time::Millis;

/// What an expression sees: JSON and instants under names. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    roots: Vec<(String, Root)>,
}

#[derive(Debug, Clone)]
struct Root {
    value: Arc<Value>,
    /// Times that stand in place of the value (the empty name), or of a field of it.
    times: Vec<(String, Time)>,
}

/// What JSON does not have.
#[derive(Debug, Clone, Copy)]
enum Time {
    Instant(Millis),
    /// Microseconds.
    Length(u64),
}

impl Scope {
    /// Nothing is seen.
    pub fn new() -> Scope {
        Scope::default()
    }

    /// Shows a copy of `value` under `name`, in place of what was there.
    pub fn set(&mut self, name: &str, value: &Value) -> &mut Scope {
        self.set_shared(name, Arc::new(value.clone()))
    }

    /// Shows `value` under `name` without copying it.
    pub fn set_shared(&mut self, name: &str, value: Arc<Value>) -> &mut Scope {
        let root = self.root(name);
        root.value = value;
        root.times.clear();
        self
    }

    /// Shows an instant as a timestamp: under a name (`now`), or as a field of an object (`run.started_at`).
    pub fn set_instant(&mut self, name: &str, at: Millis) -> &mut Scope {
        self.set_time(name, Time::Instant(at))
    }

    /// Shows a length of time in microseconds as a duration, under such a name.
    pub fn set_duration(&mut self, name: &str, us: u64) -> &mut Scope {
        self.set_time(name, Time::Length(us))
    }

    fn set_time(&mut self, name: &str, time: Time) -> &mut Scope {
        let (root, field) = name.split_once('.').unwrap_or((name, ""));
        let times = &mut self.root(root).times;
        times.retain(|(known, _)| known != field);
        times.push((field.to_owned(), time));
        self
    }

    fn root(&mut self, name: &str) -> &mut Root {
        let at = self.roots.iter().position(|(known, _)| known == name);
        let at = at.unwrap_or_else(|| {
            let root = Root {
                value: Arc::new(Value::Null),
                times: Vec::new(),
            };
            self.roots.push((name.to_owned(), root));
            self.roots.len() - 1
        });
        &mut self.roots[at].1
    }

    /// The JSON at a constant path, where it is there and no time is in its way.
    pub(super) fn plain(&self, path: &[String]) -> Option<&Value> {
        let (name, fields) = path.split_first()?;
        let (_, root) = self.roots.iter().find(|(known, _)| known == name)?;
        if !root.times.is_empty() {
            return None;
        }
        fields
            .iter()
            .try_fold(root.value.as_ref(), |value, field| value.as_object()?.get(field))
    }

    /// What stands at a path; nothing where a time stands in its way.
    fn known(&self, path: &[String]) -> Fact<'_> {
        let Some((name, fields)) = path.split_first() else {
            return Fact::Unknown;
        };
        let Some((_, root)) = self.roots.iter().find(|(known, _)| known == name) else {
            return Fact::Unknown;
        };
        let in_the_way = |(field, _): &(String, Time)| {
            field.is_empty() || fields.first().is_none_or(|first| first == field)
        };
        if root.times.iter().any(in_the_way) {
            return Fact::Unknown;
        }
        match (root.value.as_ref(), fields) {
            (value, []) => Fact::of(value),
            (Value::Object(map), fields) => Fact::below(map, fields),
            _ => Fact::Unknown,
        }
    }

    /// The variable `name`, as far as it is wanted.
    pub(super) fn variable<'v>(
        &'v self,
        name: &str,
        wanted: &Wanted,
    ) -> Result<Option<Box<dyn Val + 'v>>, ExecutionError> {
        let Some((_, root)) = self.roots.iter().find(|(known, _)| known == name) else {
            return Ok(None);
        };
        if let Some((_, at)) = root.times.iter().find(|(field, _)| field.is_empty()) {
            return at.enter().map(Some);
        }
        if root.times.is_empty() {
            return enter(&root.value, wanted, 1).map(Some);
        }
        let mut fields = HashMap::new();
        if let Value::Object(object) = root.value.as_ref() {
            enter_fields(object, wanted, 1, &mut fields)?;
        }
        for (field, at) in &root.times {
            fields.insert(CelMapKey::String(CelString::from(field.as_str())), at.enter()?);
        }
        Ok(Some(Box::new(CelMap::from(fields))))
    }
}

impl Facts for Scope {
    fn fact(&self, path: &[String]) -> Fact<'_> {
        self.known(path)
    }
}

/// The parts of a variable that an expression reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    Fields(BTreeMap<String, Wanted>),
}

impl Wanted {
    /// By root, what constant paths ask for.
    pub(super) fn by(paths: &[Vec<String>]) -> BTreeMap<String, Wanted> {
        let mut roots = BTreeMap::new();
        for path in paths {
            if let Some((root, fields)) = path.split_first() {
                let wanted = roots
                    .entry(root.clone())
                    .or_insert_with(|| Wanted::Fields(BTreeMap::new()));
                wanted.add(fields);
            }
        }
        roots
    }

    fn add(&mut self, fields: &[String]) {
        let Some((first, rest)) = fields.split_first() else {
            *self = Wanted::All;
            return;
        };
        if let Wanted::Fields(known) = self {
            let inner = known
                .entry(first.clone())
                .or_insert_with(|| Wanted::Fields(BTreeMap::new()));
            inner.add(rest);
        }
    }
}

impl Time {
    fn enter<'v>(self) -> Result<Box<dyn Val + 'v>, ExecutionError> {
        match self {
            Time::Instant(at) => timestamp(at),
            Time::Length(us) => duration(us),
        }
    }
}

fn duration<'v>(us: u64) -> Result<Box<dyn Val + 'v>, ExecutionError> {
    let text = CelString::from(format!("{}.{:06}s", us / 1_000_000, us % 1_000_000));
    let made = convert("duration", CowVal::owned(text))?;
    match made.downcast_ref::<CelDuration>() {
        Some(duration) => Ok(Box::new(*duration)),
        None => Err(ExecutionError::function_error("duration", "no duration")),
    }
}

fn timestamp<'v>(at: Millis) -> Result<Box<dyn Val + 'v>, ExecutionError> {
    let text = CelString::from(at.to_string());
    let made = convert("timestamp", CowVal::owned(text))?;
    match made.downcast_ref::<CelTimestamp>() {
        Some(timestamp) => Ok(Box::new(timestamp.clone())),
        None => Err(ExecutionError::function_error("timestamp", "no timestamp")),
    }
}

/// One of the language's conversions.
pub(super) fn convert<'b, 'v>(name: &str, value: CowVal<'b, 'v>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let arguments = vec![value];
    match ENVIRONMENT.find_overload(name, &arguments) {
        Some(conversion) => conversion(arguments),
        None => Err(ExecutionError::no_such_overload(name, Vec::new())),
    }
}

/// Into the interpreter; texts are borrowed.
fn enter<'v>(value: &'v Value, wanted: &Wanted, depth: usize) -> Result<Box<dyn Val + 'v>, ExecutionError> {
    if depth > SEEN_DEPTH_MAX {
        let why = format!("the data is nested more than {SEEN_DEPTH_MAX} levels deep");
        return Err(ExecutionError::function_error("", why));
    }
    meter::pay(NODE_WORK)?;
    Ok(match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(truth) => Box::new(CelBool::from(*truth)),
        Value::Number(number) => {
            if let Some(whole) = number.as_i64() {
                Box::new(CelInt::from(whole))
            } else if let Some(whole) = number.as_u64() {
                Box::new(CelUInt::from(whole))
            } else {
                Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN)))
            }
        }
        Value::String(text) => Box::new(CelString::from(text.as_str())),
        Value::Array(elements) => {
            let mut list = Vec::with_capacity(elements.len().min(1_024));
            for element in elements {
                list.push(enter(element, &Wanted::All, depth + 1)?);
            }
            Box::new(CelList::from(list))
        }
        Value::Object(object) => {
            let mut fields = HashMap::new();
            enter_fields(object, wanted, depth, &mut fields)?;
            Box::new(CelMap::from(fields))
        }
    })
}

fn enter_fields<'v>(
    object: &'v serde_json::Map<String, Value>,
    wanted: &Wanted,
    depth: usize,
    fields: &mut HashMap<CelMapKey<'v>, Box<dyn Val + 'v>>,
) -> Result<(), ExecutionError> {
    let mut take = |name: &'v String, value: &'v Value, wanted: &Wanted| {
        let value = enter(value, wanted, depth + 1)?;
        fields.insert(CelMapKey::String(CelString::from(name.as_str())), value);
        Ok(())
    };
    match wanted {
        Wanted::All => object
            .iter()
            .try_for_each(|(name, value)| take(name, value, &Wanted::All)),
        Wanted::Fields(names) => {
            names
                .iter()
                .try_for_each(|(name, wanted)| match object.get_key_value(name) {
                    Some((name, value)) => take(name, value, wanted),
                    None => Ok(()),
                })
        }
    }
}

/// Why a value does not leave.
#[derive(Debug)]
pub(super) enum Unfit {
    /// It is nothing that JSON has.
    Kind(String),
    /// It cost too much, or could not be written.
    Failed(ExecutionError),
}

impl From<ExecutionError> for Unfit {
    fn from(error: ExecutionError) -> Unfit {
        Unfit::Failed(error)
    }
}

/// Out of the interpreter.
pub(super) fn leave(value: &dyn Val, depth: usize) -> Result<Value, Unfit> {
    if depth > RESULT_DEPTH_MAX {
        return Err(Unfit::Kind(format!(
            "the result is nested more than {RESULT_DEPTH_MAX} levels deep"
        )));
    }
    meter::pay(NODE_WORK)?;
    if let Some(text) = value.downcast_ref::<CelString>() {
        meter::pay(text.len() as u64)?;
        return Ok(Value::from(text.inner()));
    }
    if let Some(list) = value.downcast_ref::<CelList>() {
        let elements = list
            .inner()
            .iter()
            .map(|element| leave(element.as_ref(), depth + 1));
        return elements.collect();
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        let mut object = serde_json::Map::new();
        for (key, field) in map.inner() {
            let name = key_text(key);
            meter::pay(name.len() as u64)?;
            let field = leave(field.as_ref(), depth + 1)?;
            if object.insert(name.clone(), field).is_some() {
                return Err(Unfit::Kind(format!(
                    "two keys of the result are both written \"{name}\" in JSON"
                )));
            }
        }
        return Ok(Value::Object(object));
    }
    leave_scalar(value, depth)
}

fn leave_scalar(value: &dyn Val, depth: usize) -> Result<Value, Unfit> {
    if let Some(truth) = value.downcast_ref::<CelBool>() {
        return Ok(Value::from(*truth.inner()));
    }
    if let Some(number) = value.downcast_ref::<CelInt>() {
        return Ok(Value::from(*number.inner()));
    }
    if let Some(number) = value.downcast_ref::<CelUInt>() {
        return Ok(Value::from(*number.inner()));
    }
    if let Some(number) = value.downcast_ref::<CelDouble>() {
        let number = *number.inner();
        let json = serde_json::Number::from_f64(number);
        return json.map(Value::Number).ok_or_else(|| {
            Unfit::Kind(format!(
                "the result has a number that JSON does not know ({number})"
            ))
        });
    }
    if value.downcast_ref::<CelNull>().is_some() {
        return Ok(Value::Null);
    }
    if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        meter::pay(2 * bytes.inner().len() as u64)?;
        return Ok(Value::from(STANDARD.encode(bytes.inner())));
    }
    if value.downcast_ref::<CelTimestamp>().is_some() || value.downcast_ref::<CelDuration>().is_some() {
        let text = convert("string", CowVal::Borrowed(value))?;
        return leave(text.as_ref(), depth);
    }
    if let Some(optional) = value.downcast_ref::<CelOptional>() {
        return optional
            .option()
            .map_or(Ok(Value::Null), |inner| leave(inner, depth + 1));
    }
    if let Some(name) = value.downcast_ref::<CelType>() {
        return Ok(Value::from(name.name()));
    }
    Err(Unfit::Kind(format!(
        "the result is a {}, which JSON does not have",
        value.get_type().name()
    )))
}

fn key_text(key: &CelMapKey<'_>) -> String {
    match key {
        CelMapKey::Bool(truth) => truth.inner().to_string(),
        CelMapKey::Int(number) => number.inner().to_string(),
        CelMapKey::UInt(number) => number.inner().to_string(),
        CelMapKey::String(text) => text.inner().to_owned(),
    }
}
