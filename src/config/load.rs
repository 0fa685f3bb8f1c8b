//! From sources to a checked configuration, in two passes: structure (each file's first fault of
//! syntax) and meaning (all faults of all files together). Crontabs have no structure: each line stands for itself.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::cronstable;
use super::crontab::TableReader;
use super::dag_model::DagConfig;
use super::dags::{self, DagReader, Known};
use super::fault::{Fault, Place, Severity, ordered};
use super::job_layer::JobLayer;
use super::jobs::{RawJobs, read_defaults, text_bytes};
use super::keys::Section;
use super::model::{Config, CrontabConfig, JobConfig};
use super::names::Names;
use super::overrides::Overrides;
use super::reading::{Fields, Reading, resolved};
use super::schedule_text::ScheduleCheck;
use super::sections;
use super::slot_pools::SlotPools;
use super::source::{Form, Sources};
use super::substitute::Environment;
use super::tree::{self, Node};

/// Bytes of text of all jobs and dags with what they inherit: a long `defaults` counts once per job.
const JOBS_TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Sections that describe one daemon and hence stand in one file only.
const SINGLE: [&str; 11] = [
    "server",
    "state",
    "node",
    "retention",
    "shutdown",
    "logging",
    "notify",
    "egress",
    "auth",
    "tenants",
    "routing",
];

/// The configuration with its warnings, or everything that is wrong. For a reload and for a check: a faulty line of a
/// crontab counts as every other fault.
pub fn load(
    sources: &Sources,
    environment: &Environment<'_>,
    overrides: &Overrides,
    schedules: &dyn ScheduleCheck,
) -> Result<(Config, Vec<Fault>), Vec<Fault>> {
    judge(sources, environment, overrides, schedules, Severity::Error)
}

/// As `load`, at a start, when there is no older configuration to keep: a faulty line of a crontab is a warning, and the
/// other lines run.
pub fn load_at_start(
    sources: &Sources,
    environment: &Environment<'_>,
    overrides: &Overrides,
    schedules: &dyn ScheduleCheck,
) -> Result<(Config, Vec<Fault>), Vec<Fault>> {
    judge(sources, environment, overrides, schedules, Severity::Warning)
}

fn judge(
    sources: &Sources,
    environment: &Environment<'_>,
    overrides: &Overrides,
    schedules: &dyn ScheduleCheck,
    faulty_line: Severity,
) -> Result<(Config, Vec<Fault>), Vec<Fault>> {
    let names: Vec<Arc<str>> = sources.files.iter().map(|source| source.name.clone()).collect();
    let documents = structure(sources).map_err(|faults| ordered(faults, &names))?;
    let mut loading = Loading {
        sources,
        environment,
        schedules,
        faulty_line,
        text_bytes: 0,
        faults: sources.faults.clone(),
    };
    let documents = loading.adapted(documents);
    let mut config = loading.meaning(&documents, overrides.state_dir.is_some());
    let mut faults = loading.faults;
    overrides.apply(&mut config, &mut faults);
    let faults = ordered(faults, &names);
    if faults.iter().any(Fault::is_error) {
        return Err(faults);
    }
    Ok((config, faults))
}

/// The documents of the YAML files, each with the number of its file.
fn structure(sources: &Sources) -> Result<Vec<(usize, Rc<Node>)>, Vec<Fault>> {
    let mut documents = Vec::new();
    let mut faults = Vec::new();
    for (file, source) in sources.files.iter().enumerate() {
        if let Form::Crontab { .. } = source.form {
            continue;
        }
        match tree::parse(source) {
            Ok(document) => documents.push((file, document)),
            Err(fault) => faults.push(*fault),
        }
    }
    if faults.is_empty() {
        Ok(documents)
    } else {
        faults.extend(sources.faults.iter().cloned());
        Err(faults)
    }
}

