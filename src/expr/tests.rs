//! Expressions as their authors meet them: what they give, what is refused and how it is said.

use serde_json::{Value, json};

use super::{Fault, Profile, Program, Scope};
use crate::words::time::Millis;

const NAMES: &[&str] = &["input", "steps", "vars", "run", "item", "index", "now"];

fn scope() -> Scope {
    let mut scope = Scope::new();
    scope
        .set(
            "input",
            &json!({
                "name": "Ada", "count": 3, "ratio": 0.5, "big": u64::MAX, "none": null, "ok": true,
                "tags": ["b", "a", "c"], "a-b": 1,
                "orders": [{"id": 1, "lines": [{"price": 2}, {"price": 5}]}, {"id": 2, "lines": []}],
                "map": {"z": 1, "y": 2, "x": 3, "w": 4, "v": 5, "u": 6},
                "at": "2026-03-29T01:30:00+01:00", "umlaut": "Grüße",
            }),
        )
        .set(
            "steps",
            &json!({"greet": {"output": {"text": "hi", "code": 0}, "status": "succeeded", "error": null}}),
        )
        .set("run", &json!({"id": "r1", "attempt": 2}))
        .set_instant("run.started_at", Millis(1_767_225_600_000))
        .set_instant("now", Millis(1_767_229_200_500));
    scope
}

fn compile(text: &str) -> Result<Program, Fault> {
    Program::compile(text, Profile::Workflow, NAMES)
}

fn evaluate(text: &str) -> Result<Value, Fault> {
    compile(text)?.evaluate(&scope())
}

#[track_caller]
fn gives(text: &str, expected: &Value) {
    match evaluate(text) {
        Ok(value) => assert_eq!(&value, expected, "{text}"),
        Err(fault) => panic!("{text}: {fault:?}"),
    }
}

#[test]
fn constants_and_paths() {
    gives("\"hello\"", &json!("hello"));
    gives("1", &json!(1));
    gives("-5", &json!(-5));
    gives("1u", &json!(1));
    gives("1.5", &json!(1.5));
    gives("true", &json!(true));
    gives("null", &json!(null));
    gives("b'hi'", &json!("aGk="));
    gives("input.name", &json!("Ada"));
    gives("input", scope().plain(&["input".to_owned()]).unwrap());
    gives("input.big", &json!(u64::MAX));
    gives("input.none", &json!(null));
    gives("input[\"a-b\"]", &json!(1));
    gives("steps.greet.output.text", &json!("hi"));
    gives("steps[\"greet\"].output.code", &json!(0));
    gives("run.attempt", &json!(2));
    gives(
        "{\"a\": input.count, 'b': [input.name, 1.0], 3: true}",
        &json!({"a": 3, "b": ["Ada", 1.0], "3": true}),
    );
}

#[test]
fn operators_and_functions() {
    gives("input.count * 2 + 1", &json!(7));
    gives("input.ratio * 3.0", &json!(1.5));
    gives("double(input.count) / 2.0", &json!(1.5));
    gives("input.name + \"!\"", &json!("Ada!"));
    gives("input.tags + ['d']", &json!(["b", "a", "c", "d"]));
    gives(
        "input.count == 3.0 && input.count != 4 && 3 in [1, 2, 3]",
        &json!(true),
    );
    gives(
        "'b' in input.tags && 'z' in input.map && !('q' in input.map)",
        &json!(true),
    );
    gives("input.count > 2 ? 'many' : 'few'", &json!("many"));
    gives("has(input.name) && !has(input.nobody)", &json!(true));
    gives(
        "size(input.name) + input.tags.size() + size(input.map)",
        &json!(12),
    );
    gives("input.umlaut.size()", &json!(5));
    gives(
        "input.name.startsWith('A') && input.name.contains('d') && input.name.endsWith('a')",
        &json!(true),
    );
    gives("input.name.matches('^A[a-z]+$')", &json!(true));
    gives("matches(input.name, 'x') || re(input.name, 'd')", &json!(true));
}

