//! The tests of a bundle: work is decided over what there would be. Everybody is available and has nothing to do, so that a test
//! says the same at any time of a desk's day; windows of schedules are those of the test's `at`, or of now.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::document::Test;
use super::planning::STAMP;
use super::topology::Topology;
use crate::domain::routing::ask;
use crate::domain::routing::candidate::{Candidate, Learned};
use crate::domain::routing::decision::Decision;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::known::Known;
use crate::domain::routing::live::Live;
use crate::domain::routing::objects::{RecipientState, Rule};
use crate::domain::routing::pass::{Request, Stopped, route};
use crate::domain::routing::read;
use crate::domain::routing::ready::{Prepared, ReadyRule};
use crate::words::ids::{DecisionId, RecipientPoolId, WorkId, digest_of_parts};
use crate::words::time::Micros;

/// What came out of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    /// Its name.
    pub name: String,
    /// It is as was expected.
    pub ok: bool,
    /// What came out, in words; and what was expected, where that is something else.
    pub detail: String,
}

/// Runs the tests; the faults of work that cannot be routed at all.
pub fn run(after: &Topology, tests: &[Test], tenant: &str, now: Micros) -> Result<Vec<Tested>, Vec<Fault>> {
    let (mut tested, mut faults) = (Vec::new(), Vec::new());
    if tests.is_empty() {
        return Ok(tested);
    }
    let world = world_of(after, tenant, now);
    for (index, test) in tests.iter().enumerate() {
        match one(&world, test, test.at.unwrap_or(now)) {
            Ok(decision) => tested.push(judge(after, test, &decision)),
            Err(wrong) => faults.extend(wrong.into_iter().map(|fault| {
                let pointer = format!("/tests/{index}{}", fault.pointer);
                Fault { pointer, ..fault }
            })),
        }
    }
    if faults.is_empty() {
        Ok(tested)
    } else {
        Err(faults)
    }
}

/// The tests that fail, as faults of the document.
pub fn failing(tested: &[Tested]) -> Vec<Fault> {
    let all = tested.iter().enumerate();
    all.filter(|(_, test)| !test.ok)
        .map(|(index, test)| {
            let detail = format!("{}: {}", test.name, test.detail);
            Fault::new(format!("/tests/{index}"), "bundle.test_failed", detail)
        })
        .collect()
}

fn one(world: &Known, test: &Test, now: Micros) -> Result<Decision, Vec<Fault>> {
    // The same test draws the same.
    let id = digest_of_parts(&["test of a bundle", &test.name]);
    let work = ask::read_work(&test.work, now, WorkId(id))?;
    let mut request = Request::new(work);
    request.dry_run = true;
    match route(&request, now, DecisionId(id), world) {
        Ok(passed) => Ok(passed.decision),
        Err(Stopped::Invalid(faults)) => Err(faults),
        Err(Stopped::World(never)) => match never {},
        Err(Stopped::Refused(_)) => {
            let fault = Fault::new("", "bundle.test_failed", "the work cannot be decided");
            Err(vec![fault])
        }
    }
}

fn judge(after: &Topology, test: &Test, decision: &Decision) -> Tested {
    let outcome = decision.outcome.word();
    let recipient_pool = decision
        .recipient_pool
        .as_ref()
        .map(|chosen| chosen.name.as_str());
    let winners: Vec<&str> = decision
        .winners
        .iter()
        .filter_map(|winner| after.recipients.get(&winner.recipient))
        .map(|one| one.name.as_str())
        .collect();
    let expect = &test.expect;
    let mut missed = Vec::new();
    if let Some(wanted) = expect.outcome.as_deref().filter(|wanted| *wanted != outcome) {
        missed.push(format!("outcome {wanted}"));
    }
    let other_pool = |wanted: &&str| recipient_pool != Some(*wanted);
    if let Some(wanted) = expect.recipient_pool.as_deref().filter(other_pool) {
        missed.push(format!("pool {wanted}"));
    }
    let other_winner = |wanted: &&str| !winners.contains(wanted);
    if let Some(wanted) = expect.winner.as_deref().filter(other_winner) {
        missed.push(format!("winner {wanted}"));
    }
    let came = format!(
        "{outcome}, pool {}, winner {}: {}",
        recipient_pool.unwrap_or("-"),
        if winners.is_empty() {
            "-".to_owned()
        } else {
            winners.join(", ")
        },
        decision.summary
    );
    Tested {
        name: test.name.clone(),
        ok: missed.is_empty(),
        detail: if missed.is_empty() {
            came
        } else {
            format!("expected {}; it was {came}", missed.join(", "))
        },
    }
}

/// What there would be, as a pass reads it.
fn world_of(after: &Topology, tenant: &str, now: Micros) -> Known {
    let mut world = Known::new(tenant);
    let (mut of_tenant, mut of_pools) = (Vec::new(), BTreeMap::<RecipientPoolId, Vec<Rule>>::new());
    for (id, one) in &after.rules {
        let rule = read::rule(*id, STAMP, one.set.clone()).object;
        match rule.attached_to {
            None => of_tenant.push(rule),
            Some(of) => of_pools.entry(of).or_default().push(rule),
        }
    }
    world.tenant_rules = Arc::new(ReadyRule::all(of_tenant));
    for (id, one) in &after.recipient_pools {
        let found = read::recipient_pool(*id, STAMP, None, one.set.clone()).object;
        let rules = of_pools.remove(id).unwrap_or_default();
        world.names.insert(one.name.clone(), Some(*id));
        world
            .recipient_pools
            .insert(*id, Some(Arc::new(Prepared::new(found, rules))));
    }
    for (id, one) in &after.recipients {
        let found = read::recipient(*id, STAMP, one.members_of.clone(), one.set.clone()).object;
        let candidate = Candidate {
            recipient: Arc::new(found),
            live: Live::new(RecipientState::Available, now),
            learned: Learned::default(),
            bid: None,
        };
        for member_of in &one.members_of {
            let members = world.candidates.entry(*member_of).or_default();
            members.push(candidate.clone());
        }
    }
    let traits = after.traits.iter();
    let traits = traits.map(|(key, one)| read::declared_trait(key, one.set.clone()).object);
    world.traits = Arc::new(traits.collect());
    world
}

/// As the wire has it.
impl From<&Tested> for Value {
    fn from(tested: &Tested) -> Value {
        let mut view = Map::new();
        view.insert("name".to_owned(), Value::from(tested.name.as_str()));
        view.insert("ok".to_owned(), Value::from(tested.ok));
        view.insert("detail".to_owned(), Value::from(tested.detail.as_str()));
        Value::from(view)
    }
}
