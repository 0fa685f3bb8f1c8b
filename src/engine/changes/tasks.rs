//! Steps that wait for a worker: remote ones in the queues of tasks, requests in the queue of this program. Claims in fair
//! turns, signs of life, and what becomes of a claim whose worker is not heard of.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::complete::{self, Holder};
use super::{advance, nodes};
use crate::domain::fair::{self, Cursor, Lines};
use crate::domain::payload::Payload;
use crate::domain::slots::claim::{Claim, ClockId, Place};
use crate::domain::workflow::graph::document::Tier;
use crate::domain::workflow::graph::key::ValueName;
use crate::domain::workflow::graph::lines::INTERNAL_QUEUE;
use crate::domain::workflow::run::{Run, StepState};
use crate::domain::workflow::tick::Fact;
use crate::engine::graphs::GraphShelf;
use crate::store::graph_rows::{TaskClaim, TaskRow};
use crate::store::keys::Key;
use crate::store::rows::{LiveAttempt, Number};
use crate::store::tables::{ATTEMPTS, LIVE_ATTEMPTS, META, TASK_CLAIMS, TASKS};
use crate::store::{Abort, Rows, StoreError, Tx, graphs, runs};
use crate::words::ids::{self, RunId, TenantId};
use crate::words::limits;
use crate::words::names::{NodeName, StepRef};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// The two halves of what tokens are signed with.
const KEY_PARTS: [&str; 2] = ["task_key_0", "task_key_1"];

/// Whose turn it is in each queue, as this daemon has served them. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    inner: Arc<Mutex<HashMap<String, Cursor>>>,
}

impl Turns {
    /// Where a queue was served last.
    pub fn of(&self, queue: &str) -> Cursor {
        let turns = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        turns.get(queue).cloned().unwrap_or_default()
    }

    /// A queue was served.
    pub fn keep(&self, queue: &str, cursor: Cursor) {
        let mut turns = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= limits::FAIR_QUEUES_MAX && !turns.contains_key(queue) {
            turns.clear();
        }
        turns.insert(queue.to_owned(), cursor);
    }
}

/// Who wants work from a queue.
#[derive(Debug, Clone)]
pub struct TaskPass {
    /// The daemon that was asked.
    pub node: NodeName,
    /// Where it runs.
    pub place: Place,
    /// The queue.
    pub queue: String,
    /// The remote worker; none for what this program executes itself.
    pub worker: Option<String>,
    /// So much at most.
    pub max: usize,
    /// Compiled definitions.
    pub shelf: GraphShelf,
    /// Whose turn it is.
    pub turns: Turns,
}

/// A claim of a step.
#[derive(Debug, Clone)]
pub struct ClaimedTask {
    /// The run.
    pub run: Run,
    /// The step, as it runs now.
    pub step: StepState,
    /// The claim.
    pub claim: Claim,
    /// Its input; null without one.
    pub input: Option<Payload>,
    /// When its worker must be heard of, if it is a remote one.
    pub until: Option<Millis>,
}

impl ClaimedTask {
    /// The claim, named by what only its holder knows.
    pub fn holder(&self) -> Holder {
        Holder {
            run: self.run.id,
            step: self.step.step.clone(),
            fence: self.claim.fence,
        }
    }
}

/// The rows of a queue.
pub(super) struct QueueLines<'r, R: Rows> {
    rows: &'r mut R,
    queue: &'r str,
}

impl<'r, R: Rows> QueueLines<'r, R> {
    /// Of this queue.
    pub(super) fn of(rows: &'r mut R, queue: &'r str) -> QueueLines<'r, R> {
        QueueLines { rows, queue }
    }
}

impl<R: Rows> Lines for QueueLines<'_, R> {
    type Error = StoreError;

    fn next_share(&mut self, tier: Tier, after: Option<&str>) -> Result<Option<String>, StoreError> {
        let prefix = (TENANT, self.queue.to_owned(), tier as u8);
        // Behind the last number of a share begins the next one, however many rows it has.
        let behind = after.map(|share| {
            (
                TENANT,
                self.queue.to_owned(),
                tier as u8,
                share.to_owned(),
                u64::MAX,
            )
                .encode()
        });
        let rows = self
            .rows
            .raw_scan(TASKS.index(), &prefix.encode(), behind.as_deref(), false, 1)?;
        let key = rows.into_iter().next().map(|(key, _)| key);
        Ok(key
            .and_then(|key| <graphs::TaskKey>::decode(&key))
            .map(|key| key.3))
    }
}

