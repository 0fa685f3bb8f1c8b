//! Keeps the supervisor (systemd) informed: the verdict as its status line, a sign of life only while there is life, and more
//! time while commands are waited for.

use std::time::Duration;

use crate::engine::core::Engine;
use crate::os::supervisor;

/// How often the status line follows the verdict.
const STATUS_PERIOD: Duration = Duration::from_secs(5);
/// While it drains, the daemon asks for this much more time at each turn.
const DRAIN_EXTENSION: Duration = Duration::from_secs(30);

/// How the daemon is.
#[derive(Debug, Clone)]
pub struct Pulse {
    /// Scheduler and store answer.
    pub alive: bool,
    /// A sentence for people.
    pub verdict: String,
}

/// Says that the daemon is ready, and how it is from then on; ends with its task. `pulse` is asked at each turn.
pub async fn attend<F>(engine: Engine, pulse: impl Fn() -> F)
where
    F: Future<Output = Pulse>,
{
    if !supervisor::is_there() {
        return;
    }
    supervisor::ready();
    let half = supervisor::watchdog().map(|within| within / 2);
    let period = half.map_or(STATUS_PERIOD, |half| half.min(STATUS_PERIOD));
    let mut told = String::new();
    loop {
        // A store that hangs is no life.
        let now = tokio::time::timeout(period, pulse())
            .await
            .unwrap_or_else(|_| Pulse {
                alive: false,
                verdict: "Not ready: the daemon does not answer itself.".to_owned(),
            });
        if half.is_some() && now.alive {
            supervisor::alive();
        }
        if engine.is_stopping() {
            supervisor::extend_stop(DRAIN_EXTENSION);
        }
        if now.verdict != told {
            supervisor::status(&now.verdict);
            told = now.verdict;
        }
        tokio::select! {
            () = tokio::time::sleep(period) => {}
            () = engine.until_stopping(), if !engine.is_stopping() => supervisor::stopping(),
        }
    }
}
