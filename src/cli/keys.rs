//! `ductor key …`, `ductor tenant …`, `ductor audit …`: who may call, who shares the daemon, and who did what.

use std::io::{BufRead, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::{Fit, Show, dash, write_stderr};
use super::table::{Kind, Table, one_line};
use super::workflows::told;
use crate::words::time::{parse_instant, read_length};

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Make a key. It is printed this once; nobody can read it again.
    #[command(after_help = "\
The first key must hold `admin`; with it every request needs a key. It can be
made while the daemon listens on this machine alone.

Scopes: <noun>:<read|write|delete>, like job:write; `*:read`; `admin`.

Examples:
  ductor key create admin --scope admin --to ~/.ductor.key
  ductor key create deploys --scope workflow:write --scope run:write
  ductor key create board --scope '*:read' --expires 90d")]
    Create(CreateArguments),
    /// All keys, without their secrets.
    Ls(ListArguments),
    /// End a key, and the sessions that were begun with it, at once.
    Revoke(RevokeArguments),
}

/// Arguments of `key create`.
#[derive(Debug, Clone, Args)]
pub(super) struct CreateArguments {
    /// What it is for.
    #[arg(value_name = "NAME")]
    name: String,
    /// What it may do; several times for several.
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<String>,
    /// When it ends by itself: a length (90d) or an instant.
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// Whose key, where you look after several tenants.
    #[arg(long = "for-tenant", value_name = "NAME")]
    for_tenant: Option<String>,
    /// Write it to this new file, which you alone can read, and not to the terminal.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// Arguments of `key ls`.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArguments {
    /// Whose keys, where you look after several tenants.
    #[arg(long = "for-tenant", value_name = "NAME")]
    for_tenant: Option<String>,
}

/// Arguments of `key revoke`.
#[derive(Debug, Clone, Args)]
pub(super) struct RevokeArguments {
    /// The id that `key ls` shows, or the name of a valid key.
    #[arg(value_name = "ID")]
    id: String,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

/// What can be done with tenants.
#[derive(Debug, Subcommand)]
pub(super) enum TenantCommand {
    /// Tenants, and how many keys each has.
    Ls,
    /// Make a tenant; `key create --for-tenant` makes its first key.
    Create(TenantArguments),
    /// Change how the work of a tenant is routed.
    #[command(after_help = "\
Examples:
  ductor tenant set acme --default-pool support
  ductor tenant set acme --no-default-pool --pipeline-mode inherit")]
    Set(SetArguments),
}

/// Arguments of `tenant set`.
#[derive(Debug, Clone, Args)]
pub(super) struct SetArguments {
    /// Whose.
    #[arg(value_name = "NAME")]
    name: String,
    /// The pool, by id or name, of work that no rule takes.
    #[arg(long, value_name = "POOL", required_unless_present_any = ["no_default_pool", "pipeline_mode"])]
    default_pool: Option<String>,
    /// Work that no rule takes goes nowhere.
    #[arg(long, conflicts_with = "default_pool")]
    no_default_pool: bool,
    /// How checks run where a pool says nothing: linear, dag, shadow or inherit.
    #[arg(long, value_name = "MODE")]
    pipeline_mode: Option<String>,
}

/// A tenant by its name.
#[derive(Debug, Clone, Args)]
pub(super) struct TenantArguments {
    /// Lower-case letters, digits, `.`, `_` and `-`.
    #[arg(value_name = "NAME")]
    name: String,
}

/// What can be asked of the audit.
#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// What was done, newest first.
    #[command(after_help = "\
Examples:
  ductor audit ls --since 24h
  ductor audit ls --who key:deploys --what pauseJob
  ductor audit ls --thing /jobs/backup")]
    Ls(AuditArguments),
}

