//! A process and its slots, put together from what a job or task says and what it inherits. Only here is known what holds
//! when neither says anything.

use std::collections::HashMap;
use std::path::Path;

use super::fault::{Fault, shown};
use super::job_layer::{JobLayer, Placed, SlotsLayer, VerifyLayer, WantedSlotPool};
use super::model::{
    CommandConfig, EnvironmentEntry, FailsWhenConfig, LaunchConfig, ResourceLimitsConfig, SlotsConfig,
    VerifyConfig,
};
use super::reading::Reading;
use super::secrets;
use super::slot_pools::{Found, SlotPools};

/// What an entry of a list costs beside its text.
pub(super) const ENTRY_BYTES: usize = 48;

/// The keys of `own` over those of `base`; the lists of `own` are taken.
pub(super) fn launch(
    command: CommandConfig,
    verify: Option<VerifyConfig>,
    own: &mut JobLayer,
    base: &JobLayer,
) -> LaunchConfig {
    LaunchConfig {
        command,
        shell: own
            .shell
            .take()
            .or_else(|| base.shell.clone())
            .unwrap_or_else(|| "/bin/sh".into()),
        environment: merged(&base.environment, std::mem::take(&mut own.environment)),
        env_file: own.env_file.take().or_else(|| base.env_file.clone()),
        working_directory: own
            .working_directory
            .take()
            .or_else(|| base.working_directory.clone()),
        user: own.user.take().or_else(|| base.user.clone()),
        group: own.group.take().or_else(|| base.group.clone()),
        resource_limits: limits(&own.resource_limits, &base.resource_limits),
        execution_timeout_ms: own.execution_timeout_ms.or(base.execution_timeout_ms),
        kill_timeout_ms: own.kill_timeout_ms.or(base.kill_timeout_ms).unwrap_or(30_000),
        capture_stdout: own.capture_stdout.or(base.capture_stdout).unwrap_or(true),
        capture_stderr: own.capture_stderr.or(base.capture_stderr).unwrap_or(true),
        save_limit: own.save_limit.or(base.save_limit).unwrap_or(4096),
        fails_when: {
            let (own, base) = (&own.fails_when, &base.fails_when);
            FailsWhenConfig {
                nonzero_return: own.nonzero_return.or(base.nonzero_return).unwrap_or(true),
                produces_stdout: own.produces_stdout.or(base.produces_stdout).unwrap_or(false),
                produces_stderr: own.produces_stderr.or(base.produces_stderr).unwrap_or(false),
                always: own.always.or(base.always).unwrap_or(false),
            }
        },
        verify,
        secrets: secrets::merged(&base.secrets, std::mem::take(&mut own.secrets)),
    }
}

/// The check of the result; `subject` begins messages.
pub(super) fn verify(
    reading: &mut Reading<'_>,
    subject: &str,
    own: &VerifyLayer,
    base: &VerifyLayer,
) -> Option<VerifyConfig> {
    let VerifyLayer {
        at,
        has_command,
        command,
        timeout_ms,
    } = own;
    let command = command.clone().or_else(|| base.command.clone());
    if let (None, Some(at), false) = (&command, at, *has_command || base.has_command) {
        let message = format!("{subject}verify.command is missing");
        reading.error("config/missing", at, message);
    }
    Some(VerifyConfig {
        command: command?,
        timeout_ms: timeout_ms.or(base.timeout_ms).unwrap_or(60_000),
    })
}

