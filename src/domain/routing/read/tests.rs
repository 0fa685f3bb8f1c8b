//! Objects out of JSON: each fault at its place with its code, and all of them in one pass.

use serde_json::{Map, Value, json};

use super::{Memberships, RecipientPoolRead, RecipientRead, Stamp, recipient, recipient_pool, rule};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::{PipelineMode, RecipientState};
use crate::words::ids::{RecipientId, RecipientPoolId, RuleId};
use crate::words::time::Micros;

const OTHER: &str = "019ad0e0-0001-7000-8000-000000000002";
const STAMP: Stamp = Stamp {
    record_version: 0,
    created_at: Micros(0),
    updated_at: Micros(0),
};

fn map(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn read_pool(set: Value) -> RecipientPoolRead {
    recipient_pool(RecipientPoolId([1; 16]), STAMP, None, map(set))
}

fn read_recipient(set: Value) -> RecipientRead {
    recipient(RecipientId([1; 16]), STAMP, vec![], map(set))
}

fn told(faults: &[Fault]) -> Vec<(String, &'static str)> {
    let mut told: Vec<_> = faults
        .iter()
        .map(|fault| (fault.pointer.clone(), fault.code))
        .collect();
    told.sort_unstable();
    told
}

/// The faults of a config beside a good name.
fn of_config(config: &Value, expected: &[(&str, &str)]) {
    let faults = read_pool(json!({"name": "n", "config": config})).faults;
    let expected: Vec<_> = expected
        .iter()
        .map(|(at, code)| (format!("/config{at}"), *code))
        .collect();
    let told: Vec<_> = told(&faults);
    assert_eq!(told, expected, "{config}");
}

fn of_pool(set: &Value, expected: &[(&str, &str)]) {
    let faults = read_pool(set.clone()).faults;
    let expected: Vec<_> = expected
        .iter()
        .map(|(at, code)| ((*at).to_owned(), *code))
        .collect();
    assert_eq!(told(&faults), expected, "{set}");
}

fn of_recipient(set: Value, expected: &[(&str, &str)]) {
    let mut set = map(set);
    set.entry("name").or_insert_with(|| json!("n"));
    let faults = read_recipient(Value::from(set.clone())).faults;
    let expected: Vec<_> = expected
        .iter()
        .map(|(at, code)| ((*at).to_owned(), *code))
        .collect();
    assert_eq!(told(&faults), expected, "{}", Value::from(set));
}

#[test]
fn test_02_each_row_of_the_table_has_its_pointer_and_code() {
    of_pool(&json!({}), &[("/name", "field.required")]);
    of_pool(&json!({"name": ""}), &[("/name", "field.required")]);
    of_pool(&json!({"name": "\u{e9}".repeat(200)}), &[]);
    of_pool(&json!({"name": "n".repeat(201)}), &[("/name", "field.too_long")]);
    of_pool(&json!({"name": "a\u{7}"}), &[("/name", "field.value")]);
    of_pool(&json!({"name": 1}), &[("/name", "field.type")]);
    of_pool(&json!({"name": "n", "nmae": 1}), &[("/nmae", "field.unknown")]);
    of_pool(
        &json!({"name": "n", "strategy": "round_robbin"}),
        &[("/strategy", "strategy.unknown")],
    );
    of_pool(
        &json!({"name": "n", "strategy": "round_robin@2"}),
        &[("/strategy", "strategy.unknown")],
    );
    of_pool(&json!({"name": "n", "strategy": "even@1"}), &[]);
    of_pool(
        &json!({"name": "n", "strategy": "pipeline:x"}),
        &[("/strategy", "pipeline.unknown")],
    );
    of_pool(
        &json!({"name": "n", "status": "ACTIVE"}),
        &[("/status", "field.value")],
    );
    of_pool(
        &json!({"name": "n", "metadata": {"a": 1}}),
        &[("/metadata/a", "field.type")],
    );
    of_pool(
        &json!({"name": "n", "parent_pool_id": "x"}),
        &[("/parent_pool_id", "pool.not_found")],
    );
}

#[test]
fn test_02_each_row_of_the_table_about_configs_has_its_pointer_and_code() {
    of_config(
        &json!({"default_strategy": "fairest"}),
        &[("/default_strategy", "strategy.unknown")],
    );
    of_config(
        &json!({"default_strategy": "random", "default_recipe": "even"}),
        &[("/default_recipe", "config.exclusive")],
    );
    of_config(
        &json!({"default_strategy_pipeline": "careful"}),
        &[("/default_strategy_pipeline", "pipeline.unknown")],
    );
    of_config(
        &json!({"default_recipe": "even@2"}),
        &[("/default_recipe", "recipe.unknown")],
    );
    of_config(
        &json!({"fallback": "overflow"}),
        &[("/overflow_pool_id", "config.target_required")],
    );
    of_config(
        &json!({"fallback": "catchall"}),
        &[("/catchall_pool_id", "config.target_required")],
    );
    of_config(
        &json!({"overflow_pool_id": "x"}),
        &[("/overflow_pool_id", "pool.not_found")],
    );
    of_config(
        &json!({"max_routing_depth": 17}),
        &[("/max_routing_depth", "field.range")],
    );
    of_config(
        &json!({"max_routing_depth": -1}),
        &[("/max_routing_depth", "field.range")],
    );
    of_config(
        &json!({"queue_ttl_seconds": 0}),
        &[("/queue_ttl_seconds", "field.range")],
    );
    of_config(
        &json!({"queue_ttl_seconds": 31_536_001}),
        &[("/queue_ttl_seconds", "field.range")],
    );
    of_config(
        &json!({"over_capacity_budget": 1000.5}),
        &[("/over_capacity_budget", "field.range")],
    );
    of_config(
        &json!({"sla": {"escalation_pool_id": "x"}}),
        &[("/sla/escalation_pool_id", "pool.not_found")],
    );
    of_config(
        &json!({"default_timeout": "30"}),
        &[("/default_timeout", "field.type")],
    );
    of_config(
        &json!({"default_timeout": "8761h"}),
        &[("/default_timeout", "field.range")],
    );
    of_config(
        &json!({"exploration_epsilon": 0.6}),
        &[("/exploration_epsilon", "field.range")],
    );
    of_config(&json!({"explain": "winners"}), &[("/explain", "field.value")]);
}

#[test]
fn test_02_two_faults_are_two_entries() {
    let set = json!({"name": "", "status": "x", "bogus": 1, "config": {
        "default_timeout": "x", "max_routing_depth": 99, "sla": {"enabled": "yes", "max": 1}}});
    of_pool(
        &set,
        &[
            ("/bogus", "field.unknown"),
            ("/config/default_timeout", "field.type"),
            ("/config/max_routing_depth", "field.range"),
            ("/config/sla/enabled", "field.type"),
            ("/config/sla/max", "field.unknown"),
            ("/name", "field.required"),
            ("/status", "field.value"),
        ],
    );
}

#[test]
fn test_46_each_half_of_the_claim_pair_alone_is_refused() {
    of_config(
        &json!({"routing_mode": "claim"}),
        &[("/claim_queue_id", "config.claim_pair")],
    );
    of_config(
        &json!({"claim_queue_id": OTHER}),
        &[("/claim_queue_id", "config.claim_pair")],
    );
    of_config(
        &json!({"routing_mode": "auto", "claim_queue_id": OTHER}),
        &[("/claim_queue_id", "config.claim_pair")],
    );
    of_config(&json!({"routing_mode": "claim", "claim_queue_id": OTHER}), &[]);
}

/// A condition that reads nothing is evaluated once, when it is written.
#[test]
fn a_rule_that_can_never_be_true_or_false_is_refused() {
    let read = |expression: &str| {
        let action = json!({"type": "drop"});
        let set = json!({"name": "r", "expression": expression, "action": action});
        told(&rule(RuleId([1; 16]), STAMP, map(set)).faults)
    };
    for wrong in ["1", "'text'", "[true]", "{}", "null", "1 + 1", "true ? 1 : 2"] {
        assert_eq!(
            read(wrong),
            [("/expression".to_owned(), "rule.result_type")],
            "{wrong}"
        );
    }
    assert_eq!(
        read("1 / 0 == 1"),
        [("/expression".to_owned(), "rule.evaluation")]
    );
    for good in [
        "true",
        "1 < 2",
        "[1, 2].exists(x, x > 1)",
        "work.attributes.flag",
        "work.priority + 1 > 2",
    ] {
        assert_eq!(read(good), [], "{good}");
    }
}

#[test]
fn expressions_of_a_config_are_checked_where_they_stand() {
    of_config(
        &json!({"dedup": {"key": "work.attributes.id +"}}),
        &[("/dedup/key", "rule.syntax")],
    );
    of_config(
        &json!({"sharding": {"key": "recipient.id", "pool_ids": [OTHER, OTHER]}}),
        &[
            ("/sharding/key", "rule.unknown_reference"),
            ("/sharding/pool_ids/1", "field.value"),
        ],
    );
    of_config(
        &json!({"sharding": {"pool_ids": []}, "dedup": {}}),
        &[
            ("/dedup/key", "field.required"),
            ("/sharding/key", "field.required"),
            ("/sharding/pool_ids", "field.range"),
        ],
    );
    let faults = read_pool(json!({"name": "n", "config": {"dedup": {"key": "work.id\n + nobody"}}})).faults;
    assert_eq!(
        (faults[0].members["line"].clone(), faults[0].code),
        (json!(2), "rule.unknown_reference")
    );
}

#[test]
fn what_is_set_is_kept_in_its_one_form_and_the_rest_has_defaults() {
    let read = read_pool(json!({"name": "n", "description": null, "config": {
        "default_timeout": "90s", "default_recipe": "even", "pipeline_mode": "", "over_capacity_budget": 10,
        "allow_over_capacity": true, "dedup": {"key": "work.id"}}}));
    assert_eq!(read.faults, vec![]);
    assert_eq!(read.set["config"]["default_timeout"], "1m30s");
    assert_eq!(read.set["config"]["default_recipe"], "even@1");
    assert!(!read.set.contains_key("description") && read.warnings.is_empty());
    let config = read.object.config;
    assert_eq!(config.pipeline_mode, PipelineMode::Inherit);
    assert_eq!(
        (config.default_timeout_us, config.queue_ttl_us),
        (90_000_000, 3_600_000_000)
    );
    assert_eq!(
        (config.over_capacity_budget_micro, config.max_routing_depth),
        (10_000_000, 3)
    );
    assert_eq!(config.dedup.unwrap().window_us, 86_400_000_000);
    let warned = read_pool(json!({"name": "n", "config": {"allow_over_capacity": true}})).warnings;
    assert_eq!(
        told(&warned),
        [(
            "/config/allow_over_capacity".to_owned(),
            "config.over_capacity_without_budget"
        )]
    );
    // A strategy that lacks what only a request could bring.
    let warned = read_pool(json!({"name": "n", "strategy": "sticky"})).warnings;
    assert_eq!(
        told(&warned),
        [("/config/strategy_options/sticky/key".to_owned(), "option.type")]
    );
    // What was read is read again as the same.
    let again = read_pool(Value::from(read.set.clone()));
    assert_eq!((again.set, again.faults), (read.set, vec![]));
}

#[test]
fn faults_of_recipients_have_their_places() {
    of_recipient(json!({"weight": -1}), &[("/weight", "field.range")]);
    of_recipient(json!({"weight": 1_000_001}), &[("/weight", "field.range")]);
    of_recipient(json!({"weight": "1"}), &[("/weight", "field.type")]);
    of_recipient(
        json!({"capacity": {"max_concurrent": -1, "daily_limit": 1_000_000_001}}),
        &[
            ("/capacity/daily_limit", "field.range"),
            ("/capacity/max_concurrent", "field.range"),
        ],
    );
    of_recipient(
        json!({"capacity": {"max_concurrent": 1.5}}),
        &[("/capacity/max_concurrent", "field.type")],
    );
    of_recipient(
        json!({"location": {"latitude": 91, "longitude": -180}}),
        &[("/location/latitude", "field.range")],
    );
    of_recipient(
        json!({"location": {"latitude": 1}}),
        &[("/location/longitude", "field.required")],
    );
    of_recipient(json!({"tags": ["a", "b", "a"]}), &[("/tags/2", "tag.duplicate")]);
    of_recipient(
        json!({"timezone": "Mars/Olympus"}),
        &[("/timezone", "timezone.unknown")],
    );
    of_recipient(json!({"timezone": "Asia/Kathmandu"}), &[]);
    of_recipient(json!({"external_id": ""}), &[("/external_id", "field.value")]);
    of_recipient(json!({"type": "x".repeat(65)}), &[("/type", "field.too_long")]);
}

#[test]
fn faults_of_schedules_have_their_places() {
    let check = |schedule: Value, expected: &[(&str, &str)]| {
        let expected: Vec<_> = expected
            .iter()
            .map(|(at, code)| (format!("/schedule{at}"), *code))
            .collect();
        let borrowed: Vec<_> = expected.iter().map(|(at, code)| (at.as_str(), *code)).collect();
        of_recipient(json!({"schedule": schedule}), &borrowed);
    };
    let window = |start: &str, end: &str| json!({"windows": [{"days": ["mon"], "start": start, "end": end}]});
    check(window("09:00", "24:00"), &[]);
    check(window("22:00", "06:00"), &[]);
    check(
        window("09:00", "09:00"),
        &[("/windows/0/start", "schedule.empty_window")],
    );
    check(window("24:00", "09:00"), &[("/windows/0/start", "schedule.time")]);
    check(
        window("9:00", "25:00"),
        &[
            ("/windows/0/end", "schedule.time"),
            ("/windows/0/start", "schedule.time"),
        ],
    );
    check(
        json!({"windows": [{"days": ["monday"], "start": "09:00", "end": "10:00"}]}),
        &[("/windows/0/days/0", "schedule.days")],
    );
    check(
        json!({"windows": [{"days": [], "start": "09:00", "end": "10:00", "x": 1}]}),
        &[
            ("/windows/0/days", "schedule.days"),
            ("/windows/0/x", "field.unknown"),
        ],
    );
    check(
        json!({"timezone": "Nowhere"}),
        &[("/timezone", "timezone.unknown")],
    );
    check(
        json!({"exceptions": [{"date": "2026-02-30", "closed": true}]}),
        &[("/exceptions/0/date", "schedule.date")],
    );
    check(
        json!({"exceptions": [{"date": "2026-12-24"}, {"date": "2026-12-24", "closed": true}]}),
        &[
            ("/exceptions/0", "schedule.exception"),
            ("/exceptions/1/date", "schedule.date_twice"),
        ],
    );
    check(
        json!({"exceptions": [{"date": "2026-12-24", "windows": [{"start": "09:00", "end": "09:00"}]}]}),
        &[("/exceptions/0/windows/0/start", "schedule.empty_window")],
    );
    let many: Vec<Value> = (0..65)
        .map(|_| json!({"start": "09:00", "end": "10:00"}))
        .collect();
    check(json!({"windows": many}), &[("/windows", "field.range")]);
}

#[test]
fn test_08_values_have_exactly_one_kind_and_nest() {
    let bad = |value: Value, code: &str| {
        of_recipient(json!({"attributes": {"a": value}}), &[("/attributes/a", code)]);
    };
    bad(json!({"string_value": "x", "bool_value": true}), "value.kind");
    bad(json!({}), "value.kind");
    bad(json!("x"), "value.kind");
    bad(json!({"text_value": "x"}), "value.kind");
    bad(json!({"number_value": "3"}), "value.kind");
    bad(json!({"list_value": {"values": [{}]}}), "value.kind");
    bad(json!({"list_value": {"items": []}}), "value.kind");
    let deep = (0..10).fold(
        json!({"bool_value": true}),
        |inside, _| json!({"list_value": [inside]}),
    );
    bad(deep, "value.too_large");
    let long: Vec<Value> = (0..257).map(|_| json!({"bool_value": true})).collect();
    bad(json!({"list_value": long}), "value.too_large");
    let large = json!({"attributes": {"a": {"string_value": "x".repeat(65 << 10)}}});
    of_recipient(large, &[("/attributes", "value.too_large")]);
}

#[test]
fn test_08_values_come_back_wrapped_and_are_seen_plain() {
    let check = |sent: Value, wrapped: Value, plain: Value| {
        let read = read_recipient(json!({"name": "n", "attributes": {"a": sent}}));
        assert_eq!(read.faults, vec![]);
        assert_eq!(read.set["attributes"]["a"], wrapped);
        assert_eq!(read.object.attributes["a"], plain);
        let again = read_recipient(Value::from(read.set.clone()));
        assert_eq!(again.set, read.set);
    };
    let es = json!({"string_value": "es"});
    check(json!({"number_value": 3}), json!({"number_value": 3}), json!(3.0));
    check(es.clone(), es.clone(), json!("es"));
    let list = json!({"list_value": {"values": [es]}});
    check(
        json!({"list_value": [{"string_value": "es"}]}),
        list.clone(),
        json!(["es"]),
    );
    check(list.clone(), list.clone(), json!(["es"]));
    let object = json!({"object_value": {"fields": {"l": list}}});
    check(
        json!({"object_value": {"l": list}}),
        object.clone(),
        json!({"l": ["es"]}),
    );
    check(object.clone(), object, json!({"l": ["es"]}));
    // A bare map with a value that is called `fields`.
    check(
        json!({"object_value": {"fields": {"string_value": "x"}}}),
        json!({"object_value": {"fields": {"fields": {"string_value": "x"}}}}),
        json!({"fields": "x"}),
    );
    check(
        json!({"list_value": {}}),
        json!({"list_value": {"values": []}}),
        json!([]),
    );
}

#[test]
fn test_22_a_missing_weight_is_one() {
    let weight = |set: Value| read_recipient(set).object.weight_micro;
    assert_eq!(weight(json!({"name": "n"})), 1_000_000);
    assert_eq!(weight(json!({"name": "n", "weight": null})), 1_000_000);
    assert_eq!(weight(json!({"name": "n", "weight": 0})), 0);
    assert_eq!(weight(json!({"name": "n", "weight": 2.5})), 2_500_000);
    assert_eq!(
        weight(json!({"name": "n", "weight": 1_000_000})),
        1_000_000_000_000
    );
    assert_eq!(weight(json!({"name": "n", "weight": 0.000_000_4})), 0);
}

#[test]
fn test_07_a_new_primary_membership_takes_the_place_of_the_one_before() {
    let id = |n: u8| RecipientPoolId([n; 16]);
    let check = |sent: Value, before: &[u8], after: &[u8]| {
        let mut faults = Vec::new();
        let said = Memberships::take(&mut map(sent), &mut faults);
        assert_eq!(faults, vec![]);
        let before: Vec<_> = before.iter().map(|n| id(*n)).collect();
        let expected: Vec<_> = after.iter().map(|n| id(*n)).collect();
        assert_eq!(said.after(&before), expected);
    };
    check(json!({}), &[1, 2, 3], &[1, 2, 3]);
    check(json!({"pool_id": id(4).to_string()}), &[1, 2, 3], &[4, 2, 3]);
    check(json!({"pool_id": id(3).to_string()}), &[1, 2, 3], &[3, 2]);
    check(json!({"pool_ids": [id(5).to_string()]}), &[1, 2, 3], &[1, 5]);
    check(
        json!({"pool_ids": [id(5).to_string()], "pool_id": id(6).to_string()}),
        &[1],
        &[6, 5],
    );
    check(json!({"pool_ids": [id(5).to_string()]}), &[], &[5]);
    let mut faults = Vec::new();
    let mut sent = map(json!({"pool_id": null, "pool_ids": ["x"], "state": "BUSY", "name": "n"}));
    let said = Memberships::take(&mut sent, &mut faults);
    let expected = [
        ("/pool_id", "field.required"),
        ("/pool_ids/0", "pool.not_found"),
        ("/state", "field.value"),
    ];
    assert_eq!(told(&faults), expected.map(|(at, code)| (at.to_owned(), code)));
    assert_eq!((said.primary, said.state, sent.len()), (None, None, 1));
    let said = Memberships::take(
        &mut map(json!({"state": "RECIPIENT_STATE_BUSY"})),
        &mut Vec::new(),
    );
    assert_eq!(said.state, Some(RecipientState::Busy));
}
