//! From a graph to its picture: bodies first, then columns, lines and the whole.

use std::collections::BTreeMap;

use crate::words::limits::{GRAPH_DEPTH_MAX, GRAPH_VISIBLE_MAX};

use super::drawing::{Drawing, Line, Placed, Point};
use super::graph::{BODY_HEAD, BODY_PAD, Graph, Node, Undrawable};
use super::layers::{Layered, Way, layered};
use super::order::reduce_crossings;
use super::place::middles;

/// Between two columns, at least.
const COLUMN_GAP: i64 = 56;
/// And at most: steep edges get more room.
const COLUMN_GAP_MAX: i64 = 128;
/// So many pixels of height want one more of width.
const STEEPNESS: i64 = 6;
/// Between two edges that run above the picture.
const ABOVE_GAP: i64 = 10;
/// So many of them side by side; further ones share their places.
const ABOVE_MAX: usize = 24;
/// Between the ends of edges that join the same two steps.
const TWIN_GAP: i64 = 12;

/// The picture of a graph. With more nodes than can be looked at, bodies are not drawn but counted.
pub fn draw(graph: &Graph) -> Result<Drawing, Undrawable> {
    graph.check_keys(GRAPH_DEPTH_MAX)?;
    level(graph, graph.count() > GRAPH_VISIBLE_MAX)
}

/// A node with its body drawn.
struct Sized<'a> {
    node: &'a Node,
    width: i64,
    height: i64,
    body: Option<Drawing>,
    folded: usize,
}

fn sized(node: &Node, folds: bool) -> Result<Sized<'_>, Undrawable> {
    let mut sized = Sized {
        node,
        width: i64::from(node.width.max(1)),
        height: i64::from(node.height.max(1)),
        body: None,
        folded: 0,
    };
    match &node.body {
        Some(body) if folds => {
            // A body that cannot be drawn is a fault, folded or not.
            level(body, folds)?;
            sized.folded = body.count();
        }
        Some(body) => {
            let mut inner = level(body, folds)?;
            let pad = i64::from(BODY_PAD);
            let head = i64::from(BODY_HEAD);
            inner.shift(pad, head);
            sized.width = sized.width.max(inner.width + 2 * pad);
            sized.height = sized.height.max(inner.height + head + pad);
            sized.body = Some(inner);
        }
        None => {}
    }
    Ok(sized)
}

fn level(graph: &Graph, folds: bool) -> Result<Drawing, Undrawable> {
    let boxes = graph
        .nodes
        .iter()
        .map(|node| sized(node, folds))
        .collect::<Result<Vec<_>, _>>()?;
    let edges = indexed(graph)?;
    let mut columns = layered(
        boxes.len(),
        &edges.iter().map(|edge| edge.ends).collect::<Vec<_>>(),
    )
    .map_err(|cycle| Undrawable::Cycle(cycle.into_iter().map(|at| graph.nodes[at].key.clone()).collect()))?;
    reduce_crossings(&mut columns);
    let heights: Vec<i64> = boxes.iter().map(|each| each.height).collect();
    let middle = middles(&columns, &heights);
    let frame = Frame::new(&boxes, columns, middle);
    Ok(frame.drawing(boxes, &edges))
}

/// An edge by the places of its nodes.
struct Indexed<'a> {
    ends: (usize, usize),
    kind: &'a str,
    /// Off the middle of its ends, when others join the same two steps.
    aside: i64,
}

/// Sorted, so that the order in memory does not matter.
fn indexed(graph: &Graph) -> Result<Vec<Indexed<'_>>, Undrawable> {
    let places: BTreeMap<&str, usize> = graph
        .nodes
        .iter()
        .enumerate()
        .map(|(place, node)| (node.key.as_str(), place))
        .collect();
    let mut edges = Vec::with_capacity(graph.edges.len());
    for edge in &graph.edges {
        let (Some(&from), Some(&to)) = (places.get(edge.from.as_str()), places.get(edge.to.as_str())) else {
            return Err(Undrawable::Loose {
                from: edge.from.clone(),
                to: edge.to.clone(),
            });
        };
        edges.push(Indexed {
            ends: (from, to),
            kind: &edge.kind,
            aside: 0,
        });
    }
    edges.sort_by_key(|edge| (edge.ends, edge.kind));
    for twins in edges.chunk_by_mut(|one, other| one.ends == other.ends) {
        let (from, to) = twins[0].ends;
        let room = i64::from(graph.nodes[from].height.min(graph.nodes[to].height)) / 2;
        let count = i64::try_from(twins.len()).unwrap_or(i64::MAX);
        for (at, twin) in (0..).zip(twins.iter_mut()) {
            twin.aside = ((2 * at - (count - 1)) * TWIN_GAP / 2).clamp(-room, room);
        }
    }
    Ok(edges)
}

/// Where columns and vertices are.
struct Frame {
    columns: Layered,
    middle: Vec<i64>,
    left: Vec<i64>,
    right: Vec<i64>,
}

