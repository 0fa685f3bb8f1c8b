//! Workflows on a terminal: the list, one with its steps, its versions.

use serde_json::Value;

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::{Fit, Show, dash};
use super::table::{Kind, Table};
use super::workflows::ShowArguments;

/// All workflows.
pub(super) async fn list(session: &Session) -> Result<Exit, Failure> {
    let show = &session.show;
    let body = session
        .client
        .list(&["api", "workflows"], &[], usize::MAX)
        .await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let workflows = fields::items(&body.value);
    if workflows.is_empty() {
        show.nothing("There are no workflows yet. Save one with `ductor workflow put FILE`, or write `dags:` in the configuration.")?;
        return Ok(Exit::Done);
    }
    show.fitting(|fit| list_table(workflows, show, fit))?;
    Ok(Exit::Done)
}

fn list_table(workflows: &[Value], show: &Show, fit: Fit) -> Table {
    let mut table = Table::new(&[
        ("WORKFLOW", Kind::Whole),
        ("VERSION", Kind::Number),
        ("DRAFT", Kind::Whole),
        ("FROM", Kind::Whole),
        ("UPDATED", Kind::Whole),
        ("TITLE", Kind::Sentence),
    ]);
    for workflow in workflows {
        let text = |name: &str| fields::text(workflow, &[name]).unwrap_or_default();
        let draft = if fields::truth(workflow, &["draft"]) {
            "waits".to_owned()
        } else {
            dash()
        };
        table.row(&[
            text("family_slug"),
            number(workflow, "newest_version"),
            draft,
            source_word(workflow).to_owned(),
            show.moment(fields::instant(workflow, &["updated_at"]), fit),
            Some(text("title"))
                .filter(|title| *title != text("family_slug"))
                .unwrap_or_default(),
        ]);
    }
    table
}

fn is_of_configuration(workflow: &Value) -> bool {
    fields::text(workflow, &["source"]).as_deref() == Some("configuration")
}

fn source_word(workflow: &Value) -> &'static str {
    if is_of_configuration(workflow) {
        "config"
    } else {
        "api"
    }
}

fn number(value: &Value, name: &str) -> String {
    fields::number(value, &[name]).map_or_else(dash, |number| number.to_string())
}

/// One workflow, or one version of it.
pub(super) async fn show(session: &Session, arguments: &ShowArguments) -> Result<Exit, Failure> {
    let (show, slug) = (&session.show, arguments.slug.as_str());
    let version = arguments.version.map(|version| version.to_string());
    let mut path = vec!["api", "workflows", slug];
    if let Some(version) = &version {
        path.extend(["versions", version]);
    }
    let body = session.client.get(&path, &[]).await?;
    let data = fields::data(&body.value);
    let document = data.get("document").cloned().unwrap_or_default();
    if arguments.document {
        // Of the very text only the daemon knows how it was written.
        show.data(&format!("{}\n", document_text(&body.text, &document)))?;
        return Ok(Exit::Done);
    }
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let text = |value: &Value, name: &str| fields::text(value, &[name]).unwrap_or_default();
    let title = text(&document, "title");
    let mut pairs = vec![("workflow", slug.to_owned())];
    if !title.is_empty() {
        pairs.push(("title", title));
    }
    if arguments.version.is_some() {
        pairs.push(("version", number(data, "version")));
        pairs.push(("sha256", text(data, "sha256")));
        let at = show.instant_and_distance(fields::instant(data, &["published_at"]));
        pairs.push(("published", format!("{at} by {}", text(data, "published_by"))));
        if let Some(at) = fields::instant(data, &["deprecated_at"]) {
            let by = text(data, "deprecated_by");
            pairs.push((
                "deprecated",
                format!("{} by {by}", show.instant_and_distance(Some(at))),
            ));
        }
    } else {
        let newest = number(data, "newest_version");
        let (newest, current) = (newest.as_str(), number(data, "current_version"));
        let note = if current == newest {
            String::new()
        } else if is_of_configuration(data) {
            " (disabled)".to_owned()
        } else {
            format!(" (new runs: {current})")
        };
        let draft = if fields::truth(data, &["draft"]) {
            "; a draft waits, shown below"
        } else {
            ""
        };
        pairs.push(("version", format!("{newest}{note}{draft}")));
        if is_of_configuration(data) {
            pairs.push(("from", "the configuration; change its file and reload".to_owned()));
            pairs.extend(fields::text(data, &["schedule"]).map(|when| ("schedule", when)));
            pairs.push(("sha256", text(data, "sha256")));
        }
        pairs.push((
            "updated",
            show.instant_and_distance(fields::instant(data, &["updated_at"])),
        ));
        if !is_of_configuration(data) {
            pairs.push(("record version", number(data, "record_version")));
        }
    }
    show.pairs(&pairs)?;
    show.data("\n")?;
    show.table(&steps_table(&document))?;
    Ok(Exit::Done)
}

