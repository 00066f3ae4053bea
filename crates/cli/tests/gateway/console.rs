//! The console and the JSON API: sessions, permissions, and what people and programs do through them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script};
use url::Url;

use crate::raw_client::{Era, RawClient, http};
use crate::serving::{Serving, hub};
use crate::team_access::{NewKey, new_key};

/// How long an event may take.
pub(crate) const EVENT_TIMEOUT: Duration = Duration::from_secs(20);

/// A browser with a session.
pub(crate) struct Browser {
    pub(crate) client: Client,
    pub(crate) root: String,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

/// An HTTP client that follows no redirect, and resolves the host of a link as browsers do.
fn client(link: &str) -> Client {
    http();
    let url = Url::parse(link).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], url.port().unwrap()));
    let builder = Client::builder().no_proxy().redirect(Policy::none());
    builder.resolve(url.host_str().unwrap(), address).build().unwrap()
}

/// A one-time link into the console of a running hub.
pub(crate) fn link(serving: &Serving) -> String {
    let ran = serving.cli().run(&["console", "--no-browser", "--json"]);
    ran.json()["url"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

impl Browser {
    pub(crate) async fn open(serving: &Serving) -> Self {
        let link = link(serving);
        let client = client(&link);
        let opened = client.get(&link).send().await.unwrap();
        assert_eq!(opened.status(), StatusCode::SEE_OTHER);
        assert_eq!(opened.headers()["location"], "../");
        let cookie = opened.headers()["set-cookie"].to_str().unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let root = link.split("/console/").next().unwrap().to_owned();
        let mut browser = Self { client, root, cookie, csrf: String::new() };
        let page = browser.page("").await;
        let csrf = page.split("name=\"csrf-token\" content=\"").nth(1).unwrap();
        browser.csrf = csrf.split('"').next().unwrap().to_owned();
        browser
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.root)).header("cookie", &self.cookie)
    }

    pub(crate) async fn page(&self, path: &str) -> String {
        let response = self.get(&format!("/console/{path}")).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.text().await.unwrap()
    }

    /// A request that changes something, as a page of the console sends it.
    pub(crate) fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.client
            .post(format!("{}/api/v1/{path}", self.root))
            .header("cookie", &self.cookie)
            .header("origin", &self.root)
            .header("x-csrf-token", &self.csrf)
            .body(body.to_string())
    }

    pub(crate) async fn api(&self, path: &str) -> Value {
        let response = self.get(&format!("/api/v1/{path}")).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.json().await.unwrap()
    }
}

/// A request with a key.
pub(crate) fn with_key(serving: &Serving, key: &str, method: Method, path: &str) -> RequestBuilder {
    http().request(method, format!("{}/api/v1/{path}", serving.root)).bearer_auth(key)
}

pub(crate) fn sheets() -> Script {
    Script::both().plain_tool("read_sheet").plain_tool("write_sheet").plain_tool("delete_sheet")
}

const ROLES: [&str; 6] = ["viewer", "caller", "approver", "operator", "auditor", "owner"];

pub(crate) fn key_of(role: &'static str) -> NewKey {
    match role {
        "viewer" => NewKey { name: "viewer", options: &["--role", "viewer"] },
        "caller" => NewKey { name: "caller", options: &["--role", "caller"] },
        "approver" => NewKey { name: "approver", options: &["--role", "approver"] },
        "operator" => NewKey { name: "operator", options: &["--role", "operator"] },
        "auditor" => NewKey { name: "auditor", options: &["--role", "auditor"] },
        _ => NewKey { name: "owner", options: &["--role", "owner"] },
    }
}

/// A hub with the server `s` and a key for each role.
pub(crate) fn hub_with_roles(settings: &str, script: &Script) -> (Serving, BTreeMap<&'static str, String>) {
    let mut cli = hub(settings);
    cli.server("s", script);
    let keys = ROLES.map(|role| (role, new_key(&cli, &key_of(role))));
    (Serving::start(cli), keys.into_iter().collect())
}

