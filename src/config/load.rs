//! From sources to a checked configuration, in two passes: structure (each file's first fault of
//! syntax) and meaning (all faults of all files together).

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::fault::{Fault, Place, ordered};
use super::job_layer::JobLayer;
use super::jobs::{RawJobs, read_defaults, text_bytes};
use super::keys::Section;
use super::model::{Config, JobConfig};
use super::overrides::Overrides;
use super::reading::{Fields, Reading, resolved};
use super::schedule_text::ScheduleCheck;
use super::sections;
use super::slot_pools::SlotPools;
use super::source::Sources;
use super::substitute::Environment;
use super::tree::{self, Node};

/// Bytes of text of all jobs with what they inherit: a long `defaults` counts once per job.
const JOBS_TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Sections that describe one daemon and hence stand in one file only.
const SINGLE: [&str; 7] = [
    "server",
    "state",
    "node",
    "retention",
    "shutdown",
    "logging",
    "notify",
];

/// The configuration with its warnings, or everything that is wrong.
pub fn load(
    sources: &Sources,
    environment: &Environment<'_>,
    overrides: &Overrides,
    schedules: &dyn ScheduleCheck,
) -> Result<(Config, Vec<Fault>), Vec<Fault>> {
    let names: Vec<Arc<str>> = sources.files.iter().map(|source| source.name.clone()).collect();
    let documents = structure(sources).map_err(|faults| ordered(faults, &names))?;
    let mut loading = Loading {
        sources,
        environment,
        schedules,
        faults: Vec::new(),
    };
    let mut config = loading.meaning(&documents, overrides.state_dir.is_some());
    let mut faults = loading.faults;
    overrides.apply(&mut config, &mut faults);
    let faults = ordered(faults, &names);
    if faults.iter().any(Fault::is_error) {
        Err(faults)
    } else {
        Ok((config, faults))
    }
}

fn structure(sources: &Sources) -> Result<Vec<Rc<Node>>, Vec<Fault>> {
    let mut documents = Vec::new();
    let mut faults = Vec::new();
    for source in &sources.files {
        match tree::parse(source) {
            Ok(document) => documents.push(document),
            Err(fault) => faults.push(*fault),
        }
    }
    if faults.is_empty() {
        Ok(documents)
    } else {
        Err(faults)
    }
}

struct Loading<'a> {
    sources: &'a Sources,
    environment: &'a Environment<'a>,
    schedules: &'a dyn ScheduleCheck,
    faults: Vec<Fault>,
}

impl Loading<'_> {
    fn reading(&mut self, file: usize) -> Reading<'_> {
        Reading {
            source: &self.sources.files[file],
            environment: self.environment,
            faults: &mut self.faults,
        }
    }

    fn meaning(&mut self, documents: &[Rc<Node>], has_state_override: bool) -> Config {
        let documents: Vec<(usize, Fields)> = documents
            .iter()
            .enumerate()
            .filter_map(|(file, node)| {
                let fields = self.reading(file).fields(node, Section::Document)?;
                Some((file, fields))
            })
            .collect();
        let mut config = Config::default();
        if let Some(first) = self.sources.files.first() {
            config.state.path = resolved(&first.directory, "state");
        }
        self.single_sections(&documents, &mut config);
        let slot_pools = self.slot_pools(&documents);
        if !slot_pools.is_empty() && !has_state_override {
            self.check_state(&documents);
        }
        config.jobs = self.jobs(&documents, &slot_pools);
        config.slot_pools = slot_pools.configs;
        config
    }

    fn single_sections(&mut self, documents: &[(usize, Fields)], config: &mut Config) {
        let mut seen: HashMap<&str, Place> = HashMap::new();
        for (file, fields) in documents {
            let mut reading = self.reading(*file);
            for word in SINGLE {
                let Some(field) = fields.get(word) else {
                    continue;
                };
                if let Some(first) = seen.get(word) {
                    let message = format!("`{word}` stands in two files");
                    let fault = Fault::error("config/duplicate-key", &field.key_at, message);
                    reading.report(fault.with_related(first, "the first one stands here"));
                    continue;
                }
                seen.insert(word, field.key_at.clone());
                sections::read(&mut reading, word, &field, config);
            }
        }
    }

    fn slot_pools(&mut self, documents: &[(usize, Fields)]) -> SlotPools {
        let mut slot_pools = SlotPools::default();
        for (file, fields) in documents {
            if let Some(field) = fields.get("pools") {
                slot_pools.read(&mut self.reading(*file), &field);
            }
        }
        slot_pools
    }

    /// Slot pools are kept in the state directory; `state: null` says that there shall be none.
    fn check_state(&mut self, documents: &[(usize, Fields)]) {
        for (file, fields) in documents {
            let Some(state) = fields.get("state") else {
                continue;
            };
            let is_path_null = tree::entry(&state.node, "path").is_some_and(Node::is_null);
            if state.node.is_null() || is_path_null {
                let message = "pools require durable state";
                self.reading(*file)
                    .error("config/needs-state", state.at(), message);
            }
        }
    }

    fn jobs(&mut self, documents: &[(usize, Fields)], slot_pools: &SlotPools) -> Vec<JobConfig> {
        let schedules = self.schedules;
        let mut raw = RawJobs::default();
        for (file, fields) in documents {
            let mut reading = self.reading(*file);
            let defaults = fields.get("defaults").map_or_else(JobLayer::default, |field| {
                read_defaults(&mut reading, schedules, slot_pools, &field)
            });
            if let Some(field) = fields.get("jobs") {
                raw.read(&mut reading, schedules, *file, &field, &Rc::new(defaults));
            }
        }
        let mut jobs = Vec::new();
        let mut bytes = 0;
        for job in raw.jobs {
            let mut reading = self.reading(job.file);
            let Some(job) = job.assemble(&mut reading, schedules, slot_pools) else {
                continue;
            };
            bytes += text_bytes(&job);
            if bytes > JOBS_TEXT_BYTES_MAX {
                let message = "with what they inherit, the jobs hold more than 64 MiB of text";
                reading.error("config/too-large", &job.at, message);
                break;
            }
            jobs.push(job);
        }
        jobs
    }
}