fn steps_table(document: &Value) -> Table {
    let mut rows = Vec::new();
    step_rows(document, 0, &mut rows);
    let mut table = Table::new(&[
        ("STEP", Kind::Whole),
        ("TYPE", Kind::Whole),
        ("AFTER", Kind::Sentence),
        ("TITLE", Kind::Sentence),
    ]);
    for row in &rows {
        table.row(row);
    }
    table
}

/// The document as it was posted: the last member of the answer.
fn document_text(answer: &str, document: &Value) -> String {
    let begin = answer.find("\"document\":").map(|at| at + "\"document\":".len());
    let end = answer.trim_end().strip_suffix("}}").map(str::len);
    let text = begin.zip(end).and_then(|(begin, end)| answer.get(begin..end));
    let is_it = |text: &&str| serde_json::from_str::<Value>(text).is_ok_and(|found| found == *document);
    match text.filter(is_it) {
        Some(text) => text.trim().to_owned(),
        None => document.to_string(),
    }
}

/// The steps of a level, those of bodies below their scatter.
fn step_rows(level: &Value, depth: usize, rows: &mut Vec<[String; 4]>) {
    let edges = fields::list(level, &["edges"]);
    for step in fields::list(level, &["steps"]) {
        let text = |name: &str| fields::text(step, &[name]).unwrap_or_default();
        let name = text("ref");
        let is_target = |edge: &&Value| fields::text(edge, &["target_ref"]).as_deref() == Some(&name);
        let sources = edges.iter().filter(is_target).map(source_of);
        let sources: Vec<String> = sources.collect();
        let after = if sources.is_empty() {
            dash()
        } else {
            sources.join(", ")
        };
        let kind = text("type").trim_start_matches("STEP_TYPE_").to_ascii_lowercase();
        rows.push([
            format!("{}{name}", "  ".repeat(depth)),
            kind,
            after,
            text("title"),
        ]);
        // Requests have a body too, which is none of steps.
        let is_scatter = text("type") == "STEP_TYPE_SCATTER";
        if let Some(body) = step.pointer("/args/body").filter(|_| is_scatter) {
            let single = serde_json::json!({"steps": [body]});
            let inner = if body.get("steps").is_some() {
                body
            } else {
                &single
            };
            step_rows(inner, depth + 1, rows);
        }
    }
}

/// The source of an edge, and when it is taken unless that is the usual.
fn source_of(edge: &Value) -> String {
    let text = |name: &str| fields::text(edge, &[name]).unwrap_or_default();
    let kind = text("type");
    match kind.trim_start_matches("EDGE_TYPE_") {
        "" | "SUCCESS" => text("source_ref"),
        other => format!("{} ({})", text("source_ref"), other.to_ascii_lowercase()),
    }
}

/// The versions of a workflow.
pub(super) async fn versions(session: &Session, slug: &str) -> Result<Exit, Failure> {
    let show = &session.show;
    let body = session
        .client
        .list(&["api", "workflows", slug, "versions"], &[], usize::MAX)
        .await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let versions = fields::items(&body.value);
    if versions.is_empty() {
        show.nothing(&format!(
            "Nothing is published yet. `ductor workflow publish {slug}` makes version 1."
        ))?;
        return Ok(Exit::Done);
    }
    show.fitting(|fit| versions_table(versions, show, fit))?;
    Ok(Exit::Done)
}

fn versions_table(versions: &[Value], show: &Show, fit: Fit) -> Table {
    let mut table = Table::new(&[
        ("VERSION", Kind::Number),
        ("PUBLISHED", Kind::Whole),
        ("BY", Kind::Name),
        ("SHA256", Kind::Whole),
        ("DEPRECATED", Kind::Whole),
    ]);
    for version in versions {
        let text = |name: &str| fields::text(version, &[name]).unwrap_or_default();
        let sha256 = text("sha256");
        table.row(&[
            number(version, "version"),
            show.moment(fields::instant(version, &["published_at"]), fit),
            text("published_by"),
            sha256.get(..12).unwrap_or(&sha256).to_owned(),
            show.moment(fields::instant(version, &["deprecated_at"]), fit),
        ]);
    }
    table
}
