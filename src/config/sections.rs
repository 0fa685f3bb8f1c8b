//! The sections that describe the daemon itself: server, state, node, retention, shutdown, logging, notify, egress.
//! Each reader starts from the defaults and replaces what the file says.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::access;
use super::fault::Fault;
use super::keys::Section;
use super::model::{
    CapacityRaise, Config, EgressConfig, LogFormat, LoggingConfig, NodeConfig, RetentionConfig, ServerConfig,
    ShutdownConfig, StateConfig, StateMode,
};
use super::reading::{Field, Fields, Reading};
use super::report_model::{HeartbeatConfig, NotifyConfig};
use super::{reports, routing, tenants};
use crate::words::network::EgressRule;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// Entries of `allowedHosts`, `allowedOrigins` or `egress.allow`; each is compared with every request.
const ALLOWED_MAX: usize = 100;

pub(super) const NODE_NAME_RULE: &str = "node name must match [a-z0-9][a-z0-9._-]{0,62}";
pub(super) const LISTEN_RULE: &str = "server.listen must be an address and port";
pub(super) const LISTEN_HELP: &str = "like 127.0.0.1:8470, 0.0.0.0:8470 or [::1]:8470";
pub(super) const LEVEL_RULE: &str = "logging.level must be off, error, warn, info, debug or trace";
pub(super) const LEVEL_HELP: &str = "or a list with modules, like info,ductor::fire=debug";
pub(super) const FORMAT_RULE: &str = "logging.format must be auto, pretty or json";
pub(super) const FORMATS: [(&str, LogFormat); 3] = [
    ("auto", LogFormat::Auto),
    ("pretty", LogFormat::Pretty),
    ("json", LogFormat::Json),
];

/// Reads the named section if it is one of this file's; the fields come from the document.
pub(super) fn read(reading: &mut Reading<'_>, word: &str, field: &Field, config: &mut Config) {
    match word {
        "server" => server(reading, field, &mut config.server),
        "state" => state(reading, field, &mut config.state),
        "node" => node(reading, field, &mut config.node),
        "retention" => retention(reading, field, &mut config.retention),
        "shutdown" => shutdown(reading, field, &mut config.shutdown),
        "logging" => logging(reading, field, &mut config.logging),
        "notify" => notify(reading, field, &mut config.notify),
        "egress" => egress(reading, field, &mut config.egress),
        "auth" => access::auth(reading, field, &mut config.auth),
        "tenants" => config.tenants = tenants::tenants(reading, field),
        "routing" => routing::routing(reading, field, &mut config.routing),
        _ => {}
    }
}

pub(super) fn open(reading: &mut Reading<'_>, field: &Field, section: Section, path: &str) -> Option<Fields> {
    let fields = reading.fields(&field.node, section)?;
    Some(fields.with_path(path))
}

fn server(reading: &mut Reading<'_>, field: &Field, server: &mut ServerConfig) {
    let Some(fields) = open(reading, field, Section::Server, "server.") else {
        return;
    };
    if let Some(field) = fields.get("listen") {
        set(&mut server.listen, listen(reading, &field));
    }
    if let Some(field) = fields.get("publicUrl") {
        server.public_url = web_address(reading, &field, true);
    }
    if let Some(field) = fields.get("allowedHosts") {
        server.allowed_hosts = allowed(
            reading,
            &field,
            |text| is_host(text).then(|| text.to_owned()),
            "a host like ductor.example.org or 10.0.0.5:8470",
        );
    }
    if let Some(field) = fields.get("allowedOrigins") {
        server.allowed_origins = allowed(
            reading,
            &field,
            |text| is_origin(text).then(|| text.to_owned()),
            "an origin like https://ops.example.org",
        );
    }
    if let Some(field) = fields.get("maxBodyBytes") {
        let text = "server.maxBodyBytes must be between 1KiB and 1GiB";
        set(&mut server.max_body_bytes, reading.size(&field, KIB..=GIB, text));
    }
    if let Some(field) = fields.get("requestTimeout") {
        let text = "server.requestTimeout must be between 100ms and 1h";
        set(
            &mut server.request_timeout_ms,
            reading.duration(&field, 100..=3_600_000, text),
        );
    }
    if let Some(field) = fields.get("rateLimit") {
        access::rate_limit(reading, &field, &mut server.rate_limit);
    }
}

fn listen(reading: &mut Reading<'_>, field: &Field) -> Option<SocketAddr> {
    let text = reading.substituted(field)?;
    let address = text.parse().ok();
    if address.is_none() {
        reading.report(Fault::error("config/bad-value", field.at(), LISTEN_RULE).with_help(LISTEN_HELP));
    }
    address
}

fn web_address(reading: &mut Reading<'_>, field: &Field, may_have_path: bool) -> Option<String> {
    let text = reading.substituted(field)?;
    let address = text.trim_end_matches('/');
    if is_web_address(address, may_have_path) {
        return Some(address.to_owned());
    }
    let message = format!(
        "{} must begin with http:// or https:// and name a host",
        field.label
    );
    reading.error("config/bad-value", field.at(), message);
    None
}

