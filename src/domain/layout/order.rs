//! Which vertex of a column stands above which: few crossings, in a bounded number of sweeps.

use crate::words::limits::{GRAPH_SWAP_LINKS_MAX, GRAPH_SWEEPS_MAX};

use super::layers::Layered;

/// Rounds of swaps after a sweep.
const SWAP_ROUNDS_MAX: usize = 4;
/// Barycentres are compared as whole numbers of these parts of a place.
const PARTS: usize = 1 << 16;

/// Orders the columns. The best of all orders that the sweeps went through is kept; equal ones keep the first.
pub(super) fn reduce_crossings(layered: &mut Layered) {
    let links: usize = layered.after.iter().map(Vec::len).sum();
    let mut at = places(layered);
    let mut best = layered.columns.clone();
    let mut fewest = crossings(layered, &at);
    for sweep in 0..GRAPH_SWEEPS_MAX {
        if fewest == 0 {
            break;
        }
        one_sweep(layered, &mut at, sweep % 2 == 0);
        if links <= GRAPH_SWAP_LINKS_MAX {
            swap_neighbours(layered, &mut at);
        }
        let count = crossings(layered, &at);
        if count < fewest {
            fewest = count;
            best.clone_from(&layered.columns);
        }
    }
    layered.columns = best;
}

/// The place of each vertex in its column.
fn places(layered: &Layered) -> Vec<usize> {
    let mut at = vec![0; layered.column.len()];
    for column in &layered.columns {
        for (place, &vertex) in column.iter().enumerate() {
            at[vertex] = place;
        }
    }
    at
}

/// Each column by the mean place of its vertices' neighbours in the column before, or after; a vertex without any stays.
fn one_sweep(layered: &mut Layered, at: &mut [usize], onward: bool) {
    let count = layered.columns.len();
    for step in 1..count {
        let column = if onward { step } else { count - 1 - step };
        let beside = if onward { &layered.before } else { &layered.after };
        let mean = |vertex: usize| {
            let near = &beside[vertex];
            if near.is_empty() {
                return at[vertex] * PARTS;
            }
            near.iter().map(|&other| at[other] * PARTS).sum::<usize>() / near.len()
        };
        let mut keyed: Vec<(usize, usize)> = layered.columns[column]
            .iter()
            .map(|&vertex| (mean(vertex), vertex))
            .collect();
        keyed.sort_by_key(|&(mean, _)| mean);
        for (place, &(_, vertex)) in keyed.iter().enumerate() {
            at[vertex] = place;
            layered.columns[column][place] = vertex;
        }
    }
}

/// Neighbours of a column change places where that takes crossings away.
fn swap_neighbours(layered: &mut Layered, at: &mut [usize]) {
    for _ in 0..SWAP_ROUNDS_MAX {
        let mut gained = false;
        for column in 0..layered.columns.len() {
            for place in 1..layered.columns[column].len() {
                let (upper, lower) = (layered.columns[column][place - 1], layered.columns[column][place]);
                let (kept, swapped) = between(layered, at, upper, lower);
                if swapped < kept {
                    gained = true;
                    layered.columns[column].swap(place - 1, place);
                    at.swap(upper, lower);
                }
            }
        }
        if !gained {
            break;
        }
    }
}

/// Crossings between the links of two neighbours of a column: as they stand, and the other way round.
fn between(layered: &Layered, at: &[usize], upper: usize, lower: usize) -> (usize, usize) {
    let mut found = (0, 0);
    for beside in [&layered.before, &layered.after] {
        for &one in &beside[upper] {
            for &other in &beside[lower] {
                found.0 += usize::from(at[one] > at[other]);
                found.1 += usize::from(at[one] < at[other]);
            }
        }
    }
    found
}

/// All crossings of links, column by column: inversions, counted in a tree of sums.
fn crossings(layered: &Layered, at: &[usize]) -> usize {
    let mut total = 0;
    for (index, column) in layered.columns.iter().enumerate() {
        let Some(next) = layered.columns.get(index + 1) else {
            break;
        };
        let mut sums = vec![0_usize; next.len() + 1];
        let mut seen = 0;
        for &vertex in column {
            let mut ends: Vec<usize> = layered.after[vertex].iter().map(|&other| at[other]).collect();
            ends.sort_unstable();
            for &end in &ends {
                total += seen - sum(&sums, end);
            }
            for &end in &ends {
                add(&mut sums, end);
                seen += 1;
            }
        }
    }
    total
}

/// How many were added at `place` or before.
fn sum(sums: &[usize], place: usize) -> usize {
    let mut at = place + 1;
    let mut found = 0;
    while at > 0 {
        found += sums[at];
        at &= at - 1;
    }
    found
}

fn add(sums: &mut [usize], place: usize) {
    let mut at = place + 1;
    while at < sums.len() {
        sums[at] += 1;
        at += at & at.wrapping_neg();
    }
}

#[cfg(test)]
mod tests {
    use super::super::layers::layered;
    use super::*;

    fn counted(nodes: usize, edges: &[(usize, usize)]) -> (usize, usize) {
        let mut layered = layered(nodes, edges).unwrap();
        let before = crossings(&layered, &places(&layered));
        reduce_crossings(&mut layered);
        (before, crossings(&layered, &places(&layered)))
    }

    #[test]
    fn crossings_are_inversions() {
        let mut crossed = layered(4, &[(0, 3), (1, 2)]).unwrap();
        crossed.columns = vec![vec![0, 1], vec![2, 3]];
        assert_eq!(crossings(&crossed, &places(&crossed)), 1);
        let whole = layered(
            6,
            &[
                (0, 3),
                (0, 4),
                (0, 5),
                (1, 3),
                (1, 4),
                (1, 5),
                (2, 3),
                (2, 4),
                (2, 5),
            ],
        )
        .unwrap();
        assert_eq!(crossings(&whole, &places(&whole)), 9, "three by three");
    }

    #[test]
    fn what_can_be_untangled_is() {
        // Three chains that begin in one order and meet their names in another.
        let (_, after) = counted(9, &[(0, 5), (1, 4), (2, 3), (5, 6), (4, 7), (3, 8)]);
        assert_eq!(after, 0);
        // A tree has a picture without crossings.
        let tree: Vec<(usize, usize)> = (1..31).map(|node| ((node - 1) / 2, node)).collect();
        assert_eq!(counted(31, &tree).1, 0);
    }

    #[test]
    fn the_order_that_is_kept_is_never_worse_than_the_first() {
        let edges: Vec<(usize, usize)> = (0..40)
            .flat_map(|from| [(from, 40 + from * 7 % 40), (from, 40 + from * 11 % 40)])
            .collect();
        let (before, after) = counted(80, &edges);
        assert!(after <= before, "{before} {after}");
    }
}
