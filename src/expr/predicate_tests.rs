//! Plain comparisons without the interpreter say what the interpreter says.

use serde_json::{Value, json};

use super::{Profile, Program, Scope};
use crate::words::chance::Chance;

const NAMES: &[&str] = &["work", "recipient", "now"];
const FIELDS: &[&str] = &["a", "b", "c", "list", "map", "gone"];
const TEXTS: &[&str] = &["x", "y", "", "xy"];

fn value(chance: &mut Chance, depth: u32) -> Value {
    match chance.below(if depth == 0 { 7 } else { 9 }) {
        0 => Value::Null,
        1 => json!(chance.one_in(2)),
        2 | 3 => json!(i64::try_from(chance.below(4)).unwrap() - 1),
        4 => json!([-0.0, 0.5, 1.0, 2.0, 1e300][usize::try_from(chance.below(5)).unwrap()]),
        5 => json!(u64::MAX - chance.below(2)),
        6 => json!(chance.pick(TEXTS).unwrap()),
        7 => (0..chance.below(4)).map(|_| value(chance, depth - 1)).collect(),
        _ => {
            let fields = (0..chance.below(4)).map(|_| {
                let name = (*chance.pick(FIELDS).unwrap()).to_owned();
                (name, value(chance, depth - 1))
            });
            Value::Object(fields.collect())
        }
    }
}

/// Most fields are of the kind that their name says.
fn attributes(chance: &mut Chance) -> Value {
    let mut fields = serde_json::Map::new();
    for name in ["a", "b", "c", "list", "map"] {
        let field = match name {
            _ if chance.one_in(12) => value(chance, 2),
            "a" => json!(chance.below(4)),
            "b" => json!(chance.pick(TEXTS).unwrap()),
            "c" => json!(chance.one_in(2)),
            "list" => (0..chance.below(4))
                .map(|_| json!(chance.pick(TEXTS).unwrap()))
                .collect(),
            _ => json!({"a": chance.below(4), "b": chance.pick(TEXTS).unwrap(), "x": null}),
        };
        if !chance.one_in(16) {
            fields.insert(name.to_owned(), field);
        }
    }
    if chance.one_in(20) {
        value(chance, 2)
    } else {
        Value::Object(fields)
    }
}

/// A comparison that fits the kinds of the fields, most of the time.
fn fitting(chance: &mut Chance) -> String {
    let root = chance.pick(&["work", "recipient"]).unwrap();
    let text = format!("{:?}", chance.pick(TEXTS).unwrap());
    let number = chance.below(4);
    match chance.below(8) {
        0 => format!("{root}.attributes.a {} {number}", operator(chance)),
        1 => format!("{root}.attributes.a {} {number}.5", operator(chance)),
        2 => format!("{root}.attributes.b {} {text}", operator(chance)),
        3 => format!("{root}.attributes.c"),
        4 => format!("{text} in {root}.attributes.list"),
        5 => format!("{root}.attributes.map.b in [{text}, \"y\"]"),
        6 => format!("has({root}.attributes.{})", chance.pick(FIELDS).unwrap()),
        _ => format!("{text} in {root}.attributes.map"),
    }
}

fn path(chance: &mut Chance) -> String {
    let root = chance.pick(&["work", "recipient"]).unwrap();
    let mut path = format!("{root}.attributes");
    for _ in 0..=chance.below(2) {
        let field = chance.pick(FIELDS).unwrap();
        path += &if chance.one_in(5) {
            format!("[\"{field}\"]")
        } else {
            format!(".{field}")
        };
    }
    path
}

fn literal(chance: &mut Chance) -> String {
    match chance.below(7) {
        0 => "null".to_owned(),
        1 => chance.one_in(2).to_string(),
        2 | 3 => (i64::try_from(chance.below(4)).unwrap() - 1).to_string(),
        4 => ["0.5", "1.0", "2.0", "-0.0"][usize::try_from(chance.below(4)).unwrap()].to_owned(),
        _ => format!("{:?}", chance.pick(TEXTS).unwrap()),
    }
}

fn rule(chance: &mut Chance, depth: u32) -> String {
    let leaf = depth == 0 || chance.one_in(3);
    if leaf && !chance.one_in(6) {
        return fitting(chance);
    }
    match if leaf {
        chance.below(7)
    } else {
        7 + chance.below(3)
    } {
        0 => path(chance),
        1 => format!("has({})", path(chance).replace("[\"", ".").replace("\"]", "")),
        2 => {
            let list: Vec<String> = (0..chance.below(4)).map(|_| literal(chance)).collect();
            format!("{} in [{}]", path(chance), list.join(", "))
        }
        3 => format!("{} in {}", literal(chance), path(chance)),
        4 => format!("{} in {}", path(chance), path(chance)),
        5 => format!("{} {} {}", literal(chance), operator(chance), path(chance)),
        6 => format!("{} {} {}", path(chance), operator(chance), literal(chance)),
        7 => format!("!({})", rule(chance, depth - 1)),
        8 => format!("({}) && ({})", rule(chance, depth - 1), rule(chance, depth - 1)),
        _ => format!("({}) || ({})", rule(chance, depth - 1), rule(chance, depth - 1)),
    }
}

