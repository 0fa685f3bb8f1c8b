//! What every handler is given: the engine, the settings of the server, what is known about health.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio_util::sync::CancellationToken;

use super::head::HeadMemory;
use super::health::Health;
use super::once::InFlight;
use super::origin::Origins;
use crate::config::Config;
use crate::engine::core::Engine;
use crate::engine::dispatch::Unreadable;
use crate::words::time::Millis;

/// The version of this binary.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Who calls while no keys exist.
pub(super) const PRINCIPAL: &str = "local";

/// The parts that handlers share. Clones share them too.
#[derive(Debug, Clone)]
pub struct App {
    pub(super) engine: Engine,
    pub(super) unreadable: Unreadable,
    pub(super) config: Arc<Config>,
    pub(super) origins: Arc<Origins>,
    pub(super) health: Health,
    pub(super) heads: HeadMemory,
    pub(super) streams: Arc<AtomicUsize>,
    pub(super) in_flight: InFlight,
    pub(super) started_at: Millis,
    pub(super) stop: CancellationToken,
}

impl App {
    /// `address` is the one that is really listened on: a port of 0 in the configuration says nothing.
    pub fn new(engine: &Engine, unreadable: Unreadable, config: &Config, address: SocketAddr) -> App {
        App {
            engine: engine.clone(),
            unreadable,
            config: Arc::new(config.clone()),
            origins: Arc::new(Origins::new(address, &config.server)),
            health: Health::default(),
            heads: HeadMemory::default(),
            streams: Arc::default(),
            in_flight: InFlight::default(),
            started_at: engine.now().wall,
            stop: CancellationToken::new(),
        }
    }
}
