//! What is asked of a graph where a run of it is accepted: whether its input is good, its share, its place among others.

use serde_json::Value;

use super::build::Graph;
use super::key_limit::{self, KeyPlace};
use super::template::as_text;
use crate::expr::schema::{Issue, Schema};
use crate::expr::{Fault, Scope};
use crate::words::limits;

impl Graph {
    /// To which share of its tier a run with this input belongs; the empty one unless the definition says otherwise.
    pub fn share_of(&self, input: &Value) -> Result<String, Fault> {
        let Some(program) = &self.share else {
            return Ok(String::new());
        };
        let mut scope = Scope::new();
        scope.set("input", input);
        let text = as_text(&program.evaluate(&scope)?);
        Ok(text.chars().take(limits::FAIRNESS_KEY_CHARS_MAX).collect())
    }

    /// The place that a run with this input needs, if the definition limits its runs; or why its key has no value.
    pub fn key_place_of(&self, input: &Value) -> Result<Option<KeyPlace>, String> {
        let Some(doc) = &self.document.concurrency else {
            return Ok(None);
        };
        let key = match &self.limit_key {
            None => String::new(),
            Some(program) => {
                let mut scope = Scope::new();
                scope.set("input", input);
                let value = program.evaluate(&scope).map_err(|fault| fault.message)?;
                key_limit::text_of(&value)?
            }
        };
        Ok(Some(key_limit::place(doc, key)))
    }

    /// What is wrong with an input, by the schema of the definition.
    pub fn input_issues(&self, input: &Value) -> Vec<Issue> {
        let Some(schema) = &self.document.input_schema else {
            return Vec::new();
        };
        match self.input_schema.get_or_init(|| Schema::compile(schema)) {
            Ok(schema) => schema.check(input),
            Err(issues) => issues.clone(),
        }
    }
}
