//! What is to be drawn: boxes with their sizes, edges between them, and bodies inside of boxes.

use std::collections::BTreeSet;

/// The width of a step, in the abstract pixels of all sizes here.
pub const NODE_WIDTH: u32 = 184;
/// The height of a step.
pub const NODE_HEIGHT: u32 = 48;
/// Above the body inside a box: the title of the box stands there.
pub const BODY_HEAD: u32 = 60;
/// Around the body inside a box.
pub const BODY_PAD: u32 = 16;

/// Steps and the edges between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// In the order of the definition, which decides what stands above where nothing else does.
    pub nodes: Vec<Node>,
    /// In any order.
    pub edges: Vec<Edge>,
}

/// One box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name, once in the whole picture, bodies included.
    pub key: String,
    /// At least 1; a box with a body may become wider.
    pub width: u32,
    /// At least 1; a box with a body may become higher.
    pub height: u32,
    /// What a scatter does for each item: drawn inside of its box.
    pub body: Option<Graph>,
}

impl Node {
    /// A step of the usual size.
    pub fn step(key: impl Into<String>) -> Node {
        Node {
            key: key.into(),
            width: NODE_WIDTH,
            height: NODE_HEIGHT,
            body: None,
        }
    }

    /// A step around a body.
    pub fn around(key: impl Into<String>, body: Graph) -> Node {
        Node {
            body: Some(body),
            ..Node::step(key)
        }
    }
}

/// From one node of a graph to another of the same graph.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The key of its source.
    pub from: String,
    /// The key of its target.
    pub to: String,
    /// Its type as the definition has it; tells edges between the same steps apart.
    pub kind: String,
}

impl Edge {
    /// An edge of the kind.
    pub fn new(from: impl Into<String>, to: impl Into<String>, kind: impl Into<String>) -> Edge {
        Edge {
            from: from.into(),
            to: to.into(),
            kind: kind.into(),
        }
    }
}

/// Why a graph has no picture. A definition that was checked has none of these faults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undrawable {
    /// Two nodes have one key.
    #[error("`{0}` is there twice")]
    Twice(String),
    /// An edge ends at nothing, or in another body.
    #[error("an edge from `{from}` to `{to}` leaves the graph")]
    Loose {
        /// Its source.
        from: String,
        /// Its target.
        to: String,
    },
    /// Its edges lead back to where they began.
    #[error("the steps form a cycle: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// Scatters inside of scatters inside of scatters.
    #[error("bodies are nested deeper than {0} levels")]
    Deep(usize),
}

impl Graph {
    /// All nodes, those of bodies too.
    pub fn count(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| 1 + node.body.as_ref().map_or(0, Graph::count))
            .sum()
    }

    /// Takes out what ends at nothing: of a draft, which may be wrong in parts, the rest is drawn.
    pub fn drop_loose_edges(&mut self) {
        let keys: BTreeSet<String> = self.nodes.iter().map(|node| node.key.clone()).collect();
        self.edges
            .retain(|edge| keys.contains(&edge.from) && keys.contains(&edge.to));
        for body in self.nodes.iter_mut().filter_map(|node| node.body.as_mut()) {
            body.drop_loose_edges();
        }
    }

    /// No key twice, and no deeper than `depth` bodies.
    pub(super) fn check_keys(&self, depth: usize) -> Result<(), Undrawable> {
        fn walk<'a>(
            graph: &'a Graph,
            left: usize,
            depth: usize,
            seen: &mut BTreeSet<&'a str>,
        ) -> Result<(), Undrawable> {
            for node in &graph.nodes {
                if !seen.insert(&node.key) {
                    return Err(Undrawable::Twice(node.key.clone()));
                }
                if let Some(body) = &node.body {
                    let left = left.checked_sub(1).ok_or(Undrawable::Deep(depth))?;
                    walk(body, left, depth, seen)?;
                }
            }
            Ok(())
        }
        walk(self, depth, depth, &mut BTreeSet::new())
    }
}