struct Loading<'a> {
    sources: &'a Sources,
    environment: &'a Environment<'a>,
    schedules: &'a dyn ScheduleCheck,
    /// How a faulty line of a crontab counts.
    faulty_line: Severity,
    /// Of all jobs so far.
    text_bytes: usize,
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

    /// Documents of another program, rewritten as ours.
    fn adapted(&mut self, mut documents: Vec<(usize, Rc<Node>)>) -> Vec<(usize, Rc<Node>)> {
        for (file, document) in &mut documents {
            let source = &self.sources.files[*file];
            if source.form != Form::Cronstable {
                continue;
            }
            *document = cronstable::adapt(document, &mut self.faults);
            if let (Some(at), Some(defaults)) = (&source.included_at, tree::entry(document, "defaults"))
                && !defaults.at.span.is_empty()
                && tree::entry(document, "jobs").is_none()
                && tree::entry(document, "dags").is_none()
            {
                let message = "`defaults` apply to the jobs of their own file only, and this one has none";
                let fault = Fault::warning("cronstable/not-supported", &defaults.at, message);
                self.faults.push(
                    fault.with_related(at, "the file that is meant to inherit them includes them here"),
                );
            }
        }
        documents
    }

    fn meaning(&mut self, documents: &[(usize, Rc<Node>)], has_state_override: bool) -> Config {
        let documents: Vec<(usize, Fields)> = documents
            .iter()
            .filter_map(|(file, node)| {
                let fields = self.reading(*file).fields(node, Section::Document)?;
                Some((*file, fields))
            })
            .collect();
        self.check_followed(&documents);
        let mut config = Config::default();
        if let Some(first) = self.sources.files.first() {
            config.state.path = resolved(&first.directory, "state");
        }
        self.single_sections(&documents, &mut config);
        let slot_pools = self.slot_pools(&documents);
        if !slot_pools.is_empty() && !has_state_override {
            self.check_state(&documents);
        }
        let mut names = RawJobs::default();
        let defaults = self.defaults(&documents, &slot_pools);
        config.jobs = self.jobs(&documents, &defaults, &slot_pools, &mut names);
        config.dags = self.dags(&documents, &defaults, &slot_pools, &mut names.names);
        self.crontabs(&slot_pools, &mut names, &mut config);
        config.slot_pools = slot_pools.configs;
        config
    }

    /// A name of a file that was not looked at must not be passed over in silence.
    fn check_followed(&mut self, documents: &[(usize, Fields)]) {
        for (file, fields) in documents {
            for word in ["include", "crontabs"] {
                let Some(field) = fields.get(word) else {
                    continue;
                };
                if !self.sources.files[*file].is_followed && !field.node.is_null() {
                    let message =
                        format!("`{word}` is followed only in a file on a disk, spelt without escapes");
                    self.reading(*file)
                        .error("config/include", &field.key_at, message);
                }
            }
        }
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

    /// Those of each document.
    fn defaults(&mut self, documents: &[(usize, Fields)], slot_pools: &SlotPools) -> Vec<Rc<JobLayer>> {
        let schedules = self.schedules;
        let layers = documents.iter().map(|(file, fields)| {
            let mut reading = self.reading(*file);
            let layer = fields.get("defaults").map_or_else(JobLayer::default, |field| {
                read_defaults(&mut reading, schedules, slot_pools, &field)
            });
            Rc::new(layer)
        });
        layers.collect()
    }

    fn dags(
        &mut self,
        documents: &[(usize, Fields)],
        defaults: &[Rc<JobLayer>],
        slot_pools: &SlotPools,
        names: &mut Names,
    ) -> Vec<DagConfig> {
        let known = Known {
            schedules: self.schedules,
            slot_pools,
        };
        let mut reader = DagReader::default();
        for ((file, fields), defaults) in documents.iter().zip(defaults) {
            if let Some(field) = fields.get("dags") {
                reader.read(&mut self.reading(*file), known, &field, defaults, names);
            }
        }
        let mut dags = Vec::new();
        for dag in reader.dags {
            if !self.has_room_for(dags::text_bytes(&dag), &dag.at) {
                break;
            }
            dags.push(dag);
        }
        dags
    }

    fn jobs(
        &mut self,
        documents: &[(usize, Fields)],
        defaults: &[Rc<JobLayer>],
        slot_pools: &SlotPools,
        raw: &mut RawJobs,
    ) -> Vec<JobConfig> {
        let schedules = self.schedules;
        for ((file, fields), defaults) in documents.iter().zip(defaults) {
            if let Some(field) = fields.get("jobs") {
                raw.read(&mut self.reading(*file), schedules, *file, &field, defaults);
            }
        }
        let mut jobs = Vec::new();
        for job in std::mem::take(&mut raw.jobs) {
            let mut reading = self.reading(job.file);
            let Some(job) = job.assemble(&mut reading, schedules, slot_pools) else {
                continue;
            };
            if !self.has_room_for(text_bytes(&job), &job.at) {
                break;
            }
            jobs.push(job);
        }
        jobs
    }

    /// False once jobs and dags are too long together, which is reported.
    fn has_room_for(&mut self, bytes: usize, at: &Place) -> bool {
        self.text_bytes += bytes;
        let has_room = self.text_bytes <= JOBS_TEXT_BYTES_MAX;
        if !has_room {
            let message = "with what they inherit, the jobs and dags hold more than 64 MiB of text";
            self.faults.push(Fault::error("config/too-large", at, message));
        }
        has_room
    }

    /// Lines of crontabs come after all other jobs: where two want one name, the line gives way.
    fn crontabs(&mut self, slot_pools: &SlotPools, names: &mut RawJobs, config: &mut Config) {
        let (sources, environment, schedules) = (self.sources, self.environment, self.schedules);
        for (file, source) in sources.files.iter().enumerate() {
            let Form::Crontab { user_column } = source.form else {
                continue;
            };
            config.crontabs.push(CrontabConfig {
                path: source.name.to_string(),
                user: user_column,
            });
            let mut faults = Vec::new();
            let mut reading = Reading {
                source,
                environment,
                faults: &mut faults,
            };
            let mut keep = |job: JobConfig| {
                let has_room = self.has_room_for(text_bytes(&job), &job.at);
                config.jobs.push(job);
                has_room
            };
            TableReader::new(&mut reading, schedules, file, user_column).read(names, slot_pools, &mut keep);
            for fault in &mut faults {
                if fault.is_error() && fault.code != "config/too-large" {
                    fault.severity = self.faulty_line;
                }
            }
            self.faults.extend(faults);
        }
    }
}