/// The roles that may use each route, written down apart from the route table.
fn roles_of(method: &str, path: &str) -> &'static [&'static str] {
    match (method, path) {
        ("get", "openapi.json" | "me") | ("post", "session:end") => &ROLES,
        ("get", "health" | "stats" | "clients" | "servers" | "servers/{id}") => {
            &["viewer", "operator", "auditor", "owner"]
        }
        ("get", "servers/{id}/log" | "servers/{id}/entry")
        | ("put", "servers/{id}/entry")
        | ("post", "servers" | "servers/{id}:test" | "servers/{id}:restart")
        | ("patch" | "delete", "servers/{id}") => &["operator", "owner"],
        ("get", "events" | "profiles" | "tools" | "tools/{name}" | "calls" | "calls/{id}" | "waiting")
        | ("post", "tools/{name}:check" | "search" | "explain") => &ROLES,
        ("post", "tools/{name}:call" | "tools/{name}:run" | "questions/{id}:answer") => &["caller", "owner"],
        ("post", "tools/{name}:approve" | "waiting/{id}:approve" | "waiting/{id}:deny") => {
            &["approver", "owner"]
        }
        ("get", "skills" | "cluster") => &["operator", "auditor", "owner"],
        ("get", "keys" | "rules") | ("post", "access:simulate") => &["auditor", "owner"],
        ("post", "keys" | "keys/{name}:rotate" | "config:preview")
        | ("delete", "keys/{name}")
        | ("get" | "put", "config") => &["owner"],
        // Only the local user may use the agent, which acts as the local user.
        ("post", "ask" | "ask/{id}:confirm" | "plan") => &[],
        ("get", "audit" | "audit/export") | ("post", "audit:verify") => &["auditor"],
        other => panic!("{other:?} has no expected roles"),
    }
}

/// Every route of the document × every role, and no or a wrong credential.
#[tokio::test]
async fn every_route_requires_its_roles() {
    let (serving, keys) = hub_with_roles("", &sheets());
    let document: Value = with_key(&serving, &keys["viewer"], Method::GET, "openapi.json")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let mut checked = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/api/v1/").unwrap();
        let concrete = path.replace("{id}", "nothing").replace("{name}", "nothing");
        for method in operations.as_object().unwrap().keys() {
            let verb: Method = method.to_uppercase().parse().unwrap();
            let allowed = roles_of(method, path);
            for (role, key) in &keys {
                let response = with_key(&serving, key, verb.clone(), &concrete).send().await.unwrap();
                let status = response.status();
                let is_allowed = status != StatusCode::FORBIDDEN && status != StatusCode::UNAUTHORIZED;
                assert_eq!(is_allowed, allowed.contains(role), "{method} {path} by {role}: {status}");
                assert!(!status.is_server_error(), "{method} {path} by {role}: {status}");
                checked += 1;
            }
            for key in ["", "th_wrong", &keys["owner"][..keys["owner"].len() - 1]] {
                let response = with_key(&serving, key, verb.clone(), &concrete).send().await.unwrap();
                assert_eq!(response.status(), 401, "{method} {path}");
            }
            let anonymous =
                http().request(verb, format!("{}/api/v1/{concrete}", serving.root)).send().await.unwrap();
            assert_eq!(anonymous.status(), 401, "{method} {path}");
            assert_eq!(anonymous.headers()["content-type"], "application/problem+json");
        }
    }
    assert!(checked >= 47 * ROLES.len(), "{checked}");
}

