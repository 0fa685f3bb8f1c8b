//! The typed configuration of reports, lateness and the heartbeat. What may be a secret is never serialised.

use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::model::{CommandConfig, SecretSource};
use crate::domain::report::Template;

/// When a job is late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SlaConfig {
    pub max_time_since_success_ms: Option<u64>,
    pub late_after_ms: Option<u64>,
    pub max_runtime_ms: Option<u64>,
}

impl SlaConfig {
    /// This layer over `base`.
    pub(super) fn over(self, base: SlaConfig) -> SlaConfig {
        SlaConfig {
            max_time_since_success_ms: self.max_time_since_success_ms.or(base.max_time_since_success_ms),
            late_after_ms: self.late_after_ms.or(base.late_after_ms),
            max_runtime_ms: self.max_runtime_ms.or(base.max_runtime_ms),
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self == SlaConfig::default()
    }
}

/// Who is told of a job, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportsConfig {
    pub on_failure: ReportConfig,
    pub on_permanent_failure: ReportConfig,
    pub on_success: ReportConfig,
    pub on_late: ReportConfig,
}

impl ReportsConfig {
    pub(super) fn all(&self) -> [&ReportConfig; 4] {
        [
            &self.on_failure,
            &self.on_permanent_failure,
            &self.on_success,
            &self.on_late,
        ]
    }
}

/// Where the reports of one kind go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportConfig {
    pub webhook: Option<WebhookConfig>,
    pub shell: Option<ShellReportConfig>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookConfig {
    pub url: Address,
    pub headers: Vec<HeaderConfig>,
    /// None: not signed.
    #[serde(serialize_with = "shown_secret")]
    pub secret: Option<SecretSource>,
    /// None: the document of the specification.
    #[serde(skip)]
    pub body: Option<Template>,
}

/// A header of which only the name is ever shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeaderConfig {
    pub name: String,
    #[serde(skip)]
    pub value: HiddenText,
}

/// A text that stands in the file, or elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub enum HiddenText {
    Written(String),
    From(SecretSource),
}

/// What is written may be a secret.
impl std::fmt::Debug for HiddenText {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HiddenText::Written(_) => out.write_str("Written(..)"),
            HiddenText::From(from) => out.debug_tuple("From").field(from).finish(),
        }
    }
}

/// An http address. Its path often is a secret, so that only its host is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(pub HiddenText);

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&match &self.0 {
            HiddenText::Written(url) => shown_address(url),
            HiddenText::From(from) => shown_source(from).to_owned(),
        })
    }
}

/// `https://hooks.example.org/…`: no path, no query, and no name or password before the host.
fn shown_address(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return "(hidden)".to_owned();
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let end = if path.is_empty() { "" } else { "/…" };
    format!("{scheme}://{host}{end}")
}

fn shown_source(from: &SecretSource) -> &'static str {
    match from {
        SecretSource::File(_) => "(from a file)",
        SecretSource::Variable(_) => "(from a variable)",
    }
}

#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
pub(super) fn shown_secret<S: Serializer>(
    secret: &Option<SecretSource>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(shown_source).serialize(serializer)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellReportConfig {
    pub command: CommandConfig,
    /// None: the job's.
    pub shell: Option<PathBuf>,
    pub timeout_ms: u64,
}

/// What the daemon tells the outside about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotifyConfig {
    pub heartbeat: Option<HeartbeatConfig>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatConfig {
    pub url: Address,
    pub every_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_its_host_only() {
        for (url, expected) in [
            (
                "https://hooks.example.org/services/T0/secret",
                "https://hooks.example.org/…",
            ),
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
            (
                "https://me:password@host.example?token=x",
                "https://host.example/…",
            ),
            ("https://host/@x", "https://host/…"),
            ("nonsense", "(hidden)"),
        ] {
            assert_eq!(shown_address(url), expected);
        }
    }
}
