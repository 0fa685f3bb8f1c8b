//! The graph that a definition's document draws, and what is said of its steps where there is no run.

use std::collections::BTreeMap;

use crate::domain::workflow::graph::document::{Document, EdgeDoc, StepDoc};
use crate::domain::workflow::graph::kinds::StepKind;

use super::graph::{Edge, Graph, Node};
use super::text::Label;

/// The graph of a document; the body of a scatter stands inside of its box.
pub fn graph_of(document: &Document) -> Graph {
    graph(&document.steps, &document.edges)
}

fn graph(steps: &[StepDoc], edges: &[EdgeDoc]) -> Graph {
    let node = |step: &StepDoc| {
        let StepKind::Scatter(scatter) = &step.kind else {
            return Node::step(step.name.as_str());
        };
        Node::around(
            step.name.as_str(),
            graph(&scatter.body.steps, &scatter.body.edges),
        )
    };
    let edge = |edge: &EdgeDoc| {
        Edge::new(
            edge.source_ref.as_str(),
            edge.target_ref.as_str(),
            edge.kind.word(),
        )
    };
    Graph {
        nodes: steps.iter().map(node).collect(),
        edges: edges.iter().map(edge).collect(),
    }
}

/// All steps of a document, those of bodies after the scatter around them.
pub fn steps_of(document: &Document) -> Vec<&StepDoc> {
    fn add<'a>(steps: &'a [StepDoc], all: &mut Vec<&'a StepDoc>) {
        for step in steps {
            all.push(step);
            if let StepKind::Scatter(scatter) = &step.kind {
                add(&scatter.body.steps, all);
            }
        }
    }
    let mut all = Vec::new();
    add(&document.steps, &mut all);
    all
}

/// What a step is called: its title, else its name.
pub fn title_of(step: &StepDoc) -> &str {
    if step.title.is_empty() {
        step.name.as_str()
    } else {
        &step.title
    }
}

/// `STEP_TYPE_EVENT_SET` as people say it.
pub fn type_word(word: &str) -> String {
    let word = word.strip_prefix("STEP_TYPE_").unwrap_or(word);
    word.replace('_', " ").to_lowercase()
}

/// What is said of the steps of a definition: their titles and types.
pub fn labels_of(document: &Document) -> BTreeMap<String, Label> {
    let label = |step: &StepDoc| Label {
        mark: '○',
        title: title_of(step).to_owned(),
        word: type_word(step.kind.word()),
        note: String::new(),
    };
    steps_of(document)
        .into_iter()
        .map(|step| (step.name.as_str().to_owned(), label(step)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{draw, plain, text};
    use super::*;

    #[test]
    fn a_document_is_drawn_with_its_bodies() {
        let document: Document = serde_json::from_value(json!({
            "family_slug": "pages", "title": "Pages",
            "steps": [
                {"ref": "list", "type": "STEP_TYPE_DATAFLOW", "title": "List pages", "args": {"operation": "project", "project": {"pages": "[1, 2]"}}},
                {"ref": "each", "type": "STEP_TYPE_SCATTER", "args": {"items": "steps.list.output.pages", "body": {
                    "steps": [{"ref": "get", "type": "STEP_TYPE_TASK", "args": {"queue": "web"}}, {"ref": "rest", "type": "STEP_TYPE_WAIT", "args": {"duration": "1s"}}],
                    "edges": [{"source_ref": "get", "target_ref": "rest", "type": "EDGE_TYPE_ALWAYS"}]}}},
                {"ref": "all", "type": "STEP_TYPE_GATHER", "title": "All of them", "args": {"from": "each"}}],
            "edges": [{"source_ref": "list", "target_ref": "each"}, {"source_ref": "each", "target_ref": "all"}]
        }))
        .unwrap();
        let drawing = draw(&graph_of(&document)).unwrap();
        insta::assert_snapshot!(plain(&text(&drawing, &labels_of(&document), 80)), @r#"
    ○     List pages   dataflow
    ○     each         scatter
    │ ┆ ○ get          task
    │ ┆ ○ rest         wait      however get ends
    ○     All of them  gather
    "#);
        let parents: Vec<Option<&str>> = drawing.nodes.iter().map(|node| node.parent.as_deref()).collect();
        assert_eq!(parents, [None, None, Some("each"), Some("each"), None]);
    }
}
