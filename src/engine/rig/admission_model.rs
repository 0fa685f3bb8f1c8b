//! A second slot pool, written from the specification's sections 4, 5 and 8 alone: slow, obvious, and without a line of the
//! product. A history is told to both, and both must say the same.

use std::collections::{BTreeMap, BTreeSet};

/// What a daemon's configuration says about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    Plain,
    /// Another command.
    Changed,
    /// Not enabled; what would run is the same.
    Disabled,
    /// In another slot pool.
    Moved,
    Removed,
}

impl Variant {
    /// What would run: two daemons agree about a job if this is equal.
    fn digest(self) -> Option<u8> {
        match self {
            Variant::Plain | Variant::Disabled => Some(0),
            Variant::Changed => Some(1),
            Variant::Moved => Some(2),
            Variant::Removed => None,
        }
    }

    pub(super) fn starts(self) -> bool {
        !matches!(self, Variant::Disabled | Variant::Removed)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    Allow,
    Forbid,
    Replace,
}

/// What all variants of a job have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelJob {
    pub(super) name: &'static str,
    pub(super) slot_pool: &'static str,
    pub(super) slots: u32,
    pub(super) priority: i32,
    pub(super) timeout_ms: i64,
    pub(super) overlap: Overlap,
}

pub(super) const MOVED_TO: &str = "r";

impl ModelJob {
    pub(super) fn slot_pool_in(&self, variant: Variant) -> &'static str {
        if variant == Variant::Moved {
            MOVED_TO
        } else {
            self.slot_pool
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    Running {
        fence: u64,
        daemon: usize,
        until: u64,
        /// Somebody wants it to end.
        ending: bool,
    },
    Finished,
    Expired,
    Cancelled,
}

#[derive(Debug, Clone)]
pub(super) struct ModelEntry {
    pub(super) id: u128,
    pub(super) run: u64,
    pub(super) job: &'static str,
    pub(super) slot_pool: &'static str,
    pub(super) slots: u32,
    pub(super) priority: i32,
    pub(super) queued_at: i64,
    pub(super) expires_at: i64,
    /// The only daemon that may claim it.
    pub(super) node: Option<usize>,
    pub(super) manual: bool,
    digest: Option<u8>,
    pub(super) deaths: u32,
    pub(super) state: State,
    pub(super) reason: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub(super) struct ModelSlots {
    /// `None`: nothing ever entered it.
    pub(super) stored: Option<u32>,
    pub(super) configured: u32,
    pub(super) max_queued: usize,
    pub(super) paused: bool,
}

#[derive(Debug, Clone)]
pub(super) struct ModelDaemon {
    pub(super) jobs: BTreeMap<&'static str, Variant>,
    pub(super) locks_trusted: bool,
}

/// What becomes of a head, in the words of 5.3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Head {
    Claim,
    Expire,
    Withdraw,
    Blocked {
        by: &'static str,
        /// `None`: the specification has no sentence for it.
        why: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) wall: i64,
    pub(super) boot: u64,
    pub(super) jobs: Vec<ModelJob>,
    pub(super) slot_pools: BTreeMap<&'static str, ModelSlots>,
    pub(super) entries: Vec<ModelEntry>,
    pub(super) daemons: Vec<ModelDaemon>,
    pub(super) published: BTreeMap<&'static str, Variant>,
    pub(super) paused_jobs: BTreeSet<&'static str>,
    pub(super) fired: BTreeSet<(&'static str, i64)>,
    pub(super) fences: u64,
    pub(super) raise_immediately: bool,
}

/// A wish to enter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    pub(super) daemon: usize,
    pub(super) job: &'static str,
    pub(super) id: u128,
    pub(super) run: u64,
    pub(super) node: Option<usize>,
    /// The instant of a fire; a start by hand has none.
    pub(super) instant: Option<i64>,
}

impl Model {
    pub(super) fn job(&self, name: &str) -> ModelJob {
        *self.jobs.iter().find(|job| job.name == name).unwrap()
    }

    /// True when a daemon's own configuration of the job is another one than that loaded last.
    pub(super) fn drifts(&self, daemon: usize, job: &str) -> bool {
        self.daemons[daemon].jobs[job].digest() != self.published[job].digest()
    }

    /// What a daemon whose file differs from what was loaded last may start is another matter.
    pub(super) fn may_start_otherwise(&self, daemon: usize, job: &str) -> bool {
        self.drifts(daemon, job) || !self.published[job].starts()
    }

    pub(super) fn stored(&self, slot_pool: &str) -> u32 {
        let row = &self.slot_pools[slot_pool];
        row.stored.unwrap_or(row.configured)
    }

    pub(super) fn used(&self, slot_pool: &str) -> u32 {
        let mut used = 0;
        for entry in &self.entries {
            if entry.slot_pool == slot_pool && matches!(entry.state, State::Running { .. }) {
                used += entry.slots;
            }
        }
        used
    }

