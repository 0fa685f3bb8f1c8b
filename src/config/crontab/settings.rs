//! What the `NAME=value` lines of a crontab have set for the lines below them.

use std::path::PathBuf;

use super::super::model::EnvironmentEntry;

/// Variables of one table at a time: each line below gets a copy of all.
const VARIABLES_MAX: usize = 250;

/// A variable that means something to cron itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Setting<T> {
    #[default]
    Unset,
    Set(T),
    /// Its line was faulty: what is below must not run as if it did not stand there.
    Faulty,
}

/// The variables in force at a line.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// What the commands get, in the order of their first lines.
    pub(super) variables: Vec<EnvironmentEntry>,
    pub(super) shell: Setting<PathBuf>,
    pub(super) home: Setting<PathBuf>,
    pub(super) zone: Setting<String>,
    pub(super) mail_to: Option<String>,
}

impl Settings {
    /// Whether a line below may be scheduled at all.
    pub(super) fn are_sound(&self) -> bool {
        self.shell != Setting::Faulty && self.home != Setting::Faulty && self.zone != Setting::Faulty
    }

    /// False when there are too many.
    pub(super) fn set(&mut self, name: &str, value: &str) -> bool {
        if let Some(entry) = self.variables.iter_mut().find(|entry| entry.key == name) {
            value.clone_into(&mut entry.value);
            return true;
        }
        if self.variables.len() == VARIABLES_MAX {
            return false;
        }
        self.variables.push(EnvironmentEntry {
            key: name.to_owned(),
            value: value.to_owned(),
        });
        true
    }
}

impl<T> Setting<T> {
    pub(super) fn value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Unset | Self::Faulty => None,
        }
    }
}
