//! Recipient pools and recipients in a rig, work that is routed through them, and what becomes of it.

#![expect(
    clippy::needless_pass_by_value,
    reason = "bodies are made where they are used"
)]

use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Value, json};

use super::stage::{BEGIN, Rig, TENANT};
use crate::domain::routing::ask;
use crate::domain::routing::assignment::Assignment;
use crate::domain::routing::live::Live;
use crate::domain::routing::objects::RecipientState;
use crate::domain::routing::waiting::Waiting;
use crate::engine::changes::declared::{Outcome, Wisher};
use crate::engine::changes::remember::{Asked, Told};
use crate::engine::changes::routing::assignments::{Act, Acted};
use crate::engine::changes::routing::claims::Claimed;
use crate::engine::changes::routing::route::{Judged, Routed, Wish};
use crate::engine::changes::routing::write::Written;
use crate::engine::changes::routing::{assignments, waiting};
use crate::engine::changes::{recipient_pools, recipients};
use crate::engine::router::{self, Router};
use crate::store::table::Rows;
use crate::store::tables as all;
use crate::store::{Tx, routing_live};
use crate::words::ids::{
    AssignmentId, ClaimQueueId, DecisionId, RecipientId, RecipientPoolId, WaitingId, WorkId,
};
use crate::words::time::{Clock, Micros};

/// Who does everything here.
pub(super) fn me() -> Wisher {
    Wisher {
        tenant: TENANT,
        principal: "tester".to_owned(),
        egress: ["127.0.0.0/8".parse().unwrap()].into(),
    }
}

fn object(value: &Value) -> serde_json::Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A rig without jobs, for routing.
pub(super) struct RoutingRig(Rig);

/// One.
pub(super) fn rig() -> RoutingRig {
    RoutingRig(Rig::new(&[], &[]))
}

impl Deref for RoutingRig {
    type Target = Rig;

    fn deref(&self) -> &Rig {
        &self.0
    }
}

