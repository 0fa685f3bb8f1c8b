//! What a command and its step exchange by files: `DUCTOR_INPUT` names one with the input of the step, `DUCTOR_OUTPUT` one
//! where the command may leave a JSON document.
//!
//! Both lie in a folder of the attempt's own, which belongs to the user of the command, so that it can also be replaced
//! by a rename. What is found there afterwards is the work of that user and not trusted: only a plain file of theirs is
//! read, never what a link leads to.

use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use crate::domain::payload;
use crate::os;
use crate::os::user::{Credentials, own_uid};
use crate::words::limits;
use crate::words::payload::JsonText;

/// The variable that names the file for the output.
pub const OUTPUT_VARIABLE: &str = "DUCTOR_OUTPUT";
/// The variable that names the file with the input.
pub const INPUT_VARIABLE: &str = "DUCTOR_INPUT";

/// The files of one attempt, as they are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepFiles {
    /// A folder that is not there yet and of this attempt alone; its parent is made.
    pub folder: PathBuf,
    /// The input of the step, if the command shall see it.
    pub input: Option<JsonText>,
}

impl StepFiles {
    fn output(&self) -> PathBuf {
        self.folder.join("output.json")
    }

    fn input(&self) -> PathBuf {
        self.folder.join("input.json")
    }

    /// The variables of the command.
    pub(super) fn marks(&self) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut marks = vec![(OUTPUT_VARIABLE.to_owned(), text(self.output()))];
        if self.input.is_some() {
            marks.push((INPUT_VARIABLE.to_owned(), text(self.input())));
        }
        marks
    }

    /// Makes folder and files, for a command that runs as `credentials`. Waits for the disk.
    pub(super) fn make(&self, credentials: &Credentials) -> Result<(), String> {
        let made = self.make_as(credentials);
        made.map_err(|error| format!("the files of the step cannot be made: {error}"))
    }

    fn make_as(&self, credentials: &Credentials) -> std::io::Result<()> {
        if let Some(parent) = self.folder.parent() {
            std::fs::create_dir_all(parent)?;
        }
        // What an attempt of the same name left behind, when its daemon died.
        self.remove();
        std::fs::DirBuilder::new().mode(0o700).create(&self.folder)?;
        let make = |path: PathBuf, text: &str| {
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            give(&path, credentials)
        };
        make(self.output(), "")?;
        if let Some(input) = &self.input {
            make(self.input(), input.as_str())?;
        }
        give(&self.folder, credentials)
    }

    /// What the command left, if anything: a text that was not looked at yet. Its processes are gone. Waits for the disk.
    pub(super) fn take(&self, credentials: &Credentials) -> Result<Option<String>, String> {
        let unreadable = |error: std::io::Error| format!("output: {OUTPUT_VARIABLE} cannot be read: {error}");
        let file = match os::disk::open_no_link(&self.output()) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        let found = file.metadata().map_err(unreadable)?;
        let owner = credentials.uid.unwrap_or_else(own_uid);
        if !found.is_file() || found.uid() != owner || found.nlink() != 1 {
            return Err(format!(
                "output: {OUTPUT_VARIABLE} is no plain file of the command's own any more"
            ));
        }
        payload::check_bytes(found.len()).map_err(|error| format!("output: {error}"))?;
        let mut bytes = Vec::new();
        file.take(limits::PAYLOAD_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        payload::check_bytes(bytes.len() as u64).map_err(|error| format!("output: {error}"))?;
        let text = String::from_utf8(bytes).map_err(|_| "output: it is not UTF-8".to_owned())?;
        Ok(Some(text).filter(|text| !text.trim().is_empty()))
    }

    /// Takes all of it away.
    pub(super) fn remove(&self) {
        match std::fs::remove_dir_all(&self.folder) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(cause = %error, "the files of a step could not be removed"),
        }
    }
}

/// The document in a text that a command left, with the values of its secrets hidden.
pub(super) fn document_of(text: &str, masked: &str) -> Result<JsonText, String> {
    match (JsonText::parse(text.trim()), JsonText::parse(masked.trim())) {
        (Err(error), _) => Err(format!("output: it is not JSON: {error}")),
        (Ok(_), Err(_)) => {
            Err("output: a value of a secret stands in it where no text may be hidden".to_owned())
        }
        (Ok(_), Ok(document)) => Ok(document),
    }
}

