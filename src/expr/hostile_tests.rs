//! Expressions that are meant to harm: each is refused or ends soon, and none takes the process with it.

use std::fmt::Write as _;
use std::thread;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Fault, Profile, Program, Scope};
use crate::words::time::{Clock, SystemClock};

/// The stack of a worker thread.
const WORKER_STACK_BYTES: usize = 2 << 20;

/// Runs `work` on a thread with the stack of a worker.
fn on_worker<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(WORKER_STACK_BYTES);
        builder.spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

fn compile(text: &str) -> Result<Program, Fault> {
    Program::compile(text, Profile::Workflow, &["input", "a", "x"])
}

/// What expressions meet: long lists, long texts, deep and wide values.
fn large() -> Scope {
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!({"d": [deep]});
    }
    let rows: Vec<Value> = (0..10_000)
        .map(|number| json!({"id": number, "name": format!("row {number}")}))
        .collect();
    let mut scope = Scope::new();
    scope.set(
        "input",
        &json!({
            "rows": rows, "numbers": (0..10_000).collect::<Vec<_>>(), "text": "a".repeat(1 << 20),
            "pairs": vec![vec![1, 2]; 5_000], "deep": deep, "long": vec![0; 20_000],
            "words": vec!["word".repeat(1_000); 5_000], "key": "k",
        }),
    );
    scope
}

#[test]
fn hostile_expressions() {
    let many = |part: &str, joint: &str, count: usize| vec![part; count].join(joint);
    let refused: &[(&str, String)] = &[
        ("expr.too_long", "a".repeat(5_000)),
        ("expr.too_long", "(".repeat(1 << 20)),
        ("expr.too_large", many("a", "+", 1_390)),
        ("expr.too_large", many("a", ".", 1_390)),
        ("expr.too_large", format!("x{}", "[0]".repeat(1_300))),
        ("expr.too_large", many("1", ",", 2_000)),
        ("expr.too_deep", many("a", "+", 200)),
        ("expr.too_deep", format!("x{}", ".f".repeat(300))),
        ("expr.too_deep", format!("x{}", "[0]".repeat(300))),
        ("expr.too_deep", format!("x{}", ".trim()".repeat(100))),
        ("expr.too_deep", format!("{}1{}", "[".repeat(70), "]".repeat(70))),
        ("expr.syntax", "(".repeat(4_000)),
        (
            "expr.syntax",
            format!("{}1{}", "(".repeat(1_000), ")".repeat(1_000)),
        ),
        ("expr.syntax", "[".repeat(4_000)),
        ("expr.syntax", "{".repeat(4_000)),
        ("expr.syntax", "a?b:".repeat(400)),
        ("expr.syntax", "!".repeat(4_000)),
        ("expr.syntax", "-".repeat(4_000)),
        ("expr.too_large", "'".repeat(4_095)),
        ("expr.syntax", "\\".repeat(4_000)),
        ("expr.syntax", "a\u{0}".to_owned()),
        ("expr.syntax", ")".repeat(4_000)),
        ("expr.syntax", "@result".to_owned()),
        ("expr.unknown_reference", "x.@copied(1)".replace('@', "_")),
        ("expr.too_many_loops", many("[1].all(v, v)", "&&", 5)),
        (
            "expr.loops_too_nested",
            "[1].map(b, [1].map(c, [1].map(d, d)))".to_owned(),
        ),
        (
            "expr.loops_too_nested",
            "x.map(b, b).map(b, b).map(b, b)".to_owned(),
        ),
        (
            "expr.too_costly",
            "lists.range(1000).map(b, lists.range(1000).map(c, c))".to_owned(),
        ),
        ("expr.pattern", "matches(a, x)".to_owned()),
        ("expr.pattern", "[a].exists(v, v.matches('x'))".to_owned()),
        ("expr.pattern", format!("a.matches('{}')", "x".repeat(257))),
        ("expr.pattern", "a.matches('(((x{90}){90}){90}){90}')".to_owned()),
        ("expr.pattern", "a.matches('(unclosed')".to_owned()),
        ("expr.pattern", "a.matches('(?=look)')".to_owned()),
        ("expr.struct_literal", "google.protobuf.Any{}".to_owned()),
    ];
    on_worker(|| {
        for (code, text) in refused {
            let fault = compile(text).map(|_| ()).expect_err(text);
            assert_eq!(fault.code, *code, "{} {fault:?}", &text[..text.len().min(60)]);
            assert!(fault.message.len() < 1_000);
        }
    });
}

