//! `ductor restore`: a state directory from a backup, or only whether the backup is whole. Works without a daemon.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::doctor::counted;
use super::exit::Exit;
use super::failure::Failure;
use super::machine::bytes;
use super::show::Show;
use crate::store::restore::{self, RestoreError, Restored, Verified};
use crate::words::limits;
use crate::words::time::{Clock, SystemClock};

const EXAMPLES: &str = "\
Examples:
  ductor restore /backup/ductor.redb --verify-only
  ductor restore /backup/ductor.redb --into ./state

End the daemon that the backup came from before you start one on the restored
directory: both would run the same schedules. What was running in the backup
runs again, 30 s after that start; no process of the old daemon is touched.

Exit codes: 0 done, 1 the backup is damaged or cannot be read, 5 the directory
is not empty or in use.";

/// Findings shown.
const FINDINGS_MAX: usize = 20;

/// Arguments of `restore`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RestoreArguments {
    /// A file made by `ductor backup`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The state directory to make; it must be empty, or not be there.
    #[arg(long, value_name = "DIR", required_unless_present = "verify_only")]
    into: Option<PathBuf>,
    /// Read and check the whole backup, and make nothing.
    #[arg(long, conflicts_with = "damaged")]
    verify_only: bool,
    /// Restore it although the check finds faults; rows that cannot be read are passed over by the daemon.
    #[arg(long)]
    damaged: bool,
}

/// Restores, or only checks.
pub(super) fn restore(arguments: &RestoreArguments, show: &Show) -> Result<Exit, Failure> {
    let now = SystemClock.now();
    let Some(into) = arguments.into.as_ref().filter(|_| !arguments.verify_only) else {
        let verified = restore::verify(&arguments.file, &std::env::temp_dir(), now);
        return told_verified(arguments, &verified.map_err(failure)?, show);
    };
    match restore::restore(&arguments.file, into, arguments.damaged, now) {
        Ok(restored) => told_restored(arguments, into, &restored, show),
        Err(RestoreError::Damaged(findings)) => {
            show_findings(&findings, show)?;
            let text = format!(
                "{} is damaged and was not restored; take an older backup, or this one as it is with --damaged",
                arguments.file.display()
            );
            Err(Failure::Negative(text))
        }
        Err(error) => Err(failure(error)),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what becomes of an error")]
fn failure(error: RestoreError) -> Failure {
    let text = error.to_string();
    if error.is_conflict() {
        Failure::Conflict(text)
    } else {
        Failure::Negative(text)
    }
}

fn show_findings(findings: &[String], show: &Show) -> Result<(), Failure> {
    for finding in findings.iter().take(FINDINGS_MAX) {
        show.paragraph(finding)?;
    }
    if findings.len() > FINDINGS_MAX {
        show.paragraph(&format!("and {} more", findings.len() - FINDINGS_MAX))?;
    }
    Ok(())
}

fn document(verified: &Verified, file: &std::path::Path) -> serde_json::Value {
    json!({"path": file.display().to_string(), "bytes": verified.bytes, "blake3": verified.blake3,
        "format": verified.format, "rows": verified.checked.rows, "payloads": verified.blobs, "clean": verified.checked.findings.is_empty(),
        "findings": verified.checked.findings})
}

fn lines(verified: &Verified, file: &std::path::Path) -> Vec<(&'static str, String)> {
    let rows = usize::try_from(verified.checked.rows).unwrap_or(usize::MAX);
    let found = match verified.checked.findings.len() {
        0 => "clean".to_owned(),
        many => counted(many, "fault"),
    };
    let mut size = format!("{}, {}", bytes(verified.bytes), counted(rows, "row"));
    if verified.blobs > 0 {
        let blobs = usize::try_from(verified.blobs).unwrap_or(usize::MAX);
        size.push_str(&format!(", {}", counted(blobs, "large payload")));
    }
    vec![
        ("path", file.display().to_string()),
        ("size", size),
        ("blake3", verified.blake3.clone()),
        ("format", verified.format.to_string()),
        ("check", found),
    ]
}

fn told_verified(arguments: &RestoreArguments, verified: &Verified, show: &Show) -> Result<Exit, Failure> {
    let findings = &verified.checked.findings;
    let exit = if findings.is_empty() {
        Exit::Done
    } else {
        Exit::Negative
    };
    if show.json {
        show.json_line(&json!({"data": document(verified, &arguments.file)}))?;
        return Ok(exit);
    }
    show_findings(findings, show)?;
    show.pairs(&lines(verified, &arguments.file))?;
    Ok(exit)
}

fn told_restored(
    arguments: &RestoreArguments,
    into: &std::path::Path,
    restored: &Restored,
    show: &Show,
) -> Result<Exit, Failure> {
    let nodes: Vec<String> = restored.nodes.iter().map(ToString::to_string).collect();
    if show.json {
        let mut data = document(&restored.backup, &arguments.file);
        data["into"] = json!(into.display().to_string());
        data["interrupted"] = json!(restored.interrupted);
        data["bound"] = json!(restored.bound);
        data["nodes"] = json!(nodes);
        show.json_line(&json!({"data": data}))?;
        return Ok(Exit::Done);
    }
    show_findings(&restored.backup.checked.findings, show)?;
    let mut pairs = lines(&restored.backup, &arguments.file);
    pairs.push(("into", into.display().to_string()));
    let again = limits::LEASE_MS / 1_000;
    if restored.interrupted > 0 {
        let count = usize::try_from(restored.interrupted).unwrap_or(usize::MAX);
        let executions = counted(count, "execution");
        pairs.push((
            "running",
            format!("{executions}; again {again} s after the start"),
        ));
    }
    for (node, count) in &restored.bound {
        let text = format!("{count} of {node}, which only a daemon of that name runs (--node {node})");
        pairs.push(("waiting", text));
    }
    show.pairs(&pairs)?;
    show.note("End the daemon that the backup came from before you start one here:");
    show.note("both would run the same schedules. Logs of attempts are not in a backup.");
    Ok(Exit::Done)
}
