//! A damaged copy: one byte of the store is changed while all daemons are down. The check must say so, or no answer may
//! have changed; a daemon on it refuses to start, or works, but never falls over, and never answers wrong.
//!
//! All of it happens in a folder of its own, so that the real store and the real evidence are not touched.

use std::collections::BTreeMap;
use std::io;

use super::super::caller::Caller;
use super::super::client::Client;
use super::super::fields;
use super::fleet;
use super::jobs;
use super::round::{Stage, ended_within};
use super::site::{Site, make_evidence};
use crate::os::clock::boottime_ms;
use crate::store::audit::{self, Audited, AuditedRun};
use crate::words::ids::RunId;

/// A daemon that neither refuses nor says its address within this time hangs.
const START_MS: u64 = 20_000;
/// Runs that are asked for.
const QUESTIONS: usize = 20;

/// What the trial found, one sentence each.
pub(super) async fn trial(stage: &mut Stage, fraction: u32, truth: &Audited) -> Vec<String> {
    let site = stage.site.damaged();
    let program = stage.program.display().to_string();
    // On a full disk, say, nothing is tried; nothing was lost by that.
    let Ok(at) = copy_and_damage(&stage.site, &site, &program, fraction) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let seen = audit::audit_files(&site.state());
    if let Ok(seen) = &seen
        && seen.checked.findings.is_empty()
        && seen.content != truth.content
    {
        findings.push(format!(
            "byte {at} of a copy was changed, rows differ, and the check does not say so"
        ));
    }
    // The audit repairs what a kill left; the daemon shall meet the damage as it is.
    if copy_and_damage(&stage.site, &site, &program, fraction).is_ok() {
        findings.extend(start_on(stage, &site, at, &truth.runs).await);
    }
    std::fs::remove_dir_all(site.root()).ok();
    findings
}

/// Copies the store and flips one bit of it; the place.
fn copy_and_damage(from: &Site, to: &Site, program: &str, fraction: u32) -> io::Result<u64> {
    if to.root().exists() {
        std::fs::remove_dir_all(to.root())?;
    }
    std::fs::create_dir_all(to.state())?;
    std::fs::create_dir_all(to.root().join("logs"))?;
    make_evidence(&to.evidence())?;
    to.write_config(&jobs::configuration(to, program, 0))?;
    std::fs::copy(from.state().join("format"), to.state().join("format"))?;
    let mut bytes = std::fs::read(from.state().join("ductor.redb"))?;
    let at = (u64::from(fraction) * bytes.len() as u64) >> 32;
    if let Some(byte) = usize::try_from(at).ok().and_then(|at| bytes.get_mut(at)) {
        *byte ^= 1 << (fraction % 8);
    }
    std::fs::write(to.state().join("ductor.redb"), bytes)?;
    Ok(at)
}

async fn start_on(
    stage: &mut Stage,
    site: &Site,
    at: u64,
    truth: &BTreeMap<RunId, AuditedRun>,
) -> Vec<String> {
    let spawned = fleet::spawn_as(site, &stage.program, "damaged", "damaged", None);
    let Ok((mut child, printed_from)) = spawned else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let end = boottime_ms() + START_MS;
    let mut url = None;
    while url.is_none() && boottime_ms() < end && matches!(child.try_wait(), Ok(None)) {
        stage.attend_until(boottime_ms() + 20).await;
        url = fleet::url_in(&site.log("damaged", "out"), printed_from);
    }
    if let Some(url) = url {
        findings.extend(ask(&url, at, truth).await);
        child.kill().ok();
    }
    let status = ended_within(&mut child, 200).await;
    let said = std::fs::read_to_string(site.log("damaged", "log")).unwrap_or_default();
    let fell = said.lines().find(|line| line.contains("panicked at"));
    if let Some(line) = fell {
        findings.push(format!("with byte {at} changed a daemon fell over: {line}"));
    }
    match status.map(|status| status.code()) {
        Some(Some(1) | None) => {}
        Some(Some(code)) => findings.push(format!("with byte {at} changed a start ended with code {code}")),
        None => findings.push(format!(
            "with byte {at} changed a start neither refused nor began"
        )),
    }
    findings
}

/// Asks for runs whose truth is known.
async fn ask(url: &str, at: u64, truth: &BTreeMap<RunId, AuditedRun>) -> Vec<String> {
    let client = Caller::new(None, None, None).and_then(|caller| Client::new(url, &caller));
    let Ok(client) = client else { return Vec::new() };
    let mut findings = Vec::new();
    for (run, known) in truth
        .iter()
        .rev()
        .filter(|(_, run)| run.state.is_terminal())
        .take(QUESTIONS)
    {
        let Ok(body) = client.get(&["api", "runs", &run.to_string()], &[]).await else {
            continue;
        };
        let data = body.value.get("data").unwrap_or(&body.value);
        let state = fields::text(data, &["state"]);
        if state.as_deref() != Some(known.state.word()) {
            findings.push(format!(
                "with byte {at} changed {run} is said to be {} and is {}",
                state.unwrap_or_default(),
                known.state.word()
            ));
        }
    }
    findings
}
