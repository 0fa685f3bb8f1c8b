//! `verify`: a second command judges what the first one has done.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::command::{
    Ended, Log, Plan, Seen, Stops, end_group, ended_by, launch, seconds, stopped, stuck_of, wait,
};
use super::process::{Exit, OutputSink, SavedLines, Shim, Stream, close_after, own_exe, pump};
use crate::domain::workflow::attempt::{self, CODE_TIMEOUT, Outcome};
use crate::domain::workflow::definition::Verify;
use crate::words::limits;

/// `None` when `verify` agrees.
pub(super) async fn result(
    plan: &Plan,
    verify: &Verify,
    code: i32,
    mut stops: Stops,
    log: &mut Log,
) -> Option<Ended> {
    let mut with_code = plan.clone();
    with_code
        .marks
        .push(("DUCTOR_EXIT_CODE".to_owned(), code.to_string()));
    let script = verify.command.clone();
    let shim = match Shim::spawn(&own_exe()) {
        Ok(shim) => shim,
        Err(error) => {
            return Some(verify_failed(
                Some(code),
                &format!("could not start: {error}"),
                "",
            ));
        }
    };
    // It sees the same files as the command.
    let launched = launch(shim, &with_code, &script, Arc::clone(&log.secrets), None).await;
    let mut running = match launched {
        Ok((running, _)) => running,
        Err(sentence) => {
            return Some(verify_failed(
                Some(code),
                &format!("could not start: {sentence}"),
                "",
            ));
        }
    };
    let (seen, end, saved) = {
        let mut sink = VerifySink {
            saved: SavedLines::new(limits::VERIFY_LINES_MAX),
        };
        let Some(output) = running.take_output() else {
            return Some(verify_failed(Some(code), "has no output", ""));
        };
        let close = CancellationToken::new();
        let closer = close.clone();
        let mut filter = log.secrets.filter();
        let reading = tokio::spawn(async move {
            pump(output, &mut filter, &mut sink, &closer).await;
            sink.saved
        });
        let seen = wait(
            &running,
            Some(Duration::from_millis(verify.timeout_ms)),
            &mut stops,
        )
        .await;
        let end = end_group(&mut running, &seen, plan.step.kill_timeout_ms, &mut stops).await;
        let saved = close_after(reading, &close, Duration::from_millis(limits::PIPE_LINGER_MS)).await;
        (seen, end, saved)
    };
    let text = saved.map(|saved| verify_text(&saved)).unwrap_or_default();
    for line in text.lines() {
        log.remark(&format!("verify: {line}")).await;
    }
    let ended = match seen {
        Seen::Exited(Exit { code: 0 }) => return None,
        Seen::Exited(exit) => verify_failed(Some(code), &attempt::code_sentence(exit.code), &text),
        Seen::TimedOut => {
            let why = format!("timeout of {} s", seconds(verify.timeout_ms));
            verify_failed(Some(CODE_TIMEOUT), &why, &text)
        }
        Seen::Stopped(request) => stopped(&request),
        Seen::Unknown(cause) => verify_failed(Some(code), &cause, &text),
    };
    Some(Ended {
        stuck: stuck_of(end),
        ..ended
    })
}

fn verify_text(saved: &SavedLines) -> String {
    let mut text = saved.text(Stream::Stdout);
    text.push_str(&saved.text(Stream::Stderr));
    text
}

fn verify_failed(code: Option<i32>, why: &str, text: &str) -> Ended {
    let text = text.trim_end();
    let reason = if text.is_empty() {
        format!("verify: {why}")
    } else {
        format!("verify: {why}: {text}")
    };
    ended_by(Outcome::Failed, code, reason)
}

struct VerifySink {
    saved: SavedLines,
}

impl OutputSink for VerifySink {
    async fn write(&mut self, tagged: &[u8]) {
        self.saved.feed(tagged);
    }
}
