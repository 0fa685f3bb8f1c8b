//! A picture: where everything stands. Made by `draw`; who shows it adds titles and states.

/// Positions and sizes, in abstract pixels from the top left corner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drawing {
    /// Boxes, each before those inside of it, in the order of the definition.
    pub nodes: Vec<Placed>,
    /// Edges, sorted by their ends and kind within each graph.
    pub lines: Vec<Line>,
    /// The whole width.
    pub width: i64,
    /// The whole height.
    pub height: i64,
}

/// Where a box stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Its name.
    pub key: String,
    /// Of its left border.
    pub x: i64,
    /// Of its upper border.
    pub y: i64,
    /// Its width, with its body.
    pub width: i64,
    /// Its height, with its body.
    pub height: i64,
    /// The key of the box that it stands inside of.
    pub parent: Option<String>,
    /// How many nodes of its body are not drawn.
    pub folded: usize,
}

/// The way of an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The key of its source.
    pub from: String,
    /// The key of its target.
    pub to: String,
    /// Its type as the definition has it.
    pub kind: String,
    /// From the right border of its source to the left border of its target, each further right than the one before.
    pub points: Vec<Point>,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// From the left.
    pub x: i64,
    /// From the top.
    pub y: i64,
}

impl Drawing {
    /// Moves everything.
    pub(super) fn shift(&mut self, x: i64, y: i64) {
        for node in &mut self.nodes {
            node.x += x;
            node.y += y;
        }
        for point in self.lines.iter_mut().flat_map(|line| &mut line.points) {
            point.x += x;
            point.y += y;
        }
    }
}
