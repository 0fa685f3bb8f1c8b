//! Steps that are computed inside the coordinator.

use serde_json::{Map, Value, json};

use super::build::{Fold, GatherWork, Work};
use super::key::{Key, ValueName};
use super::kinds::{GatherMode, StepKind};
use super::moves::Moving;
use super::reach::error_of;
use super::template::as_text;
use super::tick::{StepError, View};
use crate::domain::workflow::run::StepPhase;
use crate::expr::{Fault, Program, Scope};

type Computed = Result<Value, StepError>;

impl<V: View> Moving<'_, V> {
    /// The value of a step, or why it has none.
    pub(super) fn compute(&mut self, key: &Key, work: &Work) -> Result<Computed, V::Error> {
        if let Work::Gather(gather) = work {
            return self.gather(key, gather);
        }
        let scope = self.scope(programs(work), key)?;
        let graph = self.graph;
        Ok(evaluate(work, &scope, |id| {
            Value::String(graph.node(id).doc.name.to_string())
        }))
    }

    fn gather(&mut self, key: &Key, gather: &GatherWork) -> Result<Computed, V::Error> {
        let graph = self.graph;
        let from = key.beside(graph, gather.from);
        let total = self.items_of(&from)?.total;
        let mut results = Vec::new();
        let mut failed = Vec::new();
        for branch in 0..total {
            let of_branch = from.inside(gather.step, branch);
            let name = of_branch.name(graph);
            let succeeded = self
                .step_of(&of_branch)?
                .is_some_and(|state| matches!(state.phase, StepPhase::Succeeded { .. }));
            if succeeded {
                let output = self.value(&ValueName::Output(name))?;
                results.push((branch, output.map_or(Value::Null, |output| (*output).clone())));
            } else {
                let error = self.branch_error(&from, branch)?;
                failed.push(json!({"index": branch, "error": error}));
            }
        }
        let scope = self.scope(
            gather
                .key
                .iter()
                .chain(gather.fold.iter().flat_map(Fold::programs)),
            key,
        )?;
        let mode = if let StepKind::Gather(doc) = &graph.node(key.node).doc.kind {
            doc.mode
        } else {
            GatherMode::List
        };
        Ok(collected(mode, gather, &scope, results)
            .map(|results| json!({"results": results, "failed": failed})))
    }

    /// The first error of a branch; null if it was skipped.
    fn branch_error(&mut self, from: &Key, branch: u32) -> Result<Value, V::Error> {
        let graph = self.graph;
        let Some(scatter) = graph.node(from.node).as_scatter() else {
            return Ok(Value::Null);
        };
        for id in &scatter.body {
            let name = from.inside(*id, branch).name(graph);
            if let Some(error) = self.value(&ValueName::Error(name))? {
                return Ok((*error).clone());
            }
        }
        Ok(Value::Null)
    }
}

impl Fold {
    fn programs(&self) -> impl Iterator<Item = &Program> {
        [self.items.as_ref(), self.initial.as_ref(), Some(&self.with)]
            .into_iter()
            .flatten()
    }

    fn over(&self, scope: &Scope, items: Vec<Value>) -> Result<Value, Fault> {
        let mut acc = match &self.initial {
            Some(initial) => initial.evaluate(scope)?,
            None => Value::Null,
        };
        let mut scope = scope.clone();
        for (index, item) in items.into_iter().enumerate() {
            scope
                .set("acc", &acc)
                .set("item", &item)
                .set("index", &json!(index));
            acc = self.with.evaluate(&scope)?;
        }
        Ok(acc)
    }
}

/// All expressions of a step.
fn programs(work: &Work) -> Vec<&Program> {
    match work {
        Work::Project(fields) => fields.iter().map(|(_, program)| program).collect(),
        Work::Filter(items, with) | Work::Map(items, with) => vec![items, with],
        Work::Merge(all) => all.iter().collect(),
        Work::Reduce(fold) => fold.programs().collect(),
        Work::Assert(all) => all.iter().map(|(program, _)| program).collect(),
        Work::Template(template) | Work::Fail(_, template) => template.programs(),
        Work::Switch(cases, _) => cases.iter().map(|(program, _)| program).collect(),
        Work::Succeed(output) => output.iter().collect(),
        Work::WaitFor(_)
        | Work::WaitUntil(_)
        | Work::Scatter(_)
        | Work::Gather(_)
        | Work::Subworkflow(_)
        | Work::Checkpoint
        | Work::Approval
        | Work::Command
        | Work::Sensor
        | Work::Http(_)
        | Work::Task(_)
        | Work::Route(_) => Vec::new(),
    }
}

fn list_of(program: &Program, scope: &Scope) -> Result<Vec<Value>, StepError> {
    let value = program.evaluate(scope).map_err(|fault| error_of(&fault))?;
    if let Value::Array(items) = value {
        return Ok(items);
    }
    let text = format!("`{}` is not a list", program.text());
    Err(StepError::new("dataflow.not_a_list", text).for_good())
}