fn is_web_address(text: &str, may_have_path: bool) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        is_host(host)
            && (may_have_path || path.is_empty())
            && !path.contains(['?', '#', ' '])
            && !path.chars().any(char::is_control)
    })
}

fn is_origin(text: &str) -> bool {
    is_web_address(text, false)
}

fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
}

fn allowed<T>(
    reading: &mut Reading<'_>,
    field: &Field,
    read: fn(&str) -> Option<T>,
    expected: &str,
) -> Vec<T> {
    let items = reading.list(field).unwrap_or_default();
    if items.len() > ALLOWED_MAX {
        let message = format!("{} may have at most {ALLOWED_MAX} entries", field.label);
        reading.error("config/too-large", field.at(), message);
        return Vec::new();
    }
    let mut entries = Vec::new();
    for item in items {
        let Some(text) = reading.substituted_of(&item, &field.label) else {
            continue;
        };
        match read(&text) {
            Some(entry) => entries.push(entry),
            None => {
                let message = format!("an entry of {} must be {expected}", field.label);
                reading.error("config/bad-value", &item.at, message);
            }
        }
    }
    entries
}

fn state(reading: &mut Reading<'_>, field: &Field, state: &mut StateConfig) {
    let Some(fields) = open(reading, field, Section::State, "state.") else {
        return;
    };
    if let Some(field) = fields.get("path") {
        set(&mut state.path, state_path(reading, &field));
    }
    if let Some(field) = fields.get("mode") {
        let words = [
            ("auto", StateMode::Auto),
            ("exclusive", StateMode::Exclusive),
            ("shared", StateMode::Shared),
        ];
        let text = "state.mode must be auto, exclusive or shared";
        let chosen = reading.choice(&field, &words, text);
        set(&mut state.mode, chosen);
    }
    if let Some(field) = fields.get("capacityRaise") {
        let words = [
            ("drain", CapacityRaise::Drain),
            ("immediate", CapacityRaise::Immediate),
        ];
        let text = "state.capacityRaise must be drain or immediate";
        set(&mut state.capacity_raise, reading.choice(&field, &words, text));
    }
    if let Some(field) = fields.get("cacheBytes") {
        let text = "state.cacheBytes must be between 1MiB and 64GiB";
        set(&mut state.cache_bytes, reading.size(&field, MIB..=64 * GIB, text));
    }
    if let Some(field) = fields.get("network") {
        set(&mut state.network, reading.boolean(&field));
    }
    if let Some(field) = fields.get("lowDiskBytes") {
        let text = "state.lowDiskBytes is out of range";
        set(
            &mut state.low_disk_bytes,
            reading.size(&field, 0..=1024 * GIB, text),
        );
    }
}

fn state_path(reading: &mut Reading<'_>, field: &Field) -> Option<PathBuf> {
    // `state.path: null` is the missing state that `load.rs` speaks about.
    if field.node.is_null() {
        return None;
    }
    let path = reading.path(field)?;
    if path.starts_with("~") || path.to_string_lossy().starts_with('~') {
        let fault = Fault::error("config/bad-value", field.at(), "state.path cannot begin with `~`");
        reading.report(fault.with_help("write ${HOME} instead"));
        return None;
    }
    Some(path)
}

fn node(reading: &mut Reading<'_>, field: &Field, node: &mut NodeConfig) {
    let Some(fields) = open(reading, field, Section::Node, "node.") else {
        return;
    };
    if let Some(field) = fields.get("name") {
        let Some(name) = reading.substituted(&field) else {
            return;
        };
        if is_node_name(&name) {
            node.name = Some(name);
        } else {
            reading.error("config/bad-value", field.at(), NODE_NAME_RULE);
        }
    }
}

pub(super) fn is_node_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    (1..=63).contains(&name.len()) && name.bytes().all(is_inner) && !name.starts_with(['.', '_', '-'])
}

fn retention(reading: &mut Reading<'_>, field: &Field, retention: &mut RetentionConfig) {
    let Some(fields) = open(reading, field, Section::Retention, "retention.") else {
        return;
    };
    if let Some(field) = fields.get("runs") {
        let text = "retention.runs must be between 1 and 1000000";
        set(&mut retention.runs, reading.count(&field, 1..=1_000_000, text));
    }
    if let Some(field) = fields.get("age") {
        let text = "retention.age must be at least 1m";
        set(
            &mut retention.age_ms,
            reading.duration(&field, 60_000..=u64::MAX, text),
        );
    }
    retention.logs.age_ms = retention.age_ms;
    if let Some(field) = fields.get("logs") {
        retention_of_logs(reading, &field, retention);
    }
    if let Some(field) = fields.get("audit") {
        retention_of_audit(reading, &field, retention);
    }
}

fn retention_of_audit(reading: &mut Reading<'_>, field: &Field, retention: &mut RetentionConfig) {
    let Some(fields) = open(reading, field, Section::RetentionAudit, "retention.audit.") else {
        return;
    };
    if let Some(field) = fields.get("age") {
        let text = "retention.audit.age must be at least 1m";
        set(
            &mut retention.audit.age_ms,
            reading.duration(&field, 60_000..=u64::MAX, text),
        );
    }
    if let Some(field) = fields.get("count") {
        let text = "retention.audit.count must be at least 1";
        set(
            &mut retention.audit.count,
            reading.count(&field, 1..=u32::MAX, text),
        );
    }
}

