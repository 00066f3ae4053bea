//! Tests of a relay without servers: its answers to valid and invalid first lines.

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use toolhub_client_config::{StdioSpec, TransportSpec};
use toolhub_core::Consent;

use super::*;
use crate::config::ServerSpec;

fn identity() -> LaunchIdentity {
    let stdio = StdioSpec { command: "server".to_owned(), ..StdioSpec::default() };
    let (id, origin) = (toolhub_core::ServerId::new("s"), "mcp.json".into());
    let mut spec = ServerSpec::new(id, TransportSpec::Stdio(stdio), origin);
    spec.consent = Consent::of_owner();
    spec.launch_identity().unwrap()
}

/// The answer of a relay without servers to a first line; empty if it closes the link.
async fn answer(line: &str) -> String {
    let (client, hub) = tokio::io::duplex(1 << 16);
    let relay = Relay::new("owner", "secret", |_| None);
    let asking = async {
        let (reader, mut writer) = tokio::io::split(client);
        writer.write_all(line.as_bytes()).await.unwrap();
        writer.write_all(b"\n").await.unwrap();
        let mut answer = String::new();
        BufReader::new(reader).read_line(&mut answer).await.unwrap();
        answer
    };
    tokio::join!(relay.serve(Box::new(hub)), asking).1
}

#[tokio::test]
async fn rejects_unknown_versions_secrets_servers_and_malformed_hello() {
    let hello = RawJson::of(&Hello::new("secret", "s", identity()));
    assert!(answer(hello.get()).await.contains("does not have this server"));
    let newer = hello.get().replace("\"protocol\":1", "\"protocol\":2");
    assert!(newer != hello.get() && answer(&newer).await.contains("another version"));
    let wrong_hello = RawJson::of(&Hello::new("Secret", "s", identity()));
    assert!(answer(wrong_hello.get()).await.contains("was not shown its secret"));
    for invalid in ["", "{}", "GET / HTTP/1.1", "\u{0}"] {
        let answer = answer(invalid).await;
        assert!(answer.contains("another version"), "{invalid:?}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn silent_client_does_not_hold_a_link() {
    let (_client, hub) = tokio::io::duplex(64);
    let relay = Relay::new("owner", "secret", |_| None);
    let served = tokio::time::timeout(HELLO_TIMEOUT * 2, relay.serve(Box::new(hub)));
    assert!(served.await.is_ok());
}

/// A request for states or a restart is answered only to a client that has the secret.
#[tokio::test]
async fn control_requires_the_secret_and_the_version() {
    let server = r#"{"id":"s","entry":"0"}"#;
    for control in [
        format!(r#"{{"action":"states","servers":[{server}]}}"#),
        format!(r#"{{"action":"restart","server":{server}}}"#),
    ] {
        let request = |protocol: u32, secret: &str| {
            format!(r#"{{"protocol":{protocol},"secret":"{secret}","control":{control}}}"#)
        };
        assert!(answer(&request(1, "Secret")).await.contains("was not shown its secret"));
        assert!(answer(&request(2, "secret")).await.contains("another version"));
        // It does not have the server.
        assert_eq!(answer(&request(1, "secret")).await.trim(), r#"{"status":"states","servers":[]}"#);
    }
}
