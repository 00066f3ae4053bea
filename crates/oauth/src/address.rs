//! Classifies network addresses, so that a login never leads from a public server to a private address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// The kind of network that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkKind {
    /// The internet.
    Public,
    /// A private network: RFC 1918, unique local addresses, carrier-grade NAT.
    Private,
    /// This machine.
    Loopback,
    /// Link-local, multicast, documentation, reserved: never needed for a login.
    Special,
}

impl NetworkKind {
    /// The network of an address, whatever its notation.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    /// The network of an IP address or `localhost` in a URL; `None` if the host has to be resolved. The URL parser has already
    /// converted `127.1`, `0x7f000001` and `2130706433` into addresses.
    pub(crate) fn of_url(url: &Url) -> Option<Self> {
        match url.host() {
            Some(Host::Ipv4(address)) => Some(of_v4(address)),
            Some(Host::Ipv6(address)) => Some(of_v6(address)),
            // RFC 6761, section 6.3: the name and its subdomains.
            Some(Host::Domain(name)) => {
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                (name == "localhost" || name.ends_with(".localhost")).then_some(Self::Loopback)
            }
            None => Some(Self::Special),
        }
    }

    /// Whether metadata of a server in this network may point to an address in `other`.
    pub(crate) fn may_point_to(self, other: Self) -> bool {
        match self {
            Self::Loopback => true,
            Self::Private => matches!(other, Self::Public | Self::Private),
            Self::Public | Self::Special => other == Self::Public,
        }
    }
}

/// IANA IPv4 special-purpose address registry (RFC 6890).
fn of_v4(address: Ipv4Addr) -> NetworkKind {
    match address.octets() {
        // `0.0.0.0` reaches this machine on most systems.
        [0 | 127, ..] => NetworkKind::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => NetworkKind::Private,
        [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [224..=255, ..] => NetworkKind::Special,
        _ => NetworkKind::Public,
    }
}

/// IANA IPv6 special-purpose address registry. An address that embeds an IPv4 address is classified as that address.
fn of_v6(address: Ipv6Addr) -> NetworkKind {
    let part = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        of_v4(Ipv4Addr::new(a, b, c, d))
    };
    match part {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => NetworkKind::Loopback,
        // Compatible, mapped, translated (RFC 4291, RFC 6052), NAT64 (RFC 6052) and 6to4 (RFC 3056).
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        [0x64, 0xff9b, 1, ..] => NetworkKind::Private,
        // ISATAP (RFC 5214).
        [.., 0 | 0x200, 0x5efe, high, low] => v4(high, low),
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => NetworkKind::Private,
        // Teredo, ORCHID, benchmarking and others (2001::/23); documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => NetworkKind::Special,
        [0x2000..=0x3fff, ..] => NetworkKind::Public,
        _ => NetworkKind::Special,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(host: &str) -> Option<NetworkKind> {
        NetworkKind::of_url(&Url::parse(&format!("https://{host}/")).unwrap())
    }

    #[test]
    fn classifies_addresses_in_any_notation() {
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0x7f.1",
            "0",
            "0.0.0.0",
            "127.0.0.1.",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::127.0.0.1]",
            "[2002:7f00:1::]",
            "[::ffff:0:127.0.0.1]",
            "localhost",
            "localhost.",
            "LOCALHOST",
            "a.localhost",
            "a.b.localhost.",
            "１２７.0.0.1",
            "127%2e0.0.1",
            "[2001:470::5efe:7f00:1]",
        ] {
            assert_eq!(named(host), Some(NetworkKind::Loopback), "{host}");
        }
        for host in [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "[fc00::1]",
            "[fd12::1]",
            "[::ffff:10.0.0.1]",
            "[64:ff9b::10.0.0.1]",
            "[2002:a00:1::]",
            "[64:ff9b:1::1]",
            "167772161",
        ] {
            assert_eq!(named(host), Some(NetworkKind::Private), "{host}");
        }
        for host in [
            "169.254.169.254",
            "[fe80::1]",
            "[::ffff:169.254.169.254]",
            "[ff02::1]",
            "255.255.255.255",
            "198.18.0.1",
            "[2001::1]",
            "[100::1]",
            "[2002:a9fe:a9fe::]",
            "2852039166",
        ] {
            assert_eq!(named(host), Some(NetworkKind::Special), "{host}");
        }
        for host in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "[2606:4700::1111]", "[::ffff:1.1.1.1]"] {
            assert_eq!(named(host), Some(NetworkKind::Public), "{host}");
        }
        for host in ["example.com", "localhost.example.com", "notlocalhost"] {
            assert_eq!(named(host), None, "{host}");
        }
    }

    proptest! {
        /// An IPv4 address keeps its network, however it is embedded in an IPv6 address.
        #[test]
        fn embedded_ipv4_address_keeps_its_network(bits in any::<u32>()) {
            let plain = Ipv4Addr::from(bits);
            let [high, low] = [(bits >> 16) as u16, bits as u16];
            for wrapped in [
                plain.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            ] {
                prop_assert_eq!(NetworkKind::of(wrapped.into()), NetworkKind::of(plain.into()), "{}", wrapped);
            }
        }
    }
}
