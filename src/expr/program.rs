//! A compiled expression: how it is made, remembered and run.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;

use cel_interpreter::common::ast::{Expr, IdedExpr, LiteralValue};
use cel_interpreter::{Context, ExecutionError, Value as CelValue};
use regex::Regex;
use serde_json::Value;

use super::admit;
use super::cache::{self, Cache};
use super::deep::{self, Lost};
use super::fault::{Fault, Kind, Profile};
use super::functions::ENVIRONMENT;
use super::meter;
use super::parse;
use super::predicate::{Facts, Predicate};
use super::reasons;
use super::rewrite::Rewriting;
use super::scan;
use super::scope::{Scope, Unfit, Wanted};
use crate::words::time::{Millis, parse_instant};

/// A compiled, admitted expression; cheap to clone.
#[derive(Clone)]
pub struct Program(Arc<Compiled>);

struct Compiled {
    text: String,
    profile: Profile,
    tree: IdedExpr,
    nodes: usize,
    references: Vec<Vec<String>>,
    wanted: BTreeMap<String, Wanted>,
    patterns: Arc<[Regex]>,
    shape: Shape,
    /// The expression without the interpreter, where it is a rule of plain comparisons.
    predicate: Option<Predicate>,
}

/// What need not be interpreted.
#[derive(Debug, PartialEq)]
enum Shape {
    /// The same value always.
    Constant(Value),
    /// A constant path into the scope.
    Path(Vec<String>),
    Other,
}

static COMPILED: LazyLock<Mutex<Cache<Program>>> = LazyLock::new(|| Mutex::new(Cache::new()));

impl Program {
    /// Reads, admits and prepares `text`. `names` are the variables that exist where it will run. What was compiled
    /// lately is remembered.
    pub fn compile(text: &str, profile: Profile, names: &[&str]) -> Result<Program, Fault> {
        scan::check(text, profile)?;
        let key = cache::key(text, profile, names);
        if let Some(known) = lock().get(&key) {
            return Ok(known);
        }
        let own_text = text.to_owned();
        let own_names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let compiled = deeply(profile, move || {
            let names: Vec<&str> = own_names.iter().map(String::as_str).collect();
            Compiled::new(&own_text, profile, &names)
        })?;
        let nodes = compiled.nodes;
        let program = Program(Arc::new(compiled));
        lock().put(key, program.clone(), nodes);
        Ok(program)
    }

    /// Whether both are one in memory.
    #[cfg(test)]
    pub(super) fn is(&self, other: &Program) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The text that it was compiled from.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The constant paths that it reads, each as its parts, the variable first: `steps["greet"].output.x` is
    /// `["steps", "greet", "output", "x"]`. A key that is computed and the position in a list end a path.
    pub fn references(&self) -> &[Vec<String>] {
        &self.0.references
    }

    /// The value as JSON: instants as RFC 3339 in UTC, durations as seconds (`1.5s`), bytes in base64, an empty optional
    /// as null, keys as texts.
    pub fn evaluate(&self, scope: &Scope) -> Result<Value, Fault> {
        match self.at_hand(scope) {
            Some(value) => Ok(value.clone()),
            None => self.interpret(scope).0,
        }
    }

    /// The value, which must be true or false.
    pub fn evaluate_bool(&self, scope: &Scope) -> Result<bool, Fault> {
        let value = self.evaluate(scope)?;
        value
            .as_bool()
            .ok_or_else(|| self.wrong_result("true or false", &value))
    }

    /// The same, with the steps that it took: the parts of the expression, and the turns of its loops.
    pub fn evaluate_bool_counted(&self, scope: &Scope) -> (Result<bool, Fault>, u64) {
        let (value, turns) = match self.at_hand(scope) {
            Some(value) => (Ok(value.clone()), 0),
            None => self.interpret(scope),
        };
        let truth = value.and_then(|value| {
            value
                .as_bool()
                .ok_or_else(|| self.wrong_result("true or false", &value))
        });
        (truth, self.parts() + turns)
    }

    /// The parts of the expression.
    pub fn parts(&self) -> u64 {
        self.0.nodes as u64
    }

    /// Whether it is true, where that is sure without the interpreter: plain comparisons of a rule over what is there.
    /// `None` says nothing: [`Program::evaluate_bool`] decides then.
    pub fn decide(&self, facts: &dyn Facts) -> Option<bool> {
        self.0.predicate.as_ref()?.decide(facts)
    }

    /// Whether it is a rule of plain comparisons.
    pub fn is_lowered(&self) -> bool {
        self.0.predicate.is_some()
    }

    /// Why it is false, in words; `None` where nothing but its whole text can be named.
    pub fn because(&self, facts: &dyn Facts) -> Option<String> {
        self.0.predicate.as_ref()?.because(facts)
    }

    /// The value, which must be a timestamp, or a text in RFC 3339.
    pub fn evaluate_instant(&self, scope: &Scope) -> Result<Millis, Fault> {
        let value = self.evaluate(scope)?;
        value
            .as_str()
            .and_then(parse_instant)
            .ok_or_else(|| self.wrong_result("an instant like 2026-01-31T08:00:00Z", &value))
    }

    /// The value, where it can be had without the interpreter.
    fn at_hand<'v>(&'v self, scope: &'v Scope) -> Option<&'v Value> {
        match &self.0.shape {
            Shape::Constant(value) => Some(value),
            Shape::Path(path) => scope.plain(path),
            Shape::Other => None,
        }
    }

