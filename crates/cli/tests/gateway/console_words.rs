//! The words of the console: those of its readers, in their language.

use serde_json::json;
use toolhub_testkit::scripted::Script;

use crate::console::{Browser, sheets};
use crate::serving::{Serving, hub};

/// A page in a language.
async fn page(browser: &Browser, path: &str, lang: &str) -> String {
    let response =
        browser.get(&format!("/console/{path}")).header("accept-language", lang).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.text().await.unwrap()
}

/// The text of a page without its markup.
fn plain(page: &str) -> String {
    let main = page.split("<main").nth(1).unwrap();
    main.split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text))
        .collect::<Vec<_>>()
        .join(" ")
}

#[tokio::test]
async fn pages_of_servers_and_tools_use_known_words() {
    let dies = Script::both().plain_tool("dies").on("tools/call:dies", json!([{"exit": 1}]));
    let mut cli = hub("");
    cli.server("bad", &dies);
    cli.server("good", &sheets());
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    for server in ["good", "bad"] {
        assert_eq!(
            browser.post(&format!("servers/{server}:test"), &json!({})).send().await.unwrap().status(),
            200
        );
    }
    for _ in 0..5 {
        browser.post("tools/dies:call", &json!({"arguments": {}})).send().await.unwrap();
    }
    assert_eq!(browser.api("servers/bad").await["state"], "circuit_open");
    for path in ["servers", "servers/bad"] {
        let (en, zh) = (page(&browser, path, "en").await, page(&browser, path, "zh").await);
        assert!(en.contains("paused after failures") && !en.contains(">circuit open<"), "{en}");
        assert!(zh.contains("连续失败，暂停调用") && !zh.contains("熔断<"), "{zh}");
    }
    let version = browser.api("servers/good").await["protocol_version"].as_str().unwrap().to_owned();
    for path in ["servers", "servers/good"] {
        let (en, zh) = (plain(&page(&browser, path, "en").await), plain(&page(&browser, path, "zh").await));
        assert!(en.to_lowercase().contains("protocol version") && en.contains(&version), "{en}");
        assert!(zh.contains("协议版本") && !zh.contains("时代"), "{zh}");
        for word in [" era", "legacy", "modern"] {
            assert!(!en.contains(word), "{word}: {en}");
        }
    }
    let tool = plain(&page(&browser, "tools/read_sheet", "en").await);
    assert!(tool.contains("one source") && !tool.contains("first ·"), "{tool}");
}

/// The log is written in English. Its page in Chinese is in Chinese.
#[tokio::test]
async fn audit_page_is_translated() {
    let mut cli = hub("[audit]\nenabled = true\n");
    cli.server("s", &sheets());
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    browser.post("servers/s:restart", &json!({})).send().await.unwrap();
    browser.post("tools/read_sheet:call", &json!({"arguments": {}})).send().await.unwrap();
    let audit = browser.api("audit").await.to_string();
    assert!(audit.contains("restarted") && audit.contains("succeeded"), "{audit}");
    let zh = plain(&page(&browser, "audit", "zh").await);
    for word in ["服务器变更", "修改：重启", "成功", "登录"] {
        assert!(zh.contains(word), "{word}: {zh}");
    }
    for word in ["succeeded", "restarted", "accepted", "server_change", "held_call", "updated", "login"] {
        assert!(!zh.contains(word), "{word}: {zh}");
    }
    let en = plain(&page(&browser, "audit", "en").await);
    assert!(en.contains("change of a server") && !en.contains("server_change"), "{en}");
}

/// Rules and roles are explained on the page of access.
#[tokio::test]
async fn access_page_explains_rules_and_roles() {
    let rules = r#"
[[auth.rules]]
name = "reads"
effect = "allow"
roles = ["caller"]
tools = ["read_*", "list_*"]
[[auth.rules]]
name = "writes <b>"
effect = "ask"
principals = ["key:ann"]
[auth.rules.arguments]
required = ["path"]
"#;
    let mut cli = hub(rules);
    cli.server("s", &sheets());
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    let (en, zh) = (page(&browser, "access", "en").await, page(&browser, "access", "zh").await);
    let row =
        |page: &str, name: &str| page.split("<tr>").find(|row| row.contains(name)).map(plain_row).unwrap();
    let reads = row(&en, "<bdi>reads</bdi>");
    for part in ["allow", "roles: caller", "names: read_*, list_*"] {
        assert!(reads.contains(part), "{part}: {reads}");
    }
    let writes = row(&en, "writes &lt;b&gt;</bdi>");
    for part in ["ask first", "callers: key:ann", "arguments that fit the schema"] {
        assert!(writes.contains(part), "{part}: {writes}");
    }
    let reads = row(&zh, "<bdi>reads</bdi>");
    assert!(reads.contains("允许") && reads.contains("角色：caller"), "{reads}");
    for (page, expected) in [(&en, "decides calls that wait for approval"), (&zh, "处理待审批的调用")]
    {
        assert!(page.contains(expected), "{page}");
        for role in ["viewer", "caller", "approver", "operator", "auditor", "owner"] {
            assert!(page.contains(&format!("<code>{role}</code>")), "{role}");
        }
        assert!(
            page.contains("<option value=\"read_sheet\"></option>")
                && page.contains("<option value=\"local\">")
        );
    }
}

/// The text of a row without its markup.
fn plain_row(row: &str) -> String {
    let text = row.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    text.collect::<String>()
}

/// Texts of servers have their own direction.
#[tokio::test]
async fn texts_of_servers_have_their_direction() {
    let tool = json!({"name": "read", "title": "קריאה", "description": "קורא גיליון", "inputSchema": {"type": "object"}});
    let failing = Script::both().tool(tool).on("tools/call:read", json!([{"tool_error": "אין גיליון"}]));
    let serving = Serving::before(&failing, "");
    let browser = Browser::open(&serving).await;
    assert_eq!(browser.post("servers/s:test", &json!({})).send().await.unwrap().status(), 200);
    browser.post("tools/read:call", &json!({"arguments": {}})).send().await.unwrap();
    let tool = browser.page("tools/read").await;
    for text in ["קריאה", "קורא גיליון"] {
        assert!(tool.contains(&format!("dir=\"auto\">{text}</p>")), "{text}: {tool}");
    }
    let calls = browser.page("calls").await;
    let cell = calls.split("אין גיליון").next().unwrap();
    assert!(cell[cell.rfind("<div").unwrap()..].contains("dir=\"auto\""), "{calls}");
}
