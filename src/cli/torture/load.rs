//! The clients: they start, repeat, cancel, pause and read, at whichever daemon has a door, and write down the answers.

use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::caller::Caller;
use super::super::client::{Body, Client};
use super::super::failure::Failure;
use super::super::fields;
use super::fleet::Doors;
use super::jobs::{CANCELLED, JOBS, Job, slot_pools};
use super::ledger::Ledger;
use crate::words::chance::Chance;
use crate::words::ids::RunId;

/// The ledger, as the clients share it.
pub(super) type Books = Arc<Mutex<Ledger>>;

/// Pauses of a client between two requests.
const PAUSE_MS: (u64, u64) = (80, 420);
/// Starts that are looked at for one to cancel or to repeat.
const RECENT: u64 = 12;

/// One client.
#[derive(Debug)]
pub(super) struct Customer {
    doors: Doors,
    books: Books,
    chance: Chance,
    /// Makes its keys its own.
    name: String,
    sent: u64,
    client: Option<(String, Client)>,
}

impl Customer {
    pub(super) fn new(doors: &Doors, books: &Books, seed: u64, name: String) -> Customer {
        let part = name.bytes().fold(17_u64, |sum, byte| {
            sum.wrapping_mul(131).wrapping_add(u64::from(byte))
        });
        Customer {
            doors: Arc::clone(doors),
            books: Arc::clone(books),
            chance: Chance::part(seed, part),
            name,
            sent: 0,
            client: None,
        }
    }

    /// Asks until it is dropped. A request that is under way then stays without an answer, and is repeated later.
    pub(super) async fn run(mut self) {
        loop {
            let pause = self.chance.between(PAUSE_MS.0, PAUSE_MS.1);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let draw = self.chance.below(100);
            if !self.take_a_door() {
                continue;
            }
            match draw {
                0..=62 => self.start_one().await,
                63..=70 => self.repeat_one().await,
                71..=76 => self.settle_one().await,
                77..=83 => self.cancel_one().await,
                84..=85 => self.cancel_all().await,
                86..=90 => self.pause().await,
                _ => self.read().await,
            }
        }
    }

    /// Repeats every request without an answer, once each; true if none is left.
    pub(super) async fn settle(&mut self) -> bool {
        let open: Vec<(String, String)> = self.open_requests();
        for (key, job) in open {
            if self.take_a_door() {
                self.post_start(&key, &job).await;
            }
        }
        self.open_requests().is_empty()
    }

    fn open_requests(&self) -> Vec<(String, String)> {
        let books = self.books();
        books
            .unanswered()
            .map(|(key, job)| (key.clone(), job.clone()))
            .collect()
    }

    fn books(&self) -> MutexGuard<'_, Ledger> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses a daemon; false if none has a door.
    fn take_a_door(&mut self) -> bool {
        let open: Vec<String> = {
            let doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
            doors.iter().flatten().cloned().collect()
        };
        let Some(url) = self.chance.pick(&open) else {
            return false;
        };
        if self.client.as_ref().is_none_or(|(known, _)| known != url) {
            let client = Caller::new(None, None, None).and_then(|caller| Client::new(url, &caller));
            self.client = client.ok().map(|client| (url.clone(), client));
        }
        self.client.is_some()
    }