/// What fails while it is evaluated, each with its code.
const FAILING: &[(&str, &str)] = &[
    ("expr.evaluation", "input.text.matches('a+b')"),
    ("expr.evaluation", "input.rows[0.5]"),
    ("expr.evaluation", "input.numbers.all(v, input.rows[0.5] == 1)"),
    ("expr.evaluation", "lists.range(100000000)"),
    ("expr.evaluation", "lists.range(-1)"),
    ("expr.evaluation", "'%.999999999f'.format([1.0])"),
    ("expr.evaluation", "-9223372036854775808 / -1"),
    ("expr.evaluation", "-9223372036854775808 % -1"),
    ("expr.evaluation", "-(-9223372036854775808)"),
    ("expr.evaluation", "9223372036854775807 * 9223372036854775807"),
    ("expr.evaluation", "0u - 1u"),
    ("expr.evaluation", "int(1e300)"),
    ("expr.evaluation", "math.abs(-9223372036854775808)"),
    ("expr.evaluation", "math.bitShiftLeft(1, -1)"),
    (
        "expr.evaluation",
        "timestamp('9999-12-31T23:59:59Z') + duration('1000000h')",
    ),
    ("expr.evaluation", "duration('99999999999999999h')"),
    ("expr.evaluation", "'abc'.substring(-1)"),
    ("expr.evaluation", "'abc'.indexOf('a', 99)"),
    ("expr.evaluation", "[1, 2].slice(2, 1)"),
    (
        "expr.evaluation",
        "timestamp('2026-01-01T00:00:00Z').getHours('Nowhere/Land')",
    ),
    ("expr.evaluation", "base64.decode('***')"),
    ("expr.result_type", "[[input.deep]]"),
    ("expr.result_type", "1.0 / 0.0"),
];

