//! Chance that can be repeated: a small generator whose numbers follow from its seed. For plans and tests, never for ids
//! or secrets.

/// SplitMix64, as published by Steele, Lea and Flood: passes the usual test batteries and needs one word of state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Chance {
        Chance { state: seed }
    }

    /// A generator of its own for a part of the work: what other parts draw does not move it.
    #[must_use]
    pub fn part(seed: u64, part: u64) -> Chance {
        let mut mixed = Chance::new(seed ^ part.wrapping_mul(0xD1B5_4A32_D192_ED03));
        Chance::new(mixed.number())
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 for an `end` of 0. The bias of the remainder is far below what a plan could notice.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number().checked_rem(end).unwrap_or(0)
    }

    /// A number from `first` to `last`, both included.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// One of them; `None` of an empty list.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let at = self.below(list.len() as u64);
        list.get(usize::try_from(at).unwrap_or(0))
    }

    /// True once in `times` on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_follow_from_the_seed() {
        // The first numbers of the published generator for the seed 1234567.
        let mut chance = Chance::new(1_234_567);
        let first = [chance.number(), chance.number(), chance.number()];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
        assert_ne!(Chance::part(1, 1), Chance::part(1, 2));
        assert_eq!(Chance::part(7, 3), Chance::part(7, 3));
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut chance = Chance::new(9);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1_000 {
            seen.insert(chance.between(3, 6));
            assert!(chance.below(10) < 10);
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [3, 4, 5, 6]);
        assert_eq!(chance.below(0), 0);
        assert_eq!(chance.pick::<u8>(&[]), None);
        assert_eq!(chance.pick(&["one"]), Some(&"one"));
    }
}
