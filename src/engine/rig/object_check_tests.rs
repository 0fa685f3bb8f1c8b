//! The check of what is declared for routing: each row that goes, comes or points elsewhere is named.

use serde_json::{Map, Value, json};

use super::routing_stage::{RoutingRig, assigned, me, rig};
use super::stage::TENANT;
use crate::engine::changes::routing::assignments::Act;
use crate::engine::changes::{campaigns, rules, traits};
use crate::engine::shadows::Shadows;
use crate::store::codec::Record;
use crate::store::keys::{DigestKey, Key};
use crate::store::live_rows::{CampaignRuns, DeclaredRow, RuleErrors, SnapshotRow, SourceRow, WorkWaiter};
use crate::store::routing_rows::{NameRow, ObjectIdRow};
use crate::store::rows::{Number, Present};
use crate::store::table::{Rows, Table};
use crate::store::tables as all;
use crate::store::{decisions, waiting_work};
use crate::words::ids::{
    CampaignId, ClaimQueueId, DecisionId, RecipientId, RecipientPoolId, RuleId, RunId, WaitingId, WorkId,
};
use crate::words::names::StepRef;
use crate::words::payload::JsonText;
use crate::words::time::Micros;

fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Some of everything.
fn declared() -> RoutingRig {
    let rig = rig();
    let team = rig.routing_pool("team", json!({}));
    rig.member(team, "a", json!({"external_id": "crm-1"}));
    for (name, rule) in [
        (
            "all",
            json!({"name": "all", "expression": "work.attributes.gone == 1",
                "action": {"type": "select_pool", "pool_id": team.to_string()}}),
        ),
        (
            "own",
            json!({"name": "own", "pool_id": team.to_string(), "expression": "true", "action": {"type": "filter"}}),
        ),
    ] {
        let (id, body) = (RuleId::fresh(), fields(&rule));
        assert_eq!(rule["name"], name);
        rig.declare(move |tx| rules::create(tx, &me(), id, body.clone()).unwrap());
    }
    let (id, body) = (ClaimQueueId::fresh(), fields(&json!({"name": "pond"})));
    rig.declare(move |tx| traits::create_queue(tx, &me(), id, body.clone()).unwrap());
    let campaign = json!({"name": "trial", "pool_id": team.to_string(), "status": "running",
        "candidate": {"strategy": "round_robin"}});
    let (id, body) = (CampaignId::fresh(), fields(&campaign));
    rig.declare(move |tx| campaigns::create(tx, &me(), id, body.clone()).unwrap());
    // One decision is looked at, the next one is not yet; a rule fails in a third.
    let first = rig.route_in(team, json!({}));
    rig.wait(Shadows::new(rig.engine.clone()).settle()).unwrap();
    rig.act(
        assigned(&first),
        Act::Complete {
            value_micro: None,
            result: None,
        },
    );
    rig.route_in(team, json!({}));
    rig.route(&json!({"work": {"kind": "t"}}));
    let empty = rig.routing_pool("empty", json!({}));
    rig.route_in(empty, json!({}));
    rig.assert_clean();
    rig
}

fn named(rig: &RoutingRig, table: &str) {
    let findings = rig.findings();
    assert!(
        findings.iter().any(|finding| finding.starts_with(table)),
        "{table}: {findings:?}"
    );
}

/// The first row goes, and comes back.
fn without<K, R>(rig: &RoutingRig, table: &'static Table<K, R>)
where
    K: Key + Clone + Send + 'static,
    R: Record + Clone + Send + 'static,
{
    let found = rig.read(|tx| tx.scan(table, &(), None, 1));
    let (key, row) = found
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("no row of {}", table.name()));
    let gone = key.clone();
    rig.change(move |tx| Ok(tx.remove(table, &gone)?));
    named(rig, table.name());
    rig.change(move |tx| Ok(tx.put(table, &key, &row)?));
    rig.assert_clean();
}

