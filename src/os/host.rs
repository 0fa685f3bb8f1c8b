//! Which machine and which pid namespace this is, as a claim stores it.

use std::fs;
use std::io;
use std::path::Path;

/// Id of this machine: `/etc/machine-id`, else the one of D-Bus, else the boot id (then a reboot makes a new host).
///
/// A container image without a machine id falls back to the boot id, which containers of one machine share: that is right,
/// they share its processes' kernel; the pid namespace tells them apart.
pub fn host_id() -> io::Result<String> {
    for path in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
        if let Some(id) = machine_id(Path::new(path)) {
            return Ok(id);
        }
    }
    super::clock::boot_id()
}

/// Inode of this process's pid namespace; pids of another one mean nothing here.
pub fn pid_namespace() -> io::Result<u64> {
    super::proc::namespace_inode("pid")
}

/// The id in one file; `None` for an absent, empty or not yet set one ("uninitialized" during a first boot).
fn machine_id(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let id = text.trim();
    let good =
        (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    good.then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_machine_ids_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine-id");
        let check = |text: &str, expected: Option<&str>| {
            fs::write(&path, text).unwrap();
            assert_eq!(machine_id(&path).as_deref(), expected, "{text:?}");
        };
        check(
            "0123456789abcdef0123456789abcdef\n",
            Some("0123456789abcdef0123456789abcdef"),
        );
        check("", None);
        check("\n", None);
        check("uninitialized\n", None);
        assert_eq!(machine_id(&folder.path().join("absent")), None);
    }

    #[test]
    fn this_host_has_an_id_and_a_namespace() {
        assert_eq!(host_id().unwrap(), host_id().unwrap());
        assert!(pid_namespace().unwrap() > 0);
    }
}
