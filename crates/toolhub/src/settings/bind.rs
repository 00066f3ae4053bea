//! Parses the listening address of the gateway: `127.0.0.1:7460`, `localhost:7460`, or only a port.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use toolhub_core::lang::LocalizedText;

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindAddress(pub SocketAddr);

impl FromStr for BindAddress {
    type Err = LocalizedText;

    fn from_str(text: &str) -> Result<Self, LocalizedText> {
        let on_loopback =
            |port: &str| port.parse().ok().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        let text = text.trim();
        let address =
            text.parse().ok().or_else(|| on_loopback(text.strip_prefix("localhost:").unwrap_or(text)));
        address.map(Self).ok_or_else(|| {
            LocalizedText::new(
                format!("`{text}` is no address to listen on: write it like `127.0.0.1:7460`, `localhost:7460` or `7460`"),
                format!("`{text}` 不是可监听的地址：请写成 `127.0.0.1:7460`、`localhost:7460` 或 `7460`"),
            )
        })
    }
}

impl<'de> Deserialize<'de> for BindAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_bind_addresses() {
        let check = |text: &str, expect: Option<&str>| {
            let found = text.parse::<BindAddress>().ok().map(|bind| bind.0.to_string());
            assert_eq!(found.as_deref(), expect, "{text}");
        };
        check("127.0.0.1:7460", Some("127.0.0.1:7460"));
        check("localhost:7461", Some("127.0.0.1:7461"));
        check("7462", Some("127.0.0.1:7462"));
        check("[::1]:7460", Some("[::1]:7460"));
        check("0.0.0.0:80", Some("0.0.0.0:80"));
        check("hub.example:80", None);
        check("99999", None);
        check("", None);
    }
}
