//! `ductor run graph` and `ductor workflow graph`: the daemon's picture as text, a line for each step.

use std::collections::BTreeMap;

use anstyle::Style;
use clap::Args;
use serde_json::Value;

use super::client::Body;
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::Show;
use super::table::state_style;
use crate::domain::layout::{self, Drawing, Label, Line, Placed, Point, TextLine, mark_of, type_word};

/// Where nobody says how wide it may be.
const WIDTH: usize = 80;

pub(super) const RUN_EXAMPLES: &str = "\
Read it from top to bottom. A mark says how its step stands: ✓ succeeded,
✗ failed, ● running, ◷ waiting or queued, ↻ retrying, » skipped, ■ cancelled,
○ not begun. The steps of a scatter's body stand below it, with counts.

Examples:
  ductor run graph run_01…
  watch ductor run graph run_01…";

pub(super) const WORKFLOW_EXAMPLES: &str = "\
Examples:
  ductor workflow graph hello-world
  ductor workflow graph hello-world --version 2
  ductor workflow graph hello-world --version draft";

/// Arguments of `workflow graph`.
#[derive(Debug, Clone, Args)]
pub(super) struct GraphArguments {
    /// The workflow's name (`family_slug`), or the name of a dag.
    #[arg(value_name = "SLUG")]
    slug: String,
    /// A version, or `draft`; without it the draft if there is one, else the newest.
    #[arg(long, value_name = "N")]
    version: Option<String>,
}

/// The graph of a run as it stands.
pub(super) async fn of_run(session: &Session, id: &str) -> Result<Exit, Failure> {
    let body = session.client.get(&["api", "runs", id, "graph"], &[]).await?;
    shown(&session.show, &body)
}

/// The graph of a workflow.
pub(super) async fn of_workflow(session: &Session, arguments: &GraphArguments) -> Result<Exit, Failure> {
    let version = arguments.version.iter();
    let query: Vec<_> = version.map(|version| ("version", version.clone())).collect();
    let path = ["api", "workflows", arguments.slug.as_str(), "graph"];
    let body = session.client.get(&path, &query).await?;
    shown(&session.show, &body)
}

fn shown(show: &Show, body: &Body) -> Result<Exit, Failure> {
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let picture = fields::data(&body.value);
    let lines = lines_of(picture, show.width().unwrap_or(WIDTH));
    if lines.is_empty() {
        show.nothing("There are no steps yet.")?;
        return Ok(Exit::Done);
    }
    show.data(&painted(&lines, &|text, style| show.painted(text, style)))?;
    Ok(Exit::Done)
}

/// The picture of an answer in lines of at most `width` columns.
fn lines_of(picture: &Value, width: usize) -> Vec<TextLine> {
    let nodes = fields::list(picture, &["nodes"]);
    let labels: BTreeMap<String, Label> = nodes
        .iter()
        .map(|node| (text(node, "ref"), label_of(node)))
        .collect();
    layout::text(&drawing_of(picture, nodes), &labels, width)
}

fn text(value: &Value, name: &str) -> String {
    fields::text(value, &[name]).unwrap_or_default()
}

fn number(value: &Value, name: &str) -> i64 {
    fields::number(value, &[name]).unwrap_or_default()
}

fn drawing_of(picture: &Value, nodes: &[Value]) -> Drawing {
    let node = |node: &Value| Placed {
        key: text(node, "ref"),
        x: number(node, "x"),
        y: number(node, "y"),
        width: number(node, "width"),
        height: number(node, "height"),
        parent: fields::text(node, &["parent"]),
        folded: usize::try_from(number(node, "folded")).unwrap_or(0),
    };
    let point = |point: &Value| Point {
        x: point[0].as_i64().unwrap_or_default(),
        y: point[1].as_i64().unwrap_or_default(),
    };
    let line = |edge: &Value| Line {
        from: text(edge, "source_ref"),
        to: text(edge, "target_ref"),
        kind: text(edge, "type"),
        points: fields::list(edge, &["points"]).iter().map(point).collect(),
    };
    Drawing {
        nodes: nodes.iter().map(node).collect(),
        lines: fields::list(picture, &["edges"]).iter().map(line).collect(),
        width: number(picture, "width"),
        height: number(picture, "height"),
    }
}

