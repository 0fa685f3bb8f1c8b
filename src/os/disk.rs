//! The file system a path lives on: room left, and whether it is one that other machines see too.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, access, futimens, open, statfs};

/// A reading of statfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Magic number of the type, see statfs(2).
    pub magic: u32,
    /// Bytes that a process without privilege may still write.
    pub free_bytes: u64,
    pub total_bytes: u64,
    /// Free inodes; `None` on a file system that has no fixed number of them (btrfs, many network ones).
    pub free_inodes: Option<u64>,
}

/// What the type says about locks and other machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This machine only.
    Local,
    /// Other machines may have it open; locks may lie.
    Network,
    /// FUSE: may be either (sshfs, or the root of a rootless container).
    Unsure,
}

/// Magic numbers of network and cluster file systems, from linux/magic.h and their own headers.
const NETWORK: &[u32] = &[
    0x6969,      // nfs
    0x517B,      // smb
    0xFF53_4D42, // cifs
    0xFE53_4D42, // smb2
    0x00C3_6400, // ceph
    0x5346_414F, // afs (OpenAFS and kernel)
    0x6B41_4653, // k-afs
    0x7375_7245, // coda
    0x564C,      // ncp
    0x0102_1997, // 9p
    0x0BD0_0BD0, // lustre
    0x0116_1970, // gfs2
    0x7461_636F, // ocfs2
    0x4750_4653, // gpfs
    0x1980_0202, // beegfs
    0x786F_4256, // vboxsf
    0xAAD7_AAEA, // panfs
];
const FUSE: u32 = 0x6573_5546;

impl FileSystem {
    pub fn of(path: &Path) -> io::Result<Self> {
        let found = statfs(path)?;
        let block = u64::try_from(found.f_bsize).unwrap_or(0);
        Ok(Self {
            magic: magic(found.f_type),
            free_bytes: found.f_bavail.saturating_mul(block),
            total_bytes: found.f_blocks.saturating_mul(block),
            free_inodes: (found.f_files > 0).then_some(found.f_ffree),
        })
    }

    pub fn reach(&self) -> Reach {
        if NETWORK.contains(&self.magic) {
            Reach::Network
        } else if self.magic == FUSE {
            Reach::Unsure
        } else {
            Reach::Local
        }
    }

    /// Known to be a network or cluster file system.
    pub fn is_network_fs(&self) -> bool {
        self.reach() == Reach::Network
    }

    /// Name of the type for messages; the number for one we have no name for.
    pub fn type_name(&self) -> String {
        let name = match self.magic {
            0xEF53 => "ext4",
            0x5846_5342 => "xfs",
            0x9123_683E => "btrfs",
            0x0102_1994 => "tmpfs",
            0x794C_7630 => "overlay",
            0x2FC1_2FC1 => "zfs",
            0xF2F5_2010 => "f2fs",
            0x6969 => "nfs",
            0x517B | 0xFE53_4D42 | 0xFF53_4D42 => "smb",
            0x00C3_6400 => "ceph",
            0x0102_1997 => "9p",
            0x0BD0_0BD0 => "lustre",
            FUSE => "fuse",
            other => return format!("0x{other:x}"),
        };
        name.to_owned()
    }
}

/// Whether this process may write there: rights, and a file system that is mounted to be read only. Writes nothing.
pub fn may_write(path: &Path) -> io::Result<()> {
    Ok(access(path, Access::WRITE_OK)?)
}

/// Opens what somebody else may have put there, to read it: a link is an error, and nothing that would block does.
pub fn open_no_link(path: &Path) -> io::Result<std::fs::File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?.into())
}

/// Sets the times of a file to now, by the clock of its file system.
pub fn touch(file: &std::fs::File) -> io::Result<()> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    Ok(futimens(
        file,
        &Timestamps {
            last_access: now,
            last_modification: now,
        },
    )?)
}

/// The option by which the mount that holds `path` keeps file locks on this machine, if it does: other machines do not see
/// them then. Sources: nfs(5), mount.cifs(8), proc_pid_mountinfo(5).
pub fn keeps_locks_local(path: &Path) -> io::Result<Option<String>> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    Ok(local_lock_option(&mounts, &path.canonicalize()?))
}

