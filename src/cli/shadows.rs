//! `ductor shadow …`: campaigns that say what another strategy would have decided.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::declared::{
    IdArguments, ShowArguments, UpdateArguments, confirm, is_id, pool_id, read_fields, sentence, show_object,
    told,
};
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::{Show, dash};
use super::table::{Kind, Table, one_line};

/// What can be done with shadow campaigns.
#[derive(Debug, Subcommand)]
pub(super) enum ShadowCommand {
    /// All campaigns, or those of a pool.
    Ls(ListArguments),
    /// One campaign.
    Show(ShowArguments),
    /// What a campaign has found: how often it agrees, who would have had more.
    Report(IdArguments),
    /// Make a campaign of a file.
    #[command(after_help = "\
The file is JSON or YAML with the fields of a campaign; `-` is standard input.

Example:
  echo '{\"name\": \"trial\", \"pool_id\": \"019ad0e0-...\",
    \"candidate\": {\"strategy\": \"least_utilized\"}}' | ductor shadow create -
  ductor shadow start trial")]
    Create(CreateArguments),
    /// Change what a file says of a campaign; everything else stays.
    Update(UpdateArguments),
    /// Have a campaign look at decisions. It begins to count anew.
    Start(IdArguments),
    /// Have a campaign look no more. What it has found stays.
    Stop(IdArguments),
    /// Remove a campaign with what it has found.
    Rm(RemoveArguments),
}

/// Arguments of `shadow ls`.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArguments {
    /// Only those of this pool: its id, or its name.
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    /// Only those that are so.
    #[arg(long, value_name = "STATUS", value_parser = ["draft", "running", "stopped"])]
    status: Option<String>,
}

