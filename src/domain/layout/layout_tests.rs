//! What must hold of every picture, over random graphs.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::words::limits::{GRAPH_BENDS_MAX, GRAPH_DEPTH_MAX, GRAPH_VISIBLE_MAX};

use super::*;

const KINDS: [&str; 4] = [
    "EDGE_TYPE_SUCCESS",
    "EDGE_TYPE_FAILURE",
    "EDGE_TYPE_ALWAYS",
    "EDGE_TYPE_CONDITION",
];

/// A graph without cycles: edges go from a lower number to a higher one, and the nodes stand in another order.
fn graphs(nodes_max: usize) -> impl Strategy<Value = Graph> {
    let nodes = proptest::collection::vec((1_u32..300, 1_u32..120), 1..nodes_max);
    let order = any::<u64>();
    (nodes, order).prop_flat_map(move |(sizes, order)| {
        let count = sizes.len();
        proptest::collection::vec((0..count, 0..count, 0..KINDS.len()), 0..count * 3).prop_map(move |ends| {
            let key = |at: usize| format!("s{at}");
            let mut nodes: Vec<Node> = sizes
                .iter()
                .enumerate()
                .map(|(at, &(width, height))| Node {
                    key: key(at),
                    width,
                    height,
                    body: None,
                })
                .collect();
            nodes.sort_by_key(|node| (u64::from(node.width) * 7919 + u64::from(node.height)) ^ order);
            let mut edges: Vec<Edge> = ends
                .iter()
                .filter(|(one, other, _)| one != other)
                .map(|&(one, other, kind)| Edge::new(key(one.min(other)), key(one.max(other)), KINDS[kind]))
                .collect();
            edges.sort();
            edges.dedup();
            Graph { nodes, edges }
        })
    })
}

/// Some nodes of an outer graph get bodies.
fn compounds() -> impl Strategy<Value = Graph> {
    (graphs(14), proptest::collection::vec(graphs(7), 0..4)).prop_map(|(mut outer, bodies)| {
        for (at, mut body) in bodies.into_iter().enumerate() {
            let place = at * 3 % outer.nodes.len();
            let prefix = format!("{}/{at}/", outer.nodes[place].key);
            for node in &mut body.nodes {
                node.key.insert_str(0, &prefix);
            }
            for edge in &mut body.edges {
                edge.from.insert_str(0, &prefix);
                edge.to.insert_str(0, &prefix);
            }
            outer.nodes[place].body = Some(body);
        }
        outer
    })
}

fn shuffled(graph: &Graph, seed: usize) -> Graph {
    let mut other = graph.clone();
    let count = other.edges.len();
    if count > 0 {
        other.edges.rotate_left(seed % count);
        other.edges.swap(0, seed % count);
        other.edges.reverse();
    }
    for body in other.nodes.iter_mut().filter_map(|node| node.body.as_mut()) {
        *body = shuffled(body, seed / 3);
    }
    other
}

fn by_key(drawing: &Drawing) -> BTreeMap<&str, &Placed> {
    drawing
        .nodes
        .iter()
        .map(|node| (node.key.as_str(), node))
        .collect()
}

fn apart(one: &Placed, other: &Placed) -> bool {
    one.x + one.width <= other.x
        || other.x + other.width <= one.x
        || one.y + one.height <= other.y
        || other.y + other.height <= one.y
}

fn is_inside(inner: &Placed, outer: &Placed) -> bool {
    inner.x > outer.x
        && inner.y > outer.y
        && inner.x + inner.width < outer.x + outer.width
        && inner.y + inner.height < outer.y + outer.height
}

