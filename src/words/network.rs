//! Networks, and the list of places inside that an operator lets the steps of workflows reach.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A range of addresses, as `10.0.0.0/8` or `fd00::/8`; without a prefix length it is one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    first: IpAddr,
    prefix: u8,
}

/// A text that is no network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("that is no network; write one like 10.0.0.0/8, 127.0.0.1 or fd00::/8")]
pub struct BadNetwork;

impl Network {
    /// Whether the address lies in it.
    pub const fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let mask = Self::mask(self.prefix as u32, 32);
                (first.to_bits() ^ address.to_bits()) as u128 & mask == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let mask = Self::mask(self.prefix as u32, 128);
                (first.to_bits() ^ address.to_bits()) & mask == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// A network of IPv4.
    pub const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Network {
        Network {
            first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            prefix,
        }
    }

    /// A network of IPv6 that begins with these bits.
    pub const fn v6(bits: u128, prefix: u8) -> Network {
        Network {
            first: IpAddr::V6(Ipv6Addr::from_bits(bits)),
            prefix,
        }
    }

    const fn mask(prefix: u32, width: u32) -> u128 {
        let whole = u128::MAX >> (128 - width);
        match whole.checked_shr(prefix) {
            Some(host) => whole & !host,
            None => whole,
        }
    }
}

impl FromStr for Network {
    type Err = BadNetwork;

    /// Bits behind the prefix are an error: `10.0.0.5/8` is a slip, and nobody can say of what.
    fn from_str(text: &str) -> Result<Network, BadNetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| BadNetwork)?;
        let width = if first.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => width,
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                digits.parse().map_err(|_| BadNetwork)?
            }
            Some(_) => return Err(BadNetwork),
        };
        if prefix > width {
            return Err(BadNetwork);
        }
        let mask = Network::mask(u32::from(prefix), u32::from(width));
        let bits = match first {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        if bits & !mask != 0 {
            return Err(BadNetwork);
        }
        Ok(Network { first, prefix })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = if self.first.is_ipv4() { 32 } else { 128 };
        if self.prefix == width {
            write!(out, "{}", self.first)
        } else {
            write!(out, "{}/{}", self.first, self.prefix)
        }
    }
}

/// One place that steps may reach although it is inside.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EgressRule {
    to: EgressPlace,
    /// `None`: all ports.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum EgressPlace {
    Network(Network),
    /// Lower case, without a dot at its end.
    Host(String),
}

/// A text that is no rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write a network, a host name, or one of them with a port: 10.0.0.0/8, 127.0.0.1:8080, api.internal:443"
)]
pub struct BadRule;

/// Labels of letters, digits, `-` and `_`. What looks like a number is no name: it would be read as an address.
fn host_name(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        (1..=63).contains(&label.len()) && { label.bytes() }
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_number = |label: &str| {
        label.bytes().all(|byte| byte.is_ascii_digit())
            || label
                .strip_prefix("0x")
                .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    let is_good =
        name.len() <= 253 && name.split('.').all(is_label) && !name.rsplit('.').next().is_some_and(is_number);
    is_good.then_some(name)
}

impl EgressRule {
    /// Whether the rule covers this address, reached by this name (`None`: the request names the address) and port.
    pub fn covers(&self, address: IpAddr, name: Option<&str>, port: u16) -> bool {
        if self.port.is_some_and(|only| only != port) {
            return false;
        }
        match (&self.to, name) {
            (EgressPlace::Network(network), _) => network.contains(address),
            (EgressPlace::Host(host), Some(name)) => {
                host.eq_ignore_ascii_case(name.strip_suffix('.').unwrap_or(name))
            }
            (EgressPlace::Host(_), None) => false,
        }
    }
}

impl FromStr for EgressRule {
    type Err = BadRule;

    fn from_str(text: &str) -> Result<EgressRule, BadRule> {
        let rule = |to, port| Ok(EgressRule { to, port });
        if let Ok(network) = text.parse() {
            return rule(EgressPlace::Network(network), None);
        }
        // `[::1]:80` and `[::1]` are how addresses stand in URLs.
        if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']').ok_or(BadRule)?;
            let address: Ipv6Addr = address.parse().map_err(|_| BadRule)?;
            let network = Network::v6(address.to_bits(), 128);
            let port = match port.strip_prefix(':') {
                None if port.is_empty() => None,
                None => return Err(BadRule),
                Some(port) => Some(port_of(port)?),
            };
            return rule(EgressPlace::Network(network), port);
        }
        let (place, port) = match text.rsplit_once(':') {
            None => (text, None),
            Some((place, port)) => (place, Some(port_of(port)?)),
        };
        if let Ok(network) = place.parse::<Network>()
            && network.first.is_ipv4()
        {
            return rule(EgressPlace::Network(network), port);
        }
        let host = host_name(place).ok_or(BadRule)?;
        rule(EgressPlace::Host(host), port)
    }
}

