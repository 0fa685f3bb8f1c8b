//! Users and groups by name or number, from the texts of `/etc/passwd` and `/etc/group`.
//!
//! Only these files: name services that need a C library (LDAP, sssd) are not asked. [`Accounts::resolve`] is pure.

use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::process::geteuid;
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use serde::{Deserialize, Serialize};

/// What a process runs as; `None` keeps what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    /// Supplementary groups, the whole list.
    pub groups: Option<Vec<u32>>,
}

/// One line of `/etc/passwd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    pub home: PathBuf,
}

/// One line of `/etc/group`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    pub gid: u32,
    pub members: Vec<String>,
}

/// Why a user or group cannot be used. The texts follow `job 'J': `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    #[error("user '{0}' not found")]
    UserNotFound(String),
    #[error("group '{0}' not found")]
    GroupNotFound(String),
    #[error("user '{0}' has no entry in /etc/passwd; give a group too")]
    GroupNeeded(String),
}

/// The accounts of this machine as read at one time.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    users: Vec<User>,
    groups: Vec<Group>,
}

impl Accounts {
    /// Reads both files; an absent one is empty (scratch containers).
    pub fn read() -> io::Result<Self> {
        Ok(Self::parse(
            &read_or_empty("/etc/passwd")?,
            &read_or_empty("/etc/group")?,
        ))
    }

    /// Lines that are not understood (comments, NIS `+` entries) are passed over.
    pub fn parse(passwd: &str, group: &str) -> Self {
        Self {
            users: passwd.lines().filter_map(parse_user).collect(),
            groups: group.lines().filter_map(parse_group).collect(),
        }
    }

    /// A user by name, else by number.
    pub fn user(&self, word: &str) -> Option<&User> {
        let by_name = self.users.iter().find(|user| user.name == word);
        by_name.or_else(|| valid_id(word).and_then(|uid| self.users.iter().find(|user| user.uid == uid)))
    }

    /// A group's number by name, else the number itself.
    pub fn gid(&self, word: &str) -> Option<u32> {
        let by_name = self
            .groups
            .iter()
            .find(|group| group.name == word)
            .map(|group| group.gid);
        by_name.or_else(|| valid_id(word))
    }

    /// What `user` and `group` of a job mean. A user brings its primary and supplementary groups; `group` replaces the
    /// primary one; `group` alone changes only the primary group. A number without an entry needs `group`.
    pub fn resolve(&self, user: Option<&str>, group: Option<&str>) -> Result<Credentials, AccountError> {
        let gid = match group {
            Some(word) => Some(
                self.gid(word)
                    .ok_or_else(|| AccountError::GroupNotFound(word.to_owned()))?,
            ),
            None => None,
        };
        let Some(word) = user else {
            return Ok(Credentials {
                uid: None,
                gid,
                groups: None,
            });
        };
        if let Some(user) = self.user(word) {
            let gid = gid.unwrap_or(user.gid);
            return Ok(Credentials {
                uid: Some(user.uid),
                gid: Some(gid),
                groups: Some(self.groups_of(user, gid)),
            });
        }
        let uid = valid_id(word).ok_or_else(|| AccountError::UserNotFound(word.to_owned()))?;
        let gid = gid.ok_or_else(|| AccountError::GroupNeeded(word.to_owned()))?;
        Ok(Credentials {
            uid: Some(uid),
            gid: Some(gid),
            groups: Some(vec![gid]),
        })
    }

    /// As `initgroups`: the primary group and all groups that list the user; ascending, each once.
    fn groups_of(&self, user: &User, primary: u32) -> Vec<u32> {
        let listed = self
            .groups
            .iter()
            .filter(|group| group.members.contains(&user.name))
            .map(|group| group.gid);
        let mut groups: Vec<u32> = listed.chain([primary]).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

/// This process may change its user.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Effective user id of this process.
pub fn own_uid() -> u32 {
    geteuid().as_raw()
}

/// Becomes `credentials`: groups, then group, then user. The kernel changes only the calling *thread*: call it from a
/// process that has one thread (the shim).
pub fn become_user(credentials: &Credentials) -> io::Result<()> {
    use rustix::process::{Gid, Uid};
    if let Some(groups) = &credentials.groups {
        let groups: Vec<Gid> = groups.iter().map(|&gid| Gid::from_raw(gid)).collect();
        set_thread_groups(&groups)?;
    }
    if let Some(gid) = credentials.gid {
        set_thread_gid(Gid::from_raw(gid))?;
    }
    if let Some(uid) = credentials.uid {
        set_thread_uid(Uid::from_raw(uid))?;
    }
    Ok(())
}

fn parse_user(line: &str) -> Option<User> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| good_name(name))?;
    let uid = valid_id(fields.nth(1)?)?;
    let gid = valid_id(fields.next()?)?;
    let home = fields.nth(1).unwrap_or_default();
    Some(User {
        name: name.to_owned(),
        uid,
        gid,
        home: PathBuf::from(home),
    })
}