/// A row too many comes, and goes.
fn beside<K, R>(rig: &RoutingRig, table: &'static Table<K, R>, key: K, row: R)
where
    K: Key + Clone + Send + 'static,
    R: Record + Clone + Send + 'static,
{
    let put = key.clone();
    rig.change(move |tx| Ok(tx.put(table, &put, &row)?));
    named(rig, table.name());
    rig.change(move |tx| Ok(tx.remove(table, &key)?));
    rig.assert_clean();
}

/// The first row says something else.
fn otherwise<K, R>(rig: &RoutingRig, table: &'static Table<K, R>, row: R)
where
    K: Key + Clone + Send + 'static,
    R: Record + Clone + Send + 'static,
{
    let found = rig.read(|tx| tx.scan(table, &(), None, 1));
    let (key, before) = found.into_iter().next().unwrap();
    let put = key.clone();
    rig.change(move |tx| Ok(tx.put(table, &put, &row)?));
    named(rig, table.name());
    rig.change(move |tx| Ok(tx.put(table, &key, &before)?));
    rig.assert_clean();
}

#[test]
fn a_row_that_is_missing_is_named() {
    let rig = declared();
    without(&rig, &all::RECIPIENT_POOL_NAMES);
    without(&rig, &all::RECIPIENT_NAMES);
    without(&rig, &all::RECIPIENT_EXTERNAL_IDS);
    without(&rig, &all::MEMBERS);
    without(&rig, &all::RULE_NAMES);
    without(&rig, &all::RULES_OF);
    without(&rig, &all::CLAIM_QUEUE_NAMES);
    without(&rig, &all::CAMPAIGN_NAMES);
    without(&rig, &all::CAMPAIGNS_OF_POOL);
    without(&rig, &all::WORK_ITEMS);
}

#[test]
fn a_row_that_points_to_nothing_is_named() {
    let rig = declared();
    let (team, nobody) = (RecipientPoolId([9; 16]), ObjectIdRow([9; 16]));
    let name = "nobody".to_owned();
    beside(&rig, &all::RECIPIENT_POOL_NAMES, (TENANT, name.clone()), nobody);
    beside(&rig, &all::RECIPIENT_NAMES, (TENANT, team, name.clone()), nobody);
    beside(&rig, &all::RECIPIENT_EXTERNAL_IDS, (TENANT, name.clone()), nobody);
    beside(
        &rig,
        &all::MEMBERS,
        (TENANT, team, RecipientId([9; 16])),
        NameRow(name.clone()),
    );
    beside(&rig, &all::RULE_NAMES, (TENANT, name.clone()), nobody);
    beside(
        &rig,
        &all::RULES_OF,
        (TENANT, team, RuleId([9; 16])),
        NameRow(name.clone()),
    );
    beside(&rig, &all::CLAIM_QUEUE_NAMES, (TENANT, name.clone()), nobody);
    beside(&rig, &all::CAMPAIGN_NAMES, (TENANT, name), nobody);
    let runs = CampaignRuns {
        sample_percent: 100,
        starts_at: None,
        ends_at: None,
    };
    let (campaign, decision, work) = (CampaignId([9; 16]), DecisionId([9; 16]), WorkId([9; 16]));
    beside(&rig, &all::CAMPAIGNS_OF_POOL, (TENANT, team, campaign), runs);
    beside(
        &rig,
        &all::SHADOW_PENDING,
        (TENANT, decision, campaign),
        Present {},
    );
    beside(
        &rig,
        &all::WORK_ITEMS,
        (TENANT, work, WaitingId([9; 16])),
        Present {},
    );
    let errors = RuleErrors {
        count: 1,
        since: Micros(0),
        last_at: Micros(0),
        last_error: String::new(),
        last_decision: decision,
    };
    beside(&rig, &all::RULE_ERRORS, (TENANT, RuleId([9; 16])), errors);
    let waiter = WorkWaiter {
        run: RunId([9; 16]),
        step: StepRef::new("s").unwrap(),
        attempt: 1,
    };
    beside(&rig, &all::WORK_WAITERS, (TENANT, work, work), waiter);
    // Rows that have one like them already.
    let first = rig.read(|tx| tx.scan(&all::SHADOW_TALLIES, &(), None, 1));
    beside(&rig, &all::SHADOW_TALLIES, (TENANT, campaign), first[0].1.clone());
    let first = rig.read(|tx| tx.scan(&all::SHADOW_RESULTS, &(), None, 1));
    beside(
        &rig,
        &all::SHADOW_RESULTS,
        (TENANT, decision, campaign),
        first[0].1,
    );
    let first = rig.read(|tx| tx.scan(&all::SHADOW_STATES, &(), None, 1));
    let key = (TENANT, campaign, team, "pick".to_owned());
    beside(&rig, &all::SHADOW_STATES, key, first[0].1.clone());
}

#[test]
fn a_row_that_points_elsewhere_is_named() {
    let rig = declared();
    let (other, name) = (ObjectIdRow([9; 16]), NameRow("other".to_owned()));
    otherwise(&rig, &all::RECIPIENT_POOL_NAMES, other);
    otherwise(&rig, &all::RECIPIENT_NAMES, other);
    otherwise(&rig, &all::RECIPIENT_EXTERNAL_IDS, other);
    otherwise(&rig, &all::MEMBERS, name.clone());
    otherwise(&rig, &all::RULE_NAMES, other);
    otherwise(&rig, &all::RULES_OF, name);
    otherwise(&rig, &all::CLAIM_QUEUE_NAMES, other);
    otherwise(&rig, &all::CAMPAIGN_NAMES, other);
    let runs = CampaignRuns {
        sample_percent: 1,
        starts_at: None,
        ends_at: None,
    };
    otherwise(&rig, &all::CAMPAIGNS_OF_POOL, runs);
}

/// The half that decisions share is counted, and goes with the last of them.
#[test]
fn what_decisions_were_made_from_is_checked_and_goes_with_them() {
    let rig = declared();
    without(&rig, &all::SOURCES);
    without(&rig, &all::DECLARED);
    without(&rig, &all::DECLARED_USES);
    otherwise(&rig, &all::DECLARED_USES, Number(9));
    let text = JsonText::parse("{}").unwrap();
    beside(
        &rig,
        &all::DECLARED,
        (TENANT, "ab".to_owned()),
        DeclaredRow { text: text.clone() },
    );
    let declared = "ab".to_owned();
    otherwise(&rig, &all::SOURCES, SourceRow { text, declared });
    let kept = rig.read(|tx| tx.scan(&all::DECISIONS, &(), None, usize::MAX));
    let halves = || rig.read(|tx| tx.scan(&all::DECLARED_USES, &(), None, usize::MAX));
    let shared: u64 = halves().iter().map(|(_, Number(uses))| uses).sum();
    assert!(
        shared > halves().len() as u64,
        "some share theirs: {:?}",
        halves()
    );
    for open in rig.assignments().iter().filter(|one| one.state.is_live()) {
        rig.act(
            open.id,
            Act::Complete {
                value_micro: None,
                result: None,
            },
        );
    }
    rig.wait(Shadows::new(rig.engine.clone()).settle()).unwrap();
    for (_, item) in rig.read(|tx| tx.scan(&all::ROUTING_WAITING, &(), None, usize::MAX)) {
        rig.change(move |tx| Ok(waiting_work::leave(tx, TENANT, &item)?));
    }
    for ((_, id), row) in kept {
        assert!(
            rig.change(move |tx| Ok(decisions::forget(tx, TENANT, id, &row)?)),
            "{id}"
        );
    }
    assert_eq!(halves(), []);
    assert_eq!(rig.read(|tx| tx.scan(&all::DECLARED, &(), None, 1)), []);
    assert_eq!(rig.read(|tx| tx.scan(&all::SOURCES, &(), None, 1)), []);
    rig.assert_clean();
}

/// A decision of a store of format 6: all that it was made from in one row, which goes with its last decision.
#[test]
fn a_snapshot_of_an_older_format_is_read_and_goes() {
    let rig = rig();
    let team = rig.routing_pool("team", json!({}));
    rig.member(team, "a", json!({}));
    let written = rig.route_in(team, json!({}));
    let (id, assignment) = (written.decision.id, assigned(&written));
    rig.change(move |tx| {
        let row = decisions::decision(tx, TENANT, id)?.unwrap();
        let source = tx.get(&all::SOURCES, &(TENANT, id))?.unwrap();
        let half = (TENANT, source.declared);
        tx.remove(&all::SOURCES, &(TENANT, id))?;
        tx.remove(&all::DECLARED, &half)?;
        tx.remove(&all::DECLARED_USES, &half)?;
        let old = SnapshotRow {
            uses: 1,
            text: JsonText::parse("{\"version\": 1}").unwrap(),
        };
        Ok(tx.put(&all::SNAPSHOTS, &(TENANT, row.snapshot.unwrap()), &old)?)
    });
    rig.assert_clean();
    let row = rig.read(|tx| decisions::decision(tx, TENANT, id)).unwrap();
    let of = row.clone();
    let kept = rig
        .read(move |tx| decisions::source(tx, TENANT, (id, &of)))
        .unwrap();
    let why = kept.recall().unwrap_err().to_string();
    assert!(why.contains("missing field"), "{why}");
    rig.act(
        assignment,
        Act::Complete {
            value_micro: None,
            result: None,
        },
    );
    assert!(rig.change(move |tx| Ok(decisions::forget(tx, TENANT, id, &row)?)));
    assert_eq!(rig.read(|tx| tx.scan(&all::SNAPSHOTS, &(), None, 1)), []);
    rig.assert_clean();
}

/// What declared objects themselves name: the members of a recipient pool that is gone, a rule of one.
#[test]
fn an_object_that_names_what_is_gone_is_named() {
    let rig = declared();
    let found = rig.read(|tx| tx.scan(&all::RECIPIENT_POOLS, &(), None, 1));
    let (key, row) = found.into_iter().next().unwrap();
    rig.change(move |tx| Ok(tx.remove(&all::RECIPIENT_POOLS, &key)?));
    let findings = rig.findings();
    for table in ["recipients: ", "rules: ", "recipient_pool_names: "] {
        assert!(
            findings.iter().any(|finding| finding.starts_with(table)),
            "{table}: {findings:?}"
        );
    }
    rig.change(move |tx| Ok(tx.put(&all::RECIPIENT_POOLS, &key, &row)?));
    let digest = DigestKey([9; 16]);
    let key = (TENANT, 9_u8, digest, DecisionId([9; 16]));
    beside(&rig, &all::DECISION_INDEX, key, Present {});
}
