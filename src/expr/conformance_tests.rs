//! The conformance cases of the language (`tests/fixtures/cel`): how many pass in each file, and that what is put in front
//! of the interpreter here changes none of them. A changed number fails until somebody has looked at it.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cel_interpreter::common::ast::IdedExpr;
use cel_interpreter::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString,
    CelType, CelUInt,
};
use cel_interpreter::common::value::{CowVal, Val};
use cel_interpreter::{Context, Env, Value as CelValue};
use serde::Deserialize;
use serde_json::{Value, json};

use super::fault::Profile;
use super::functions::{ENVIRONMENT, environment};
use super::limits::COMPILE_STACK_BYTES;
use super::rewrite::Rewriting;
use super::scope::{convert, leave};
use super::{Program, Scope, admit, meter, parse};

const CASES: &str = include_str!("../../tests/fixtures/cel/cases.jsonl");

/// By file: cases that pass and fail by the interpreter with our environment, and how many of all of them are not admitted.
///
/// What fails is not offered: `cel.bind` (`bindings_ext`), `cel.block` (`block_ext`), loops over two variables (`macros2`),
/// names in backticks (`fields`), milliseconds of a duration (`timestamps`). The specification's numbers are the same in each
/// file of which it counts as many cases; its edition has more in `bindings_ext` (8), `namespace` (14) and `string_ext` (213).
/// What is not admitted though it passes: names that are unknown, as variables or as functions, which the guard refuses when a
/// text is written and the cases expect to fail when it runs; control characters inside of texts; `optional_type` and the
/// types of protocol buffers as names.
const NUMBERS: &[(&str, usize, usize, usize)] = &[
    ("basic", 43, 0, 4),
    ("bindings_ext", 0, 5, 5),
    ("block_ext", 0, 25, 25),
    ("comparisons", 334, 0, 9),
    ("conversions", 109, 0, 1),
    ("encoders_ext", 4, 0, 0),
    ("fields", 54, 6, 6),
    ("fp_math", 30, 0, 0),
    ("integer_math", 64, 0, 0),
    ("lists", 39, 0, 0),
    ("logic", 30, 0, 0),
    ("macros", 44, 0, 0),
    ("macros2", 8, 38, 46),
    ("math_ext", 199, 0, 0),
    ("namespace", 3, 0, 0),
    ("optionals", 59, 0, 1),
    ("parse", 193, 0, 33),
    ("plumbing", 5, 0, 0),
    ("string", 51, 0, 0),
    ("string_ext", 206, 0, 4),
    ("timestamps", 75, 1, 2),
];

/// What is an error here and a value there. The interpreter takes the whole length for its milliseconds, which is neither what
/// the language says nor what it once said.
const DIFFER: &[&str] = &["timestamps/duration_converters/get_milliseconds"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    file: String,
    name: String,
    expr: String,
    #[serde(default)]
    container: Option<String>,
    #[serde(default)]
    bindings: BTreeMap<String, Value>,
    #[serde(default)]
    value: Option<Value>,
    #[serde(default)]
    error: Option<String>,
}

/// What became of a case here: not admitted, or what it gives (nothing for an error).
enum Guarded {
    Refused(&'static str),
    Gives(Option<Value>),
}

/// Into the interpreter.
fn enter(tagged: &Value) -> Box<dyn Val> {
    let (kind, inner) = tagged
        .as_object()
        .and_then(|one| one.iter().next())
        .expect("a kind");
    let text = || inner.as_str().expect("a text");
    match kind.as_str() {
        "null" => Box::new(CelNull),
        "bool" => Box::new(CelBool::from(inner.as_bool().expect("a bool"))),
        "int" => Box::new(CelInt::from(text().parse::<i64>().expect("a number"))),
        "uint" => Box::new(CelUInt::from(text().parse::<u64>().expect("a number"))),
        "double" => Box::new(CelDouble::from(text().parse::<f64>().expect("a number"))),
        "string" => Box::new(CelString::from(text().to_owned())),
        "bytes" => Box::new(CelBytes::from(STANDARD.decode(text()).expect("base64"))),
        "type" => Box::new(CelType::new(text())),
        "list" => Box::new(CelList::from(
            inner
                .as_array()
                .expect("a list")
                .iter()
                .map(enter)
                .collect::<Vec<_>>(),
        )),
        "map" => {
            let entries = inner.as_array().expect("entries").iter();
            let entries = entries.map(|entry| (key(&entry[0]), enter(&entry[1])));
            Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
        }
        "duration" => Box::new(
            *made("duration", text())
                .downcast_ref::<CelDuration>()
                .expect("one"),
        ),
        other => panic!("{other}"),
    }
}

fn made(conversion: &str, text: &str) -> CowVal<'static, 'static> {
    convert(conversion, CowVal::owned(CelString::from(text.to_owned()))).expect("it is written right")
}

fn key(tagged: &Value) -> CelMapKey<'static> {
    let value = enter(tagged);
    if let Some(text) = value.downcast_ref::<CelString>() {
        return CelMapKey::String(CelString::from(text.inner().to_owned()));
    }
    if let Some(number) = value.downcast_ref::<CelInt>() {
        return CelMapKey::Int(CelInt::from(*number.inner()));
    }
    panic!("{tagged}")
}

