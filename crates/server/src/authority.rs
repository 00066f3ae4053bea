//! The authority of a request, parsed strictly (RFC 3986, 3.2; RFC 9110, 7.2). Userinfo, percent-encoding, IPv6 zones and
//! anything after the port are rejected rather than interpreted.

use std::net::{IpAddr, Ipv6Addr};

/// Maximum length of a host name (RFC 1035, 2.3.4).
const MAX_HOST_NAME_BYTES: usize = 253;

/// A host and an optional port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Authority<'a> {
    /// As received; an IPv6 address without its brackets.
    host: &'a str,
    address: Option<IpAddr>,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Parses `host`, `host:port`, `[v6]` or `[v6]:port`. Returns `None` for anything else.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']')?;
            let address = host.parse::<Ipv6Addr>().ok()?;
            return Some(Self { host, address: Some(address.into()), port: port(rest)? });
        }
        let end = text.find(':').unwrap_or(text.len());
        let (host, rest) = text.split_at(end);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if host.is_empty() || host.len() > MAX_HOST_NAME_BYTES || !host.bytes().all(plain) {
            return None;
        }
        let address = host.parse().ok().map(IpAddr::V4);
        Some(Self { host, address, port: port(rest)? })
    }

    /// Returns whether it denotes the local machine.
    pub(crate) fn is_local(&self) -> bool {
        match self.address {
            Some(address) => address.is_loopback(),
            None => self.host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// Returns whether it matches a configured host, with or without a port.
    pub(crate) fn matches(&self, known: &str) -> bool {
        Authority::parse(known)
            .is_some_and(|known| known.same_host(self) && (known.port.is_none() || known.port == self.port))
            || known.parse::<Ipv6Addr>().is_ok_and(|known| self.address == Some(known.into()))
    }

    /// Returns whether host and port are the same.
    pub(crate) fn same(&self, other: &Authority<'_>) -> bool {
        self.same_host(other) && self.port == other.port
    }

    fn same_host(&self, other: &Authority<'_>) -> bool {
        match (self.address, other.address) {
            (None, None) => self.host.eq_ignore_ascii_case(other.host),
            (one, other) => one == other,
        }
    }
}

/// Parses an optional colon and port after a host. Returns `None` if it is neither empty nor a port.
fn port(rest: &str) -> Option<Option<u16>> {
    if rest.is_empty() {
        return Some(None);
    }
    let digits = rest.strip_prefix(':')?;
    let fits = (1..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let port = digits.parse::<u16>().ok().filter(|port| fits && *port != 0)?;
    Some(Some(port))
}

/// Returns the authority of an origin as browsers serialize it (RFC 6454, 6.2): scheme, host and optional port, and
/// nothing else.
pub(crate) fn of_origin(origin: &str) -> Option<Authority<'_>> {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))?;
    Authority::parse(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_plain_authorities_only() {
        for local in ["localhost", "LOCALHOST:7460", "127.0.0.1:7460", "127.8.9.1", "[::1]", "[::1]:7460"] {
            assert!(Authority::parse(local).is_some_and(|one| one.is_local()), "{local}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example",
            "localhost.",
            "127.1",
            "0x7f.1",
            "0177.0.0.1",
            "127.0.0.1.evil.example",
            "2130706433",
            "[::2]:7460",
            "[::ffff:127.0.0.1]",
            "[::]",
            "0.0.0.0",
        ] {
            assert!(Authority::parse(foreign).is_none_or(|one| !one.is_local()), "{foreign}");
        }
        for broken in [
            "",
            ":",
            ":7460",
            "localhost:",
            "localhost:80abc",
            "localhost:99999",
            "localhost:0",
            "localhost:+80",
            "localhost:000080",
            "localhost:80:80",
            "[::1]evil.example",
            "[::1].evil.example",
            "[::1]:",
            "[::1",
            "::1",
            "[]",
            "[fe80::1%25eth0]",
            "[::1%lo]",
            "user@localhost",
            "user:pass@localhost",
            "localhost@evil.example",
            "localhost, evil.example",
            "localhost evil.example",
            " localhost",
            "localhost ",
            "localhost\t",
            "%6cocalhost",
            "localhost%00",
            "localhost/",
            "localhost#x",
            "localhost?x",
            "localhost\\evil.example",
            "http://localhost",
            "l\u{f6}calhost",
            "\u{0}",
        ] {
            assert_eq!(Authority::parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn configured_hosts_match_with_and_without_ports() {
        let check = |known: &str, host: &str, expect: bool| {
            assert_eq!(Authority::parse(host).unwrap().matches(known), expect, "{known} {host}");
        };
        check("hub.example", "hub.example", true);
        check("hub.example", "HUB.example:7460", true);
        check("hub.example:7460", "hub.example:7460", true);
        check("hub.example:7460", "hub.example:7461", false);
        check("hub.example", "hub.example.evil", false);
        check("10.1.2.3", "10.1.2.3:7460", true);
        check("fd00::1", "[fd00:0::1]:7460", true);
        check("[fd00::1]", "[fd00::1]", true);
        check("user@hub.example", "hub.example", false);
    }
}
