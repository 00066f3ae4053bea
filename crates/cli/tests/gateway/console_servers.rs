//! Changes of the entry of a server through the console, and the texts that people confirm.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script, binary};

use crate::console::{Browser, sheets};
use crate::serving::{Serving, hub};

/// A request for the entry of `s`, as a page of the console sends it.
fn put(browser: &Browser, version: Option<&str>, body: &Value) -> RequestBuilder {
    let request = browser
        .client
        .request(Method::PUT, format!("{}/api/v1/servers/s/entry", browser.root))
        .header("cookie", &browser.cookie)
        .header("origin", &browser.root)
        .header("x-csrf-token", &browser.csrf);
    let request = version.into_iter().fold(request, |request, version| request.header("if-match", version));
    request.body(body.to_string())
}

/// An entry is changed while the hub runs: the new program serves the next call, secrets stay in the file and out of responses,
/// and a change of another person is not lost.
#[tokio::test]
async fn entry_of_server_is_changed() {
    let mut cli = hub("[audit]\nenabled = true\n");
    let script = |name: &str, tool: &str| {
        let (file, journal) =
            (cli.folder().join(format!("{name}.json")), cli.folder().join(format!("{name}.journal")));
        std::fs::write(&file, Script::both().plain_tool(tool).journal(&journal).json()).unwrap();
        (file, journal)
    };
    let ((first, _), (second, journal)) = (script("first", "old_tool"), script("second", "new_tool"));
    let args = json!(["stdio", first, "--api-key", "hunter1"]);
    cli.entry(
        "s",
        json!({"command": binary(), "args": args, "env": {"TOKEN": "hunter2"}, "vendor": {"x": 1}}),
    );
    cli.entry(
        "other",
        json!({"url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "hunter3"}, "disabled": true}),
    );
    let file = cli.folder().join("mcp.json");
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    let response = browser.get("/api/v1/servers/s/entry").send().await.unwrap();
    let version = response.headers()["etag"].to_str().unwrap().to_owned();
    let text = response.text().await.unwrap();
    assert!(!text.contains("hunter"), "{text}");
    let entry: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&entry["args"][0], &entry["version"]), (&json!("stdio"), &json!(version)), "{entry}");
    let mut changed = entry.clone();
    changed["args"] = json!(["stdio", second]);
    let before = std::fs::read_to_string(&file).unwrap();
    for (version, body, status) in [
        (None, &changed, 428),
        (Some("\"other\""), &changed, 412),
        (Some(&*version), &json!({"command": ""}), 400),
        (Some(&*version), &json!({"command": "x", "url": "http://y"}), 400),
        (Some(&*version), &json!({"url": "file:///etc/passwd"}), 400),
        // A secret stays where it is.
        (Some(&*version), &json!({"command": "x", "args": ["{{secret 1}}"]}), 422),
        (Some(&*version), &json!({"url": "http://localhost/?key={{secret 2}}"}), 422),
        (Some(&*version), &json!({"command": "{{secret 1}}"}), 422),
    ] {
        let refused = put(&browser, version, body).send().await.unwrap();
        assert_eq!(refused.status(), status, "{body}: {}", refused.text().await.unwrap());
    }
    // A request of another origin changes nothing.
    let foreign = browser.client.put(format!("{}/api/v1/servers/s/entry", browser.root));
    let foreign =
        foreign.header("cookie", &browser.cookie).header("if-match", &version).body(changed.to_string());
    assert_eq!(foreign.send().await.unwrap().status(), 403);
    let mut preview = changed.clone();
    preview["preview"] = json!(true);
    let shown: Value = put(&browser, Some(&version), &preview).send().await.unwrap().json().await.unwrap();
    let added = |line: &&Value| line["change"] == "added";
    let added: Vec<&Value> = shown["lines"].as_array().unwrap().iter().filter(added).collect();
    assert_eq!((added.len(), &shown["written"]), (1, &json!(false)), "{shown}");
    assert!(!shown.to_string().contains("hunter"), "{shown}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);

    let written: Value = put(&browser, Some(&version), &changed).send().await.unwrap().json().await.unwrap();
    assert_eq!(written["written"], true, "{written}");
    let after: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let mut expected: Value = serde_json::from_str(&before).unwrap();
    expected["mcpServers"]["s"]["args"] = json!(["stdio", second]);
    assert_eq!(after, expected);
    // The version is that of the earlier entry.
    assert_eq!(put(&browser, Some(&version), &entry).send().await.unwrap().status(), 412);
    let called = browser.post("tools/new_tool:call", &json!({"arguments": {}}));
    let tested = browser.post("servers/s:test", &json!({})).send().await.unwrap();
    assert_eq!(tested.status(), 200, "{}", tested.text().await.unwrap());
    let called: Value = called.send().await.unwrap().json().await.unwrap();
    assert_eq!(called["success"], true, "{called}");
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 1);
    let audit = browser.api("audit?kind=server_change").await;
    assert!(audit.to_string().contains("changed in the console"), "{audit}");
    assert!(!audit.to_string().contains("hunter"), "{audit}");
    // A server of HTTP, whose header stays with its host.
    let entry = browser.api("servers/other/entry").await;
    assert_eq!(
        (&entry["url"], &entry["command"]),
        (&json!("http://127.0.0.1:9/mcp"), &Value::Null),
        "{entry}"
    );
    assert_eq!(browser.get("/api/v1/servers/none/entry").send().await.unwrap().status(), 404);
}

