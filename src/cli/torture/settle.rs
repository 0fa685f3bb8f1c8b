//! The last phase: nothing hinders the daemons any more, so everything that was accepted must come to its end.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use super::super::caller::Caller;
use super::super::client::Client;
use super::super::fields;
use super::load::Customer;
use super::plan::End;
use super::round::{Outcome, Stage};
use crate::os::clock::boottime_ms;
use crate::words::ids::RunId;

/// Everything has ended after this time.
const SETTLE_MS: u64 = 180_000;
/// Unfinished runs that are looked at.
const UNFINISHED_MAX: usize = 5_000;
/// A pause of the clients is over after this time.
const PAUSES_MS: u64 = 1_500;

impl Stage {
    /// Repeats what was never answered, lets everything end, stops the daemons in order, and compares for the last time.
    pub(super) async fn settle(&mut self) -> Outcome {
        let began = boottime_ms();
        let before = self.past.ended();
        let mut outcome = Outcome::default();
        // Fires go on for ever; what must end is what was there before.
        let due = self.due_to_end();
        if !self.ready().await {
            outcome
                .findings
                .push("the daemons cannot all be started at the end".to_owned());
        }
        self.attend_until(boottime_ms() + PAUSES_MS).await;
        let mut client = Customer::new(&self.fleet.doors(), &self.books, self.seed, "settle".to_owned());
        let end = boottime_ms() + SETTLE_MS;
        let mut answered = false;
        let mut idle = false;
        while !(answered && idle) && boottime_ms() < end {
            self.fleet.look();
            answered = client.settle().await;
            idle = self.is_idle(&due).await;
            self.attend_until(boottime_ms() + 100).await;
        }
        if !answered {
            let books = Arc::clone(&self.books);
            let books = books.lock().unwrap_or_else(PoisonError::into_inner);
            let open: Vec<&str> = books.unanswered().map(|(key, _)| key.as_str()).collect();
            outcome
                .findings
                .push(format!("starts never get an answer: {}", open.join(", ")));
        }
        self.close(End::Stop).await;
        outcome.findings.extend(self.compare(Some(&due)));
        outcome.ended = self.past.ended() - before;
        outcome.took_ms = boottime_ms() - began;
        outcome
    }

    fn due_to_end(&self) -> BTreeSet<RunId> {
        let books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.past.known().iter().copied();
        known.chain(books.starts.keys().copied()).collect()
    }

    /// A daemon says that none of these is unfinished.
    async fn is_idle(&self, due: &BTreeSet<RunId>) -> bool {
        let url = {
            let doors = self.fleet.doors();
            let doors = doors.lock().unwrap_or_else(PoisonError::into_inner);
            doors.iter().flatten().next().cloned()
        };
        let Some(url) = url else { return false };
        let client = Caller::new(None, None, None).and_then(|caller| Client::new(&url, &caller));
        let Ok(client) = client else { return false };
        for state in ["state:pending", "state:running"] {
            let asked = [("where", state.to_owned())];
            let Ok(body) = client.list(&["api", "runs"], &asked, UNFINISHED_MAX).await else {
                return false;
            };
            let ids = fields::items(&body.value)
                .iter()
                .filter_map(|run| fields::text(run, &["id"]));
            if ids.filter_map(|id| id.parse().ok()).any(|id| due.contains(&id)) {
                return false;
            }
        }
        true
    }
}
