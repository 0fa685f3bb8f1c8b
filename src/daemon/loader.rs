//! Reading the configuration, at the start and at every reload alike: the same place, the same layers on top, the same
//! judges.

use std::path::{Path, PathBuf};

use super::{bundle_files, issuer_keys, schedule_check::Schedules, schedule_lints, secret_check};
use crate::config::{self, Config, Environment, Fault, Form, Origin, Overrides, ScheduleCheck, Sources};
use crate::words::time::{Clock, SystemClock};

/// Where the configuration is and what is laid over it. Both hold for the life of a daemon: a reload reads the same place.
#[derive(Debug, Clone)]
pub struct Loader {
    path: PathBuf,
    overrides: Overrides,
}

/// A configuration that may be used.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Findings that do not keep it from being used.
    pub warnings: Vec<Fault>,
    /// What was read, for carets.
    pub sources: Sources,
}

/// The configuration with its warnings, or all faults.
type Judged = Result<(Config, Vec<Fault>), Vec<Fault>>;

/// What `ductor check` finds.
#[derive(Debug)]
pub struct Checked {
    /// The configuration; `None` when an error keeps it from being used.
    pub config: Option<Config>,
    /// All findings, in the order of the files.
    pub findings: Vec<Fault>,
    /// What was read, for carets.
    pub sources: Sources,
    /// The bundles that it names, for carets too.
    pub bundles: Sources,
}

/// A configuration that may not be used.
#[derive(Debug)]
pub struct Unusable {
    /// What is wrong.
    pub faults: Vec<Fault>,
    /// What was read, for carets.
    pub sources: Sources,
}

/// Reads a file of another program, for moving in: every faulty line counts.
pub fn load_as(path: &Path, name: &str, form: Form) -> Result<Loaded, Unusable> {
    let environment = |name: &str| std::env::var(name).ok();
    match Sources::read_as(path, form, &environment) {
        Ok(sources) => {
            let own = path.display().to_string();
            judged(sources.renamed(|file| if *file == own { name } else { file }.to_owned()))
        }
        Err(faults) => Err(Unusable {
            faults,
            sources: Sources::default(),
        }),
    }
}

/// Judges a text that is on no disk yet.
pub fn load_text(name: &str, text: &str) -> Result<Loaded, Unusable> {
    judged(Sources::in_memory(&[(name, text)]))
}

fn judged(sources: Sources) -> Result<Loaded, Unusable> {
    let environment = |name: &str| std::env::var(name).ok();
    match config::load(&sources, &environment, &Overrides::default(), &Schedules) {
        Ok((config, warnings)) => Ok(Loaded {
            config,
            warnings,
            sources,
        }),
        Err(faults) => Err(Unusable { faults, sources }),
    }
}

type Judge = fn(&Sources, &Environment<'_>, &Overrides, &dyn ScheduleCheck) -> Judged;

impl Loader {
    /// For a file or a folder that was found.
    pub fn new(path: PathBuf, overrides: Overrides) -> Loader {
        Loader { path, overrides }
    }

    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder from which files are named in answers: no absolute path leaves the daemon over HTTP.
    pub fn folder(&self) -> &Path {
        if self.path.is_dir() {
            &self.path
        } else {
            self.path.parent().unwrap_or(Path::new(""))
        }
    }

    /// What lies over the files.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Reads all files and judges them, for a start: a faulty line of a crontab is a warning, the others run. Blocks on
    /// the disk.
    pub fn load_at_start(&self) -> Result<Loaded, Unusable> {
        self.usable(config::load_at_start)
    }

    /// As at a start, for a reload: what runs already is better than a table with a hole. Blocks on the disk.
    pub fn load(&self) -> Result<Loaded, Unusable> {
        self.usable(config::load)
    }

    fn usable(&self, judge: Judge) -> Result<Loaded, Unusable> {
        let (sources, judged) = self.read(judge);
        match judged {
            Ok((config, mut warnings)) => {
                warnings.extend(secret_check::short_secrets(&config));
                warnings.extend(schedule_lints::at_load(&config, SystemClock.now().wall));
                Ok(Loaded {
                    config,
                    warnings,
                    sources,
                })
            }
            Err(faults) => Err(Unusable { faults, sources }),
        }
    }

    /// Reads and judges for `ductor check`: all findings, also those that a daemon would keep to itself.
    pub fn check(&self) -> Checked {
        let (sources, judged) = self.read(config::load);
        let mut bundles = Sources::default();
        let (config, findings) = match judged {
            Ok((config, mut findings)) => {
                findings.extend(secret_check::short_secrets(&config));
                findings.extend(schedule_lints::in_check(&config, SystemClock.now().wall));
                let (wrong, texts) = bundle_files::check(&config);
                findings.extend(wrong);
                bundles = texts;
                (Some(config), findings)
            }
            Err(faults) => (None, faults),
        };
        Checked {
            config,
            findings: sources.and(&bundles).in_order(findings),
            sources,
            bundles,
        }
    }

    /// Where each value of what was checked comes from.
    pub fn origins(&self, checked: &Checked) -> Vec<Origin> {
        let environment = |name: &str| std::env::var(name).ok();
        let origins = |config| config::origins(&checked.sources, &environment, &self.overrides, config);
        checked.config.as_ref().map(origins).unwrap_or_default()
    }

    fn read(&self, judge: Judge) -> (Sources, Judged) {
        let environment = |name: &str| std::env::var(name).ok();
        match Sources::read(&self.path, &environment) {
            Ok(sources) => {
                let judged = judge(&sources, &environment, &self.overrides, &Schedules);
                let judged = judged.and_then(|(mut config, findings)| {
                    let faults = issuer_keys::read(&mut config);
                    if faults.is_empty() {
                        Ok((config, findings))
                    } else {
                        Err(faults)
                    }
                });
                (sources, judged)
            }
            Err(faults) => (Sources::default(), Err(faults)),
        }
    }
}