/// True when something waits in the queue.
pub fn is_waiting(rows: &mut impl Rows, queue: &str) -> Result<bool, StoreError> {
    let prefix = (TENANT, queue.to_owned()).encode();
    Ok(!rows.raw_scan(TASKS.index(), &prefix, None, false, 1)?.is_empty())
}

/// Claims what waits, each share in its turn.
pub fn claim(tx: &mut Tx<'_>, pass: &TaskPass) -> Result<Vec<ClaimedTask>, Abort> {
    let mut claimed = Vec::new();
    if nodes::drain_of(tx, &pass.node)?.is_some() {
        return Ok(claimed);
    }
    let mut cursor = pass.turns.of(&pass.queue);
    let mut broken = BTreeSet::new();
    let mut bytes = 0;
    while claimed.len() < pass.max && bytes < limits::TASK_INPUTS_BYTES_MAX {
        let mut lines = QueueLines::of(tx, &pass.queue);
        let Some((tier, share)) = fair::choose(&mut cursor, &mut lines, &broken)? else {
            break;
        };
        let prefix = (TENANT, pass.queue.clone(), tier as u8, share.clone());
        let row = tx.scan_each(&TASKS, &prefix, None, 1)?.into_iter().next();
        let taken = match row.map(|each| each.row) {
            Some(Ok((_, row))) => claim_one(tx, pass, &row),
            Some(Err(error)) => Err(error.into()),
            None => break,
        };
        match taken {
            Ok(task) => {
                bytes += task.input.as_ref().map_or(0, Payload::bytes);
                claimed.push(task);
            }
            Err(Abort(error)) if error.is_row_fault() => {
                tracing::error!(queue = %pass.queue, cause = %error, "what is next in this queue cannot be read; it waits");
                broken.insert((tier, share));
            }
            Err(abort) => return Err(abort),
        }
    }
    if pass.worker.is_some() && !claimed.is_empty() {
        signing_key(tx)?;
    }
    pass.turns.keep(&pass.queue, cursor);
    Ok(claimed)
}

fn claim_one(tx: &mut Tx<'_>, pass: &TaskPass, row: &TaskRow) -> Result<ClaimedTask, Abort> {
    let both = advance::load(tx, row.run, &row.step)?;
    let input = graphs::value(tx, row.run, &ValueName::TaskInput(row.step.clone()))?;
    let heartbeat = heartbeat_of(tx, pass, &both.0, &row.step)?;
    let now = tx.now();
    let claim = Claim {
        node: pass.node.clone(),
        fence: tx.next_number("next_fence")?,
        place: pass.place.clone(),
        process: None,
        claimed_at: now.wall,
    };
    let live = LiveAttempt {
        job: both.0.definition.clone(),
        number: both.1.attempt,
        claim: claim.clone(),
        entry: None,
        kill_timeout_ms: 0,
        ending: None,
    };
    tx.put(&LIVE_ATTEMPTS, &(TENANT, row.run, row.step.clone()), &live)?;
    let hold_ms = heartbeat.unwrap_or(limits::VISIBILITY_MS);
    let mut until = None;
    if let Some(worker) = &pass.worker {
        let held = TaskClaim {
            run: row.run,
            step: row.step.clone(),
            queue: pass.queue.clone(),
            worker: worker.clone(),
            hold_ms,
            strict: heartbeat.is_some(),
            clock: pass.place.clock.clone(),
            until: now.boot.plus(hold_ms),
            until_wall: now.wall.plus(hold_ms),
            renewals: 0,
        };
        until = Some(held.until_wall);
        tx.put(&TASK_CLAIMS, &(TENANT, claim.fence), &held)?;
    }
    let (run, step) = advance::advance(tx, &both, &Fact::Claimed { fence: claim.fence }, None)?;
    Ok(ClaimedTask {
        run,
        step,
        claim,
        input,
        until,
    })
}

