//! The egress guard: may a step of a workflow reach this address? A pure decision.
//!
//! A definition may come from somebody who has an account here and no business on this machine or in its network. So a
//! request goes out to public addresses only, and to what the operator lists (`egress.allow`). Everything that is not
//! known to be public is denied: the tables are the special-purpose registries of IANA
//! (<https://www.iana.org/assignments/iana-ipv4-special-registry>, `iana-ipv6-special-registry`), and of IPv6 nothing but
//! the global unicast range is looked at twice. An address that carries an IPv4 address in it (mapped, compatible, 6to4,
//! Teredo, NAT64) is judged by what a router would make of it; where that depends on routers that we do not know it is
//! denied. The operator's list is asked first, and of an IPv4-mapped address also with what is mapped.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::words::network::{EgressRule, Network};

/// What was decided of one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may be reached.
    Allowed(Reason),
    /// It may not.
    Denied(Denied),
}

/// Why an address may be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Everybody can.
    Public,
    /// A rule of the operator's.
    Rule(EgressRule),
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Public => out.write_str("public"),
            Reason::Rule(rule) => write!(out, "egress.allow {rule}"),
        }
    }
}

/// What kind of place an address is that may not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// `127.0.0.0/8`, `::1`.
    Loopback,
    /// `0.0.0.0/8`, `::`: this machine, in other words.
    Unspecified,
    /// The networks of RFC 1918.
    Private,
    /// `100.64.0.0/10`: between a provider and its customers.
    CarrierNat,
    /// `169.254.0.0/16`, `fe80::/10`.
    LinkLocal,
    /// `fc00::/7`: private networks of IPv6.
    UniqueLocal,
    /// Where a cloud tells a machine its credentials.
    Metadata,
    /// One address for many.
    Multicast,
    /// `255.255.255.255`.
    Broadcast,
    /// For examples and measurements.
    Documentation,
    /// Reserved, or of no known use.
    Reserved,
    /// `64:ff9b::/96` and `64:ff9b:1::/48`: IPv4 behind a translator.
    Nat64,
    /// 6to4 and Teredo: IPv4 inside a tunnel.
    Tunnel,
}

impl fmt::Display for Denied {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Denied::Loopback => "a loopback address",
            Denied::Unspecified => "an unspecified address",
            Denied::Private => "a private address",
            Denied::CarrierNat => "an address of a provider's own network",
            Denied::LinkLocal => "a link-local address",
            Denied::UniqueLocal => "a private address (ULA)",
            Denied::Metadata => "a cloud's metadata address",
            Denied::Multicast => "a multicast address",
            Denied::Broadcast => "the broadcast address",
            Denied::Documentation => "an address for documentation or measurements",
            Denied::Reserved => "a reserved address",
            Denied::Nat64 => "an address behind a NAT64 translator",
            Denied::Tunnel => "an address inside a tunnel (6to4 or Teredo)",
        })
    }
}

/// Metadata services, before the networks that most of them lie in. The one of Azure has a public address.
const METADATA: [Network; 8] = [
    Network::v4(169, 254, 169, 254, 32),
    Network::v4(169, 254, 170, 2, 32),
    Network::v4(169, 254, 170, 23, 32),
    Network::v4(168, 63, 129, 16, 32),
    Network::v4(100, 100, 100, 200, 32),
    Network::v4(192, 0, 0, 192, 32),
    Network::v6(0xfd00_0ec2 << 96 | 0x254, 128),
    Network::v6(0xfd20_00ce << 96 | 0x254, 128),
];

