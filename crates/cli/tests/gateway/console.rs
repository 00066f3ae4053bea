//! The console and the JSON API: sessions, permissions, and what must never happen through them.

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
const EVENT_TIMEOUT: Duration = Duration::from_secs(20);

/// A browser with a session.
struct Browser {
    client: Client,
    root: String,
    cookie: String,
    csrf: String,
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
fn link(serving: &Serving) -> String {
    let ran = serving.cli().run(&["console", "--no-browser", "--json"]);
    ran.json()["url"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

impl Browser {
    async fn open(serving: &Serving) -> Self {
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

    fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.root)).header("cookie", &self.cookie)
    }

    async fn page(&self, path: &str) -> String {
        let response = self.get(&format!("/console/{path}")).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.text().await.unwrap()
    }

    /// A request that changes something, as a page of the console sends it.
    fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.client
            .post(format!("{}/api/v1/{path}", self.root))
            .header("cookie", &self.cookie)
            .header("origin", &self.root)
            .header("x-csrf-token", &self.csrf)
            .body(body.to_string())
    }

    async fn api(&self, path: &str) -> Value {
        let response = self.get(&format!("/api/v1/{path}")).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.json().await.unwrap()
    }
}

/// A request with a key.
fn with_key(serving: &Serving, key: &str, method: Method, path: &str) -> RequestBuilder {
    http().request(method, format!("{}/api/v1/{path}", serving.root)).bearer_auth(key)
}

fn sheets() -> Script {
    Script::both().plain_tool("read_sheet").plain_tool("write_sheet").plain_tool("delete_sheet")
}

const ROLES: [&str; 6] = ["viewer", "caller", "approver", "operator", "auditor", "owner"];

