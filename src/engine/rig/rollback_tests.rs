//! What was rolled back is never decided by: neither by its own objects, nor under their number, which the next change gets.

use serde_json::{Value, json};

use super::routing_stage::{RoutingRig, me, rig};
use super::stage::TENANT;
use crate::engine::changes::recipients;
use crate::engine::changes::routing::route::{self, Routed, Wish};
use crate::engine::changes::routing::world::Tenancy;
use crate::store::{Abort, ChangeError};
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId};

fn renamed(rig: &RoutingRig, of: RecipientPoolId, agent: RecipientId, name: &'static str, fails: bool) {
    let (shelf, wish) = (
        rig.engine.routing.clone(),
        Wish::fresh(
            rig.request(&json!({"work": {"kind": "t"}, "pool_id": of.to_string()})),
            DecisionId::fresh(),
        ),
    );
    let tenancy: Tenancy = rig.wait(rig.engine.tenancy(TENANT)).unwrap();
    let changed: Result<(), ChangeError> = rig.engine.store.change_blocking("rename", move |tx| {
        let fields = json!({"name": name});
        let fields = fields.as_object().cloned().unwrap_or_default();
        recipients::patch(tx, &me(), agent, fields)?;
        // The same turn decides over it.
        let routed = route::commit(tx, &shelf, &tenancy, &wish, None)?;
        let Routed::Decided(written) = routed else {
            panic!("{routed:?}");
        };
        assert_eq!(written.decision.explanation.candidates[0].recipient.name, name);
        assert!(!fails, "a planned defect");
        Ok::<(), Abort>(())
    });
    assert_eq!(changed.is_err(), fails, "{changed:?}");
}

fn name_in_decisions(rig: &RoutingRig, of: RecipientPoolId) -> Value {
    let written = rig.route_in(of, json!({}));
    json!(written.decision.explanation.candidates[0].recipient.name)
}

#[test]
fn what_was_rolled_back_is_never_decided_by() {
    let rig = rig();
    let team = rig.routing_pool("team", json!({}));
    let agent = rig.member(team, "first", json!({}));
    assert_eq!(name_in_decisions(&rig, team), "first");
    renamed(&rig, team, agent, "ghost", true);
    assert_eq!(name_in_decisions(&rig, team), "first");
    // The next change has the number of the one that never was.
    renamed(&rig, team, agent, "second", false);
    for _ in 0..2 {
        assert_eq!(name_in_decisions(&rig, team), "second");
    }
    renamed(&rig, team, agent, "ghost", true);
    let body = json!({"name": "third"});
    let fields = body.as_object().cloned().unwrap();
    rig.declare(move |tx| recipients::patch(tx, &me(), agent, fields.clone()).unwrap());
    assert_eq!(name_in_decisions(&rig, team), "third");
    rig.assert_clean();
}