const DENIED_V4: [(Network, Denied); 17] = [
    (Network::v4(0, 0, 0, 0, 8), Denied::Unspecified),
    (Network::v4(10, 0, 0, 0, 8), Denied::Private),
    (Network::v4(100, 64, 0, 0, 10), Denied::CarrierNat),
    (Network::v4(127, 0, 0, 0, 8), Denied::Loopback),
    (Network::v4(169, 254, 0, 0, 16), Denied::LinkLocal),
    (Network::v4(172, 16, 0, 0, 12), Denied::Private),
    (Network::v4(192, 0, 0, 0, 24), Denied::Reserved),
    (Network::v4(192, 0, 2, 0, 24), Denied::Documentation),
    (Network::v4(192, 88, 99, 0, 24), Denied::Tunnel),
    (Network::v4(192, 168, 0, 0, 16), Denied::Private),
    (Network::v4(198, 18, 0, 0, 15), Denied::Documentation),
    (Network::v4(198, 51, 100, 0, 24), Denied::Documentation),
    (Network::v4(203, 0, 113, 0, 24), Denied::Documentation),
    (Network::v4(233, 252, 0, 0, 24), Denied::Documentation),
    (Network::v4(224, 0, 0, 0, 4), Denied::Multicast),
    (Network::v4(255, 255, 255, 255, 32), Denied::Broadcast),
    (Network::v4(240, 0, 0, 0, 4), Denied::Reserved),
];

const DENIED_V6: [(Network, Denied); 12] = [
    (Network::v6(1, 128), Denied::Loopback),
    (Network::v6(0, 128), Denied::Unspecified),
    (Network::v6(0x0064_ff9b << 96, 96), Denied::Nat64),
    (Network::v6(0x0064_ff9b_0001 << 80, 48), Denied::Nat64),
    (Network::v6(0xfc00 << 112, 7), Denied::UniqueLocal),
    (Network::v6(0xfe80 << 112, 10), Denied::LinkLocal),
    (Network::v6(0xff00 << 112, 8), Denied::Multicast),
    (Network::v6(0x2001 << 112, 32), Denied::Tunnel),
    (Network::v6(0x2001_0db8 << 96, 32), Denied::Documentation),
    (Network::v6(0x2001 << 112, 23), Denied::Reserved),
    (Network::v6(0x2002 << 112, 16), Denied::Tunnel),
    (Network::v6(0x3fff << 112, 20), Denied::Documentation),
];

const GLOBAL_UNICAST: Network = Network::v6(0x2000 << 112, 3);

/// Decides of one address that is reached by `name` (`None`: the request names the address itself) and `port`.
pub fn decide(address: IpAddr, name: Option<&str>, port: u16, rules: &[EgressRule]) -> Decision {
    let plain = plain(address);
    let rule = rules
        .iter()
        .find(|rule| rule.covers(plain, name, port) || rule.covers(address, name, port));
    if let Some(rule) = rule {
        return Decision::Allowed(Reason::Rule(rule.clone()));
    }
    match denied(plain) {
        Some(why) => Decision::Denied(why),
        None => Decision::Allowed(Reason::Public),
    }
}

/// `::ffff:a.b.c.d` is `a.b.c.d`: the kernel makes no difference.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(mapped) => mapped.to_ipv4_mapped().map_or(address, IpAddr::V4),
    }
}

fn denied(address: IpAddr) -> Option<Denied> {
    if METADATA.iter().any(|place| place.contains(address)) {
        return Some(Denied::Metadata);
    }
    let find = |table: &[(Network, Denied)]| {
        let found = table.iter().find(|(network, _)| network.contains(address));
        found.map(|(_, why)| *why)
    };
    match address {
        IpAddr::V4(_) => find(&DENIED_V4),
        IpAddr::V6(v6) => {
            let inside = || compatible(v6).and_then(|v4| denied(IpAddr::V4(v4)));
            let unknown = || (!GLOBAL_UNICAST.contains(address)).then_some(Denied::Reserved);
            find(&DENIED_V6).or_else(inside).or_else(unknown)
        }
    }
}

