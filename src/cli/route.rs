//! `ductor route …`: who gets work, and why; and the numbers of recipients, computed anew.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Body;
use super::declared::pool_id;
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::{Show, dash};
use super::table::{Kind, Table};
use super::workflow_dry::read_input;

/// What can be done with decisions.
#[derive(Debug, Subcommand)]
pub(super) enum RouteCommand {
    /// Decide who gets work, and give it to them.
    #[command(after_help = "\
The file is the work, {\"kind\": \"ticket\", ...}, or the whole body of
POST /api/route. Exits 1 when nobody got it.

Examples:
  ductor route decide --input ticket.json
  ductor route decide --input ticket.json --to-pool billing-desk")]
    Decide(RouteArguments),
    /// Decide the same way and write nothing.
    Test(RouteArguments),
    /// A decision, with the reason of each recipient.
    Show(ShowArguments),
}

/// What is done with live routing as a whole.
#[derive(Debug, Subcommand)]
pub(super) enum RoutingCommand {
    /// Compute the numbers of all recipients anew, and put right what differs.
    #[command(after_help = "Exits 1 when something differed.")]
    Reconcile,
}

/// Arguments of `route decide` and `route test`.
#[derive(Debug, Clone, Args)]
pub(super) struct RouteArguments {
    /// A file with the work: JSON or YAML.
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Skip the rules and route within this pool: its id, or its name.
    #[arg(long = "to-pool", value_name = "POOL")]
    to_pool: Option<String>,
}

/// Arguments of `route show`.
#[derive(Debug, Clone, Args)]
pub(super) struct ShowArguments {
    /// The decision's id.
    #[arg(value_name = "DECISION")]
    id: String,
    /// `winners`, `first` or `all`.
    #[arg(long, value_name = "HOW", default_value = "first")]
    explain: String,
}

/// Does it.
pub(super) async fn perform(session: &Session, command: &RouteCommand) -> Result<Exit, Failure> {
    match command {
        RouteCommand::Decide(arguments) => decide(session, arguments, false).await,
        RouteCommand::Test(arguments) => decide(session, arguments, true).await,
        RouteCommand::Show(arguments) => {
            let query = [("explain", arguments.explain.clone())];
            let path = ["api", "decisions", &arguments.id];
            let body = session.client.get(&path, &query).await?;
            say(&session.show, &body)?;
            Ok(Exit::Done)
        }
    }
}

/// Does it.
pub(super) async fn routing(session: &Session, command: &RoutingCommand) -> Result<Exit, Failure> {
    match command {
        RoutingCommand::Reconcile => reconcile(session).await,
    }
}

async fn decide(session: &Session, arguments: &RouteArguments, dry_run: bool) -> Result<Exit, Failure> {
    let input = read_input(&arguments.input)?;
    let mut body = if input.get("work").is_some() {
        input
    } else {
        json!({"work": input})
    };
    if let Some(pool) = &arguments.to_pool {
        body["pool_id"] = Value::from(pool_id(session, pool).await?);
    }
    if dry_run {
        body["dry_run"] = Value::from(true);
    }
    let answer = session.client.post(&["api", "route"], Some(&body), None).await?;
    say(&session.show, &answer)?;
    let winners = fields::list(fields::data(&answer.value), &["winners"]);
    let outcome = fields::text(fields::data(&answer.value), &["outcome"]).unwrap_or_default();
    let is_offered = ["offered", "queued_for_claim"].contains(&outcome.as_str());
    Ok(if winners.is_empty() && !is_offered {
        Exit::Negative
    } else {
        Exit::Done
    })
}

fn say(show: &Show, body: &Body) -> Result<(), Failure> {
    if show.json {
        return show.document(&body.text);
    }
    let decision = fields::data(&body.value);
    let text = |names: &[&str]| fields::text(decision, names).unwrap_or_else(dash);
    show.paragraph(&text(&["summary"]))?;
    let id = if fields::truth(decision, &["committed"]) {
        text(&["id"])
    } else {
        "none: nothing was written".to_owned()
    };
    let mut pairs = vec![
        ("decision", id),
        ("outcome", text(&["outcome"])),
        ("pool", pool_of(decision)),
    ];
    if let Some(closest) = closest(decision) {
        pairs.push(("closest", closest));
    }
    show.pairs(&pairs)?;
    let candidates = decision
        .pointer("/explanation/candidates")
        .and_then(Value::as_array);
    let candidates = candidates.map(Vec::as_slice).unwrap_or_default();
    if !candidates.is_empty() {
        show.fitting(|_| table(candidates, show.width().is_some()))?;
    }
    Ok(())
}

fn pool_of(decision: &Value) -> String {
    fields::member(decision, &["pool"])
        .and_then(|pool| fields::text(pool, &["name"]))
        .unwrap_or_else(dash)
}

/// Who had it nearly, and what was missing.
fn closest(decision: &Value) -> Option<String> {
    let miss = decision.pointer("/explanation/nearest_miss")?;
    let name = fields::text(miss, &["recipient"])?;
    let lacks = fields::text(miss, &["would_win_if"])?;
    Some(format!("{name}: {lacks}"))
}

/// The place of a verdict: whoever has it comes first, and who might have had it before who may not.
fn rank(candidate: &Value) -> u8 {
    match candidate.get("verdict").and_then(Value::as_str) {
        Some("won") => 0,
        Some("lost") => 1,
        _ => 2,
    }
}

/// Columns of a name beside its reason, which matters more.
const NAME_CHARS_MAX: usize = 28;

/// `is_narrow`: it goes to a terminal.
fn table(candidates: &[Value], is_narrow: bool) -> Table {
    let mut table = Table::new(&[
        ("RECIPIENT", Kind::Name),
        ("VERDICT", Kind::Whole),
        ("REASON", Kind::Sentence),
    ]);
    let mut ordered: Vec<&Value> = candidates.iter().collect();
    ordered.sort_by_key(|candidate| rank(candidate));
    for candidate in ordered {
        let mut name = fields::text(candidate, &["recipient"]).unwrap_or_default();
        if is_narrow && name.chars().count() > NAME_CHARS_MAX {
            name = name.chars().take(NAME_CHARS_MAX - 1).collect::<String>() + "…";
        }
        table.row(&[
            name,
            fields::text(candidate, &["verdict"]).unwrap_or_default(),
            reason(candidate).unwrap_or_else(dash),
        ]);
    }
    table
}

/// The code, and what it says of numbers and values.
fn reason(candidate: &Value) -> Option<String> {
    let reason = candidate.get("reason")?.as_object()?;
    let code = reason.get("code")?.as_str()?;
    let parameters: Vec<String> = reason
        .iter()
        .filter(|(name, value)| *name != "code" && !value.is_null())
        .map(|(name, value)| match value.as_str() {
            Some(text) => format!("{name} {text}"),
            None => format!("{name} {value}"),
        })
        .collect();
    Some(if parameters.is_empty() {
        code.to_owned()
    } else {
        format!("{code} ({})", parameters.join(", "))
    })
}

async fn reconcile(session: &Session) -> Result<Exit, Failure> {
    let show = &session.show;
    let answer = session
        .client
        .post(&["api", "routing:reconcile"], None, None)
        .await?;
    let data = fields::data(&answer.value);
    let differing = fields::list(data, &["differences"]);
    if show.json {
        show.document(&answer.text)?;
    } else {
        let recipients = fields::number(data, &["recipients"]).unwrap_or(0);
        for one in differing {
            let id = fields::text(one, &["recipient_id"]).unwrap_or_default();
            let (said, real) = (one["stored"].to_string(), one["real"].to_string());
            show.data(&format!("{id}: said {said}, its assignments are {real}\n"))?;
        }
        show.data(&match differing.len() {
            0 => format!("{recipients} recipients: all numbers agree with their assignments\n"),
            count => format!("{recipients} recipients: the numbers of {count} were put right\n"),
        })?;
    }
    Ok(if differing.is_empty() {
        Exit::Done
    } else {
        Exit::Negative
    })
}

#[cfg(test)]
mod tests {
    use super::super::table::Place;
    use super::*;

