//! Shadow campaigns over a real store: section 7 of the specification of routing.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::routing_stage::{RoutingRig, assigned, me, rig, winner, word};
use super::stage::TENANT;
use crate::domain::routing::print::View;
use crate::domain::routing::shadow::Tally;
use crate::engine::changes::campaigns;
use crate::engine::changes::declared::{Outcome, Refusal};
use crate::engine::changes::routing::assignments::Act;
use crate::engine::shadows::Shadows;
use crate::store::table::Rows;
use crate::store::tables as all;
use crate::store::{decisions, shadows};
use crate::words::ids::{CampaignId, DecisionId, RecipientPoolId};

/// Tables that a campaign may write, and those in which every commit leaves its number.
fn are_of_others(table: usize) -> bool {
    let own = [
        all::CAMPAIGNS.index(),
        all::CAMPAIGN_NAMES.index(),
        all::CAMPAIGNS_OF_POOL.index(),
        all::SHADOW_PENDING.index(),
        all::SHADOW_STATES.index(),
        all::SHADOW_TALLIES.index(),
        all::SHADOW_RESULTS.index(),
        all::META.index(),
        all::CHANGES.index(),
    ];
    !own.contains(&table)
}

fn fields(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else {
        panic!("{value}");
    };
    fields
}

impl RoutingRig {
    fn try_campaign(&self, body: Value) -> (CampaignId, Outcome) {
        let (id, body) = (CampaignId::fresh(), fields(body));
        let outcome = self.change(move |tx| campaigns::create(tx, &me(), id, body.clone()));
        (id, outcome)
    }

    /// A campaign that runs.
    fn campaign(&self, of: RecipientPoolId, strategy: &str, more: Value) -> CampaignId {
        let mut body = json!({"name": strategy, "pool_id": of.to_string(), "candidate": {"strategy": strategy},
            "status": "running"});
        for (key, value) in fields(more) {
            body[key] = value;
        }
        let (id, outcome) = self.try_campaign(body);
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
        id
    }

    fn patch_campaign(&self, id: CampaignId, body: Value) -> Outcome {
        let body = fields(body);
        self.change(move |tx| campaigns::patch(tx, &me(), id, body.clone()))
    }

    fn look_on(&self) {
        self.wait(Shadows::new(self.engine.clone()).settle()).unwrap();
    }

    fn tally(&self, id: CampaignId) -> Tally {
        self.read(|tx| tx.get(&all::SHADOW_TALLIES, &(TENANT, id)))
            .unwrap_or_default()
    }

    fn shown(&self, id: CampaignId) -> Value {
        let row = self.read(|tx| shadows::campaign(tx, TENANT, id)).unwrap();
        campaigns::shown(id, &row, self.at(), View::Set)
    }

    fn pending(&self) -> usize {
        self.read(|tx| tx.scan(&all::SHADOW_PENDING, &(TENANT,), None, usize::MAX))
            .len()
    }

    fn rows_of_others(&self) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
        let rows = self.all_rows();
        rows.into_iter()
            .filter(|(table, _, _)| are_of_others(*table))
            .collect()
    }
}

fn code(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Refused(Refusal::Conflict(fault)) => fault.code,
        Outcome::Refused(Refusal::Invalid(faults)) => faults[0].code,
        Outcome::Refused(Refusal::Missing(..) | Refusal::Full(_)) | Outcome::Done(_) => {
            panic!("{outcome:?}")
        }
    }
}

/// 53: a campaign at 100 % leaves the tables of production as they are; production that never draws gives no value.
#[test]
fn test_53_a_campaign_changes_nothing_but_its_own_rows() {
    let winners = |with_campaigns: bool| {
        let rig = rig();
        let team = rig.routing_pool("p", json!({"default_strategy": "round_robin"}));
        let names = ["a", "b", "c"];
        let members: Vec<_> = names
            .iter()
            .map(|name| rig.member(team, name, json!({})))
            .collect();
        let mut own = Vec::new();
        if with_campaigns {
            own.push(rig.campaign(team, "least_utilized", json!({})));
            own.push(rig.campaign(
                team,
                "smooth_weighted_round_robin",
                json!({"state_mode": "independent"}),
            ));
        }
        let mut found = String::new();
        for number in 0..30 {
            let written = rig.route_in(team, json!({}));
            let won = winner(&written);
            found.push_str(names[members.iter().position(|id| *id == won).unwrap()]);
            if number % 2 == 0 {
                rig.act(
                    assigned(&written),
                    Act::Complete {
                        value_micro: Some(500_000),
                        result: None,
                    },
                );
            }
        }
        let (before, pending) = (rig.rows_of_others(), rig.pending());
        rig.look_on();
        assert_eq!(rig.rows_of_others(), before);
        assert_eq!((pending, rig.pending()), (30 * own.len(), 0));
        for id in own {
            let tally = rig.tally(id);
            assert_eq!((tally.n, tally.errors), (30, 0));
            let report = tally.report(&std::collections::BTreeMap::new(), true);
            assert_eq!(
                (&report["value"], &report["value_reason"]),
                (&Value::Null, &json!("no_overlap"))
            );
            assert_eq!(tally.direct.0, {
                let said = rig.read(|tx| tx.scan(&all::SHADOW_RESULTS, &(TENANT,), None, usize::MAX));
                said.iter()
                    .filter(|((_, _, of), one)| *of == id && one.valued && one.agrees)
                    .count() as u64
            });
        }
        rig.assert_clean();
        found
    };
    assert_eq!(winners(false), winners(true));
}