fn operator(chance: &mut Chance) -> &'static str {
    chance.pick(&["==", "!=", "<", "<=", ">", ">="]).unwrap()
}

/// So many times the usual count: `DUCTOR_TIMES=100 cargo test --lib test_52` is the whole run of a million pairs.
fn times() -> usize {
    std::env::var("DUCTOR_TIMES").map_or(1, |text| text.parse().expect("DUCTOR_TIMES is a number"))
}

/// Test 52: the lowered predicate equals the interpreter on 10,000 random (rule, attributes) pairs, errors included.
#[test]
fn test_52_lowered_predicates_equal_the_interpreter() {
    let mut chance = Chance::new(52);
    let (mut decided, mut failed) = (0, 0);
    for _ in 0..1_000 * times() {
        let text = rule(&mut chance, 2);
        let Ok(program) = Program::compile(&text, Profile::Rule, NAMES) else {
            // Operators of two literals of another kind, or a path that only names a map, may be refused.
            continue;
        };
        assert!(program.is_lowered(), "{text}");
        for _ in 0..10 {
            let mut scope = Scope::new();
            for root in ["work", "recipient"] {
                scope.set(root, &json!({"attributes": attributes(&mut chance)}));
            }
            let whole = program.evaluate_bool(&scope);
            failed += usize::from(whole.is_err());
            if let Some(answer) = program.decide(&scope) {
                decided += 1;
                assert_eq!(Ok(answer), whole, "{text} over {scope:?}");
            }
        }
    }
    assert!(
        decided > 4_000 && failed > 1_000,
        "{decided} decided, {failed} failed"
    );
}

#[test]
fn what_is_usual_needs_no_interpreter() {
    let mut scope = Scope::new();
    scope
        .set(
            "work",
            &json!({"attributes": {"tier": "std", "langs": ["en", "es"], "n": 3, "vip": false}}),
        )
        .set(
            "recipient",
            &json!({"attributes": {"seniority": 3.0, "langs": ["en"]}}),
        );
    for (text, answer) in [
        ("work.attributes.tier == \"vip\"", false),
        ("recipient.attributes.seniority >= 2.0", true),
        ("recipient.attributes.seniority >= 2", true),
        ("work.attributes.n < 4.5", true),
        ("\"es\" in recipient.attributes.langs", false),
        ("work.attributes.tier in [\"std\", \"vip\"]", true),
        ("has(work.attributes.gone) && work.attributes.gone == 1", false),
        ("!has(work.attributes.gone) || work.attributes.gone == 1", true),
        ("!work.attributes.vip", true),
        ("work.attributes[\"tier\"] != \"vip\"", true),
    ] {
        let program = Program::compile(text, Profile::Rule, NAMES).unwrap();
        assert_eq!(program.decide(&scope), Some(answer), "{text}");
        assert_eq!(program.evaluate_bool(&scope), Ok(answer), "{text}");
    }
    for text in [
        "work.attributes.gone == 1",
        "work.attributes.tier < 1",
        "work.attributes.tier",
    ] {
        let program = Program::compile(text, Profile::Rule, NAMES).unwrap();
        assert_eq!(program.decide(&scope), None, "{text}");
    }
    for text in [
        "work.attributes.n + 1 == 4",
        "size(work.attributes.langs) == 2",
        "work.attributes.?n.hasValue()",
    ] {
        assert!(
            !Program::compile(text, Profile::Rule, NAMES).unwrap().is_lowered(),
            "{text}"
        );
    }
}

#[test]
fn what_decided_is_told_with_what_was_found() {
    let mut scope = Scope::new();
    scope.set(
        "work",
        &json!({"attributes": {"tier": "std", "n": 3, "vip": false}}),
    );
    let check = |text: &str, because: &str| {
        let program = Program::compile(text, Profile::Rule, NAMES).unwrap();
        assert_eq!(program.because(&scope).as_deref(), Some(because), "{text}");
    };
    check(
        "work.attributes.tier == \"vip\"",
        "work.attributes.tier == \"vip\" is false (tier = \"std\")",
    );
    check(
        "work.attributes.n == 3 && work.attributes.tier == \"vip\"",
        "work.attributes.tier == \"vip\" is false (tier = \"std\")",
    );
    check(
        "work.attributes.n > 5 || work.attributes.vip",
        "work.attributes.n > 5 is false (n = 3), and work.attributes.vip is false",
    );
    check(
        "!(work.attributes.n in [1, 3])",
        "work.attributes.n in [1, 3] is true (n = 3)",
    );
    check("has(work.attributes.gone)", "has(work.attributes.gone) is false");
}