/// The longest silence that a step allows its worker.
fn heartbeat_of(
    rows: &mut impl Rows,
    pass: &TaskPass,
    run: &Run,
    step: &StepRef,
) -> Result<Option<u64>, StoreError> {
    if pass.queue == INTERNAL_QUEUE {
        return Ok(None);
    }
    let graph = pass.shelf.get(rows, &run.definition, run.version)?;
    let heartbeat = graph.and_then(|graph| {
        let (name, _) = step.split_instance()?;
        graph.node(graph.find(&name)?).doc.timeouts.heartbeat
    });
    Ok(heartbeat.map(|span| span.0))
}

/// What a claim is found as.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Its worker has it; somebody may want it ended.
    Held {
        /// The row.
        live: Box<LiveAttempt>,
        /// The remote part of it.
        claim: Box<TaskClaim>,
    },
    /// It has ended by this very claim, and this is what was recorded.
    Ended(crate::domain::workflow::attempt::Outcome),
    /// It is somebody else's, or the step has moved on. True when its run has ended or is being ended.
    Gone(bool),
}

/// Where a claim stands.
pub fn standing(rows: &mut impl Rows, holder: &Holder, number: u32) -> Result<Standing, StoreError> {
    if let Some(live) = complete::held(rows, holder)?
        && let Some(claim) = rows.get(&TASK_CLAIMS, &(TENANT, holder.fence))?
    {
        return Ok(Standing::Held {
            live: Box::new(live),
            claim: Box::new(claim),
        });
    }
    let key = (TENANT, holder.run, holder.step.clone(), number, holder.fence);
    if let Some(attempt) = rows.get(&ATTEMPTS, &key)? {
        return Ok(Standing::Ended(attempt.outcome));
    }
    let run = runs::by_id(rows, holder.run)?;
    let over = run.is_none_or(|run| {
        let ending = run.graph.as_ref().is_some_and(|header| header.ending.is_some());
        run.state.is_terminal() || ending
    });
    Ok(Standing::Gone(over))
}

/// What became of a sign of life.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// The claim holds until then; and why it is to be ended, if somebody wants that.
    Holds(Millis, Option<String>),
    /// It is somebody else's, or the step has moved on. True when its run has ended or is being ended.
    Gone(bool),
}

/// A sign of life, as a snapshot shows the claim: true when it must be written.
pub fn heard(standing: &Standing, clock: &ClockId, now: crate::words::time::Now) -> (Heard, bool) {
    match standing {
        Standing::Held { live, claim } => {
            let ending = live.ending.as_ref();
            let why = ending.map(|ending| complete::ending_sentence(ending.cause, &ending.by));
            let renewed = claim.renewed(clock, now);
            (Heard::Holds(claim.until_wall, why), renewed.is_some())
        }
        Standing::Ended(_) => (Heard::Gone(false), false),
        Standing::Gone(over) => (Heard::Gone(*over), false),
    }
}

/// Writes a sign of life.
pub fn renew(tx: &mut Tx<'_>, holder: &Holder, number: u32, clock: &ClockId) -> Result<Heard, Abort> {
    let found = standing(tx, holder, number)?;
    let (said, _) = heard(&found, clock, tx.now());
    let Standing::Held { claim, .. } = found else {
        return Ok(said);
    };
    let Some(renewed) = claim.renewed(clock, tx.now()) else {
        return Ok(said);
    };
    tx.put(&TASK_CLAIMS, &(TENANT, holder.fence), &renewed)?;
    Ok(match said {
        Heard::Holds(_, why) => Heard::Holds(renewed.until_wall, why),
        Heard::Gone(over) => Heard::Gone(over),
    })
}

/// All claims of remote workers.
pub fn claims(rows: &mut impl Rows) -> Result<Vec<(u64, TaskClaim)>, StoreError> {
    let found = rows.scan_each(&TASK_CLAIMS, &(TENANT,), None, usize::MAX)?;
    let readable = found.into_iter().filter_map(|each| each.row.ok());
    Ok(readable.map(|((_, fence), claim)| (fence, claim)).collect())
}

