//! Requests that may be sent again: the answer is kept in the transaction of its effect, under the digest of the caller's
//! key. Only accepted answers are kept; a refusal has no effect and is judged anew.

use crate::store::keys::DigestKey;
use crate::store::rows::{Number, Remembered};
use crate::store::tables::{REMEMBERED, REMEMBERED_KEYS};
use crate::store::{Abort, Rows, StoreError, Tx};
use crate::words::ids::TenantId;
use crate::words::payload::JsonText;

const TENANT: TenantId = TenantId::DEFAULT;

/// What a request with an idempotency key is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Digest of (principal, key).
    pub key: [u8; 16],
    /// Digest of method, path and body.
    pub request: [u8; 16],
}

/// What a request is answered with when it is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The `Location` header.
    pub location: Option<String>,
    /// The body.
    pub body: JsonText,
}

/// What became of a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told<T> {
    /// It was judged now; with an answer if it was accepted.
    Now(T, Option<Answer>),
    /// The same request was answered before, with this.
    Before(Answer),
    /// The key belongs to another request.
    KeyReused,
    /// The thing has another version than the caller believes: this one.
    Moved(String),
}

type Reply<T> = Box<dyn FnMut(&mut Tx<'_>, &T) -> Result<Option<Answer>, StoreError> + Send>;
type Guard = Box<dyn FnMut(&mut Tx<'_>) -> Result<Option<String>, StoreError> + Send>;

/// How a face wants its wish to be judged: once, at a version, and how the outcome is put into words.
pub struct Asked<T> {
    ticket: Option<Ticket>,
    guard: Option<Guard>,
    reply: Reply<T>,
}

impl<T> std::fmt::Debug for Asked<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Asked")
            .field("ticket", &self.ticket)
            .finish_non_exhaustive()
    }
}

impl<T> Asked<T> {
    /// `reply` makes the answer of an accepted outcome, and `None` of a refused one.
    pub fn new(
        ticket: Option<Ticket>,
        reply: impl FnMut(&mut Tx<'_>, &T) -> Result<Option<Answer>, StoreError> + Send + 'static,
    ) -> Asked<T> {
        Asked {
            ticket,
            guard: None,
            reply: Box::new(reply),
        }
    }

    /// A wish without a face: nothing is kept.
    pub fn plain() -> Asked<T> {
        Asked::new(None, |_, _| Ok(None))
    }

    /// `guard` says the version in force when it is not the one that the caller expects.
    #[must_use]
    pub fn guarded(
        mut self,
        guard: impl FnMut(&mut Tx<'_>) -> Result<Option<String>, StoreError> + Send + 'static,
    ) -> Asked<T> {
        self.guard = Some(Box::new(guard));
        self
    }

    /// Runs `effect` at most once for each key.
    pub fn once(
        &mut self,
        tx: &mut Tx<'_>,
        effect: impl FnOnce(&mut Tx<'_>) -> Result<T, Abort>,
    ) -> Result<Told<T>, Abort> {
        if let Some(ticket) = self.ticket
            && let Some(told) = before(tx, ticket)?
        {
            return Ok(told);
        }
        if let Some(guard) = &mut self.guard
            && let Some(current) = guard(tx)?
        {
            return Ok(Told::Moved(current));
        }
        let outcome = effect(tx)?;
        let answer = (self.reply)(tx, &outcome)?;
        if let (Some(ticket), Some(answer)) = (self.ticket, &answer) {
            keep(tx, ticket, answer)?;
        }
        Ok(Told::Now(outcome, answer))
    }
}

/// What was said to this request before, or that its key belongs to another one.
pub fn before<T>(rows: &mut impl Rows, ticket: Ticket) -> Result<Option<Told<T>>, StoreError> {
    let Some(Number(seq)) = rows.get(&REMEMBERED_KEYS, &(TENANT, DigestKey(ticket.key)))? else {
        return Ok(None);
    };
    let stored = rows.get(&REMEMBERED, &(TENANT, seq))?;
    Ok(stored.map(|stored: Remembered| {
        if stored.request != ticket.request {
            return Told::KeyReused;
        }
        Told::Before(Answer {
            status: stored.status,
            location: stored.location,
            body: stored.body,
        })
    }))
}

/// Keeps an answer; the first one under a key stays.
pub fn keep(tx: &mut Tx<'_>, ticket: Ticket, answer: &Answer) -> Result<(), StoreError> {
    if tx.has(&REMEMBERED_KEYS, &(TENANT, DigestKey(ticket.key)))? {
        return Ok(());
    }
    let row = Remembered {
        key: ticket.key,
        request: ticket.request,
        at: tx.now().wall,
        status: answer.status,
        location: answer.location.clone(),
        body: answer.body.clone(),
    };
    let seq = tx.next_number("next_remembered")?;
    tx.put(&REMEMBERED, &(TENANT, seq), &row)?;
    tx.put(&REMEMBERED_KEYS, &(TENANT, DigestKey(ticket.key)), &Number(seq))
}
