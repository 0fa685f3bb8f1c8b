//! The thread that listens to other daemons: it moves the sequence on when they commit, and makes the writer let them in.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::error::StoreError;
use super::handle::Shared;
use super::opening::{Sharing, StoreMode};
use super::peers::await_word;
use crate::words::limits;

/// Binds the socket of `name` and starts the thread. Without a socket it looks a few times a second only.
pub(super) fn listen(shared: &Arc<Shared>, name: &str) -> Result<(), StoreError> {
    if shared.options().mode == StoreMode::Exclusive {
        return Ok(());
    }
    let socket = match shared.peers.listen(name) {
        Ok(socket) => Some(socket),
        Err(error) => {
            tracing::warn!(cause = %error, "other daemons cannot wake this one; it looks four times a second");
            None
        }
    };
    let weak = Arc::downgrade(shared);
    std::thread::Builder::new()
        .name("store-ear".to_owned())
        .spawn(move || {
            while let Some(looked) = look(&weak) {
                match &socket {
                    Some(socket) => await_word(socket),
                    None => looked.nap(Duration::from_millis(limits::PEER_LOOK_MS)),
                }
            }
        })?;
    Ok(())
}

/// One look; `None` when the store is closed.
fn look(weak: &Weak<Shared>) -> Option<Arc<Shared>> {
    let shared = weak.upgrade()?;
    if shared.queue.is_closed() {
        return None;
    }
    match shared.sharing() {
        Some(Sharing::Together) => {
            // A store that cannot be read now is looked at again; whoever needs it says so.
            if let Ok(sequence) = shared.sequence_of("sequence") {
                shared.reached(sequence, 0);
            }
        }
        Some(Sharing::Alone) if shared.options().mode == StoreMode::Auto => {
            if shared.somebody_wants_in() {
                shared.queue.ask_hand_over();
            }
        }
        Some(Sharing::Alone) | None => {}
    }
    Some(shared)
}
