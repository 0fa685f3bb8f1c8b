//! Slot pools and the jobs that use them.

use super::load_tests::{faults, good, job_faults, loaded, shown};

#[test]
fn pool_bounds() {
    for (body, expected) in [
        (
            "slots: 0",
            "3:12 pool slots must be between 1 and 10000 [allowed are 1 to 10000]",
        ),
        (
            "slots: 10001",
            "3:12 pool slots must be between 1 and 10000 [allowed are 1 to 10000]",
        ),
        (
            "slots: -1",
            "3:12 pool slots must be between 1 and 10000 [allowed are 1 to 10000]",
        ),
        (
            "slots: 99999999999999999999",
            "3:12 pool slots must be between 1 and 10000 [allowed are 1 to 10000]",
        ),
        (
            "slots: 2.5",
            "3:12 pool 'w': `slots` must be a whole number, not `2.5`",
        ),
        (
            "slots: '2'",
            "3:12 pool 'w': `slots` must be a whole number, not the text \"2\" [remove the quotes]",
        ),
        (
            "slots:",
            "3:5 pool 'w': `slots` must be a whole number, not nothing",
        ),
        (
            "slots: 1\n    maxQueued: 0",
            "4:16 pool maxQueued must be between 1 and 10000 [allowed are 1 to 10000]",
        ),
        ("maxQueued: 1", "2:3 pool 'w' needs `slots`"),
    ] {
        assert_eq!(
            faults(&format!("pools:\n  w:\n    {body}\n")),
            [expected],
            "{body}"
        );
    }
    for body in ["slots: 1", "slots: 10000", "{slots: 1, maxQueued: 10000}"] {
        let text = format!("pools:\n  w:\n    {body}\n");
        assert_eq!(good(&text).slot_pools.len(), 1);
    }
    let text = "pools:\n  w: {slots: 0}\n";
    let caret = shown(text, &loaded(&[("ductor.yaml", text)]).unwrap_err());
    assert!(
        caret.contains("2 |   w: {slots: 0}\n  |              ^"),
        "{caret}"
    );
}

#[test]
fn pool_name_rules() {
    let body = "{slots: 1}";
    let clash = [
        ("a.yaml", format!("pools:\n  w: {body}\n")),
        ("b.yaml", format!("pools:\n  w: {body}\n")),
    ];
    let files: Vec<(&str, &str)> = clash.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let found = loaded(&files).unwrap_err();
    assert_eq!(found[0].message, "duplicate pool 'w'");
    assert_eq!(found[0].at.to_string(), "b.yaml:2:3");
    assert_eq!(found[0].related[0].0.to_string(), "a.yaml:2:3");

    let twice = loaded(&[("a.yaml", "pools:\n  w: {slots: 1}\n  w: {slots: 2}\n")]).unwrap_err();
    assert_eq!(twice[0].message, "duplicate pool 'w'");
    assert_eq!(twice[0].related[0].0.line, 2);

    for name in ["\"\"", "\"a\\tb\"", "\"\\x7f\"", &"n".repeat(129)] {
        let text = format!("pools: {{? {name} : {body}}}\n");
        assert!(
            faults(&text)[0].ends_with("pool name must be non-empty and printable"),
            "{name}"
        );
    }
    good(&format!("pools: {{? {} : {body}}}\n", "n".repeat(128)));

    let text = "pools: {warehouse: {slots: 1}}\njobs: [{name: j, command: c, pool: warehose}]\n";
    assert_eq!(
        faults(text),
        ["2:36 job 'j': unknown pool 'warehose' [did you mean `warehouse`?]"]
    );
}

#[test]
fn pool_inheritance() {
    let text = "\
pools: {w: {slots: 3}}
defaults: {pool: w, poolSlots: 2, queuePriority: 5, queueTimeout: 60}
jobs:
  - {name: inherits, command: c}
  - {name: own, command: c, poolSlots: 3, queuePriority: -1}
  - name: drops
    command: c
    pool:
";
    let config = good(text);
    let slots: Vec<_> = config
        .jobs
        .iter()
        .map(|job| {
            job.slots
                .as_ref()
                .map(|slots| (slots.slots, slots.priority, slots.queue_timeout_ms))
        })
        .collect();
    assert_eq!(slots, [Some((2, 5, 60_000)), Some((3, -1, 60_000)), None]);

    for (keys, expected) in [
        (
            "poolSlots: 2",
            "poolSlots, queuePriority and queueTimeout need pool",
        ),
        (
            "queuePriority: 2",
            "poolSlots, queuePriority and queueTimeout need pool",
        ),
        (
            "queueTimeout: 2",
            "poolSlots, queuePriority and queueTimeout need pool",
        ),
        (
            "pool:\nqueueTimeout: 2",
            "poolSlots, queuePriority and queueTimeout need pool",
        ),
    ] {
        let found = job_faults(keys);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with(expected), "{found:?}");
    }
    let unknown = "defaults: {pool: v}\njobs: [{name: a, command: c}, {name: b, command: c, poolSlots: 2}]\npools: {warehouse: {slots: 1}}";
    assert_eq!(faults(unknown), ["1:18 defaults: unknown pool 'v'"]);
}

#[test]
fn slots_of_a_job() {
    for (keys, expected) in [
        ("poolSlots: 0", "5:16 job 'j': poolSlots must be at least 1"),
        (
            "poolSlots: 4",
            "5:16 job 'j': poolSlots exceeds pool capacity [`w` has 3 slots]",
        ),
        (
            "poolSlots: 99999999999",
            "5:16 job 'j': poolSlots exceeds pool capacity [`w` has 3 slots]",
        ),
        (
            "queuePriority: 1000001",
            "5:20 job 'j': queuePriority is out of range",
        ),
        (
            "queueTimeout: 0",
            "5:19 job 'j': queueTimeout must be finite and > 0",
        ),
        (
            "queueTimeout: -1",
            "5:19 job 'j': queueTimeout must be finite and > 0",
        ),
        (
            "queueTimeout: .inf",
            "5:19 job 'j': queueTimeout must be finite and > 0",
        ),
        (
            "queueTimeout: .nan",
            "5:19 job 'j': queueTimeout must be finite and > 0",
        ),
        (
            "queueTimeout: 31536001",
            "5:19 job 'j': queueTimeout must be finite and > 0",
        ),
        (
            "queueTimeout: soon",
            "5:19 job 'j': `queueTimeout` must be a duration",
        ),
    ] {
        let text = format!(
            "pools: {{w: {{slots: 3}}}}\njobs:\n  - name: j\n    command: c\n    {keys}\n    pool: w\n"
        );
        let found = faults(&text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(expected), "{found:?}");
    }
}
