//! All runs that a filter matches: what would be done is shown, agreed to, and done if it is still the same.

use std::io::{BufRead, IsTerminal};

use serde_json::{Map, Value, json};

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::filter::Filter;
use super::run_view::{id_of, job_of, state_of};
use super::session::Session;
use super::show::{Fit, Show, write_stderr};
use super::table::{Kind, Table};
use crate::domain::workflow::bulk::BulkWish;

/// Does it with all that match.
pub(super) async fn perform(
    session: &Session,
    wish: BulkWish,
    filter: &str,
    yes: bool,
) -> Result<Exit, Failure> {
    let show = &session.show;
    let filter = Filter::read(filter, show.face(), show.now()).and_then(|filter| filter.narrowed(wish));
    let filter = filter.map_err(|error| Failure::Usage(format!("--where: {error}")))?;
    let (words, path): (&'static Words, _) = match wish {
        BulkWish::Cancel => (&CANCEL, ["api", "runs:cancel_matching"]),
        BulkWish::Retry => (&RETRY, ["api", "runs:retry_matching"]),
    };
    let mut body = json!({"filter": object_of(&filter), "preview": true});
    let preview = session.client.post(&path, Some(&body), None).await?;
    let preview = fields::data(&preview.value);
    let count = fields::number(preview, &["count"]).unwrap_or_default();
    if preview["truncated"] == true {
        return Err(Failure::Conflict(format!(
            "{count} runs and more are like that, too many at once; narrow the filter, by since: or job: for one"
        )));
    }
    if count == 0 {
        show.nothing(words.none)?;
        return Ok(Exit::Done);
    }
    if !yes {
        if !show.json {
            show.fitting(|fit| table(preview, fit))?;
            show.note(&plan(words, preview, count));
        }
        ask(words, count).await?;
    }
    body["preview"] = Value::Bool(false);
    body["expected_count"] = Value::from(count);
    let answer = session.client.post(&path, Some(&body), None).await?;
    if show.json {
        show.document(&answer.text)?;
    } else {
        tell(show, fields::data(&answer.value))?;
    }
    let refused = fields::number(fields::data(&answer.value), &["refused_count"]);
    // What ended between the look and the cancel is as wanted.
    Ok(
        if wish == BulkWish::Retry && refused.is_some_and(|refused| refused > 0) {
            Exit::Conflict
        } else {
            Exit::Done
        },
    )
}

/// How it is called.
#[derive(Debug)]
pub(super) struct Words {
    imperative: &'static str,
    gerund: &'static str,
    none: &'static str,
}

pub(super) const CANCEL: Words = Words {
    imperative: "Cancel",
    gerund: "cancelling",
    none: "No run that waits or runs is like that.",
};
const RETRY: Words = Words {
    imperative: "Retry",
    gerund: "retrying",
    none: "No run that failed, was cancelled or waits for its next attempt is like that.",
};

/// The filter as the body of a request has it.
fn object_of(filter: &Filter) -> Value {
    let mut object = Map::new();
    for (key, value) in filter.query() {
        if let Value::Array(values) = object.entry(key).or_insert_with(|| json!([])) {
            values.push(Value::from(value));
        }
    }
    Value::Object(object)
}

fn table(preview: &Value, fit: Fit) -> Table {
    let job = if fit == Fit::Wide { Kind::Whole } else { Kind::Name };
    let mut table = Table::new(&[
        ("RUN", Kind::Whole),
        ("JOB", job),
        ("STATE", Kind::State),
        ("", Kind::Sentence),
    ]);
    for run in fields::list(preview, &["sample"]) {
        let action = match fields::text(run, &["action"]).as_deref() {
            Some("retry") => "next attempt now",
            Some("rerun") => "new run",
            Some("retry_failed") => "what failed, as a new run",
            Some("collapsed") => "left alone",
            Some(_) | None => "",
        };
        table.row(&[id_of(run), job_of(run), state_of(run), action.to_owned()]);
    }
    table
}

