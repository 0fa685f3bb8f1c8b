//! `sla`, and the `report` of `onFailure`, `onPermanentFailure`, `onSuccess` and `onLate`: who is told, and when.

use super::fault::{Fault, Place, shown};
use super::job_layer::LayerReader;
use super::keys::{Section, nearest};
use super::model::{CommandConfig, SecretSource};
use super::reading::{Field, Fields, Reading};
use super::report_model::{
    Address, HeaderConfig, HiddenText, ReportConfig, ReportsConfig, ShellReportConfig, SlaConfig,
    WebhookConfig,
};
use super::tree::{Node, Value};
use crate::domain::report::{FIELDS, Template};
use crate::words::limits;

const HOUR_MS: u64 = 3_600_000;

/// What a file says of one target.
#[derive(Clone, Default)]
enum Layered<T> {
    /// Nothing: what `defaults` say holds.
    #[default]
    Absent,
    /// There is none. A faulty one counts as such: its fault is reported.
    Dropped,
    /// This one.
    Set(T),
}

impl<T: Clone> Layered<T> {
    fn of(found: Option<T>) -> Layered<T> {
        found.map_or(Layered::Dropped, Layered::Set)
    }

    fn over(self, base: &Layered<T>) -> Option<T> {
        match (self, base) {
            (Layered::Set(own), _) => Some(own),
            (Layered::Absent, Layered::Set(base)) => Some(base.clone()),
            (Layered::Absent, Layered::Absent | Layered::Dropped) | (Layered::Dropped, _) => None,
        }
    }
}

/// The reports of one layer.
#[derive(Clone, Default)]
pub(super) struct ReportsLayer {
    on_failure: ReportLayer,
    on_permanent_failure: ReportLayer,
    on_success: ReportLayer,
    on_late: ReportLayer,
    /// Where `onLate` asks for something.
    pub(super) late_at: Option<Place>,
}

#[derive(Clone, Default)]
struct ReportLayer {
    webhook: Layered<WebhookConfig>,
    shell: Layered<ShellReportConfig>,
}

impl ReportsLayer {
    /// This layer over `base`, target by target.
    pub(super) fn over(self, base: &ReportsLayer) -> ReportsConfig {
        ReportsConfig {
            on_failure: self.on_failure.over(&base.on_failure),
            on_permanent_failure: self.on_permanent_failure.over(&base.on_permanent_failure),
            on_success: self.on_success.over(&base.on_success),
            on_late: self.on_late.over(&base.on_late),
        }
    }
}

impl ReportLayer {
    fn over(self, base: &ReportLayer) -> ReportConfig {
        ReportConfig {
            webhook: self.webhook.over(&base.webhook),
            shell: self.shell.over(&base.shell),
        }
    }

    fn asks(&self) -> bool {
        matches!(self.webhook, Layered::Set(_)) || matches!(self.shell, Layered::Set(_))
    }
}

impl LayerReader<'_, '_> {
    pub(super) fn sla(&mut self, fields: &Fields) -> SlaConfig {
        let Some(field) = fields.get("sla") else {
            return SlaConfig::default();
        };
        let Some(fields) = self.reading.fields(&field.node, Section::Sla) else {
            return SlaConfig::default();
        };
        let fields = fields.with_subject(self.subject).with_path("sla.");
        SlaConfig {
            max_time_since_success_ms: self.limit(&fields, "maxTimeSinceSuccess"),
            late_after_ms: self.limit(&fields, "lateAfter"),
            max_runtime_ms: self.limit(&fields, "maxRuntime"),
        }
    }

