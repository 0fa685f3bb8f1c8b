//! Columns: each vertex after the last of its predecessors, and a bend of every edge in each column that it crosses.

use std::collections::BTreeSet;

use crate::words::limits::GRAPH_BENDS_MAX;

/// The way of an edge from column to column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// Through a bend in each column between its ends; none when they are neighbours.
    Bends(Vec<usize>),
    /// Above the picture: it would need too many bends.
    Above,
}

/// Vertices in columns. The first `nodes` of them are nodes, the others bends; links go from a column to the next.
#[derive(Debug, Clone)]
pub(super) struct Layered {
    /// How many vertices are nodes.
    pub(super) nodes: usize,
    /// The column of each vertex.
    pub(super) column: Vec<usize>,
    /// The vertices of each column, from the top.
    pub(super) columns: Vec<Vec<usize>>,
    /// The vertices before each one.
    pub(super) before: Vec<Vec<usize>>,
    /// The vertices after each one.
    pub(super) after: Vec<Vec<usize>>,
    /// The way of each edge, in the order of the edges.
    pub(super) ways: Vec<Way>,
}

impl Layered {
    /// True for a bend.
    pub(super) fn is_bend(&self, vertex: usize) -> bool {
        vertex >= self.nodes
    }

    fn link(&mut self, from: usize, to: usize) {
        self.after[from].push(to);
        self.before[to].push(from);
    }

    fn bend(&mut self, column: usize) -> usize {
        self.column.push(column);
        self.before.push(Vec::new());
        self.after.push(Vec::new());
        self.column.len() - 1
    }
}

/// The columns of a graph of `nodes` vertices; or the vertices of one cycle, in its order.
pub(super) fn layered(nodes: usize, edges: &[(usize, usize)]) -> Result<Layered, Vec<usize>> {
    let column = longest_paths(nodes, edges)?;
    let mut layered = Layered {
        nodes,
        column,
        columns: Vec::new(),
        before: vec![Vec::new(); nodes],
        after: vec![Vec::new(); nodes],
        ways: Vec::with_capacity(edges.len()),
    };
    let above = too_long(&layered.column, edges);
    for (index, &(from, to)) in edges.iter().enumerate() {
        if above.contains(&index) {
            layered.ways.push(Way::Above);
            continue;
        }
        let (first, last) = (layered.column[from], layered.column[to]);
        let bends: Vec<usize> = (first + 1..last).map(|column| layered.bend(column)).collect();
        let mut at = from;
        for &bend in &bends {
            layered.link(at, bend);
            at = bend;
        }
        layered.link(at, to);
        layered.ways.push(Way::Bends(bends));
    }
    let width = layered.column.iter().max().map_or(0, |last| last + 1);
    layered.columns = vec![Vec::new(); width];
    for vertex in by_depth(&layered) {
        layered.columns[layered.column[vertex]].push(vertex);
    }
    Ok(layered)
}

/// The longest edges, as many as it takes until the others get along with the bends that there may be.
fn too_long(column: &[usize], edges: &[(usize, usize)]) -> BTreeSet<usize> {
    let mut spans: Vec<(usize, usize)> = edges
        .iter()
        .enumerate()
        .map(|(index, &(from, to))| (column[to] - column[from] - 1, index))
        .collect();
    spans.sort_unstable();
    let mut bends = 0;
    let mut above = BTreeSet::new();
    for (span, index) in spans {
        bends += span;
        if bends > GRAPH_BENDS_MAX {
            above.insert(index);
        }
    }
    above
}

fn longest_paths(nodes: usize, edges: &[(usize, usize)]) -> Result<Vec<usize>, Vec<usize>> {
    let mut after = vec![Vec::new(); nodes];
    let mut missing = vec![0_usize; nodes];
    for &(from, to) in edges {
        after[from].push(to);
        missing[to] += 1;
    }
    let mut column = vec![0; nodes];
    let mut open: Vec<usize> = (0..nodes).filter(|&node| missing[node] == 0).collect();
    let mut seen = 0;
    while let Some(node) = open.pop() {
        seen += 1;
        for &next in &after[node] {
            column[next] = column[next].max(column[node] + 1);
            missing[next] -= 1;
            if missing[next] == 0 {
                open.push(next);
            }
        }
    }
    if seen == nodes {
        Ok(column)
    } else {
        Err(cycle(&missing, edges))
    }
}

/// One cycle among the nodes that still miss a predecessor: each of them has one that does, so going back never ends.
fn cycle(missing: &[usize], edges: &[(usize, usize)]) -> Vec<usize> {
    let mut back = vec![None; missing.len()];
    for &(from, to) in edges.iter().rev() {
        if missing[from] > 0 && missing[to] > 0 {
            back[to] = Some(from);
        }
    }
    let start = missing.iter().position(|&count| count > 0).unwrap_or_default();
    let mut path = Vec::new();
    let mut at = start;
    while !path.contains(&at) {
        path.push(at);
        let Some(before) = back[at] else { break };
        at = before;
    }
    let first = path.iter().position(|&node| node == at).unwrap_or_default();
    let mut found = path.split_off(first);
    found.reverse();
    // The same cycle is always told from its first node on.
    let first = (0..found.len()).min_by_key(|&at| found[at]).unwrap_or_default();
    found.rotate_left(first);
    found
}

/// One branch after the other: a first order that keeps chains together.
fn by_depth(layered: &Layered) -> Vec<usize> {
    let mut seen = vec![false; layered.column.len()];
    let mut order = Vec::with_capacity(layered.column.len());
    let roots = (0..layered.nodes).filter(|&node| layered.before[node].is_empty());
    for root in roots {
        let mut open = vec![root];
        while let Some(vertex) = open.pop() {
            if std::mem::replace(&mut seen[vertex], true) {
                continue;
            }
            order.push(vertex);
            open.extend(layered.after[vertex].iter().rev().filter(|&&next| !seen[next]));
        }
    }
    // Only edges above the picture lead to these.
    order.extend((0..layered.column.len()).filter(|&vertex| !seen[vertex]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_stands_after_the_last_of_its_predecessors() {
        let layered = layered(4, &[(0, 1), (1, 2), (0, 2), (2, 3), (0, 3)]).unwrap();
        assert_eq!(&layered.column[..4], [0, 1, 2, 3]);
        assert_eq!(layered.columns.len(), 4);
        assert!(matches!(&layered.ways[4], Way::Bends(bends) if bends.len() == 2));
    }

    #[test]
    fn a_cycle_is_named_in_its_order() {
        let edges = [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)];
        assert_eq!(layered(5, &edges).unwrap_err(), [1, 2, 3]);
        assert_eq!(layered(1, &[(0, 0)]).unwrap_err(), [0]);
    }

    #[test]
    fn the_longest_edges_run_above_when_there_are_too_many_bends() {
        let count = 400;
        let mut edges: Vec<(usize, usize)> = (1..count).map(|node| (node - 1, node)).collect();
        edges.extend((0..count).flat_map(|from| (from + 2..count).step_by(37).map(move |to| (from, to))));
        let layered = layered(count, &edges).unwrap();
        let bends = layered.column.len() - count;
        assert!(bends <= GRAPH_BENDS_MAX, "{bends}");
        let above = layered.ways.iter().filter(|way| **way == Way::Above).count();
        assert!(above > 0 && above < edges.len(), "{above}");
    }
}
