//! The configuration that the daemons of a torture work with: fires, starts by hand, slots, retries, overlap rules.

use std::fmt::Write as _;

use serde_json::json;

use super::site::Site;
use super::step::Asked;

/// A job of the torture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) name: &'static str,
    /// Slot pool and width.
    slots: Option<(&'static str, u32)>,
    /// How often it fires by itself.
    every: Option<&'static str>,
    alone: bool,
    flaky: bool,
    /// Further keys of the file.
    more: &'static str,
    /// How often clients start it, compared with the others.
    pub(super) weight: u64,
}

/// Slots of the two slot pools.
const POOLS: [(&str, u32, u32); 2] = [("narrow", 3, 60), ("wide", 6, 120)];

const fn job(name: &'static str, slots: Option<(&'static str, u32)>, weight: u64) -> Job {
    Job {
        name,
        slots,
        every: None,
        alone: false,
        flaky: false,
        more: "",
        weight,
    }
}

/// The one that fires on every daemon.
pub(super) const EACH: &str = "each";
/// The one that clients cancel whole: all of its runs may end so.
pub(super) const CANCELLED: &str = "cancelled";
/// The one whose entries may wait too long.
pub(super) const HASTY: &str = "hasty";
/// The one whose definition a reload changes.
pub(super) const SHIFTING: &str = "shifting";

/// All jobs.
pub(super) const JOBS: [Job; 12] = [
    Job {
        every: Some("1s"),
        ..job("tick", Some(("wide", 1)), 0)
    },
    Job {
        every: Some("3s"),
        more: "clusterPolicy: EveryNode",
        ..job(EACH, Some(("narrow", 1)), 0)
    },
    Job {
        every: Some("2s"),
        flaky: true,
        more: "onFailure: {retry: {maximumRetries: 4, initialDelay: 200ms}}",
        ..job("flaky", None, 0)
    },
    Job {
        every: Some("2s"),
        more: "onMissed: run-once",
        ..job("owed", None, 0)
    },
    job("small", Some(("narrow", 1)), 6),
    Job {
        more: "queuePriority: 5",
        ..job("double", Some(("narrow", 2)), 3)
    },
    job("broad", Some(("wide", 2)), 4),
    Job {
        alone: true,
        more: "concurrencyPolicy: Forbid",
        ..job("alone", Some(("wide", 1)), 2)
    },
    job("plain", None, 4),
    job(CANCELLED, Some(("wide", 1)), 2),
    Job {
        more: "queueTimeout: 2",
        ..job(HASTY, Some(("narrow", 1)), 2)
    },
    job(SHIFTING, Some(("narrow", 1)), 2),
];

impl Job {
    /// It waits for slots.
    pub(super) fn slot_pool(&self) -> Option<&'static str> {
        self.slots.map(|(name, _)| name)
    }

    fn asked(&self, site: &Site) -> Asked {
        let of_pool = |(name, width): (&str, u32)| {
            let slots = POOLS.iter().find(|(pool, _, _)| *pool == name);
            (name.to_owned(), slots.map_or(0, |(_, slots, _)| *slots), width)
        };
        Asked {
            folder: site.evidence(),
            slots: self.slots.map(of_pool),
            alone: self.alone,
            flaky: self.flaky,
        }
    }
}

/// The job fires by itself.
pub(super) fn fires(name: &str) -> bool {
    JOBS.iter().any(|job| job.name == name && job.every.is_some())
}

/// Names of the slot pools.
pub(super) fn slot_pools() -> impl Iterator<Item = &'static str> {
    POOLS.iter().map(|(name, _, _)| *name)
}

/// The text of the file. `version` is what a reload changes.
pub(super) fn configuration(site: &Site, program: &str, version: u64) -> String {
    let mut text = String::from(
        "# Made by `ductor torture`.\nstate: {path: ./state, lowDiskBytes: 1MiB}\nretention: {runs: 1000000}\n\
         shutdown: {drainTimeout: 8}\npools:\n",
    );
    for (name, slots, queued_max) in POOLS {
        writeln!(text, "  {name}: {{slots: {slots}, maxQueued: {queued_max}}}").ok();
    }
    text.push_str("jobs:\n");
    for job in JOBS {
        let mut words = vec![program.to_owned(), super::step::STEP_WORD.to_owned()];
        words.extend(job.asked(site).words());
        writeln!(text, "  - name: {}\n    command: {}", job.name, json!(words)).ok();
        text.push_str("    killTimeout: 2\n");
        if let Some((name, width)) = job.slots {
            writeln!(text, "    pool: {name}\n    poolSlots: {width}").ok();
            if job.name != HASTY {
                // A moved clock must not end what waits.
                text.push_str("    queueTimeout: 864000\n");
            }
        }
        if let Some(every) = job.every {
            writeln!(text, "    schedule: \"@every {every}\"").ok();
        }
        if !job.more.is_empty() {
            writeln!(text, "    {}", job.more).ok();
        }
        if job.name == SHIFTING {
            writeln!(text, "    environment: {{VERSION: \"{version}\"}}").ok();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Overrides;
    use crate::daemon::Loader;

    #[test]
    fn the_configuration_is_without_fault() {
        let folder = tempfile::tempdir().unwrap();
        let site = Site::at(folder.path());
        std::fs::write(site.config(), configuration(&site, "ductor", 1)).unwrap();
        let load = || Loader::new(site.config(), Overrides::default()).load_at_start();
        let loaded = load();
        let loaded = loaded.unwrap_or_else(|unusable| panic!("{unusable:?}"));
        assert_eq!(loaded.config.jobs.len(), JOBS.len());
        assert_eq!(loaded.config.slot_pools.len(), POOLS.len());
        std::fs::write(site.config(), super::super::site::BROKEN).unwrap();
        assert!(load().is_err());
    }

    #[test]
    fn every_job_fires_or_is_started() {
        for job in JOBS {
            assert!(job.every.is_some() != (job.weight > 0), "{}", job.name);
            let known = |name: &str| slot_pools().any(|pool| pool == name);
            assert!(job.slot_pool().is_none_or(known), "{}", job.name);
        }
    }
}
