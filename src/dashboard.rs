//! The files of the dashboard: in the binary, or read from a folder while somebody works on them (`serve --web-dir`).
//!
//! Not here: how they are sent (`http/pages.rs`) and what they do (`web/`).

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use rust_embed::Embed;
use sha2::{Digest, Sha256};

/// `web/` as it was when the binary was built; read from the disk in a debug build.
#[derive(Embed)]
#[folder = "web/"]
struct Embedded;

/// One file, ready to be sent.
#[derive(Debug, Clone)]
pub struct WebFile {
    pub bytes: Cow<'static, [u8]>,
    pub media: &'static str,
    /// Without the quotes of the header; changes with the bytes.
    pub etag: String,
}

/// Where the files come from.
#[derive(Debug, Clone, Default)]
pub struct WebFiles {
    /// Instead of what is in the binary.
    folder: Option<PathBuf>,
}

impl WebFiles {
    /// The files of `folder`; without one those of the binary.
    pub fn new(folder: Option<PathBuf>) -> WebFiles {
        WebFiles { folder }
    }

    /// The file at a path like `app/main.js`; `None` if there is none, or the path leads out of the folder.
    pub fn get(&self, path: &str) -> Option<WebFile> {
        let media = media_of(path)?;
        let is_plain = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || !is_plain {
            return None;
        }
        let (bytes, digest) = match &self.folder {
            Some(folder) => {
                let bytes = std::fs::read(folder.join(path)).ok()?;
                let digest = Sha256::digest(&bytes);
                (Cow::Owned(bytes), <[u8; 32]>::from(digest))
            }
            None => {
                let file = Embedded::get(path)?;
                (file.data, file.metadata.sha256_hash())
            }
        };
        let half = u128::from_be_bytes(std::array::from_fn(|at| digest[at]));
        let etag = format!("{half:032x}");
        Some(WebFile { bytes, media, etag })
    }
}

/// What browsers are told a file is; other kinds are not sent.
fn media_of(path: &str) -> Option<&'static str> {
    let (_, kind) = path.rsplit_once('.')?;
    Some(match kind {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_from_the_binary_or_the_folder_and_from_nowhere_else() {
        let built_in = WebFiles::default();
        let page = built_in.get("index.html").expect("the page");
        assert!(page.media.starts_with("text/html"), "{}", page.media);
        assert_eq!(page.etag.len(), 32);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("index.html"), "mine").expect("write");
        std::fs::write(folder.path().join("notes.txt"), "not for browsers").expect("write");
        std::fs::create_dir(folder.path().join("app")).expect("a folder in it");
        std::fs::write(folder.path().join("app/main.js"), "let it = 1;").expect("write");
        let own = WebFiles::new(Some(folder.path().join("app")));
        assert!(own.get("main.js").is_some());
        for outside in [
            "../index.html",
            "/etc/hosts.js",
            "./../index.html",
            "x/../../index.html",
            "",
            ".",
        ] {
            assert!(own.get(outside).is_none(), "{outside}");
            assert!(built_in.get(outside).is_none(), "{outside}");
        }
        let own = WebFiles::new(Some(folder.path().to_owned()));
        assert_eq!(own.get("index.html").expect("mine").bytes.as_ref(), b"mine");
        assert_ne!(own.get("index.html").expect("mine").etag, page.etag);
        assert!(own.get("notes.txt").is_none() && own.get("app").is_none());
    }

    #[test]
    fn every_file_is_of_a_kind_that_is_sent() {
        let mut count = 0;
        for path in Embedded::iter().filter(|path| !path.ends_with(".md")) {
            assert!(media_of(&path).is_some(), "{path} would never be sent");
            count += 1;
        }
        assert!(count > 10, "{count} files");
    }
}
