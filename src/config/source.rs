//! One file of a configuration: its text, and in which of the known shapes it is written.
//! The disk is read here, in `include.rs` (which files there are) and in `glob.rs`; what the text means is `load.rs`.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::fault::{Fault, Place, ordered};

/// Bytes of one configuration file. A thousand jobs need a quarter of a megabyte.
pub const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Files of one configuration, with everything it includes.
pub const FILES_MAX: usize = 1000;

/// How the text of a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Our own YAML.
    Yaml,
    /// The YAML of cronstable and yacron: the same words, some other meanings.
    Cronstable,
    /// A table of cron; the system's own has a column for the user.
    Crontab { user_column: bool },
}

impl Form {
    /// As the name tells it: `x.crontab`, `x.cronstable.yaml`, `x.yacron.yaml`, and those names without the `x.`.
    pub fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".crontab") {
            return Self::Crontab { user_column: false };
        }
        let stem = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml"));
        let last = stem.map(|stem| stem.rsplit('.').next().unwrap_or(stem));
        if matches!(last, Some("cronstable" | "yacron" | "yacrontab")) {
            Self::Cronstable
        } else {
            Self::Yaml
        }
    }
}

/// One file: its name as shown to people, the folder its relative paths start from, its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub name: Arc<str>,
    pub directory: PathBuf,
    pub text: String,
    pub form: Form,
    /// Not all of it was UTF-8: what was not is `\u{fffd}` in the text. Only a crontab may be so.
    pub is_damaged: bool,
    /// The files that it names have been read too.
    pub(super) is_followed: bool,
    /// Where another file of the same form includes it.
    pub(super) included_at: Option<Place>,
}

impl Source {
    /// A text that never was on a disk; relative paths start from the folder part of the name.
    pub fn in_memory(name: &str, text: &str, form: Form) -> Self {
        Self {
            name: Arc::from(name),
            directory: folder_of(Path::new(name)),
            text: text.to_owned(),
            form,
            is_damaged: false,
            is_followed: false,
            included_at: None,
        }
    }
}

/// The files of one document in reading order, and what was wrong with finding them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    pub files: Vec<Source>,
    /// Files that are named and cannot be read; `load` reports them with everything else.
    pub(super) faults: Vec<Fault>,
}

impl Sources {
    /// Texts that never were on a disk, each in the form that its name tells.
    pub fn in_memory(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(name, text)| Source::in_memory(name, text, Form::of(Path::new(name))));
        Self {
            files: files.collect(),
            faults: Vec::new(),
        }
    }

    /// These files, and others after them.
    #[must_use]
    pub fn and(&self, others: &Sources) -> Self {
        Self {
            files: [self.files.clone(), others.files.clone()].concat(),
            faults: self.faults.clone(),
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
            faults: self.faults.clone(),
        }
    }

    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.files
            .iter()
            .find(|source| &*source.name == name)
            .map(|source| source.text.as_str())
    }
}

/// Reads one file. A crontab is never refused for a letter: old comments are often in another character set.
pub(super) fn read_file(path: &Path, form: Form) -> Result<Source, Box<Fault>> {
    let at = place_of(path);
    let unreadable = |error: io::Error| {
        Fault::error(
            "config/unreadable",
            &at,
            format!("cannot read the configuration file: {}", why(&error)),
        )
    };
    let file = fs::File::open(path).map_err(unreadable)?;
    // One byte more than allowed is enough to know; a pipe or device never fills the memory.
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    check_length(&at, bytes.len(), FILE_BYTES_MAX)?;
    let (text, is_damaged) = match (String::from_utf8(bytes), form) {
        (Ok(text), _) => (text, false),
        (Err(error), Form::Crontab { .. }) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        (Err(error), Form::Yaml | Form::Cronstable) => {
            let valid = error.utf8_error().valid_up_to();
            return Err(not_text(&at.file, error.as_bytes(), valid).into());
        }
    };
    let folder = folder_of(path);
    let directory = std::path::absolute(&folder).unwrap_or(folder);
    Ok(Source {
        name: at.file,
        directory,
        text,
        form,
        is_damaged,
        is_followed: false,
        included_at: None,
    })
}

/// Why a file or folder cannot be read, in words that may be shown to strangers.
pub(super) fn why(error: &io::Error) -> String {
    let kind = error.kind();
    if kind == io::ErrorKind::NotFound {
        return "it does not exist".to_owned();
    }
    kind.to_string()
}

/// The limit holds for texts in memory too, hence it is asked again before parsing.
pub(super) fn check_length(at: &Place, length: usize, most: usize) -> Result<(), Box<Fault>> {
    if length <= most {
        return Ok(());
    }
    let mebibytes = most / (1024 * 1024);
    let (what, help) = if most == FILE_BYTES_MAX {
        let help = "split it: a directory of `*.yaml` files is one configuration";
        ("configuration file", Some(help.to_owned()))
    } else {
        ("document", None)
    };
    let message = format!("a {what} may have at most {most} bytes ({mebibytes} MiB)");
    Err(Fault::error("config/too-large", at, message)
        .with_help_if(help)
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

pub(super) fn place_of(path: &Path) -> Place {
    Place::whole(&path.display().to_string())
}

pub(super) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_form() {
        let crontab = Form::Crontab { user_column: false };
        for (name, expected) in [
            ("ductor.yaml", Form::Yaml),
            ("jobs.yml", Form::Yaml),
            ("etc/web.crontab", crontab),
            (".crontab", crontab),
            ("crontab", Form::Yaml),
            ("web-shop.cronstable.yaml", Form::Cronstable),
            ("a.yacron.yml", Form::Cronstable),
            ("yacrontab.yaml", Form::Cronstable),
            ("cronstable.md", Form::Yaml),
            ("my-yacron.yaml", Form::Yaml),
        ] {
            assert_eq!(Form::of(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let big = write("big.yaml", &vec![b' '; FILE_BYTES_MAX + 1]);
        let binary = write("binary.yaml", b"a: 1\nb: \xff\xfe\x00");
        for (path, code, text) in [
            (big, "config/too-large", "4 MiB"),
            (binary.clone(), "config/not-text", "binary.yaml:2:4"),
            (
                folder.path().join("none.yaml"),
                "config/unreadable",
                "cannot read",
            ),
        ] {
            let fault = read_file(&path, Form::Yaml).unwrap_err();
            assert_eq!(fault.code, code);
            assert!(fault.to_string().contains(text), "{fault}");
        }
        let crontab = read_file(&binary, Form::Crontab { user_column: false }).unwrap();
        assert!(crontab.is_damaged && crontab.text.starts_with("a: 1\nb: \u{fffd}"));
    }
}