fn port_of(text: &str) -> Result<u16, BadRule> {
    if !text.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(BadRule);
    }
    match text.parse() {
        Ok(0) | Err(_) => Err(BadRule),
        Ok(port) => Ok(port),
    }
}

impl fmt::Display for EgressRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.to, self.port) {
            (EgressPlace::Network(network), Some(port)) if network.first.is_ipv6() => {
                write!(out, "[{network}]:{port}")
            }
            (EgressPlace::Network(network), None) => write!(out, "{network}"),
            (EgressPlace::Network(network), Some(port)) => write!(out, "{network}:{port}"),
            (EgressPlace::Host(host), None) => write!(out, "{host}"),
            (EgressPlace::Host(host), Some(port)) => write!(out, "{host}:{port}"),
        }
    }
}

impl Serialize for EgressRule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EgressRule {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<EgressRule, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn networks_are_read_and_contain_what_they_say() {
        let check = |network: &str, inside: &[&str], outside: &[&str]| {
            let read: Network = network.parse().unwrap();
            assert_eq!(read.to_string(), network);
            for address in inside {
                assert!(read.contains(ip(address)), "{address} in {network}");
            }
            for address in outside {
                assert!(!read.contains(ip(address)), "{address} not in {network}");
            }
        };
        check(
            "10.0.0.0/8",
            &["10.0.0.0", "10.255.255.255"],
            &["11.0.0.0", "::a00:1"],
        );
        check("127.0.0.1", &["127.0.0.1"], &["127.0.0.2", "::1"]);
        check("0.0.0.0/0", &["1.2.3.4"], &["::1"]);
        check("fd00::/8", &["fd12::1"], &["fc00::1", "10.0.0.1"]);
        check("::1", &["::1"], &["::2"]);
        check("::/0", &["2001:db8::1", "::"], &["127.0.0.1"]);
        for bad in [
            "",
            "10.0.0.5/8",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "::/129",
            "10/8",
            "a/8",
            "010.0.0.1",
        ] {
            assert_eq!(bad.parse::<Network>(), Err(BadNetwork), "{bad}");
        }
    }

    #[test]
    fn a_rule_covers_an_address_a_network_or_a_name_and_maybe_one_port() {
        let check = |rule: &str, address: &str, name: Option<&str>, port: u16, expected: bool| {
            let read: EgressRule = rule.parse().unwrap();
            assert_eq!(
                read.covers(ip(address), name, port),
                expected,
                "{rule}: {address} {name:?} {port}"
            );
        };
        check("127.0.0.1", "127.0.0.1", None, 80, true);
        check("127.0.0.1", "127.0.0.1", Some("localhost"), 80, true);
        check("127.0.0.1:8080", "127.0.0.1", None, 8080, true);
        check("127.0.0.1:8080", "127.0.0.1", None, 80, false);
        check("10.0.0.0/8:443", "10.1.2.3", None, 443, true);
        check("[::1]:8080", "::1", None, 8080, true);
        check("[::1]:8080", "::1", None, 8081, false);
        check("[::1]", "::1", None, 1, true);
        check("API.internal", "10.0.0.1", Some("api.Internal."), 80, true);
        check("api.internal", "10.0.0.1", None, 80, false);
        check("api.internal:443", "10.0.0.1", Some("api.internal"), 80, false);
        check("api.internal", "10.0.0.1", Some("xapi.internal"), 80, false);
    }

    #[test]
    fn a_rule_is_written_as_it_is_read() {
        for text in [
            "10.0.0.0/8",
            "10.0.0.0/8:443",
            "127.0.0.1:1",
            "::1",
            "[::1]:80",
            "fd00::/8",
            "api.internal",
            "api.internal:65535",
            "db_1",
        ] {
            let rule: EgressRule = text.parse().unwrap();
            assert_eq!(rule.to_string(), text);
            let json = serde_json::to_string(&rule).unwrap();
            assert_eq!(serde_json::from_str::<EgressRule>(&json).unwrap(), rule);
        }
        for bad in [
            "",
            "*",
            "*.internal",
            "http://api.internal",
            "api.internal/x",
            "api.internal:0",
            "api.internal:65536",
            "api.internal:http",
            "api.internal:",
            ":80",
            "a b",
            "2130706433",
            "127.1",
            "0x7f000001",
            "a.0x1",
            "10.0.0.5/8",
            "[::1",
            "[::1]80",
            "[::1]:",
            "[127.0.0.1]:80",
            "user@host",
            "bücher.example",
            "a..b",
        ] {
            assert_eq!(bad.parse::<EgressRule>(), Err(BadRule), "{bad}");
        }
    }
}