impl RoutingRig {
    pub(super) fn declare(&self, mut change: impl FnMut(&mut Tx<'_>) -> Outcome + Send + 'static) {
        let outcome = self.change(move |tx| Ok(change(tx)));
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    }

    /// A recipient pool with this configuration.
    pub(super) fn routing_pool(&self, name: &str, config: Value) -> RecipientPoolId {
        let id = RecipientPoolId::fresh();
        let body = object(&json!({"name": name, "config": config}));
        self.declare(move |tx| recipient_pools::create(tx, &me(), id, body.clone()).unwrap());
        id
    }

    /// Changes what is sent of a recipient pool.
    pub(super) fn patch_pool(&self, id: RecipientPoolId, body: Value) {
        let body = object(&body);
        self.declare(move |tx| recipient_pools::patch(tx, &me(), id, body.clone()).unwrap());
    }

    /// A member of a recipient pool.
    pub(super) fn member(&self, of: RecipientPoolId, name: &str, more: Value) -> RecipientId {
        let id = RecipientId::fresh();
        let mut body = object(&more);
        body.insert("name".to_owned(), json!(name));
        self.declare(move |tx| recipients::create(tx, &me(), of, id, body.clone()).unwrap());
        id
    }

    /// A recipient is there or not.
    pub(super) fn state(&self, id: RecipientId, state: RecipientState) {
        self.declare(move |tx| recipients::set_state(tx, &me(), id, state).unwrap());
    }

    /// What a recipient does now.
    pub(super) fn live(&self, id: RecipientId) -> Live {
        self.read(|tx| routing_live::live(tx, TENANT, id)).unwrap()
    }

    /// Now, as routing sees it.
    pub(super) fn at(&self) -> Micros {
        Micros::from(self.wall())
    }

    /// A body as it is read.
    pub(super) fn request(&self, body: &Value) -> crate::domain::routing::pass::Request {
        ask::read(body.as_object().unwrap(), self.at(), WorkId::fresh()).unwrap()
    }

    /// Routes, and says what became of it.
    pub(super) fn try_route(&self, body: &Value) -> Routed {
        let tenancy = self.wait(self.engine.tenancy(TENANT)).unwrap();
        let told = self.wait(router::route(
            &self.engine,
            tenancy,
            self.request(body),
            Asked::plain(),
        ));
        let Ok(Told::Now(routed, _)) = told else {
            panic!("{told:?}");
        };
        routed
    }

    /// Routes work that must be decided.
    pub(super) fn route(&self, body: &Value) -> Written {
        let routed = self.try_route(body);
        let Routed::Decided(written) = routed else {
            panic!("{routed:?}");
        };
        *written
    }

    /// Work of a kind through a recipient pool.
    pub(super) fn route_in(&self, id: RecipientPoolId, work: Value) -> Written {
        let mut work = work;
        work["kind"] = json!("ticket");
        self.route(&json!({"work": work, "pool_id": id.to_string()}))
    }

    /// A dry run.
    pub(super) fn dry(&self, body: &Value) -> Judged {
        let tenancy = self.wait(self.engine.tenancy(TENANT)).unwrap();
        let wish = Wish::fresh(self.request(body), DecisionId::fresh());
        self.wait(router::judge(&self.engine, Arc::new(tenancy), wish))
            .unwrap()
    }

    /// Everything that the loop does now; when it looks again.
    pub(super) fn settle(&self) -> Option<Micros> {
        self.wait(Router::new(self.engine.clone()).settle()).unwrap()
    }

    /// Lets time pass and the loop work.
    pub(super) fn pass_time(&self, ms: u64) {
        self.clock().advance(ms);
        self.settle();
    }

    /// Somebody does something with an assignment.
    pub(super) fn act(&self, id: AssignmentId, act: Act) -> Acted {
        self.change(move |tx| assignments::act(tx, TENANT, id, &act, "tester"))
    }

    /// One assignment.
    pub(super) fn assignment(&self, id: AssignmentId) -> Assignment {
        self.read(|tx| routing_live::assignment(tx, TENANT, id)).unwrap()
    }

    /// All assignments, oldest first.
    pub(super) fn assignments(&self) -> Vec<Assignment> {
        let rows = self.read(|tx| tx.scan(&all::ASSIGNMENTS, &(TENANT,), None, usize::MAX));
        let mut found: Vec<Assignment> = rows.into_iter().map(|(_, row)| row).collect();
        found.sort_by_key(|one| one.seq);
        found
    }

    /// What waits in a recipient pool.
    pub(super) fn waiting(&self, id: RecipientPoolId) -> Vec<Waiting> {
        self.read(|tx| waiting::items(tx, TENANT, id, None, usize::MAX))
    }

    /// Outcomes of all decisions, oldest first.
    pub(super) fn outcomes(&self) -> Vec<String> {
        let rows = self.read(|tx| tx.scan(&all::DECISIONS, &(TENANT,), None, usize::MAX));
        rows.into_iter().map(|(_, row)| row.outcome).collect()
    }

    /// Claims an offer, or the next one.
    pub(super) fn claim(
        &self,
        queue: ClaimQueueId,
        item: Option<WaitingId>,
        recipient: RecipientId,
    ) -> Claimed {
        let tenancy = self.wait(self.engine.tenancy(TENANT)).unwrap();
        let told = self.wait(router::claim(
            &self.engine,
            tenancy,
            (queue, item),
            recipient,
            Asked::plain(),
        ));
        let Ok(Told::Now(claimed, _)) = told else {
            panic!("{told:?}");
        };
        claimed
    }

    /// All rows of all tables.
    pub(super) fn all_rows(&self) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
        let rows = |table| self.read(|tx| tx.raw_scan(table, &[], None, false, usize::MAX));
        (0..all::COUNT)
            .flat_map(|table| {
                rows(table)
                    .into_iter()
                    .map(move |(key, value)| (table, key, value))
            })
            .collect()
    }

    /// Milliseconds since this rig began.
    pub(super) fn elapsed_ms(&self) -> u64 {
        self.clock().now().wall.since(BEGIN)
    }
}

/// The outcome's word.
pub(super) fn word(written: &Written) -> &'static str {
    written.decision.outcome.word()
}

/// The only winner.
pub(super) fn winner(written: &Written) -> RecipientId {
    assert_eq!(written.decision.winners.len(), 1, "{:?}", written.decision);
    written.decision.winners[0].recipient
}

/// The assignment of the only winner.
pub(super) fn assigned(written: &Written) -> AssignmentId {
    winner(written);
    written.decision.winners[0].assignment.unwrap()
}
