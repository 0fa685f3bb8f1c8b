//! Rules that are tried: what is read, and what comes out.

use serde_json::{Value, json};

use super::sight::{Sight, Times, compile};
use super::trial::{Subject, Tried, judge, read, reads_recipient};
use crate::words::ids::WorkId;
use crate::words::time::Micros;

const NOW: Micros = Micros(1_764_000_000_000_000);

fn asked(body: &Value) -> Result<super::trial::Trial, Vec<(String, &'static str)>> {
    let fields = body.as_object().expect("an object");
    read(fields, NOW, WorkId([7; 16])).map_err(|faults| {
        faults
            .into_iter()
            .map(|fault| (fault.pointer, fault.code))
            .collect()
    })
}

#[test]
fn every_fault_of_a_trial_has_its_place() {
    let body = json!({"expression": "true", "rule_id": 7, "extra": 1, "cases": [
        {"work": {"kind": "t"}, "recipient": {"weight": -1, "state": "asleep", "capacity": {"current": "x"}}},
        {"recipient": "nobody", "expect": "yes"}, 5]});
    let told = asked(&body).unwrap_err();
    let expected = [
        ("/extra", "field.unknown"),
        ("/rule_id", "field.type"),
        ("/cases/0/recipient/capacity/current", "field.type"),
        ("/cases/0/recipient/state", "field.value"),
        ("/cases/0/recipient/weight", "field.range"),
        ("/cases/1/recipient", "recipient.not_found"),
        ("/cases/1/expect", "field.type"),
        ("/cases/1/work", "field.required"),
        ("/cases/2", "field.type"),
    ];
    assert_eq!(told, expected.map(|(at, code)| (at.to_owned(), code)));
    let none = asked(&json!({})).unwrap_err();
    assert_eq!(none.len(), 2, "{none:?}");
    let many = vec![json!({"work": {"kind": "t"}}); 101];
    let many = asked(&json!({"expression": "true", "cases": many})).unwrap_err();
    assert_eq!(many, [("/cases".to_owned(), "field.range")]);
}

#[test]
fn a_case_is_judged_as_a_decision_would() {
    let body = json!({"expression": "e", "cases": [{"work": {"kind": "t", "attributes": {"tags": [1, 2, 3]}}, "expect": true,
        "recipient": {"attributes": {"level": {"number_value": 3}}, "state": "RECIPIENT_STATE_BUSY",
            "capacity": {"current": 2, "max_concurrent": 4}}}]});
    let trial = asked(&body).unwrap();
    assert_eq!(trial.tried, Tried::Expression("e".to_owned()));
    let case = &trial.cases[0];
    let Subject::Given(somebody) = &case.recipient else {
        panic!("{case:?}")
    };
    let times = Times {
        now: NOW,
        waited_us: 0,
        attempt: 1,
    };
    let sight = Sight::of_work(&case.work, times, "default");
    let of = |text: &str| {
        let program = compile(text, true).map_err(|fault| fault.message);
        judge(&program, &sight, Some(somebody))
    };
    let plain = of("recipient.attributes.level >= 2.0 && recipient.current == 2");
    assert!(plain.result && plain.error.is_none() && plain.because.is_empty() && plain.steps > 0);
    let no = of("recipient.attributes.level >= 5.0");
    assert!(
        !no.result && no.because.contains("recipient.attributes.level"),
        "{no:?}"
    );
    let failed = of("work.attributes.nothing == 1");
    assert!(!failed.result && failed.error.is_some(), "{failed:?}");
    let looped = of("work.attributes.tags.all(x, x > 0)");
    let parts = compile("work.attributes.tags.all(x, x > 0)", true)
        .unwrap()
        .parts();
    assert_eq!((looped.result, looped.steps), (true, parts + 3));
    assert!(reads_recipient(&compile("recipient.weight > 1.0", true).unwrap()));
    assert!(!reads_recipient(&compile("work.priority > 1", true).unwrap()));
}