    /// The value, and the turns of its loops.
    fn interpret(&self, scope: &Scope) -> (Result<Value, Fault>, u64) {
        let profile = self.0.profile;
        let evaluation = || -> Result<(), ExecutionError> {
            let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
            for (name, wanted) in &self.0.wanted {
                if let Some(value) = scope.variable(name, wanted)? {
                    context.add_variable_as_val(name.as_str(), value);
                }
            }
            CelValue::resolve(&self.0.tree, &context).map(|_| ())
        };
        let guarded = || catch_unwind(AssertUnwindSafe(evaluation));
        let outcome = meter::run(profile.limits(), &self.0.patterns, guarded);
        let turns = outcome.turns;
        (self.value_of(outcome), turns)
    }

    fn value_of(
        &self,
        outcome: meter::Outcome<thread::Result<Result<(), ExecutionError>>>,
    ) -> Result<Value, Fault> {
        let profile = self.0.profile;
        if let Some(overdraft) = outcome.overdraft {
            return Err(Kind::TooCostly.fault(profile, overdraft, None));
        }
        match (outcome.returned, outcome.given) {
            (Ok(Ok(())), Some(Ok(value))) => Ok(value),
            (Ok(Ok(())), Some(Err(Unfit::Kind(message)))) => {
                Err(Kind::ResultType.fault(profile, message, None))
            }
            (Ok(Ok(())), Some(Err(Unfit::Failed(error)))) | (Ok(Err(error)), _) => Err(self.failed(&error)),
            (Err(_), _) | (Ok(Ok(())), None) => {
                let message = "the expression could not be evaluated: an operation failed unexpectedly";
                Err(Kind::Evaluation.fault(profile, message, None))
            }
        }
    }

    fn failed(&self, error: &ExecutionError) -> Fault {
        Kind::Evaluation.fault(self.0.profile, reasons::explain(error), None)
    }

    fn wrong_result(&self, wanted: &str, got: &Value) -> Fault {
        let message = format!(
            "the expression gives {}, and {wanted} is needed",
            reasons::describe(got)
        );
        Kind::ResultType.fault(self.0.profile, message, None)
    }
}

/// A text that was read: what is left of its admission is the guard's walk over the tree, which is measured alone here.
pub struct Unguarded {
    tree: IdedExpr,
    source: parse::Source,
    profile: Profile,
}

impl Unguarded {
    /// Reads a text.
    pub fn read(text: &str, profile: Profile) -> Result<Unguarded, Fault> {
        scan::check(text, profile)?;
        let text = text.to_owned();
        deeply(profile, move || {
            let (tree, source) = parse::parse(&text, profile)?;
            Ok(Unguarded {
                tree,
                source,
                profile,
            })
        })
    }

    /// The walk: how many parts the expression has, if it is admitted.
    pub fn guard(&self, names: &[&str]) -> Result<usize, Fault> {
        admit::check(&self.tree, &self.source, self.profile, names).map(|admitted| admitted.nodes)
    }
}

/// Two are equal when they came from the same text for the same place.
impl PartialEq for Program {
    fn eq(&self, other: &Program) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.text == other.0.text
                && self.0.profile == other.0.profile
                && self.0.references == other.0.references)
    }
}

impl Eq for Program {}

impl fmt::Debug for Program {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Program").field(&self.0.text).finish()
    }
}

fn lock() -> std::sync::MutexGuard<'static, Cache<Program>> {
    COMPILED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// On the thread with the deep stack. A panic of the parser is a fault.
fn deeply<T: Send + 'static>(
    profile: Profile,
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    deep::run(work).unwrap_or_else(|lost| {
        let message = match lost {
            Lost::Panicked => "the expression cannot be read",
            Lost::NoThread => "the expression was not read: the system has no thread left for it",
        };
        Err(Kind::Syntax.fault(profile, message, None))
    })
}

impl Compiled {
    fn new(text: &str, profile: Profile, names: &[&str]) -> Result<Compiled, Fault> {
        let (tree, source) = parse::parse(text, profile)?;
        let admitted = admit::check(&tree, &source, profile, names)?;
        let rewriting = Rewriting {
            patterns: &admitted.patterns,
            has_optionals: admitted.has_optionals,
        };
        let shape = Shape::of(&tree, &admitted.references);
        let predicate = match profile {
            Profile::Rule => Predicate::of(&tree),
            Profile::Workflow => None,
        };
        let tree = rewriting.program(tree);
        Ok(Compiled {
            text: text.to_owned(),
            profile,
            tree,
            nodes: admitted.nodes,
            wanted: Wanted::by(&admitted.references),
            references: admitted.references,
            patterns: admitted
                .patterns
                .into_iter()
                .map(|(_, pattern)| pattern)
                .collect(),
            shape,
            predicate,
        })
    }
}

impl Shape {
    fn of(tree: &IdedExpr, references: &[Vec<String>]) -> Shape {
        if let Expr::Literal(literal) = &tree.expr {
            return match literal {
                LiteralValue::String(text) => Shape::Constant(Value::from(text.inner())),
                LiteralValue::Boolean(truth) => Shape::Constant(Value::from(*truth.inner())),
                LiteralValue::Int(number) => Shape::Constant(Value::from(*number.inner())),
                LiteralValue::UInt(number) => Shape::Constant(Value::from(*number.inner())),
                LiteralValue::Null => Shape::Constant(Value::Null),
                LiteralValue::Bytes(_) | LiteralValue::Double(_) => Shape::Other,
            };
        }
        match references {
            [path] if is_plain_path(tree) => Shape::Path(path.clone()),
            _ => Shape::Other,
        }
    }
}

/// Fields of fields of a variable, and nothing that is computed.
fn is_plain_path(tree: &IdedExpr) -> bool {
    let mut at = tree;
    while let Expr::Select(select) = &at.expr {
        if select.test {
            return false;
        }
        at = &select.operand;
    }
    matches!(at.expr, Expr::Ident(_))
}
