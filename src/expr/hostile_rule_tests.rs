//! Hostile rules: more than a hundred texts that the guard refuses without evaluating anything, on the stack of a worker.

use std::thread;

use super::{Profile, Program};

const NAMES: &[&str] = &["work", "pool", "hop", "tenant", "now", "recipient"];

/// Chains and nests that are too deep, too large or too long.
fn deep() -> Vec<String> {
    let mut texts = Vec::new();
    for count in [70, 100, 200, 400, 800, 1_386, 5_625] {
        texts.push(vec!["1"; count].join("+"));
        texts.push(vec!["now"; count].join("=="));
        texts.push(format!("work.attributes.x{}", "[0]".repeat(count)));
        texts.push(format!("work{}", ".a".repeat(count)));
        texts.push(format!("work.kind{}", ".size()".repeat(count)));
        texts.push(format!("{}1{}", "[".repeat(count), "]".repeat(count)));
    }
    for count in [1_000, 4_000, 100_000] {
        texts.push(format!("{}true{}", "(".repeat(count), ")".repeat(count)));
        texts.push("(".repeat(count));
    }
    texts.push(vec!["work.attributes.a"; 1_000].join(" && "));
    texts.push(format!("work.kind == '{}'", "a".repeat(5_000)));
    texts
}

/// Loops that would take too many turns.
fn loops() -> Vec<String> {
    let macros = ["all", "exists", "exists_one", "filter", "map"];
    let mut texts = Vec::new();
    for outer in macros {
        for inner in macros {
            texts.push(format!(
                "work.attributes.l.{outer}(a, work.attributes.l.{inner}(b, a == b) == a)"
            ));
        }
        texts.push(format!("[1].{outer}(a, [1].map(b, [1].map(c, c)) == a)"));
    }
    texts.push(["[1].exists(a, a == 1)"; 5].join(" && "));
    // Three loops inside each other over 200 elements, and a text that is doubled 24 times.
    let long = format!("[{}]", vec!["1"; 200].join(","));
    texts.push(format!(
        "{long}.all(a, {long}.all(b, {long}.all(c, a + b + c > 0)))"
    ));
    texts.push(format!(
        "{}['x']{} == []",
        "(".repeat(24),
        ".map(t, t + t))".repeat(24)
    ));
    texts.push((0..24).fold("'x'".to_owned(), |inner, _| format!("[{inner}].map(t, t + t)[0]")) + " == ''");
    texts
}

/// Patterns, messages, names and texts that are no expressions.
fn others() -> Vec<String> {
    let texts = [
        r"work.kind.matches('\\pL{20}{20}')",
        r"work.tags.exists(t, t.matches('\\pL{20}{20}'))",
        "work.kind.matches('x{1000}{1000}')",
        "work.kind.matches('(')",
        "work.kind.matches('[')",
        "work.kind.matches(work.source)",
        "work.tags.exists(t, t.matches('a'))",
        "google.protobuf.Duration{seconds: 1}",
        "candidate.attributes.a == 1",
        "system('reboot')",
        "env.HOME == ''",
        "__proto__ == 1",
        "work.kind.eval()",
        "",
        " ",
        "1 +",
        "&&",
        "work work",
        "${work.kind}",
        "{{work.kind}}",
        "work.kind == 'a",
        "work.kind === 'a'",
        "not work.done",
        "work.a and work.b",
        "if work.a",
        "work.a == 1; drop",
        "\u{0}",
    ];
    let mut texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    texts.push(format!("work.kind.matches('{}')", "a".repeat(300)));
    texts
}

#[test]
fn test_51_the_guard_refuses_hostile_rules_on_a_small_stack() {
    let texts: Vec<String> = [deep(), loops(), others()].concat();
    assert!(texts.len() > 100, "{}", texts.len());
    let judging = thread::Builder::new().stack_size(2 << 20).spawn(move || {
        for text in texts {
            let shown: String = text.chars().take(80).collect();
            match Program::compile(&text, Profile::Rule, NAMES) {
                Ok(_) => panic!("admitted: {shown}"),
                Err(fault) => assert!(fault.code.starts_with("rule."), "{} of {shown}", fault.code),
            }
        }
    });
    let judged = judging.expect("the system has a thread").join();
    assert!(judged.is_ok(), "a hostile rule was admitted, or ended the thread");
    // A wide chain that is honest is admitted.
    let wide = vec!["pool"; 400].join("||");
    assert!(Program::compile(&wide, Profile::Rule, NAMES).is_ok());
}

#[test]
fn test_51_an_unknown_variable_is_named() {
    let fault = Program::compile("candidate.weight > 1.0", Profile::Rule, NAMES).expect_err("it is unknown");
    assert_eq!((fault.code, fault.position), ("rule.unknown_reference", Some(0)));
    assert!(fault.message.contains("candidate"), "{}", fault.message);
}