    /// A limit, under its name or with `Seconds` behind it.
    fn limit(&mut self, fields: &Fields, word: &str) -> Option<u64> {
        let longer = format!("{word}Seconds");
        let (own, other) = (fields.get(word), fields.get(&longer));
        if let (Some(own), Some(other)) = (&own, &other) {
            let message = self.text(&format!("sla: `{word}` and `{longer}` are the same key"));
            let fault = Fault::error("config/duplicate-key", &other.key_at, message);
            self.reading
                .report(fault.with_related(&own.key_at, "the other one stands here"));
        }
        let field = own.or(other)?;
        // A bare key switches off what `defaults` says nothing about either: it is as if it were not there.
        if field.node.is_null() {
            return None;
        }
        let text = self.text(&format!("sla.{word} must be > 0"));
        self.reading.duration(&field, 1..=u64::MAX, &text)
    }

    /// `failure`: what stands under `onFailure.report`, which has been opened already.
    pub(super) fn reports(&mut self, fields: &Fields, failure: Option<Field>) -> ReportsLayer {
        let mut layer = ReportsLayer::default();
        if let Some(field) = failure {
            layer.on_failure = self.report(&field, "onFailure.report.");
        }
        layer.on_permanent_failure = self
            .hook(fields, "onPermanentFailure", Section::OnPermanentFailure)
            .0;
        layer.on_success = self.hook(fields, "onSuccess", Section::OnSuccess).0;
        let (late, at) = self.hook(fields, "onLate", Section::OnLate);
        layer.late_at = at.filter(|_| late.asks());
        layer.on_late = late;
        layer
    }

    /// What stands under a hook, and where the hook does.
    fn hook(&mut self, fields: &Fields, word: &str, section: Section) -> (ReportLayer, Option<Place>) {
        let Some(hook) = fields.get(word) else {
            return Default::default();
        };
        let Some(inner) = self.reading.fields(&hook.node, section) else {
            return Default::default();
        };
        let inner = inner.with_subject(self.subject).with_path(&format!("{word}."));
        let Some(field) = inner.get("report") else {
            return Default::default();
        };
        let report = self.report(&field, &format!("{word}.report."));
        (report, Some(hook.key_at))
    }

    fn report(&mut self, field: &Field, path: &str) -> ReportLayer {
        let mut layer = ReportLayer::default();
        let Some(fields) = self.reading.fields(&field.node, Section::Report) else {
            return layer;
        };
        let fields = fields.with_subject(self.subject).with_path(path);
        // A bare `webhook:` drops that of `defaults`.
        if let Some(field) = fields.get("webhook") {
            layer.webhook = Layered::of(if field.node.is_null() {
                None
            } else {
                self.webhook(&field, &format!("{path}webhook."))
            });
        }
        if let Some(field) = fields.get("shell") {
            layer.shell = Layered::of(if field.node.is_null() {
                None
            } else {
                self.shell_report(&field, &format!("{path}shell."))
            });
        }
        layer
    }

    fn webhook(&mut self, field: &Field, path: &str) -> Option<WebhookConfig> {
        let fields = self.reading.fields(&field.node, Section::Webhook)?;
        let fields = fields.with_subject(self.subject).with_path(path);
        let subject = self.text("report.webhook: ");
        let headers = fields.get("headers");
        let headers = headers.map_or_else(Vec::new, |field| self.headers(&field, &subject));
        let secret = match fields.get("secret") {
            Some(field) => Some(secret(self.reading, &field, &subject)?),
            None => None,
        };
        let body = match fields.get("body") {
            Some(field) => Some(self.body(&field, &headers, &subject)?),
            None => None,
        };
        let Some(url) = fields.get("url") else {
            let message = format!("{subject}url is missing");
            self.reading.error("config/missing", &field.key_at, message);
            return None;
        };
        let url = address(self.reading, &url, &format!("{subject}url"))?;
        Some(WebhookConfig {
            url,
            headers,
            secret,
            body,
        })
    }

