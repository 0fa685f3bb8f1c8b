//! How graphs look in a terminal.

use std::collections::BTreeMap;

use super::*;

const SUCCESS: &str = "EDGE_TYPE_SUCCESS";

fn graph(steps: &[&str], edges: &[(&str, &str, &str)]) -> Graph {
    Graph {
        nodes: steps.iter().map(|step| Node::step(*step)).collect(),
        edges: edges
            .iter()
            .map(|(from, to, kind)| Edge::new(*from, *to, *kind))
            .collect(),
    }
}

fn labels(of: &[(&str, char, &str, &str, &str)]) -> BTreeMap<String, Label> {
    let one = |&(key, mark, title, word, note): &(&str, char, &str, &str, &str)| {
        let label = Label {
            mark,
            title: title.to_owned(),
            word: word.to_owned(),
            note: note.to_owned(),
        };
        (key.to_owned(), label)
    };
    of.iter().map(one).collect()
}

fn shown(graph: &Graph, labels: &BTreeMap<String, Label>) -> String {
    plain(&text(&draw(graph).unwrap(), labels, 80))
}

#[test]
fn hello_world() {
    let graph = graph(&["greet", "pause"], &[("greet", "pause", SUCCESS)]);
    let labels = labels(&[
        ("greet", '✓', "Build greeting", "succeeded", ""),
        ("pause", '◷', "Short delay", "waiting", "until 12:00:02 UTC"),
    ]);
    insta::assert_snapshot!(shown(&graph, &labels), @r#"
    ✓ Build greeting  succeeded
    ◷ Short delay     waiting    until 12:00:02 UTC
    "#);
}

#[test]
fn a_fan_that_meets_again_and_a_way_out() {
    let graph = graph(
        &["extract", "eu", "us", "asia", "merge", "alarm", "publish"],
        &[
            ("extract", "eu", SUCCESS),
            ("extract", "us", SUCCESS),
            ("extract", "asia", SUCCESS),
            ("eu", "merge", SUCCESS),
            ("us", "merge", SUCCESS),
            ("asia", "merge", SUCCESS),
            ("us", "alarm", "EDGE_TYPE_FAILURE"),
            ("merge", "publish", SUCCESS),
        ],
    );
    let labels = labels(&[
        ("extract", '✓', "Extract orders", "succeeded", ""),
        ("eu", '✓', "Load the orders of Europe", "succeeded", ""),
        (
            "us",
            '✗',
            "Load the orders of the United States and everything near them",
            "failed",
            "exit code 3, attempt 2 of 2",
        ),
        ("asia", '●', "Load the orders of Asia", "running", ""),
        ("merge", '⊘', "Merge", "upstream failed", ""),
        ("alarm", '✓', "Call somebody", "succeeded", ""),
        ("publish", '⊘', "Publish", "upstream failed", ""),
    ]);
    insta::assert_snapshot!(shown(&graph, &labels), @r#"
    ✓     Extract orders                   succeeded
    ├─✓   Load the orders of Europe        succeeded
    ├─│─● Load the orders of Asia          running
    │ ├─╯
    ✗ │   Load the orders of the United …  failed           exit code 3, attempt 2 …
    ├─⊘   Merge                            upstream failed
    │ ⊘   Publish                          upstream failed
    ✓     Call somebody                    succeeded        if us fails
    "#);
}

#[test]
fn a_body_stands_beside_its_rails() {
    let mut outer = graph(
        &["list", "fan", "sum", "log"],
        &[
            ("list", "fan", SUCCESS),
            ("fan", "sum", SUCCESS),
            ("list", "log", "EDGE_TYPE_ALWAYS"),
        ],
    );
    outer.nodes[1].body = Some(graph(
        &["fan/get", "fan/check", "fan/put"],
        &[
            ("fan/get", "fan/check", SUCCESS),
            ("fan/get", "fan/put", SUCCESS),
            ("fan/check", "fan/put", "EDGE_TYPE_CONDITION"),
        ],
    ));
    let labels = labels(&[("fan", '●', "For each page", "running", "12 of 40 branches")]);
    insta::assert_snapshot!(shown(&outer, &labels), @r#"
    ○         list
    ├─●       For each page  running  12 of 40 branches
    │ │ ┆ ○   fan/get
    │ │ ┆ ├─○ fan/check
    │ │ ┆ ├─╯
    │ │ ┆ ○   fan/put                 if fan/check meets a condition
    │ ○       sum
    ○         log                     however list ends
    "#);
}

#[test]
fn rails_cross_without_touching() {
    let graph = graph(
        &["a", "b", "c", "d", "e", "f"],
        &[
            ("a", "d", SUCCESS),
            ("a", "e", SUCCESS),
            ("b", "d", SUCCESS),
            ("b", "f", SUCCESS),
            ("c", "e", SUCCESS),
            ("c", "f", SUCCESS),
            ("a", "f", SUCCESS),
        ],
    );
    insta::assert_snapshot!(shown(&graph, &BTreeMap::new()), @r#"
    ○     a
    │ ○   b
    ├─┼─○ d
    │ │
    │ │ ○ c
    ├─│─╯
    ├─│─○ e
    ├─╯
    ○     f
    "#);
}

#[test]
fn steps_that_nothing_joins_stand_apart() {
    let graph = graph(&["a", "b", "c", "d"], &[("a", "c", SUCCESS), ("a", "d", SUCCESS)]);
    insta::assert_snapshot!(shown(&graph, &BTreeMap::new()), @r#"
    ○   a
    ├─○ c
    ○   d

    ○   b
    "#);
}

#[test]
fn a_hundred_branches_need_two_rails() {
    let steps: Vec<String> = (0..102).map(|at| format!("s{at:03}")).collect();
    let nodes = steps.iter().map(Node::step).collect();
    let edges = (1..101)
        .flat_map(|at| {
            [
                Edge::new("s000", &steps[at], SUCCESS),
                Edge::new(&steps[at], "s101", SUCCESS),
            ]
        })
        .collect();
    let text = shown(&Graph { nodes, edges }, &BTreeMap::new());
    let rails = text
        .lines()
        .filter_map(|line| line.find('s').map(|at| line[..at].chars().count()));
    assert_eq!(rails.max(), Some(6), "{text}");
}

#[test]
fn titles_bring_nothing_into_the_terminal() {
    let graph = graph(&["a", "b"], &[("a", "b", SUCCESS)]);
    let labels = labels(&[
        ("a", '✓', "red \u{1b}[31m and\na bell \u{7}", "succeeded", ""),
        (
            "b",
            '✓',
            "長い題名のステップは半分の桁で切られます長い題名のステップは半分の桁で切られます",
            "succeeded",
            "",
        ),
    ]);
    insta::assert_snapshot!(shown(&graph, &labels), @r#"
    ✓ red �[31m and a bell �                                               succeeded
    ✓ 長い題名のステップは半分の桁で切られます長い題名のステップは半分の…  succeeded
    "#);
}
