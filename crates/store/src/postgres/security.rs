//! Whether a connection to PostgreSQL is encrypted, and whether the server's certificate is verified.

use std::net::IpAddr;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// The security of a connection. There is no mode with encryption but without verification, except on this machine,
/// where encryption protects nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Security {
    /// No TLS; only if the URL contains `sslmode=disable`.
    None,
    /// TLS if the server supports it, without verification. Only for hosts on this machine.
    Opportunistic,
    /// TLS, with verification of the certificate and its host name.
    Verified,
}

/// The `sslmode` of the URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrittenMode {
    /// `disable`.
    Disable,
    /// `allow` and `prefer`.
    Prefer,
    /// `require`, `verify-ca` and `verify-full`.
    Verify,
}

impl WrittenMode {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "disable" => Some(Self::Disable),
            "allow" | "prefer" => Some(Self::Prefer),
            "require" | "verify-ca" | "verify-full" => Some(Self::Verify),
            _ => None,
        }
    }
}

impl Security {
    /// The security of a connection to the hosts in `config`: verified if any of them is remote.
    pub(crate) fn of(config: &Config, written: Option<WrittenMode>) -> Self {
        match written {
            Some(WrittenMode::Disable) => Self::None,
            Some(WrittenMode::Verify) => Self::Verified,
            // An attacker on the network could force a fallback to plain text.
            Some(WrittenMode::Prefer) | None if !is_local(config) => Self::Verified,
            Some(WrittenMode::Prefer) | None => Self::Opportunistic,
        }
    }

    pub(crate) fn ssl_mode(self) -> SslMode {
        match self {
            Self::None => SslMode::Disable,
            Self::Opportunistic => SslMode::Prefer,
            Self::Verified => SslMode::Require,
        }
    }
}

/// Whether every connection stays on this machine. An address takes precedence over a name; among names only
/// `localhost` counts, since others are resolved by DNS.
fn is_local(config: &Config) -> bool {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let by_address = addresses.iter().all(|address| is_loopback(*address));
    let host = |host: &Host| match host {
        #[cfg(unix)]
        Host::Unix(_) => true,
        Host::Tcp(_) if !addresses.is_empty() => true,
        Host::Tcp(name) => name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback),
    };
    by_address && hosts.iter().all(host) && !(hosts.is_empty() && addresses.is_empty())
}

/// Whether an address is a loopback address, including IPv4-mapped IPv6.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::PgUrl;

    fn security(url: &str) -> Security {
        url.parse::<PgUrl>().unwrap_or_else(|error| panic!("{url}: {error}")).security
    }

    #[test]
    fn remote_hosts_require_a_verified_certificate() {
        for host in [
            "db.example",
            "10.0.0.5",
            "192.168.1.2:5433",
            "[fd00::1]",
            "[::ffff:10.0.0.5]",
            "0.0.0.0",
            "localhost.",
            "localhost.example",
            "xlocalhost",
            "127.1",
            "0x7f000001",
            "2130706433",
            "127.0.0.1.example",
            "localhost,db.example",
            "127.0.0.1:1,10.0.0.5:2",
            "%64b.example",
        ] {
            for query in ["", "?sslmode=prefer", "?sslmode=allow", "?sslmode=verify-full", "?sslmode=require"]
            {
                let url = format!("postgres://u:p@{host}/n{query}");
                assert_eq!(security(&url), Security::Verified, "{url}");
            }
            assert_eq!(
                security(&format!("postgres://u:p@{host}/n?sslmode=disable")),
                Security::None,
                "{host}"
            );
        }
        for query in ["host=db.example", "hostaddr=10.0.0.5", "hostaddr=::ffff:10.0.0.5", "%68ost=db.example"]
        {
            let url = format!("postgres://u:p@localhost/n?{query}");
            // An invalid URL is an error, so that there is no connection either.
            if let Ok(url) = url.parse::<PgUrl>() {
                assert_eq!(url.security, Security::Verified, "{url}");
            }
        }
    }

    #[test]
    fn local_host_requires_no_certificate() {
        for host in [
            "localhost",
            "LOCALHOST:5433",
            "127.0.0.1",
            "127.8.9.1",
            "[::1]:5432",
            "[::ffff:127.0.0.1]",
            "%2Fvar%2Frun%2Fpostgresql",
            "localhost,127.0.0.1",
        ] {
            assert_eq!(security(&format!("postgres://u@{host}/n")), Security::Opportunistic, "{host}");
        }
        assert_eq!(security("postgres://u@db.example/n?hostaddr=127.0.0.1"), Security::Opportunistic);
        assert_eq!(security("postgres://u@localhost/n?sslmode=verify-full"), Security::Verified);
    }

    #[test]
    fn rejects_contradictory_ssl_modes() {
        for query in ["sslmode=verify-full&sslmode=disable", "sslmode=", "sslmode=Disable", "sslmode=none"] {
            let url = format!("postgres://u:p@db.example/n?{query}");
            assert!(url.parse::<PgUrl>().is_err(), "{url}");
        }
        // An escaped key that the driver would decode must not override it.
        let url = "postgres://u:p@db.example/n?%73slmode=disable";
        assert!(url.parse::<PgUrl>().map_or(true, |url| url.config.get_ssl_mode() == SslMode::Require));
    }
}
