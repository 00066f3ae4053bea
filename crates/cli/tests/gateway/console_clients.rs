//! The page that connects clients.

use reqwest::Method;
use serde_json::json;

use crate::console::{Browser, sheets, with_key};
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
        // Claude Desktop starts a program.
        let text = if client == "Claude Desktop" { "serve" } else { &mcp };
        assert!(card.contains(text), "{client}: {card}");
        assert_eq!(card.contains("Make a key for"), client != "Claude Desktop", "{client}: {card}");
    }
    assert!(page.contains("No client has called a tool yet."), "{page}");
    let body = json!({"arguments": {}}).to_string();
    let called =
        with_key(&serving, &key, Method::POST, "tools/read_sheet:call").body(body).send().await.unwrap();
    assert_eq!(called.status(), 200);
    let page = browser.page("clients").await;
    assert!(page.contains("calls?principal=key%3Aann\"><bdi>key:ann</bdi>"), "{page}");
}
