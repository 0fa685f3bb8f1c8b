//! What other daemons commit may be work for this one: slots that were freed, an entry that anybody may claim, a run that is
//! to be cancelled here. Their commits wake the loops.

use std::time::Duration;

use super::core::Engine;
use crate::words::limits;

/// The loop.
#[derive(Debug)]
pub struct Others {
    engine: Engine,
}

impl Others {
    /// For the store of this engine.
    pub fn new(engine: Engine) -> Others {
        Others { engine }
    }

    /// Wakes until the daemon stops; many commits in a row are one reason to wake.
    pub async fn run(self) {
        let mut commits = self.engine.store.watch_foreign();
        loop {
            tokio::select! {
                moved = commits.changed() => if moved.is_err() { return },
                () = self.engine.until_stopping() => return,
            }
            self.engine.wake.notify_one();
            self.engine.wake_follow_ups.notify_one();
            self.engine.report_wake.notify_one();
            tokio::time::sleep(Duration::from_millis(limits::FOREIGN_WAKE_MS)).await;
        }
    }
}
