//! `ductor backup`: the store as one file, through the daemon that has it, or from the files of one that is stopped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::args::{ConfigArguments, Global};
use super::client::{Body, Client};
use super::configuration;
use super::doctor::{address_of, counted};
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::machine::bytes;
use super::show::{Show, write_stderr};
use crate::store::backup;
use crate::store::coordination::StateDirectory;

const EXAMPLES: &str = "\
Examples:
  ductor backup --to /backup/ductor.redb
  ductor backup --to /backup/ductor-$(date +%F).redb
  ductor restore /backup/ductor.redb --verify-only    is it whole

A running daemon makes it, without a pause in its work; the file is where that
daemon sees it, and nothing may be there yet. Without a daemon the files are
read. Logs of attempts are not in it: they are files, in `logs` of the state
directory.

Exit codes: 0 done, 1 it could not be made, 5 a file is there already, or
another backup is being made.";

/// Arguments of `backup`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct BackupArguments {
    /// Where the configuration and the state are.
    #[command(flatten)]
    config: ConfigArguments,
    /// The file to make.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

/// Between two looks at a backup that takes its time.
const LOOK: Duration = Duration::from_millis(500);

/// Makes a backup.
pub(super) fn backup(arguments: &BackupArguments, global: &Global, show: &Show) -> Result<Exit, Failure> {
    let shown = arguments.to.display();
    let to = std::path::absolute(&arguments.to)
        .map_err(|error| Failure::Usage(format!("--to {shown}: {error}")))?;
    if global.server_given().is_some() {
        return through(&global.server(), None, &to, global, show);
    }
    let loaded = match configuration::load_for_tool(&arguments.config) {
        Ok(loaded) => loaded,
        Err(text) => {
            // A daemon may run all the same, on the configuration that it read.
            let tried = through(&global.server(), None, &to, global, show);
            if matches!(tried, Err(Failure::Unreachable { .. })) {
                write_stderr(text.as_bytes());
                return Ok(Exit::Usage);
            }
            return tried;
        }
    };
    let root = loaded.config.state.path.as_path();
    let holders = StateDirectory::existing(root).map_or_else(Vec::new, |directory| directory.holders());
    if !holders.is_empty() {
        let server = address_of(loaded.config.server.listen);
        return through(&server, Some((root, &holders)), &to, global, show);
    }
    let made = backup::write_from_files(root, &to).map_err(|error| {
        if error.is_conflict() {
            Failure::Conflict(error.to_string())
        } else {
            Failure::Negative(error.to_string())
        }
    })?;
    let data = json!({"state": "done", "path": made.path.display().to_string(), "bytes": made.bytes,
        "blake3": made.blake3, "rows": made.rows});
    tell(&data, &format!("from the files of {}", root.display()), show)
}

type Holders<'h> = (&'h Path, &'h [(String, Option<u32>)]);

fn through(
    server: &str,
    holders: Option<Holders<'_>>,
    to: &Path,
    global: &Global,
    show: &Show,
) -> Result<Exit, Failure> {
    let client = Client::new(server, &global.caller()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Negative(format!("the runtime cannot start: {error}")))?;
    let made = runtime.block_on(async {
        if let Some(holders) = holders {
            check_holder(&client, holders).await?;
        }
        ask(&client, to, global.timeout).await
    });
    let data = made?;
    tell(&data, &format!("by the daemon at {server}, while it works"), show)
}

/// Another daemon at that address would copy its own store.
async fn check_holder(client: &Client, (root, holders): Holders<'_>) -> Result<(), Failure> {
    let answered = client.get(&["api", "status"], &[]).await;
    let node = match &answered {
        Ok(body) => fields::text(fields::data(&body.value), &["node"]),
        Err(Failure::Unreachable { .. }) => None,
        Err(failure) => return Err(failure.clone()),
    };
    if node.is_some_and(|node| holders.iter().any(|(name, _)| *name == node)) {
        return Ok(());
    }
    let (name, pid) = &holders[0];
    let pid = pid.map_or_else(String::new, |pid| format!(" (pid {pid})"));
    Err(Failure::Negative(format!(
        "{} is in use by node {name}{pid}, which does not answer at {}; say where it listens with --server",
        root.display(),
        client.server()
    )))
}

/// Asks for a backup and waits for its end, however long that takes.
async fn ask(client: &Client, to: &Path, timeout_ms: Option<u64>) -> Result<Value, Failure> {
    let wish = json!({"path": to.to_string_lossy()});
    let over = async {
        match timeout_ms {
            Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        made = until_made(client, &wish) => made,
        () = over => Err(Failure::TimedOut("not done in time; the daemon goes on with it".to_owned())),
    }
}

async fn until_made(client: &Client, wish: &Value) -> Result<Value, Failure> {
    let asked = client.post(&["api", "backups"], Some(wish), None).await;
    let Body { value, .. } = asked.map_err(failed)?;
    let mut data = fields::data(&value).clone();
    let id = fields::text(&data, &["id"]);
    while data["state"] == "running" {
        tokio::time::sleep(LOOK).await;
        let list = client.get(&["api", "backups"], &[]).await?;
        let found = fields::items(&list.value)
            .iter()
            .find(|one| fields::text(one, &["id"]) == id);
        data = found
            .cloned()
            .ok_or_else(|| Failure::Negative("the daemon does not know its backup any more".to_owned()))?;
    }
    if data["state"] == "failed" {
        let reason = fields::text(&data, &["reason"]).unwrap_or_default();
        return Err(Failure::Negative(reason));
    }
    Ok(data)
}

/// A backup that could not be made is a negative outcome, and no refusal of the request.
fn failed(failure: Failure) -> Failure {
    match failure {
        Failure::Problem(problem) if problem.code == "BACKUP_FAILED" => {
            Failure::Negative(problem.member("detail").unwrap_or_default())
        }
        other => other,
    }
}

fn tell(data: &Value, how: &str, show: &Show) -> Result<Exit, Failure> {
    if show.json {
        show.json_line(&json!({"data": data}))?;
        return Ok(Exit::Done);
    }
    let text = |name: &str| fields::text(data, &[name]).unwrap_or_default();
    let number = |name: &str| data[name].as_u64().unwrap_or_default();
    let rows = usize::try_from(number("rows")).unwrap_or(usize::MAX);
    show.pairs(&[
        ("path", text("path")),
        (
            "size",
            format!("{}, {}", bytes(number("bytes")), counted(rows, "row")),
        ),
        ("blake3", text("blake3")),
        ("made", how.to_owned()),
    ])?;
    show.note("Logs of attempts are not in it: they are files, in `logs` of the state.");
    Ok(Exit::Done)
}