/// Every fault of a picture.
fn faults(graph: &Graph, drawing: &Drawing) -> Vec<String> {
    let mut found = Vec::new();
    let nodes = by_key(drawing);
    let folded: usize = drawing.nodes.iter().map(|node| node.folded).sum();
    if drawing.nodes.len() + folded != graph.count() {
        found.push("a node is missing".to_owned());
    }
    for (at, one) in drawing.nodes.iter().enumerate() {
        if one.x < 0 || one.y < 0 || one.x + one.width > drawing.width || one.y + one.height > drawing.height
        {
            found.push(format!("{} leaves the picture", one.key));
        }
        if let Some(parent) = one
            .parent
            .as_deref()
            .filter(|parent| !is_inside(one, nodes[parent]))
        {
            found.push(format!("{} leaves {parent}", one.key));
        }
        let beside = drawing.nodes[at + 1..]
            .iter()
            .filter(|other| other.parent == one.parent);
        found.extend(
            beside
                .filter(|other| !apart(one, other))
                .map(|other| format!("{} lies on {}", one.key, other.key)),
        );
    }
    for line in &drawing.lines {
        let name = format!("{} to {}", line.from, line.to);
        let (from, to) = (nodes[line.from.as_str()], nodes[line.to.as_str()]);
        let (first, last) = (line.points[0], line.points[line.points.len() - 1]);
        if first.x != from.x + from.width || last.x != to.x {
            found.push(format!("{name} does not touch its ends"));
        }
        if !(from.y..=from.y + from.height).contains(&first.y) || !(to.y..=to.y + to.height).contains(&last.y)
        {
            found.push(format!("{name} begins or ends beside its box"));
        }
        if line.points.windows(2).any(|pair| pair[0].x >= pair[1].x) {
            found.push(format!("{name} goes back"));
        }
        if line
            .points
            .iter()
            .any(|point| point.y < 0 || point.y > drawing.height)
        {
            found.push(format!("{name} leaves the picture"));
        }
        let others = drawing
            .nodes
            .iter()
            .filter(|node| node.parent == from.parent && node.key != line.from && node.key != line.to);
        found.extend(
            others
                .filter(|node| line.points.windows(2).any(|pair| crosses(pair[0], pair[1], node)))
                .map(|node| format!("{name} runs through {}", node.key)),
        );
    }
    found
}

