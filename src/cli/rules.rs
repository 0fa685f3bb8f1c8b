//! `ductor rule …`: where work goes, and who in a pool may have it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Body;
use super::declared::{
    ShowArguments, UpdateArguments, confirm, is_id, pool_id, read_fields, sentence, show_object, told,
};
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::{Show, dash};
use super::table::{Kind, Table, one_line};

/// What can be done with rules.
#[derive(Debug, Subcommand)]
pub(super) enum RuleCommand {
    /// All rules, or those of a pool, in the order in which they count.
    Ls(ListArguments),
    /// One rule.
    Show(ShowArguments),
    /// Make a rule of a file.
    #[command(after_help = "\
The file is JSON or YAML with the fields of a rule; `-` is standard input.

Example:
  echo '{\"name\": \"all\", \"expression\": \"true\", \"action\":
    {\"type\": \"select_pool\", \"pool_id\": \"019ad0e0-...\"}}' | ductor rule create -")]
    Create(CreateArguments),
    /// Change what a file says of a rule; everything else stays.
    Update(UpdateArguments),
    /// Remove a rule.
    Rm(RemoveArguments),
    /// Try a rule, or an expression, on invented work.
    #[command(after_help = "\
The input is the work, {\"kind\": \"ticket\", ...}, or the whole body of
POST /api/rules:test with its cases.

Examples:
  ductor rule test refunds --input ticket.json
  ductor rule test --expression 'work.priority < 3' --input ticket.json

Exit codes: 0 tried, 1 something else came out than a case expects.")]
    Test(TestArguments),
}

/// Arguments of `rule ls`.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArguments {
    /// Only those of this pool: its id, or its name.
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
}

