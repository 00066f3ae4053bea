//! The address of a hub. A key is sent only over TLS or within this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use toolhub_core::lang::LocalizedText;
use url::{Host, Url};

/// Paths that belong to one interface of the hub, and not to its address.
const INTERFACE_PATHS: [&str; 4] = ["/mcp", "/api/v1", "/console", "/sse"];

/// Whether a key may be sent without encryption to another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainHttp {
    /// Only within this machine.
    Loopback,
    /// To every host: the user has decided so.
    Anywhere,
}

/// The address of a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HubAddress {
    /// The URL without a slash at its end.
    pub(crate) root: String,
    /// Whether requests are encrypted.
    pub(crate) is_https: bool,
    /// A host name below `localhost`, with the addresses of this machine: a resolver must not lead it elsewhere.
    pub(crate) pinned: Option<(String, Vec<SocketAddr>)>,
    /// The address, if it is one of this machine.
    pub(crate) loopback: Option<SocketAddr>,
}

impl HubAddress {
    pub(crate) fn parse(text: &str, plain_http: PlainHttp) -> Result<Self, LocalizedText> {
        let text = text.trim();
        let invalid = |en: &str, zh: &str| {
            LocalizedText::new(
                format!("`--hub`: {en}; write it like https://hub.example or http://127.0.0.1:7460"),
                format!("`--hub`：{zh}；写法如 https://hub.example 或 http://127.0.0.1:7460"),
            )
        };
        let url = Url::parse(text).map_err(|_| invalid("the value is no address", "该值不是地址"))?;
        let is_https = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => {
                return Err(invalid(
                    "the address begins with neither https:// nor http://",
                    "地址须以 https:// 或 http:// 开头",
                ));
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(
                "the address must not contain a password, since arguments are visible to other programs: the key is read from TOOLHUB_HUB_KEY or `--hub-key-file`",
                "地址中不能含密码，因为其他程序能看到命令行参数：密钥从 TOOLHUB_HUB_KEY 或 `--hub-key-file` 读取",
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(invalid("the address must not have a query or a fragment", "地址不能含查询或片段"));
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(invalid("the address has no host", "地址缺少主机"));
        };
        let path = url.path().trim_end_matches('/');
        if let Some(own) = INTERFACE_PATHS.iter().find(|own| path.ends_with(**own)) {
            return Err(invalid(
                &format!("`{own}` does not belong to the address"),
                &format!("`{own}` 不属于地址"),
            ));
        }
        let (pinned, loopback) = match host {
            Host::Domain(name) if is_localhost(name) => {
                let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
                let addresses: Vec<_> = addresses.map(|ip| SocketAddr::new(ip, port)).to_vec();
                let first = addresses.first().copied();
                (Some((name.to_owned(), addresses)), first)
            }
            Host::Domain(_) => (None, None),
            Host::Ipv4(ip) => (None, ip.is_loopback().then(|| SocketAddr::new(ip.into(), port))),
            Host::Ipv6(ip) => {
                let is_loopback = IpAddr::V6(ip).to_canonical().is_loopback();
                (None, is_loopback.then(|| SocketAddr::new(ip.into(), port)))
            }
        };
        if !is_https && loopback.is_none() && plain_http == PlainHttp::Loopback {
            return Err(LocalizedText::new(
                "`--hub`: over http:// everyone on the way to the hub could read the key and the results: use https://, or forward the port (`ssh -L 7460:127.0.0.1:7460 HOST`) and use http://127.0.0.1:7460; `--hub-plain-http` permits it in a network that you trust",
                "`--hub`：通过 http:// 时，途经的任何人都能读到密钥和结果：请使用 https://，或转发端口（`ssh -L 7460:127.0.0.1:7460 主机`）后使用 http://127.0.0.1:7460；在可信网络中可加 `--hub-plain-http`",
            ));
        }
        let root = format!("{}{path}", url.origin().ascii_serialization());
        Ok(Self { root, is_https, pinned, loopback })
    }
}

/// Whether a host name means this machine (RFC 6761, section 6.3).
fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use toolhub_core::{Lang, Localize as _};

    use super::*;

    fn parse(text: &str) -> Result<HubAddress, String> {
        HubAddress::parse(text, PlainHttp::Loopback).map_err(|error| error.localize(Lang::En))
    }

    #[test]
    fn accepts_https_and_loopback() {
        for (text, root, is_loopback) in [
            ("https://hub.example", "https://hub.example", false),
            ("https://hub.example/hub/", "https://hub.example/hub", false),
            ("https://hub.example:8443", "https://hub.example:8443", false),
            (" http://127.0.0.1:7460/ ", "http://127.0.0.1:7460", true),
            ("http://127.9.9.9:1", "http://127.9.9.9:1", true),
            ("http://[::1]:7460", "http://[::1]:7460", true),
            ("http://localhost:7460", "http://localhost:7460", true),
            ("http://console-1.localhost:7460", "http://console-1.localhost:7460", true),
        ] {
            let address = parse(text).unwrap();
            assert_eq!((address.root.as_str(), address.loopback.is_some()), (root, is_loopback), "{text}");
        }
    }

    /// A resolver may answer anything for these names.
    #[test]
    fn names_of_this_machine_are_not_resolved() {
        let (name, addresses) = parse("http://hub.localhost:7").unwrap().pinned.unwrap();
        assert_eq!(name, "hub.localhost");
        assert!(addresses.iter().all(|address| address.ip().is_loopback() && address.port() == 7));
        assert_eq!(parse("https://hub.example").unwrap().pinned, None);
    }

    #[test]
    fn rejects_plain_http_to_other_hosts() {
        for text in [
            "http://hub.example",
            "http://192.168.0.1:7460",
            "http://localhost.example",
            "http://127.0.0.1.example",
            "http://0.0.0.0:7460",
            "http://[2001:db8::1]:1",
            "HTTP://hub.example",
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("could read the key"), "{text}: {error}");
            assert!(HubAddress::parse(text, PlainHttp::Anywhere).is_ok(), "{text}");
        }
    }

    #[test]
    fn rejects_what_is_no_address_of_a_hub() {
        for (text, part) in [
            ("", "no address"),
            ("hub.example", "no address"),
            ("ftp://hub.example", "neither https"),
            ("https://me:secret@hub.example", "password"),
            ("https://hub.example/?key=secret", "query"),
            ("https://hub.example/#x", "query"),
            ("https://hub.example/mcp", "does not belong"),
            ("http://127.0.0.1:7460/api/v1/", "does not belong"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