fn give(path: &Path, credentials: &Credentials) -> std::io::Result<()> {
    if credentials.uid.is_none() && credentials.gid.is_none() {
        return Ok(());
    }
    chown(path, credentials.uid, credentials.gid)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn made(input: Option<&str>) -> (tempfile::TempDir, StepFiles) {
        let folder = tempfile::tempdir().unwrap();
        let files = StepFiles {
            folder: folder.path().join("run").join("step-1-7.files"),
            input: input.map(|text| JsonText::parse(text).unwrap()),
        };
        files.make(&Credentials::default()).unwrap();
        (folder, files)
    }

    fn taken(files: &StepFiles) -> Result<Option<String>, String> {
        files.take(&Credentials::default())
    }

    #[test]
    fn the_files_belong_to_the_command_and_to_nobody_else() {
        let (_folder, files) = made(Some("{\"a\": 1}"));
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            [
                mode(files.folder.clone()),
                mode(files.input()),
                mode(files.output())
            ],
            [0o700, 0o600, 0o600]
        );
        assert_eq!(std::fs::read_to_string(files.input()).unwrap(), "{\"a\": 1}");
        let marks = files.marks();
        assert_eq!(
            marks[0],
            (OUTPUT_VARIABLE.to_owned(), files.output().display().to_string())
        );
        assert_eq!(
            marks[1],
            (INPUT_VARIABLE.to_owned(), files.input().display().to_string())
        );
        files.remove();
        assert!(!files.folder.exists());
        let (_folder, files) = made(None);
        assert_eq!((files.marks().len(), files.input().exists()), (1, false));
        // A daemon died with it; the same attempt begins anew.
        std::fs::write(files.output(), "old").unwrap();
        files.make(&Credentials::default()).unwrap();
        assert_eq!(taken(&files), Ok(None));
    }

    #[test]
    fn what_the_command_left_is_read_once_it_is_a_plain_file() {
        let (folder, files) = made(None);
        assert_eq!(taken(&files), Ok(None));
        std::fs::write(files.output(), " \n").unwrap();
        assert_eq!(taken(&files), Ok(None));
        std::fs::write(folder.path().join("new"), "[1]\n").unwrap();
        std::fs::rename(folder.path().join("new"), files.output()).unwrap();
        assert_eq!(taken(&files), Ok(Some("[1]\n".to_owned())));
        std::fs::write(files.output(), b"\xff").unwrap();
        assert_eq!(taken(&files), Err("output: it is not UTF-8".to_owned()));
        let large = std::fs::File::create(files.output()).unwrap();
        large.set_len(limits::PAYLOAD_BYTES_MAX + 1).unwrap();
        assert_eq!(
            taken(&files),
            Err("output: the payload has 33554433 bytes; at most 33554432 (32 MiB) are kept".to_owned())
        );
        std::fs::remove_file(files.output()).unwrap();
        assert_eq!(taken(&files), Ok(None));
    }

    #[test]
    fn what_a_link_leads_to_is_not_read() {
        let (folder, files) = made(None);
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "\"not theirs\"").unwrap();
        std::fs::remove_file(files.output()).unwrap();
        symlink(&secret, files.output()).unwrap();
        assert!(
            taken(&files)
                .unwrap_err()
                .starts_with("output: DUCTOR_OUTPUT cannot be read: ")
        );
        std::fs::remove_file(files.output()).unwrap();
        std::fs::hard_link(&secret, files.output()).unwrap();
        let refused = "output: DUCTOR_OUTPUT is no plain file of the command's own any more";
        assert_eq!(taken(&files), Err(refused.to_owned()));
        std::fs::remove_file(files.output()).unwrap();
        std::fs::create_dir(files.output()).unwrap();
        assert_eq!(taken(&files), Err(refused.to_owned()));
        files.remove();
        assert!(secret.exists());
        let (_folder, files) = made(None);
        std::fs::write(files.output(), "1").unwrap();
        let somebody = Credentials {
            uid: Some(own_uid() + 1),
            ..Credentials::default()
        };
        assert_eq!(files.take(&somebody), Err(refused.to_owned()));
    }

    #[test]
    fn a_document_is_kept_with_its_secrets_hidden() {
        let kept =
            |text: &str, masked: &str| document_of(text, masked).map(|document| document.as_str().to_owned());
        assert_eq!(
            kept(" {\"a\": 1.0}\n", " {\"a\": 1.0}\n"),
            Ok("{\"a\": 1.0}".to_owned())
        );
        assert_eq!(kept("[\"hush-hush\"]", "[\"***\"]"), Ok("[\"***\"]".to_owned()));
        assert!(
            kept("{oops", "{oops")
                .unwrap_err()
                .starts_with("output: it is not JSON: ")
        );
        assert_eq!(
            kept("[12345678]", "[***]").unwrap_err(),
            "output: a value of a secret stands in it where no text may be hidden"
        );
    }
}
