//! What every handler is given: the engine, the settings of the server, what is known about health.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::endings::Endings;
use super::head::HeadMemory;
use super::health::{self, Health};
use super::once::InFlight;
use super::origin::Origins;
use super::status;
use super::throttle::{Failures, Rates};
use crate::config::Config;
use crate::daemon::{Pulse, Reloader, doors};
use crate::dashboard::WebFiles;
use crate::engine::access::{Keyring, Ring};
use crate::engine::backups::Backups;
use crate::engine::core::Engine;
use crate::engine::dispatch::Unreadable;
use crate::store::hash_key::HashKey;
use crate::words::ids::KeyId;
use crate::words::time::Millis;

/// The version of this binary.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The parts that handlers share. Clones share them too.
#[derive(Debug, Clone)]
pub struct App {
    pub(super) engine: Engine,
    pub(super) unreadable: Unreadable,
    pub(super) reloader: Reloader,
    pub(super) origins: Arc<Mutex<(Arc<Config>, Arc<Origins>)>>,
    pub(super) address: SocketAddr,
    pub(super) web: WebFiles,
    pub(super) health: Health,
    pub(super) heads: HeadMemory,
    pub(super) endings: Endings,
    pub(super) backups: Backups,
    pub(super) streams: Arc<AtomicUsize>,
    pub(super) in_flight: InFlight,
    pub(super) keyring: Keyring,
    pub(super) hash_key: Arc<HashKey>,
    pub(super) failures: Failures,
    pub(super) rates: Rates,
    pub(super) uses: Arc<Mutex<BTreeMap<KeyId, Millis>>>,
    pub(super) started_at: Millis,
    pub(super) stop: CancellationToken,
}

impl App {
    /// `address` is the one that is really listened on: a port of 0 in the configuration says nothing.
    pub fn new(engine: &Engine, unreadable: Unreadable, reloader: &Reloader, address: SocketAddr) -> App {
        let config = reloader.config();
        let origins = Arc::new(Origins::new(address, &config.server));
        let hash_key = doors::hash_key_path(engine, &config.auth);
        App {
            engine: engine.clone(),
            unreadable,
            reloader: reloader.clone(),
            origins: Arc::new(Mutex::new((config, origins))),
            address,
            web: WebFiles::default(),
            health: Health::default(),
            heads: HeadMemory::default(),
            endings: Endings::default(),
            backups: Backups::default(),
            streams: Arc::default(),
            in_flight: InFlight::default(),
            keyring: Keyring::new(&engine.store),
            hash_key: Arc::new(HashKey::at(hash_key)),
            failures: Failures::default(),
            rates: Rates::default(),
            uses: Arc::default(),
            started_at: engine.now().wall,
            stop: CancellationToken::new(),
        }
    }

    /// The dashboard from a folder instead of the binary.
    #[must_use]
    pub fn with_web(self, web: WebFiles) -> App {
        App { web, ..self }
    }

    /// How the daemon is, for its supervisor: scheduler and store answer, and a sentence.
    pub async fn pulse(&self) -> Pulse {
        let verdict = if health::is_starting(self) {
            "Starting.".to_owned()
        } else {
            status::verdict_now(self).await
        };
        Pulse {
            alive: health::is_alive(self),
            verdict,
        }
    }

    /// The configuration in force.
    pub(super) fn config(&self) -> Arc<Config> {
        self.reloader.config()
    }

    /// True while nobody has to say who calls: there are no keys and no issuers, and only this machine is listened to. A reload that
    /// takes the last issuer out of a daemon that others can reach locks it.
    pub(super) fn is_open(&self, ring: &Ring) -> bool {
        ring.is_open() && self.config().auth.issuers.is_empty() && self.address.ip().is_loopback()
    }

    /// From where requests may come; made anew when another configuration has come into force.
    pub(super) fn origins(&self) -> Arc<Origins> {
        let config = self.config();
        let mut known = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&known.0, &config) {
            let origins = Arc::new(Origins::new(self.address, &config.server));
            *known = (config, origins);
        }
        Arc::clone(&known.1)
    }
}
