//! The page that connects clients.

use reqwest::Method;
use serde_json::{Value, json};

use crate::console::{Browser, sheets, with_key};
use crate::raw_client::{Era, RawClient};
use crate::serving::{Serving, hub};
use crate::team_access::{NewKey, new_key};

/// The page names the file of each client, the text for it, and the callers that have used the hub.
#[tokio::test]
async fn page_of_clients_names_files_texts_and_callers() {
    let mut cli = hub("");
    cli.server("s", &sheets());
    let key = new_key(&cli, &NewKey { name: "ann", options: &[] });
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    let page = browser.page("clients").await;
    let mcp = format!("{}/mcp", serving.root);
    for (client, file) in [
        ("Claude Desktop", "claude_desktop_config.json"),
        ("Claude Code", ".claude.json"),
        ("Cursor", ".cursor/mcp.json"),
        ("VS Code", "mcp.json"),
        ("Codex", ".codex/config.toml"),
        ("Gemini", ".gemini/settings.json"),
        ("goose", "config.yaml"),
    ] {
        let card = page.split("<section").find(|card| card.contains(client) && card.contains("snippet-"));
        let card = card.unwrap_or_else(|| panic!("{client}: {page}"));
        assert!(card.contains(file), "{client}: {card}");
        // Claude Desktop starts a program, which it does not find in the `PATH` of a shell.
        let text = if client == "Claude Desktop" { env!("CARGO_BIN_EXE_toolhub") } else { &mcp };
        assert!(card.contains(text), "{client}: {card}");
        assert_eq!(card.contains("Make a key for"), client != "Claude Desktop", "{client}: {card}");
    }
    assert!(page.contains("No client has called a tool yet."), "{page}");
    for advice in ["Restart the client afterwards", "A key identifies a client"] {
        assert!(page.contains(advice), "{advice}: {page}");
    }
    let body = json!({"arguments": {}}).to_string();
    let called =
        with_key(&serving, &key, Method::POST, "tools/read_sheet:call").body(body).send().await.unwrap();
    assert_eq!(called.status(), 200);
    let page = browser.page("clients").await;
    assert!(page.contains("calls?principal=key%3Aann\"><bdi>key:ann</bdi>"), "{page}");
}

/// Clients of both eras are listed with the names that they state and the callers that the hub has verified; a viewer sees
/// its own clients only.
#[tokio::test]
async fn connected_clients_are_listed_for_those_who_may_see_them() {
    let mut cli = hub("");
    cli.server("s", &sheets());
    let viewer = |name| new_key(&cli, &NewKey { name, options: &["--role", "viewer", "--role", "caller"] });
    let (ann, bob) = (viewer("ann"), viewer("bob"));
    let owner = new_key(&cli, &NewKey { name: "root", options: &["--role", "owner"] });
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    assert!(browser.page("clients").await.contains("No MCP client has connected yet."));

    let _legacy = RawClient::with_token(&serving.url(), Era::Legacy, Some(&ann)).await;
    let mut modern = RawClient::with_token(&serving.url(), Era::Modern, Some(&bob)).await;
    modern.also(
        r#""io.modelcontextprotocol/clientInfo":{"name":"b","title":"<script>名</script>","version":"2"}"#,
    );
    modern.tools().await;

    let seen = async |key: &str| {
        let answer = with_key(&serving, key, Method::GET, "clients").send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let page: Value = answer.json().await.unwrap();
        let items = page["items"].as_array().unwrap().clone();
        items
            .iter()
            .map(|client| {
                let [name, principal, protocol] =
                    ["name", "principal", "protocol"].map(|key| client[key].as_str().unwrap().to_owned());
                format!("{name} {principal} {protocol}")
            })
            .collect::<Vec<_>>()
    };
    let (of_ann, of_bob) = ("raw key:ann 2025-11-25".to_owned(), "b key:bob 2026-07-28".to_owned());
    assert_eq!(seen(&owner).await, [of_bob.clone(), of_ann.clone()]);
    assert_eq!(seen(&ann).await, [of_ann]);
    assert_eq!(seen(&bob).await, [of_bob]);

    let page = browser.page("clients").await;
    assert!(page.contains("&lt;script&gt;名&lt;/script&gt;") && !page.contains("<script>名"), "{page}");
    assert!(page.contains("calls?principal=key%3Abob"), "{page}");
}

/// The first steps stay on the home page until a server works and a client has connected.
#[tokio::test]
async fn first_steps_stay_until_a_client_connects() {
    let mut cli = hub("");
    cli.server("s", &sheets());
    let key = new_key(&cli, &NewKey { name: "ann", options: &["--role", "caller"] });
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    let done = async || {
        browser.page("").await.split("Three steps").nth(1).map(|tour| tour.matches(">done<").count())
    };
    assert!(done().await.is_some());
    let called = browser.post("tools/calculate:call", &json!({"arguments": {"expression": "6*7"}}));
    assert_eq!(called.send().await.unwrap().status(), 200);
    assert_eq!(browser.post("servers/s:test", &json!({})).send().await.unwrap().status(), 200);
    assert_eq!(done().await, Some(2));
    let _client = RawClient::with_token(&serving.url(), Era::Legacy, Some(&key)).await;
    assert_eq!(done().await, None);
}
