//! What a command that talks to the daemon works with.

use std::sync::{Mutex, PoisonError};

use super::client::Client;
use super::show::Show;

/// The client and the two streams.
#[derive(Debug)]
pub(super) struct Session {
    /// Talks to the daemon.
    pub(super) client: Client,
    /// Talks to the person.
    pub(super) show: Show,
    leaving: Mutex<Option<String>>,
}

impl Session {
    /// A session with nothing to say at its end.
    pub(super) fn new(client: Client, show: Show) -> Session {
        Session {
            client,
            show,
            leaving: Mutex::new(None),
        }
    }

    /// What to say when the command is left before its end (Ctrl-C, `--timeout`).
    pub(super) fn say_when_left(&self, sentence: String) {
        *self.leaving.lock().unwrap_or_else(PoisonError::into_inner) = Some(sentence);
    }

    /// Says it.
    pub(super) fn leave(&self) {
        let sentence = self.leaving.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sentence) = sentence {
            self.show.note(&sentence);
        }
    }
}
