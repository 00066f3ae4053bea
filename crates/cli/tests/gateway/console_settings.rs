//! `toolhub.toml` in the console: read without secrets, previewed, and replaced only if it has not changed meanwhile.

use std::fs;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::console::{Browser, hub_with_roles, sheets, with_key};
use crate::raw_client::{Era, RawClient};
use crate::serving::{Serving, TEST_TIMEOUT, hub};

const SETTINGS: &str = r#"# A comment that stays.
[llm]
enabled = false
key = "hunter2"

[limits]
call = "20s"
"#;

async fn put(browser: &Browser, text: &str, version: Option<&str>) -> (u16, Value) {
    let request = browser.post("config", &json!({ "text": text }));
    let mut request = request.build().unwrap();
    *request.method_mut() = Method::PUT;
    if let Some(version) = version {
        request.headers_mut().insert("if-match", version.parse().unwrap());
    }
    let response = browser.client.execute(request).await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn configuration_is_previewed_and_replaced_with_its_secrets() {
    let serving = Serving::start(hub(SETTINGS));
    let browser = Browser::open(&serving).await;
    let config = browser.api("config").await;
    let (text, version) = (config["text"].as_str().unwrap(), config["version"].as_str().unwrap());
    assert!(text.contains("# A comment that stays.") && text.contains("{{secret 1}}"), "{text}");
    let page = browser.page("settings").await;
    assert!(!config.to_string().contains("hunter2") && !page.contains("hunter2"));

    let changed = text.replace("20s", "21s").replace("# A comment that stays.", "# 改动后的注释");
    let preview = browser.post("config:preview", &json!({ "text": changed })).send().await.unwrap();
    let preview: Value = preview.json().await.unwrap();
    assert_eq!((&preview["valid"], &preview["restart"]), (&json!(true), &json!([])), "{preview}");
    let lines = preview["lines"].to_string();
    assert!(lines.contains("call = \\\"21s\\\"") && !lines.contains("hunter2"), "{lines}");
    let file = serving.cli().folder().join("toolhub.toml");
    assert!(fs::read_to_string(&file).unwrap().contains("20s"), "a preview writes nothing");

    let (status, written) = put(&browser, &changed, Some(version)).await;
    assert_eq!(status, 200, "{written}");
    let on_disk = fs::read_to_string(&file).unwrap();
    assert!(on_disk.contains("key = \"hunter2\"") && on_disk.contains("21s"), "{on_disk}");
    assert!(on_disk.contains("# 改动后的注释"));
    assert!(!written.to_string().contains("hunter2"));

    // A section that is read at the start.
    let text = written["text"].as_str().unwrap();
    let serve = format!("{text}\n[serve]\nper_second = 1000\n");
    let (status, written) = put(&browser, &serve, written["version"].as_str()).await;
    assert_eq!((status, &written["restart"]), (200, &json!(["serve"])), "{written}");
}

/// Two people edit the same text: the second one overwrites nothing, and loses nothing.
#[tokio::test]
async fn changes_of_others_are_not_overwritten() {
    let serving = Serving::start(hub(SETTINGS));
    let browser = Browser::open(&serving).await;
    let config = browser.api("config").await;
    let (text, version) = (config["text"].as_str().unwrap(), config["version"].as_str().unwrap());
    let (one, other) = (text.replace("20s", "21s"), text.replace("20s", "22s"));
    let file = serving.cli().folder().join("toolhub.toml");
    assert_eq!(put(&browser, &one, Some(version)).await.0, 200);
    let (status, problem) = put(&browser, &other, Some(version)).await;
    assert_eq!((status, &problem["type"]), (412, &json!("urn:toolhub:problem:changed-meanwhile")));
    assert_eq!(put(&browser, &other, None).await.0, 428);
    assert_eq!(put(&browser, &other, Some("*")).await.0, 412);
    assert!(fs::read_to_string(&file).unwrap().contains("21s"));
}

#[tokio::test]
async fn unusable_configurations_are_not_written() {
    let serving = Serving::start(hub(SETTINGS));
    let browser = Browser::open(&serving).await;
    let config = browser.api("config").await;
    let file = serving.cli().folder().join("toolhub.toml");
    let before = fs::read_to_string(&file).unwrap();
    for (text, expected) in [
        ("[limits]\ncall = \"soon\"\n", "line 2"),
        ("a = ", "line 1"),
        ("[llm]\nkey = \"{{secret 9}}\"\n", "{{secret 9}}"),
        ("[routing]\norder = []\n", "order"),
    ] {
        let preview = browser.post("config:preview", &json!({ "text": text })).send().await.unwrap();
        let preview: Value = preview.json().await.unwrap();
        assert_eq!(preview["valid"], false);
        assert!(preview["message"].as_str().unwrap().contains(expected), "{preview}");
        let (status, problem) = put(&browser, text, config["version"].as_str()).await;
        assert_eq!(status, 422, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(expected), "{problem}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    // Secrets of a file that cannot be parsed cannot be told apart, so that nothing of it is shown.
    fs::write(&file, "[llm\nkey = \"hunter2\"\n").unwrap();
    let response = browser.get("/api/v1/config").send().await.unwrap();
    assert_eq!(response.status(), 409);
    assert!(!response.text().await.unwrap().contains("hunter2"));
    let page = browser.get("/console/settings").send().await.unwrap();
    assert_eq!(page.status(), 409);
    assert!(!page.text().await.unwrap().contains("hunter2"));
}

/// A change of the configuration can allow everything: only owners make one, and each is in the audit log.
#[tokio::test]
async fn only_owners_change_the_configuration() {
    let (serving, keys) = hub_with_roles("[audit]\nenabled = true\n", &Script::both());
    for (role, key) in &keys {
        let response = with_key(&serving, key, Method::GET, "config").send().await.unwrap();
        assert_eq!(response.status(), if *role == "owner" { 200 } else { 403 }, "{role}");
        if *role == "owner" {
            let version = response.headers()["etag"].clone();
            let config: Value = response.json().await.unwrap();
            let text = format!("{}\n# noted\n", config["text"].as_str().unwrap());
            let request = with_key(&serving, key, Method::PUT, "config").header("if-match", version);
            let written = request.body(json!({ "text": text }).to_string()).send().await.unwrap();
            assert_eq!(written.status(), 200);
        }
    }
    let audit = serving.cli().run(&["audit", "show", "--kind", "config_change", "--json"]);
    assert!(
        audit.stdout.contains("key:owner") && audit.stdout.contains("\"object\":\"toolhub.toml\""),
        "{audit:?}"
    );
}

/// A tool that is switched off is on no surface, and comes back; nothing else in the file changes.
#[tokio::test]
async fn tools_are_switched_off_and_on() {
    let mut cli = hub(SETTINGS);
    cli.server("s", &sheets());
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    let patch = async |body: Value| {
        let mut request = browser.post("servers/s", &body).build().unwrap();
        *request.method_mut() = Method::PATCH;
        let response = browser.client.execute(request).await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let names = async || {
        let tools = browser.api("tools?source=s").await;
        let names = tools["items"].as_array().unwrap().iter().map(|tool| tool["name"].clone());
        names.collect::<Vec<Value>>()
    };
    assert_eq!(names().await, [json!("delete_sheet"), json!("read_sheet"), json!("write_sheet")]);
    let (status, server) = patch(json!({"switch_off": "delete_sheet"})).await;
    assert_eq!((status, &server["disabled_tools"]), (200, &json!(["delete_sheet"])), "{server}");
    await_names(&names, &["read_sheet", "write_sheet"]).await;
    let call = browser.post("tools/delete_sheet:call", &json!({"arguments": {}})).send().await.unwrap();
    assert_eq!(call.status(), 404);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    assert!(!client.ask("1", "tools/list", "").await.result().contains("delete_sheet"));
    let text = fs::read_to_string(serving.cli().folder().join("toolhub.toml")).unwrap();
    assert!(text.starts_with(SETTINGS) && text.contains("disabled_tools = [\"delete_sheet\"]"), "{text}");
    assert!(browser.page("servers/s").await.contains("switch_on"));
    for wrong in [json!({}), json!({"enabled": true, "switch_on": "x"}), json!({"switch_off": 1})] {
        assert_eq!(patch(wrong).await.0, 400);
    }
    assert_eq!(patch(json!({"switch_off": "none"})).await.0, 404);
    assert_eq!(patch(json!({"switch_on": "delete_sheet"})).await.0, 200);
    await_names(&names, &["delete_sheet", "read_sheet", "write_sheet"]).await;
}

/// Waits until these are the names: the server is connected again after a change.
async fn await_names(names: &impl AsyncFn() -> Vec<Value>, expected: &[&str]) {
    let since = Instant::now();
    while names().await != expected {
        assert!(since.elapsed() < TEST_TIMEOUT, "{expected:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
