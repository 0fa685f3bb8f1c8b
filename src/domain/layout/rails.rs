//! A graph as rows of text: a step on each row, edges as rails beside it, read from the top.
//!
//! A rail belongs to a set of steps that are still to come: whoever leads to exactly these joins it, and each of them is
//! led to by it. So a fan of a hundred steps that meet again needs two rails, and what stands on a rail is exact.

use std::collections::BTreeSet;

use crate::words::limits::GRAPH_RAILS_MAX;

const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;
/// A rail goes straight through a line that passes it.
const ACROSS: u8 = 16;

/// One row: the rails, and where the mark of the row's step stands among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// The step, unless the row only joins rails.
    pub(super) node: Option<usize>,
    /// The column of its mark.
    pub(super) at: usize,
    cells: Vec<u8>,
}

impl Row {
    /// A step that nothing leads to, right below one that leads to nothing: no rail would tell them from a chain.
    fn looks_joined_to(&self, above: Option<&Row>) -> bool {
        let is_end =
            |above: &Row| above.node.is_some() && above.at == self.at && above.cells[above.at] & DOWN == 0;
        self.cells[self.at] & UP == 0 && above.is_some_and(is_end)
    }

    /// Only the rails that go on into a row.
    fn between(next: &Row) -> Row {
        let through = |&cell: &u8| if cell & UP == 0 { 0 } else { UP | DOWN };
        Row {
            node: None,
            at: next.at,
            cells: next.cells.iter().map(through).collect(),
        }
    }

    /// Two characters for each column; the mark is left to the caller.
    pub(super) fn cells(&self) -> impl Iterator<Item = [char; 2]> {
        self.cells.iter().map(|&cell| {
            let filler = if cell & RIGHT == 0 { ' ' } else { '─' };
            [stroke(cell), filler]
        })
    }

    /// The rails that go on below the row.
    pub(super) fn below(&self) -> impl Iterator<Item = [char; 2]> {
        self.cells
            .iter()
            .map(|&cell| [if cell & DOWN == 0 { ' ' } else { '│' }, ' '])
    }
}

fn stroke(cell: u8) -> char {
    if cell & ACROSS != 0 {
        return '│';
    }
    match cell & (UP | DOWN | LEFT | RIGHT) {
        0 => ' ',
        UP | DOWN | 3 => '│',
        LEFT | RIGHT | 12 => '─',
        5 => '╯',
        6 => '╮',
        7 => '┤',
        9 => '╰',
        10 => '╭',
        11 => '├',
        13 => '┴',
        14 => '┬',
        _ => '┼',
    }
}

/// The steps still to come of each rail, by column.
type Rails = Vec<Option<BTreeSet<usize>>>;

/// The rows of a graph whose nodes are numbered in the order in which equals are read; `None` when it needs more rails
/// than there may be. `after` has the successors of each node.
pub(super) fn rows(after: &[BTreeSet<usize>]) -> Option<Vec<Row>> {
    let mut rails: Rails = Vec::new();
    let mut rows = Vec::with_capacity(after.len());
    for node in reading_order(after) {
        let (row, joins) = step(&mut rails, node, &after[node]);
        let at = row.at;
        if row.looks_joined_to(rows.last()) {
            rows.push(Row::between(&row));
        }
        rows.push(row);
        if let Some(onto) = joins {
            rows.push(turn(&rails, at, onto));
        }
        while let Some((kept, joined)) = equal_rails(&rails) {
            rows.push(turn(&rails, joined, kept));
            rails[joined] = None;
        }
        while rails.last().is_some_and(Option::is_none) {
            rails.pop();
        }
        if rails.len() > GRAPH_RAILS_MAX {
            return None;
        }
    }
    Some(rows)
}

/// Every node after those before it, and soon after the last of them.
pub(super) fn reading_order(after: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut missing = vec![0_usize; after.len()];
    for &next in after.iter().flatten() {
        missing[next] += 1;
    }
    let mut open: Vec<usize> = (0..after.len())
        .rev()
        .filter(|&node| missing[node] == 0)
        .collect();
    let mut order = Vec::with_capacity(after.len());
    while let Some(node) = open.pop() {
        order.push(node);
        for &next in after[node].iter().rev() {
            missing[next] -= 1;
            if missing[next] == 0 {
                open.push(next);
            }
        }
    }
    order
}

/// Draws a node, and the rail onto which it then turns.
fn step(rails: &mut Rails, node: usize, next: &BTreeSet<usize>) -> (Row, Option<usize>) {
    let before: Vec<bool> = rails.iter().map(Option::is_some).collect();
    let mut incoming = Vec::new();
    for (column, rail) in rails.iter_mut().enumerate() {
        if rail.as_mut().is_some_and(|rail| rail.remove(&node)) {
            incoming.push(column);
            if rail.as_ref().is_some_and(BTreeSet::is_empty) {
                *rail = None;
            }
        }
    }
    let ended = incoming.iter().copied().find(|&column| rails[column].is_none());
    let was_free = |column: usize| before.get(column).is_none_or(|&was| !was);
    let at = ended.unwrap_or_else(|| {
        (0..=before.len())
            .find(|&column| was_free(column))
            .unwrap_or(before.len())
    });
    let joins = rails
        .iter()
        .position(|rail| !next.is_empty() && rail.as_ref() == Some(next));
    if rails.len() <= at {
        rails.resize(at + 1, None);
    }
    if joins.is_none() && !next.is_empty() {
        rails[at] = Some(next.clone());
    }
    let mut cells: Vec<u8> = rails
        .iter()
        .enumerate()
        .map(|(column, rail)| {
            let was = !was_free(column) && (rail.is_some() || incoming.contains(&column));
            u8::from(was) * UP + u8::from(rail.is_some()) * DOWN
        })
        .collect();
    if !next.is_empty() {
        cells[at] |= DOWN;
    }
    for &column in incoming.iter().filter(|&&column| column != at) {
        connect(&mut cells, column, at, &incoming);
    }
    let row = Row {
        node: Some(node),
        at,
        cells,
    };
    (row, joins)
}

/// A row in which the rail at `from` ends in that at `onto`.
fn turn(rails: &Rails, from: usize, onto: usize) -> Row {
    let mut cells: Vec<u8> = rails
        .iter()
        .map(|rail| if rail.is_some() { UP | DOWN } else { 0 })
        .collect();
    if cells.len() <= from {
        cells.resize(from + 1, 0);
    }
    cells[from] = UP;
    connect(&mut cells, from, onto, &[from, onto]);
    Row {
        node: None,
        at: from,
        cells,
    }
}

/// A line from one column to another. Rails between them are passed, unless they take part.
fn connect(cells: &mut [u8], from: usize, to: usize, part: &[usize]) {
    let (first, last) = (from.min(to), from.max(to));
    cells[first] |= RIGHT;
    cells[last] |= LEFT;
    for (column, cell) in cells.iter_mut().enumerate().take(last).skip(first + 1) {
        if *cell & (UP | DOWN) != 0 && !part.contains(&column) {
            *cell |= ACROSS;
        }
        *cell |= LEFT | RIGHT;
    }
}

fn equal_rails(rails: &Rails) -> Option<(usize, usize)> {
    rails.iter().enumerate().find_map(|(kept, rail)| {
        let set = rail.as_ref()?;
        let joined = rails
            .iter()
            .skip(kept + 1)
            .position(|other| other.as_ref() == Some(set))?;
        Some((kept, kept + 1 + joined))
    })
}
