//! Deficit round robin over the sources of work that waits: which source is served next. Who gets the work says the ladder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A source with work that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The source.
    pub source: String,
    /// What its first item takes, in units.
    pub cost: u32,
    /// How much it gets in each round, in quanta.
    pub weight: u32,
}

/// Where the ring stands: one row for each recipient pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring {
    /// The source that is served now, while its deficit lasts.
    pub at: Option<String>,
    /// What each source may still take. A source without work has none.
    pub deficits: BTreeMap<String, u64>,
}

impl Ring {
    /// The source that is served next; `waiting` is sorted by source and holds each once. Every source comes in turn and
    /// gets its quantum then; it is served while that covers its first item.
    pub fn serve(&mut self, waiting: &[Waiting], quantum: u32) -> Option<usize> {
        let known = |source: &String| waiting.binary_search_by(|one| one.source.cmp(source)).ok();
        self.deficits.retain(|source, _| known(source).is_some());
        if waiting.is_empty() {
            self.at = None;
            return None;
        }
        if let Some(at) = self.at.as_ref().and_then(known)
            && self.pay(&waiting[at])
        {
            return Some(at);
        }
        let mut next = match &self.at {
            None => 0,
            Some(source) => waiting.partition_point(|one| one.source <= *source) % waiting.len(),
        };
        // Each round adds a quantum to every source, so that the dearest item is covered after so many.
        let dearest = waiting.iter().map(|one| one.cost).max().unwrap_or(1);
        let rounds = usize::try_from(dearest).unwrap_or(usize::MAX).saturating_add(1);
        for _ in 0..rounds.saturating_mul(waiting.len()) {
            let one = &waiting[next];
            let gets = u64::from(quantum.max(1)) * u64::from(one.weight.max(1));
            *self.deficits.entry(one.source.clone()).or_insert(0) += gets;
            self.at = Some(one.source.clone());
            if self.pay(one) {
                return Some(next);
            }
            next = (next + 1) % waiting.len();
        }
        None
    }

    fn pay(&mut self, one: &Waiting) -> bool {
        let Some(left) = self.deficits.get_mut(&one.source) else {
            return false;
        };
        match left.checked_sub(u64::from(one.cost)) {
            None => false,
            Some(rest) => {
                *left = rest;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(sources: &[(&str, u32, u32)]) -> Vec<Waiting> {
        let one = |(source, cost, weight): &(&str, u32, u32)| Waiting {
            source: (*source).to_owned(),
            cost: *cost,
            weight: *weight,
        };
        sources.iter().map(one).collect()
    }

    fn served(ring: &mut Ring, waiting: &[Waiting], count: usize) -> String {
        (0..count)
            .map(|_| waiting[ring.serve(waiting, 1).unwrap()].source.as_str())
            .collect()
    }

    #[test]
    fn sources_are_served_by_what_they_take_and_not_by_how_much_waits() {
        let mut ring = Ring::default();
        assert_eq!(
            served(&mut ring, &waiting(&[("a", 1, 1), ("b", 1, 1)]), 6),
            "ababab"
        );
        let mut ring = Ring::default();
        assert_eq!(
            served(&mut ring, &waiting(&[("a", 1, 2), ("b", 1, 1)]), 6),
            "aabaab"
        );
        let mut ring = Ring::default();
        let dear = served(&mut ring, &waiting(&[("a", 3, 1), ("b", 1, 1)]), 8);
        assert_eq!(dear.matches('b').count(), 6, "{dear}");
    }

    #[test]
    fn a_source_without_work_keeps_nothing() {
        let mut ring = Ring::default();
        assert_eq!(ring.serve(&[], 1), None);
        let both = waiting(&[("a", 1, 9), ("b", 1, 1)]);
        served(&mut ring, &both, 1);
        assert_eq!(ring.deficits["a"], 8);
        served(&mut ring, &waiting(&[("b", 1, 1)]), 1);
        assert!(!ring.deficits.contains_key("a"));
    }
}