fn local_lock_option(mounts: &str, path: &Path) -> Option<String> {
    // Of mounts on one place the last line is the one on top.
    let (_, options) = mounts
        .lines()
        .filter_map(mount_of)
        .filter(|(place, _)| path.starts_with(place))
        .max_by_key(|(place, _)| place.components().count())?;
    let local = |option: &&str| match option.split_once('=') {
        None => matches!(*option, "nolock" | "nobrl"),
        Some((name, value)) => name == "local_lock" && value != "none",
    };
    options.split(',').find(local).map(str::to_owned)
}

/// Where one line of `mountinfo` is mounted, and its options: those of the mount and those of the file system.
fn mount_of(line: &str) -> Option<(PathBuf, String)> {
    let (mount, system) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(4);
    let (place, options) = (fields.next()?, fields.next()?);
    let of_system = system.split(' ').nth(2).unwrap_or("");
    Some((PathBuf::from(unescaped(place)), format!("{options},{of_system}")))
}

/// Spaces and the like stand in `mountinfo` as a backslash and three octal digits.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut whole = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                whole.push(char::from(code));
                whole.push_str(&part[3..]);
            }
            None => {
                whole.push('\\');
                whole.push_str(part);
            }
        }
    }
    whole
}

/// `f_type` is a signed word of the platform; its low 32 bits are the number.
fn magic(word: impl TryInto<i64>) -> u32 {
    let word = word.try_into().unwrap_or(0);
    u32::try_from(word & 0xFFFF_FFFF).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_numbers_survive_the_sign() {
        assert_eq!(magic(0xFF53_4D42_i64), 0xFF53_4D42);
        assert_eq!(magic(i64::from(i32::MIN)), 0x8000_0000);
        assert_eq!(magic(0x6969_i64), 0x6969);
    }

    #[test]
    fn types_are_told_apart() {
        let check = |magic: u32, reach: Reach, name: &str| {
            let fs = FileSystem {
                magic,
                free_bytes: 0,
                total_bytes: 0,
                free_inodes: None,
            };
            assert_eq!((fs.reach(), fs.type_name().as_str()), (reach, name));
        };
        check(0xEF53, Reach::Local, "ext4");
        check(0x6969, Reach::Network, "nfs");
        check(FUSE, Reach::Unsure, "fuse");
        check(0x1234, Reach::Local, "0x1234");
    }

    #[test]
    fn a_mount_that_keeps_locks_local_is_known_by_its_options() {
        let mounts = "\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw,errors=remount-ro
40 21 0:45 / /srv/a\\040b rw,relatime shared:2 - nfs4 host:/x rw,vers=4.2,local_lock=none,addr=10.0.0.1
41 21 0:46 / /srv/old rw,relatime - nfs host:/y rw,vers=3,nolock,local_lock=all
42 41 0:47 / /srv/old/win rw,nobrl - cifs //host/z rw
43 21 0:48 / /srv/half rw - nfs host:/h rw,vers=3,local_lock=flock
";
        let check = |path: &str, option: Option<&str>| {
            assert_eq!(
                local_lock_option(mounts, Path::new(path)).as_deref(),
                option,
                "{path}"
            );
        };
        check("/var/lib", None);
        check("/srv/a b/state", None);
        check("/srv/old/state", Some("nolock"));
        check("/srv/older", None);
        check("/srv/old/win/state", Some("nobrl"));
        check("/srv/half", Some("local_lock=flock"));
        assert_eq!(unescaped("a\\134b\\"), "a\\b\\");
        assert_eq!(keeps_locks_local(Path::new("/")).unwrap(), None);
    }

    #[test]
    fn proc_and_a_folder_are_read() {
        assert_eq!(FileSystem::of(Path::new("/proc")).unwrap().magic, 0x9FA0);
        let folder = tempfile::tempdir().unwrap();
        let fs = FileSystem::of(folder.path()).unwrap();
        assert!(fs.free_bytes > 0 && fs.free_bytes <= fs.total_bytes);
        assert!(FileSystem::of(&folder.path().join("absent")).is_err());
        assert!(may_write(folder.path()).is_ok());
        assert!(may_write(&folder.path().join("absent")).is_err());
    }
}