/// Arguments of `audit ls`.
#[derive(Debug, Clone, Args)]
pub(super) struct AuditArguments {
    /// Only what was done from then on: a length (24h) or an instant.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only what this principal did: `local`, or key:NAME.
    #[arg(long, value_name = "PRINCIPAL")]
    who: Vec<String>,
    /// Only this operation, as the API's document calls it.
    #[arg(long, value_name = "OPERATION")]
    what: Vec<String>,
    /// Only things whose path begins like this.
    #[arg(long, value_name = "PATH")]
    thing: Option<String>,
    /// Rows at most.
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Does what is asked of keys.
pub(super) async fn perform(session: &Session, command: KeyCommand) -> Result<Exit, Failure> {
    match command {
        KeyCommand::Create(arguments) => create(session, &arguments).await,
        KeyCommand::Ls(arguments) => list(session, arguments.for_tenant).await,
        KeyCommand::Revoke(arguments) => revoke(session, &arguments).await,
    }
}

async fn create(session: &Session, arguments: &CreateArguments) -> Result<Exit, Failure> {
    let mut body = json!({"name": arguments.name, "scopes": arguments.scopes});
    if let Some(text) = &arguments.expires {
        let now = session.show.now();
        let length = read_length(text).ok().map(|ms| now.plus(ms));
        let end = length.or_else(|| parse_instant(text)).ok_or_else(|| {
            Failure::Usage(format!(
                "--expires `{text}` is no time; write 90d, or 2026-01-31T12:00:00Z"
            ))
        })?;
        body["expires_at"] = Value::from(end.to_string());
    }
    if let Some(tenant) = &arguments.for_tenant {
        body["tenant"] = Value::from(tenant.as_str());
    }
    // Before the key is made: nobody could read it afterwards.
    let file = arguments.to.as_deref().map(open_new).transpose()?;
    let made = session.client.post(&["api", "keys"], Some(&body), None).await;
    let made = made.inspect_err(|_| {
        if let Some(path) = &arguments.to {
            std::fs::remove_file(path).ok();
        }
    })?;
    let data = fields::data(&made.value);
    let key = fields::text(data, &["key"]).unwrap_or_default();
    if let (Some(mut file), Some(path)) = (file, &arguments.to) {
        let written = file
            .write_all(format!("{key}\n").as_bytes())
            .and_then(|()| file.sync_all());
        written.map_err(|error| {
            Failure::Negative(format!(
                "{}: {error}; revoke the key and make another one",
                path.display()
            ))
        })?;
        let sentence = format!("the key '{}' is in {}", arguments.name, path.display());
        let done = told(session, &made, &sentence)?;
        let path = path.display();
        session.show.note(&format!("Use it with --key-file {path}."));
        return Ok(done);
    }
    told(session, &made, &key)?;
    session
        .show
        .note("Keep it now: it is shown this once. Programs take it from DUCTOR_API_KEY or --key-file.");
    Ok(Exit::Done)
}

fn open_new(path: &Path) -> Result<std::fs::File, Failure> {
    let opened = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    opened.map_err(|error| Failure::Usage(format!("--to {}: {error}", path.display())))
}

async fn keys(session: &Session, tenant: Option<String>) -> Result<super::client::Body, Failure> {
    let query: Vec<(&str, String)> = tenant.map(|tenant| ("tenant", tenant)).into_iter().collect();
    session.client.list(&["api", "keys"], &query, usize::MAX).await
}

async fn list(session: &Session, tenant: Option<String>) -> Result<Exit, Failure> {
    let show = &session.show;
    let body = keys(session, tenant).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let keys = fields::items(&body.value);
    if keys.is_empty() {
        show.nothing("There are no keys. `ductor key create admin --scope admin` makes the first.")?;
        return Ok(Exit::Done);
    }
    show.fitting(|fit| keys_table(keys, show, fit))?;
    Ok(Exit::Done)
}

fn keys_table(keys: &[Value], show: &Show, fit: Fit) -> Table {
    let mut table = Table::new(&[
        ("KEY", Kind::Whole),
        ("NAME", Kind::Name),
        ("STATE", Kind::State),
        ("LAST USED", Kind::Whole),
        ("", Kind::Below),
    ]);
    for key in keys {
        let text = |name: &str| fields::text(key, &[name]);
        let scopes: Vec<&str> = fields::list(key, &["scopes"])
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let end = fields::instant(key, &["expires_at"]);
        let until = end
            .map(|at| format!("; until {}", show.moment(Some(at), fit)))
            .unwrap_or_default();
        table.row(&[
            text("id").unwrap_or_default(),
            text("name").map_or_else(dash, |name| one_line(&name)),
            text("state").unwrap_or_else(dash),
            show.moment(fields::instant(key, &["last_used_at"]), fit),
            format!("{}{until}", scopes.join(" ")),
        ]);
    }
    table
}

async fn revoke(session: &Session, arguments: &RevokeArguments) -> Result<Exit, Failure> {
    let given = &arguments.id;
    let is_id = given.len() == 32 && given.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (id, name) = if is_id {
        (given.clone(), given.clone())
    } else {
        let body = keys(session, None).await?;
        let found = fields::items(&body.value).iter().find(|key| {
            fields::text(key, &["name"]).as_ref() == Some(given)
                && fields::text(key, &["state"]).as_deref() == Some("valid")
        });
        let id = found.and_then(|key| fields::text(key, &["id"]));
        let id = id.ok_or_else(|| {
            Failure::NotFound(format!(
                "there is no valid key '{given}'; `ductor key ls` shows all"
            ))
        })?;
        (id, format!("'{given}'"))
    };
    if !arguments.yes {
        let asked = tokio::task::spawn_blocking(move || confirm(&name)).await;
        asked.map_err(|error| Failure::Negative(error.to_string()))??;
    }
    let answer = session.client.delete(&["api", "keys", &id]).await?;
    told(session, &answer, &format!("key {id} opens nothing any more"))
}

fn confirm(name: &str) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        let text = format!("revoking {name} needs --yes where nobody can be asked");
        return Err(Failure::Usage(text));
    }
    write_stderr(format!("Revoke {name}? What uses it stops working at once. [y/N] ").as_bytes());
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).ok();
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(Failure::Negative("nothing was done".to_owned()))
    }
}

