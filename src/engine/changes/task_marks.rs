//! What the command of a graph's step is told about its place: the graph, the step, and in a branch the item it is for.

use serde_json::Value;

use super::fold;
use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::graph::document::StepDoc;
use crate::domain::workflow::graph::items::Items;
use crate::domain::workflow::graph::key::ValueName;
use crate::domain::workflow::graph::kinds::StepKind;
use crate::domain::workflow::run::Run;
use crate::store::Rows;
use crate::store::blobs::Blobs;
use crate::words::limits;
use crate::words::names::StepRef;

/// The variables; nothing for a job. The error is a sentence for people.
pub fn marks(
    rows: &mut impl Rows,
    blobs: &Blobs,
    definition: &Definition,
    (run, step): (&Run, &StepRef),
) -> Result<Vec<(String, String)>, String> {
    let Some(document) = &definition.graph else {
        return Ok(Vec::new());
    };
    let mut marks = vec![
        ("DUCTOR_DAG".to_owned(), run.definition.to_string()),
        ("DUCTOR_TASK".to_owned(), step.to_string()),
    ];
    let place = step.split_instance();
    let Some((name, path)) = place.filter(|(_, path)| !path.is_empty()) else {
        return Ok(marks);
    };
    let (Some(scatter), Some((branch, outer))) = (around(&document.steps, &name, None), path.split_last())
    else {
        return Ok(marks);
    };
    let item = item_of(rows, blobs, run, &scatter.instance(outer), *branch)?;
    let text = match &item {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            item.to_string()
        }
    };
    if text.len() > limits::ITEM_VARIABLE_BYTES_MAX {
        let most = limits::ITEM_VARIABLE_BYTES_MAX / 1024;
        return Err(format!(
            "item {branch} is longer than the {most} KiB that DUCTOR_ITEM holds"
        ));
    }
    if text.contains('\0') {
        return Err(format!(
            "item {branch} has a NUL character, which no variable can hold"
        ));
    }
    marks.push(("DUCTOR_INDEX".to_owned(), branch.to_string()));
    marks.push(("DUCTOR_ITEM".to_owned(), text));
    Ok(marks)
}

fn item_of(
    rows: &mut impl Rows,
    blobs: &Blobs,
    run: &Run,
    scatter: &StepRef,
    branch: u32,
) -> Result<Value, String> {
    let mut value = |name: ValueName| {
        fold::value_of(rows, blobs, run.id, &name)
            .map_err(|error| format!("its item cannot be read: {error}"))
    };
    let items = value(ValueName::Items(scatter.clone()))?;
    let items = items.as_deref().map(Items::read).unwrap_or_default();
    let (page, place) = items.place(branch);
    let page = value(ValueName::ItemPage(scatter.clone(), page))?;
    let item = page.as_deref().and_then(|page| page.get(place));
    item.cloned().ok_or_else(|| format!("there is no item {branch}"))
}

/// The scatter in whose body the step is.
fn around(steps: &[StepDoc], wanted: &StepRef, scatter: Option<&StepRef>) -> Option<StepRef> {
    for step in steps {
        if step.name == *wanted {
            return scatter.cloned();
        }
        if let StepKind::Scatter(inner) = &step.kind
            && let Some(found) = around(&inner.body.steps, wanted, Some(&step.name))
        {
            return Some(found);
        }
    }
    None
}