    #[test]
    fn winners_come_first_and_a_long_name_leaves_room_for_its_reason() {
        let long = "a name that is longer than anybody reads in a table of a terminal";
        let reason = json!({"code": "capacity.concurrent", "current": 5, "max": 5});
        let candidates = [
            json!({"recipient": long, "verdict": "rejected", "reason": reason}),
            json!({"recipient": "b", "verdict": "lost", "reason": {"code": "lost.turn"}}),
            json!({"recipient": "c", "verdict": "won"}),
        ];
        let place = Place {
            width: Some(80),
            colour: false,
            titles: false,
        };
        let text = table(&candidates, true).render(place);
        let firsts: Vec<&str> = text.lines().filter_map(|line| line.split("  ").next()).collect();
        assert_eq!(firsts, ["c", "b", "a name that is longer than …"]);
        assert!(text.contains("capacity.concurrent (current 5, max 5)"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn who_had_it_nearly_is_told_with_what_was_missing() {
        let miss = json!({"recipient": "Kim", "would_win_if": "one more pick: its turn is next"});
        let decision = json!({"explanation": {"nearest_miss": miss}});
        assert_eq!(
            closest(&decision).unwrap(),
            "Kim: one more pick: its turn is next"
        );
        assert_eq!(closest(&json!({"explanation": {"nearest_miss": null}})), None);
    }

    #[test]
    fn a_reason_is_one_line() {
        let candidate = json!({"reason": {"code": "capacity.concurrent", "current": 5, "max": 5}});
        assert_eq!(
            reason(&candidate).unwrap(),
            "capacity.concurrent (current 5, max 5)"
        );
        assert_eq!(
            reason(&json!({"reason": {"code": "excluded"}})).unwrap(),
            "excluded"
        );
        assert_eq!(reason(&json!({"verdict": "won"})), None);
    }
}
