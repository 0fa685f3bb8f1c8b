//! The heartbeat: an address that is requested while the daemon works, so that something outside notices when it does not.
//!
//! It is a plain GET, which every such service takes. It is left out when the scheduler or the dispatcher does not turn,
//! or the store's writer does not answer: silence is the alarm.

use std::time::Duration;

use super::core::Engine;
use crate::domain::report::{Delivery, Value};
use crate::words::limits;
use crate::words::time::BootMillis;
use crate::worker::outbound::{Letter, Outbound};

/// The loop.
#[derive(Debug)]
pub struct Heartbeats {
    engine: Engine,
    outbound: Outbound,
    last: Option<BootMillis>,
    is_failing: bool,
}

impl Heartbeats {
    /// None was sent yet.
    pub fn new(engine: Engine) -> Heartbeats {
        Heartbeats {
            engine,
            outbound: Outbound::new(),
            last: None,
            is_failing: false,
        }
    }

    /// Sends until the daemon stops.
    pub async fn run(mut self) {
        while !self.engine.is_stopping() {
            self.tick().await;
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(limits::PASS_PERIOD_MS)) => {}
                () = self.engine.until_stopping() => {}
            }
        }
    }

    /// Sends one if it is time.
    async fn tick(&mut self) {
        let Some(heartbeat) = self.engine.book().notify.heartbeat.clone() else {
            return;
        };
        let now = self.engine.now().boot;
        if self.last.is_some_and(|last| last.until(now) < heartbeat.every_ms) {
            return;
        }
        self.last = Some(now);
        let sent = match self.alive().await {
            Ok(()) => self.send(heartbeat.url).await,
            Err(why) => Err(why),
        };
        let word = if sent.is_ok() { "delivered" } else { "failed" };
        self.engine.metrics.count_delivery("heartbeat", word);
        let was_failing = std::mem::replace(&mut self.is_failing, sent.is_err());
        match sent {
            Err(why) if !was_failing => tracing::warn!("the heartbeat is not sent: {why}"),
            Ok(()) if was_failing => tracing::info!("the heartbeat is sent again"),
            Err(_) | Ok(()) => {}
        }
    }

    async fn alive(&self) -> Result<(), String> {
        if let Some(why) = self.engine.pulse.lost(self.engine.now()) {
            return Err(why.to_owned());
        }
        // An empty change goes through the writer and writes nothing.
        let answered = self.engine.store.change("heartbeat", |_| Ok(())).await;
        answered.map_err(|error| format!("the store does not answer: {error}"))
    }

    async fn send(&self, url: Value) -> Result<(), String> {
        let letter = tokio::task::spawn_blocking(move || Letter::of_heartbeat(&url)).await;
        let letter = letter.map_err(|error| error.to_string())??;
        match self.outbound.send(&letter).await {
            Delivery::Done => Ok(()),
            Delivery::Failed(why) | Delivery::Refused(why) => Err(why),
        }
    }
}