#[tokio::test]
async fn one_time_link_opens_one_session_that_survives_a_restart() {
    let serving = Serving::before(&sheets(), "");
    let url = link(&serving);
    let browser = client(&url);
    // A probe does not use it up.
    assert_eq!(browser.head(&url).send().await.unwrap().status(), 403);
    assert_eq!(browser.get(&url).send().await.unwrap().status(), 303);
    let again = browser.get(&url).send().await.unwrap();
    assert_eq!(again.status(), 403);
    assert!(again.headers().get("set-cookie").is_none());
    assert!(again.text().await.unwrap().contains("toolhub console"));
    let browser = Browser::open(&serving).await;
    let serving = serving.restarted().await;
    assert!(browser.page("").await.contains("csrf-token"));
    // After the logout the cookie opens nothing.
    let ended = browser.post("session:end", &json!({})).send().await.unwrap();
    assert_eq!(ended.status(), 200);
    for path in ["/console/", "/console/tools", "/api/v1/me"] {
        assert_eq!(browser.get(path).send().await.unwrap().status(), 401, "{path}");
    }
    drop(serving);
}

/// Keys are for programs, sessions for browsers: neither opens what the other is for.
#[tokio::test]
async fn keys_open_no_page_and_sessions_open_no_gateway() {
    let (serving, keys) = hub_with_roles("", &sheets());
    for path in ["", "tools", "servers/s", "audit"] {
        let url = format!("{}/console/{path}", serving.root);
        let response = http().get(url).bearer_auth(&keys["owner"]).send().await.unwrap();
        assert_eq!(response.status(), 401, "{path}");
        assert!(!response.text().await.unwrap().contains("csrf-token"));
    }
    let browser = Browser::open(&serving).await;
    for path in ["/mcp", "/sse", "/metrics"] {
        assert_eq!(browser.get(path).send().await.unwrap().status(), 403, "{path}");
        let at_gateway = http().get(format!("{}{path}", serving.root)).header("cookie", &browser.cookie);
        assert_eq!(at_gateway.send().await.unwrap().status(), 401, "{path}");
    }
    // A request has one identity: a wrong key beside a session is refused.
    let both = browser.get("/api/v1/me").bearer_auth("th_wrong").send().await.unwrap();
    assert_eq!(both.status(), 401);
}

/// A caller reads its own calls only; an auditor reads all of them.
#[tokio::test]
async fn calls_of_others_are_for_auditors() {
    let mut cli = hub("");
    cli.server("s", &sheets());
    let [ann, bob] = ["ann", "bob"].map(|name| {
        let made = cli.run(&["keys", "new", name, "--role", "caller", "--json"]);
        made.json()["key"].as_str().unwrap().to_owned()
    });
    let auditor = new_key(&cli, &key_of("auditor"));
    let serving = Serving::start(cli);
    let body = json!({"arguments": {"secret": "of ann"}}).to_string();
    let made =
        with_key(&serving, &ann, Method::POST, "tools/read_sheet:call").body(body).send().await.unwrap();
    assert_eq!(made.status(), 200);
    let list = |key: String, query: &'static str| {
        let request = with_key(&serving, &key, Method::GET, &format!("calls{query}"));
        async move {
            request.send().await.unwrap().json::<Value>().await.unwrap()["items"].as_array().unwrap().clone()
        }
    };
    let mut own = Vec::new();
    for _ in 0..100 {
        own = list(ann.clone(), "").await;
        if !own.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let id = own[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(list(bob.clone(), "").await.len(), 0);
    assert_eq!(list(bob.clone(), "?principal=key:ann").await.len(), 0);
    assert_eq!(list(auditor.clone(), "?principal=key:ann").await.len(), 1);
    for (key, expected) in [(&ann, 200), (&bob, 404), (&auditor, 200)] {
        let response = with_key(&serving, key, Method::GET, &format!("calls/{id}")).send().await.unwrap();
        assert_eq!(response.status(), expected);
        let text = response.text().await.unwrap();
        assert_eq!(text.contains("of ann"), expected == 200, "{text}");
    }
}

/// A held call of a program is approved in the browser, runs once, and the owner's decision is on record.
#[tokio::test]
async fn held_call_is_approved_in_the_browser() {
    let rules = "[[auth.rules]]\nname = \"ask\"\neffect = \"ask\"\ntools = [\"write_sheet\"]\n[[auth.rules]]\nname = \"all\"\neffect = \"allow\"\n";
    let mut cli = hub(rules);
    let journal = cli.folder().join("journal");
    cli.server("s", &sheets().journal(&journal));
    let key = new_key(&cli, &key_of("caller"));
    let serving = Serving::start(cli);
    let mut program = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    program.declare(json!({}));
    let call = r#""name":"write_sheet","arguments":{}"#;
    let held = program.request("1", "tools/call", call).send().await.unwrap().text().await.unwrap();
    assert!(!held.contains("\"isError\":false"), "{held}");
    let browser = Browser::open(&serving).await;
    let listed = browser.api("waiting").await;
    let id = listed["items"][0]["id"].as_str().unwrap_or_else(|| panic!("{listed} {held}")).to_owned();
    assert!(browser.page("waiting").await.contains(&id));
    // The program that made the call cannot decide about it.
    let own = with_key(&serving, &key, Method::POST, &format!("waiting/{id}:approve")).send().await.unwrap();
    assert_eq!(own.status(), 403);
    let approved = browser.post(&format!("waiting/{id}:approve"), &json!({})).send().await.unwrap();
    assert_eq!(approved.status(), 200, "{}", approved.text().await.unwrap());
    let again = browser.post(&format!("waiting/{id}:deny"), &json!({})).send().await.unwrap();
    assert_eq!(again.status(), 409);
    for _ in 0..2 {
        program.request("2", "tools/call", call).send().await.unwrap().text().await.unwrap();
    }
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 1);
    let audit = browser.api("audit?kind=held_call").await;
    assert!(audit.to_string().contains("approved"), "{audit}");
}

