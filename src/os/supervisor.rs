//! Messages to the supervisor that started us, in systemd's notify protocol. Without one they go nowhere.
//!
//! A message that cannot be sent is no reason to fail: the supervisor decides what silence means. Nor is one that cannot be
//! sent now a reason to wait: a supervisor that does not read has its socket full after ten messages, and then a send blocks.

use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use sd_notify::NotifyState;

/// Variables by which a supervisor addresses one process. They are for us and for no command that we start: a command that
/// answered would speak in our name.
pub const VARIABLES: [&str; 6] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
];

/// True when somebody listens.
pub fn is_there() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some_and(|socket| !socket.is_empty())
}

/// The time within which a sign of life is expected.
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// Started, or done with a reload.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// A reload begins.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!(cause = %error, "the monotonic clock cannot be read"),
    }
}

/// The drain begins.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// A line for people.
pub fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// A sign of life.
pub fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// The stop takes this much longer from now on.
pub fn extend_stop(by: Duration) {
    let usec = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
    tell(&[NotifyState::ExtendTimeoutUsec(usec)]);
}

/// Messages that wait for a supervisor that does not read; what comes then is dropped.
const WAITING_MAX: usize = 32;

/// Hands the message to a thread of its own: only that one waits.
fn tell(news: &[NotifyState<'_>]) {
    static MESSENGER: OnceLock<Option<SyncSender<String>>> = OnceLock::new();
    let Some(messenger) = MESSENGER.get_or_init(messenger) else {
        return;
    };
    let lines: Vec<String> = news.iter().map(NotifyState::to_string).collect();
    if messenger.try_send(lines.join("\n")).is_err() {
        tracing::debug!("the supervisor does not read; a message to it is dropped");
    }
}

fn messenger() -> Option<SyncSender<String>> {
    let (sender, messages) = sync_channel::<String>(WAITING_MAX);
    let send = move || {
        for message in messages {
            if let Err(error) = sd_notify::notify(&[NotifyState::Custom(&message)]) {
                tracing::debug!(cause = %error, "the supervisor could not be told");
            }
        }
    };
    match std::thread::Builder::new()
        .name("supervisor".to_owned())
        .spawn(send)
    {
        Ok(_) => Some(sender),
        Err(error) => {
            tracing::debug!(cause = %error, "no thread for messages to the supervisor");
            None
        }
    }
}
