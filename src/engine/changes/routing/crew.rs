//! Threads for the large checks of a decision.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::domain::routing::crew::{Crew, Part};

/// Threads for one check: more are of no use to a decision that others wait behind.
const HANDS_MAX: usize = 8;

/// As many threads as there are processors, but for one, which is left to the writer: of two that are busy the second one gave
/// nothing when it was measured (`benches/decisions.rs`), so there all is done by one. They end with the check.
pub struct Threads;

impl Crew for Threads {
    fn hands(&self) -> usize {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        processors.saturating_sub(1).clamp(1, HANDS_MAX)
    }

    fn run(&self, parts: Vec<Part<'_>>) {
        let others = parts.len().saturating_sub(1);
        let left = Mutex::new(parts);
        let work = || {
            loop {
                let part = left.lock().unwrap_or_else(PoisonError::into_inner).pop();
                match part {
                    Some(part) => part(),
                    None => break,
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..others {
                // Without another thread this one does it all.
                let builder = thread::Builder::new().name("check".to_owned());
                drop(builder.spawn_scoped(scope, work));
            }
            work();
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::domain::routing::candidate::{Candidate, Learned};
    use crate::domain::routing::crew::Hands;
    use crate::domain::routing::known::Known;
    use crate::domain::routing::live::Live;
    use crate::domain::routing::objects::{
        Action, ActionKind, Explain, PipelineMode, Recipient, RecipientPool, RecipientPoolConfig,
        RecipientState, Rule, Status,
    };
    use crate::domain::routing::pass::{Request, route};
    use crate::domain::routing::ready::Prepared;
    use crate::domain::routing::work::Work;
    use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId, RuleId, WorkId};
    use crate::words::time::Micros;

    const NOW: Micros = Micros(1_764_000_000_000_000);
    const HOME: RecipientPoolId = RecipientPoolId([1; 16]);

    #[test]
    fn every_part_is_run_once() {
        let done: Vec<AtomicUsize> = (0..50).map(|_| AtomicUsize::new(0)).collect();
        let parts = done.iter().map(|one| {
            let part = move || {
                one.fetch_add(1, Ordering::Relaxed);
            };
            Box::new(part) as Part<'_>
        });
        Threads.run(parts.collect());
        assert!(done.iter().all(|one| one.load(Ordering::Relaxed) == 1));
        Threads.run(Vec::new());
        assert!(Threads.hands() >= 1);
    }

    fn member(number: u16) -> Candidate {
        let mut id = [0; 16];
        id[14..].copy_from_slice(&number.to_be_bytes());
        let offline = number % 7 == 3;
        Candidate {
            recipient: Arc::new(Recipient {
                id: RecipientId(id),
                name: format!("r{number}"),
                kind: String::new(),
                members_of: vec![HOME],
                status: Status::Active,
                weight_micro: 1_000_000,
                max_concurrent: 1 + u32::from(number % 3),
                daily_limit: 0,
                attributes: Map::from_iter([("level".to_owned(), json!(number % 5))]),
                tags: vec![format!("t{}", number % 4)],
                schedule: None,
                timezone: "UTC".to_owned(),
                location: None,
                external_id: None,
                metadata: BTreeMap::new(),
                record_version: 0,
                created_at: NOW,
                updated_at: NOW,
            }),
            live: Live {
                current: u32::from(number % 2),
                ..Live::new(
                    if offline {
                        RecipientState::Offline
                    } else {
                        RecipientState::Available
                    },
                    NOW,
                )
            },
            learned: Learned::default(),
            bid: None,
        }
    }

    fn rule(expression: &str) -> Rule {
        Rule {
            id: RuleId([1; 16]),
            name: "dear".to_owned(),
            description: String::new(),
            attached_to: Some(HOME),
            priority: 1,
            expression: expression.to_owned(),
            action: Action {
                kind: ActionKind::Filter,
                target: None,
                boost: 0.0,
                reason: None,
            },
            enabled: true,
            valid_from: None,
            valid_until: None,
            record_version: 0,
            created_at: NOW,
            updated_at: NOW,
        }
    }

    fn decided(known: &Known, explain: Explain) -> String {
        let mut request = Request::new(Work {
            id: WorkId([4; 16]),
            external_id: None,
            kind: "ticket".to_owned(),
            source: None,
            priority: 5,
            attributes: Map::new(),
            tags: Vec::new(),
            units: 1,
            location: None,
            timezone: None,
            deadline_at: None,
            parent_decision_id: None,
            consent: Vec::new(),
            created_at: NOW,
        });
        request.recipient_pool = Some(HOME);
        request.explain = Some(explain);
        let passed = route(&request, NOW, DecisionId([3; 16]), known).expect("a decision");
        let decision = passed.decision.essence(Explain::All, false);
        format!(
            "{} {:?} {:?}",
            Value::Object(decision),
            passed.states,
            passed.rule_errors
        )
    }

    /// Test 54, with real threads: a rule that must be interpreted, and fails for some, over enough members to be cut.
    #[test]
    fn test_54_threads_decide_as_one_does() {
        for expression in [
            "recipient.tags.exists(t, t == 't1') || recipient.attributes.level > 2",
            "10 / recipient.attributes.level > 3 && recipient.tags.all(t, t != 't2')",
        ] {
            let recipient_pool = RecipientPool {
                id: HOME,
                name: "home".to_owned(),
                description: String::new(),
                status: Status::Active,
                strategy: None,
                config: RecipientPoolConfig::plain(),
                parent: None,
                metadata: BTreeMap::new(),
                record_version: 0,
                created_at: NOW,
                updated_at: NOW,
            };
            let mut known = Known::new("default");
            let prepared = Prepared::new(recipient_pool, [rule(expression)]);
            known.recipient_pools.insert(HOME, Some(Arc::new(prepared)));
            known.candidates.insert(HOME, (1..=1_500).map(member).collect());
            known.hands = Hands(&Three);
            for explain in [Explain::First, Explain::All] {
                known.pipeline_mode = PipelineMode::Linear;
                let linear = decided(&known, explain);
                known.pipeline_mode = PipelineMode::Dag;
                assert_eq!(decided(&known, explain), linear);
            }
        }
    }

    /// Threads, on a machine of one processor too.
    struct Three;

    impl Crew for Three {
        fn hands(&self) -> usize {
            3
        }

        fn run(&self, parts: Vec<Part<'_>>) {
            assert_eq!(parts.len(), 3);
            Threads.run(parts);
        }
    }
}
