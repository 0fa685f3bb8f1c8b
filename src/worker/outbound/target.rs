//! Where a request leads: a URL that was taken apart once, the way the client takes it apart.
//!
//! The parser is that of browsers, so an address in an odd shape (`0x7f.1`, `2130706433`, `[::ffff:127.0.0.1]`, digits of
//! another script) is an address here too, and no name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use crate::words::limits;

/// A place on the network, and what is asked of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    pub(super) url: Url,
    host: Host,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    Name(String),
}

impl Target {
    /// The error says what is wrong and shows nothing of the URL.
    pub fn parse(text: &str) -> Result<Target, String> {
        if text.len() > limits::HTTP_URL_BYTES_MAX {
            return Err(format!("it is longer than {} bytes", limits::HTTP_URL_BYTES_MAX));
        }
        Target::of(Url::parse(text).map_err(|error| error.to_string())?)
    }

    fn of(url: Url) -> Result<Target, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err("it must begin with http:// or https://".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it has a user name in it; send the header `authorization` instead".to_owned());
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err("it names no host".to_owned());
        };
        let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let host = match bracketed {
            Some(inner) => {
                let address: Ipv6Addr = inner
                    .parse()
                    .map_err(|_| "its address cannot be read".to_owned())?;
                Host::Address(address.into())
            }
            None => match host.parse::<Ipv4Addr>() {
                Ok(address) => Host::Address(address.into()),
                Err(_) => Host::Name(host.to_owned()),
            },
        };
        if port == 0 {
            return Err("port 0 is no port".to_owned());
        }
        Ok(Target { url, host, port })
    }

    /// Appends pairs to the query.
    pub fn add_query(&mut self, pairs: &[(String, String)]) {
        if !pairs.is_empty() {
            self.url.query_pairs_mut().extend_pairs(pairs);
        }
    }

    /// Where a `location` leads from here.
    pub fn redirected(&self, location: &str) -> Result<Target, String> {
        if location.len() > limits::HTTP_URL_BYTES_MAX {
            return Err(format!("it is longer than {} bytes", limits::HTTP_URL_BYTES_MAX));
        }
        Target::of(self.url.join(location).map_err(|error| error.to_string())?)
    }

    /// Whether both are the same service: scheme, host and port.
    pub fn is_same_origin(&self, other: &Target) -> bool {
        self.url.origin() == other.url.origin()
    }

    /// Whether it is encrypted.
    pub fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The address, if the URL names one.
    pub fn address(&self) -> Option<IpAddr> {
        match &self.host {
            Host::Address(address) => Some(*address),
            Host::Name(_) => None,
        }
    }

    /// The name, if the URL names one.
    pub fn name(&self) -> Option<&str> {
        match &self.host {
            Host::Address(_) => None,
            Host::Name(name) => Some(name),
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and port, for people. The rest of a URL may be secret.
    pub fn shown(&self) -> String {
        format!("{}:{}", self.url.host_str().unwrap_or_default(), self.port)
    }

    /// The whole URL, to hide it and its parts in texts of the other side.
    pub fn text(&self) -> &str {
        self.url.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match Target::parse(text) {
            Ok(target) => {
                let kind = if target.address().is_some() {
                    "address"
                } else {
                    "name"
                };
                format!("{kind} {}", target.shown())
            }
            Err(why) => why,
        }
    }

    #[test]
    fn an_address_in_any_shape_is_an_address() {
        for (text, expected) in [
            ("http://127.0.0.1/", "address 127.0.0.1:80"),
            ("http://0x7f.1/", "address 127.0.0.1:80"),
            ("http://0177.0.0.1/", "address 127.0.0.1:80"),
            ("http://2130706433/", "address 127.0.0.1:80"),
            ("http://127.1:81/", "address 127.0.0.1:81"),
            ("http://127.0.0.1./", "address 127.0.0.1:80"),
            ("http://１２７.0.0.1/", "address 127.0.0.1:80"),
            ("http://127。0。0。1/", "address 127.0.0.1:80"),
            ("http://%31%32%37.0.0.1/", "address 127.0.0.1:80"),
            ("https://[::1]/", "address [::1]:443"),
            ("https://[::ffff:127.0.0.1]/", "address [::ffff:7f00:1]:443"),
            ("http://0/", "address 0.0.0.0:80"),
            ("HTTP://LOCALHOST./x", "name localhost.:80"),
            ("https://bücher.example/", "name xn--bcher-kva.example:443"),
            ("http:\\\\example.org\\x", "name example.org:80"),
            ("http:example.org", "name example.org:80"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_target_says_why() {
        for (text, expected) in [
            ("ftp://example.org/", "it must begin with http:// or https://"),
            ("file:///etc/passwd", "it must begin with http:// or https://"),
            (
                "http://me:pass@example.org/",
                "it has a user name in it; send the header `authorization` instead",
            ),
            (
                "http://example.org@127.0.0.1/",
                "it has a user name in it; send the header `authorization` instead",
            ),
            ("http://", "empty host"),
            ("http://256.1.1.1/", "invalid IPv4 address"),
            ("http://1.2.3.4.5/", "invalid IPv4 address"),
            ("http://[fe80::1%25eth0]/", "invalid IPv6 address"),
            ("http://a b/", "invalid international domain name"),
            ("http://example.org:0/", "port 0 is no port"),
            ("http://example.org:65536/", "invalid port number"),
            ("example.org", "relative URL without a base"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        let long = format!("http://example.org/{}", "x".repeat(9_000));
        assert_eq!(shown(&long), "it is longer than 8192 bytes");
    }

    #[test]
    fn a_redirect_is_taken_from_where_it_was_said() {
        let from = Target::parse("https://example.org/a/b?c").unwrap();
        let to = |location: &str| from.redirected(location).map(|to| to.text().to_owned());
        assert_eq!(to("../d").unwrap(), "https://example.org/d");
        assert_eq!(to("//127.0.0.1/x").unwrap(), "https://127.0.0.1/x");
        assert!(to("javascript:alert(1)").is_err());
        assert!(from.is_same_origin(&Target::parse("https://EXAMPLE.org:443/z").unwrap()));
        assert!(!from.is_same_origin(&Target::parse("http://example.org/").unwrap()));
        let mut with_query = from.clone();
        with_query.add_query(&[("k".to_owned(), "a b&c".to_owned())]);
        assert_eq!(with_query.text(), "https://example.org/a/b?c&k=a+b%26c");
    }
}
