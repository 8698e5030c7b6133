//! Which hosts a copy source may be on: `--copySourceAllow`.
//!
//! A rule admits a host by name, an address by network, every public address, or everything. Names
//! are resolved first and the rules check the address that is then connected to, so a name cannot
//! bypass them by changing its address in between. Ranges that are not public (loopback, link-local
//! with the metadata services of clouds, private networks) need a rule that names them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::rules::host::HostPattern;

/// A rule of `--copySourceAllow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceRule {
    /// `all`: every address.
    All,
    /// `public`: every publicly routed address.
    Public,
    /// `none`: no address. As the only rule, it forbids all fetches.
    None,
    /// `files.example.com` or `*.example.com`: these hosts, whatever their addresses. The operator
    /// vouches for the names.
    Host(HostPattern),
    /// `10.1.0.0/16`, `fd00::/8` or `10.1.2.3`: the addresses of a network.
    Network(IpAddr, u8),
}

/// The error for a string that is not a valid rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid rule {0:?}; use all, public, none, a host (files.example.com), a domain \
     (*.example.com), an address or a network (10.1.0.0/16)"
)]
pub struct RuleError(String);

impl FromStr for SourceRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim().to_ascii_lowercase();
        let refused = || RuleError(text.clone());
        match text.as_str() {
            "all" => return Ok(SourceRule::All),
            "public" => return Ok(SourceRule::Public),
            "none" => return Ok(SourceRule::None),
            _ => {}
        }
        if let Some((network, bits)) = text.split_once('/') {
            let network: IpAddr = network.parse().map_err(|_| refused())?;
            let bits: u8 = bits.parse().map_err(|_| refused())?;
            return (bits <= width(network))
                .then_some(SourceRule::Network(network, bits))
                .ok_or_else(refused);
        }
        if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Ok(SourceRule::Network(address, width(address)));
        }
        text.parse().map(SourceRule::Host).map_err(|()| refused())
    }
}

impl fmt::Display for SourceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceRule::All => f.write_str("all"),
            SourceRule::Public => f.write_str("public"),
            SourceRule::None => f.write_str("none"),
            SourceRule::Host(hosts) => hosts.fmt(f),
            SourceRule::Network(network, bits) => write!(f, "{network}/{bits}"),
        }
    }
}

impl SourceRule {
    fn admits(&self, host: &str, address: IpAddr) -> bool {
        match self {
            SourceRule::All => true,
            SourceRule::Public => is_public(address),
            SourceRule::None => false,
            SourceRule::Host(hosts) => hosts.admits(host),
            SourceRule::Network(network, bits) => is_within(address, *network, *bits),
        }
    }
}

/// The rules of a server: a source may be fetched if one of them admits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRules(Vec<SourceRule>);

impl Default for SourceRules {
    /// Admits every public address.
    fn default() -> Self {
        SourceRules(vec![SourceRule::Public])
    }
}

impl SourceRules {
    /// Creates a set of rules; an empty list means the default.
    pub fn new(rules: Vec<SourceRule>) -> Self {
        if rules.is_empty() {
            return SourceRules::default();
        }
        SourceRules(rules)
    }

    /// Whether the rules admit a connection to `address`, which `host` resolved to.
    pub fn admit(&self, host: &str, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|rule| rule.admits(host, address))
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let apart = address.to_bits() ^ network.to_bits();
            apart.checked_shr(32 - u32::from(bits)).unwrap_or(0) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let apart = address.to_bits() ^ network.to_bits();
            apart.checked_shr(128 - u32::from(bits)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// Whether an address is publicly routed. Source: IANA's registries of special-purpose addresses.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || matches!((a, b, c), (192, 0, 0) | (192, 88, 99))
        // Carrier-grade NAT; benchmarks; "this network"; multicast, reserved and broadcast.
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (18..20).contains(&b))
        || a == 0
        || a >= 224;
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // NAT64 and 6to4 addresses embed an IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => embedded(high, low),
        // Teredo, benchmarks and other protocol assignments; documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(texts: &[&str]) -> SourceRules {
        SourceRules::new(texts.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn only_public_addresses_by_default() {
        for (address, expected) in [
            ("93.184.216.34", true),
            ("2606:2800:220:1::1", true),
            ("127.0.0.1", false),
            ("0.0.0.0", false),
            ("10.0.0.1", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("198.18.0.1", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("192.0.2.1", false),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("fd00::1", false),
            ("ff02::1", false),
            ("2001:db8::1", false),
            ("2001::1", false),
            // IPv4 addresses embedded in IPv6.
            ("::ffff:127.0.0.1", false),
            ("::ffff:93.184.216.34", true),
            ("::127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::5db8:d822", true),
            ("2002:a9fe:a9fe::1", false),
        ] {
            let admits = SourceRules::default().admit("host", address.parse().unwrap());
            assert_eq!(admits, expected, "{address}");
        }
    }

    #[test]
    fn rules_admit_what_they_name() {
        for (texts, host, address, expected) in [
            (&["all"][..], "a", "127.0.0.1", true),
            (&["none"], "a", "93.184.216.34", false),
            (&["127.0.0.0/8"], "localhost", "127.0.0.1", true),
            (&["127.0.0.0/8"], "localhost", "::ffff:127.0.0.1", true),
            (&["127.0.0.0/8"], "a", "93.184.216.34", false),
            (&["127.0.0.0/8", "public"], "a", "93.184.216.34", true),
            (&["0.0.0.0/0"], "a", "10.1.2.3", true),
            (&["0.0.0.0/0"], "a", "fd00::1", false),
            (&["::/0"], "a", "fd00::1", true),
            (&["10.1.2.3"], "a", "10.1.2.3", true),
            (&["10.1.2.3"], "a", "10.1.2.4", false),
            (&["[::1]"], "a", "::1", true),
            (
                &["files.example.com"],
                "FILES.example.com.",
                "10.0.0.1",
                true,
            ),
            (
                &["files.example.com"],
                "other.example.com",
                "10.0.0.1",
                false,
            ),
            (&["*.example.com"], "a.b.example.com", "10.0.0.1", true),
            (&["*.example.com"], "example.com", "10.0.0.1", false),
            (&["*.example.com"], "badexample.com", "10.0.0.1", false),
            (&["*.example.com"], ".example.com", "10.0.0.1", false),
        ] {
            let admits = rules(texts).admit(host, address.parse().unwrap());
            assert_eq!(admits, expected, "{texts:?} {host} {address}");
        }
    }

    #[test]
    fn invalid_rules_are_rejected() {
        for text in [
            "",
            "*",
            "*.",
            "a..b",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "a b",
            "http://a",
        ] {
            assert!(text.parse::<SourceRule>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn rules_round_trip(
            bits in 0..=32_u8,
            address in any::<u32>(),
            host in "[a-z]{1,9}\\.[a-z]{2,3}",
        ) {
            for rule in [
                SourceRule::Network(Ipv4Addr::from_bits(address).into(), bits),
                SourceRule::Host(HostPattern::Exact(host.clone())),
                SourceRule::Host(HostPattern::Below(host)),
            ] {
                prop_assert_eq!(rule.to_string().parse(), Ok(rule));
            }
        }

        #[test]
        fn network_contains_its_own_address(bits in 0..=128_u8, address in any::<u128>()) {
            let address: IpAddr = Ipv6Addr::from_bits(address).into();
            prop_assert!(is_within(address, address, bits));
        }
    }
}