    async fn post(
        &self,
        segments: &[&str],
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Result<Body, Failure> {
        match &self.client {
            Some((_, client)) => client.post(segments, body, key).await,
            None => Err(Failure::Negative("no door".to_owned())),
        }
    }

    async fn start_one(&mut self) {
        let all: u64 = JOBS.iter().map(|job| job.weight).sum();
        let mut at = self.chance.below(all);
        let chosen = JOBS.iter().find(|job| {
            let here = at < job.weight;
            at = at.saturating_sub(job.weight);
            here
        });
        let Some(Job { name, .. }) = chosen else { return };
        self.sent += 1;
        let key = format!("{}-{}", self.name, self.sent);
        self.post_start(&key, name).await;
    }

    async fn post_start(&mut self, key: &str, job: &str) {
        self.books().sent(key, job);
        let answer = self.post(&["jobs", job, "start"], None, Some(key)).await;
        let mut books = self.books();
        match answer {
            Ok(body) => {
                let run = fields::text(&body.value, &["run_id"]);
                let entry = fields::text(&body.value, &["queue_id"]);
                match run.and_then(|run| RunId::from_str(&run).ok()) {
                    Some(run) => books.accepted(key, job, run, entry),
                    None => books.findings.push(format!(
                        "a start of {job} was answered without a run: {}",
                        body.text
                    )),
                }
            }
            Err(Failure::Problem(problem)) => match (problem.status, problem.code.as_str()) {
                // Being worked on, or nobody knows: asked again later.
                (409, "ABORTED") => {}
                (503, _) if problem.member("outcome").is_some() => {}
                (409, _) => books.refused(key, job, true),
                (503 | 429, _) => books.refused(key, job, false),
                (status, _) => {
                    let text = Failure::Problem(problem).text();
                    books.findings.push(format!(
                        "a start of {job} was answered with {status}: {}",
                        text.trim()
                    ));
                }
            },
            Err(_) => {}
        }
    }

    /// A start that was accepted, asked for again with its key: the same answer must come.
    async fn repeat_one(&mut self) {
        if let Some((_, job, key, _)) = self.recent() {
            self.post_start(&key, &job).await;
        }
    }

    async fn settle_one(&mut self) {
        let open = self.open_requests();
        if let Some((key, job)) = self.chance.pick(&open) {
            self.post_start(key, job).await;
        }
    }

    fn recent(&mut self) -> Option<(RunId, String, String, Option<String>)> {
        let at = usize::try_from(self.chance.below(RECENT)).ok()?;
        let books = self.books();
        let (run, told) = books.newest(at)?;
        Some((run, told.job.clone(), told.key.clone(), told.entry.clone()))
    }

    async fn cancel_one(&mut self) {
        let Some((run, job, _, entry)) = self.recent() else {
            return;
        };
        let pool = JOBS
            .iter()
            .find(|known| known.name == job)
            .and_then(Job::slot_pool);
        self.books().cancelled.insert(run);
        let answer = match (entry, pool) {
            (Some(entry), Some(pool)) if self.chance.one_in(2) => {
                self.post(&["pools", pool, "queue", &entry, "cancel"], None, None)
                    .await
            }
            _ => {
                self.post(&["api", "runs", &format!("{run}:cancel")], None, None)
                    .await
            }
        };
        self.judge("a cancel", &answer, &[409]);
    }

    async fn cancel_all(&mut self) {
        let answer = self.post(&["jobs", CANCELLED, "cancel"], None, None).await;
        self.judge("a cancel of a job", &answer, &[409]);
    }

    async fn pause(&mut self) {
        let body = json!({"durationSeconds": 1, "note": "torture"});
        let answer = if self.chance.one_in(2) {
            let pools: Vec<&str> = slot_pools().collect();
            let pool = self.chance.pick(&pools).copied().unwrap_or_default();
            self.post(&["pools", pool, "pause"], Some(&body), None).await
        } else {
            let job = self.chance.pick(&JOBS).map_or("", |job| job.name);
            self.post(&["jobs", job, "pause"], Some(&body), None).await
        };
        self.judge("a pause", &answer, &[]);
    }

    async fn read(&mut self) {
        let run = self.recent().map(|(run, ..)| run.to_string());
        let Some((_, client)) = &self.client else { return };
        let answer = match self.chance.below(4) {
            0 => client.get(&["pools"], &[]).await,
            1 => client.get(&["api", "overview"], &[]).await,
            2 => client.get(&["api", "runs"], &[]).await,
            _ => match &run {
                Some(run) => client.get(&["api", "runs", run], &[]).await,
                None => client.get(&["api", "status"], &[]).await,
            },
        };
        self.judge("a question", &answer, &[]);
    }

    /// An answer that no fault excuses. `usual` are refusals that the state can give.
    fn judge(&self, what: &str, answer: &Result<Body, Failure>, usual: &[u16]) {
        if let Err(Failure::Problem(problem)) = answer {
            let status = problem.status;
            if !matches!(status, 503 | 429) && !usual.contains(&status) {
                let text = Failure::Problem(problem.clone()).text();
                let text = format!("{what} was answered with {status}: {}", text.trim());
                self.books().findings.push(text);
            }
        }
    }
}