fn key_of(role: &'static str) -> NewKey {
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
fn hub_with_roles(settings: &str, script: &Script) -> (Serving, BTreeMap<&'static str, String>) {
    let mut cli = hub(settings);
    cli.server("s", script);
    let keys = ROLES.map(|role| (role, new_key(&cli, &key_of(role))));
    (Serving::start(cli), keys.into_iter().collect())
}

/// The roles that may use each route, written down apart from the route table.
fn roles_of(method: &str, path: &str) -> &'static [&'static str] {
    match (method, path) {
        ("get", "openapi.json" | "me") | ("post", "session:end") => &ROLES,
        ("get", "health" | "stats" | "servers" | "servers/{id}") => {
            &["viewer", "operator", "auditor", "owner"]
        }
        ("get", "servers/{id}/log")
        | ("post", "servers" | "servers/{id}:test" | "servers/{id}:restart")
        | ("patch" | "delete", "servers/{id}") => &["operator", "owner"],
        ("get", "events" | "profiles" | "tools" | "tools/{name}" | "calls" | "calls/{id}" | "waiting")
        | ("post", "tools/{name}:check" | "search" | "explain") => &ROLES,
        ("post", "tools/{name}:call") => &["caller", "owner"],
        ("post", "tools/{name}:approve" | "waiting/{id}:approve" | "waiting/{id}:deny") => {
            &["approver", "owner"]
        }
        ("get", "skills") => &["operator", "auditor", "owner"],
        ("get", "keys" | "rules") | ("post", "access:simulate") => &["auditor", "owner"],
        ("post", "keys" | "keys/{name}:rotate") | ("delete", "keys/{name}") => &["owner"],
        // Only the local user may use the agent, which acts as the local user.
        ("post", "ask" | "ask/{id}:confirm") => &[],
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
    assert!(checked >= 39 * ROLES.len(), "{checked}");
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

/// A page of another site can send requests with the cookie, and can change nothing.
#[tokio::test]
async fn attack_write_from_another_site() {
    let mut cli = hub("");
    let journal = cli.folder().join("journal");
    cli.server("s", &sheets().journal(&journal));
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    let call = |headers: &[(&str, &str)]| {
        let request = browser
            .client
            .post(format!("{}/api/v1/tools/delete_sheet:call", browser.root))
            .header("cookie", &browser.cookie)
            .body(r#"{"arguments":{}}"#);
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    };
    let (origin, csrf) = (browser.root.as_str(), browser.csrf.as_str());
    let port = origin.rsplit(':').next().unwrap();
    for headers in [
        &[][..],
        &[("origin", origin)],
        &[("x-csrf-token", csrf)],
        &[("origin", "https://evil.example"), ("x-csrf-token", csrf)],
        &[("origin", "null"), ("x-csrf-token", csrf)],
        &[("origin", &format!("http://localhost:{port}")), ("x-csrf-token", csrf)],
        &[("origin", "http://127.0.0.1:1"), ("x-csrf-token", csrf)],
        &[("origin", origin), ("x-csrf-token", "0")],
        &[("origin", origin), ("x-csrf-token", csrf), ("sec-fetch-site", "cross-site")],
        &[("origin", origin), ("x-csrf-token", csrf), ("host", "evil.example")],
    ] {
        assert_eq!(call(headers).send().await.unwrap().status(), 403, "{headers:?}");
    }
    // A link cannot change anything either.
    let read = browser.get("/api/v1/tools/delete_sheet:call").send().await.unwrap();
    assert_eq!(read.status(), 405);
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 0);
    let done = call(&[("origin", origin), ("x-csrf-token", csrf)]).send().await.unwrap();
    assert_eq!(done.json::<Value>().await.unwrap()["success"], true);
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 1);
}

/// A site whose name was rebound to this machine is refused, whatever it asks for.
#[tokio::test]
async fn attack_rebound_host() {
    let serving = Serving::before(&sheets(), "");
    let browser = Browser::open(&serving).await;
    for path in ["/console/", "/console/assets/console.js", "/api/v1/me", "/console/open/0"] {
        let refused = browser.get(path).header("host", "evil.example").send().await.unwrap();
        assert_eq!(refused.status(), 403, "{path}");
        assert!(refused.headers().get("access-control-allow-origin").is_none());
    }
}

const RULES: &str = r#"
[[auth.rules]]
name = "callers read"
effect = "allow"
roles = ["caller"]
tools = ["read_*"]
[[auth.rules]]
name = "owners"
effect = "allow"
roles = ["owner", "approver", "operator"]
"#;

/// What a rule hides is on no surface of the API, and a hidden tool answers like one that does not exist.
#[tokio::test]
async fn hidden_tools_are_on_no_surface_of_the_api() {
    let (serving, keys) = hub_with_roles(RULES, &sheets());
    let key = &keys["caller"];
    let read = |method: Method, path: &str, body: Value| {
        let request = with_key(&serving, key, method, path).body(body.to_string());
        async move {
            let response = request.send().await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        }
    };
    for (method, path, body) in [
        (Method::GET, "tools", json!({})),
        (Method::GET, "tools?source=s", json!({})),
        (Method::POST, "search", json!({"query": "delete a sheet"})),
        (Method::POST, "search", json!({"query": "write_sheet"})),
        (Method::GET, "calls", json!({})),
        (Method::GET, "waiting", json!({})),
        (Method::GET, "openapi.json", json!({})),
    ] {
        let (status, text) = read(method, path, body).await;
        assert_eq!(status, 200, "{path}: {text}");
        assert!(!text.contains("delete_sheet") && !text.contains("write_sheet"), "{path}: {text}");
    }
    let (_, tools) = read(Method::GET, "tools", json!({})).await;
    assert!(tools.contains("read_sheet"), "{tools}");
    for (method, path, body) in [
        (Method::GET, "tools/NAME", json!({})),
        (Method::POST, "tools/NAME:check", json!({"arguments": {}})),
        (Method::POST, "tools/NAME:call", json!({"arguments": {}})),
        (Method::POST, "explain", json!({"tool": "NAME"})),
    ] {
        let ask = |name: &str| {
            let body = body.to_string().replace("NAME", name);
            read(method.clone(), &path.replace("NAME", name), serde_json::from_str(&body).unwrap())
        };
        let (hidden, unknown) = (ask("delete_sheet").await, ask("absent_sheet").await);
        assert_eq!(hidden.0, 404, "{path}: {hidden:?}");
        assert_eq!(hidden.1.replace("delete_sheet", "absent_sheet"), unknown.1, "{path}");
    }
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

/// Requests with one idempotency key run once, also at the same moment; another principal with the same key is another request.
#[tokio::test]
async fn repeated_requests_run_once() {
    let mut cli = hub("");
    let journal = cli.folder().join("journal");
    cli.server("s", &sheets().journal(&journal));
    let [ann, bob] = ["ann", "bob"].map(|name| {
        let made = cli.run(&["keys", "new", name, "--role", "caller", "--json"]);
        made.json()["key"].as_str().unwrap().to_owned()
    });
    let serving = Serving::start(cli);
    let call = |key: &str, arguments: Value| {
        with_key(&serving, key, Method::POST, "tools/write_sheet:call")
            .header("idempotency-key", "one")
            .body(json!({"arguments": arguments}).to_string())
            .send()
    };
    let all = futures_util::future::join_all((0..8).map(|_| call(&ann, json!({"n": 1})))).await;
    let statuses: Vec<u16> = all.into_iter().map(|response| response.unwrap().status().as_u16()).collect();
    assert!(
        statuses.contains(&200) && statuses.iter().all(|status| [200, 409].contains(status)),
        "{statuses:?}"
    );
    assert_eq!(call(&ann, json!({"n": 1})).await.unwrap().status(), 200);
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 1);
    assert_eq!(call(&ann, json!({"n": 2})).await.unwrap().status(), 409);
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 1);
    assert_eq!(call(&bob, json!({"n": 2})).await.unwrap().status(), 200);
    assert_eq!(Journal::read(&journal).count_method("tools/call"), 2);
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
    let waiting = browser.api("waiting").await;
    let id = waiting["items"][0]["id"].as_str().unwrap_or_else(|| panic!("{waiting} {held}")).to_owned();
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

/// Everything that a server wrote is text in the pages.
#[tokio::test]
async fn hostile_text_is_escaped() {
    let payload = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>";
    let tool = json!({
        "name": "odd", "title": payload, "description": payload,
        "inputSchema": {"type": "object", "properties": {payload: {"type": "string", "description": payload}}},
    });
    let svg = json!({"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zz4="});
    let content = json!([{"type": "text", "text": payload}, svg, {"type": payload}]);
    let script = Script::both()
        .tool(tool)
        .on("tools/call", json!([{"reply": {"content": content, "structuredContent": {payload: payload}}}]));
    let serving = Serving::before(&script, "[audit]\nenabled = true\n");
    let browser = Browser::open(&serving).await;
    let called =
        browser.post("tools/odd:call", &json!({"arguments": {payload: payload}})).send().await.unwrap();
    assert_eq!(called.status(), 200, "{}", called.text().await.unwrap());
    let mut calls = Vec::new();
    for _ in 0..100 {
        calls = browser.api("calls").await["items"].as_array().unwrap().clone();
        if !calls.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let call = format!("calls/{}", calls[0]["id"].as_str().unwrap());
    let query = "tools?q=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&source=%22%3E%3Cscript%3E";
    let filter = "calls?text=%22%3E%3Cscript%3Ealert(2)%3C%2Fscript%3E&principal=%3Cimg%20src%3Dx";
    for path in [
        "",
        "tools",
        "tools/odd",
        query,
        "servers",
        "servers/s",
        "calls",
        &call,
        filter,
        "waiting",
        "clients",
        "audit",
    ] {
        let page = browser.page(path).await;
        for raw in ["<img src=x", "<script>alert", "onerror=alert(1)>\"", "image/svg+xml;base64"] {
            assert!(!page.contains(raw), "{path}: {raw}\n{page}");
        }
        let policy = browser.get(&format!("/console/{path}")).send().await.unwrap();
        let policy = policy.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"),
            "{policy}"
        );
    }
    assert!(browser.page("tools/odd").await.contains("&lt;img src=x onerror=alert(1)&gt;"));
}

/// Reads a stream until it contains a text.
async fn await_text(response: &mut Response, expected: &str) -> String {
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
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
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
    // The session of the owner goes on.
    assert_eq!(browser.api("me").await["id"], "local");
}

/// The simulator tells which recorded calls other rules would refuse, and changes nothing.
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

/// Cookies do not distinguish ports: a session of the hub's own host name is not accepted at addresses that other programs on
/// this machine share.
#[tokio::test]
async fn attack_session_at_a_shared_host() {
    let serving = Serving::before(&sheets(), "");
    let browser = Browser::open(&serving).await;
    assert!(browser.root.contains(".localhost:"), "{}", browser.root);
    let port = browser.root.rsplit(':').next().unwrap();
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")] {
        for path in ["/console/", "/api/v1/me"] {
            let request = http().get(format!("{}{path}", serving.root)).header("host", &host);
            let response = request.header("cookie", &browser.cookie).send().await.unwrap();
            assert_eq!(response.status(), 401, "{host}{path}");
        }
        // A link is used up at its own host only.
        let ticket = link(&serving).rsplit('/').next().unwrap().to_owned();
        let open = format!("{}/console/open/{ticket}", serving.root);
        let response = http().get(open).header("host", &host).send().await.unwrap();
        assert!(response.headers().get("set-cookie").is_none(), "{host}");
    }
    // The gateway does not know the name of the console.
    let gateway = browser.get("/mcp").send().await.unwrap();
    assert_eq!(gateway.status(), 403);
}