fn retention_of_logs(reading: &mut Reading<'_>, field: &Field, retention: &mut RetentionConfig) {
    let Some(fields) = open(reading, field, Section::RetentionLogs, "retention.logs.") else {
        return;
    };
    if let Some(field) = fields.get("age") {
        let text = "retention.logs.age must be at least 1m";
        set(
            &mut retention.logs.age_ms,
            reading.duration(&field, 60_000..=u64::MAX, text),
        );
    }
    if let Some(field) = fields.get("bytes") {
        let text = "retention.logs.bytes must be at least 1MiB";
        retention.logs.bytes = reading.size(&field, MIB..=u64::MAX, text);
    }
}

fn shutdown(reading: &mut Reading<'_>, field: &Field, shutdown: &mut ShutdownConfig) {
    let Some(fields) = open(reading, field, Section::Shutdown, "shutdown.") else {
        return;
    };
    if let Some(field) = fields.get("drainTimeout") {
        let text = "shutdown.drainTimeout must be between 0 and 24h";
        set(
            &mut shutdown.drain_timeout_ms,
            reading.duration(&field, 0..=86_400_000, text),
        );
    }
}

fn logging(reading: &mut Reading<'_>, field: &Field, logging: &mut LoggingConfig) {
    let Some(fields) = open(reading, field, Section::Logging, "logging.") else {
        return;
    };
    if let Some(field) = fields.get("level") {
        match reading.text(&field) {
            Some(level) if is_level(&level) => logging.level = level,
            Some(_) => {
                reading
                    .report(Fault::error("config/bad-value", field.at(), LEVEL_RULE).with_help(LEVEL_HELP));
            }
            None => {}
        }
    }
    if let Some(field) = fields.get("format") {
        set(&mut logging.format, reading.choice(&field, &FORMATS, FORMAT_RULE));
    }
}

fn notify(reading: &mut Reading<'_>, field: &Field, notify: &mut NotifyConfig) {
    let Some(fields) = open(reading, field, Section::Notify, "notify.") else {
        return;
    };
    let Some(heartbeat) = fields.get("heartbeat") else {
        return;
    };
    let Some(fields) = open(reading, &heartbeat, Section::Heartbeat, "notify.heartbeat.") else {
        return;
    };
    let mut every_ms = 60_000;
    if let Some(field) = fields.get("every") {
        let text = "notify.heartbeat.every must be between 1s and 24h";
        set(&mut every_ms, reading.duration(&field, 1_000..=86_400_000, text));
    }
    let Some(url) = fields.get("url") else {
        let message = "notify.heartbeat needs a `url`";
        return reading.error("config/missing", &heartbeat.key_at, message);
    };
    let url = reports::address(reading, &url, "notify.heartbeat.url");
    notify.heartbeat = url.map(|url| HeartbeatConfig { url, every_ms });
}

fn egress(reading: &mut Reading<'_>, field: &Field, egress: &mut EgressConfig) {
    let Some(fields) = open(reading, field, Section::Egress, "egress.") else {
        return;
    };
    let Some(allow) = fields.get("allow") else { return };
    let rule = |text: &str| text.parse::<EgressRule>().ok();
    let expected = "a network, a host name, or one of them with a port: 10.0.0.0/8, api.internal:443";
    egress.allow = allowed(reading, &allow, rule, expected);
}

/// A level, or several `module=level` and levels with commas between.
pub(super) fn is_level(text: &str) -> bool {
    text.len() <= 1000
        && text.split(',').all(|part| {
            let level = match part.trim().rsplit_once('=') {
                Some(("", _)) => return false,
                Some((_, level)) => level,
                None => part.trim(),
            };
            ["off", "error", "warn", "info", "debug", "trace"]
                .iter()
                .any(|known| level.eq_ignore_ascii_case(known))
        })
}

/// A value that was faulty leaves the default: the load has failed anyway.
pub(super) fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_names() {
        for (name, good) in [
            ("a", true),
            ("node-1.example_x", true),
            (&"a".repeat(63), true),
            (&"a".repeat(64), false),
            ("", false),
            ("-a", false),
            ("A", false),
            ("a b", false),
        ] {
            assert_eq!(is_node_name(name), good, "{name}");
        }
    }

    #[test]
    fn levels_and_addresses() {
        for (text, good) in [
            ("info", true),
            ("WARN", true),
            ("info,ductor::fire=debug", true),
            ("loud", false),
            ("", false),
            ("=info", false),
        ] {
            assert_eq!(is_level(text), good, "{text}");
        }
        for (text, good) in [
            ("https://ops.example.org", true),
            ("http://[::1]:8470", true),
            ("https://", false),
            ("ftp://x", false),
            ("https://a b", false),
            ("https://a/x", false),
        ] {
            assert_eq!(is_origin(text), good, "{text}");
        }
    }
}
