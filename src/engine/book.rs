//! The book: what this daemon's configuration says, in the form that the engine works with.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::domain::report::{Routes, Value};
use crate::domain::routing::objects::PipelineMode;
use crate::domain::schedule::Schedule;
use crate::domain::workflow::definition::{Definition, SecretFrom};
use crate::domain::workflow::graph::build::Graph;
use crate::words::names::{JobName, NodeName, SlotPoolName};
use crate::words::network::EgressRule;

/// A job as this daemon knows it.
#[derive(Debug, Clone)]
pub struct BookJob {
    /// What a run does.
    pub definition: Arc<Definition>,
    /// Its published version.
    pub version: u32,
    /// Changes when what would run changes.
    pub digest: String,
    /// Changes when anything of the definition changes.
    pub content: String,
    /// Its steps and edges, compiled; none for a job.
    pub graph: Option<Arc<Graph>>,
    /// When it fires.
    pub schedule: Option<Arc<Schedule>>,
    /// Where its reports go.
    pub reports: Arc<Routes>,
}

/// A slot pool as it is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookSlots {
    /// Its capacity.
    pub slots: u32,
    /// Its longest queue.
    pub max_queued: u32,
}

/// Everything that the configuration says about work.
#[derive(Debug, Clone)]
pub struct Book {
    /// This daemon.
    pub node: NodeName,
    /// Jobs by name.
    pub jobs: BTreeMap<JobName, BookJob>,
    /// Slot pools by name.
    pub slot_pools: BTreeMap<SlotPoolName, BookSlots>,
    /// A raise of capacity does not wait for a drain.
    pub raise_immediately: bool,
    /// The lock self-test passed.
    pub locks_trusted: bool,
    /// What this daemon tells the outside besides its jobs' reports.
    pub notify: Notify,
    /// What HTTP steps may reach besides public addresses.
    pub egress: Arc<[EgressRule]>,
    /// How checks of routing run where neither recipient pool nor tenant say so.
    pub pipeline_mode: PipelineMode,
    /// What alerts of routing are signed with; without it they are not.
    pub alert_secret: Option<SecretFrom>,
}

/// What a daemon tells the outside besides its jobs' reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notify {
    /// What is requested while the daemon lives.
    pub heartbeat: Option<Heartbeat>,
    /// Where people find this daemon: the beginning of the links in reports.
    pub base_url: Option<String>,
}

/// A request that is repeated while the daemon lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// What is requested; it may hold a token.
    pub url: Value,
    /// How often, in milliseconds.
    pub every_ms: u64,
}

/// The book in force. A reload replaces it whole.
#[derive(Debug, Clone)]
pub struct BookShelf {
    current: Arc<RwLock<Arc<Book>>>,
}

impl BookShelf {
    /// Begins with `book`.
    pub fn new(book: Book) -> BookShelf {
        BookShelf {
            current: Arc::new(RwLock::new(Arc::new(book))),
        }
    }

    /// The book in force.
    pub fn current(&self) -> Arc<Book> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another in force.
    pub fn replace(&self, book: Book) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(book);
    }
}
