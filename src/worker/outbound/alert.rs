//! Alerts of routing: a POST to an address that an API caller has named, so the egress guard judges it. No redirects.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::guard::{self, Decision};
use super::guarded::{GuardedClient, Request, SendFailure};
use super::signature::sign;
use super::target::Target;
use crate::domain::report::Delivery;
use crate::domain::workflow::definition::SecretFrom;
use crate::domain::workflow::http_args::HttpMethod;
use crate::words::limits;
use crate::words::network::EgressRule;
use crate::worker::secrets::value_of;

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
    /// What [`sign_alert`] made of it, where there is a secret.
    pub signature: Option<String>,
}

/// Signs an alert as the reports of jobs are. Reads files: call it from a blocking context. The error shows no value.
pub fn sign_alert(secret: &SecretFrom, id: &str, timestamp_s: i64, body: &[u8]) -> Result<String, String> {
    sign(&value_of(secret)?, id, timestamp_s, body)
}

/// Why no alert may go to an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadAddress {
    /// It is none.
    Invalid(String),
    /// The egress guard would refuse it.
    Forbidden(String),
}

/// Judges the address of alerts when somebody names it. A host's name is looked up when an alert is sent, and judged then: what
/// it means now says nothing of later.
pub fn judge_alert_address(text: &str, rules: &[EgressRule]) -> Result<(), BadAddress> {
    let target = Target::parse(text).map_err(BadAddress::Invalid)?;
    let here = |name: &str| {
        let name = name.trim_end_matches('.');
        name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
    };
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    let is_here = target.name().is_some_and(here) || target.address().is_some_and(is_loopback);
    if !target.is_secure() && !is_here {
        let why = "it must begin with https://; http:// is for this machine alone";
        return Err(BadAddress::Invalid(why.to_owned()));
    }
    let address = target
        .address()
        .or(is_here.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let Some(address) = address else { return Ok(()) };
    match guard::decide(address, target.name(), target.port(), rules) {
        Decision::Allowed(_) => Ok(()),
        Decision::Denied(why) => Err(BadAddress::Forbidden(format!(
            "it is {why}; where that is meant, list it in `egress.allow` of the configuration"
        ))),
    }
}

/// Posts an alert. Any status of success is a delivery.
pub async fn post_alert(alert: Alert<'_>, rules: &[EgressRule]) -> Delivery {
    let target = match Target::parse(alert.url) {
        Ok(target) => target,
        Err(why) => return Delivery::Refused(why),
    };
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("webhook-id".to_owned(), alert.id),
        ("webhook-timestamp".to_owned(), alert.timestamp_s.to_string()),
    ];
    headers.extend(
        alert
            .signature
            .map(|signature| ("webhook-signature".to_owned(), signature)),
    );
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

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str, rules: &[&str]) -> String {
        let rules: Vec<EgressRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        match judge_alert_address(text, &rules) {
            Ok(()) => "ok".to_owned(),
            Err(BadAddress::Invalid(why)) => format!("invalid {why}"),
            Err(BadAddress::Forbidden(why)) => format!("forbidden {why}"),
        }
    }

    #[test]
    fn an_address_of_alerts_is_judged_when_it_is_named() {
        for (text, rules, expected) in [
            ("https://alerts.example.org/x", &[][..], "ok"),
            ("https://93.184.216.34/", &[], "ok"),
            ("https://10.0.0.1/", &["10.0.0.0/8"], "ok"),
            ("http://127.0.0.1:9/", &["127.0.0.0/8"], "ok"),
            ("http://localhost:9/", &["127.0.0.1"], "ok"),
            (
                "http://alerts.example.org/",
                &[],
                "invalid it must begin with https://",
            ),
            (
                "http://10.0.0.1/",
                &["10.0.0.0/8"],
                "invalid it must begin with https://",
            ),
            (
                "ftp://alerts.example.org/",
                &[],
                "invalid it must begin with http",
            ),
            ("alerts.example.org", &[], "invalid relative URL"),
            ("https://", &[], "invalid empty host"),
            (
                "https://me:pw@alerts.example.org/",
                &[],
                "invalid it has a user name",
            ),
            ("https://127.0.0.1/", &[], "forbidden it is a loopback address"),
            ("https://2130706433/", &[], "forbidden it is a loopback address"),
            (
                "https://[::ffff:127.0.0.1]/",
                &[],
                "forbidden it is a loopback address",
            ),
            (
                "https://api.LOCALHOST./",
                &[],
                "forbidden it is a loopback address",
            ),
            (
                "https://169.254.169.254/",
                &[],
                "forbidden it is a cloud's metadata address",
            ),
            (
                "https://192.168.1.1/",
                &["10.0.0.0/8"],
                "forbidden it is a private address",
            ),
        ] {
            let found = judged(text, rules);
            assert!(found.starts_with(expected), "{text}: {found}");
        }
    }
}