/// The address in an IPv4-compatible one (`::a.b.c.d`), which nothing should use any more.
fn compatible(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    u32::try_from(bits).ok().map(Ipv4Addr::from_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(address: &str, rules: &[&str]) -> Decision {
        let rules: Vec<EgressRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        decide(address.parse().unwrap(), None, 443, &rules)
    }

    #[test]
    fn public_addresses_are_allowed() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.0.1",
            "192.169.0.1",
            "198.17.255.255",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2001:200::1",
            "2a00:1450::1",
            "2003::1",
            "::ffff:1.1.1.1",
        ] {
            assert_eq!(
                judged(address, &[]),
                Decision::Allowed(Reason::Public),
                "{address}"
            );
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table of cases")]
    fn everything_inside_is_denied_and_says_what_it_is() {
        let cases = [
            (
                Denied::Loopback,
                &[
                    "127.0.0.1",
                    "127.255.255.254",
                    "::1",
                    "::ffff:127.0.0.1",
                    "::127.0.0.1",
                ][..],
            ),
            (
                Denied::Unspecified,
                &["0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0"],
            ),
            (
                Denied::Private,
                &[
                    "10.0.0.1",
                    "172.16.0.1",
                    "172.31.255.255",
                    "192.168.1.1",
                    "::ffff:10.0.0.1",
                    "::10.0.0.1",
                ],
            ),
            (Denied::CarrierNat, &["100.64.0.1", "100.127.255.255"]),
            (Denied::LinkLocal, &["169.254.1.1", "fe80::1", "febf::1"]),
            (Denied::UniqueLocal, &["fc00::1", "fd12:3456::1"]),
            (
                Denied::Metadata,
                &[
                    "169.254.169.254",
                    "169.254.170.2",
                    "168.63.129.16",
                    "100.100.100.200",
                    "192.0.0.192",
                    "fd00:ec2::254",
                    "fd20:ce::254",
                    "::ffff:169.254.169.254",
                ],
            ),
            (Denied::Multicast, &["224.0.0.1", "239.255.255.255", "ff02::1"]),
            (Denied::Broadcast, &["255.255.255.255"]),
            (
                Denied::Documentation,
                &[
                    "192.0.2.1",
                    "198.51.100.1",
                    "203.0.113.1",
                    "198.18.0.1",
                    "198.19.255.255",
                    "2001:db8::1",
                    "3fff::1",
                ],
            ),
            (
                Denied::Reserved,
                &[
                    "192.0.0.1",
                    "240.0.0.1",
                    "2001:2::1",
                    "2001:20::1",
                    "::1.1.1.1",
                    "100::1",
                    "4000::1",
                    "fec0::1",
                    "5f00::1",
                ],
            ),
            (
                Denied::Nat64,
                &["64:ff9b::7f00:1", "64:ff9b::1.1.1.1", "64:ff9b:1::a00:1"],
            ),
            (
                Denied::Tunnel,
                &["2002:7f00:1::", "2002:a00:1::1", "2001:0:a00:1::1", "192.88.99.1"],
            ),
        ];
        for (why, addresses) in cases {
            for address in addresses {
                assert_eq!(judged(address, &[]), Decision::Denied(why), "{address}");
            }
        }
    }

    #[test]
    fn the_operators_list_opens_what_it_names_and_nothing_else() {
        let allowed = |address: &str, rules: &[&str]| matches!(judged(address, rules), Decision::Allowed(_));
        assert_eq!(
            judged("127.0.0.1", &["10.0.0.0/8", "127.0.0.1:443"]),
            Decision::Allowed(Reason::Rule("127.0.0.1:443".parse().unwrap()))
        );
        assert!(allowed("::ffff:127.0.0.1", &["127.0.0.0/8"]));
        assert!(!allowed("::1", &["127.0.0.0/8"]));
        assert!(!allowed("127.0.0.1", &["127.0.0.1:80"]));
        assert!(
            !allowed("127.0.0.1", &["localhost"]),
            "an address is not its name"
        );
        assert!(allowed("169.254.169.254", &["169.254.169.254"]));
        assert!(!allowed("64:ff9b::7f00:1", &["127.0.0.1"]));
    }

    #[test]
    fn a_name_of_the_list_may_be_anywhere_on_its_port() {
        let rules = ["api.internal:443".parse().unwrap()];
        let inside: IpAddr = "10.0.0.1".parse().unwrap();
        let of = |name, port| matches!(decide(inside, name, port, &rules), Decision::Allowed(_));
        assert!(of(Some("api.internal"), 443));
        assert!(of(Some("API.internal."), 443));
        assert!(!of(Some("api.internal"), 80));
        assert!(!of(Some("other.internal"), 443));
        assert!(!of(None, 443));
    }
}