    /// 5.2: priority descending, then queuedAt, then id.
    pub(super) fn queue(&self, slot_pool: &str) -> Vec<usize> {
        let waits =
            |at: &usize| self.entries[*at].slot_pool == slot_pool && self.entries[*at].state == State::Queued;
        let mut queue: Vec<usize> = (0..self.entries.len()).filter(waits).collect();
        queue.sort_by_key(|at| {
            let entry = &self.entries[*at];
            (-i64::from(entry.priority), entry.queued_at, entry.id)
        });
        queue
    }

    fn is_idle(&self, slot_pool: &str) -> bool {
        self.queue(slot_pool).is_empty() && self.used(slot_pool) == 0
    }

    fn close(&mut self, at: usize, state: State, reason: Option<&'static str>) {
        self.entries[at].state = state;
        self.entries[at].reason = reason;
    }

    /// T3 of every slot pool.
    fn maintain(&mut self) {
        for at in 0..self.entries.len() {
            if self.entries[at].state == State::Queued && self.entries[at].expires_at <= self.wall {
                self.close(at, State::Expired, Some("queue timeout"));
            }
        }
    }

    /// E5, and 8.1 for `capacityRaise: immediate`.
    fn switch(&mut self, slot_pool: &str) {
        let (stored, idle) = (self.stored(slot_pool), self.is_idle(slot_pool));
        let raise_immediately = self.raise_immediately;
        let row = self.slot_pools.get_mut(slot_pool).unwrap();
        let raises = raise_immediately && row.configured > stored;
        if row.stored.is_some() && (idle || raises) {
            row.stored = Some(row.configured);
        }
    }

    /// 5.1 and 9: the answer in words.
    pub(super) fn start(&mut self, wish: Wish) -> String {
        if let Some(instant) = wish.instant {
            if !self.fired.insert((wish.job, instant)) {
                return "already fired".to_owned();
            }
            if self.paused_jobs.contains(wish.job) {
                return "paused".to_owned();
            }
        }
        let (job, daemon) = (self.job(wish.job), &self.daemons[wish.daemon]);
        let variant = daemon.jobs[wish.job];
        let (slot_pool, locks_trusted) = (job.slot_pool_in(variant), daemon.locks_trusted);
        if !self.slot_pools.contains_key(slot_pool) {
            return format!("unknown pool '{slot_pool}'");
        }
        self.maintain();
        if !locks_trusted {
            return "pool state requires reliable exclusive locks".to_owned();
        }
        self.switch(slot_pool);
        if self.entries.iter().any(|entry| entry.id == wish.id) {
            return "queued".to_owned();
        }
        let row = &self.slot_pools[slot_pool];
        if self.stored(slot_pool) != row.configured {
            return "pool is draining before a capacity change".to_owned();
        }
        if self.queue(slot_pool).len() >= row.max_queued {
            return "pool queue is full".to_owned();
        }
        self.slot_pools.get_mut(slot_pool).unwrap().stored = Some(self.stored(slot_pool));
        // 4.4.2: a clock that steps back lets nobody overtake.
        let mut queued_at = self.wall;
        for entry in &self.entries {
            let open = matches!(entry.state, State::Queued | State::Running { .. });
            if open && entry.slot_pool == slot_pool && entry.priority == job.priority {
                queued_at = queued_at.max(entry.queued_at);
            }
        }
        self.entries.push(ModelEntry {
            id: wish.id,
            run: wish.run,
            job: wish.job,
            slot_pool,
            slots: job.slots,
            priority: job.priority,
            queued_at,
            expires_at: queued_at + job.timeout_ms,
            node: wish.node,
            manual: wish.instant.is_none(),
            digest: variant.digest(),
            deaths: 0,
            state: State::Queued,
            reason: None,
        });
        "queued".to_owned()
    }

    /// C9: live instances of the job besides this entry.
    fn others_live(&self, at: usize) -> Vec<usize> {
        let job = self.entries[at].job;
        let live = |other: &usize| {
            *other != at
                && self.entries[*other].job == job
                && matches!(self.entries[*other].state, State::Running { .. })
        };
        (0..self.entries.len()).filter(live).collect()
    }

    /// C2 to C10 for the entry, as this daemon sees it.
    pub(super) fn judge(&self, daemon: usize, at: usize) -> Head {
        let entry = &self.entries[at];
        let blocked = |by, why: Option<&str>| Head::Blocked {
            by,
            why: why.map(str::to_owned),
        };
        if self.slot_pools[entry.slot_pool].paused {
            return blocked("pool_paused", Some("Pool is paused"));
        }
        if entry.expires_at <= self.wall {
            return Head::Expire;
        }
        let published = self.published[entry.job];
        let moved = self.job(entry.job).slot_pool_in(published) != entry.slot_pool;
        if !published.starts() || published.digest() != entry.digest || moved {
            return Head::Withdraw;
        }
        if entry.node.is_some_and(|node| node != daemon) {
            return blocked("node", None);
        }
        if self.drifts(daemon, entry.job) {
            return blocked("drift", None);
        }
        if !entry.manual && self.paused_jobs.contains(entry.job) {
            return blocked("job_paused", Some("Job is paused"));
        }
        if self.job(entry.job).overlap != Overlap::Allow && !self.others_live(at).is_empty() {
            return blocked("forbid", Some("waiting for concurrency admission"));
        }
        let free = self
            .stored(entry.slot_pool)
            .saturating_sub(self.used(entry.slot_pool));
        if entry.slots > free {
            let why = format!("Needs {} slot(s); {free} available", entry.slots);
            return blocked("slots", Some(&why));
        }
        Head::Claim
    }