/// A stream ends when its key is revoked, or its session.
#[tokio::test]
async fn attack_stream_outlives_its_credential() {
    let (serving, keys) = hub_with_roles("", &sheets());
    let mut of_key = with_key(&serving, &keys["viewer"], Method::GET, "events").send().await.unwrap();
    let browser = Browser::open(&serving).await;
    let mut of_session = browser.get("/api/v1/events").send().await.unwrap();
    for stream in [&mut of_key, &mut of_session] {
        await_text(stream, "id: ").await;
    }
    assert_eq!(serving.cli().run(&["keys", "revoke", "viewer"]).code, Some(0));
    assert_eq!(browser.post("session:end", &json!({})).send().await.unwrap().status(), 200);
    for mut stream in [of_key, of_session] {
        let ending = async { while stream.chunk().await.ok().flatten().is_some() {} };
        assert!(tokio::time::timeout(EVENT_TIMEOUT, ending).await.is_ok(), "the stream goes on");
    }
}

/// The API counts against the budgets of the gateway.
#[tokio::test]
async fn attack_more_requests_than_the_budget_allows() {
    let (serving, keys) = hub_with_roles("[serve]\nper_second = 3\n", &sheets());
    let mut statuses = Vec::new();
    for _ in 0..20 {
        let response = with_key(&serving, &keys["caller"], Method::GET, "me").send().await.unwrap();
        statuses.push(response.status().as_u16());
    }
    assert!(statuses.contains(&200) && statuses.contains(&429), "{statuses:?}");
}

