//! Worlds in memory, built in a line or two.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::domain::routing::candidate::{Candidate, Learned};
use crate::domain::routing::known::Known;
use crate::domain::routing::live::Live;
use crate::domain::routing::objects::{
    Action, ActionKind, BusyPolicy, Explain, FallbackKind, Location, PipelineMode, Recipient, RecipientPool,
    RecipientPoolConfig, RecipientState, RoutingMode, Rule, Status, Trait, TraitOp, TraitType,
};
use crate::domain::routing::pass::{Ends, Passed, Request, route};
use crate::domain::routing::ready::{Prepared, ReadyRule};
use crate::domain::routing::sight::{Sight, Times};
use crate::domain::routing::strategies::contract::{Eligible, Memory, Round, Selection};
use crate::domain::routing::strategies::dispatch;
use crate::domain::routing::work::Work;
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId, RuleId, WorkId};
use crate::words::time::Micros;

/// The time of a decision unless a test says otherwise.
pub(crate) const NOW: Micros = Micros(1_764_000_000_000_000);

fn numbered(kind: u8, number: u32) -> [u8; 16] {
    let mut id = [0; 16];
    id[0] = kind;
    id[12..].copy_from_slice(&number.to_be_bytes());
    id
}

/// The id of a recipient pool.
pub(crate) fn pool_id(number: u32) -> RecipientPoolId {
    RecipientPoolId(numbered(1, number))
}

/// The id of a recipient.
pub(crate) fn recipient_id(number: u32) -> RecipientId {
    RecipientId(numbered(2, number))
}

/// The id of a decision.
pub(crate) fn decision_id(number: u32) -> DecisionId {
    DecisionId(numbered(3, number))
}

/// A recipient pool with nothing set.
pub(crate) fn recipient_pool(number: u32) -> RecipientPool {
    RecipientPool {
        id: pool_id(number),
        name: format!("pool-{number}"),
        description: String::new(),
        status: Status::Active,
        strategy: None,
        config: RecipientPoolConfig {
            default_strategy: None,
            default_strategy_pipeline: None,
            default_recipe: None,
            strategy_pipelines: BTreeMap::new(),
            strategy_options: BTreeMap::new(),
            routing_mode: RoutingMode::Auto,
            pipeline_mode: PipelineMode::Inherit,
            default_timeout_us: 0,
            max_routing_depth: 3,
            queue_ttl_us: 3_600_000_000,
            sharding: None,
            dedup: None,
            flow_control: None,
            fallback: FallbackKind::Queue,
            overflow: None,
            catchall: None,
            catchall_delay_us: 0,
            allow_over_capacity: false,
            over_capacity_budget_micro: 0,
            sla: None,
            claim_queue: None,
            kill_switch: None,
            busy_policy: BusyPolicy::Exclude,
            claim_budget: None,
            exploration_epsilon: 0.0,
            age_step_us: 0,
            explain: Explain::First,
        },
        parent: None,
        metadata: BTreeMap::new(),
        record_version: 0,
        created_at: NOW,
        updated_at: NOW,
    }
}

/// A member with nothing set.
pub(crate) fn candidate(number: u32, name: &str) -> Candidate {
    Candidate {
        recipient: Arc::new(Recipient {
            id: recipient_id(number),
            name: name.to_owned(),
            kind: "agent".to_owned(),
            members_of: vec![pool_id(1)],
            status: Status::Active,
            weight_micro: 1_000_000,
            max_concurrent: 10,
            daily_limit: 0,
            attributes: Map::new(),
            tags: Vec::new(),
            schedule: None,
            timezone: "UTC".to_owned(),
            location: None,
            external_id: None,
            metadata: BTreeMap::new(),
            record_version: 0,
            created_at: NOW,
            updated_at: NOW,
        }),
        live: Live::new(RecipientState::Available, NOW),
        learned: Learned::default(),
        bid: None,
    }
}

/// Work with these attributes.
pub(crate) fn work(attributes: &Value) -> Work {
    Work {
        id: WorkId(numbered(4, 1)),
        external_id: None,
        kind: "ticket".to_owned(),
        source: None,
        priority: 5,
        attributes: attributes.as_object().cloned().unwrap_or_default(),
        tags: Vec::new(),
        units: 1,
        location: None,
        timezone: None,
        deadline_at: None,
        parent_decision_id: None,
        consent: Vec::new(),
        created_at: NOW,
    }
}