/// The value of each attribute with this name.
fn attributes(page: &str, name: &str) -> Vec<String> {
    let start = format!(" {name}=\"");
    page.split(&start).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// Each question names its object, and its button the action, in both languages.
#[tokio::test]
async fn confirmations_name_action_and_object() {
    let mut cli = hub("");
    cli.server("s", &sheets());
    assert_eq!(cli.run(&["servers", "refresh", "s"]).code, Some(0));
    assert_eq!(cli.run(&["keys", "new", "ann"]).code, Some(0));
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    for (path, object, en, zh) in [
        (
            "servers/s",
            "s",
            &["Restart server", "Disable server", "Remove server"][..],
            &["重启服务器", "停用服务器", "移除服务器"][..],
        ),
        (
            "access",
            "ann",
            &["Make key", "Replace secret", "Revoke key"],
            &["生成密钥", "更换密钥", "吊销密钥"],
        ),
        ("tools/write_sheet", "write_sheet", &["Switch off tool", "Call tool"], &["停用工具", "调用工具"]),
    ] {
        for (lang, expected) in [("en", en), ("zh", zh)] {
            let page = browser.get(&format!("/console/{path}")).header("accept-language", lang).send();
            let page = page.await.unwrap().text().await.unwrap();
            let actions = attributes(&page, "data-confirm-action");
            for action in expected {
                assert!(actions.iter().any(|own| own == action), "{path} {action}: {actions:?}");
            }
            let questions = attributes(&page, "data-confirm");
            assert!(!questions.is_empty() && questions.len() <= actions.len(), "{path}: {questions:?}");
            for question in questions {
                assert!(question.contains(&format!("“{object}”")), "{path}: {question}");
            }
        }
    }
}

/// The page of a tool names its disabled server, and the page of a recorded call does not lead to a tool that is missing.
#[tokio::test]
async fn pages_say_that_the_server_of_a_tool_is_disabled() {
    let mut cli = hub("");
    cli.server("s", &sheets());
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    assert_eq!(browser.post("servers/s:test", &json!({})).send().await.unwrap().status(), 200);
    let called = browser.post("tools/read_sheet:call", &json!({"arguments": {}})).send().await.unwrap();
    assert_eq!(called.status(), 200);
    let call = browser.api("calls").await["items"][0]["id"].as_str().unwrap().to_owned();
    let page = browser.page(&format!("calls/{call}")).await;
    assert!(page.contains(&format!("tools/read_sheet?call={call}")), "{page}");
    let disabled = browser
        .client
        .patch(format!("{}/api/v1/servers/s", browser.root))
        .header("cookie", &browser.cookie)
        .header("origin", &browser.root)
        .header("x-csrf-token", &browser.csrf)
        .body(json!({"enabled": false}).to_string());
    assert_eq!(disabled.send().await.unwrap().status(), 200);
    for (lang, expected) in [("en", "is disabled"), ("zh", "已停用")] {
        let shown = browser.get("/console/tools/read_sheet").header("accept-language", lang);
        let shown = shown.send().await.unwrap();
        assert_eq!(shown.status(), 404);
        let shown = shown.text().await.unwrap();
        assert!(shown.contains(expected) && shown.contains("servers/s\""), "{shown}");
    }
    let page = browser.page(&format!("calls/{call}")).await;
    assert!(page.contains("This tool is not offered now") && !page.contains("?call="), "{page}");
}