fn parse_group(line: &str) -> Option<Group> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| good_name(name))?;
    let gid = valid_id(fields.nth(1)?)?;
    let members = fields
        .next()
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    Some(Group {
        name: name.to_owned(),
        gid,
        members: members.map(str::to_owned).collect(),
    })
}

fn good_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['+', '-', '#'])
}

/// All ones means "no id" to the kernel.
fn valid_id(word: &str) -> Option<u32> {
    let plain = word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|&id| plain && id != u32::MAX)
}

fn read_or_empty(path: &str) -> io::Result<String> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n# note\n+::::::\nbackup:x:34:34::/var/backups:/bin/sh\n\
                          7:x:1007:1007::/home/seven:/bin/sh\nbroken:x:one:2::/:\nshort:x:5:6\n";
    const GROUP: &str =
        "root:x:0:\nbackup:x:34:\ndisk:x:6:backup,root\ntape:x:26: backup ,\ndisk2:x:6:backup\n";

    /// User, group, supplementary groups.
    type Ids<'a> = (Option<u32>, Option<u32>, &'a [u32]);

    fn check(user: Option<&str>, group: Option<&str>, expected: Result<Ids<'_>, &str>) {
        let found = Accounts::parse(PASSWD, GROUP).resolve(user, group);
        match (found, expected) {
            (Ok(found), Ok((uid, gid, groups))) => {
                assert_eq!((found.uid, found.gid), (uid, gid), "{user:?} {group:?}");
                assert_eq!(found.groups.unwrap_or_default(), groups, "{user:?} {group:?}");
            }
            (Err(found), Err(text)) => assert_eq!(found.to_string(), text),
            (found, expected) => panic!("{user:?} {group:?}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn users_and_groups_resolve() {
        check(None, None, Ok((None, None, &[])));
        check(Some("backup"), None, Ok((Some(34), Some(34), &[6, 26, 34])));
        check(Some("34"), None, Ok((Some(34), Some(34), &[6, 26, 34])));
        check(Some("backup"), Some("disk"), Ok((Some(34), Some(6), &[6, 26])));
        check(None, Some("tape"), Ok((None, Some(26), &[])));
        check(None, Some("4711"), Ok((None, Some(4711), &[])));
        check(Some("7"), None, Ok((Some(1007), Some(1007), &[1007])));
        check(Some("4711"), Some("disk"), Ok((Some(4711), Some(6), &[6])));
        check(Some("short"), None, Ok((Some(5), Some(6), &[6])));
    }

    #[test]
    fn what_is_not_there_is_named() {
        check(Some("nobody-here"), None, Err("user 'nobody-here' not found"));
        check(Some("broken"), None, Err("user 'broken' not found"));
        check(Some("+"), None, Err("user '+' not found"));
        check(Some(""), None, Err("user '' not found"));
        check(Some("-1"), None, Err("user '-1' not found"));
        check(Some("4294967295"), Some("0"), Err("user '4294967295' not found"));
        check(Some("backup"), Some("nope"), Err("group 'nope' not found"));
        check(
            Some("4711"),
            None,
            Err("user '4711' has no entry in /etc/passwd; give a group too"),
        );
    }

    #[test]
    fn home_is_the_sixth_field() {
        let accounts = Accounts::parse(PASSWD, GROUP);
        assert_eq!(
            accounts.user("backup").unwrap().home,
            PathBuf::from("/var/backups")
        );
        assert_eq!(accounts.user("short").unwrap().home, PathBuf::new());
    }

    #[test]
    fn this_machine_has_accounts() {
        assert!(Accounts::read().is_ok());
        assert_eq!(is_root(), own_uid() == 0);
    }
}
