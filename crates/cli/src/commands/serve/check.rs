//! `toolhub serve --check`: checks whether the hub that listens at an address is ready, for health checks of containers and
//! services. Starts nothing and needs no token.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolhub_core::RawObject;

use crate::app::App;
use crate::exit::Exit;

/// Timeout from connecting to the last byte of the response.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

/// The response of `/readyz`.
#[derive(Debug, PartialEq, Eq)]
struct Readiness {
    ready: bool,
    /// `ok`, `degraded`, `not ready` or `draining`.
    status: String,
}

pub(crate) async fn run(app: &App, bind: SocketAddr) -> Exit {
    let (lang, address) = (app.lang(), connectable(bind));
    let readiness = match tokio::time::timeout(CHECK_TIMEOUT, request(address)).await {
        Ok(Ok(readiness)) => readiness,
        Ok(Err(error)) => {
            app.screen.error(&lang.choose(
                format!("no hub answers at {address}: {error}; start it with `toolhub serve`, or name its address with `--bind`"),
                format!("{address} 上没有 hub 响应：{error}；请用 `toolhub serve` 启动，或用 `--bind` 指定其地址"),
            ));
            return Exit::Unreachable;
        }
        Err(_) => {
            let seconds = CHECK_TIMEOUT.as_secs();
            app.screen.error(&lang.choose(
                format!("the hub at {address} did not answer within {seconds} s"),
                format!("{address} 上的 hub 在 {seconds} 秒内没有响应"),
            ));
            return Exit::TimedOut;
        }
    };
    let Readiness { ready, status } = &readiness;
    if app.screen.json {
        let json = RawObject::default()
            .with("address", address.to_string())
            .with("ready", *ready)
            .with("status", status.as_str());
        app.screen.json(&json.into_raw());
    } else if *ready {
        app.screen.line(status);
    } else {
        app.screen.error(&lang.choose(
            format!("the hub at {address} is not ready: {status}"),
            format!("{address} 上的 hub 未就绪：{status}"),
        ));
    }
    if *ready { Exit::Done } else { Exit::Failed }
}

/// The address to connect to: the loopback address if the hub listens on all interfaces.
fn connectable(bind: SocketAddr) -> SocketAddr {
    match bind {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, v6.port()).into(),
        other => other,
    }
}

async fn request(address: SocketAddr) -> io::Result<Readiness> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut response = Vec::new();
    stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut response).await?;
    parse(&response).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the response is not a hub's"))
}

/// Parses a response. Returns `None` if it does not come from a hub.
fn parse(response: &[u8]) -> Option<Readiness> {
    let (head, body) = std::str::from_utf8(response).ok()?.split_once("\r\n\r\n")?;
    let code: u16 = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let body: Value = serde_json::from_str(body).ok()?;
    Some(Readiness { ready: code == 200, status: body["status"].as_str()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_readiness_from_status_and_body() {
        let check = |response: &str, expect: Option<(bool, &str)>| {
            let found = parse(response.as_bytes());
            let expect = expect.map(|(ready, status)| Readiness { ready, status: status.to_owned() });
            assert_eq!(found, expect, "{response:?}");
        };
        check("HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{\"status\":\"ok\"}", Some((true, "ok")));
        check(
            "HTTP/1.1 200 OK\r\n\r\n{\"status\":\"degraded\",\"degraded\":[\"x\"]}",
            Some((true, "degraded")),
        );
        check("HTTP/1.1 503 Service Unavailable\r\n\r\n{\"status\":\"draining\"}", Some((false, "draining")));
        check("HTTP/1.1 200 OK\r\n\r\nhello", None);
        check("HTTP/1.1 200 OK\r\n\r\n{}", None);
        check("SSH-2.0-OpenSSH_9.2\r\n\r\n", None);
        check("", None);
    }

    #[test]
    fn connects_to_loopback_for_unspecified_addresses() {
        for (bind, expect) in [
            ("0.0.0.0:7460", "127.0.0.1:7460"),
            ("[::]:80", "[::1]:80"),
            ("127.0.0.1:7460", "127.0.0.1:7460"),
            ("192.0.2.7:1", "192.0.2.7:1"),
        ] {
            let (bind, expect): (SocketAddr, SocketAddr) = (bind.parse().unwrap(), expect.parse().unwrap());
            assert_eq!(connectable(bind), expect);
        }
    }
}
