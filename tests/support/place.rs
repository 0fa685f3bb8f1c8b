//! Where a daemon lives: a folder with its config file and its state directory. Two daemons may share one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

/// Clones share the folder; it is deleted with the last of them.
#[derive(Debug, Clone)]
pub(crate) struct Place(Arc<TempDir>);

impl Place {
    /// A fresh folder with `ductor.yaml` holding `config`, and an empty `state/`.
    pub(crate) fn new(config: &str) -> Place {
        let folder = tempfile::Builder::new()
            .prefix("ductor-")
            .tempdir()
            .expect("a temporary folder");
        let place = Place(Arc::new(folder));
        fs::create_dir(place.state()).expect("a state directory");
        place.write_config(config);
        place
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder().join("ductor.yaml")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder().join("state")
    }

    /// Replaces the config file whole, by a rename, as an editor does.
    pub(crate) fn write_config(&self, text: &str) {
        self.write("ductor.yaml.new", text);
        fs::rename(self.folder().join("ductor.yaml.new"), self.config()).expect("replace the config file");
    }

    /// Writes another file into the folder, which commands of a job may read.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder().join(name);
        fs::write(&path, text).expect("write into the folder of the test");
        path
    }

    /// The text of a file of the folder; `None` while it is not there.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder().join(name)).ok()
    }
}