/// What a campaign said is joined to its decision, and goes with it.
#[test]
fn what_is_said_belongs_to_the_decision() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let agent = rig.member(team, "a", json!({}));
    let id = rig.campaign(team, "round_robin", json!({}));
    let written = rig.route_in(team, json!({}));
    let decision: DecisionId = written.decision.id;
    rig.look_on();
    let said = rig.read(|tx| shadows::results(tx, TENANT, decision));
    assert_eq!(said.len(), 1);
    assert_eq!(
        (said[0].0, said[0].1.winner, said[0].1.agrees),
        (id, Some(agent), true)
    );
    assert!(!said[0].1.valued);
    // The value comes later, and is counted once.
    rig.act(
        assigned(&written),
        Act::Complete {
            value_micro: Some(250_000),
            result: None,
        },
    );
    rig.look_on();
    assert_eq!(rig.tally(id).direct, (1, 0.25));
    rig.look_on();
    assert_eq!(rig.tally(id).direct, (1, 0.25));
    let row = rig.read(|tx| decisions::decision(tx, TENANT, decision)).unwrap();
    assert!(rig.change(move |tx| Ok(decisions::forget(tx, TENANT, decision, &row)?)));
    assert!(rig.read(|tx| shadows::results(tx, TENANT, decision)).is_empty());
}

/// Work for a named recipient, work of other recipient pools, and work before or after its time is not looked at.
#[test]
fn a_campaign_looks_at_its_own_decisions_only() {
    let rig = rig();
    let (team, other) = (rig.routing_pool("p", json!({})), rig.routing_pool("q", json!({})));
    let agent = rig.member(team, "a", json!({}));
    rig.member(other, "b", json!({}));
    let later = crate::words::time::Micros(rig.at().0 + 60_000_000);
    rig.campaign(team, "round_robin", json!({"starts_at": later.to_string()}));
    let ends = rig.campaign(team, "random", json!({"ends_at": later.to_string()}));
    rig.route_in(other, json!({}));
    let manual =
        json!({"work": {"kind": "t"}, "pool_id": team.to_string(), "recipient_id": agent.to_string()});
    assert_eq!(word(&rig.route(&manual)), "assigned");
    assert_eq!(rig.pending(), 0);
    rig.route_in(team, json!({}));
    assert_eq!(rig.pending(), 1);
    rig.look_on();
    rig.pass_time(60_000);
    rig.route_in(team, json!({}));
    rig.look_on();
    assert_eq!(rig.tally(ends).n, 1);
    assert_eq!(rig.shown(ends)["status"], "stopped");
    // Started again it counts from nothing.
    let outcome = rig.patch_campaign(ends, json!({"status": "running", "ends_at": null}));
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    assert_eq!(
        (rig.tally(ends).n, rig.shown(ends)["status"].as_str()),
        (0, Some("running"))
    );
}

/// At most four at a time, none of another name, pool or strategy that is not there; what runs is not changed.
#[test]
fn campaigns_are_refused_with_a_code() {
    let rig = rig();
    let team = rig.routing_pool("p", json!({}));
    let strategies = [
        "round_robin",
        "random",
        "least_utilized",
        "smooth_weighted_round_robin",
    ];
    let ids = strategies.map(|strategy| rig.campaign(team, strategy, json!({})));
    let body = |name: &str, strategy: &str, status: &str| json!({"name": name, "pool_id": team.to_string(), "candidate": {"strategy": strategy}, "status": status});
    let (draft, outcome) = rig.try_campaign(body("fifth", "random", "draft"));
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    let fifth = rig.patch_campaign(draft, json!({"status": "running"}));
    assert_eq!(code(&fifth), "shadow_campaign.too_many");
    assert_eq!(
        code(&rig.try_campaign(body("random", "random", "draft")).1),
        "shadow_campaign.name_taken"
    );
    let (_, unknown) = rig.try_campaign(body("x", "no_such", "draft"));
    let Outcome::Refused(Refusal::Invalid(faults)) = &unknown else {
        panic!("{unknown:?}");
    };
    assert!(faults[0].pointer.starts_with("/candidate/"), "{faults:?}");
    let changed = rig.patch_campaign(ids[0], json!({"candidate": {"strategy": "random"}}));
    assert_eq!(code(&changed), "shadow_campaign.running");
    rig.patch_campaign(ids[0], json!({"status": "stopped"}));
    let outcome = rig.patch_campaign(draft, json!({"status": "running"}));
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    // The recipient pool goes, and what looked at it stops and says why.
    rig.declare(move |tx| crate::engine::changes::recipient_pools::delete(tx, &me(), team, false).unwrap());
    let stopped: BTreeSet<_> = ids
        .iter()
        .map(|id| rig.shown(*id)["status"].to_string())
        .collect();
    assert_eq!(stopped, BTreeSet::from(["\"stopped\"".to_owned()]));
    assert_eq!(rig.shown(draft)["stop_reason"], "its pool was deleted");
    rig.assert_clean();
}