/// As the cases write values. Numbers with a fraction are equal when they are; entries have an order.
fn shown(value: &dyn Val) -> Value {
    if let Some(list) = value.downcast_ref::<CelList>() {
        return json!({"list": list.inner().iter().map(|one| shown(one.as_ref())).collect::<Vec<_>>()});
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        let entries = map.inner().iter().map(|(key, value)| {
            let key = match key {
                CelMapKey::Bool(truth) => json!({"bool": truth.inner()}),
                CelMapKey::Int(number) => json!({"int": number.inner().to_string()}),
                CelMapKey::UInt(number) => json!({"uint": number.inner().to_string()}),
                CelMapKey::String(text) => json!({"string": text.inner()}),
            };
            json!([key, shown(value.as_ref())])
        });
        return sorted(entries.collect());
    }
    if let Some(truth) = value.downcast_ref::<CelBool>() {
        json!({"bool": truth.inner()})
    } else if let Some(number) = value.downcast_ref::<CelInt>() {
        json!({"int": number.inner().to_string()})
    } else if let Some(number) = value.downcast_ref::<CelUInt>() {
        json!({"uint": number.inner().to_string()})
    } else if let Some(number) = value.downcast_ref::<CelDouble>() {
        double(*number.inner())
    } else if let Some(text) = value.downcast_ref::<CelString>() {
        json!({"string": text.inner()})
    } else if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        json!({"bytes": STANDARD.encode(bytes.inner())})
    } else if let Some(name) = value.downcast_ref::<CelType>() {
        json!({"type": name.name()})
    } else if value.downcast_ref::<CelNull>().is_some() {
        json!({"null": true})
    } else {
        json!({"other": value.get_type().name()})
    }
}

fn double(number: f64) -> Value {
    json!({"double": format!("{}", number + 0.0)})
}

fn sorted(mut entries: Vec<Value>) -> Value {
    entries.sort_by_key(ToString::to_string);
    json!({"map": entries})
}

/// An expected value as `shown` writes it.
fn expected(tagged: &Value) -> Value {
    let (kind, inner) = tagged
        .as_object()
        .and_then(|one| one.iter().next())
        .expect("a kind");
    match kind.as_str() {
        "double" => double(inner.as_str().expect("a text").parse().expect("a number")),
        "list" => json!({"list": inner.as_array().expect("a list").iter().map(expected).collect::<Vec<_>>()}),
        "map" => {
            let entries = inner.as_array().expect("entries").iter();
            sorted(
                entries
                    .map(|entry| json!([expected(&entry[0]), expected(&entry[1])]))
                    .collect(),
            )
        }
        _ => tagged.clone(),
    }
}

fn context(case: &Case) -> Context<'static, 'static> {
    let env: Arc<Env> = match &case.container {
        None => Arc::clone(&ENVIRONMENT),
        Some(container) => {
            let mut env = environment().expect("no name twice");
            env.set_container(container).expect("a name");
            Arc::new(env)
        }
    };
    let mut context = Context::with_env(env);
    for (name, value) in &case.bindings {
        context.add_variable_as_val(name.as_str(), enter(value));
    }
    context
}

/// The interpreter alone: what it gives, as the cases write it, and as it leaves here; nothing for an error.
fn interpreted(case: &Case) -> Option<(Value, Option<Value>)> {
    let (tree, _) = parse::parse(&case.expr, Profile::Workflow).ok()?;
    let context = context(case);
    let limits = Profile::Workflow.limits();
    let nothing: Arc<[regex::Regex]> = Arc::from(Vec::new());
    let run = || {
        let value = CelValue::resolve_val(&tree, &context).ok()?;
        Some((shown(value.as_ref()), leave(value.as_ref(), 1).ok()))
    };
    meter::run(limits, &nothing, run).returned
}