#[test]
fn functions_of_texts_lists_and_numbers() {
    gives("'a,b,,c'.split(',')", &json!(["a", "b", "", "c"]));
    gives("'a,b,c'.split(',', 2)", &json!(["a", "b,c"]));
    gives("'aüc'.split('')", &json!(["a", "ü", "c"]));
    gives("'aüc'.split('', 2)", &json!(["a", "üc"]));
    gives("'abc'.split('', 0)", &json!([]));
    gives("input.tags.join('-') + input.tags.join()", &json!("b-a-cbac"));
    gives("'banana'.replace('an', '<>')", &json!("b<><>a"));
    gives("'banana'.replace('a', 'o', 2)", &json!("bonona"));
    gives("'banana'.replace('a', 'o', -1)", &json!("bonono"));
    gives("input.umlaut.indexOf('ß')", &json!(3));
    gives("'banana'.indexOf('an', 2)", &json!(3));
    gives("'banana'.lastIndexOf('an')", &json!(3));
    gives("'banana'.lastIndexOf('an', 2)", &json!(1));
    gives("'banana'.indexOf('x')", &json!(-1));
    gives(
        "'aBc'.upperAscii() + 'aBc'.lowerAscii() + ' x '.trim()",
        &json!("ABCabcx"),
    );
    gives("input.umlaut.substring(2, 4) + 'abc'.charAt(1)", &json!("üßb"));
    gives(
        "'%s has %d and %.2f'.format([input.name, input.count, input.ratio])",
        &json!("Ada has 3 and 0.50"),
    );
    gives("strings.quote('a\"b')", &json!("\"a\\\"b\""));
    gives(
        "base64.encode(b'hi') + string(base64.decode('aGk='))",
        &json!("aGk=hi"),
    );
    gives(
        "math.greatest(1, 5, 3) + math.least(4, 2) + math.abs(-3)",
        &json!(10),
    );
    gives("math.ceil(1.2)", &json!(2.0));
    gives("[3, 1, 2].sort()", &json!([1, 2, 3]));
    gives(
        "[1, 2, 1].distinct() + [[4], [5]].flatten() + [1, 2].reverse()",
        &json!([1, 2, 4, 5, 2, 1]),
    );
    gives("[1, 2, 3, 4].slice(1, 3)", &json!([2, 3]));
    gives("lists.range(3)", &json!([0, 1, 2]));
    gives("type(input.count) == int && type('') == string", &json!(true));
    gives("type(1)", &json!("int"));
    gives(
        "string(input.count) + string(1.5) + string(true)",
        &json!("31.5true"),
    );
    gives("int('42') + int(3.9)", &json!(45));
}

#[test]
fn loops_and_optionals() {
    gives("input.tags.map(t, t + '!')", &json!(["b!", "a!", "c!"]));
    gives(
        "input.orders.filter(o, size(o.lines) > 0).map(o, o.id)",
        &json!([1]),
    );
    gives(
        "input.orders.map(o, o.lines.map(l, l.price * 2))",
        &json!([[4, 10], []]),
    );
    gives("input.orders.map(o, size(o.lines) > 0, o.id)", &json!([1]));
    gives(
        "input.tags.all(t, t.size() == 1) && input.tags.exists(t, t == 'c')",
        &json!(true),
    );
    gives("input.tags.exists_one(t, t == 'c')", &json!(true));
    gives("input.tags.sortBy(t, t)", &json!(["a", "b", "c"]));
    gives(
        "input.orders.sortBy(o, size(o.lines)).map(o, o.id)",
        &json!([2, 1]),
    );
    gives(
        "input.?name.orValue('x') + input.?nobody.orValue('y')",
        &json!("Aday"),
    );
    gives("input.?nobody.?deeper.orValue(7)", &json!(7));
    gives("input[?'a-b'].hasValue()", &json!(true));
    gives("input.tags[?9].orValue('none')", &json!("none"));
    gives("input.?nobody", &json!(null));
    gives("optional.of(input.count).optMap(c, c + 1).value()", &json!(4));
    gives("[?input.?name, ?input.?nobody]", &json!(["Ada"]));
    gives("{?'n': input.?name, ?'m': input.?nobody}", &json!({"n": "Ada"}));
    gives("[optional.of({'a': 1})].map(o, o.a.value())", &json!([1]));
    gives("input.tags[0] + input.tags[input.count - 1]", &json!("bc"));
    // A variable of a loop may have the name of something outside of it.
    gives("input.orders.map(input, input.id)", &json!([1, 2]));
}