/// What is not in the table.
fn plan(words: &Words, preview: &Value, count: i64) -> String {
    let shown = i64::try_from(fields::list(preview, &["sample"]).len()).unwrap_or(count);
    let mut lines = Vec::new();
    if shown < count {
        lines.push(format!("and {} more", count - shown));
    }
    let number = |name: &str| fields::number(preview, &[name]).unwrap_or_default();
    if words.gerund == RETRY.gerund {
        let deeds = [
            (
                "retry",
                "run takes its next attempt now",
                "runs take their next attempt now",
            ),
            ("rerun", "job starts anew", "jobs start anew"),
            (
                "retry_failed",
                "workflow run is tried again where it failed",
                "workflow runs are tried again where they failed",
            ),
        ];
        let said = deeds.into_iter().filter(|(name, _, _)| number(name) > 0);
        let said: Vec<String> = said
            .map(|(name, one, many)| counted(number(name), one, many))
            .collect();
        lines.extend((!said.is_empty()).then(|| said.join(", ")));
        if number("collapsed") > 0 {
            let runs = counted(number("collapsed"), "run is", "runs are");
            lines.push(format!("{runs} left alone: another run stands for each"));
        }
    }
    lines.join("\n")
}

fn counted(count: i64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn tell(show: &Show, done: &Value) -> Result<(), Failure> {
    let number = |name: &str| fields::number(done, &[name]).unwrap_or_default();
    for (name, one, many) in [
        ("cancelled", "run cancelled", "runs cancelled"),
        (
            "retried",
            "run takes its next attempt",
            "runs take their next attempt",
        ),
        ("rerun", "job started anew", "jobs started anew"),
        (
            "retried_failed",
            "workflow run tried again where it failed",
            "workflow runs tried again where they failed",
        ),
    ] {
        let count = number(name);
        if count > 0 {
            let ending = match number("ending") {
                0 => String::new(),
                ending if name == "cancelled" => format!(", {ending} of them still ending"),
                _ => String::new(),
            };
            show.data(&format!("{}{ending}\n", counted(count, one, many)))?;
        }
    }
    for begun in fields::list(done, &["begun"]) {
        show.data(&format!("{} {}\n", id_of(begun), job_of(begun)))?;
    }
    for refused in fields::list(done, &["refused"]) {
        let why = fields::text(refused, &["reason"]).unwrap_or_default();
        show.note(&format!("{}: {why}", id_of(refused)));
    }
    let listed = i64::try_from(fields::list(done, &["refused"]).len()).unwrap_or_default();
    if number("refused_count") > listed {
        show.note(&format!(
            "and {} more that moved on",
            number("refused_count") - listed
        ));
    }
    Ok(())
}

/// Asks whether it is meant; without a terminal nobody can be asked.
pub(super) async fn ask(words: &'static Words, count: i64) -> Result<(), Failure> {
    // Not on the thread that hears Ctrl-C.
    let asked = tokio::task::spawn_blocking(move || confirm(words, count)).await;
    asked.map_err(|error| Failure::Negative(error.to_string()))?
}

fn confirm(words: &Words, count: i64) -> Result<(), Failure> {
    let what = if count == 1 {
        "this run".to_owned()
    } else {
        format!("these {count} runs")
    };
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(format!(
            "{} {what} needs --yes where nobody can be asked",
            words.gerund
        )));
    }
    write_stderr(format!("{} {what}? [y/N] ", words.imperative).as_bytes());
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).ok();
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(Failure::Negative("nothing was done".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::assert_80;
    use super::super::times::Clockface;
    use super::*;
    use crate::words::time::Millis;

    #[test]
    fn a_filter_becomes_an_object() {
        let filter = Filter::read("job:b job:a state:failed", &Clockface::utc(), Millis(0)).unwrap();
        assert_eq!(
            object_of(&filter),
            json!({"state": ["failed"], "job": ["a", "b"]})
        );
    }

    #[test]
    fn what_would_be_done_is_said() {
        let run = json!({"id": "run_01kb7v0n3gf5tb2h6m8w9x4yza", "job": "nightly-backup-of-all-shops",
            "state": "cancelled", "action": "collapsed"});
        let preview =
            json!({"count": 8, "sample": [run], "retry": 1, "rerun": 2, "retry_failed": 3, "collapsed": 2});
        assert_80(&table(&preview, Fit::Narrow));
        assert_eq!(
            plan(&RETRY, &preview, 8),
            "and 7 more\n1 run takes its next attempt now, 2 jobs start anew, \
             3 workflow runs are tried again where they failed\n2 runs are left alone: another run stands for each"
        );
        assert_eq!(plan(&CANCEL, &preview, 1), "");
    }
}