impl Frame {
    fn new(boxes: &[Sized<'_>], columns: Layered, middle: Vec<i64>) -> Frame {
        let mut left = Vec::with_capacity(columns.columns.len());
        let mut right = Vec::with_capacity(columns.columns.len());
        let mut x = 0;
        for column in &columns.columns {
            let nodes = column.iter().filter(|&&vertex| !columns.is_bend(vertex));
            let width = nodes.map(|&node| boxes[node].width).max().unwrap_or(1);
            let links = column
                .iter()
                .flat_map(|&from| columns.after[from].iter().map(move |&to| (from, to)));
            let steepest = links.map(|(from, to)| (middle[from] - middle[to]).abs()).max();
            left.push(x);
            right.push(x + width);
            x += width + (COLUMN_GAP + steepest.unwrap_or(0) / STEEPNESS).min(COLUMN_GAP_MAX);
        }
        Frame {
            columns,
            middle,
            left,
            right,
        }
    }

    fn drawing(&self, boxes: Vec<Sized<'_>>, edges: &[Indexed<'_>]) -> Drawing {
        let mut above = Above::default();
        let lines = edges.iter().zip(&self.columns.ways);
        let lines: Vec<Line> = lines
            .map(|(edge, way)| Line {
                from: boxes[edge.ends.0].node.key.clone(),
                to: boxes[edge.ends.1].node.key.clone(),
                kind: edge.kind.to_owned(),
                points: self.points(&boxes, edge, way, &mut above),
            })
            .collect();
        let width = self.right.last().copied().unwrap_or(0);
        let bottom = |vertex: usize| {
            self.middle[vertex] + boxes.get(vertex).map_or(0, |each| each.height - each.height / 2)
        };
        let height = (0..self.middle.len()).map(bottom).max().unwrap_or(0);
        let mut drawing = Drawing {
            nodes: Vec::new(),
            lines,
            width,
            height,
        };
        for (at, each) in boxes.into_iter().enumerate() {
            let x = self.left[self.columns.column[at]];
            let y = self.middle[at] - each.height / 2;
            drawing.nodes.push(Placed {
                key: each.node.key.clone(),
                x,
                y,
                width: each.width,
                height: each.height,
                parent: None,
                folded: each.folded,
            });
            if let Some(mut body) = each.body {
                body.shift(x, y);
                for inner in &mut body.nodes {
                    inner.parent.get_or_insert_with(|| each.node.key.clone());
                }
                drawing.nodes.append(&mut body.nodes);
                drawing.lines.append(&mut body.lines);
            }
        }
        let over = above.height();
        drawing.shift(0, over);
        drawing.height += over;
        drawing
    }

    /// Through gaps a line may go up and down, through columns only straight: so it meets no box.
    fn points(&self, boxes: &[Sized<'_>], edge: &Indexed<'_>, way: &Way, above: &mut Above) -> Vec<Point> {
        let (from, to) = edge.ends;
        let (first, last) = (self.columns.column[from], self.columns.column[to]);
        let start = self.middle[from] + edge.aside;
        let mut points = vec![
            Point {
                x: self.left[first] + boxes[from].width,
                y: start,
            },
            Point {
                x: self.right[first],
                y: start,
            },
        ];
        match way {
            Way::Bends(bends) => {
                for &bend in bends {
                    let column = self.columns.column[bend];
                    points.push(Point {
                        x: self.left[column],
                        y: self.middle[bend],
                    });
                    points.push(Point {
                        x: self.right[column],
                        y: self.middle[bend],
                    });
                }
            }
            Way::Above => {
                let y = above.place(first, last);
                points.push(Point {
                    x: self.left[first + 1],
                    y,
                });
                points.push(Point {
                    x: self.right[last - 1],
                    y,
                });
            }
        }
        points.push(Point {
            x: self.left[last],
            y: self.middle[to] + edge.aside,
        });
        bends_only(points)
    }
}

/// Without points that are passed straight, and without the same point twice.
fn bends_only(points: Vec<Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::with_capacity(points.len());
    for point in points {
        match kept.as_slice() {
            [.., last] if *last == point => {}
            [.., before, last] if before.y == last.y && last.y == point.y => {
                kept.pop();
                kept.push(point);
            }
            _ => kept.push(point),
        }
    }
    kept
}

/// Which edges run at which height above the picture: for each place, the column that is free again.
#[derive(Default)]
struct Above {
    free: Vec<usize>,
}

impl Above {
    fn place(&mut self, first: usize, last: usize) -> i64 {
        let place = match self.free.iter().position(|&free| free <= first) {
            Some(place) => place,
            None if self.free.len() < ABOVE_MAX => {
                self.free.push(0);
                self.free.len() - 1
            }
            None => first % ABOVE_MAX,
        };
        self.free[place] = self.free[place].max(last);
        -ABOVE_GAP * i64::try_from(place + 1).unwrap_or(1)
    }

    fn height(&self) -> i64 {
        ABOVE_GAP * i64::try_from(self.free.len()).unwrap_or(0)
    }
}