/// Viewers with limited rights learn nothing of hidden tools and servers by statistics, health or events.
#[tokio::test]
async fn attack_hidden_tools_in_statistics_and_health() {
    let rules = "[[auth.rules]]\nname = \"see\"\neffect = \"allow\"\nroles = [\"viewer\"]\ntools = [\"read_*\"]\n[[auth.rules]]\nname = \"all\"\neffect = \"allow\"\nroles = [\"owner\"]\n";
    let mut cli = hub(rules);
    cli.server("s", &sheets());
    cli.entry("secret", json!({"command": "/nonexistent/program"}));
    let [viewer, owner] = ["viewer", "owner"].map(|role| new_key(&cli, &key_of(role)));
    let serving = Serving::start(cli);
    let body = json!({"arguments": {}}).to_string();
    for tool in ["delete_sheet", "read_sheet"] {
        let path = format!("tools/{tool}:call");
        let made = with_key(&serving, &owner, Method::POST, &path).body(body.clone()).send().await.unwrap();
        assert_eq!(made.status(), 200);
    }
    let read = |key: String, path: &'static str| {
        let request = with_key(&serving, &key, Method::GET, path);
        async move { request.send().await.unwrap().text().await.unwrap() }
    };
    for _ in 0..100 {
        if read(owner.clone(), "stats").await.contains("read_sheet") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(read(owner.clone(), "stats").await.contains("delete_sheet"));
    for path in ["stats", "health", "servers", "tools", "profiles"] {
        let text = read(viewer.clone(), path).await;
        assert!(!text.contains("delete_sheet") && !text.contains("secret"), "{path}: {text}");
    }
    assert!(read(viewer, "stats").await.contains("read_sheet"));
}

