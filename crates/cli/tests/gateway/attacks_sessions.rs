//! Attacks with ids of legacy sessions, which can be resumed after a restart: an id is valid only for the principal and the
//! profile that it was issued to, until its client ends the session.

use std::fs;

use reqwest::Method;
use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::access::two_principals_with;
use crate::raw_client::{Era, RawClient, http};
use crate::serving::{Serving, hub};

fn echo() -> Script {
    Script::both().plain_tool("echo")
}

/// The statuses of a POST, a GET and a DELETE with the headers of this client. An opened stream is closed.
async fn statuses(client: &RawClient) -> [u16; 3] {
    let status = |sent: Result<reqwest::Response, reqwest::Error>| sent.unwrap().status().as_u16();
    [
        status(client.request("1", "ping", "").send().await),
        status(client.get().send().await),
        status(client.delete().send().await),
    ]
}

#[tokio::test]
async fn rejects_session_of_another_principal_or_profile_after_a_restart() {
    let settings = "[profiles.work]\n[profiles.home]\n";
    let (serving, [ann, bob]) = two_principals_with(&echo(), settings);
    let at = |serving: &Serving, profile: &str| format!("{}/mcp/{profile}", serving.root);
    let own = RawClient::with_token(&at(&serving, "work"), Era::Legacy, Some(&ann)).await;
    let mut serving = Some(serving);
    for restarted in [false, true] {
        if restarted {
            serving = Some(serving.take().unwrap().restarted().await);
        }
        let serving = serving.as_ref().unwrap();
        for (profile, token) in [("work", &bob), ("home", &ann), ("default", &ann), ("home", &bob)] {
            let mut thief = own.clone();
            thief.move_to(&at(serving, profile));
            thief.set("authorization", &format!("Bearer {token}"));
            assert_eq!(statuses(&thief).await, [404; 3], "{profile}, restarted: {restarted}");
        }
        // Without a valid token an id is useless.
        let mut unauthorized = own.clone();
        unauthorized.set("authorization", "Bearer wrong");
        assert_eq!(statuses(&unauthorized).await, [401; 3]);
    }
    // Control: none of these requests has ended the session.
    assert_eq!(own.call("echo", "{}").await.text(), "{}");
}

/// A session that was ended with DELETE stays ended: in the same process, in another one with the same data folder, after a
/// restart, and also if it was ended before it was resumed.
#[tokio::test]
async fn deleted_session_stays_deleted_after_restart() {
    let serving = Serving::before(&echo(), "");
    let other = serving.cli().command(&["serve", "--json", "--bind", "127.0.0.1:0"]);
    let other = SecondHub::start(other);
    let ended = RawClient::connect(&serving.url(), Era::Legacy).await;
    let original = RawClient::connect(&serving.url(), Era::Legacy).await;
    let later = RawClient::connect(&serving.url(), Era::Legacy).await;
    // The other process resumes a session, and rejects one that was ended here.
    let mut elsewhere = original.clone();
    elsewhere.move_to(&other.url);
    assert_eq!(elsewhere.call("echo", "{}").await.text(), "{}");
    ended.end().await;
    assert_eq!(statuses(&ended).await, [404; 3]);
    let mut elsewhere = ended.clone();
    elsewhere.move_to(&other.url);
    assert_eq!(statuses(&elsewhere).await, [404; 3]);
    drop(other);

    let serving = serving.restarted().await;
    assert_eq!(statuses(&ended).await, [404; 3]);
    assert_eq!(original.call("echo", "{}").await.text(), "{}");
    later.end().await;
    assert_eq!(statuses(&later).await, [404; 3]);

    let _serving = serving.restarted().await;
    assert_eq!(statuses(&ended).await, [404; 3]);
    assert_eq!(statuses(&later).await, [404; 3]);
    assert_eq!(original.call("echo", "{}").await.text(), "{}");
}

/// A second gateway with the same files.
struct SecondHub {
    child: std::process::Child,
    url: String,
}

impl SecondHub {
    fn start(mut command: std::process::Command) -> Self {
        use std::io::BufRead as _;
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let startup: Value = serde_json::from_str(&line).unwrap();
        Self { child, url: startup["mcp"].as_str().unwrap().to_owned() }
    }
}