    fn headers(&mut self, field: &Field, subject: &str) -> Vec<HeaderConfig> {
        let pairs = self.reading.pairs(&field.node, &field.label).unwrap_or_default();
        if pairs.len() > limits::WEBHOOK_HEADERS_MAX {
            let message = format!(
                "{subject}headers has more than {} entries",
                limits::WEBHOOK_HEADERS_MAX
            );
            self.reading.error("config/too-large", field.at(), message);
            return Vec::new();
        }
        let mut headers: Vec<HeaderConfig> = Vec::new();
        for (name, key, node) in pairs {
            let why = if !is_header_name(&name) {
                Some("is no name of a header")
            } else if is_own_header(&name) {
                Some("is set by ductor")
            } else if headers.iter().any(|other| other.name.eq_ignore_ascii_case(&name)) {
                Some("is given twice")
            } else {
                None
            };
            if let Some(why) = why {
                let message = format!("{subject}header '{}' {why}", shown(&name));
                self.reading.error("config/bad-value", &key.at, message);
                continue;
            }
            let label = format!("{subject}header '{}'", shown(&name));
            let value = hidden_text(self.reading, &node, &label);
            headers.extend(value.map(|value| HeaderConfig { name, value }));
        }
        headers
    }

    fn body(&mut self, field: &Field, headers: &[HeaderConfig], subject: &str) -> Option<Template> {
        let text = self.reading.text(field)?;
        if text.len() > limits::WEBHOOK_BODY_BYTES_MAX {
            let message = format!(
                "{subject}body has more than {} bytes",
                limits::WEBHOOK_BODY_BYTES_MAX
            );
            self.reading.error("config/too-large", field.at(), message);
            return None;
        }
        match Template::parse(&text, is_json(headers)) {
            Ok(template) => Some(template),
            Err(fault) => {
                let at = self.reading.inside(&field.node, fault.span.start, fault.span.end);
                let help = match &fault.unknown {
                    Some(word) => nearest(word, FIELDS.into_iter())
                        .map(|field| format!("did you mean `${{{field}}}`?"))
                        .or_else(|| Some(format!("the fields are {}", FIELDS.join(", ")))),
                    None if text.contains("{{") || text.contains("{%") => Some(
                        "fields are written `${reason}` here, and there are no other instructions".to_owned(),
                    ),
                    None => None,
                };
                let message = format!("{subject}{}", fault.message);
                self.reading
                    .report(Fault::error("config/bad-value", &at, message).with_help_if(help));
                None
            }
        }
    }

    fn shell_report(&mut self, field: &Field, path: &str) -> Option<ShellReportConfig> {
        let fields = self.reading.fields(&field.node, Section::ShellReport)?;
        let fields = fields.with_subject(self.subject).with_path(path);
        let shell = match fields.get("shell") {
            Some(field) => {
                let shell = std::path::PathBuf::from(self.reading.text(&field)?);
                if !shell.is_absolute() {
                    let message = self.text("report.shell: shell must be an absolute path");
                    self.reading.error("config/bad-value", field.at(), message);
                    return None;
                }
                Some(shell)
            }
            None => None,
        };
        let timeout_ms = match fields.get("timeout") {
            Some(field) => {
                let text = self.text("report.shell: timeout must be > 0 and at most 1h");
                self.reading.duration(&field, 1..=HOUR_MS, &text)?
            }
            None => 60_000,
        };
        let Some(command) = fields.get("command") else {
            let message = self.text("report.shell: command is missing");
            self.reading.error("config/missing", &field.key_at, message);
            return None;
        };
        let command = self.command(&command, "report.shell: command")?;
        Some(ShellReportConfig {
            command,
            shell,
            timeout_ms,
        })
    }
}

/// An http address, as text or as a reference to where it is read. `subject` names it in messages.
pub(super) fn address(reading: &mut Reading<'_>, field: &Field, subject: &str) -> Option<Address> {
    let text = hidden_text(reading, &field.node, &field.label)?;
    if let HiddenText::Written(url) = &text
        && !is_address(url)
    {
        let message = format!("{subject} must begin with http:// or https:// and name a host");
        reading.error("config/bad-value", field.at(), message);
        return None;
    }
    Some(Address(text))
}