#[test]
fn a_map_is_gone_through_in_the_order_of_its_keys() {
    for _ in 0..20 {
        gives("input.map.map(k, k)", &json!(["u", "v", "w", "x", "y", "z"]));
        gives("{2: '', 10: '', 1: ''}.map(k, k)", &json!([1, 2, 10]));
    }
}

#[test]
fn instants_and_durations() {
    gives("now", &json!("2026-01-01T01:00:00.5Z"));
    gives("run.started_at", &json!("2026-01-01T00:00:00Z"));
    gives("run.started_at + duration('90m')", &json!("2026-01-01T01:30:00Z"));
    gives("now - run.started_at", &json!("3600.5s"));
    gives("duration('1500ms')", &json!("1.5s"));
    gives("timestamp(input.at) < now", &json!(false));
    gives("timestamp(input.at)", &json!("2026-03-29T00:30:00Z"));
    gives(
        "now.getHours('Europe/Berlin') + now.getMilliseconds()",
        &json!(502),
    );
    gives("run.id + string(run.attempt)", &json!("r12"));
    let instant = |text: &str| compile(text).unwrap().evaluate_instant(&scope());
    assert_eq!(
        instant("run.started_at + duration('1s')"),
        Ok(Millis(1_767_225_601_000))
    );
    assert_eq!(instant("input.at"), Ok(Millis(1_774_744_200_000)));
    assert_eq!(instant("input.name").unwrap_err().code, "expr.result_type");
    assert_eq!(instant("now"), Ok(Millis(1_767_229_200_500)));
}

#[test]
fn only_bool_is_bool() {
    let truth = |text: &str| compile(text).unwrap().evaluate_bool(&scope());
    assert_eq!(truth("input.ok"), Ok(true));
    assert_eq!(truth("input.count > 5"), Ok(false));
    let fault = truth("input.count").unwrap_err();
    assert_eq!(fault.code, "expr.result_type");
    assert_eq!(
        fault.message,
        "the expression gives a number, and true or false is needed"
    );
}