    /// A pass of a daemon: the ids that it claims, in order, with their fences.
    pub(super) fn pass(&mut self, daemon: usize) -> Vec<(u128, u64)> {
        let mut claimed = Vec::new();
        self.maintain();
        let names: Vec<&'static str> = self.slot_pools.keys().copied().collect();
        for name in &names {
            self.switch(name);
        }
        if !self.daemons[daemon].locks_trusted {
            return claimed;
        }
        for name in names {
            while let Some(at) = self.queue(name).first().copied() {
                match self.judge(daemon, at) {
                    Head::Expire => self.close(at, State::Expired, Some("queue timeout")),
                    Head::Withdraw => {
                        let why = "job removed, disabled, or configuration changed";
                        self.close(at, State::Cancelled, Some(why));
                    }
                    Head::Blocked { by, .. } => {
                        if by == "forbid" && self.job(self.entries[at].job).overlap == Overlap::Replace {
                            for other in self.others_live(at) {
                                self.ask_to_end(other);
                            }
                        }
                        break;
                    }
                    Head::Claim => {
                        self.fences += 1;
                        let running = State::Running {
                            fence: self.fences,
                            daemon,
                            until: self.boot + 30_000,
                            ending: false,
                        };
                        self.close(at, running, None);
                        claimed.push((self.entries[at].id, self.fences));
                    }
                }
            }
        }
        claimed
    }

    fn ask_to_end(&mut self, at: usize) {
        if let State::Running { ending, .. } = &mut self.entries[at].state {
            *ending = true;
        }
    }

    fn held_by(&self, claim: u64) -> Option<usize> {
        let holds =
            |entry: &ModelEntry| matches!(entry.state, State::Running { fence, .. } if fence == claim);
        self.entries.iter().position(holds)
    }

    /// T8 or T15; false if the claim is over.
    pub(super) fn complete(&mut self, fence: u64, cancelled: bool) -> bool {
        let Some(at) = self.held_by(fence) else {
            return false;
        };
        self.close(at, State::Finished, cancelled.then_some("run cancelled"));
        true
    }

    /// T10, T12, T13, T14, or T15 if somebody wanted its end; false if the claim is over.
    pub(super) fn give_back(&mut self, fence: u64, why: &'static str, died: bool) -> bool {
        let Some(at) = self.held_by(fence) else {
            return false;
        };
        let State::Running { ending, .. } = self.entries[at].state else {
            return false;
        };
        if ending {
            self.close(at, State::Finished, Some("run cancelled"));
        } else if died && self.entries[at].deaths == 4 {
            self.close(at, State::Cancelled, Some("crash limit reached"));
        } else {
            self.entries[at].deaths += u32::from(died);
            self.close(at, State::Queued, Some(why));
        }
        true
    }

    /// Claims that have a lease which is over.
    pub(super) fn lapsed(&self) -> BTreeSet<u64> {
        let mut lapsed = BTreeSet::new();
        for entry in &self.entries {
            if let State::Running { fence, until, .. } = entry.state
                && self.boot >= until
            {
                lapsed.insert(fence);
            }
        }
        lapsed
    }

    /// Claims of a daemon.
    pub(super) fn held(&self, owner: usize) -> BTreeSet<u64> {
        let mut held = BTreeSet::new();
        for entry in &self.entries {
            if let State::Running { fence, daemon, .. } = entry.state
                && daemon == owner
            {
                held.insert(fence);
            }
        }
        held
    }

    pub(super) fn renew(&mut self, owner: usize) {
        for entry in &mut self.entries {
            if let State::Running { daemon, until, .. } = &mut entry.state
                && *daemon == owner
            {
                *until = self.boot + 30_000;
            }
        }
    }

    /// T4, or why not.
    pub(super) fn cancel_entry(&mut self, at: usize) -> &'static str {
        match self.entries[at].state {
            State::Queued => {
                self.close(at, State::Cancelled, Some("cancelled by operator"));
                "cancelled"
            }
            State::Cancelled => "cancelled",
            State::Running { .. } | State::Finished | State::Expired => "not waiting",
        }
    }

    /// A run that waits ends; one that runs is asked to.
    pub(super) fn cancel_run(&mut self, at: usize) {
        match self.entries[at].state {
            State::Queued => self.close(at, State::Cancelled, Some("cancelled by operator")),
            State::Running { .. } => self.ask_to_end(at),
            State::Finished | State::Expired | State::Cancelled => {}
        }
    }
}