/// Does what is asked of tenants.
pub(super) async fn tenants(session: &Session, command: TenantCommand) -> Result<Exit, Failure> {
    let show = &session.show;
    match command {
        TenantCommand::Create(arguments) => {
            let body = json!({"name": arguments.name});
            let made = session
                .client
                .post(&["api", "tenants"], Some(&body), None)
                .await?;
            told(session, &made, &format!("tenant {} is there", arguments.name))
        }
        TenantCommand::Set(arguments) => set(session, &arguments).await,
        TenantCommand::Ls => {
            let body = session.client.list(&["api", "tenants"], &[], usize::MAX).await?;
            if show.json {
                show.document(&body.text)?;
                return Ok(Exit::Done);
            }
            show.fitting(|fit| {
                let mut table = Table::new(&[
                    ("TENANT", Kind::Name),
                    ("KEYS", Kind::Number),
                    ("SINCE", Kind::Whole),
                    ("", Kind::Below),
                ]);
                for tenant in fields::items(&body.value) {
                    table.row(&[
                        fields::text(tenant, &["name"]).unwrap_or_default(),
                        fields::text(tenant, &["keys"]).unwrap_or_else(dash),
                        show.moment(fields::instant(tenant, &["created_at"]), fit),
                        said_of_routing(tenant),
                    ]);
                }
                table
            })?;
            Ok(Exit::Done)
        }
    }
}

