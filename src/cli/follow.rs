//! Watching a run until it ends: its states, and its logs as they come.
//!
//! A daemon that goes away for a moment (a restart) is waited for; what was printed before is not shown twice, because a
//! log is continued at its offset.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::client::Body;
use super::event_text::{Event, EventText};
use super::failure::Failure;
use super::fields;
use super::log_text::{LogText, Source};
use super::run_view::{AttemptRef, attempts_of, has_ended, is_live, state_of, step_name, waiting_reason};
use super::session::Session;
use super::sieve::Sieve;

/// The first and the longest pause between two looks at a run.
const LOOK_FIRST: Duration = Duration::from_millis(100);
const LOOK_LONGEST: Duration = Duration::from_secs(1);
/// How often in a row the daemon may be away, a pause apart.
const ABSENCES_MAX: u32 = 60;
/// Bytes of a log in one request.
const LOG_PART: u64 = 1 << 20;

/// What is shown while a run is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watch {
    /// Nothing.
    Silently,
    /// The log only.
    Log,
    /// Changes of state, and the log.
    Everything,
}

/// Watches a run through a session.
#[derive(Debug)]
pub(super) struct Watcher<'s> {
    session: &'s Session,
    run: String,
    /// The daemon has answered before: when it does not now, it is away and will come back.
    met: bool,
    absences: u32,
    states: BTreeMap<String, String>,
    shown: BTreeSet<AttemptRef>,
    sieve: Option<Sieve>,
}

impl<'s> Watcher<'s> {
    /// A watcher of a run that may not exist.
    pub(super) fn new(session: &'s Session, run: &str) -> Watcher<'s> {
        Watcher {
            session,
            run: run.to_owned(),
            met: false,
            absences: 0,
            states: BTreeMap::new(),
            shown: BTreeSet::new(),
            sieve: None,
        }
    }

    /// The same, showing only lines that pass the sieve.
    pub(super) fn sieved(self, sieve: Option<Sieve>) -> Watcher<'s> {
        Watcher { sieve, ..self }
    }

    /// A watcher of a run that the daemon has just made.
    pub(super) fn of_new_run(session: &'s Session, run: &str) -> Watcher<'s> {
        Watcher {
            met: true,
            ..Watcher::new(session, run)
        }
    }

    /// Watches until the run has ended; gives its last answer back.
    pub(super) async fn until_end(&mut self, watch: Watch) -> Result<Body, Failure> {
        let mut pause = LOOK_FIRST;
        loop {
            let body = self.look().await?;
            let run = fields::data(&body.value);
            if watch == Watch::Everything {
                self.tell_states(run)?;
            }
            let mut news = false;
            if watch != Watch::Silently {
                for attempt in attempts_of(run) {
                    if self.shown.insert(attempt.clone()) {
                        self.tell_attempt(&attempt);
                        self.log_to_end(&attempt).await?;
                        news = true;
                    }
                }
            }
            if has_ended(&state_of(run)) {
                return Ok(body);
            }
            // After a log that ended, its run has ended or soon will.
            pause = if news { LOOK_FIRST / 10 } else { pause };
            tokio::time::sleep(pause).await;
            pause = LOOK_LONGEST.min(pause * 2);
        }
    }

    /// Waits until a step has an attempt; nothing if the run ends before.
    pub(super) async fn await_attempt(&mut self, step: Option<&str>) -> Result<Option<AttemptRef>, Failure> {
        loop {
            let body = self.look().await?;
            let run = fields::data(&body.value);
            let wanted = |attempt: &AttemptRef| step.is_none_or(|step| step == attempt.step);
            let found = attempts_of(run).into_iter().rfind(wanted);
            if found.is_some() || has_ended(&state_of(run)) {
                return Ok(found);
            }
            tokio::time::sleep(LOOK_FIRST).await;
        }
    }

    async fn look(&mut self) -> Result<Body, Failure> {
        loop {
            match self.session.client.get(&["api", "runs", &self.run], &[]).await {
                Ok(body) => {
                    self.met = true;
                    self.absences = 0;
                    return Ok(body);
                }
                Err(failure) => self.bear(failure).await?,
            }
        }
    }

    /// Waits a little when the daemon is away or busy; everything else is a failure.
    async fn bear(&mut self, failure: Failure) -> Result<(), Failure> {
        let passing = match &failure {
            Failure::Unreachable { .. } => true,
            Failure::Problem(problem) => matches!(problem.status, 429 | 503 | 504),
            Failure::Usage(_)
            | Failure::NotFound(_)
            | Failure::Negative(_)
            | Failure::TimedOut(_)
            | Failure::OutputClosed => false,
        };
        if !passing || !self.met || self.absences >= ABSENCES_MAX {
            return Err(failure);
        }
        if self.absences == 2 {
            self.session.show.note("the daemon is away; waiting for it");
        }
        self.absences += 1;
        tokio::time::sleep(LOOK_LONGEST).await;
        Ok(())
    }

    /// Says what has changed. The end of the run is left to the caller; the only step of a job is the run.
    fn tell_states(&mut self, run: &Value) -> Result<(), Failure> {
        let steps = fields::list(run, &["steps"]);
        let several = steps.iter().filter(|_| steps.len() > 1);
        let mut news: Vec<(String, String, Option<String>)> = several
            .map(|step| (step_name(step), state_of(step), waiting_reason(step)))
            .collect();
        if !has_ended(&state_of(run)) {
            news.push((String::new(), state_of(run), waiting_reason(run)));
        }
        for (step, state, why) in news {
            let said = format!("{state} {why:?}");
            if self.states.insert(step.clone(), said.clone()).as_ref() != Some(&said) {
                self.tell(&step, &state, why.as_deref())?;
            }
        }
        Ok(())
    }

    /// Whose output begins, unless there is only one.
    fn tell_attempt(&self, attempt: &AttemptRef) {
        if self.shown.len() > 1 {
            let AttemptRef { step, number, .. } = attempt;
            self.session
                .show
                .note(&format!("[step {step}, attempt {number}, from the beginning]"));
        }
    }

    fn tell(&self, step: &str, state: &str, why: Option<&str>) -> Result<(), Failure> {
        let show = &self.session.show;
        let now = show.now();
        if show.json {
            let step = (!step.is_empty()).then_some(step);
            return show.json_line(&json!({
                "type": "state", "at": now.to_string(), "run_id": self.run, "step": step, "state": state,
                "waiting_reason": why,
            }));
        }
        let who = if step.is_empty() {
            String::new()
        } else {
            format!("step {step} ")
        };
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let time = show.dim(&show.face().time_of_day(now));
        show.data(&format!("{time}  {who}{}{why}\n", show.state(state)))
    }

    /// Shows the log of an attempt from its beginning until nothing more can come.
    pub(super) async fn log_to_end(&mut self, attempt: &AttemptRef) -> Result<(), Failure> {
        let mut log = LogReader::new(&self.run, attempt, self.sieve.clone());
        loop {
            let seen = log.offset;
            match log.tail(self.session).await {
                Ok(true) => return log.finish(self.session),
                Ok(false) => {}
                Err(failure) => {
                    self.bear(failure).await?;
                    continue;
                }
            }
            // The stream broke off. When nothing came, is there anything that could?
            let body = self.look().await?;
            if log.offset == seen && !is_live(fields::data(&body.value), attempt) {
                return match log.rest(self.session).await {
                    Err(Failure::Problem(problem)) if problem.status == 404 => Ok(()),
                    other => other,
                };
            }
            tokio::time::sleep(LOOK_FIRST).await;
        }
    }
}

/// Reads one log, and knows how far it is.
#[derive(Debug)]
pub(super) struct LogReader {
    source: Source,
    number: String,
    fence: Option<i64>,
    text: LogText,
    offset: u64,
}

impl LogReader {
    /// At the beginning of a log.
    pub(super) fn new(run: &str, attempt: &AttemptRef, sieve: Option<Sieve>) -> LogReader {
        LogReader {
            source: Source {
                run: run.to_owned(),
                step: attempt.step.clone(),
                attempt: attempt.number,
            },
            number: attempt.number.to_string(),
            fence: attempt.fence,
            text: LogText::sieved(sieve),
            offset: 0,
        }
    }