/// Arguments of `rule create`.
#[derive(Debug, Clone, Args)]
pub(super) struct CreateArguments {
    /// Its fields.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Arguments of `rule rm`.
#[derive(Debug, Clone, Args)]
pub(super) struct RemoveArguments {
    /// Its id, or its name.
    #[arg(value_name = "ID")]
    id: String,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

/// Arguments of `rule test`.
#[derive(Debug, Clone, Args)]
pub(super) struct TestArguments {
    /// The rule's id, or its name.
    #[arg(value_name = "ID", conflicts_with = "expression")]
    id: Option<String>,
    /// An expression in place of a rule.
    #[arg(long, short, value_name = "TEXT")]
    expression: Option<String>,
    /// A file with the work, or with all cases: JSON or YAML.
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// The recipient that it is asked of, for rules that read one.
    #[arg(long, value_name = "ID")]
    recipient: Option<String>,
}

/// Does it.
pub(super) async fn perform(session: &Session, command: RuleCommand) -> Result<Exit, Failure> {
    match command {
        RuleCommand::Ls(arguments) => list(session, &arguments).await,
        RuleCommand::Show(arguments) => {
            let id = rule_id(session, &arguments.id).await?;
            let path = ["api", "rules", &id];
            let body = session.client.get(&path, &arguments.query()).await?;
            show_object(session, &body)
        }
        RuleCommand::Create(arguments) => {
            let given = read_fields(&arguments.file)?;
            let answer = session.client.post(&["api", "rules"], Some(&given), None).await;
            let answer = pointed(session, given.get("expression"), answer)?;
            told(session, &answer, &sentence("rule", &answer, "is there"))
        }
        RuleCommand::Update(arguments) => {
            let given = read_fields(&arguments.file)?;
            let id = rule_id(session, &arguments.id).await?;
            let path = ["api", "rules", &id];
            let changed = session.client.patch(&path, &given, arguments.expected_version);
            let answer = pointed(session, given.get("expression"), changed.await)?;
            told(session, &answer, &sentence("rule", &answer, "is so now"))
        }
        RuleCommand::Rm(arguments) => {
            let given = &arguments.id;
            let id = rule_id(session, given).await?;
            let question = format!("Remove the rule '{given}'?");
            confirm(arguments.yes, question, format!("removing '{given}'")).await?;
            let answer = session.client.delete(&["api", "rules", &id]).await?;
            told(session, &answer, &format!("rule {given} is gone"))
        }
        RuleCommand::Test(arguments) => test(session, &arguments).await,
    }
}

/// The id of a rule that is named by its id or its name.
async fn rule_id(session: &Session, given: &str) -> Result<String, Failure> {
    if is_id(given) {
        return Ok(given.to_owned());
    }
    let body = session.client.list(&["api", "rules"], &[], usize::MAX).await?;
    let named = |rule: &&Value| fields::text(rule, &["name"]).as_deref() == Some(given);
    let found = fields::items(&body.value).iter().find(named);
    found
        .and_then(|rule| fields::text(rule, &["id"]))
        .ok_or_else(|| Failure::NotFound(format!("there is no rule '{given}'; `ductor rule ls` shows all")))
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<Exit, Failure> {
    let show = &session.show;
    let mut query: Vec<(&str, String)> = Vec::new();
    if let Some(pool) = &arguments.pool {
        query.push(("pool_id", pool_id(session, pool).await?));
    }
    let body = session.client.list(&["api", "rules"], &query, usize::MAX).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let mut rules = fields::items(&body.value).to_vec();
    if rules.is_empty() {
        show.nothing("There are no such rules. `ductor rule create FILE` makes one.")?;
        return Ok(Exit::Done);
    }
    rules.sort_by_key(|rule| {
        let of = fields::text(rule, &["pool_id"]).unwrap_or_default();
        let name = fields::text(rule, &["name"]).unwrap_or_default();
        (of, priority_of(rule), name)
    });
    show.fitting(|_| rules_table(&rules))?;
    Ok(Exit::Done)
}

fn priority_of(rule: &Value) -> i64 {
    fields::number(rule, &["priority"]).unwrap_or(100)
}

fn rules_table(rules: &[Value]) -> Table {
    let mut table = Table::new(&[
        ("RULE", Kind::Whole),
        ("NAME", Kind::Name),
        ("PRIORITY", Kind::Number),
        ("DOES", Kind::Whole),
        ("STATE", Kind::State),
        ("", Kind::Below),
    ]);
    for rule in rules {
        let text = |name: &str| fields::text(rule, &[name]);
        let is_off = rule.get("enabled") == Some(&Value::Bool(false));
        let failed = fields::number(rule, &["evaluation_errors.count"]);
        let state = match failed {
            _ if is_off => "off".to_owned(),
            Some(count) => format!("failed {count}x"),
            None => "on".to_owned(),
        };
        let expression = text("expression").map_or_else(dash, |text| one_line(&text));
        table.row(&[
            text("id").unwrap_or_default(),
            text("name").map_or_else(dash, |name| one_line(&name)),
            priority_of(rule).to_string(),
            text("action.type").unwrap_or_else(dash),
            state,
            match text("evaluation_errors.last_error") {
                Some(error) => format!("{}; from {expression}", one_line(&error)),
                None => expression,
            },
        ]);
    }
    table
}

/// The body of the request: the input is the work alone, or a body with cases.
fn body_of(arguments: &TestArguments, input: Value, id: Option<String>) -> Result<Value, Failure> {
    let mut body = if input.get("cases").is_some() {
        input
    } else {
        json!({"cases": [{"work": input}]})
    };
    if let Some(expression) = &arguments.expression {
        body["expression"] = Value::from(expression.as_str());
    }
    if let Some(id) = id {
        body["rule_id"] = Value::from(id);
    }
    if body.get("expression").is_none() && body.get("rule_id").is_none() {
        let sentence = "say what to try: a rule by its id or name, or --expression TEXT";
        return Err(Failure::Usage(sentence.to_owned()));
    }
    if let (Some(recipient), Some(Value::Array(cases))) = (&arguments.recipient, body.get_mut("cases")) {
        for case in cases.iter_mut().filter(|case| case.is_object()) {
            case["recipient"] = Value::from(recipient.as_str());
        }
    }
    Ok(body)
}

async fn test(session: &Session, arguments: &TestArguments) -> Result<Exit, Failure> {
    let show = &session.show;
    let input = read_fields(&arguments.input)?;
    let id = match &arguments.id {
        Some(given) => Some(rule_id(session, given).await?),
        None => None,
    };
    let body = body_of(arguments, input, id)?;
    let answer = session
        .client
        .post(&["api", "rules:test"], Some(&body), None)
        .await;
    let answer = pointed(session, body.get("expression"), answer)?;
    let cases = fields::list(fields::data(&answer.value), &["cases"]);
    if show.json {
        show.document(&answer.text)?;
    } else {
        say(show, cases)?;
    }
    let is_missed = cases
        .iter()
        .any(|case| case.get("ok") == Some(&Value::Bool(false)));
    Ok(if is_missed { Exit::Negative } else { Exit::Done })
}

fn say(show: &Show, cases: &[Value]) -> Result<(), Failure> {
    for (index, case) in cases.iter().enumerate() {
        let head = if cases.len() > 1 {
            format!("{}. ", index + 1)
        } else {
            String::new()
        };
        show.paragraph(&format!("{head}{}", line_of(case)))?;
    }
    Ok(())
}

/// What came out of a case.
fn line_of(case: &Value) -> String {
    let text = |names: &[&str]| fields::text(case, names).filter(|text| !text.is_empty());
    let mut line = match (fields::truth(case, &["result"]), text(&["error.detail", "error"])) {
        (true, _) => "it matches".to_owned(),
        (false, Some(error)) => format!("it does not match: {error}"),
        (false, None) => match text(&["because"]) {
            Some(because) => format!("it does not match: {because}"),
            None => "it does not match".to_owned(),
        },
    };
    if case.get("ok") == Some(&Value::Bool(false)) {
        line.push_str("; that was not expected");
    }
    let steps = fields::number(case, &["steps"]).unwrap_or(0);
    let micros = fields::number(case, &["micros"]).unwrap_or(0);
    format!("{line} ({steps} steps, {micros} µs)")
}

/// Before a refusal of an expression, its line with a caret where it is wrong.
fn pointed(
    session: &Session,
    expression: Option<&Value>,
    answer: Result<Body, Failure>,
) -> Result<Body, Failure> {
    if let (Err(Failure::Problem(problem)), Some(Value::String(text))) = (&answer, expression)
        && let Some((line, column)) = problem.place_in("/expression")
        && !session.show.json
    {
        session.show.note(&caret(text, line, column));
    }
    answer
}

fn caret(text: &str, line: usize, column: usize) -> String {
    let shown = one_line(text.lines().nth(line.saturating_sub(1)).unwrap_or_default());
    format!("  {shown}\n  {}^", " ".repeat(column.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::table::assert_80;

    #[test]
    fn a_table_of_rules_fits_eighty_columns() {
        let rule = json!({"id": "019ad0e0-0021-7000-8000-00000000000a", "name": "a-name-that-is-rather-long-for-a-rule",
            "priority": 1_000_000, "action": {"type": "select_pool"}, "enabled": false,
            "expression": "work.kind == \"ticket\" && work.attributes.skill == \"billing\" && work.attributes.language == \"es\""});
        assert_80(&rules_table(&[rule]));
    }

    #[test]
    fn a_case_is_one_line_and_a_fault_has_a_caret() {
        let case = json!({"result": false, "because": "work.priority < 3 is false (priority = 5)", "steps": 3, "micros": 1, "ok": false});
        assert_eq!(
            line_of(&case),
            "it does not match: work.priority < 3 is false (priority = 5); that was not expected (3 steps, 1 µs)"
        );
        let failed =
            json!({"result": false, "error": {"code": "rule.error", "detail": "no such key"}, "because": ""});
        assert_eq!(line_of(&failed), "it does not match: no such key (0 steps, 0 µs)");
        assert_eq!(caret("a\nb == == c", 2, 6), "  b == == c\n       ^");
    }

    #[test]
    fn the_input_is_the_work_or_a_whole_body() {
        let mut arguments = TestArguments {
            id: None,
            expression: Some("true".to_owned()),
            input: PathBuf::new(),
            recipient: Some("r".to_owned()),
        };
        let body = body_of(&arguments, json!({"kind": "t"}), None).unwrap();
        assert_eq!(
            body,
            json!({"expression": "true", "cases": [{"work": {"kind": "t"}, "recipient": "r"}]})
        );
        arguments.expression = None;
        let whole = json!({"rule_id": "i", "cases": []});
        assert_eq!(body_of(&arguments, whole.clone(), None).unwrap(), whole);
        assert!(body_of(&arguments, json!({"kind": "t"}), None).is_err());
    }
}