fn for_each<T>(
    items: &Program,
    scope: &Scope,
    mut each: impl FnMut(Value, &Scope) -> Result<Option<T>, Fault>,
) -> Result<Vec<T>, StepError> {
    let mut kept = Vec::new();
    let mut inner = scope.clone();
    for (index, item) in list_of(items, scope)?.into_iter().enumerate() {
        inner.set("item", &item).set("index", &json!(index));
        kept.extend(each(item, &inner).map_err(|fault| error_of(&fault))?);
    }
    Ok(kept)
}

fn evaluate(work: &Work, scope: &Scope, name: impl Fn(usize) -> Value) -> Computed {
    let one = |program: &Program| program.evaluate(scope).map_err(|fault| error_of(&fault));
    match work {
        Work::Project(fields) => {
            let mut object = Map::new();
            for (field, program) in fields {
                object.insert(field.clone(), one(program)?);
            }
            Ok(Value::Object(object))
        }
        Work::Filter(items, with) => {
            let kept = for_each(items, scope, |item, scope| {
                Ok(with.evaluate_bool(scope)?.then_some(item))
            });
            kept.map(Value::Array)
        }
        Work::Map(items, with) => {
            let made = for_each(items, scope, |_, scope| with.evaluate(scope).map(Some));
            made.map(Value::Array)
        }
        Work::Merge(all) => merged(all, scope),
        Work::Reduce(fold) => {
            let items = fold
                .items
                .as_ref()
                .map_or(Ok(Vec::new()), |items| list_of(items, scope))?;
            fold.over(scope, items).map_err(|fault| error_of(&fault))
        }
        Work::Assert(all) => asserted(all, scope),
        Work::Template(template) => template.fill(scope).map_err(|fault| error_of(&fault)),
        Work::Switch(cases, default) => {
            for (program, target) in cases {
                if program.evaluate_bool(scope).map_err(|fault| error_of(&fault))? {
                    return Ok(name(*target));
                }
            }
            let none =
                || StepError::new("switch.no_case", "no case is true, and there is no default").for_good();
            default.map(name).ok_or_else(none)
        }
        Work::Fail(code, message) => {
            let message = message.fill(scope).map_err(|fault| error_of(&fault))?;
            Err(StepError::new(code.clone(), as_text(&message)).for_good())
        }
        Work::Succeed(output) => output.as_ref().map_or(Ok(Value::Null), one),
        Work::WaitFor(_)
        | Work::WaitUntil(_)
        | Work::Scatter(_)
        | Work::Gather(_)
        | Work::Subworkflow(_)
        | Work::Checkpoint
        | Work::Approval
        | Work::Command
        | Work::Sensor
        | Work::Http(_)
        | Work::Task(_)
        | Work::Route(_) => Ok(Value::Null),
    }
}

/// One object of several, a later one over an earlier one; null counts for an empty one.
fn merged(all: &[Program], scope: &Scope) -> Computed {
    let mut merged = Map::new();
    for program in all {
        let value = program.evaluate(scope).map_err(|fault| error_of(&fault))?;
        if let Value::Object(fields) = value {
            merged.extend(fields);
        } else if !value.is_null() {
            let text = format!("`{}` is not an object", program.text());
            return Err(StepError::new("dataflow.not_an_object", text).for_good());
        }
    }
    Ok(Value::Object(merged))
}

fn asserted(all: &[(Program, String)], scope: &Scope) -> Computed {
    for (program, said) in all {
        let holds = program.evaluate_bool(scope).map_err(|fault| error_of(&fault))?;
        if !holds {
            return Err(StepError::new("dataflow.assertion", said.clone()).for_good());
        }
    }
    Ok(Value::Bool(true))
}

fn collected(mode: GatherMode, gather: &GatherWork, scope: &Scope, results: Vec<(u32, Value)>) -> Computed {
    let fault = |fault: Fault| error_of(&fault);
    match (mode, &gather.fold) {
        (GatherMode::Reduce, Some(fold)) => {
            let items = results.into_iter().map(|(_, value)| value).collect();
            fold.over(scope, items).map_err(fault)
        }
        (GatherMode::List | GatherMode::Reduce, _) => Ok(Value::Array(
            results.into_iter().map(|(_, value)| value).collect(),
        )),
        (GatherMode::Map, _) => {
            let mut object = Map::new();
            let mut inner = scope.clone();
            for (branch, value) in results {
                let name = match &gather.key {
                    None => branch.to_string(),
                    Some(key) => {
                        inner.set("item", &value).set("index", &json!(branch));
                        as_text(&key.evaluate(&inner).map_err(fault)?)
                    }
                };
                object.insert(name, value);
            }
            Ok(Value::Object(object))
        }
    }
}
