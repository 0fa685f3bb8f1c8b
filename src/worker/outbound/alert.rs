//! Alerts of routing: a POST to an address that an API caller has named, so the egress guard judges it. No redirects.

use std::time::Duration;

use super::guarded::{GuardedClient, Request, SendFailure};
use super::target::Target;
use crate::domain::report::Delivery;
use crate::domain::workflow::http_args::HttpMethod;
use crate::words::limits;
use crate::words::network::EgressRule;

/// What is posted.
#[derive(Debug)]
pub struct Alert<'a> {
    /// Where.
    pub url: &'a str,
    /// What the receiver tells repeated deliveries by.
    pub id: String,
    /// When, in seconds.
    pub timestamp_s: i64,
    /// JSON.
    pub body: Vec<u8>,
}

/// Posts an alert. Any status of success is a delivery.
pub async fn post_alert(alert: Alert<'_>, rules: &[EgressRule]) -> Delivery {
    let target = match Target::parse(alert.url) {
        Ok(target) => target,
        Err(why) => return Delivery::Refused(why),
    };
    let headers = [
        ("content-type".to_owned(), "application/json".to_owned()),
        ("webhook-id".to_owned(), alert.id),
        ("webhook-timestamp".to_owned(), alert.timestamp_s.to_string()),
    ];
    let request = Request {
        method: HttpMethod::Post,
        target: &target,
        headers: &headers,
        body: Some(alert.body),
    };
    let client = GuardedClient::new();
    let timeout = Duration::from_millis(limits::WEBHOOK_TIMEOUT_MS);
    let Ok((answer, _)) = tokio::time::timeout(timeout, client.send(request, rules)).await else {
        return Delivery::Failed(format!("no answer within {} s", timeout.as_secs()));
    };
    match answer {
        Ok(answer) if (200..300).contains(&answer.status) => Delivery::Done,
        Ok(answer) => Delivery::Failed(format!("status {} {}", answer.status, answer.reason)),
        Err(SendFailure::Denied(denied)) => Delivery::Refused(format!("the egress guard: {denied:?}")),
        Err(
            SendFailure::Lookup(why)
            | SendFailure::Connect(why)
            | SendFailure::Tls(why)
            | SendFailure::Broken(why)
            | SendFailure::Client(why),
        ) => Delivery::Failed(why),
    }
}
