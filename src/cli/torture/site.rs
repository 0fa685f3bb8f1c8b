//! The directory of a torture: what is made in it, whose it is, and how it is emptied again.

use std::io;
use std::path::{Path, PathBuf};

use super::super::failure::Failure;
use super::plan::name_of;
use crate::os::disk::FileSystem;
use crate::os::proc;

/// The file that says that all else here was made by a torture.
const MARK: &str = "made-by-ductor-torture";
/// Everything that is ever made here, the mark last: what is half removed is still known.
const MADE: [&str; 9] = [
    "ductor.yaml",
    "ductor.yaml.new",
    "state",
    "evidence",
    "faults",
    "logs",
    "damaged",
    "ballast",
    MARK,
];
/// The variable by which the processes of a torture are known.
pub(super) const VARIABLE: &str = "TORTURE_SITE";
/// A configuration that no daemon takes.
pub(super) const BROKEN: &str = "jobs:\n  - {name: broken, comand: 'true'}\n";
/// A tmpfs of up to this size may be filled: it was made for this.
const FILLED_BYTES_MAX: u64 = 1 << 30;
/// What a filled disk is filled with at once.
const BALLAST_CHUNK: usize = 1 << 20;

/// The directory.
#[derive(Debug, Clone)]
pub(super) struct Site {
    root: PathBuf,
    made: bool,
}

impl Site {
    /// A directory that is ours already.
    pub(super) fn at(root: &Path) -> Site {
        Site {
            root: root.to_owned(),
            made: false,
        }
    }

    /// Takes an empty directory, one that does not exist yet, or one that an earlier torture left.
    pub(super) fn take(root: &Path) -> Result<Site, Failure> {
        let shown = root.display();
        let unusable = |error: io::Error| {
            Failure::Negative(format!(
                "{shown} cannot be used: {error}; choose another with --dir"
            ))
        };
        let made = !root.exists();
        std::fs::create_dir_all(root).map_err(unusable)?;
        let root = root.canonicalize().map_err(unusable)?;
        let site = Site { root, made };
        let empty = std::fs::read_dir(&site.root).map_err(unusable)?.next().is_none();
        if !empty {
            site.take_over(&shown.to_string())?;
        }
        std::fs::write(site.root.join(MARK), "").map_err(unusable)?;
        for folder in ["faults", "logs"] {
            std::fs::create_dir_all(site.root.join(folder)).map_err(unusable)?;
        }
        make_evidence(&site.evidence()).map_err(unusable)?;
        Ok(site)
    }

    fn take_over(&self, shown: &str) -> Result<(), Failure> {
        if !self.root.join(MARK).exists() {
            return Err(Failure::Conflict(format!(
                "{shown} is not empty and was not made by a torture; name an empty directory, or one that does not exist"
            )));
        }
        let left: Vec<String> = self
            .processes()
            .iter()
            .map(|process| process.pid.to_string())
            .collect();
        if !left.is_empty() {
            return Err(Failure::Conflict(format!(
                "processes of an earlier torture in {shown} still run; end them first: kill -9 {}",
                left.join(" ")
            )));
        }
        self.empty().map_err(|error| {
            Failure::Negative(format!(
                "what an earlier torture left in {shown} cannot be removed: {error}"
            ))
        })
    }

    /// Removes what was made, and nothing else.
    fn empty(&self) -> io::Result<()> {
        for name in MADE {
            let path = self.root.join(name);
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Empties the directory, and removes it if it was made for this.
    pub(super) fn clear(&self) -> io::Result<()> {
        self.empty()?;
        if self.made {
            std::fs::remove_dir(&self.root)?;
        }
        Ok(())
    }

    /// Processes that belong to this place and live.
    pub(super) fn processes(&self) -> Vec<proc::ProcessIdentity> {
        proc::marked_processes(VARIABLE, &self.root.display().to_string()).unwrap_or_default()
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn config(&self) -> PathBuf {
        self.root.join("ductor.yaml")
    }

    pub(super) fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    pub(super) fn evidence(&self) -> PathBuf {
        self.root.join("evidence")
    }

    /// A place inside this one, for a damaged copy.
    pub(super) fn damaged(&self) -> Site {
        Site::at(&self.root.join("damaged"))
    }

    /// The plan of faults of a daemon.
    pub(super) fn faults(&self, daemon: usize) -> PathBuf {
        self.root.join("faults").join(name_of(daemon))
    }

    /// What a daemon prints (`out`) and logs (`log`).
    pub(super) fn log(&self, name: &str, kind: &str) -> PathBuf {
        self.root.join("logs").join(format!("{name}.{kind}"))
    }

    /// Puts this text in the place of the configuration, whole or not at all.
    pub(super) fn write_config(&self, text: &str) -> io::Result<()> {
        let new = self.root.join("ductor.yaml.new");
        std::fs::write(&new, text)?;
        std::fs::rename(&new, self.config())
    }

    /// Why the file system may not be filled; `None` if it may.
    pub(super) fn why_not_filled(&self) -> Option<&'static str> {
        match FileSystem::of(&self.root) {
            Ok(system) if system.type_name() != "tmpfs" => Some("DIR is on no tmpfs"),
            Ok(system) if system.total_bytes > FILLED_BYTES_MAX => {
                Some("DIR is on a tmpfs of more than 1 GiB")
            }
            Ok(_) => None,
            Err(_) => Some("the file system of DIR cannot be looked at"),
        }
    }

    /// Fills the file system until nothing fits.
    pub(super) fn fill(&self) {
        use std::io::Write;
        let Ok(mut file) = std::fs::File::create(self.root.join("ballast")) else {
            return;
        };
        for size in [BALLAST_CHUNK, 4_096, 1] {
            let chunk = vec![0_u8; size];
            while file.write_all(&chunk).is_ok() {}
        }
    }

    /// Frees what [`Site::fill`] took.
    pub(super) fn free(&self) {
        std::fs::remove_file(self.root.join("ballast")).ok();
    }
}

/// The folders in which steps hold their locks.
pub(super) fn make_evidence(folder: &Path) -> io::Result<()> {
    for name in ["runs", "jobs", "slots"] {
        std::fs::create_dir_all(folder.join(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_somebody_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("thesis"), "mine").unwrap();
        let refused = Site::take(folder.path()).unwrap_err();
        assert_eq!(refused.exit().code(), 5);
        assert!(
            refused
                .text()
                .contains("is not empty and was not made by a torture")
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_place_is_taken_taken_over_and_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("new").join("place");
        let site = Site::take(&root).unwrap();
        site.write_config("jobs: []\n").unwrap();
        std::fs::create_dir_all(site.state().join("nodes")).unwrap();
        std::fs::write(root.join("notes"), "of a person").unwrap();
        let again = Site::take(&root).unwrap();
        assert!(!again.config().exists(), "the earlier one is gone");
        again.clear().unwrap();
        assert_eq!(
            std::fs::read_to_string(root.join("notes")).unwrap(),
            "of a person"
        );
        std::fs::remove_file(root.join("notes")).unwrap();
        let fresh = folder.path().join("fresh");
        Site::take(&fresh).unwrap().clear().unwrap();
        assert!(!fresh.exists(), "what was made for it goes with it");
        assert!(root.exists(), "what was there stays");
    }
}
