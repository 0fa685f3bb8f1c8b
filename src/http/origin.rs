//! From where a browser may reach the daemon: hosts it is known under, and origins whose pages may call it.
//!
//! Loopback is no boundary: any page in the user's browser reaches it by name rebinding or a form post.

use std::net::SocketAddr;

use axum::http::{HeaderMap, Method, Uri, header};

use super::pages;
use crate::config::ServerConfig;

/// Why a request is turned away before it is routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Foreign {
    /// 421.
    Host,
    /// 403.
    Origin,
}

/// The hosts and origins of this daemon.
#[derive(Debug, Clone, Default)]
pub(super) struct Origins {
    hosts: Vec<String>,
    public_origin: Option<String>,
    allowed: Vec<String>,
}

impl Origins {
    /// From what is listened on and what the configuration adds.
    pub(super) fn new(address: SocketAddr, server: &ServerConfig) -> Origins {
        let port = address.port();
        let mut hosts = if address.ip().is_loopback() {
            vec![
                format!("localhost:{port}"),
                format!("127.0.0.1:{port}"),
                format!("[::1]:{port}"),
            ]
        } else {
            vec![address.to_string()]
        };
        if address.ip().is_loopback() && !hosts.contains(&address.to_string()) {
            hosts.push(address.to_string());
        }
        if port == 80 {
            let bare: Vec<String> = hosts
                .iter()
                .filter_map(|host| host.strip_suffix(":80").map(str::to_owned))
                .collect();
            hosts.extend(bare);
        }
        let public_origin = server.public_url.as_deref().and_then(origin_of);
        if let Some((_, host)) = public_origin
            .as_deref()
            .and_then(|origin| origin.split_once("://"))
        {
            hosts.push(host.to_owned());
        }
        hosts.extend(server.allowed_hosts.iter().map(|host| host.to_ascii_lowercase()));
        let allowed = server.allowed_origins.iter().filter(|origin| *origin != "null");
        let allowed = allowed
            .map(|origin| origin.trim_end_matches('/').to_ascii_lowercase())
            .collect();
        Origins {
            hosts,
            public_origin,
            allowed,
        }
    }

    /// Judges the headers of a request; `Ok` carries the foreign origin that may read the answer.
    pub(super) fn judge(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Option<String>, Foreign> {
        let host = self.host(uri, headers).ok_or(Foreign::Host)?;
        let Some(origin) = headers.get(header::ORIGIN) else {
            return if is_welcome_fetch(method, uri, headers) {
                Ok(None)
            } else {
                Err(Foreign::Origin)
            };
        };
        let origin = origin.to_str().unwrap_or("null").to_ascii_lowercase();
        let is_one = headers.get_all(header::ORIGIN).iter().count() == 1;
        let is_own = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            == Some(&host)
            || self.public_origin.as_deref() == Some(&origin);
        if is_one && is_own {
            return Ok(None);
        }
        if is_one && self.allowed.contains(&origin) {
            Ok(Some(origin))
        } else {
            Err(Foreign::Origin)
        }
    }

    /// The host of a request, if it is one of ours.
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Option<String> {
        let mut named = headers.get_all(header::HOST).iter();
        let host = named.next()?.to_str().ok()?.to_ascii_lowercase();
        let in_line = uri
            .authority()
            .map(|authority| authority.as_str().to_ascii_lowercase());
        let agrees = in_line.is_none_or(|authority| authority == host);
        (named.next().is_none() && agrees && self.knows(&host)).then_some(host)
    }

    /// A host on the list without a port stands for each of its ports.
    fn knows(&self, host: &str) -> bool {
        let bare = match host.rsplit_once(':') {
            Some((bare, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => bare,
            Some(_) | None => host,
        };
        self.hosts.iter().any(|known| known == host || known == bare)
    }
}

/// Scheme and authority of a URL, in small letters.
fn origin_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next().filter(|authority| !authority.is_empty())?;
    Some(format!("{scheme}://{authority}").to_ascii_lowercase())
}

/// Without `Origin`: not a browser, our own page, or somebody who follows a link to a page.
fn is_welcome_fetch(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    match text("sec-fetch-site") {
        Some("cross-site" | "same-site") => {
            method == Method::GET && text("sec-fetch-mode") == Some("navigate") && pages::is_page(uri.path())
        }
        Some(_) | None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn judge(server: &ServerConfig, listen: &str, pairs: &[(&str, &str)]) -> Result<Option<String>, Foreign> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: header::HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        let origins = Origins::new(listen.parse().unwrap(), server);
        origins.judge(&Method::GET, &Uri::from_static("/pools"), &headers)
    }

    #[test]
    fn hosts_are_those_of_the_list() {
        let server = ServerConfig {
            public_url: Some("https://Jobs.example.com/".to_owned()),
            allowed_hosts: vec!["inner".to_owned(), "other:99".to_owned()],
            ..ServerConfig::default()
        };
        let check = |listen: &str, host: &str, ok: bool| {
            let want = if ok { Ok(None) } else { Err(Foreign::Host) };
            assert_eq!(judge(&server, listen, &[("host", host)]), want, "{listen} {host}");
        };
        for host in ["localhost:8470", "127.0.0.1:8470", "[::1]:8470", "LOCALHOST:8470"] {
            check("127.0.0.1:8470", host, true);
        }
        for host in [
            "jobs.example.com",
            "jobs.example.com:443",
            "inner",
            "inner:1",
            "other:99",
        ] {
            check("127.0.0.1:8470", host, true);
        }
        for host in [
            "localhost",
            "localhost:8471",
            "evil.example",
            "evil.example:8470",
            "other",
            "127.0.0.1",
            "[::1]",
            "",
        ] {
            check("127.0.0.1:8470", host, false);
        }
        check("10.0.0.5:80", "10.0.0.5", true);
        check("10.0.0.5:80", "localhost:80", false);
        assert_eq!(judge(&server, "127.0.0.1:8470", &[]), Err(Foreign::Host));
        assert_eq!(
            judge(&server, "127.0.0.1:8470", &[("host", "inner"), ("host", "evil")]),
            Err(Foreign::Host)
        );
    }

    #[test]
    fn origins_are_our_own_or_allowed() {
        let server = ServerConfig {
            public_url: Some("https://jobs.example.com".to_owned()),
            allowed_origins: vec!["https://board.example.com".to_owned(), "null".to_owned()],
            ..ServerConfig::default()
        };
        let check = |origin: &str, want: Result<Option<String>, Foreign>| {
            let pairs = [("host", "127.0.0.1:8470"), ("origin", origin)];
            assert_eq!(judge(&server, "127.0.0.1:8470", &pairs), want, "{origin}");
        };
        check("http://127.0.0.1:8470", Ok(None));
        check("https://jobs.example.com", Ok(None));
        check(
            "https://board.example.com",
            Ok(Some("https://board.example.com".to_owned())),
        );
        for origin in [
            "null",
            "http://127.0.0.1",
            "http://localhost:8470",
            "https://evil.example",
            "ftp://127.0.0.1:8470",
        ] {
            check(origin, Err(Foreign::Origin));
        }
        let fetch = |site: &str| {
            judge(
                &server,
                "127.0.0.1:8470",
                &[("host", "127.0.0.1:8470"), ("sec-fetch-site", site)],
            )
        };
        assert_eq!(fetch("same-origin"), Ok(None));
        assert_eq!(fetch("none"), Ok(None));
        assert_eq!(fetch("cross-site"), Err(Foreign::Origin));
        assert_eq!(fetch("same-site"), Err(Foreign::Origin));
    }
}
