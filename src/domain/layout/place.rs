//! Heights: every vertex as near to the middle of its neighbours as those above and below it allow.

use super::layers::Layered;

/// Between two boxes of a column.
const NODE_GAP: i64 = 24;
/// Between a box and a line that passes it.
const BEND_NODE_GAP: i64 = 18;
/// Between two lines that pass a column.
const BEND_GAP: i64 = 14;
/// So many pixels of height are taken away from a line that is nearly straight.
const ASKEW_MAX: i64 = 14;
/// Heights are worked out in these parts of a pixel.
const PARTS: i64 = 64;
/// Back and forth, then to both sides.
const ROUNDS: usize = 6;

/// The height of the middle of each vertex, the smallest possible being a box's half height or a line's zero.
pub(super) fn middles(layered: &Layered, heights: &[i64]) -> Vec<i64> {
    let half = |vertex: usize| heights.get(vertex).map_or(0, |height| height * PARTS / 2);
    let apart = |upper: usize, lower: usize| {
        let gap = match (layered.is_bend(upper), layered.is_bend(lower)) {
            (false, false) => NODE_GAP,
            (true, true) => BEND_GAP,
            _ => BEND_NODE_GAP,
        };
        half(upper) + half(lower) + gap * PARTS
    };
    let mut middle = vec![0; layered.column.len()];
    for column in &layered.columns {
        for pair in column.windows(2) {
            middle[pair[1]] = middle[pair[0]] + apart(pair[0], pair[1]);
        }
    }
    let count = layered.columns.len();
    for _ in 0..ROUNDS {
        for column in 1..count {
            settle(layered, &mut middle, column, &[&layered.before], &apart);
        }
        for column in (0..count.saturating_sub(1)).rev() {
            settle(layered, &mut middle, column, &[&layered.after], &apart);
        }
    }
    for column in 0..count {
        settle(
            layered,
            &mut middle,
            column,
            &[&layered.before, &layered.after],
            &apart,
        );
    }
    whole_pixels(layered, &middle, &apart, &half)
}

/// How much an edge wants to be straight: long ones above all, since a line that sways is hard to follow.
fn weight(layered: &Layered, one: usize, other: usize) -> i64 {
    match (layered.is_bend(one), layered.is_bend(other)) {
        (true, true) => 8,
        (false, false) => 1,
        _ => 2,
    }
}

/// Places one column, the others as they are: the heights in its order whose squares of distance to what each vertex
/// wants are least. These are known at once by joining neighbours that want to pass each other.
fn settle(
    layered: &Layered,
    middle: &mut [i64],
    column: usize,
    sides: &[&Vec<Vec<usize>>],
    apart: &impl Fn(usize, usize) -> i64,
) {
    struct Group {
        first: usize,
        sum: i64,
        weight: i64,
    }
    impl Group {
        fn mean(&self) -> i64 {
            self.sum.div_euclid(self.weight)
        }
    }
    let vertices = &layered.columns[column];
    let mut offsets = Vec::with_capacity(vertices.len());
    let mut groups: Vec<Group> = Vec::with_capacity(vertices.len());
    let mut offset = 0;
    for (place, &vertex) in vertices.iter().enumerate() {
        if place > 0 {
            offset += apart(vertices[place - 1], vertex);
        }
        offsets.push(offset);
        let (mut sum, mut total) = (0, 0);
        for &other in sides.iter().flat_map(|side| &side[vertex]) {
            let weight = weight(layered, vertex, other);
            sum += middle[other] * weight;
            total += weight;
        }
        if total == 0 {
            (sum, total) = (middle[vertex], 1);
        }
        let mut group = Group {
            first: place,
            sum: sum - offset * total,
            weight: total,
        };
        while let Some(above) = groups.pop_if(|above| above.mean() > group.mean()) {
            group = Group {
                first: above.first,
                sum: above.sum + group.sum,
                weight: above.weight + group.weight,
            };
        }
        groups.push(group);
    }
    let ends = groups
        .iter()
        .skip(1)
        .map(|group| group.first)
        .chain([vertices.len()]);
    for (group, end) in groups.iter().zip(ends) {
        for place in group.first..end {
            middle[vertices[place]] = group.mean() + offsets[place];
        }
    }
}

/// Rounded, with nothing nearer to its neighbour than it may be, and the top at zero.
fn whole_pixels(
    layered: &Layered,
    middle: &[i64],
    apart: &impl Fn(usize, usize) -> i64,
    half: &impl Fn(usize) -> i64,
) -> Vec<i64> {
    let up = |parts: i64| (parts + PARTS - 1).div_euclid(PARTS);
    let mut whole = vec![0; middle.len()];
    for column in &layered.columns {
        let mut least = i64::MIN;
        for (place, &vertex) in column.iter().enumerate() {
            whole[vertex] = (middle[vertex] + PARTS / 2).div_euclid(PARTS).max(least);
            if let Some(&next) = column.get(place + 1) {
                least = whole[vertex] + up(apart(vertex, next));
            }
        }
    }
    straighten(layered, &mut whole, |upper, lower| up(apart(upper, lower)));
    let top = (0..whole.len())
        .map(|vertex| whole[vertex] - up(half(vertex)))
        .min();
    let top = top.unwrap_or_default();
    for height in &mut whole {
        *height -= top;
    }
    whole
}

/// A line that is a little askew looks like a mistake: from left to right, a vertex takes the height of a neighbour that is
/// nearly its own, where that is free.
fn straighten(layered: &Layered, middle: &mut [i64], apart: impl Fn(usize, usize) -> i64) {
    for column in &layered.columns {
        for (place, &vertex) in column.iter().enumerate() {
            let near = layered.before[vertex]
                .iter()
                .map(|&other| middle[other])
                .min_by_key(|height| (height - middle[vertex]).abs());
            let Some(height) = near.filter(|height| (height - middle[vertex]).abs() <= ASKEW_MAX) else {
                continue;
            };
            let above = place.checked_sub(1).map(|above| column[above]);
            let is_below = above.is_none_or(|above| middle[above] + apart(above, vertex) <= height);
            let below = column.get(place + 1).copied();
            if is_below && below.is_none_or(|below| height + apart(vertex, below) <= middle[below]) {
                middle[vertex] = height;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layers::layered;
    use super::*;

    #[test]
    fn a_chain_is_straight_and_a_fan_is_even() {
        let chain = layered(4, &[(0, 1), (1, 2), (2, 3)]).unwrap();
        assert_eq!(middles(&chain, &[48; 4]), [24; 4]);
        let fan = layered(5, &[(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)]).unwrap();
        assert_eq!(middles(&fan, &[48; 5]), [96, 24, 96, 168, 96]);
    }

    #[test]
    fn a_long_edge_is_straight_between_its_bends() {
        let layered = layered(5, &[(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]).unwrap();
        let middle = middles(&layered, &[48; 5]);
        assert_eq!(middle[5], middle[6]);
        assert_eq!(middle[6], middle[7]);
    }
}