/// Does a piece of a line enter a box? By the sides of the box's corners, within the piece's own extent.
fn crosses(from: Point, to: Point, node: &Placed) -> bool {
    let (low, high) = (from.y.min(to.y), from.y.max(to.y));
    let beside =
        to.x <= node.x || from.x >= node.x + node.width || high <= node.y || low >= node.y + node.height;
    if beside {
        return false;
    }
    let side = |x: i64, y: i64| (to.x - from.x) * (y - from.y) - (to.y - from.y) * (x - from.x);
    let corners = [
        side(node.x, node.y),
        side(node.x + node.width, node.y),
        side(node.x, node.y + node.height),
        side(node.x + node.width, node.y + node.height),
    ];
    !(corners.iter().all(|&side| side >= 0) || corners.iter().all(|&side| side <= 0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn boxes_are_apart_and_edges_go_onward_around_them(graph in graphs(30)) {
        let drawing = draw(&graph).unwrap();
        prop_assert_eq!(drawing.lines.len(), graph.edges.len());
        prop_assert_eq!(faults(&graph, &drawing), Vec::<String>::new());
    }

    #[test]
    fn bodies_stand_inside_of_their_boxes(graph in compounds()) {
        let drawing = draw(&graph).unwrap();
        prop_assert_eq!(faults(&graph, &drawing), Vec::<String>::new());
    }

    #[test]
    fn the_order_of_edges_in_memory_does_not_matter(graph in compounds(), seed in 0_usize..1000) {
        prop_assert_eq!(draw(&graph).unwrap(), draw(&shuffled(&graph, seed)).unwrap());
    }

    #[test]
    fn every_line_of_the_text_fits_and_every_step_has_one(graph in compounds(), width in 40_usize..120, long in 0_usize..60) {
        let drawing = draw(&graph).unwrap();
        let labels = drawing.nodes.iter().map(|node| (node.key.clone(), Label {
            mark: '✓', title: format!("{} {}", node.key, "title ".repeat(long % (node.key.len() * 3))), word: "upstream failed".to_owned(), note: "2 of 3".repeat(long / 20),
        })).collect();
        let lines = text(&drawing, &labels, width);
        let keys: BTreeSet<&str> = lines.iter().filter_map(|line| line.key.as_deref()).collect();
        prop_assert_eq!(keys.len(), drawing.nodes.len());
        for line in plain(&lines).lines() {
            prop_assert!(line.chars().count() <= width, "{} columns of {width}: {line}", line.chars().count());
        }
    }

    #[test]
    fn a_step_is_read_after_those_before_it(graph in compounds()) {
        let drawing = draw(&graph).unwrap();
        let lines = text(&drawing, &BTreeMap::new(), 80);
        let at: BTreeMap<&str, usize> = lines.iter().enumerate().filter_map(|(at, line)| Some((line.key.as_deref()?, at))).collect();
        for line in &drawing.lines {
            prop_assert!(at[line.from.as_str()] < at[line.to.as_str()]);
        }
    }
}

fn chain(count: usize) -> Graph {
    Graph {
        nodes: (0..count).map(|at| Node::step(format!("s{at}"))).collect(),
        edges: (1..count)
            .map(|at| Edge::new(format!("s{}", at - 1), format!("s{at}"), KINDS[0]))
            .collect(),
    }
}

#[test]
fn a_thousand_steps_and_five_thousand_edges_have_a_picture_of_bounded_size() {
    let mut graph = chain(1_000);
    let mut seen: BTreeSet<(usize, usize)> = (1..1_000).map(|at| (at - 1, at)).collect();
    let mut number: usize = 12_345;
    while seen.len() < 5_000 {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (one, other) = (number / 65_536 % 1_000, number / 1_048_576 / 65_536 % 1_000);
        if one < other && seen.insert((one, other)) {
            graph
                .edges
                .push(Edge::new(format!("s{one}"), format!("s{other}"), KINDS[0]));
        }
    }
    let drawing = draw(&graph).unwrap();
    assert_eq!(drawing.lines.len(), 5_000);
    let points: usize = drawing.lines.iter().map(|line| line.points.len()).sum();
    assert!(points <= 2 * GRAPH_BENDS_MAX + 6 * 5_000, "{points}");
    let back = drawing
        .lines
        .iter()
        .filter(|line| line.points.windows(2).any(|pair| pair[0].x >= pair[1].x));
    assert_eq!(back.count(), 0);
    let lines = text(&drawing, &BTreeMap::new(), 80);
    assert!(plain(&lines).lines().all(|line| line.chars().count() <= 80));
    assert_eq!(lines.len(), 1_000, "too many rails: a list");
}

#[test]
fn bodies_fold_when_there_is_too_much_to_see() {
    let with_body = |outer: usize, inner: usize| {
        let mut graph = chain(outer);
        let mut body = chain(inner);
        for node in &mut body.nodes {
            node.key.insert_str(0, "fan/");
        }
        body.edges.clear();
        graph.nodes[1].body = Some(body);
        graph
    };
    let open = draw(&with_body(GRAPH_VISIBLE_MAX - 5, 5)).unwrap();
    assert_eq!(open.nodes.len(), GRAPH_VISIBLE_MAX);
    assert_eq!(open.nodes[2].parent.as_deref(), Some("s1"));
    let folded = draw(&with_body(GRAPH_VISIBLE_MAX - 5, 6)).unwrap();
    assert_eq!(folded.nodes.len(), GRAPH_VISIBLE_MAX - 5);
    assert_eq!(
        (folded.nodes[1].folded, folded.nodes[1].height),
        (6, i64::from(NODE_HEIGHT))
    );
}

#[test]
fn what_has_no_picture_says_why() {
    let mut twice = chain(2);
    twice.nodes[1].key = "s0".to_owned();
    assert_eq!(draw(&twice).unwrap_err(), Undrawable::Twice("s0".to_owned()));
    let mut loose = chain(2);
    loose.edges[0].to = "gone".to_owned();
    assert_eq!(
        draw(&loose).unwrap_err().to_string(),
        "an edge from `s0` to `gone` leaves the graph"
    );
    let mut round = chain(3);
    round.edges.push(Edge::new("s2", "s0", KINDS[1]));
    assert_eq!(
        draw(&round).unwrap_err().to_string(),
        "the steps form a cycle: s0 -> s1 -> s2"
    );
    let deep = (0..=GRAPH_DEPTH_MAX).fold(chain(1), |inner, at| Graph {
        nodes: vec![Node::around(format!("b{at}"), inner)],
        edges: Vec::new(),
    });
    assert_eq!(draw(&deep).unwrap_err(), Undrawable::Deep(GRAPH_DEPTH_MAX));
    assert_eq!(draw(&Graph::default()).unwrap(), Drawing::default());
}