/// An approver sees everything that it approves, and only calls of its profiles.
#[tokio::test]
async fn attack_approval_of_what_is_not_shown() {
    let rules = "[profiles.other]\n[[auth.rules]]\nname = \"ask\"\neffect = \"ask\"\ntools = [\"write_sheet\"]\n[[auth.rules]]\nname = \"all\"\neffect = \"allow\"\n";
    let mut cli = hub(rules);
    cli.server("s", &sheets());
    let caller = new_key(&cli, &key_of("caller"));
    let approver =
        new_key(&cli, &NewKey { name: "limited", options: &["--role", "approver", "--profile", "other"] });
    let serving = Serving::start(cli);
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    for padding in [json!("x".repeat(300_000)), serde_json::from_str(&deep).unwrap()] {
        let body = json!({"arguments": {"padding": padding, "z_real": "payload"}}).to_string();
        let path = "tools/write_sheet:call";
        with_key(&serving, &caller, Method::POST, path).body(body).send().await.unwrap();
    }
    let browser = Browser::open(&serving).await;
    let page = browser.page("waiting").await;
    let cards: Vec<&str> = page.split("<section").skip(1).collect();
    assert_eq!(cards.len(), 2, "{}", page.len());
    for card in cards {
        assert_eq!(card.contains(":approve"), card.contains("z_real"), "{}", &card[..1_000]);
    }
    // The other profile has no held calls.
    let listed = with_key(&serving, &approver, Method::GET, "waiting").send().await.unwrap();
    assert_eq!(listed.json::<Value>().await.unwrap()["items"], json!([]));
    let id = browser.api("waiting").await["items"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("waiting/{id}:approve");
    let refused = with_key(&serving, &approver, Method::POST, &path).send().await.unwrap();
    assert_eq!(refused.status(), 404);
}

/// Secrets of servers in `mcp.json` are in no response.
#[tokio::test]
async fn attack_secrets_of_servers() {
    let mut cli = hub("");
    let url = "http://user:secret1@127.0.0.1:9/secret2?key=secret3";
    cli.entry("web", json!({"url": url, "headers": {"X-Key": "secret4"}}));
    cli.entry(
        "program",
        json!({"command": "/nonexistent", "args": ["--key", "secret5"], "env": {"KEY": "secret6"}}),
    );
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    let preview = json!({"id": "new", "command": "true", "preview": true});
    let mut texts = vec![browser.post("servers", &preview).send().await.unwrap().text().await.unwrap()];
    assert!(texts[0].contains("new"), "{}", texts[0]);
    for id in ["web", "program"] {
        texts.push(browser.api(&format!("servers/{id}")).await.to_string());
        texts.push(browser.page(&format!("servers/{id}")).await);
        let tested = browser.post(&format!("servers/{id}:test"), &json!({})).send().await.unwrap();
        texts.push(tested.text().await.unwrap());
    }
    texts.push(browser.page("servers").await);
    for text in texts {
        assert!(!text.contains("secret"), "{text}");
    }
}