#[test]
fn hostile_evaluations() {
    let repeated = |part: &str, count: usize| vec![part; count].join(", ");
    let costly: &[String] = &[
        "input.long.map(v, v)".to_owned(),
        "input.numbers.map(v, input.numbers.map(w, v + w))".to_owned(),
        "input.numbers.all(v, input.numbers.exists(w, v == w))".to_owned(),
        // What is too costly is told, although `||` swallows errors.
        "input.numbers.all(v, input.numbers.exists(w, v == w)) || true".to_owned(),
        "input.long.all(v, v == 0) || true".to_owned(),
        "[input.text].map(t, t + t + t + t).map(t, t + t + t + t + t + t + t + t + t + t + t + t + t + t)".to_owned(),
        format!("input.numbers.map(v, [{}])", repeated("input.words", 200)),
        format!("[{}]", repeated("input.rows", 300)),
        "input.numbers.map(v, input.text)".to_owned(),
        "input.words.join(input.text)".to_owned(),
        "input.text.replace('', input.text)".to_owned(),
        "input.text.replace('a', 'b' + input.text)".to_owned(),
        "input.text.split('')".to_owned(),
        "input.rows.distinct()".to_owned(),
        "input.numbers.map(v, input.numbers.sort())".to_owned(),
        "input.numbers.all(v, (input.rows - 1 == 2) || true)".to_owned(),
        "input.numbers.all(v, (input.rows < 1) || true)".to_owned(),
        "input.numbers.all(v, input.text == input.text + 'b' || true)".to_owned(),
        "input.numbers.all(v, input.rows in [input.rows] || true)".to_owned(),
        "input.numbers.all(v, input.?rows.hasValue())".to_owned(),
        "input.numbers.all(v, input.text.contains('b') || true)".to_owned(),
        "input.numbers.all(v, input.text.indexOf('b') < 0)".to_owned(),
        "input.numbers.all(v, lists.range(10000).size() > 0)".to_owned(),
        "input.numbers.all(v, optional.of(input.rows).hasValue())".to_owned(),
        "[optional.of(input.rows)].map(o, input.numbers.all(v, o[0].hasValue()))".to_owned(),
        "optional.of(input.text).optMap(b, b + b).optMap(c, c + c).optMap(d, d + d).optMap(e, e + e).optMap(f, f + f)\
         .optMap(g, g + g).optMap(h, h + h)"
            .to_owned(),
    ];
    let scope = large();
    on_worker(|| {
        let began = SystemClock.now().boot;
        for text in costly {
            let program = compile(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
            let fault = program.evaluate(&scope).map(|_| ()).expect_err(text);
            assert_eq!(fault.code, "expr.too_costly", "{text}: {fault:?}");
        }
        for (code, text) in FAILING {
            let program = compile(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
            let fault = program.evaluate(&scope).map(|_| ()).expect_err(text);
            assert_eq!(fault.code, *code, "{text}: {fault:?}");
        }
        let took = began.until(SystemClock.now().boot);
        assert!(
            took < 30_000,
            "each ends within a second or two, unoptimised: {took} ms for all"
        );
    });
}

#[test]
fn what_is_large_and_honest_is_evaluated() {
    let scope = large();
    let check = |text: &str, expected: Value| {
        let program = compile(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
        assert_eq!(program.evaluate(&scope), Ok(expected), "{text}");
    };
    on_worker(|| {
        check(
            "input.rows.filter(r, r.id % 2 == 0).map(r, r.id).size()",
            json!(5_000),
        );
        check(
            "input.rows.map(r, {'id': r.id, 'label': r.name + '!'}).size()",
            json!(10_000),
        );
        check("input.words.filter(w, w.startsWith('word')).size()", json!(5_000));
        check("size(input.words.join(',')) ", json!(20_004_999));
        check("input.numbers.sort()[9999]", json!(9_999));
        check("[1, 2] in input.pairs && input.pairs[0] == [1, 2]", json!(true));
        check(
            "input.text.size() + input.text.lastIndexOf('a')",
            json!(2_097_151),
        );
        check(
            "has(input.deep.d) && size(string(input.rows[9999].id)) == 4",
            json!(true),
        );
    });
}

/// The deepest trees that are admitted, on the stack of a worker: after the rewriting they are deeper than before.
#[test]
fn the_deepest_admitted_expressions_fit_a_worker() {
    let mut texts = vec![
        vec!["input.key"; 60].join(" + "),
        vec!["input.key == 'k'"; 60].join(" && "),
        format!("input.key{}", ".trim()".repeat(61)),
        format!("{}1{}", "[".repeat(63), "]".repeat(63)),
        format!("{}1{}", "{'a': ".repeat(63), "}".repeat(63)),
        format!("{}input.key{}", "string(".repeat(61), ")".repeat(61)),
        format!("{}2", "false ? 1 : ".repeat(60)),
    ];
    let mut chain = String::from("input.rows");
    for _ in 0..2 {
        write!(chain, ".map(r, {}r.id{})", "[".repeat(25), "]".repeat(25)).unwrap();
    }
    texts.push(chain.replacen("r.id", "r", 2).replace("input.rows", "[1]"));
    on_worker(|| {
        for text in &texts {
            let program = compile(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
            if let Err(fault) = program.evaluate(&large()) {
                assert_ne!(fault.code, "expr.evaluation", "{text}: {fault:?}");
            }
        }
    });
}

/// This test names its reason: without the profile for `cel` and `antlr4rust` in Cargo.toml the parser's frames are so
/// large that it overflows the stack here.
#[test]
fn ninety_parentheses_on_two_mebibytes() {
    let text = format!("{}1{}", "(".repeat(90), ")".repeat(90));
    let parsed = on_worker(|| super::functions::ENVIRONMENT.parser().parse(&text).is_ok());
    assert!(parsed);
    assert_eq!(compile(&text).unwrap().evaluate(&Scope::new()), Ok(json!(1)));
}

/// Pieces of which soups are made: they fit together often enough to be parsed.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "input",
        "a",
        "x",
        ".",
        ".",
        "?",
        ":",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "<",
        "&&",
        "||",
        "!",
        "1",
        "2u",
        "0.5",
        "'t'",
        "\"é\"",
        "b'\\xff'",
        "r'\\'",
        "'''q'''",
        "null",
        "true",
        " in ",
        ".?",
        "[?",
        ".map(v, v)",
        ".filter(v, v)",
        ".all(v, v == 1)",
        "has(input.x)",
        ".size()",
        "size(",
        ".matches('a')",
        "//",
        "lists.range(9)",
        ".join(',')",
        "optional.of(",
        ".orValue(1)",
        "timestamp('2026-01-01T00:00:00Z')",
        "duration('1h')",
        "\n",
        "9223372036854775807",
        "1e308",
        ".sortBy(v, v)",
        "math.greatest(",
        ".optMap(v, v)",
        "\\u",
        "`x`",
        "@",
        "ü",
    ]);
    prop_oneof![20 => fixed.prop_map(str::to_owned), 1 => "\\PC{0,6}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_soup_of_tokens_never_panics(pieces in prop::collection::vec(piece(), 0..24)) {
        let text = pieces.concat();
        let mut scope = Scope::new();
        scope.set("input", &json!({"x": [1, 2], "t": "é"})).set("a", &json!(3)).set("x", &json!({"y": null}));
        for profile in [Profile::Rule, Profile::Workflow] {
            match Program::compile(&text, profile, &["input", "a", "x"]) {
                Ok(program) => {
                    let first = program.evaluate(&scope);
                    prop_assert_eq!(&first, &program.evaluate(&scope));
                    if let Err(fault) = first {
                        prop_assert!(!fault.message.contains("unexpectedly"), "{} {:?}", text, fault);
                    }
                }
                Err(fault) => {
                    prop_assert!(!fault.message.is_empty());
                    prop_assert!(fault.position.is_none_or(|at| text.is_char_boundary(at)), "{:?}", fault);
                }
            }
        }
    }

    #[test]
    fn what_goes_in_comes_out(text in "\\PC{0,20}", number in any::<i64>(), real in any::<f64>(), truth in any::<bool>()) {
        prop_assume!(real.is_finite());
        let value = json!({"t": text, "n": number, "r": real, "b": [truth, null, {"k": [text]}]});
        let mut scope = Scope::new();
        scope.set("input", &value);
        prop_assert_eq!(compile("input").unwrap().evaluate(&scope), Ok(value.clone()));
        prop_assert_eq!(compile("[input][0]").unwrap().evaluate(&scope), Ok(value.clone()));
        prop_assert_eq!(compile("[input].map(v, v)[0]").unwrap().evaluate(&scope), Ok(value));
    }
}
