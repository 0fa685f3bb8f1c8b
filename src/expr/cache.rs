//! The compiled expressions that were used last.

use std::collections::{BTreeMap, HashMap};

use sha2::{Digest, Sha256};

use super::fault::Profile;
use super::limits::{CACHE_ENTRIES_MAX, CACHE_NODES_MAX};

pub(super) type Key = [u8; 32];

/// What a compiled expression depends on, as one digest.
pub(super) fn key(text: &str, profile: Profile, names: &[&str]) -> Key {
    let mut digest = Sha256::new();
    digest.update([match profile {
        Profile::Rule => 1,
        Profile::Workflow => 2,
    }]);
    for part in names.iter().copied().chain([text]) {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().into()
}

/// Entries by key; the one that was used longest ago goes first. Bounded by entries and by what they weigh.
#[derive(Debug)]
pub(super) struct Cache<T> {
    entries: HashMap<Key, Entry<T>>,
    by_use: BTreeMap<u64, Key>,
    uses: u64,
    weight: usize,
}

#[derive(Debug)]
struct Entry<T> {
    value: T,
    weight: usize,
    used: u64,
}

impl<T: Clone> Cache<T> {
    pub(super) fn new() -> Cache<T> {
        Cache {
            entries: HashMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            weight: 0,
        }
    }

    pub(super) fn get(&mut self, key: &Key) -> Option<T> {
        self.uses += 1;
        let entry = self.entries.get_mut(key)?;
        self.by_use.remove(&entry.used);
        entry.used = self.uses;
        self.by_use.insert(self.uses, *key);
        Some(entry.value.clone())
    }

    pub(super) fn put(&mut self, key: Key, value: T, weight: usize) {
        self.uses += 1;
        let used = self.uses;
        if let Some(old) = self.entries.insert(key, Entry { value, weight, used }) {
            self.by_use.remove(&old.used);
            self.weight -= old.weight;
        }
        self.by_use.insert(used, key);
        self.weight += weight;
        while self.entries.len() > CACHE_ENTRIES_MAX || self.weight > CACHE_NODES_MAX {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                break;
            };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.weight -= entry.weight;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: usize) -> Key {
        key(&number.to_string(), Profile::Rule, &[])
    }

    #[test]
    fn a_key_tells_profile_names_and_text_apart() {
        let keys = [
            key("ab", Profile::Rule, &[]),
            key("ab", Profile::Workflow, &[]),
            key("b", Profile::Rule, &["a"]),
            key("ab", Profile::Rule, &["a"]),
            key("ab", Profile::Rule, &["a", ""]),
        ];
        for (at, one) in keys.iter().enumerate() {
            assert!(!keys[at + 1..].contains(one), "{at}");
        }
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut cache = Cache::new();
        for number in 0..CACHE_ENTRIES_MAX {
            cache.put(numbered(number), number, 1);
        }
        assert_eq!(cache.get(&numbered(0)), Some(0));
        cache.put(numbered(CACHE_ENTRIES_MAX), 7, 1);
        assert_eq!(cache.get(&numbered(1)), None);
        assert_eq!(cache.get(&numbered(0)), Some(0));
        assert_eq!(cache.entries.len(), CACHE_ENTRIES_MAX);
        assert_eq!(cache.by_use.len(), CACHE_ENTRIES_MAX);
    }

    #[test]
    fn many_large_ones_are_fewer() {
        let mut cache = Cache::new();
        for number in 0..2_000 {
            cache.put(numbered(number), number, 1_000);
            cache.put(numbered(number), number, 1_000);
        }
        assert_eq!(cache.entries.len(), CACHE_NODES_MAX / 1_000);
        assert_eq!(cache.weight, CACHE_NODES_MAX);
        assert_eq!(cache.get(&numbered(1_999)), Some(1_999));
    }
}
