//! The loops of a working daemon, and their orderly end.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::reconciler::Reconciler;
use super::reload::Reloader;
use crate::engine::blob_sweep::BlobSweep;
use crate::engine::blocked::BlockedHeads;
use crate::engine::coordinator::Coordinator;
use crate::engine::core::Engine;
use crate::engine::dispatch::{Dispatcher, Unreadable};
use crate::engine::effects::Courier;
use crate::engine::follow_ups::FollowUps;
use crate::engine::heartbeat::Heartbeats;
use crate::engine::http_steps::HttpSteps;
use crate::engine::hunt::Hunter;
use crate::engine::lateness::Lateness;
use crate::engine::leases::LeaseKeeper;
use crate::engine::others::Others;
use crate::engine::retention::Retention;
use crate::engine::router::Router;
use crate::engine::schedules::Scheduler;
use crate::engine::shadows::Shadows;
use crate::engine::silence::Listener;
use crate::words::limits;
use crate::worker::command::Stop;

/// The running loops.
#[derive(Debug)]
pub struct Loops {
    engine: Engine,
    tasks: JoinSet<()>,
    coordinator: tokio::task::JoinHandle<()>,
    leases: tokio::task::JoinHandle<()>,
    others: tokio::task::JoinHandle<()>,
    courier: tokio::task::JoinHandle<()>,
    finish: CancellationToken,
    unreadable: Unreadable,
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every command ended by itself.
    ByThemselves,
    /// The rest was ended and will run again.
    Ended(usize),
}

impl Loops {
    pub(super) fn start(engine: &Engine, reloader: &Reloader) -> Loops {
        let engine = engine.clone();
        let dispatcher = Dispatcher::new(engine.clone());
        let unreadable = dispatcher.unreadable();
        let mut tasks = JoinSet::new();
        tasks.spawn(dispatcher.run());
        tasks.spawn(Scheduler::new(engine.clone()).run());
        tasks.spawn(FollowUps::new(engine.clone()).run());
        tasks.spawn(Hunter::new(engine.clone()).run());
        tasks.spawn(Lateness::new(engine.clone()).run());
        tasks.spawn(BlockedHeads::new(engine.clone()).run());
        engine.pulse.scheduler_turns(engine.now());
        engine.pulse.dispatcher_turns(engine.now());
        // A heartbeat that waits for its receiver is ended, not waited for.
        drop(tokio::spawn(Heartbeats::new(engine.clone()).run()));
        let finish = CancellationToken::new();
        let courier = tokio::spawn(Courier::new(engine.clone()).run(finish.clone()));
        let retention = Retention::new(engine.clone(), reloader.follow_keep());
        // Retention sleeps long between its slices; it is ended, not waited for. So is the sweep of what it leaves.
        drop(tokio::spawn(retention.run()));
        drop(tokio::spawn(BlobSweep::default().run(engine.clone())));
        let coordinator = tokio::spawn(Coordinator::new(engine.clone()).run());
        tasks.spawn(HttpSteps::new(engine.clone()).run());
        tasks.spawn(Listener::new(engine.clone()).run());
        tasks.spawn(Router::new(engine.clone()).run());
        tasks.spawn(Shadows::new(engine.clone()).run());
        let reconciler = Reconciler::new(&engine, reloader.bundles());
        tasks.spawn(reconciler.run(reloader.clone()));
        let leases = tokio::spawn(LeaseKeeper::new(engine.clone()).run());
        let others = tokio::spawn(Others::new(engine.clone()).run());
        Loops {
            engine,
            tasks,
            coordinator,
            leases,
            others,
            courier,
            finish,
            unreadable,
        }
    }

    /// Slot pools that cannot be read.
    pub fn unreadable(&self) -> Unreadable {
        self.unreadable.clone()
    }

    /// Stops admission and fires, waits for running commands, ends those that outlive `patience` or `hurry`.
    pub async fn drain(mut self, patience: Duration, hurry: impl Future<Output = ()>) -> Drained {
        self.engine.begin_stopping();
        let all_ended = until_idle(&self.engine);
        let by_themselves = tokio::select! {
            () = all_ended => true,
            () = tokio::time::sleep(patience) => false,
            () = hurry => false,
        };
        let mut drained = Drained::ByThemselves;
        if !by_themselves {
            let left = self.engine.live.len();
            tracing::warn!("ending {left} commands: {}", self.engine.live.jobs().join(", "));
            self.engine.live.stop_all(&Stop::DaemonStopped);
            until_idle(&self.engine).await;
            drained = Drained::Ended(left);
        }
        while self.tasks.join_next().await.is_some() {}
        // What was just being claimed when the stop began has its command only now.
        if !self.engine.live.is_empty() {
            self.engine.live.stop_all(&Stop::DaemonStopped);
            until_idle(&self.engine).await;
        }
        self.leases.abort();
        self.others.abort();
        self.deliver_last().await;
        let patience = Duration::from_millis(limits::OPERATION_MS);
        let written = tokio::time::timeout(patience, until_written(&self.engine));
        if written.await.is_err() {
            tracing::warn!("what was told to runs is not all written; what was acknowledged is");
        }
        self.coordinator.abort();
        drained
    }
}

impl Loops {
    /// The commands that have just ended owe reports too: they get a bounded time. What is left is delivered by the next
    /// start.
    async fn deliver_last(&mut self) {
        self.finish.cancel();
        let patience = Duration::from_millis(limits::REPORT_DRAIN_MS);
        if tokio::time::timeout(patience, &mut self.courier).await.is_err() {
            tracing::info!("some reports are not delivered yet; the next start goes on with them");
            self.courier.abort();
        }
    }
}

/// Waits until every mailbox is empty.
async fn until_written(engine: &Engine) {
    while !engine.mailboxes.is_idle() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until nothing runs, and says each five seconds what it waits for.
async fn until_idle(engine: &Engine) {
    loop {
        let changed = engine.live.changed();
        if engine.live.is_empty() {
            return;
        }
        tokio::select! {
            () = changed => {}
            () = tokio::time::sleep(Duration::from_secs(5)) => {
                let jobs = engine.live.jobs();
                tracing::info!("waiting for {} commands: {}", jobs.len(), jobs.join(", "));
            }
        }
    }
}