/// The way of an expression through this program.
fn guarded(case: &Case) -> Guarded {
    let names: Vec<&str> = case
        .bindings
        .keys()
        .map(|name| name.split('.').next().unwrap_or_default())
        .collect();
    let admitted = super::scan::check(&case.expr, Profile::Workflow)
        .and_then(|()| parse::parse(&case.expr, Profile::Workflow))
        .and_then(|(tree, source)| Ok((admit::check(&tree, &source, Profile::Workflow, &names)?, tree)));
    let (admitted, tree) = match admitted {
        Ok(admitted) => admitted,
        Err(fault) => return Guarded::Refused(fault.code),
    };
    let rewriting = Rewriting {
        patterns: &admitted.patterns,
        has_optionals: admitted.has_optionals,
    };
    let tree: IdedExpr = rewriting.program(tree);
    let patterns = admitted
        .patterns
        .into_iter()
        .map(|(_, pattern)| pattern)
        .collect();
    let context = context(case);
    let outcome = meter::run(Profile::Workflow.limits(), &patterns, || {
        CelValue::resolve(&tree, &context).is_ok()
    });
    let given = outcome
        .given
        .filter(|_| outcome.returned && outcome.overdraft.is_none());
    Guarded::Gives(given.and_then(Result::ok))
}

fn run() {
    let mut numbers: BTreeMap<String, (usize, usize, usize)> = BTreeMap::new();
    let (mut panics, mut differ, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for line in CASES.lines() {
        let case: Case = serde_json::from_str(line).expect("a case");
        let both = catch_unwind(AssertUnwindSafe(|| (interpreted(&case), guarded(&case))));
        let full = format!("{}/{}: {}", case.file, case.name, case.expr);
        let Ok((alone, here)) = both else {
            panics.push(full);
            continue;
        };
        let (given, left) = alone.map_or((None, None), |(given, left)| (Some(given), left));
        let passes = match &case.value {
            Some(value) => given.as_ref() == Some(&expected(value)),
            None => case.error.is_some() && given.is_none(),
        };
        let count = numbers.entry(case.file.clone()).or_default();
        if passes {
            count.0 += 1;
        } else {
            count.1 += 1;
            told.push(format!("fails: {full} gives {given:?}, not {:?}", case.value));
        }
        match here {
            Guarded::Refused(code) => {
                count.2 += 1;
                told.push(format!("refused, {code}: {full}"));
            }
            Guarded::Gives(here) if here != left => {
                differ.push(format!("{}/{}", case.file, case.name));
                told.push(format!("differs: {full}: {here:?}, not {left:?}"));
            }
            Guarded::Gives(_) => {}
        }
    }
    let numbers: Vec<_> = numbers
        .iter()
        .map(|(file, (pass, fail, refused))| (file.as_str(), *pass, *fail, *refused))
        .collect();
    assert_eq!(panics, Vec::<String>::new());
    assert_eq!(numbers, NUMBERS, "{}", told.join("\n"));
    assert_eq!(differ, DIFFER, "{}", told.join("\n"));
}

#[test]
fn value_24_the_conformance_cases_of_the_language_pass_as_counted() {
    let thread = std::thread::Builder::new().stack_size(COMPILE_STACK_BYTES);
    let thread = thread.spawn(run).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Facts of the language that rules lean on.
#[test]
fn value_24_facts_of_the_language() {
    let mut scope = Scope::new();
    scope.set("zero", &json!(0));
    let truth = |text: &str| {
        let program = Program::compile(text, Profile::Rule, &["zero"]).expect("it is admitted");
        program.evaluate_bool(&scope).ok()
    };
    for text in [
        "1/zero == 1 || true",
        "true || 1/zero == 1",
        "1.0/0.0 > 1.0e308",
        "string(1.0) == \"1\"",
        "1 == 1.0",
    ] {
        assert_eq!(truth(text), Some(true), "{text}");
    }
    for text in [
        "1 + 1.0 == 2.0",
        "9223372036854775807 + zero + 1 > 0",
        "-9223372036854775807 - zero - 2 < 0",
        "1/zero == 1",
        "1 % zero == 1",
        "[1][1 + zero] == 1",
        "[1][zero - 1] == 1",
        "1/zero == 1 || false",
        "1/zero == 1 && true",
    ] {
        assert_eq!(truth(text), None, "{text}");
    }
}
