//! Refused uses of tools are in the audit log, once, whichever surface they are made through.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::access_rules::add_settings;
use crate::console::with_key;
use crate::raw_client::{ERAS, Era, RawClient};
use crate::serving::{Serving, hub};
use crate::team_access::{NewKey, new_key};

/// The owner may use everything but the tools `hidden_*`, and calls scripts at `/mcp/code`.
const RULES: &str = "[profiles.default]\nexpose = \"search\"\n[profiles.code]\nexpose = \"code\"\n\
    [[auth.rules]]\neffect = \"allow\"\n[[auth.rules]]\neffect = \"forbid\"\ntools = [\"hidden_*\"]\n";

/// A key with each role that a route for tools needs.
const OWNER: NewKey =
    NewKey { name: "olga", options: &["--role", "caller", "--role", "approver", "--role", "owner"] };
const VIEWER: NewKey = NewKey { name: "vera", options: &["--role", "viewer"] };

/// A route of the JSON API that names a tool.
#[derive(Clone, Copy)]
struct ToolRoute {
    method: &'static str,
    path: &'static str,
    /// The operation that its refusals record.
    operation: &'static str,
}

const ROUTES: [ToolRoute; 6] = [
    ToolRoute { method: "get", path: "tools/{name}", operation: "describe" },
    ToolRoute { method: "post", path: "tools/{name}:check", operation: "check" },
    ToolRoute { method: "post", path: "tools/{name}:call", operation: "call" },
    ToolRoute { method: "post", path: "tools/{name}:run", operation: "call" },
    ToolRoute { method: "post", path: "tools/{name}:approve", operation: "approve" },
    ToolRoute { method: "post", path: "explain", operation: "explain" },
];

impl ToolRoute {
    /// A request about a tool.
    fn request(self, serving: &Serving, key: &str, tool: &str) -> RequestBuilder {
        let body = match self.path {
            "explain" => json!({"tool": tool}),
            "tools/{name}:approve" => json!({"digest": "x"}),
            _ => json!({"arguments": {}}),
        };
        let path = self.path.replace("{name}", tool);
        match self.method {
            "get" => with_key(serving, key, Method::GET, &path),
            _ => with_key(serving, key, Method::POST, &path).body(body.to_string()),
        }
    }
}

/// Calls that name a tool at `/mcp`: the tool that is called and its arguments, with `NAME` for the hidden tool.
const CALLS: [(&str, &str, &str); 4] = [
    ("NAME", "{}", "call"),
    ("call_tool", r#"{"name":"NAME","arguments":{}}"#, "call"),
    ("call_tool", r#"{"name":"NAME","source":"s","arguments":{}}"#, "call"),
    ("describe_tool", r#"{"name":"NAME"}"#, "describe"),
];

/// A gateway with more hidden tools than there are surfaces: each surface names its own.
fn start() -> (Serving, String, String) {
    let mut cli = hub("");
    let script = (0..40).fold(Script::both().plain_tool("open"), |script, number| {
        script.plain_tool(&format!("hidden_{number}"))
    });
    cli.server("s", &script);
    let (owner, viewer) = (new_key(&cli, &OWNER), new_key(&cli, &VIEWER));
    add_settings(&cli, RULES);
    (Serving::start(cli), owner, viewer)
}

/// The refusals in the audit log of a stopped gateway, as `(object, state)`.
fn refusals(serving: Serving, by: &str) -> Vec<(String, String)> {
    let cli = serving.stop();
    let shown = cli.run(&["audit", "show", "--kind", "refusal", "--by", by, "-n", "200", "--json"]);
    let records = shown.json().as_array().unwrap_or_else(|| panic!("{shown:?}")).clone();
    let text = |record: &Value, key: &str| record[key].as_str().unwrap().to_owned();
    records.iter().map(|record| (text(record, "object"), text(record, "state"))).collect()
}

#[tokio::test]
async fn each_surface_records_the_use_of_a_hidden_tool_once() {
    let (serving, owner, _) = start();
    let mut expected = Vec::new();
    let mut next_hidden = |operation: &str| {
        let name = format!("hidden_{}", expected.len());
        expected.push((name.clone(), format!("{operation} refused")));
        name
    };
    for era in ERAS {
        let client = RawClient::with_token(&serving.url(), era, Some(&owner)).await;
        for (tool, arguments, operation) in CALLS {
            let name = next_hidden(operation);
            client.call(&tool.replace("NAME", &name), &arguments.replace("NAME", &name)).await;
        }
    }
    // A script that catches the errors, and one that does not.
    let coding = RawClient::with_token(&format!("{}/code", serving.url()), Era::Modern, Some(&owner)).await;
    let caught = [next_hidden("call"), next_hidden("call")];
    let code = format!(
        "for (const use of [() => tools.{}({{}}), () => tools.s.{}({{}}), () => tools.no_such_tool({{}})]) {{\n\
           try {{ await use() }} catch (e) {{}}\n\
         }}\nreturn 'caught'",
        caught[0], caught[1]
    );
    let answer = coding.call("run_script", &json!({"code": code}).to_string()).await;
    assert_eq!(answer.text(), "caught");
    let thrown = next_hidden("call");
    let code = format!("await tools.{thrown}({{}})");
    coding.call("run_script", &json!({"code": code}).to_string()).await;
    // A new route that names a tool fails here until it is in the table.
    let document = with_key(&serving, &owner, Method::GET, "openapi.json").send().await.unwrap();
    let document: Value = document.json().await.unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/api/v1/").unwrap();
        for method in methods.as_object().unwrap().keys() {
            if path.starts_with("tools/{name}") || path == "explain" {
                let is_listed = ROUTES.iter().any(|route| route.method == method && route.path == path);
                assert!(is_listed, "{method} {path} names a tool, and is not tested here");
            }
        }
    }
    for route in ROUTES {
        let path = route.path;
        let name = next_hidden(route.operation);
        let refused = route.request(&serving, &owner, &name).send().await.unwrap();
        assert_eq!(refused.status(), 404, "{path}");
        // The controls: a tool that does not exist, and one that the principal may use.
        let unknown = route.request(&serving, &owner, "no_such_tool").send().await.unwrap();
        assert_eq!(unknown.status(), 404, "{path}");
        let open = route.request(&serving, &owner, "open").send().await.unwrap();
        assert_ne!(open.status(), 404, "{path}");
    }
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&owner)).await;
    client.call("no_such_tool", "{}").await.error();
    client.call("open", "{}").await.result();
    let mut found = refusals(serving, "olga");
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn operations_that_roles_do_not_permit_are_recorded() {
    let (serving, _, viewer) = start();
    for path in ["tools/open:call", "keys"] {
        let refused = with_key(&serving, &viewer, Method::POST, path).body("{}").send().await.unwrap();
        assert_eq!(refused.status(), 403, "{path}");
    }
    // The control: what the role permits.
    assert_eq!(with_key(&serving, &viewer, Method::GET, "me").send().await.unwrap().status(), 200);
    let mut found = refusals(serving, "vera");
    found.sort();
    let expected = [("keys", "POST keys refused"), ("tools/open:call", "POST tools/{name}:call refused")]
        .map(|(object, state)| (object.to_owned(), state.to_owned()));
    assert_eq!(found, expected);
}
