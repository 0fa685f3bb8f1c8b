//! The key under which API keys and sessions are hashed: 32 bytes in a file beside the store, never in it, so that a copy of
//! the store alone opens nothing.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::words::ids;

/// Its name in the state directory.
pub const NAME: &str = "keys.secret";

/// The file, which may not be there yet.
#[derive(Debug)]
pub struct HashKey {
    path: PathBuf,
    known: OnceLock<Secret>,
}

struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("…")
    }
}

/// Why there is no such key.
#[derive(Debug, thiserror::Error)]
pub enum HashKeyError {
    /// The file is missing.
    #[error(
        "{0} is missing: without it no API key can be told from another; bring it back from where the state directory was copied"
    )]
    Missing(String),
    /// It is something else.
    #[error("{0} must hold 32 bytes, and nobody but its user may read it (chmod 600)")]
    NotOne(String),
    /// It cannot be read or made.
    #[error("{path}: {cause}")]
    Unusable {
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },
}

impl HashKey {
    /// That of a file; nothing is read yet.
    pub fn at(path: PathBuf) -> HashKey {
        HashKey {
            path,
            known: OnceLock::new(),
        }
    }

    /// Reads the file, if that was not done.
    pub fn load(&self) -> Result<(), HashKeyError> {
        if self.known.get().is_some() {
            return Ok(());
        }
        let secret = self.read()?;
        self.known.set(secret).ok();
        Ok(())
    }

    /// The same, and makes the file where it is missing. Of several daemons one makes it.
    pub fn load_or_make(&self) -> Result<(), HashKeyError> {
        match self.load() {
            Err(HashKeyError::Missing(_)) => {}
            loaded => return loaded,
        }
        make_once(&self.path, &ids::secret_bytes()).map_err(|error| self.unusable(&error))?;
        self.load()
    }

    fn read(&self) -> Result<Secret, HashKeyError> {
        let shown = || self.path.display().to_string();
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(HashKeyError::Missing(shown())),
            Err(error) => return Err(self.unusable(&error)),
        };
        let mode = std::fs::metadata(&self.path).map_err(|error| self.unusable(&error))?;
        let others = mode.permissions().mode() & 0o077;
        match <[u8; 32]>::try_from(bytes) {
            Ok(secret) if others == 0 => Ok(Secret(secret)),
            Ok(_) | Err(_) => Err(HashKeyError::NotOne(shown())),
        }
    }

    fn unusable(&self, error: &std::io::Error) -> HashKeyError {
        HashKeyError::Unusable {
            path: self.path.display().to_string(),
            cause: error.to_string(),
        }
    }

    fn keyed(&self, text: &str) -> Option<blake3::Hash> {
        let secret = self.known.get()?;
        Some(blake3::keyed_hash(&secret.0, text.as_bytes()))
    }

    /// The hash of a text; `None` before the file was read.
    pub fn hash(&self, text: &str) -> Option<[u8; 32]> {
        self.keyed(text).map(Into::into)
    }

    /// True if that is the hash of the text. How long this takes says nothing of how much is the same.
    pub fn is_hash(&self, hash: &[u8; 32], text: &str) -> bool {
        // Two hashes are compared in constant time; two arrays would not be.
        self.keyed(text)
            .is_some_and(|own| own == blake3::Hash::from_bytes(*hash))
    }
}

/// Writes a file that nobody but its user can read, unless it is there; complete or not at all.
pub fn make_once(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let draft = path.with_file_name(format!(
        ".{}.{}",
        path.file_name().unwrap_or_default().to_string_lossy(),
        ids::hex(&ids::secret_bytes()[..8])
    ));
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| match std::fs::hard_link(&draft, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
    std::fs::remove_file(&draft).ok();
    written?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one_makes_it_and_all_have_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let key = || HashKey::at(path.clone());
        assert!(matches!(key().load(), Err(HashKeyError::Missing(_))));
        assert_eq!(key().hash("a"), None);
        let (first, second) = (key(), key());
        first.load_or_make().unwrap();
        second.load_or_make().unwrap();
        let hash = first.hash("a").unwrap();
        assert!(second.is_hash(&hash, "a") && !second.is_hash(&hash, "b"));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(!format!("{first:?}").contains("Secret("));
    }

    #[test]
    fn what_others_can_read_or_is_no_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let load = |bytes: &[u8], mode: u32| {
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            HashKey::at(path.clone()).load()
        };
        assert!(load(&[7; 32], 0o600).is_ok() && load(&[7; 32], 0o400).is_ok());
        for (bytes, mode) in [(&[7; 32][..], 0o640), (&[7; 31], 0o600), (&[7; 33], 0o600)] {
            assert!(
                matches!(load(bytes, mode), Err(HashKeyError::NotOne(_))),
                "{mode:o}"
            );
        }
    }
}