fn label_of(node: &Value) -> Label {
    let state = fields::text(node, &["state"]);
    Label {
        mark: mark_of(state.as_deref().unwrap_or_default()),
        title: text(node, "title"),
        // Where there is no state, it is a workflow's, or a step that the run did not come to.
        word: state.unwrap_or_else(|| type_word(&text(node, "type"))),
        note: node.get("branches").map(counts).unwrap_or_default(),
    }
}

/// `7 of 10 done, 1 failed, 2 running`.
fn counts(branches: &Value) -> String {
    if branches.is_null() {
        return String::new();
    }
    let [total, succeeded, failed, running] =
        ["total", "succeeded", "failed", "running"].map(|name| number(branches, name));
    let mut said = format!("{} of {total} done", succeeded + failed);
    for (count, word) in [(failed, "failed"), (running, "running")] {
        if count > 0 {
            said.push_str(&format!(", {count} {word}"));
        }
    }
    said
}

/// The lines with the colours of their states.
fn painted(lines: &[TextLine], paint: &dyn Fn(&str, Style) -> String) -> String {
    let (plain, dim) = (Style::new(), Style::new().dimmed());
    let mut whole = String::new();
    for line in lines {
        let state = state_style(line.word.trim_end());
        let mark = line.mark.map(String::from).unwrap_or_default();
        let parts = [
            (line.before.as_str(), dim),
            (&mark, state),
            (&line.after, dim),
            (&line.title, plain),
            (&line.word, state),
            (&line.note, dim),
        ];
        // Nothing stands at the end of a line that cannot be seen.
        let last = parts.iter().rposition(|(text, _)| !text.trim_end().is_empty());
        for (at, (text, style)) in parts.iter().enumerate().take(last.map_or(0, |last| last + 1)) {
            let text = if Some(at) == last { text.trim_end() } else { text };
            if style == &plain || text.trim().is_empty() {
                whole.push_str(text);
            } else {
                whole.push_str(&paint(text, *style));
            }
        }
        whole.push('\n');
    }
    whole
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, x: i64, state: &Value) -> Value {
        json!({"ref": name, "title": name.to_uppercase(), "type": "STEP_TYPE_COMMAND", "x": x, "y": 0,
            "width": 184, "height": 48, "parent": null, "folded": 0, "state": state, "branches": null})
    }

    fn picture() -> Value {
        let mut each = node("each", 300, &json!("running"));
        each["branches"] = json!({"total": 10, "succeeded": 6, "failed": 1, "running": 2});
        json!({"width": 900, "height": 48, "nodes": [node("fetch", 0, &json!("succeeded")), each, node("last", 600, &json!(null))],
            "edges": [{"source_ref": "fetch", "target_ref": "each", "type": "EDGE_TYPE_SUCCESS", "points": [[184, 24], [300, 24]], "taken": true},
                {"source_ref": "each", "target_ref": "last", "type": "EDGE_TYPE_FAILURE", "points": [[484, 24], [600, 24]], "taken": null}]})
    }

    #[test]
    fn an_answer_becomes_lines() {
        let lines = lines_of(&picture(), 80);
        let plain = painted(&lines, &|text, _| text.to_owned());
        assert_eq!(plain, layout::plain(&lines));
        assert_eq!(
            plain,
            "✓ FETCH  succeeded\n● EACH   running    7 of 10 done, 1 failed, 2 running\n○ LAST   command    if each fails\n"
        );
    }

    #[test]
    fn only_states_and_what_is_beside_the_point_are_coloured() {
        let lines = lines_of(&picture(), 40);
        let marked = painted(&lines, &|text, style| {
            let is_dim = style == Style::new().dimmed();
            format!("{}{text}>", if is_dim { "<dim " } else { "<" })
        });
        let first = marked.lines().next().unwrap();
        assert_eq!(first, "<✓> FETCH  <succeeded>");
        assert!(marked.contains("<dim   7 of 10"), "{marked}");
        for line in layout::plain(&lines).lines() {
            assert!(line.chars().count() <= 40, "{line}");
        }
    }
}