impl Drop for SecondHub {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn rejects_forged_session_ids() {
    let serving = Serving::before(&echo(), "");
    let own = RawClient::connect(&serving.url(), Era::Legacy).await;
    let id = own.session().to_owned();
    let other = RawClient::connect(&serving.url(), Era::Legacy).await.session().to_owned();
    let half = id.len() / 2;
    let serving = serving.restarted().await;
    let mut forger = own.clone();
    for forged in [
        "x".to_owned(),
        "0".repeat(32),
        id[1..].to_owned(),
        id[..id.len() - 1].to_owned(),
        format!("{id}A"),
        format!("{id}="),
        id.to_lowercase(),
        // The signature of one id and the contents of another.
        format!("{}{}", &id[..half], &other[half..]),
        "A".repeat(id.len()),
        "A".repeat(8 << 10),
    ] {
        forger.set("mcp-session-id", &forged);
        assert_eq!(statuses(&forger).await, [404; 3], "{forged}");
    }
    // An id that is too long for a header is rejected before it is parsed.
    forger.set("mcp-session-id", &"A".repeat(1 << 20));
    if let Ok(answer) = forger.request("1", "ping", "").send().await {
        assert!(answer.status().is_client_error(), "{answer:?}");
    }
    assert_eq!(own.call("echo", "{}").await.text(), "{}", "{}", serving.stderr());
}

/// A session that was evicted because of the limit of its principal stays ended; otherwise reconnecting clients would evict
/// each other's sessions endlessly. Resumed sessions count, too.
#[tokio::test]
async fn resumed_sessions_count_against_the_limit() {
    let serving = Serving::before(&echo(), "[serve.limits]\nsessions = 2\n");
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(RawClient::connect(&serving.url(), Era::Legacy).await);
    }
    assert_eq!(statuses(&clients[0]).await, [404; 3]);
    let serving = serving.restarted().await;
    let newest = RawClient::connect(&serving.url(), Era::Legacy).await;
    for client in &clients[1..] {
        assert_eq!(client.call("echo", "{}").await.text(), "{}");
    }
    assert!(serving.get("/metrics").await.contains("toolhub_sessions{profile=\"default\"} 2"));
    assert_eq!(statuses(&newest).await, [404; 3]);
}

/// The key and the record are accessible to the owner only. Removing the key ends all sessions that were not resumed yet.
#[tokio::test]
async fn session_files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let serving = Serving::before(&echo(), "");
    let client = RawClient::connect(&serving.url(), Era::Legacy).await;
    RawClient::connect(&serving.url(), Era::Legacy).await.end().await;
    let home = serving.folder().join("home");
    for file in ["sessions.key", "sessions.ended", "sessions.lock"] {
        let mode = home.join(file).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let key = fs::read_to_string(home.join("sessions.key")).unwrap();
    assert!(!fs::read_to_string(home.join("sessions.ended")).unwrap().contains(client.session()));
    fs::remove_file(home.join("sessions.key")).unwrap();
    let serving = serving.restarted().await;
    assert_eq!(statuses(&client).await, [404; 3]);
    RawClient::connect(&serving.url(), Era::Legacy).await;
    assert_ne!(fs::read_to_string(home.join("sessions.key")).unwrap(), key);
}

/// Without a data folder a session ends with the process.
#[tokio::test]
async fn returns_404_for_sessions_that_cannot_be_restored() {
    let mut cli = hub("");
    cli.server("s", &echo());
    let serving = Serving::start(cli);
    let long = json!({"experimental": {"x": "x".repeat(4_000)}});
    let client = RawClient::legacy_with(&serving.url(), "2025-06-18", long).await;
    // Capabilities that do not fit into an id are stored, and found again.
    assert!(client.session().len() <= 200 && client.call("echo", "{}").await.text() == "{}");
    let serving = serving.restarted().await;
    assert_eq!(client.call("echo", "{}").await.text(), "{}");

    let cli = serving.kill();
    let home = cli.folder().join("home");
    fs::remove_dir_all(&home).unwrap();
    fs::write(&home, "not a folder").unwrap();
    fs::write(cli.folder().join("toolhub.toml"), "[store]\nrequired = false\n").unwrap();
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Legacy).await;
    assert_eq!(client.call("echo", "{}").await.text(), "{}");
    let _serving = serving.restarted().await;
    assert_eq!(statuses(&client).await, [404; 3]);
    let unknown =
        http().request(Method::DELETE, client.url()).header("mcp-session-id", "x").send().await.unwrap();
    assert_eq!(unknown.status(), 404);
}
