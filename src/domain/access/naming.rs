//! The rules of names of tenants and keys.

use crate::words::limits;

/// The sentence of a bad name.
pub const TENANT_RULE: &str = "a tenant's name must match [a-z0-9][a-z0-9._-]{0,62}";

/// True for a name that a tenant may have: it stands in a header, in the log and in labels of metrics.
pub fn is_tenant(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let begins = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=limits::TENANT_NAME_BYTES_MAX).contains(&text.len())
        && text.as_bytes().first().is_some_and(begins)
        && text.bytes().all(is_inner)
}

/// True for a name that a key may have: people read it wherever something was done with the key.
pub fn is_key(text: &str) -> bool {
    let chars = text.chars().count();
    (1..=limits::KEY_NAME_CHARS_MAX).contains(&chars)
        && text.trim() == text
        && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for good in ["a", "acme", "acme-2.eu_1", &"a".repeat(63)] {
            assert!(is_tenant(good), "{good}");
        }
        for bad in ["", "-a", "Acme", "a b", "\u{e9}", &"a".repeat(64)] {
            assert!(!is_tenant(bad), "{bad}");
        }
        for good in ["ci", "Nightly deploys", "\u{e9}"] {
            assert!(is_key(good), "{good}");
        }
        for bad in ["", " ci", "a\nb", &"a".repeat(101)] {
            assert!(!is_key(bad), "{bad}");
        }
    }
}
