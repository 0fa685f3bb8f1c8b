//! Strategies by their keys, and the nearest ones to a key that there is not.

use super::catalogue::{CATALOGUE, Info};

/// A strategy by `key` or `key@version`; `waterfall` is another name of `priority`.
pub fn info(key: &str) -> Option<&'static Info> {
    let (key, version) = match key.split_once('@') {
        Some((key, version)) => (key, Some(version.parse::<u32>().ok()?)),
        None => (key, None),
    };
    let key = if key == "waterfall" { "priority" } else { key };
    let found = CATALOGUE.iter().find(|info| info.key == key)?;
    version
        .is_none_or(|version| version == found.version)
        .then_some(found)
}

/// The three keys nearest to what was written.
pub fn nearest(key: &str) -> Vec<&'static str> {
    let mut keys: Vec<(usize, &'static str)> = CATALOGUE
        .iter()
        .map(|info| (distance(key, info.key), info.key))
        .collect();
    keys.sort_unstable();
    keys.into_iter().take(3).map(|(_, key)| key).collect()
}

/// Letters to insert, drop or change.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, letter) in left.chars().take(200).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (at, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_with_and_without_a_version() {
        assert_eq!(info("random").map(Info::name).as_deref(), Some("random@1"));
        assert_eq!(info("random@1"), info("random"));
        assert_eq!(info("random@2"), None);
        assert_eq!(info("waterfall"), info("priority"));
        assert_eq!(info("nobody"), None);
        assert_eq!(nearest("round-robin")[0], "round_robin");
        for (at, entry) in CATALOGUE.iter().enumerate() {
            assert!(
                CATALOGUE[at + 1..]
                    .iter()
                    .all(|other| other.key != entry.key && other.kind != entry.kind)
            );
            for parameter in entry.parameters {
                assert!(
                    serde_json::from_str::<serde_json::Value>(parameter.default).is_ok(),
                    "{}",
                    entry.key
                );
            }
        }
    }
}
