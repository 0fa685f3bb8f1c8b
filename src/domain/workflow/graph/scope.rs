//! What an expression of a run sees: only what it names is read.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::key::{Key, ValueName};
use super::moves::Moving;
use super::tick::View;
use crate::domain::workflow::run::StepState;
use crate::expr::{Program, Scope};

impl<V: View> Moving<'_, V> {
    /// The scope of these programs for an instance of a step.
    pub(super) fn scope<'p>(
        &mut self,
        programs: impl IntoIterator<Item = &'p Program>,
        key: &Key,
    ) -> Result<Scope, V::Error> {
        let mut wanted = Wanted::default();
        for program in programs {
            for path in program.references() {
                wanted.add(path);
            }
        }
        let mut scope = Scope::new();
        if wanted.has("input") {
            let input = self.value(&ValueName::Input)?;
            scope.set("input", input.as_deref().unwrap_or(&Value::Null));
        }
        if wanted.has("vars") {
            scope.set("vars", &json!({}));
        }
        if wanted.has("run") {
            let attempt = self.step_of(key)?.map_or(1, |step| step.attempt);
            let started_at = self.run.state.started_at().unwrap_or(self.now);
            let run = json!({"id": self.run.id.to_string(), "started_at": started_at.to_string(), "attempt": attempt});
            scope.set("run", &run);
        }
        if (wanted.has("item") || wanted.has("index"))
            && let Some((scatter, branch)) = key.around(self.graph)
        {
            if wanted.has("item") {
                let item = self.item_of(&scatter, branch)?;
                scope.set("item", &item);
            }
            scope.set("index", &json!(branch));
        }
        if wanted.all_steps {
            let names = self.graph.nodes().iter().map(|node| node.doc.name.to_string());
            wanted.steps = names.collect();
        }
        if wanted.has("steps") {
            let mut steps = Map::new();
            for name in wanted.steps {
                if let Some(seen) = self.seen_step(&name, key)? {
                    steps.insert(name, seen);
                }
            }
            scope.set("steps", &Value::Object(steps));
        }
        Ok(scope)
    }

    /// `{status, output, error}` of a step as seen from another; `None` if it is in a scatter that is not around that one.
    fn seen_step(&mut self, name: &str, from: &Key) -> Result<Option<Value>, V::Error> {
        let Some(node) = self.graph.find_text(name) else {
            return Ok(None);
        };
        if self.graph.node(node).depth > from.path.len() {
            return Ok(None);
        }
        let key = from.beside(self.graph, node);
        let state = self.step_of(&key)?;
        let status = state
            .as_ref()
            .map_or("pending", |state: &StepState| state.phase.word());
        let name = key.name(self.graph);
        let output = self.value(&ValueName::Output(name.clone()))?;
        let error = self.value(&ValueName::Error(name))?;
        let plain = |value: Option<Arc<Value>>| value.map_or(Value::Null, |value| (*value).clone());
        Ok(Some(
            json!({"status": status, "output": plain(output), "error": plain(error)}),
        ))
    }
}

/// The roots that are read.
#[derive(Default)]
struct Wanted {
    roots: BTreeSet<String>,
    /// Steps by name; everything when `steps` is read as a whole.
    steps: BTreeSet<String>,
    all_steps: bool,
}

impl Wanted {
    fn add(&mut self, path: &[String]) {
        let Some(root) = path.first() else { return };
        self.roots.insert(root.clone());
        if root == "steps" {
            match path.get(1) {
                Some(name) => drop(self.steps.insert(name.clone())),
                None => self.all_steps = true,
            }
        }
    }

    fn has(&self, root: &str) -> bool {
        self.roots.contains(root)
    }
}
