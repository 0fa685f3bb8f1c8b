//! Live routing among the work: decisions, what people do with them, what time does, queues that are gone through, a campaign
//! that looks on.

use ductor::domain::routing::ask;
use ductor::domain::routing::objects::{PipelineMode, RecipientState};
use ductor::domain::routing::pass::Request;
use ductor::domain::routing::turns::Served;
use ductor::engine::changes::declared::{Outcome, Wisher};
use ductor::engine::changes::routing::assignments::{self, Act};
use ductor::engine::changes::routing::route::{self, Wish};
use ductor::engine::changes::routing::shelf::Shelf;
use ductor::engine::changes::routing::world::{StoreWorld, Tenancy};
use ductor::engine::changes::routing::{drain, shadows, timers};
use ductor::engine::changes::{campaigns, recipient_pools, recipients};
use ductor::store::tables::ASSIGNMENTS;
use ductor::store::{Rows, Store, StoreError, Tx};
use ductor::words::ids::{
    AssignmentId, CampaignId, DecisionId, RecipientId, RecipientPoolId, TenantId, WorkId,
};
use ductor::words::time::{Micros, Millis};
use serde_json::{Map, Value, json};

use super::chance::Chance;
use super::work::Change;

const TENANT: TenantId = TenantId::DEFAULT;
const DESK: RecipientPoolId = RecipientPoolId([0xd1; 16]);
const MEMBERS: [RecipientId; 3] = [
    RecipientId([0xe1; 16]),
    RecipientId([0xe2; 16]),
    RecipientId([0xe3; 16]),
];
const TRIAL: CampaignId = CampaignId([0xc1; 16]);

fn me() -> Wisher {
    Wisher {
        tenant: TENANT,
        principal: "tester".to_owned(),
        egress: [].into(),
    }
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn done(outcome: &Outcome) {
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
}

/// Declares what work is routed through, once.
pub(crate) fn publish(tx: &mut Tx<'_>) -> Result<(), ductor::store::Abort> {
    if ductor::store::routing_objects::recipient_pool(tx, TENANT, DESK)?.is_some() {
        return Ok(());
    }
    let desk = json!({"name": "desk", "config": {"default_timeout": "2s", "queue_ttl_seconds": 30,
        "dedup": {"enabled": true, "key": "work.attributes.id", "window": "10s"}}});
    done(&recipient_pools::create(tx, &me(), DESK, fields(desk))?);
    for (at, id) in MEMBERS.into_iter().enumerate() {
        let body = json!({"name": format!("m{at}"), "weight": at + 1, "capacity": {"max_concurrent": 2}});
        done(&recipients::create(tx, &me(), DESK, id, fields(body))?);
    }
    let trial = json!({"name": "trial", "pool_id": DESK.to_string(), "status": "running",
        "candidate": {"strategy": "least_utilized"}});
    done(&campaigns::create(tx, &me(), TRIAL, fields(trial))?);
    Ok(())
}

/// The moment of one piece of work.
pub(crate) struct Stage<'a> {
    pub(crate) store: &'a Store,
    pub(crate) now: Millis,
}

impl Stage<'_> {
    /// Something that happens next.
    pub(crate) fn next(&self, chance: &mut Chance) -> Change {
        match chance.below(10) {
            0..=3 => self.route(chance),
            4..=6 => self.act(chance),
            7 => self.turn(),
            8 => self.look_on(),
            _ => state(chance),
        }
    }

    fn tenancy(&self) -> Tenancy {
        self.store
            .read(|tx| Tenancy::of(tx, TENANT, PipelineMode::Linear))
            .expect("a readable store")
    }

    fn request(&self, chance: &mut Chance) -> Request {
        let mut body = json!({"pool_id": DESK.to_string(), "work": {
            "kind": "t", "priority": chance.below(10), "attributes": {"id": chance.below(40).to_string()}}});
        if chance.once_in(4) {
            // Whoever claims it first has it; nobody does here, so that it ends by its time.
            body["strategy"] = json!("shark_tank");
        }
        let now = Micros::from(self.now);
        ask::read(&fields(body), now, WorkId::fresh()).expect("a good request")
    }

    fn route(&self, chance: &mut Chance) -> Change {
        let (tenant, cache) = (self.tenancy(), Shelf::default());
        let wish = Wish::fresh(self.request(chance), DecisionId::fresh());
        let now = Micros::from(self.now);
        // Either all is drawn up before, or its texts are made beside the change.
        let is_drawn_up = chance.once_in(2);
        let judged = self.store.read(|tx| {
            let world = StoreWorld::new(tx, &cache, &tenant)?;
            let judged = route::judge(&world, &wish, now)?;
            Ok::<_, StoreError>(if is_drawn_up {
                judged.drawn_up(&world, &wish)
            } else {
                judged
            })
        });
        let judged = judged.expect("a readable store");
        Box::new(move |tx| {
            if judged.outcome.is_ok() {
                route::commit(tx, &cache, &tenant, &wish, Some(&judged))?;
            }
            Ok(None)
        })
    }

    fn act(&self, chance: &mut Chance) -> Change {
        let all = self
            .store
            .read(|tx| tx.scan(&ASSIGNMENTS, &(TENANT,), None, usize::MAX));
        let live: Vec<AssignmentId> = all
            .expect("a readable store")
            .into_iter()
            .filter(|(_, one)| one.state.is_live())
            .map(|((_, id), _)| id)
            .collect();
        let Some(id) = live.get(chance.below(live.len().max(1))).copied() else {
            return self.route(chance);
        };
        let reason = "not mine".to_owned();
        let act = match chance.below(6) {
            0 => Act::Accept,
            1 => Act::Renew,
            2 => Act::Reject { reason },
            3 => Act::Return {
                reason,
                reroute: chance.once_in(2),
            },
            _ => Act::Complete {
                value_micro: Some(500_000),
                result: None,
            },
        };
        Box::new(move |tx| {
            assignments::act(tx, TENANT, id, &act, "tester")?;
            Ok(None)
        })
    }

    /// What is due, or one part of a queue that is stirred.
    fn turn(&self) -> Change {
        let (tenant, cache) = (self.tenancy(), Shelf::default());
        let now = Micros::from(self.now);
        let due = self
            .store
            .read(|tx| timers::due(tx, now))
            .expect("a readable store");
        if !due.now.is_empty() {
            return Box::new(move |tx| {
                timers::fire(tx, &due.now)?;
                Ok(None)
            });
        }
        let found = self.store.read(|tx| {
            let Some(walk) = drain::walks(tx, &mut Served::default(), 1)?.into_iter().next() else {
                return Ok(None);
            };
            let tried = drain::look(tx, &cache, &tenant, &walk, now)?;
            Ok(Some((walk, tried)))
        });
        let found = found.expect("a readable store");
        Box::new(move |tx| {
            if let Some((walk, tried)) = &found {
                drain::commit(tx, &cache, &tenant, walk, tried)?;
            }
            Ok(None)
        })
    }

    fn look_on(&self) -> Change {
        let looked = self.store.read(shadows::look).expect("a readable store");
        Box::new(move |tx| {
            shadows::commit(tx, &looked)?;
            Ok(None)
        })
    }
}

fn state(chance: &mut Chance) -> Change {
    let id = chance.one_of(&MEMBERS);
    let state = chance.one_of(&[
        RecipientState::Available,
        RecipientState::Available,
        RecipientState::Busy,
        RecipientState::Paused,
    ]);
    Box::new(move |tx| {
        recipients::set_state(tx, &me(), id, state)?;
        Ok(None)
    })
}
