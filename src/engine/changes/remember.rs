//! Requests that may be sent again: the answer is kept in the transaction of its effect, under the digest of the caller's
//! key. Only accepted answers are kept; a refusal has no effect and is judged anew.

use super::audit::{self, By};
use crate::store::keys::DigestKey;
use crate::store::rows::{Number, Remembered};
use crate::store::tables::{REMEMBERED, REMEMBERED_KEYS};
use crate::store::{Abort, Rows, StoreError, Tx};
use crate::words::ids::TenantId;
use crate::words::payload::JsonText;

/// What a request with an idempotency key is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The tenant of the caller.
    pub tenant: TenantId,
    /// Digest of (tenant, principal, key).
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
type Guard = Box<dyn FnMut(&mut Tx<'_>) -> Result<Version, StoreError> + Send>;

/// The version of a thing, beside what the caller believes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The one in force; `None` if there is no such thing.
    pub current: Option<String>,
    /// False when the caller expects another one.
    pub is_met: bool,
}

/// How a face wants its wish to be judged: once, at a version, and how the outcome is put into words.
pub struct Asked<T> {
    ticket: Option<Ticket>,
    by: Option<By>,
    guard: Option<Guard>,
    reply: Reply<T>,
    /// Where the face answers after the commit: whether an outcome is accepted.
    is_accepted: Option<fn(&T) -> bool>,
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
            by: None,
            guard: None,
            reply: Box::new(reply),
            is_accepted: None,
        }
    }

    /// Where nothing is kept of the answer, the face makes it after the commit: the writer has no time for a long one. Outcomes
    /// of which this is true are accepted.
    #[must_use]
    pub fn answered_after(mut self, is_accepted: fn(&T) -> bool) -> Asked<T> {
        self.is_accepted = Some(is_accepted);
        self
    }

    /// A wish without a face: nothing is kept.
    pub fn plain() -> Asked<T> {
        Asked::new(None, |_, _| Ok(None))
    }

    /// Somebody asks: what is accepted gets a row in the audit.
    #[must_use]
    pub fn by(mut self, by: Option<By>) -> Asked<T> {
        self.by = by;
        self
    }

    /// Who asks; the daemon itself where nobody does.
    pub fn who(&self) -> &str {
        self.by.as_ref().map_or("ductor", |by| &by.who)
    }

    /// `guard` says the version in force, and whether it is the one that the caller expects.
    #[must_use]
    pub fn guarded(
        mut self,
        guard: impl FnMut(&mut Tx<'_>) -> Result<Version, StoreError> + Send + 'static,
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
        let before = match &mut self.guard {
            None => None,
            Some(guard) => {
                let version = guard(tx)?;
                match version.current {
                    Some(current) if !version.is_met => return Ok(Told::Moved(current)),
                    current => current,
                }
            }
        };
        let outcome = effect(tx)?;
        let (is_accepted, answer) = match (self.ticket, self.is_accepted) {
            (None, Some(is_accepted)) => (is_accepted(&outcome), None),
            (Some(_), _) | (None, None) => {
                // What is still being made beside this turn belongs to the answer.
                tx.settle()?;
                let answer = (self.reply)(tx, &outcome)?;
                (answer.is_some(), answer)
            }
        };
        if let (Some(ticket), Some(answer)) = (self.ticket, &answer) {
            keep(tx, ticket, answer)?;
        }
        if let Some(by) = self.by.as_ref().filter(|_| is_accepted) {
            let after = match &mut self.guard {
                None => None,
                Some(guard) => guard(tx)?.current,
            };
            let thing = answer.as_ref().and_then(|answer| answer.location.as_deref());
            audit::write(tx, by, thing, before.as_deref(), after.as_deref())?;
        }
        Ok(Told::Now(outcome, answer))
    }
}

/// What was said to this request before, or that its key belongs to another one.
pub fn before<T>(rows: &mut impl Rows, ticket: Ticket) -> Result<Option<Told<T>>, StoreError> {
    let Some(Number(seq)) = rows.get(&REMEMBERED_KEYS, &(ticket.tenant, DigestKey(ticket.key)))? else {
        return Ok(None);
    };
    let stored = rows.get(&REMEMBERED, &(ticket.tenant, seq))?;
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
    if tx.has(&REMEMBERED_KEYS, &(ticket.tenant, DigestKey(ticket.key)))? {
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
    tx.put(&REMEMBERED, &(ticket.tenant, seq), &row)?;
    tx.put(
        &REMEMBERED_KEYS,
        &(ticket.tenant, DigestKey(ticket.key)),
        &Number(seq),
    )
}