/// A rule of a recipient pool, or of the tenant.
pub(crate) fn rule(name: &str, attached_to: Option<u32>, expression: &str, action: Action) -> Rule {
    let number = name.bytes().fold(0_u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    Rule {
        id: RuleId(numbered(5, number)),
        name: name.to_owned(),
        description: String::new(),
        attached_to: attached_to.map(pool_id),
        priority: 100,
        expression: expression.to_owned(),
        action,
        enabled: true,
        valid_from: None,
        valid_until: None,
        record_version: 0,
        created_at: NOW,
        updated_at: NOW,
    }
}

/// What a rule does.
pub(crate) fn action(kind: ActionKind, target: Option<u32>) -> Action {
    Action {
        kind,
        target: target.map(pool_id),
        boost: 0.0,
        reason: None,
    }
}

/// A required trait.
pub(crate) fn required(key: &str, op: TraitOp) -> Trait {
    Trait {
        key: key.to_owned(),
        kind: TraitType::Set,
        op,
        required: true,
        relax_after_us: 0,
    }
}

/// A world whose writes are made, so that one decision follows another.
#[derive(Debug, Clone)]
pub(crate) struct Rig {
    pub(crate) world: Known,
    pub(crate) now: Micros,
    pub(crate) next: u32,
    pub(crate) request: Request,
}

impl Rig {
    /// One recipient pool (number 1) with members of these names, numbered from 1, and work that asks for it.
    pub(crate) fn new(strategy: &str, names: &[&str]) -> Rig {
        let mut rig = Rig {
            world: Known::new("default"),
            now: NOW,
            next: 1,
            request: Request::new(work(&json!({}))),
        };
        rig.request.recipient_pool = Some(pool_id(1));
        let mut first = recipient_pool(1);
        first.strategy = Some(strategy.to_owned()).filter(|strategy| !strategy.is_empty());
        rig.add_pool(first);
        let members = (1..)
            .zip(names)
            .map(|(number, name)| candidate(number, name))
            .collect();
        rig.world.candidates.insert(pool_id(1), members);
        rig
    }

    /// Adds or replaces a recipient pool, without rules.
    pub(crate) fn add_pool(&mut self, recipient_pool: RecipientPool) {
        self.add_pool_with(recipient_pool, Vec::new());
    }

    /// Adds or replaces a recipient pool.
    pub(crate) fn add_pool_with(&mut self, recipient_pool: RecipientPool, rules: Vec<Rule>) {
        let (id, name) = (recipient_pool.id, recipient_pool.name.clone());
        self.world.names.insert(name, Some(id));
        let prepared = Prepared::new(recipient_pool, rules);
        self.world.recipient_pools.insert(id, Some(Arc::new(prepared)));
    }

    /// Changes a recipient pool; its rules stay.
    pub(crate) fn configure(&mut self, number: u32, change: impl FnOnce(&mut RecipientPool)) {
        let known = self.world.recipient_pools[&pool_id(number)]
            .clone()
            .expect("it is there");
        let mut changed = known.recipient_pool.clone();
        change(&mut changed);
        let rules = known.rules.iter().map(|ready| ready.rule.clone()).collect();
        self.add_pool_with(changed, rules);
    }

    /// Attaches rules to recipient pool 1.
    pub(crate) fn attach(&mut self, rules: Vec<Rule>) {
        let known = self.world.recipient_pools[&pool_id(1)]
            .clone()
            .expect("it is there");
        self.add_pool_with(known.recipient_pool.clone(), rules);
    }

    /// The rules of the tenant.
    pub(crate) fn tenant_rules(&mut self, rules: Vec<Rule>) {
        self.world.tenant_rules = Arc::new(ReadyRule::all(rules));
    }

    /// Options of a strategy of recipient pool 1.
    pub(crate) fn options(&mut self, strategy: &str, options: &Value) {
        let options = options.as_object().cloned().expect("options are an object");
        let key = strategy.to_owned();
        self.configure(1, |known| {
            drop(known.config.strategy_options.insert(key, options));
        });
    }

    /// Changes a member of recipient pool 1 by its name.
    pub(crate) fn member(&mut self, name: &str, change: impl FnOnce(&mut Recipient, &mut Live)) {
        let members = self
            .world
            .candidates
            .get_mut(&pool_id(1))
            .expect("it has members");
        let member = members
            .iter_mut()
            .find(|member| member.recipient.name == name)
            .expect("a member");
        change(Arc::make_mut(&mut member.recipient), &mut member.live);
    }

    /// Weights of all members of recipient pool 1, in their order.
    pub(crate) fn weights(&mut self, weights: &[u64]) {
        let members = self
            .world
            .candidates
            .get_mut(&pool_id(1))
            .expect("it has members");
        for (member, weight) in members.iter_mut().zip(weights) {
            Arc::make_mut(&mut member.recipient).weight_micro = weight * 1_000_000;
        }
    }

    /// Decides and writes nothing.
    pub(crate) fn look(&self) -> Passed {
        route(&self.request, self.now, decision_id(self.next), &self.world).expect("a decision")
    }

    /// Decides and writes what must be written.
    pub(crate) fn route(&mut self) -> Passed {
        let passed = self.look();
        self.next += 1;
        for (id, stage, state) in &passed.states {
            self.world
                .states
                .insert((*id, stage.clone()), Arc::new(state.clone()));
        }
        for (id, stage, key, holder) in &passed.bound {
            self.world
                .holders
                .insert((*id, stage.clone(), key.clone()), holder.clone());
        }
        if let Ends::Assigned(id) = &passed.ends {
            let members = self.world.candidates.get_mut(id).expect("it has members");
            for winner in &passed.decision.winners {
                let member = members
                    .iter_mut()
                    .find(|member| member.recipient.id == winner.recipient);
                let live = &mut member.expect("a member").live;
                live.current += 1;
                live.units += u64::from(self.request.work.units);
                live.last_assigned_at = Some(self.now);
            }
        }
        passed
    }

    /// The name of the one winner; `-` without one.
    pub(crate) fn winner(&self, passed: &Passed) -> String {
        let id = passed.decision.winners.first().map(|winner| winner.recipient);
        let all = self.world.candidates.values().flatten();
        let found = all
            .map(|member| &member.recipient)
            .find(|recipient| Some(recipient.id) == id);
        found.map_or("-".to_owned(), |recipient| recipient.name.clone())
    }

    /// The winners of so many decisions, one after the other; each ends at once.
    pub(crate) fn winners(&mut self, count: usize) -> String {
        let mut names = Vec::new();
        for _ in 0..count {
            let passed = self.route();
            names.push(self.winner(&passed));
            for member in self.world.candidates.values_mut().flatten() {
                member.live.current = 0;
            }
            self.now = self.now.plus(1_000);
        }
        names.join(" ")
    }
}

impl Rig {
    /// Work and every member of recipient pool 1 have a place.
    pub(crate) fn place_everybody(&mut self) {
        let place = Location {
            latitude: 36.12,
            longitude: -86.67,
        };
        self.request.work.location = Some(place);
        for member in self
            .world
            .candidates
            .get_mut(&pool_id(1))
            .expect("it has members")
        {
            Arc::make_mut(&mut member.recipient).location = Some(place);
        }
    }

    /// The strategy of recipient pool 1 alone, over all of its members: for tests of many thousand picks.
    pub(crate) fn select(&self, decision: DecisionId) -> Selection {
        let prepared = self.world.recipient_pools[&pool_id(1)]
            .as_ref()
            .expect("it is there");
        let pipeline = prepared.pipeline.as_ref().expect("it is admitted");
        let members = &self.world.candidates[&pool_id(1)];
        let eligible: Vec<Eligible> = members
            .iter()
            .enumerate()
            .map(|(index, candidate)| Eligible {
                candidate,
                index,
                weight: candidate.recipient.weight_micro.cast_signed(),
                score: 0.0,
                boost: 0.0,
                over: false,
            })
            .collect();
        let times = Times {
            now: self.now,
            waited_us: 0,
            attempt: 1,
        };
        let round = Round {
            work: &self.request.work,
            now: self.now,
            hop_since: self.now,
            decision,
            sight: &Sight::of_work(&self.request.work, times, "default"),
            traits: &self.world.traits,
            members,
            memory: &Memory::default(),
            forced: None,
        };
        dispatch::select(&pipeline.pick.used, &eligible, &round)
    }
}