/// What a tenant says of its routing; nothing where it says nothing.
fn said_of_routing(tenant: &Value) -> String {
    let place = fields::text(tenant, &["routing", "default_pool_id"]).map(|id| format!("default pool {id}"));
    let mode = fields::text(tenant, &["routing", "pipeline_mode"]).filter(|mode| mode != "inherit");
    let mode = mode.map(|mode| format!("pipeline mode {mode}"));
    let parts: Vec<String> = [place, mode].into_iter().flatten().collect();
    parts.join("; ")
}

async fn set(session: &Session, arguments: &SetArguments) -> Result<Exit, Failure> {
    let mut routing = serde_json::Map::new();
    if let Some(given) = &arguments.default_pool {
        routing.insert("default_pool_id".to_owned(), Value::from(given.as_str()));
    }
    if arguments.no_default_pool {
        routing.insert("default_pool_id".to_owned(), Value::Null);
    }
    if let Some(mode) = &arguments.pipeline_mode {
        routing.insert("pipeline_mode".to_owned(), Value::from(mode.as_str()));
    }
    let name = &arguments.name;
    let body = json!({"routing": routing});
    let answer = session
        .client
        .patch(&["api", "tenants", name], &body, None)
        .await?;
    let data = fields::data(&answer.value);
    let place = fields::text(data, &["default_pool_id"]).map_or_else(
        || "work that no rule takes goes nowhere".to_owned(),
        |id| format!("work that no rule takes goes to pool {id}"),
    );
    let mode = fields::text(data, &["pipeline_mode"]).unwrap_or_default();
    told(
        session,
        &answer,
        &format!("tenant {name}: {place}; pipeline mode {mode}"),
    )
}

/// Does what is asked of the audit.
pub(super) async fn audit(session: &Session, command: AuditCommand) -> Result<Exit, Failure> {
    let AuditCommand::Ls(arguments) = command;
    let show = &session.show;
    let mut query: Vec<(&str, String)> = Vec::new();
    query.extend(arguments.since.map(|since| ("since", since)));
    query.extend(arguments.who.into_iter().map(|who| ("who", who)));
    query.extend(arguments.what.into_iter().map(|what| ("what", what)));
    query.extend(arguments.thing.map(|thing| ("thing", thing)));
    let body = session
        .client
        .list(&["api", "audit"], &query, arguments.limit.max(1))
        .await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let rows = fields::items(&body.value);
    if rows.is_empty() {
        show.nothing("Nobody has done anything of that kind.")?;
        return Ok(Exit::Done);
    }
    show.fitting(|fit| audit_table(rows, show, fit))?;
    Ok(Exit::Done)
}

fn audit_table(rows: &[Value], show: &Show, fit: Fit) -> Table {
    let mut table = Table::new(&[
        ("WHEN", Kind::Whole),
        ("WHO", Kind::Name),
        ("WHAT", Kind::Whole),
        ("THING", Kind::Sentence),
    ]);
    for row in rows {
        let text = |name: &str| fields::text(row, &[name]).map_or_else(dash, |text| one_line(&text));
        table.row(&[
            show.moment(fields::instant(row, &["at"]), fit),
            text("who"),
            text("what"),
            text("thing"),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::table::assert_80;

    #[test]
    fn tables_fit_eighty_columns() {
        let show = Show::plain();
        let key = json!({"id": "019ad1f2c3a47b1e9f00112233445566", "name": "a name that is rather long for a key", "state": "revoked",
            "scopes": ["job:read", "job:write", "run:write"], "expires_at": "2026-01-31T12:00:00Z", "last_used_at": "2025-11-29T18:00:00Z"});
        assert_80(&keys_table(&[key], &show, Fit::Narrow));
        let row = json!({"at": "2025-11-29T18:00:00Z", "who": "key:a name that is rather long for a key", "what": "deprecateWorkflow",
            "thing": "/api/workflows/a-rather-long-name-of-a-workflow-that-does-not-end"});
        assert_80(&audit_table(&[row], &show, Fit::Narrow));
    }
}