/// Arguments of `shadow create`.
#[derive(Debug, Clone, Args)]
pub(super) struct CreateArguments {
    /// Its fields.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Arguments of `shadow rm`.
#[derive(Debug, Clone, Args)]
pub(super) struct RemoveArguments {
    /// Its id, or its name.
    #[arg(value_name = "ID")]
    id: String,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

const PATH: [&str; 2] = ["api", "shadow-campaigns"];

/// Does it.
pub(super) async fn perform(session: &Session, command: ShadowCommand) -> Result<Exit, Failure> {
    match command {
        ShadowCommand::Ls(arguments) => list(session, &arguments).await,
        ShadowCommand::Show(arguments) => {
            let id = campaign_id(session, &arguments.id).await?;
            let path = [PATH[0], PATH[1], &id];
            let body = session.client.get(&path, &arguments.query()).await?;
            show_object(session, &body)
        }
        ShadowCommand::Report(arguments) => report(session, &arguments.id).await,
        ShadowCommand::Create(arguments) => {
            let given = read_fields(&arguments.file)?;
            let answer = session.client.post(&PATH, Some(&given), None).await?;
            told(session, &answer, &sentence("campaign", &answer, "is there"))
        }
        ShadowCommand::Update(arguments) => {
            let given = read_fields(&arguments.file)?;
            patch(
                session,
                &arguments.id,
                &given,
                arguments.expected_version,
                "is so now",
            )
            .await
        }
        ShadowCommand::Start(arguments) => {
            let given = json!({"status": "running"});
            patch(session, &arguments.id, &given, None, "looks at decisions").await
        }
        ShadowCommand::Stop(arguments) => {
            let given = json!({"status": "stopped"});
            patch(session, &arguments.id, &given, None, "looks no more").await
        }
        ShadowCommand::Rm(arguments) => {
            let given = &arguments.id;
            let id = campaign_id(session, given).await?;
            let question = format!("Remove the campaign '{given}' and what it has found?");
            confirm(arguments.yes, question, format!("removing '{given}'")).await?;
            let answer = session.client.delete(&[PATH[0], PATH[1], &id]).await?;
            told(session, &answer, &format!("campaign {given} is gone"))
        }
    }
}

async fn patch(
    session: &Session,
    name: &str,
    given: &Value,
    expected: Option<u64>,
    said: &str,
) -> Result<Exit, Failure> {
    let id = campaign_id(session, name).await?;
    let path = [PATH[0], PATH[1], &id];
    let answer = session.client.patch(&path, given, expected).await?;
    told(session, &answer, &sentence("campaign", &answer, said))
}

/// The id of a campaign that is named by its id or its name.
async fn campaign_id(session: &Session, given: &str) -> Result<String, Failure> {
    if is_id(given) {
        return Ok(given.to_owned());
    }
    let body = session.client.list(&PATH, &[], usize::MAX).await?;
    let named = |campaign: &&Value| fields::text(campaign, &["name"]).as_deref() == Some(given);
    let found = fields::items(&body.value).iter().find(named);
    found
        .and_then(|campaign| fields::text(campaign, &["id"]))
        .ok_or_else(|| {
            Failure::NotFound(format!(
                "there is no campaign '{given}'; `ductor shadow ls` shows all"
            ))
        })
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<Exit, Failure> {
    let show = &session.show;
    let mut query: Vec<(&str, String)> = Vec::new();
    if let Some(pool) = &arguments.pool {
        query.push(("pool_id", pool_id(session, pool).await?));
    }
    if let Some(status) = &arguments.status {
        query.push(("status", status.clone()));
    }
    let body = session.client.list(&PATH, &query, usize::MAX).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let campaigns = fields::items(&body.value);
    if campaigns.is_empty() {
        show.nothing(if query.is_empty() {
            "There are no shadow campaigns. `ductor shadow create FILE` makes one."
        } else {
            "There are no such shadow campaigns."
        })?;
        return Ok(Exit::Done);
    }
    show.fitting(|_| campaigns_table(campaigns))?;
    Ok(Exit::Done)
}

fn campaigns_table(campaigns: &[Value]) -> Table {
    let mut table = Table::new(&[
        ("CAMPAIGN", Kind::Whole),
        ("NAME", Kind::Name),
        ("WOULD BE", Kind::Name),
        ("STATE", Kind::State),
        ("", Kind::Below),
    ]);
    for campaign in campaigns {
        let text = |name: &str| fields::text(campaign, &[name]);
        table.row(&[
            text("id").unwrap_or_default(),
            text("name").map_or_else(dash, |name| one_line(&name)),
            contender(campaign),
            text("status").unwrap_or_else(dash),
            text("stop_reason").unwrap_or_default(),
        ]);
    }
    table
}

/// What is compared with production.
fn contender(campaign: &Value) -> String {
    fields::text(campaign, &["candidate.strategy"]).unwrap_or_else(|| "a pipeline of its own".to_owned())
}

async fn report(session: &Session, given: &str) -> Result<Exit, Failure> {
    let show = &session.show;
    let id = campaign_id(session, given).await?;
    let body = session
        .client
        .get(&[PATH[0], PATH[1], &id, "report"], &[])
        .await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let campaign = session.client.get(&[PATH[0], PATH[1], &id], &[]).await?;
    let campaign = fields::data(&campaign.value);
    let report = fields::data(&body.value);
    show.paragraph(&head_of(campaign))?;
    if fields::number(report, &["n"]).unwrap_or(0) == 0 {
        let status = fields::text(campaign, &["status"]).unwrap_or_default();
        show.nothing(if status == "draft" {
            "It has looked at nothing yet. `ductor shadow start` has it begin."
        } else {
            "It has looked at nothing yet: its pool has decided nothing since."
        })?;
        return Ok(Exit::Done);
    }
    say(show, report)?;
    Ok(Exit::Done)
}

fn head_of(campaign: &Value) -> String {
    let text = |name: &str| fields::text(campaign, &[name]).unwrap_or_default();
    let reason = match text("stop_reason") {
        reason if reason.is_empty() => String::new(),
        reason => format!(": {reason}"),
    };
    format!(
        "{} would be {}. It is {}{reason}.",
        one_line(&text("name")),
        contender(campaign),
        text("status")
    )
}

fn say(show: &Show, report: &Value) -> Result<(), Failure> {
    show.paragraph(&agreement(report))?;
    let shares = fields::list(report, &["share"]);
    if !shares.is_empty() {
        show.data("\n")?;
        show.fitting(|_| shares_table(shares))?;
    }
    let reasons = fields::list(report, &["disagreements"]);
    if !reasons.is_empty() {
        show.data("\n")?;
        show.fitting(|_| reasons_table(reasons))?;
    }
    show.data("\n")?;
    show.paragraph(&worth(report))?;
    show.paragraph(&format!(
        "{}, half of its evaluations took at most {} µs, all but the slowest hundredth {} µs; {}",
        match fields::text(report, &["state_mode"]).as_deref() {
            Some("independent") => "It remembers its own choices",
            _ => "It remembers the choices of production",
        },
        fields::number(report, &["micros.p50"]).unwrap_or(0),
        fields::number(report, &["micros.p99"]).unwrap_or(0),
        fields::text(report, &["digest"]).unwrap_or_default(),
    ))?;
    Ok(())
}

fn real(value: &Value, name: &str) -> f64 {
    fields::member(value, &[name])
        .and_then(Value::as_f64)
        .unwrap_or(0.0)
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// How often it would have chosen the same.
fn agreement(report: &Value) -> String {
    let number = |name: &str| fields::number(report, &[name]).unwrap_or(0);
    let (k, n) = (number("agreement.k"), number("agreement.n"));
    let within = match fields::list(report, &["agreement.wilson95"]) {
        [low, high] => format!(
            ", at 95 % between {} and {}",
            percent(low.as_f64().unwrap_or(0.0)),
            percent(high.as_f64().unwrap_or(0.0))
        ),
        _ => String::new(),
    };
    let mut line = format!(
        "It agrees with {k} of {n} decisions: {}{within}.",
        percent(real(report, "agreement.rate"))
    );
    let nobody = real(report, "no_candidate_rate");
    if nobody > 0.0 {
        line.push_str(&format!(" It finds nobody in {}.", percent(nobody)));
    }
    let errors = number("errors");
    if errors > 0 {
        line.push_str(&format!(" {errors} evaluations failed."));
    }
    let moved = real(report, "total_variation");
    line.push_str(&format!(" {} of all work would change hands.", percent(moved)));
    line
}

fn shares_table(shares: &[Value]) -> Table {
    let mut table = Table::new(&[
        ("RECIPIENT", Kind::Name),
        ("NOW", Kind::Number),
        ("WOULD BE", Kind::Number),
        ("SHIFT", Kind::Number),
    ]);
    let mut sorted: Vec<&Value> = shares.iter().collect();
    let shift = |share: &Value| (real(share, "candidate") - real(share, "production")).abs();
    sorted.sort_by(|one, other| shift(other).total_cmp(&shift(one)));
    for share in sorted {
        let (now, then) = (real(share, "production"), real(share, "candidate"));
        table.row(&[
            fields::text(share, &["recipient", "recipient_id"]).unwrap_or_else(dash),
            percent(now),
            percent(then),
            format!("{:+.1}", (then - now) * 100.0),
        ]);
    }
    table
}

fn reasons_table(reasons: &[Value]) -> Table {
    let mut table = Table::new(&[
        ("WHY IT CHOSE ANOTHER ONE", Kind::Sentence),
        ("TIMES", Kind::Number),
    ]);
    let mut sorted: Vec<&Value> = reasons.iter().collect();
    sorted.sort_by_key(|reason| -fields::number(reason, &["count"]).unwrap_or(0));
    for reason in sorted {
        table.row(&[
            fields::text(reason, &["reason"]).unwrap_or_else(dash),
            fields::number(reason, &["count"]).unwrap_or(0).to_string(),
        ]);
    }
    table
}

/// What its choices would have been worth, or why nobody can say.
fn worth(report: &Value) -> String {
    let value = fields::member(report, &["value"]).filter(|value| value.is_object());
    match (value, fields::text(report, &["value_reason"]).as_deref()) {
        (Some(value), _) => {
            let mut line = format!(
                "Its choices would have been worth {:.3} (snips; ips {:.3}, from {:.0} comparable decisions).",
                real(value, "snips"),
                real(value, "ips"),
                real(value, "ess")
            );
            if let Some(direct) = fields::member(value, &["direct"]).filter(|direct| direct.is_object()) {
                line.push_str(&format!(
                    " Where it agrees the work was worth {:.3}, which is biased by selection.",
                    real(direct, "mean")
                ));
            }
            line
        }
        (None, Some("no_overlap")) => "no_overlap: production never draws, so it never tried what this \
            campaign would have chosen instead. Nobody can say what that would have been worth; \
            `exploration_epsilon` of the pool lets it try."
            .to_owned(),
        (None, Some("low_ess")) => {
            "low_ess: too few decisions can be compared to say what its choices would \
            have been worth; 100 are needed, with a `value` at their completion."
                .to_owned()
        }
        (None, other) => format!(
            "Its worth is not known: {}",
            other.unwrap_or("nothing was said of it")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::table::assert_80;

    fn sample() -> Value {
        json!({"n": 100, "agreement": {"k": 61, "n": 100, "rate": 0.61, "wilson95": [0.512, 0.7]},
            "no_candidate_rate": 0.02, "errors": 1, "total_variation": 0.1, "micros": {"p50": 63, "p99": 511},
            "share": [{"recipient": "a-name-that-is-rather-long-for-somebody-who-works-in-this-pool-every-day",
                "recipient_id": "r", "production": 0.5, "candidate": 0.4}],
            "value": null, "value_reason": "no_overlap", "state_mode": "mirrored", "digest": "sha256:0"})
    }

    #[test]
    fn a_report_says_how_often_it_agrees_and_who_would_have_more() {
        assert_eq!(
            agreement(&sample()),
            "It agrees with 61 of 100 decisions: 61.0 %, at 95 % between 51.2 % and 70.0 %. It finds nobody in \
             2.0 %. 1 evaluations failed. 10.0 % of all work would change hands."
        );
        assert_80(&shares_table(fields::list(&sample(), &["share"])));
        assert!(worth(&sample()).starts_with("no_overlap: production never draws"));
        let valued =
            json!({"value": {"snips": 0.5, "ips": 0.25, "ess": 120.4, "direct": {"mean": 1.0, "n": 3}}});
        assert_eq!(
            worth(&valued),
            "Its choices would have been worth 0.500 (snips; ips 0.250, from 120 comparable decisions). Where it \
             agrees the work was worth 1.000, which is biased by selection."
        );
    }

    #[test]
    fn a_table_of_campaigns_fits_eighty_columns() {
        let campaign = json!({"id": "019ad0e0-0021-7000-8000-00000000000a", "name": "a-name-that-is-rather-long",
            "candidate": {"strategy": "smooth_weighted_round_robin"}, "status": "stopped",
            "stop_reason": "the slowest hundredth takes up to 2047 microseconds, 1000 are allowed"});
        assert_80(&campaigns_table(&[campaign]));
    }
}
