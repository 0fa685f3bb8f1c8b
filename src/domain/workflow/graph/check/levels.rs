//! The graphs of a document: the top one, and the body of each scatter.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::workflow::graph::document::{Document, EdgeDoc, StepDoc};
use crate::domain::workflow::graph::kinds::StepKind;

/// One graph: steps that may have edges between them.
#[derive(Debug)]
pub struct Level<'d> {
    /// Pointer to the object that has `steps` and `edges`.
    pub at: String,
    /// The steps.
    pub steps: &'d [StepDoc],
    /// The edges.
    pub edges: &'d [EdgeDoc],
    /// The scatter whose body this is: the place of its level in the list, and of the step in that.
    pub parent: Option<(usize, usize)>,
}

impl Level<'_> {
    /// Pointer to a step.
    pub fn step_at(&self, step: usize) -> String {
        format!("{}/steps/{step}", self.at)
    }

    /// Pointer to an edge.
    pub fn edge_at(&self, edge: usize) -> String {
        format!("{}/edges/{edge}", self.at)
    }
}

/// All graphs of a document; a body comes after the level of its scatter.
pub fn levels(document: &Document) -> Vec<Level<'_>> {
    let mut found = vec![Level {
        at: String::new(),
        steps: &document.steps,
        edges: &document.edges,
        parent: None,
    }];
    let mut next = 0;
    while let Some(level) = found.get(next) {
        let (steps, mut bodies) = (level.steps, Vec::new());
        for (index, step) in steps.iter().enumerate() {
            if let StepKind::Scatter(scatter) = &step.kind {
                bodies.push(Level {
                    at: format!("{}/args/body", level.step_at(index)),
                    steps: &scatter.body.steps,
                    edges: &scatter.body.edges,
                    parent: Some((next, index)),
                });
            }
        }
        found.extend(bodies);
        next += 1;
    }
    found
}

/// Where a step stands: its level, and its place in that.
pub(super) type Seat = (usize, usize);

/// Who stands where, and who comes before whom.
#[derive(Debug)]
pub(super) struct Map<'d> {
    pub(super) levels: Vec<Level<'d>>,
    /// The first step of each name.
    pub(super) seats: BTreeMap<&'d str, Seat>,
    /// By level and step: the steps from which edges come, each once.
    pub(super) sources: Vec<Vec<BTreeSet<usize>>>,
    /// By level and step: all steps before it. Empty where there is a cycle.
    before: Vec<Vec<BTreeSet<usize>>>,
    /// By level: the order of its steps, or one cycle.
    pub(super) orders: Vec<Result<Vec<usize>, Vec<usize>>>,
}

impl<'d> Map<'d> {
    pub(super) fn of(document: &'d Document) -> Map<'d> {
        let levels = levels(document);
        let mut seats = BTreeMap::new();
        for (number, level) in levels.iter().enumerate() {
            for (index, step) in level.steps.iter().enumerate() {
                seats.entry(step.name.as_str()).or_insert((number, index));
            }
        }
        let mut map = Map {
            sources: Vec::new(),
            before: Vec::new(),
            orders: Vec::new(),
            levels,
            seats,
        };
        for number in 0..map.levels.len() {
            let sources = map.sources_of(number);
            let order = order(&sources);
            let before = match &order {
                Ok(order) => closure(&sources, order),
                Err(_) => vec![BTreeSet::new(); sources.len()],
            };
            map.sources.push(sources);
            map.orders.push(order);
            map.before.push(before);
        }
        map
    }

    fn sources_of(&self, number: usize) -> Vec<BTreeSet<usize>> {
        let level = &self.levels[number];
        let mut sources = vec![BTreeSet::new(); level.steps.len()];
        for edge in level.edges {
            if let (Some(from), Some(to)) = (
                self.seat_in(number, edge.source_ref.as_str()),
                self.seat_in(number, edge.target_ref.as_str()),
            ) {
                sources[to].insert(from);
            }
        }
        sources
    }

    /// The place of a step of that name in that level.
    pub(super) fn seat_in(&self, level: usize, name: &str) -> Option<usize> {
        self.seats
            .get(name)
            .filter(|(found, _)| *found == level)
            .map(|(_, step)| *step)
    }

    /// True if the one surely comes before the other, whose level it shares.
    pub(super) fn is_before(&self, level: usize, first: usize, then: usize) -> bool {
        self.before[level][then].contains(&first)
    }
}

/// The steps in an order in which sources come first (those of equal rank as they are written), or one cycle.
fn order(sources: &[BTreeSet<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut missing: Vec<usize> = sources.iter().map(BTreeSet::len).collect();
    let mut targets = vec![Vec::new(); sources.len()];
    for (step, from) in sources.iter().enumerate() {
        for source in from {
            targets[*source].push(step);
        }
    }
    let mut ready: BTreeSet<usize> = (0..sources.len()).filter(|step| missing[*step] == 0).collect();
    let mut order = Vec::with_capacity(sources.len());
    while let Some(step) = ready.pop_first() {
        order.push(step);
        for target in &targets[step] {
            missing[*target] -= 1;
            if missing[*target] == 0 {
                ready.insert(*target);
            }
        }
    }
    if order.len() == sources.len() {
        return Ok(order);
    }
    Err(cycle(sources, &missing))
}

/// Each step that is left has a source that is left: going back from one of them must come back to itself.
fn cycle(sources: &[BTreeSet<usize>], missing: &[usize]) -> Vec<usize> {
    let is_left = |step: &usize| missing[*step] > 0;
    let mut way: Vec<usize> = (0..sources.len()).find(is_left).into_iter().collect();
    while let Some(source) = { way.last() }.and_then(|last| sources[*last].iter().find(|step| is_left(step)))
    {
        if let Some(begin) = way.iter().position(|step| step == source) {
            way.drain(..begin);
            way.reverse();
            // It begins where the document does.
            let first = (0..way.len()).min_by_key(|at| way[*at]).unwrap_or(0);
            way.rotate_left(first);
            return way;
        }
        way.push(*source);
    }
    way
}

fn closure(sources: &[BTreeSet<usize>], order: &[usize]) -> Vec<BTreeSet<usize>> {
    let mut before = vec![BTreeSet::new(); sources.len()];
    for step in order {
        let mut all = sources[*step].clone();
        for source in &sources[*step] {
            all.extend(before[*source].iter().copied());
        }
        before[*step] = all;
    }
    before
}