fn is_address(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        !host.is_empty()
            && !host.starts_with(':')
            && !rest
                .chars()
                .any(|letter| letter.is_whitespace() || letter.is_control())
    })
}

/// A text in which `${…}` is replaced, or a map that says where it is read.
fn hidden_text(reading: &mut Reading<'_>, node: &Node, label: &str) -> Option<HiddenText> {
    if !matches!(node.value, Value::Mapping(_)) {
        return reading.substituted_of(node, label).map(HiddenText::Written);
    }
    let fields = reading.fields(node, Section::HiddenText)?;
    let words = ["value", "fromFile", "fromEnvVar"];
    let given: Vec<Field> = words.iter().filter_map(|word| fields.get(word)).collect();
    let [field] = given.as_slice() else {
        let message = format!("{label}: give one of value, fromFile and fromEnvVar");
        reading.error("config/missing", &node.at, message);
        return None;
    };
    if fields.has("value") {
        return reading.substituted(field).map(HiddenText::Written);
    }
    let source = if fields.has("fromFile") {
        SecretSource::File(reading.path(field)?)
    } else {
        SecretSource::Variable(reading.word(field)?)
    };
    Some(HiddenText::From(source))
}

/// A secret stands elsewhere, never in the file.
pub(super) fn secret(reading: &mut Reading<'_>, field: &Field, subject: &str) -> Option<SecretSource> {
    let message = format!("{subject}secret: give fromFile or fromEnvVar");
    if !matches!(field.node.value, Value::Mapping(_)) {
        let fault = Fault::error("config/bad-value", field.at(), message);
        reading.report(fault.with_help("the secret itself must not stand in this file"));
        return None;
    }
    let fields = reading.fields(&field.node, Section::HiddenSecret)?;
    match (fields.get("fromFile"), fields.get("fromEnvVar")) {
        (Some(file), None) => Some(SecretSource::File(reading.path(&file)?)),
        (None, Some(variable)) => Some(SecretSource::Variable(reading.word(&variable)?)),
        (Some(_), Some(_)) | (None, None) => {
            reading.error("config/missing", field.at(), message);
            None
        }
    }
}

fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=256).contains(&name.len()) && name.bytes().all(is_token)
}

/// What the request itself, or the signature, needs.
fn is_own_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("webhook-")
        || [
            "host",
            "content-length",
            "transfer-encoding",
            "connection",
            "upgrade",
            "te",
            "trailer",
        ]
        .contains(&name.as_str())
}

/// The body is JSON unless a header says otherwise.
fn is_json(headers: &[HeaderConfig]) -> bool {
    let content_type = headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-type"));
    match content_type.map(|header| &header.value) {
        Some(HiddenText::Written(text)) => text.to_ascii_lowercase().contains("json"),
        Some(HiddenText::From(_)) => false,
        None => true,
    }
}

/// Bytes of text of the reports of one kind.
pub(super) fn text_bytes(report: &ReportConfig) -> usize {
    let hidden = |text: &HiddenText| match text {
        HiddenText::Written(text) => text.len(),
        HiddenText::From(SecretSource::File(path)) => path.as_os_str().len(),
        HiddenText::From(SecretSource::Variable(name)) => name.len(),
    };
    let webhook = report.webhook.as_ref().map_or(0, |webhook| {
        let headers = webhook.headers.iter();
        hidden(&webhook.url.0)
            + headers
                .map(|header| header.name.len() + hidden(&header.value))
                .sum::<usize>()
            + webhook.body.as_ref().map_or(0, Template::text_bytes)
            + size_of::<WebhookConfig>()
    });
    let shell = report.shell.as_ref().map_or(0, |shell| {
        let command = match &shell.command {
            CommandConfig::Shell(text) => text.len(),
            CommandConfig::List(words) => words.iter().map(|word| word.len() + size_of::<String>()).sum(),
        };
        command + size_of::<ShellReportConfig>()
    });
    webhook + shell
}