/// What tokens are signed with; made when the first task is claimed.
pub fn signing_key(tx: &mut Tx<'_>) -> Result<[u64; 2], StoreError> {
    if let Some(key) = known_key(tx)? {
        return Ok(key);
    }
    let key = ids::secret_numbers();
    for (name, number) in KEY_PARTS.iter().zip(key) {
        tx.put(&META, &((*name).to_owned(),), &Number(number))?;
    }
    Ok(key)
}

/// What tokens are signed with; none when no task was ever claimed.
pub fn known_key(rows: &mut impl Rows) -> Result<Option<[u64; 2]>, StoreError> {
    let mut key = [0; 2];
    for (place, name) in KEY_PARTS.iter().enumerate() {
        match rows.get(&META, &((*name).to_owned(),))? {
            Some(number) => key[place] = number.0,
            None => return Ok(None),
        }
    }
    Ok(Some(key))
}

/// What a worker has instead of a password: which claim, and a signature that nobody else can make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The claim.
    pub holder: Holder,
    /// The attempt number.
    pub number: u32,
    signature: [u8; 16],
}

impl Token {
    /// The token of a claim.
    pub fn of(key: [u64; 2], holder: &Holder, number: u32) -> Token {
        let parts = [
            "task".to_owned(),
            format!("{:016x}{:016x}", key[0], key[1]),
            holder.run.to_string(),
            holder.step.to_string(),
            number.to_string(),
            holder.fence.to_string(),
        ];
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        Token {
            holder: holder.clone(),
            number,
            signature: ids::digest_of_parts(&parts),
        }
    }

    /// Reads a token; whether it is genuine says [`Token::is_genuine`].
    pub fn read(text: &str) -> Option<Token> {
        let bytes = ids::of_hex(text.strip_prefix("tk_")?)?;
        let (signature, rest) = bytes.split_first_chunk::<16>()?;
        let (run, rest) = rest.split_first_chunk::<16>()?;
        let (fence, rest) = rest.split_first_chunk::<8>()?;
        let (number, step) = rest.split_first_chunk::<4>()?;
        let step = StepRef::new(std::str::from_utf8(step).ok()?)?;
        Some(Token {
            holder: Holder {
                run: RunId(*run),
                step,
                fence: u64::from_be_bytes(*fence),
            },
            number: u32::from_be_bytes(*number),
            signature: *signature,
        })
    }

    /// True if it was made here.
    pub fn is_genuine(&self, key: Option<[u64; 2]>) -> bool {
        key.is_some_and(|key| {
            let genuine = Token::of(key, &self.holder, self.number).signature;
            // Every byte is looked at, so that the time tells nothing.
            let differs = genuine
                .iter()
                .zip(self.signature)
                .fold(0, |all, (one, other)| all | (one ^ other));
            differs == 0
        })
    }
}

/// As the wire has it: digits and letters only.
impl std::fmt::Display for Token {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut bytes = self.signature.to_vec();
        bytes.extend(self.holder.run.0);
        bytes.extend(self.holder.fence.to_be_bytes());
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.holder.step.as_str().as_bytes());
        write!(out, "tk_{}", ids::hex(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_speaks_of_its_own_claim_only() {
        let holder = Holder {
            run: RunId([7; 16]),
            step: StepRef::new("fetch#3").unwrap(),
            fence: 300,
        };
        let key = [1, 2];
        let token = Token::of(key, &holder, 2);
        let again = Token::read(&token.to_string()).unwrap();
        assert_eq!(again, token);
        assert!(again.is_genuine(Some(key)));
        assert!(!again.is_genuine(Some([1, 3])) && !again.is_genuine(None));
        let other = Token {
            number: 3,
            ..token.clone()
        };
        assert!(!other.is_genuine(Some(key)));
        let text = token.to_string();
        for bad in ["", "tk_", "tk_00", &text[..40], &text.to_uppercase(), "x"] {
            assert_eq!(Token::read(bad), None, "{bad}");
        }
    }
}
