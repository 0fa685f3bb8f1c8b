//! JSON Schemas in a document: those of inputs and of checkpoints.

use serde_json::Value;

use super::levels::Map;
use crate::domain::workflow::graph::document::Document;
use crate::domain::workflow::graph::finding::Finding;
use crate::domain::workflow::graph::kinds::StepKind;
use crate::expr::schema::Schema;

pub(super) fn check(document: &Document, map: &Map<'_>, findings: &mut Vec<Finding>) {
    if let Some(schema) = &document.input_schema {
        one(schema, "/input_schema", findings);
    }
    for level in &map.levels {
        for (index, step) in level.steps.iter().enumerate() {
            if let StepKind::Checkpoint(checkpoint) = &step.kind
                && let Some(schema) = &checkpoint.schema
            {
                one(schema, &format!("{}/args/schema", level.step_at(index)), findings);
            }
        }
    }
}

fn one(schema: &Value, at: &str, findings: &mut Vec<Finding>) {
    if let Err(issues) = Schema::compile(schema) {
        let finding = |pointer: &str, message: String| {
            Finding::new(format!("{at}{pointer}"), "workflow.schema", message)
        };
        findings.extend(
            issues
                .into_iter()
                .map(|issue| finding(&issue.pointer, issue.message)),
        );
    }
}

/// What is wrong with the input of a run, by the document's own schema. The pointers lead into the input.
pub fn check_input(document: &Document, input: &Value) -> Vec<Finding> {
    let schema = document.input_schema.as_ref().map(Schema::compile);
    let Some(Ok(schema)) = schema else {
        return Vec::new();
    };
    let issues = schema.check(input).into_iter();
    issues
        .map(|issue| Finding::new(issue.pointer, "schema", issue.message))
        .collect()
}