#[test]
fn references_are_constant_paths() {
    let check = |text: &str, expected: &[&str]| {
        let program = compile(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
        let found: Vec<String> = program.references().iter().map(|path| path.join(".")).collect();
        assert_eq!(found, expected, "{text}");
    };
    check("steps.greet.output.x", &["steps.greet.output.x"]);
    check("steps[\"greet\"].output", &["steps.greet.output"]);
    check("steps[input.a].output", &["steps", "input.a"]);
    check("steps.a.output[0].x", &["steps.a.output"]);
    check(
        "steps.?a.?output.orValue(input.b)",
        &["steps.a.output", "input.b"],
    );
    check("has(steps.a.output) && steps.a.output == 1", &["steps.a.output"]);
    check(
        "steps.a.output.map(x, x.y + vars.z)",
        &["steps.a.output", "vars.z"],
    );
    check("input.list.map(steps, steps.a)", &["input.list"]);
    check(
        "[input.a].filter(a, a == item.a).exists(b, b.c)",
        &["input.a", "item.a"],
    );
    check("size(input.a) + math.abs(input.b)", &["input.a", "input.b"]);
    check("type(input.a) == int", &["input.a"]);
    check("'hello'", &[]);
    check("input.tags.sortBy(t, t + input.x)", &["input.tags", "input.x"]);
    check("input.a.optMap(x, x + input.b)", &["input.a", "input.b"]);
}

#[track_caller]
fn refused(text: &str, code: &str, message: &str, position: Option<usize>) {
    let fault = compile(text).expect_err(text);
    assert_eq!(
        (fault.code, fault.message.as_str(), fault.position),
        (code, message, position),
        "{text}"
    );
}

#[test]
fn what_is_refused_says_what_and_where() {
    refused(
        "inptu.name",
        "expr.unknown_reference",
        "there is no `inptu` here; did you mean `input`?",
        Some(0),
    );
    refused(
        "input.name + secret",
        "expr.unknown_reference",
        "there is no `secret` here; there is input, steps, vars, run, item, index, now",
        Some(13),
    );
    refused(
        "steps.my-step.output",
        "expr.unknown_reference",
        "there is no `step` here; did you mean `steps`?",
        Some(9),
    );
    refused(
        "steps.get-user.output",
        "expr.unknown_reference",
        "there is no `user` here; a name with a dash is written in brackets: steps[\"my-step\"].output",
        Some(10),
    );
    refused(
        "input.ok == True",
        "expr.unknown_reference",
        "there is no `True` here; did you mean `true`?",
        Some(12),
    );
}

#[test]
fn an_unknown_function_is_told_with_what_exists() {
    refused(
        "input.name.startWith('A')",
        "expr.unknown_reference",
        "there is no function `startWith`; did you mean `startsWith`?",
        Some(20),
    );
    refused(
        "len(input.tags)",
        "expr.unknown_reference",
        "there is no function `len`",
        Some(3),
    );
    refused(
        "input.tags.filter(t)",
        "expr.unknown_reference",
        "`filter` is written list.filter(x, condition)",
        Some(17),
    );
    refused(
        "contains(input.tags, 1)",
        "expr.unknown_reference",
        "`contains` is written x.contains(a)",
        Some(8),
    );
    refused(
        "math.power(2, 3)",
        "expr.unknown_reference",
        "there is no function `math.power`",
        Some(10),
    );
    refused(
        "duration('1s').getMillis()",
        "expr.unknown_reference",
        "there is no function `getMillis`",
        Some(24),
    );
    refused(
        "pkg.Message{a: 1}",
        "expr.struct_literal",
        "`pkg.Message{…}` would make a message, which expressions cannot; write {\"field\": value}",
        Some(11),
    );
}

#[test]
fn mistakes_of_the_text_are_told_in_our_words() {
    let check =
        |text: &str, message: &str, position: usize| refused(text, "expr.syntax", message, Some(position));
    check("", "the expression is empty", 0);
    check(
        "1 +",
        "the expression cannot be read at column 4: it ends too early",
        3,
    );
    check(
        "(1 + 2",
        "the expression cannot be read at column 7: it ends too early",
        6,
    );
    check(
        "a b",
        "the expression cannot be read at column 3: `b` does not belong here",
        2,
    );
    check(
        "input.ok and input.ok",
        "the expression cannot be read at column 10: `and` is written `&&`",
        9,
    );
    check(
        "input.count = 3",
        "the expression cannot be read at column 13: `=` is written `==`",
        12,
    );
    check(
        "input.umlaut == 'ü' = 3",
        "the expression cannot be read at column 21: `=` is written `==`",
        21,
    );
    check(
        "input.ok\n  && )",
        "the expression cannot be read at line 2, column 6: `)` does not belong here",
        14,
    );
    check(
        "'open",
        "the expression cannot be read at column 1: 'open does not belong here, or its quote is not closed",
        0,
    );
    check(
        "input.tags.map(1, 2)",
        "the expression cannot be read at column 16: argument must be a simple name",
        15,
    );
    check(
        "for.x",
        "the expression cannot be read at column 1: `for` is a reserved word; write [\"for\"] to read a field of that name",
        0,
    );
}

#[test]
fn what_fails_says_why() {
    let check = |text: &str, message: &str| {
        let fault = evaluate(text).expect_err(text);
        assert_eq!(
            (fault.code, fault.message.as_str()),
            ("expr.evaluation", message),
            "{text}"
        );
    };
    let missing = |field: &str| {
        format!(
            "there is no field `{field}`; where one may be missing, ask with has(…), or read it as .?field.orValue(…)"
        )
    };
    check("input.nobody", &missing("nobody"));
    check("steps.later.output", &missing("later"));
    check("input.name.first", "`.` does not work with (string, string)");
    check("input.none.x", "`.` does not work with (null, string)");
    check("vars.x", "there is no `vars` here yet");
    check("input.count + 'x'", "`+` does not work with (int, string)");
    check("input.count * 1.5", "`*` does not work with (int, double)");
    check("1 / (input.count - 3)", "division by zero");
    check("1 % (input.count - 3)", "division by zero");
    check(
        "9223372036854775807 + input.count",
        "the result of `+` is too large for its type",
    );
    check("input.tags[7]", "the list has no element 7");
    check("input.tags['x']", "`[]` does not work with (list, string)");
    check("input.name < 3", "`<` does not work with (string, int)");
    check("input.name && true", "`&&` does not work with (string, bool)");
    check("{'a': 1, 'a': 2}", "the key \"a\" stands twice in a map");
    check(
        "int('x')",
        "int: string parse error: invalid digit found in string",
    );
    check("timestamp('yesterday')", "timestamp: premature end of input");
    check(
        "duration('1s').getMilliseconds()",
        "`getMilliseconds` does not work with (duration)",
    );
    check(
        "[1, 'a'].join()",
        "join: joins texts, and the list has an element of type int",
    );
    check("input.name.size", "`.` does not work with (string, string)");
    let fault = evaluate("0.0 / 0.0").unwrap_err();
    assert_eq!(fault.code, "expr.result_type");
    assert_eq!(
        fault.message,
        "the result has a number that JSON does not know (NaN)"
    );
}

/// `docs/expressions.md`: its data, and each line of its examples.
#[test]
fn the_page_for_users_is_true() {
    let page = include_str!("../../docs/expressions.md");
    let mut blocks = page.split("```").skip(1).step_by(2);
    let data = blocks
        .next()
        .and_then(|block| block.strip_prefix("json"))
        .expect("the data comes first");
    let data: serde_json::Map<String, Value> = serde_json::from_str(data).expect("the data is JSON");
    let mut scope = Scope::new();
    for (name, value) in &data {
        scope.set(name, value);
    }
    let names: Vec<&str> = data.keys().map(String::as_str).collect();
    let run = |text: &str| Program::compile(text, Profile::Workflow, &names)?.evaluate(&scope);
    let mut lines = 0;
    for block in blocks {
        let examples = block.strip_prefix("cel\n").expect("a block has examples");
        for line in examples.lines() {
            lines += 1;
            if let Some((text, expected)) = line.split_once(" => ") {
                let expected: Value = serde_json::from_str(expected).expect(line);
                assert_eq!(run(text.trim()), Ok(expected), "{line}");
            } else {
                let (text, expected) = line.split_once(" !! ").expect("an example has a result");
                let fault = run(text.trim()).expect_err(line);
                assert_eq!(format!("{}: {}", fault.code, fault.message), expected, "{line}");
            }
        }
    }
    assert!(lines > 40, "{lines}");
}

#[test]
fn a_rule_has_its_own_codes_and_limits() {
    let rule = |text: &str| Program::compile(text, Profile::Rule, &["work", "recipient"]);
    let code = |text: &str| rule(text).expect_err(text).code;
    assert_eq!(code("wokr.kind"), "rule.unknown_reference");
    assert_eq!(code("1 +"), "rule.syntax");
    assert!(rule("work.tags.exists(t, recipient.tags.exists(r, r == t))").is_ok());
    assert_eq!(
        code("work.attributes.a.exists(t, recipient.tags.exists(r, r == t))"),
        "rule.too_costly"
    );
    let mut scope = Scope::new();
    scope.set("work", &json!({"tags": vec!["x"; 257]}));
    let fault = rule("work.tags.all(t, t == 'x')")
        .unwrap()
        .evaluate_bool(&scope)
        .unwrap_err();
    assert_eq!(fault.code, "rule.too_costly");
    assert_eq!(
        fault.message,
        "a loop goes over 257 elements, and 256 are allowed; compute this in a step"
    );
}

#[test]
fn what_was_compiled_is_remembered() {
    let first = compile("input.count + 100").unwrap();
    let again = compile("input.count + 100").unwrap();
    assert!(first.is(&again), "the second came from the cache");
    assert_eq!(first, again);
    let elsewhere = Program::compile("input.count + 100", Profile::Rule, NAMES).unwrap();
    assert_ne!(first, elsewhere);
    assert_eq!(format!("{first:?}"), "Program(\"input.count + 100\")");
}