/// What is asked of a slot pool; `subject` begins messages.
pub(super) fn slots(
    reading: &mut Reading<'_>,
    slot_pools: &SlotPools,
    subject: &str,
    own: &SlotsLayer,
    base: &SlotsLayer,
) -> Option<SlotsConfig> {
    let SlotsLayer {
        slot_pool: own_slot_pool,
        first_option_at,
        slots: own_slots,
        priority,
        queue_timeout_ms,
    } = own;
    let name = match own_slot_pool.as_ref().or(base.slot_pool.as_ref()) {
        Some(WantedSlotPool::Named(name)) => name,
        Some(WantedSlotPool::Faulty) => return None,
        Some(WantedSlotPool::Dropped) | None => {
            if let Some(at) = first_option_at {
                let message = "poolSlots, queuePriority and queueTimeout need pool";
                reading.error("config/needs-pool", at, message);
            }
            return None;
        }
    };
    let slots = own_slots.as_ref().or(base.slots.as_ref());
    match slot_pools.find(&name.value) {
        Found::Slots(capacity) => {
            if let Some(slots) = slots.filter(|slots| slots.value > capacity) {
                let message = format!("{subject}poolSlots exceeds pool capacity");
                let help = format!("`{}` has {capacity} slots", shown(&name.value));
                let fault = Fault::error("config/out-of-range", &slots.at, message);
                reading.report(fault.with_help(help));
            }
        }
        Found::Faulty => {}
        Found::Unknown => unknown_slot_pool(reading, slot_pools, subject, name),
    }
    Some(SlotsConfig {
        slot_pool: name.value.clone(),
        slots: slots.map_or(1, |slots| slots.value),
        priority: priority.or(base.priority).unwrap_or(0),
        queue_timeout_ms: queue_timeout_ms.or(base.queue_timeout_ms).unwrap_or(3_600_000),
    })
}

pub(super) fn unknown_slot_pool(
    reading: &mut Reading<'_>,
    slot_pools: &SlotPools,
    subject: &str,
    name: &Placed<String>,
) {
    let message = format!("{subject}unknown pool '{}'", shown(&name.value));
    let nearest = reading
        .has_room_for_hints()
        .then(|| slot_pools.nearest(&name.value))
        .flatten();
    let help = nearest.map(|name| format!("did you mean `{}`?", shown(name)));
    let fault = Fault::error("config/unknown-pool", &name.at, message);
    reading.report(fault.with_help_if(help));
}

/// Bytes of text that a process and its slots hold, inherited text included.
pub(super) fn text_bytes(launch: &LaunchConfig, slots: Option<&SlotsConfig>) -> usize {
    let command = |command: &CommandConfig| match command {
        CommandConfig::Shell(text) => text.len(),
        CommandConfig::List(words) => words.iter().map(|word| word.len() + ENTRY_BYTES).sum(),
    };
    let path = |path: &Path| path.as_os_str().len();
    let environment: usize = launch
        .environment
        .iter()
        .map(|entry| entry.key.len() + entry.value.len() + ENTRY_BYTES)
        .sum();
    let secrets: usize = launch.secrets.iter().map(secrets::text_bytes).sum();
    let texts = [&launch.user, &launch.group];
    command(&launch.command)
        + launch
            .verify
            .as_ref()
            .map_or(0, |verify| command(&verify.command))
        + environment
        + secrets
        + texts.into_iter().flatten().map(String::len).sum::<usize>()
        + path(&launch.shell)
        + launch.env_file.as_deref().map_or(0, path)
        + launch.working_directory.as_deref().map_or(0, path)
        + slots.map_or(0, |slots| slots.slot_pool.len())
}

/// By key: the own value stands where the default stood, new keys follow.
fn merged(base: &[EnvironmentEntry], own: Vec<EnvironmentEntry>) -> Vec<EnvironmentEntry> {
    let mut entries = base.to_vec();
    let mut index: HashMap<String, usize> = base
        .iter()
        .enumerate()
        .map(|(index, entry)| (entry.key.clone(), index))
        .collect();
    for entry in own {
        if let Some(index) = index.get(&entry.key) {
            entries[*index] = entry;
        } else {
            index.insert(entry.key.clone(), entries.len());
            entries.push(entry);
        }
    }
    entries
}

fn limits(own: &ResourceLimitsConfig, base: &ResourceLimitsConfig) -> ResourceLimitsConfig {
    ResourceLimitsConfig {
        cpu_seconds: own.cpu_seconds.or(base.cpu_seconds),
        memory_bytes: own.memory_bytes.or(base.memory_bytes),
        processes: own.processes.or(base.processes),
        open_files: own.open_files.or(base.open_files),
        file_size_bytes: own.file_size_bytes.or(base.file_size_bytes),
        core_bytes: own.core_bytes.or(base.core_bytes),
    }
}
