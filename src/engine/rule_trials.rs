//! Rules are tried on invented work: what is stored of them is read in one snapshot, and each case is timed.

use std::sync::Arc;

use super::changes::routing::world::{Tenancy, live_of};
use super::core::Engine;
use crate::domain::routing::candidate::{Candidate, Learned};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::{ActionKind, RecipientPool};
use crate::domain::routing::ready::ReadyRule;
use crate::domain::routing::sight::{self, Sight, Times};
use crate::domain::routing::trial::{self, Case, Subject, Trial, Tried, Verdict};
use crate::expr::Program;
use crate::store::tables::RULES;
use crate::store::{Rows, StoreError, routing_objects};
use crate::words::time::Micros;

/// What came out of a case: the verdict, its time in microseconds, and whether that was expected.
pub type Outcome = (Verdict, u64, Option<bool>);

/// What is tried, compiled.
struct Subjected {
    program: Result<Program, String>,
    sees_recipient: bool,
    within: Option<RecipientPool>,
}

/// Tries a rule; the faults that only the store knows.
pub async fn test(
    engine: &Engine,
    tenancy: Tenancy,
    trial: Trial,
) -> Result<Result<Vec<Outcome>, Vec<Fault>>, StoreError> {
    let now = Micros::from(engine.now().wall);
    engine
        .read(move |tx| {
            let subjected = match subject(tx, &tenancy, &trial.tried)? {
                Ok(subjected) => subjected,
                Err(fault) => return Ok(Err(vec![fault])),
            };
            let (mut results, mut faults) = (Vec::new(), Vec::new());
            for (index, case) in trial.cases.iter().enumerate() {
                match candidate(tx, &tenancy, &subjected, case)? {
                    Ok(candidate) => {
                        results.push(timed(&subjected, &tenancy, case, candidate.as_ref(), now));
                    }
                    Err((code, detail)) => {
                        faults.push(Fault::new(format!("/cases/{index}/recipient"), code, detail));
                    }
                }
            }
            Ok(if faults.is_empty() {
                Ok(results)
            } else {
                Err(faults)
            })
        })
        .await
}

fn timed(
    subjected: &Subjected,
    tenancy: &Tenancy,
    case: &Case,
    candidate: Option<&Candidate>,
    now: Micros,
) -> Outcome {
    let times = Times {
        now,
        waited_us: 0,
        attempt: 1,
    };
    let mut sight = Sight::of_work(&case.work, times, &tenancy.name);
    if let Some(within) = &subjected.within {
        sight = sight.in_pool(within, 0, None);
    }
    let began = tokio::time::Instant::now();
    let verdict = trial::judge(&subjected.program, &sight, candidate);
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let ok = case.expect.map(|expect| expect == verdict.result);
    (verdict, micros, ok)
}

fn subject(
    rows: &mut impl Rows,
    tenancy: &Tenancy,
    tried: &Tried,
) -> Result<Result<Subjected, Fault>, StoreError> {
    let id = match tried {
        Tried::Expression(text) => {
            // A text that stands nowhere yet may read everything that a rule can.
            return Ok(match sight::compile(text, true) {
                Ok(program) => Ok(Subjected {
                    sees_recipient: trial::reads_recipient(&program),
                    program: Ok(program),
                    within: None,
                }),
                Err(fault) => Err(sight::fault_at("/expression", text, &fault)),
            });
        }
        Tried::Rule(id) => *id,
    };
    let Some(row) = rows.get(&RULES, &(tenancy.tenant, id))? else {
        let detail = format!("there is no rule `{id}`");
        return Ok(Err(Fault::new("/rule_id", "rule.not_found", detail)));
    };
    let rule = row.typed(tenancy.tenant, id)?;
    let within = match rule.attached_to {
        Some(of) => routing_objects::recipient_pool(rows, tenancy.tenant, of)?,
        None => None,
    };
    Ok(Ok(Subjected {
        sees_recipient: matches!(rule.action.kind, ActionKind::Filter | ActionKind::Boost),
        program: ReadyRule::new(rule).program,
        within,
    }))
}

/// The recipient of a case; the code and the sentence of what is wrong with it.
fn candidate(
    rows: &mut impl Rows,
    tenancy: &Tenancy,
    subjected: &Subjected,
    case: &Case,
) -> Result<Result<Option<Candidate>, (&'static str, String)>, StoreError> {
    let stored = match &case.recipient {
        Subject::Nobody if subjected.sees_recipient => {
            let detail = "the rule is asked of each recipient: say which, by its id or its fields";
            return Ok(Err(("field.required", detail.to_owned())));
        }
        Subject::Nobody => return Ok(Ok(None)),
        Subject::Stored(_) | Subject::Given(_) if !subjected.sees_recipient => {
            let detail = "the rule reads the work alone, and is asked once for all recipients";
            return Ok(Err(("field.value", detail.to_owned())));
        }
        Subject::Given(given) => return Ok(Ok(Some((**given).clone()))),
        Subject::Stored(id) => *id,
    };
    let Some(recipient) = routing_objects::recipient(rows, tenancy.tenant, stored)? else {
        let detail = format!("there is no recipient `{stored}`");
        return Ok(Err(("recipient.not_found", detail)));
    };
    let live = live_of(rows, tenancy.tenant, &recipient)?;
    Ok(Ok(Some(Candidate {
        recipient: Arc::new(recipient),
        live,
        learned: Learned::default(),
        bid: None,
    })))
}