/// Reads a stream until it contains a text.
pub(crate) async fn await_text(response: &mut Response, expected: &str) -> String {
    let mut read = String::new();
    let reading = async {
        while !read.contains(expected) {
            let Some(chunk) = response.chunk().await.unwrap() else { panic!("the stream has ended: {read}") };
            read.push_str(&String::from_utf8_lossy(&chunk));
        }
    };
    let ended = tokio::time::timeout(EVENT_TIMEOUT, reading).await;
    assert!(ended.is_ok(), "`{expected}` does not come: {read}");
    read
}

/// Pages learn what changed, also after a reconnect; open streams do not delay the end of the hub.
#[tokio::test]
async fn events_name_what_changed() {
    let serving = Serving::before(&sheets(), "");
    let browser = Browser::open(&serving).await;
    let mut stream = browser.get("/api/v1/events").send().await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let first = await_text(&mut stream, "\n\n").await;
    let id = await_id(&mut stream, first).await;
    browser.post("tools/read_sheet:call", &json!({"arguments": {}})).send().await.unwrap();
    await_text(&mut stream, "\"calls\"").await;
    // A client that was away learns of it at once.
    let mut later = browser.get("/api/v1/events").header("last-event-id", id).send().await.unwrap();
    await_text(&mut later, "\"calls\"").await;
    let began = std::time::Instant::now();
    serving.stop();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

async fn await_id(stream: &mut Response, mut read: String) -> String {
    if !read.contains("id: ") {
        read.push_str(&await_text(stream, "id: ").await);
    }
    read.split("id: ").nth(1).unwrap().lines().next().unwrap().to_owned()
}

/// A restart ends the process of the server and starts another one.
#[tokio::test]
async fn server_is_restarted_from_the_console() {
    let mut cli = hub("[audit]\nenabled = true\n");
    let journal = cli.folder().join("journal");
    cli.server("s", &sheets().journal(&journal));
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    browser.post("tools/read_sheet:call", &json!({"arguments": {}})).send().await.unwrap();
    let starts = || {
        Journal::read(&journal).count_method("initialize")
            + Journal::read(&journal).count_method("server/discover")
    };
    let before = starts();
    let restarted = browser.post("servers/s:restart", &json!({})).send().await.unwrap();
    assert_eq!(restarted.status(), 200, "{}", restarted.text().await.unwrap());
    assert!(starts() > before);
    let state = browser.api("servers/s").await;
    assert_eq!(state["state"], "connected", "{state}");
    assert_eq!(browser.post("servers/other:restart", &json!({})).send().await.unwrap().status(), 404);
    let audit = browser.api("audit?kind=server_change").await;
    assert!(audit.to_string().contains("restarted"), "{audit}");
}

/// Bad input gets a problem document that says what to do.
#[tokio::test]
async fn bad_input_is_explained() {
    let serving = Serving::before(&sheets(), "");
    let browser = Browser::open(&serving).await;
    for (path, status) in [
        ("calls?limit=0", 400),
        ("calls?limit=x", 400),
        ("calls?status=gone", 400),
        ("calls?cursor=../x", 400),
        ("calls/nothing", 404),
        ("tools?profile=none", 404),
        ("audit", 409),
        ("nothing", 404),
        ("servers/%00", 404),
        ("tools/%ff", 404),
    ] {
        let response = browser.get(&format!("/api/v1/{path}")).send().await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        let problem: Value = response.json().await.unwrap();
        assert!(!problem["detail"].as_str().unwrap().is_empty(), "{problem}");
    }
    for (path, body, status) in [
        ("tools/read_sheet:call", json!([]), 400),
        ("tools/read_sheet:call", json!({"arguments": []}), 400),
        ("tools/read_sheet:call", json!({}), 400),
        ("tools/absent:call", json!({"arguments": {}}), 404),
        ("search", json!({"query": 1}), 400),
        ("waiting/../x:approve", json!({}), 404),
        ("waiting/zz:approve", json!({}), 404),
    ] {
        let response = browser.post(path, &body).send().await.unwrap();
        assert_eq!(response.status(), status, "{path} {body}");
    }
    let check = browser.post("tools/calculate:check", &json!({"arguments": {"expression": 1}}));
    let check: Value = check.send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (&check["valid"], &check["problems"][0]["path"]),
        (&json!(false), &json!("/expression")),
        "{check}"
    );
}

