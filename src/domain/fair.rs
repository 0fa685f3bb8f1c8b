//! Who is served next when more work waits than can be done: three tiers by weight, and inside a tier each share in turn.
//!
//! Pure: what waits is asked through [`Lines`], where it was served last is a [`Cursor`]. Each piece of work costs one, so
//! deficit round robin is round robin, and a share without work keeps no credit.

use std::collections::BTreeSet;

use super::workflow::graph::document::Tier;

/// Tiers from the first served to the last.
pub const TIERS: [Tier; 3] = [Tier::Interactive, Tier::Default, Tier::Background];
/// How often each is served while all have work.
pub const WEIGHTS: [i64; 3] = [16, 4, 1];

/// What waits.
pub trait Lines {
    /// Why it cannot be read.
    type Error;

    /// The first share of a tier with work, in their order behind `after`.
    fn next_share(&mut self, tier: Tier, after: Option<&str>) -> Result<Option<String>, Self::Error>;
}

/// Where was served last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cursor {
    /// What each tier has to get, against what the others have got.
    owed: [i64; 3],
    /// The share that was served last in each tier.
    after: [Option<String>; 3],
}

/// The share to serve now; the cursor moves. `None` if nothing waits outside of `except`.
pub fn choose<L: Lines>(
    cursor: &mut Cursor,
    lines: &mut L,
    except: &BTreeSet<(Tier, String)>,
) -> Result<Option<(Tier, String)>, L::Error> {
    let mut heads: [Option<String>; 3] = [None, None, None];
    for (place, tier) in TIERS.into_iter().enumerate() {
        heads[place] = head(lines, tier, cursor.after[place].as_deref(), except)?;
    }
    let weights = heads.iter().zip(WEIGHTS);
    let round: i64 = weights
        .filter(|(head, _)| head.is_some())
        .map(|(_, weight)| weight)
        .sum();
    let mut best: Option<usize> = None;
    for (place, head) in heads.iter().enumerate() {
        if head.is_none() {
            cursor.owed[place] = 0;
            continue;
        }
        cursor.owed[place] += WEIGHTS[place];
        if best.is_none_or(|best| cursor.owed[place] > cursor.owed[best]) {
            best = Some(place);
        }
    }
    let Some(place) = best else { return Ok(None) };
    cursor.owed[place] -= round;
    let share = heads[place].take();
    cursor.after[place].clone_from(&share);
    Ok(share.map(|share| (TIERS[place], share)))
}

/// The share of a tier whose turn it is: the next one behind the last, or from the beginning again.
fn head<L: Lines>(
    lines: &mut L,
    tier: Tier,
    last: Option<&str>,
    except: &BTreeSet<(Tier, String)>,
) -> Result<Option<String>, L::Error> {
    let mut after = last.map(str::to_owned);
    let mut again = last.is_some();
    loop {
        match lines.next_share(tier, after.as_deref())? {
            Some(share) if !except.contains(&(tier, share.clone())) => return Ok(Some(share)),
            Some(share) => {
                if !again && last.is_some_and(|last| *last <= *share) {
                    return Ok(None);
                }
                after = Some(share);
            }
            None if again => {
                again = false;
                after = None;
            }
            None => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// How much waits in each share.
    #[derive(Default)]
    struct Stock(BTreeMap<(Tier, String), u32>);

    impl Lines for Stock {
        type Error = std::convert::Infallible;

        fn next_share(&mut self, tier: Tier, after: Option<&str>) -> Result<Option<String>, Self::Error> {
            let has = |((of, share), left): &(&(Tier, String), &u32)| {
                *of == tier && **left > 0 && after.is_none_or(|after| share.as_str() > after)
            };
            Ok(self.0.iter().find(has).map(|((_, share), _)| share.clone()))
        }
    }

    impl Stock {
        fn with(mut self, tier: Tier, share: &str, count: u32) -> Stock {
            self.0.insert((tier, share.to_owned()), count);
            self
        }

        fn serve(&mut self, cursor: &mut Cursor, count: usize) -> Vec<String> {
            let mut served = Vec::new();
            for _ in 0..count {
                let Ok(chosen) = choose(cursor, self, &BTreeSet::new());
                let Some((tier, share)) = chosen else { break };
                if let Some(left) = self.0.get_mut(&(tier, share.clone())) {
                    *left -= 1;
                }
                served.push(share);
            }
            served
        }
    }

    fn count(served: &[String], share: &str) -> usize {
        served.iter().filter(|other| *other == share).count()
    }

    #[test]
    fn a_busy_share_gets_its_part_and_no_more() {
        let mut stock = Stock::default().with(Tier::Default, "flood", 100_000);
        for number in 0..9 {
            stock = stock.with(Tier::Default, &format!("k{number}"), 10);
        }
        let served = stock.serve(&mut Cursor::default(), 100);
        for number in 0..9 {
            assert_eq!(count(&served, &format!("k{number}")), 10);
        }
        assert_eq!(count(&served, "flood"), 10, "the tenth of ten shares");
        assert_eq!(count(&stock.serve(&mut Cursor::default(), 50), "flood"), 50);
    }

    #[test]
    fn tiers_are_served_sixteen_to_four_to_one() {
        let mut stock = Stock::default()
            .with(Tier::Interactive, "i", 10_000)
            .with(Tier::Default, "d", 10_000)
            .with(Tier::Background, "b", 10_000);
        let mut cursor = Cursor::default();
        let served = stock.serve(&mut cursor, 210);
        let parts = ["i", "d", "b"].map(|share| count(&served, share));
        assert_eq!(parts, [160, 40, 10]);
        stock.0.remove(&(Tier::Interactive, "i".to_owned()));
        let served = stock.serve(&mut cursor, 100);
        assert_eq!([count(&served, "d"), count(&served, "b")], [80, 20]);
    }

    #[test]
    fn a_tier_that_was_empty_has_saved_nothing_up() {
        let mut stock = Stock::default().with(Tier::Default, "d", 10_000);
        let mut cursor = Cursor::default();
        stock.serve(&mut cursor, 1_000);
        stock = stock.with(Tier::Background, "b", 10_000);
        let served = stock.serve(&mut cursor, 50);
        assert_eq!(count(&served, "b"), 10);
    }

    #[test]
    fn what_is_left_out_is_passed_over() {
        let mut stock = Stock::default()
            .with(Tier::Default, "a", 5)
            .with(Tier::Default, "b", 5);
        let both: BTreeSet<_> = ["a", "b"].map(|share| (Tier::Default, share.to_owned())).into();
        let only_a = BTreeSet::from([(Tier::Default, "a".to_owned())]);
        let mut cursor = Cursor::default();
        assert_eq!(choose(&mut cursor, &mut stock, &both), Ok(None));
        for _ in 0..3 {
            let chosen = choose(&mut cursor, &mut stock, &only_a);
            assert_eq!(chosen, Ok(Some((Tier::Default, "b".to_owned()))));
        }
        assert_eq!(choose(&mut cursor, &mut stock, &both), Ok(None));
        assert_eq!(
            choose(&mut Cursor::default(), &mut Stock::default(), &both),
            Ok(None)
        );
    }
}
