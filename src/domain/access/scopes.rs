//! Scopes: what a caller may do. `<noun>:<verb>`, `*:read` for everything that only reads, `admin` for all of it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The nouns of scopes: those of the routes that there are.
pub const NOUNS: [&str; 21] = [
    "approval",
    "assignment",
    "audit",
    "bridge",
    "bundle",
    "claim",
    "decision",
    "event",
    "job",
    "key",
    "metrics",
    "pool",
    "recipient",
    "rule",
    "run",
    "shadow",
    "slot",
    "system",
    "tenant",
    "trait",
    "workflow",
];
/// What can be done with each.
pub const VERBS: [&str; 3] = ["read", "write", "delete"];
/// Everything.
pub const ADMIN: &str = "admin";
/// Everything that only reads.
pub const READ_ALL: &str = "*:read";
/// Of a route: nobody has to say who calls.
pub const OPEN: &str = "open";
/// Of a route: any caller that is known.
pub const ANY_CALLER: &str = "any";

/// The scopes of one caller, each a text that [`is_known`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scopes(BTreeSet<String>);

/// True for a scope that there is.
pub fn is_known(scope: &str) -> bool {
    scope == ADMIN
        || scope == READ_ALL
        || scope
            .split_once(':')
            .is_some_and(|(noun, verb)| NOUNS.contains(&noun) && VERBS.contains(&verb))
}

impl Scopes {
    /// All of them.
    pub fn admin() -> Scopes {
        Scopes([ADMIN.to_owned()].into())
    }

    /// These; the unknown ones come back instead.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Scopes, Vec<String>> {
        let (known, unknown): (Vec<&str>, Vec<&str>) = texts.into_iter().partition(|text| is_known(text));
        if unknown.is_empty() {
            Ok(Scopes(known.into_iter().map(str::to_owned).collect()))
        } else {
            Err(unknown.into_iter().map(str::to_owned).collect())
        }
    }

    /// True if this may be done.
    pub fn allow(&self, needed: &str) -> bool {
        let has = |scope: &str| self.0.contains(scope);
        has(ADMIN) || needed == ANY_CALLER || has(needed) || (needed.ends_with(":read") && has(READ_ALL))
    }

    /// True for a caller that may do everything.
    pub fn is_admin(&self) -> bool {
        self.0.contains(ADMIN)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In the order of the alphabet.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The first of the others that these do not cover.
    pub fn lacks<'o>(&self, others: &'o Scopes) -> Option<&'o str> {
        others.iter().find(|scope| !self.allow(scope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(texts: &[&str]) -> Scopes {
        Scopes::of(texts.iter().copied()).unwrap()
    }

    #[test]
    fn a_scope_covers_itself_and_the_two_wide_ones_cover_theirs() {
        let plain = scopes(&["job:write", "run:read"]);
        assert!(plain.allow("job:write") && plain.allow("run:read") && plain.allow(ANY_CALLER));
        assert!(!plain.allow("job:read") && !plain.allow("run:write") && !plain.allow(ADMIN));
        let reader = scopes(&[READ_ALL]);
        assert!(reader.allow("job:read") && reader.allow("audit:read"));
        assert!(!reader.allow("job:write") && !reader.allow("job:delete") && !reader.allow(ADMIN));
        assert!(
            VERBS
                .iter()
                .all(|verb| Scopes::admin().allow(&format!("job:{verb}")))
        );
        assert!(!Scopes::default().allow("job:read"));
    }

    #[test]
    fn a_key_hands_on_what_it_has() {
        assert_eq!(scopes(&[READ_ALL]).lacks(&scopes(&["job:read"])), None);
        assert_eq!(scopes(&["job:read"]).lacks(&scopes(&[READ_ALL])), Some(READ_ALL));
        assert_eq!(scopes(&["key:write"]).lacks(&Scopes::admin()), Some(ADMIN));
        assert_eq!(Scopes::admin().lacks(&Scopes::admin()), None);
    }

    #[test]
    fn unknown_scopes_are_named() {
        let unknown = Scopes::of(["job:read", "jobs:read", "job:start", "*:write", "open"]);
        assert_eq!(
            unknown,
            Err(["jobs:read", "job:start", "*:write", "open"]
                .map(str::to_owned)
                .to_vec())
        );
    }
}