    fn path(&self) -> Vec<&str> {
        let Source { run, step, .. } = &self.source;
        vec!["api", "runs", run, "steps", step, "attempts", &self.number, "log"]
    }

    fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = vec![("offset", self.offset.to_string())];
        query.extend(self.fence.map(|fence| ("fence", fence.to_string())));
        query
    }

    /// Shows what comes until the stream ends; true when the log is complete.
    async fn tail(&mut self, session: &Session) -> Result<bool, Failure> {
        let mut path = self.path();
        path.push("tail");
        let mut stream = session.client.stream(&path, &self.query()).await?;
        let mut events = EventText::default();
        while let Some(bytes) = session.client.next_chunk(&mut stream).await {
            for event in events.feed(&bytes) {
                match event.kind.as_str() {
                    "end" => return Ok(true),
                    "bye" => return Ok(false),
                    _ => self.take(&event, session)?,
                }
            }
        }
        Ok(false)
    }

    /// A piece `{offset, text}`; the id of its event is the offset behind it.
    fn take(&mut self, event: &Event, session: &Session) -> Result<(), Failure> {
        let piece: Value = serde_json::from_str(&event.data).unwrap_or_default();
        let Some(text) = piece.get("text").and_then(Value::as_str) else {
            return Ok(());
        };
        let after = event.id.as_deref().and_then(|id| id.parse::<u64>().ok());
        let after = after.unwrap_or(self.offset + text.len() as u64);
        if after <= self.offset {
            return Ok(());
        }
        self.text.write(text.as_bytes(), &self.source, &session.show)?;
        self.offset = after;
        Ok(())
    }

    /// Nothing more comes, or is wanted.
    fn finish(&mut self, session: &Session) -> Result<(), Failure> {
        self.text.finish(&self.source, &session.show)
    }

    /// Shows what is there beyond the offset.
    pub(super) async fn rest(&mut self, session: &Session) -> Result<(), Failure> {
        loop {
            let mut query = self.query();
            query.push(("limit", LOG_PART.to_string()));
            let part = session.client.log_part(&self.path(), &query).await?;
            if part.bytes.is_empty() {
                return self.finish(session);
            }
            self.text.write(&part.bytes, &self.source, &session.show)?;
            self.offset = part.start.unwrap_or(self.offset) + part.bytes.len() as u64;
            if part.size.is_some_and(|size| self.offset >= size) {
                return self.finish(session);
            }
        }
    }
}