/// A server is added in the console, works at once, is disabled, enabled and removed. Nothing is written by a preview.
#[tokio::test]
async fn server_is_added_changed_and_removed() {
    let mut cli = hub("");
    cli.server("s", &sheets());
    let file = cli.folder().join("mcp.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let entry = serde_json::from_str::<Value>(&text).unwrap()["mcpServers"]["s"].clone();
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    let pasted = json!({"mcpServers": {"second": entry}}).to_string();
    let add = |preview: bool| browser.post("servers", &json!({"json": pasted, "preview": preview})).send();
    let preview: Value = add(true).await.unwrap().json().await.unwrap();
    assert_eq!(preview["written"], false);
    assert!(preview["added_lines"].to_string().contains("second"), "{preview}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    let added = add(false).await.unwrap();
    assert_eq!(added.status(), 200, "{}", added.text().await.unwrap());
    let tested = browser.post("servers/second:test", &json!({})).send().await.unwrap();
    assert_eq!(tested.status(), 200, "{}", tested.text().await.unwrap());
    assert_eq!(browser.api("servers/second").await["tools"], 3);
    // A name that exists is not replaced.
    assert_eq!(add(false).await.unwrap().status(), 409);
    let change = |method: Method, body: Value| {
        browser
            .client
            .request(method, format!("{}/api/v1/servers/second", browser.root))
            .header("cookie", &browser.cookie)
            .header("origin", &browser.root)
            .header("x-csrf-token", &browser.csrf)
            .body(body.to_string())
            .send()
    };
    for (enabled, state) in [(false, "disabled"), (true, "ready")] {
        let changed = change(Method::PATCH, json!({"enabled": enabled})).await.unwrap();
        let changed: Value = changed.json().await.unwrap();
        assert!(changed["state"] == state || (enabled && changed["state"] == "connected"), "{changed}");
    }
    assert_eq!(change(Method::DELETE, json!({})).await.unwrap().status(), 200);
    assert_eq!(browser.get("/api/v1/servers/second").send().await.unwrap().status(), 404);
    assert_eq!(change(Method::DELETE, json!({})).await.unwrap().status(), 404);
    let after: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(after, serde_json::from_str::<Value>(&text).unwrap());
}

/// A key is made in the console, works, is replaced and revoked; its secret is in no list.
#[tokio::test]
async fn key_is_made_rotated_and_revoked() {
    let serving = Serving::before(&sheets(), "");
    let browser = Browser::open(&serving).await;
    let make = |body: Value| browser.post("keys", &body).send();
    for wrong in [
        json!({"name": ""}),
        json!({"name": "ci", "roles": ["root"]}),
        json!({"name": "ci", "expires": "soon"}),
        json!({"name": "a\nb"}),
    ] {
        assert_eq!(make(wrong.clone()).await.unwrap().status(), 400, "{wrong}");
    }
    let made: Value = make(json!({"name": "ci", "roles": ["caller"]})).await.unwrap().json().await.unwrap();
    let key = made["key"].as_str().unwrap().to_owned();
    assert_eq!(make(json!({"name": "ci"})).await.unwrap().status(), 409);
    let accepted = |key: String| {
        let serving = &serving;
        async move { with_key(serving, &key, Method::GET, "me").send().await.unwrap().status() == 200 }
    };
    let await_state = |key: String, expected: bool| {
        let accepted = &accepted;
        async move {
            for _ in 0..100 {
                if accepted(key.clone()).await == expected {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            panic!("the key is not {expected}");
        }
    };
    await_state(key.clone(), true).await;
    let listed = browser.api("keys").await;
    assert_eq!(listed["items"][0]["name"], "ci");
    assert!(!listed.to_string().contains(&key) && !browser.page("access").await.contains(&key));
    let rotated: Value =
        browser.post("keys/ci:rotate", &json!({})).send().await.unwrap().json().await.unwrap();
    await_state(key, false).await;
    let key = rotated["key"].as_str().unwrap().to_owned();
    await_state(key.clone(), true).await;
    let revoke = || {
        browser
            .client
            .delete(format!("{}/api/v1/keys/ci", browser.root))
            .header("cookie", &browser.cookie)
            .header("origin", &browser.root)
            .header("x-csrf-token", &browser.csrf)
            .send()
    };
    assert_eq!(revoke().await.unwrap().status(), 200);
    await_state(key, false).await;
    assert_eq!(revoke().await.unwrap().status(), 404);
    // The name stays with its person.
    let refused = make(json!({"name": "ci"})).await.unwrap();
    assert_eq!(refused.status(), 409);
    let problem: Value = refused.json().await.unwrap();
    assert!(problem["detail"].as_str().unwrap().contains("`same_person`"), "{problem}");
    assert_eq!(browser.api("keys").await["items"], json!([]));
    let all = browser.api("keys?all=true").await;
    assert!(all["items"][0]["name"] == "ci" && all["items"][0]["revoked"].is_string(), "{all}");
    let again: Value = make(json!({"name": "ci", "same_person": true})).await.unwrap().json().await.unwrap();
    await_state(again["key"].as_str().unwrap().to_owned(), true).await;
    // The session of the owner goes on.
    assert_eq!(browser.api("me").await["id"], "local");
}

/// The simulator lists the recorded calls that other rules would refuse, and changes nothing.
#[tokio::test]
async fn simulator_checks_recorded_calls_against_other_rules() {
    let serving = Serving::before(&sheets(), "");
    let browser = Browser::open(&serving).await;
    for (tool, arguments) in [
        ("read_sheet", json!({})),
        ("write_sheet", json!({"path": "/data/a"})),
        ("write_sheet", json!({"path": "/etc/b"})),
    ] {
        let body = json!({"arguments": arguments});
        browser.post(&format!("tools/{tool}:call"), &body).send().await.unwrap();
    }
    for _ in 0..100 {
        if browser.api("calls").await["items"].as_array().unwrap().len() == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let simulate = |body: Value| {
        let request = browser.post("access:simulate", &body).send();
        async move { request.await.unwrap().json::<Value>().await.unwrap() }
    };
    // Rules concern the local user only if they name it.
    let outside = json!({"properties": {"path": {"pattern": "^/etc/"}}, "required": ["path"]});
    let rules = json!([
        {"name": "outside", "effect": "forbid", "principals": ["local"], "tools": ["write_*"], "arguments": outside},
        {"name": "never", "effect": "forbid", "principals": ["local"], "tools": ["delete_*"]},
        {"name": "others", "effect": "allow", "tools": ["read_*"]},
    ]);
    let result = simulate(json!({"rules": rules})).await;
    assert_eq!((&result["checked"], &result["refused"]), (&json!(3), &json!(1)), "{result}");
    assert_eq!(result["calls"][0]["tool"], "write_sheet");
    assert_eq!(simulate(json!({})).await["refused"], 0);
    let asked = simulate(json!({"rules": rules, "principal": "local", "tool": "delete_sheet"})).await;
    assert_eq!(asked["decisions"][0]["call"], "forbid", "{asked}");
    let wrong =
        browser.post("access:simulate", &json!({"rules": [{"effect": "maybe"}]})).send().await.unwrap();
    assert_eq!(wrong.status(), 400);
    assert_eq!(browser.api("rules").await["items"], json!([]));
}

/// The agent answers in the console, and changes nothing without a confirmation of the person.
#[tokio::test]
async fn agent_asks_before_it_changes_something() {
    let tool = json!({
        "name": "delete_note", "description": "Deletes a note by its name",
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "annotations": {"destructiveHint": true},
    });
    let mut cli = hub("");
    let journal = cli.folder().join("journal");
    cli.server("s", &Script::both().tool(tool).journal(&journal));
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    for (allow, calls) in [(false, 0), (true, 1)] {
        let request = json!({"request": "delete the note `groceries`"});
        let mut stream = browser.post("ask", &request).send().await.unwrap();
        let text = await_text(&mut stream, "\"name\":\"groceries\"}}\n\n").await;
        assert_eq!(Journal::read(&journal).count_method("tools/call"), 0, "{text}");
        let data = text.split("event: confirm\ndata: ").nth(1).unwrap().lines().next().unwrap();
        let confirm: Value = serde_json::from_str(data).unwrap();
        assert_eq!(confirm["tool"], "delete_note", "{confirm}");
        let path = format!("ask/{}:confirm", confirm["id"].as_str().unwrap());
        assert_eq!(browser.post(&path, &json!({"allow": allow})).send().await.unwrap().status(), 200);
        let rest = stream.text().await.unwrap();
        assert!(rest.contains("event: answer"), "{rest}");
        assert_eq!(Journal::read(&journal).count_method("tools/call"), calls, "{rest}");
        // It is answered once.
        assert_eq!(browser.post(&path, &json!({"allow": true})).send().await.unwrap().status(), 404);
    }
    let mut sum = browser.post("ask", &json!({"request": "计算 17*3"})).send().await.unwrap();
    let text = await_text(&mut sum, "event: answer").await;
    assert!(text.contains("event: start"), "{text}");
    let rest = sum.text().await.unwrap();
    assert!(format!("{text}{rest}").contains("51"), "{text}{rest}");
    // Another origin cannot use it, and an unknown confirmation is refused.
    let foreign = browser
        .client
        .post(format!("{}/api/v1/ask", browser.root))
        .header("cookie", &browser.cookie)
        .body(r#"{"request":"1+1"}"#);
    assert_eq!(foreign.send().await.unwrap().status(), 403);
    let unknown = browser.post("ask/0123:confirm", &json!({"allow": true})).send().await.unwrap();
    assert_eq!(unknown.status(), 404);
    assert_eq!(browser.post("ask", &json!({"request": " "})).send().await.unwrap().status(), 400);
}
