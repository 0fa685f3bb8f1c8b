//! Which time zone this machine lives in, by name, as the C library finds it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The time zone of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostZone {
    /// As written; whether the zone data knows it is not asked here.
    pub name: String,
    /// What said so: `TZ`, or a file.
    pub from: &'static str,
}

const LOCALTIME: &str = "/etc/localtime";
const TIMEZONE: &str = "/etc/timezone";

/// `TZ`, else `/etc/localtime`, else `/etc/timezone`, else UTC. The error is a sentence that says why there is no name.
pub fn host_zone() -> Result<HostZone, String> {
    let variable = std::env::var_os("TZ").map(|value| value.to_string_lossy().into_owned());
    find(variable.as_deref(), Path::new(LOCALTIME), Path::new(TIMEZONE))
}

fn find(variable: Option<&str>, localtime: &Path, timezone: &Path) -> Result<HostZone, String> {
    if let Some(value) = variable {
        let name = of_variable(value);
        return Ok(HostZone { name, from: "TZ" });
    }
    match target_of(localtime) {
        Ok(Some(target)) => {
            if let Some(name) = name_in(&target.to_string_lossy()) {
                let name = name.to_owned();
                let from = LOCALTIME;
                return Ok(HostZone { name, from });
            }
        }
        // A copy of the data has no name; Debian keeps it beside.
        Ok(None) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = "UTC".to_owned();
            let from = "no zone is set on this machine";
            return Ok(HostZone { name, from });
        }
        Err(error) => return Err(format!("{LOCALTIME} cannot be read: {error}")),
    }
    let text = fs::read_to_string(timezone).unwrap_or_default();
    match text.split_whitespace().next() {
        Some(name) => Ok(HostZone {
            name: name.to_owned(),
            from: TIMEZONE,
        }),
        None => Err(format!("{LOCALTIME} holds zone data without a name")),
    }
}

/// The C library takes `:name`, a path of its data, and nothing for UTC.
fn of_variable(value: &str) -> String {
    let value = value.strip_prefix(':').unwrap_or(value);
    match value {
        "" => "UTC".to_owned(),
        _ => name_in(value).unwrap_or(value).to_owned(),
    }
}

/// What follows the folder of the zone data, without its variants with and without leap seconds.
fn name_in(path: &str) -> Option<&str> {
    let (_, name) = path.rsplit_once("zoneinfo/")?;
    let name = name.strip_prefix("posix/").unwrap_or(name);
    let name = name.strip_prefix("right/").unwrap_or(name);
    (!name.is_empty()).then_some(name)
}

/// Where a link points, through further links outside of the zone data; None is a file of its own.
fn target_of(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut found = None;
    let mut at = path.to_owned();
    // As many links as the kernel follows.
    for _ in 0..40 {
        if !fs::symlink_metadata(&at)?.is_symlink() {
            break;
        }
        let target = fs::read_link(&at)?;
        let is_named = name_in(&target.to_string_lossy()).is_some();
        at = match at.parent() {
            Some(folder) => folder.join(&target),
            None => target,
        };
        found = Some(at.clone());
        // Zones link to each other there; the name that was chosen is the first.
        if is_named {
            break;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_variable_is_asked_first() {
        let nowhere = Path::new("/nowhere/at/all");
        for (value, name) in [
            ("America/New_York", "America/New_York"),
            (":Europe/Berlin", "Europe/Berlin"),
            ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
            ("", "UTC"),
            ("CET-1CEST", "CET-1CEST"),
        ] {
            let found = find(Some(value), nowhere, nowhere).unwrap();
            assert_eq!((found.name.as_str(), found.from), (name, "TZ"), "{value}");
        }
    }

    #[test]
    fn files_are_asked_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let zone = |localtime: &str, timezone: &str| {
            find(None, &path(localtime), &path(timezone)).map(|found| (found.name, found.from))
        };
        symlink("../usr/share/zoneinfo/Europe/Madrid", path("link")).unwrap();
        symlink("link", path("second")).unwrap();
        symlink("/usr/share/zoneinfo/posix/Etc/UTC", path("posix")).unwrap();
        fs::write(path("copy"), "TZif2").unwrap();
        fs::write(path("name"), "Asia/Kolkata\n").unwrap();
        let named = |name: &str, from| Ok((name.to_owned(), from));
        assert_eq!(zone("link", "name"), named("Europe/Madrid", LOCALTIME));
        assert_eq!(zone("second", "none"), named("Europe/Madrid", LOCALTIME));
        assert_eq!(zone("posix", "none"), named("Etc/UTC", LOCALTIME));
        assert_eq!(zone("copy", "name"), named("Asia/Kolkata", TIMEZONE));
        assert!(zone("copy", "none").unwrap_err().contains("without a name"));
        assert_eq!(zone("none", "none").unwrap().0, "UTC");
    }
}
