//! The reasons for which a due moment does not become a run: stable words, and what they mean.

/// A reason in words, to follow "it was skipped:".
pub fn skip_text(code: &str) -> String {
    let text = match code {
        "pool_full" => "the queue of its pool was full",
        "pool_draining" => "its pool was draining before a capacity change",
        "pool_unavailable" => "the state of its pool was unavailable",
        "pool_locks" => "pool state requires reliable exclusive locks",
        "pool_unknown" => "its pool is not configured",
        "configuration_differs" => {
            "the configuration of its node was not the one that another daemon had loaded last"
        }
        "node_drained" => "its node was drained",
        "no_room" => "the disk of the state directory had too little room for a new run",
        "job_paused" => "the job was paused",
        "still_running" => "another instance was still running, and its concurrencyPolicy is Forbid",
        "last_not_successful" => "the run before it had not succeeded, and onlyIfLastSucceeded is set",
        "missed" => "nobody could fire it in time",
        "queue_timeout" => "it waited for slots longer than its queueTimeout",
        "cancelled" => "it was cancelled while it waited",
        other => return other.replace('_', " "),
    };
    text.to_owned()
}

/// The stable word for a run that was accepted and ended without a start, from the reason that it stores.
pub fn skipped_run_code(reason: &str) -> &'static str {
    if reason == "queue timeout" {
        "queue_timeout"
    } else {
        "cancelled"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_of_the_specification_has_words() {
        let all = [
            "pool_full",
            "pool_draining",
            "pool_unavailable",
            "pool_locks",
            "pool_unknown",
            "configuration_differs",
            "node_drained",
            "no_room",
            "job_paused",
            "still_running",
            "last_not_successful",
            "missed",
            "queue_timeout",
            "cancelled",
        ];
        for code in all {
            assert!(skip_text(code).contains(' '), "{code}");
            assert_ne!(skip_text(code), code.replace('_', " "));
        }
        assert_eq!(skip_text("of_a_newer_ductor"), "of a newer ductor");
        assert_eq!(skipped_run_code("queue timeout"), "queue_timeout");
        assert_eq!(skipped_run_code("cancelled by operator"), "cancelled");
    }
}
