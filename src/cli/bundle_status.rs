//! `ductor bundle status`: how it stands with the files that a daemon keeps in force.

use serde_json::Value;

use super::bundle::lines_of;
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::{Fit, Show, dash};
use super::table::{Kind, Table};

const NONE: &str = "\
The configuration names no bundles for this tenant. To keep a file in force:

  routing:
    bundles: [desk.yaml]";

/// Shows all; 1 when one is not as it should be.
pub(super) async fn status(session: &Session) -> Result<Exit, Failure> {
    let body = session.client.get(&["api", "routing", "bundles"], &[]).await?;
    let show = &session.show;
    let rows = fields::items(&body.value);
    let is_good = |row: &Value| matches!(word(row).as_str(), "synced" | "pending");
    if show.json {
        show.document(&body.text)?;
    } else if rows.is_empty() {
        show.nothing(NONE)?;
    } else {
        show.fitting(|fit| table_of(rows, show, fit))?;
        for row in rows.iter().filter(|row| !is_good(row)) {
            tell(show, row)?;
        }
    }
    Ok(if rows.iter().all(is_good) {
        Exit::Done
    } else {
        Exit::Negative
    })
}

fn word(row: &Value) -> String {
    fields::text(row, &["status"]).unwrap_or_default()
}

fn path(row: &Value) -> String {
    fields::text(row, &["path"]).unwrap_or_default()
}

fn table_of(rows: &[Value], show: &Show, fit: Fit) -> Table {
    let mut table = Table::new(&[
        ("BUNDLE", Kind::Sentence),
        ("FILE", Kind::Sentence),
        ("STATUS", Kind::State),
        ("SINCE", Kind::Whole),
        ("ENFORCED", Kind::Whole),
    ]);
    for row in rows {
        table.row(&[
            fields::text(row, &["name"]).unwrap_or_else(dash),
            path(row),
            word(row),
            show.moment(fields::instant(row, &["since"]), fit),
            if fields::truth(row, &["enforce"]) {
                "yes".to_owned()
            } else {
                "no".to_owned()
            },
        ]);
    }
    table
}

/// What is the matter with one, and what can be done.
fn tell(show: &Show, row: &Value) -> Result<(), Failure> {
    show.data("\n")?;
    show.paragraph(&sentence(row))?;
    for error in fields::list(row, &["errors"]) {
        show.paragraph(&format!("  {}", error_line(error)))?;
    }
    let changes = fields::list(row, &["changes"]);
    for change in changes {
        show.data(&lines_of(change))?;
    }
    let left = fields::number(row, &["differing"]).unwrap_or(0) - i64::try_from(changes.len()).unwrap_or(0);
    if left > 0 {
        show.data(&format!("and {left} more\n"))?;
    }
    Ok(())
}

fn sentence(row: &Value) -> String {
    let path = path(row);
    if word(row) == "failed" {
        return format!("{path} cannot be applied; what was declared before stays:");
    }
    match fields::text(row, &["newer.node"]) {
        Some(node) => format!(
            "{path} is older than what the daemon {node} has applied under the same name; a reload here would apply this:"
        ),
        None => format!(
            "{path}: somebody has changed what it declares. `ductor bundle apply -f {path}`, a reload or \
             `routing.enforce: true` would put back:"
        ),
    }
}

fn error_line(error: &Value) -> String {
    let text = |name: &str| fields::text(error, &[name]).unwrap_or_default();
    let place = match (
        fields::number(error, &["line"]),
        fields::number(error, &["column"]),
    ) {
        (Some(line), Some(column)) => format!("{}:{line}:{column}", text("file")),
        _ => text("file"),
    };
    format!("{place}: {}: {}", text("code"), text("detail"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::table::assert_80;

    #[test]
    fn a_table_of_bundles_fits_eighty_columns() {
        let row = json!({"name": "a-bundle-with-a-name-that-is-rather-long-for-one", "enforce": true, "status": "drifted",
            "path": "somewhere/deep/in/the/folder/of/the/configuration/desk.yaml", "since": "2026-11-30T16:00:00Z"});
        assert_80(&table_of(&[row], &Show::plain(), Fit::Least));
    }

    #[test]
    fn what_failed_has_a_place_and_what_is_older_says_whose() {
        let error = json!({"code": "field.unknown", "detail": "unknown field", "file": "desk.yaml", "line": 3, "column": 5});
        assert_eq!(error_line(&error), "desk.yaml:3:5: field.unknown: unknown field");
        let error =
            json!({"code": "bundle.unreadable", "detail": "the file does not exist", "file": "desk.yaml"});
        assert_eq!(
            error_line(&error),
            "desk.yaml: bundle.unreadable: the file does not exist"
        );
        let row = json!({"path": "desk.yaml", "status": "drifted", "newer": {"node": "b"}});
        assert!(sentence(&row).contains("older than what the daemon b has applied"));
    }
}
