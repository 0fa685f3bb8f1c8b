//! The files of one configuration document: which ones there are and what they hold.
//! Reading the disk happens here and in `find.rs` only; what the text means is `load.rs`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::fault::{Fault, Place, ordered};

/// Bytes of one configuration file. A thousand jobs need a quarter of a megabyte.
pub const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Files of one configuration directory.
pub const FILES_MAX: usize = 1000;

/// One file: its name as shown to people, the folder its relative paths start from, its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub name: Arc<str>,
    pub directory: PathBuf,
    pub text: String,
}

/// The files of one document in reading order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    pub files: Vec<Source>,
}

impl Sources {
    /// Texts that never were on a disk; relative paths start from the folder part of the name.
    pub fn in_memory(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(name, text)| Source {
                name: Arc::from(*name),
                directory: folder_of(Path::new(name)),
                text: (*text).to_owned(),
            })
            .collect();
        Self { files }
    }

    /// Reads a file, or every `*.yaml` of a directory in name order.
    pub fn read(path: &Path) -> Result<Self, Vec<Fault>> {
        let paths = if path.is_dir() {
            files_of(path).map_err(|fault| vec![*fault])?
        } else {
            vec![path.to_owned()]
        };
        let mut files = Vec::new();
        let mut faults = Vec::new();
        for path in &paths {
            match read_file(path) {
                Ok(source) => files.push(source),
                Err(fault) => faults.push(*fault),
            }
        }
        if faults.is_empty() {
            Ok(Self { files })
        } else {
            Err(faults)
        }
    }

    /// Findings in the order of these files, cut at a page.
    pub fn in_order(&self, faults: Vec<Fault>) -> Vec<Fault> {
        let names: Vec<Arc<str>> = self.files.iter().map(|source| source.name.clone()).collect();
        ordered(faults, &names)
    }

    /// The same texts under other names.
    #[must_use]
    pub fn renamed(&self, name_of: impl Fn(&str) -> String) -> Self {
        let files = self.files.iter().map(|source| Source {
            name: name_of(&source.name).into(),
            ..source.clone()
        });
        Self {
            files: files.collect(),
        }
    }

    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.files
            .iter()
            .find(|source| &*source.name == name)
            .map(|source| source.text.as_str())
    }
}

fn files_of(directory: &Path) -> Result<Vec<PathBuf>, Box<Fault>> {
    let unreadable = |error: &std::io::Error| {
        Fault::error(
            "config/unreadable",
            &place_of(directory),
            format!("cannot list the directory: {error}"),
        )
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| unreadable(&error))? {
        let path = entry.map_err(|error| unreadable(&error))?.path();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml");
        if is_yaml && !path.is_dir() {
            paths.push(path);
        }
        if paths.len() > FILES_MAX {
            return Err(Fault::error(
                "config/too-large",
                &place_of(directory),
                format!("more than {FILES_MAX} files in one configuration directory"),
            )
            .into());
        }
    }
    if paths.is_empty() {
        return Err(Fault::error(
            "config/not-found",
            &place_of(directory),
            "the directory has no `*.yaml` file",
        )
        .with_help("the README has a first one")
        .into());
    }
    paths.sort();
    Ok(paths)
}

fn read_file(path: &Path) -> Result<Source, Box<Fault>> {
    let at = place_of(path);
    let unreadable = |error: std::io::Error| {
        Fault::error(
            "config/unreadable",
            &at,
            format!("cannot read the configuration file: {error}"),
        )
    };
    let file = fs::File::open(path).map_err(unreadable)?;
    // One byte more than allowed is enough to know; a pipe or device never fills the memory.
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    check_length(&at, bytes.len())?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        not_text(&at.file, error.as_bytes(), valid)
    })?;
    let folder = folder_of(path);
    let directory = std::path::absolute(&folder).unwrap_or(folder);
    Ok(Source {
        name: at.file,
        directory,
        text,
    })
}

/// The limit holds for texts in memory too, hence it is asked again before parsing.
pub(super) fn check_length(at: &Place, length: usize) -> Result<(), Box<Fault>> {
    if length <= FILE_BYTES_MAX {
        return Ok(());
    }
    Err(Fault::error(
        "config/too-large",
        at,
        format!("a configuration file may have at most {FILE_BYTES_MAX} bytes (4 MiB)"),
    )
    .with_help("split it: a directory of `*.yaml` files is one configuration")
    .into())
}

fn not_text(file: &Arc<str>, bytes: &[u8], valid: usize) -> Fault {
    let good = String::from_utf8_lossy(&bytes[..valid]);
    let line = good.matches('\n').count() + 1;
    let column = good.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
    let at = Place {
        file: file.clone(),
        line,
        column,
        span: valid..valid,
    };
    Fault::error("config/not-text", &at, "the file is not UTF-8 text here").with_help("save it as UTF-8")
}

fn place_of(path: &Path) -> Place {
    Place::whole(&path.display().to_string())
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn a_directory_is_its_yaml_files_in_name_order() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "b.yaml", b"jobs: []");
        write(folder.path(), "a.yaml", b"pools: {}");
        write(folder.path(), "c.yml", b"no");
        fs::create_dir(folder.path().join("d.yaml")).unwrap();
        let sources = Sources::read(folder.path()).unwrap();
        let texts: Vec<&str> = sources.files.iter().map(|file| file.text.as_str()).collect();
        assert_eq!(texts, ["pools: {}", "jobs: []"]);
        assert_eq!(sources.files[0].directory, folder.path());
    }

    #[test]
    fn what_cannot_be_read_is_an_error_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let big = write(folder.path(), "big.yaml", &vec![b' '; FILE_BYTES_MAX + 1]);
        let binary = write(folder.path(), "binary.yaml", b"a: 1\nb: \xff\xfe\x00");
        fs::create_dir(folder.path().join("empty")).unwrap();
        for (path, code, text) in [
            (big, "config/too-large", "4 MiB"),
            (binary, "config/not-text", "binary.yaml:2:4"),
            (
                folder.path().join("none.yaml"),
                "config/unreadable",
                "cannot read",
            ),
            (folder.path().join("empty"), "config/not-found", "no `*.yaml`"),
        ] {
            let faults = Sources::read(&path).unwrap_err();
            assert_eq!(faults[0].code, code);
            assert!(faults[0].to_string().contains(text), "{}", faults[0]);
        }
    }
}
