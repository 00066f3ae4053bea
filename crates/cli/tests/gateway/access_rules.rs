//! Rules of `[[auth.rules]]`: what they forbid is on no surface of the gateway, and a forbidden item answers like one that
//! does not exist.

use std::fs;

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::{Journal, Script};

use crate::raw_client::{ERAS, Era, RawClient};
use crate::serving::{Serving, hub};

/// The servers; each has tools, a prompt and a resource whose names contain the server's id.
const SERVERS: [&str; 3] = ["red", "green", "blue"];
const VERBS: [&str; 4] = ["read", "write", "erase", "send"];

/// A word that occurs in every text about an item and nowhere else.
fn mark(server: &str, verb: &str) -> String {
    format!("{verb}{server}zone")
}

fn script(cli: &CommandLine, server: &str) -> Script {
    let tools = VERBS.map(|verb| {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}});
        json!({"name": mark(server, verb), "description": format!("Does {} to the archive", mark(server, verb)),
            "inputSchema": schema, "annotations": {"readOnlyHint": verb == "read"}})
    });
    let (prompt, resource) = (mark(server, "prompt"), format!("note://{}/a", mark(server, "note")));
    let script = tools.into_iter().fold(Script::both(), |script, tool| script.tool(tool));
    script
        .set(
            "capabilities",
            json!({"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}}),
        )
        .on("prompts/list", json!([{"reply": {"prompts": [{"name": prompt}]}}]))
        .on("prompts/get", json!([{"reply": {"messages": []}}]))
        .on("resources/list", json!([{"reply": {"resources": [{"uri": resource, "name": prompt}]}}]))
        .on("resources/templates/list", json!([{"reply": {"resourceTemplates": []}}]))
        .on("resources/read", json!([{"reply": {"contents": [{"uri": resource, "text": "content"}]}}]))
        .on("resources/subscribe", json!([{"reply": {}}]))
        .on("completion/complete", json!([{"reply": {"completion": {"values": []}}}]))
        .journal(cli.folder().join(format!("{server}.journal")))
}

/// Keys with these names; returns the secrets in the same order.
pub(crate) fn keys(cli: &CommandLine, names: &[String]) -> Vec<String> {
    let make = |name: &String| {
        let made = cli.run(&["keys", "new", name, "--json"]);
        made.json()["key"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
    };
    names.iter().map(make).collect()
}

pub(crate) fn add_settings(cli: &CommandLine, settings: &str) {
    let file = cli.folder().join("toolhub.toml");
    let before = fs::read_to_string(&file).unwrap_or_default();
    fs::write(file, format!("{before}\n{settings}")).unwrap();
}

/// A gateway before the three servers, with a key for each name and these settings.
fn start(settings: &str, names: &[String]) -> (Serving, Vec<String>) {
    let mut cli = hub("[native]\nenabled = false\n");
    for server in SERVERS {
        let script = script(&cli, server);
        cli.server(server, &script);
    }
    let keys = keys(&cli, names);
    add_settings(&cli, settings);
    (Serving::start(cli), keys)
}

fn called(serving: &Serving) -> Vec<String> {
    let mut all = Vec::new();
    for server in SERVERS {
        let journal = Journal::read(serving.folder().join(format!("{server}.journal")));
        let calls = journal.messages().into_iter().filter(|message| message["method"] == "tools/call");
        all.extend(calls.map(|message| message["params"]["name"].as_str().unwrap().to_owned()));
    }
    all
}

/// One random rule set per principal, as `(settings, items that it may see)`.
fn random_rules(name: &str, random: &mut fastrand::Rng) -> (String, Vec<String>) {
    let (mut settings, mut allowed) = (String::new(), Vec::new());
    let mut rule = |effect: &str, selector: &str| {
        settings.push_str(&format!(
            "[[auth.rules]]\neffect = \"{effect}\"\nprincipals = [\"key:{name}\"]\nkinds = [\"tool\"]\n{selector}\n"
        ));
    };
    let chosen: Vec<&str> = SERVERS.into_iter().filter(|_| random.bool()).collect();
    for server in &chosen {
        match random.u8(..3) {
            0 => rule("allow", &format!("servers = [\"{server}\"]")),
            1 => rule("allow", &format!("tools = [\"{server}__*\"]")),
            _ => rule("allow", &format!("tools = [\"*{server}zone\"]")),
        }
    }
    let banned = VERBS[random.usize(..VERBS.len())];
    rule("forbid", &format!("tools = [\"{banned}*zone\"]"));
    for server in chosen {
        allowed.extend(VERBS.into_iter().filter(|verb| *verb != banned).map(|verb| mark(server, verb)));
    }
    (settings, allowed)
}

/// Everything that a client can get about tools, as text.
async fn everything_about_tools(client: &RawClient) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let mut add = |what: &str, text: String| texts.push((what.to_owned(), text));
    add(
        "tools/list",
        client
            .ask("1", "tools/list", "")
            .await
            .last()
            .result
            .as_ref()
            .map_or(String::new(), |r| r.get().to_owned()),
    );
    for verb in VERBS {
        // A near miss of a name: the error may suggest similar ones.
        let near = format!("{verb}redzonee");
        add("suggestion", format!("{:?}", client.call(&near, "{}").await.last()).replace(&near, ""));
        let query = json!({"query": format!("{verb} to the archive"), "limit": 50}).to_string();
        add("search_tools", format!("{:?}", client.call("search_tools", &query).await.last()));
        let described = client.call("describe_tool", &json!({"name": near}).to_string()).await;
        add("describe_tool", format!("{:?}", described.last()).replace(&near, ""));
        for source in ["red", "grene", "native"] {
            let call = json!({"name": near, "source": source, "arguments": {}}).to_string();
            add(
                "call_tool",
                format!("{:?}", client.call("call_tool", &call).await.last()).replace(&near, ""),
            );
        }
    }
    add(
        "describe",
        format!("{:?}", client.ask("1", "tools/describe", r#""names":["nothing"]"#).await.last()),
    );
    texts
}

#[tokio::test]
async fn forbidden_tools_are_on_no_surface_for_random_rules() {
    let mut random = fastrand::Rng::with_seed(fastrand::u64(..));
    let names: Vec<String> = (0..16).map(|number| format!("p{number}")).collect();
    let generated: Vec<(String, Vec<String>)> =
        names.iter().map(|name| random_rules(name, &mut random)).collect();
    let settings: String = generated.iter().map(|(settings, _)| settings.as_str()).collect();
    let expose = if random.bool() { "search" } else { "all" };
    let settings = format!("[profiles.default]\nexpose = \"{expose}\"\n{settings}");
    let (serving, keys) = start(&settings.replace("enabled = false", ""), &names);
    let context = format!("seed {}\n{settings}", random.get_seed());
    let all: Vec<String> =
        SERVERS.into_iter().flat_map(|server| VERBS.map(|verb| mark(server, verb))).collect();
    for (index, (key, (_, allowed))) in keys.iter().zip(&generated).enumerate() {
        let era = ERAS[index % 2];
        let client = RawClient::with_token(&serving.url(), era, Some(key)).await;
        let texts = everything_about_tools(&client).await;
        for name in &all {
            let is_allowed = allowed.contains(name);
            let direct = client.call(name, "{}").await;
            assert_eq!(direct.last().error.is_none(), is_allowed, "{name} {direct:?}\n{context}");
            let error = direct.last().error.as_ref().map(ToString::to_string).unwrap_or_default();
            for other in all.iter().filter(|other| *other != name && !allowed.contains(*other)) {
                assert!(!error.contains(other.as_str()), "{other} in {error}\n{context}");
            }
            for (what, text) in &texts {
                assert!(is_allowed || !text.contains(name.as_str()), "{name} in {what}: {text}\n{context}");
            }
            if !is_allowed {
                // A forbidden tool and an unknown one answer alike, apart from similar names that are visible.
                let unknown = name.replace("zone", "zane");
                let other = client.call(&unknown, "{}").await;
                let text = |answer: &Value, name: &str| {
                    let message = answer["message"].as_str().unwrap().replace(name, "NAME");
                    let (message, _) = message.split_once("; did you mean").unwrap_or((&message, ""));
                    (answer["code"].clone(), message.to_owned(), answer.get("data").cloned())
                };
                let [forbidden, unknown] = [(&direct, name), (&other, &unknown)]
                    .map(|(answer, name)| text(answer.last().error.as_ref().unwrap(), name));
                assert_eq!(forbidden, unknown, "{context}");
            }
        }
        let listed = texts.iter().find(|(what, _)| what == "tools/list").unwrap();
        if expose == "all" {
            for name in allowed {
                assert!(listed.1.contains(name.as_str()), "{name} is missing: {}\n{context}", listed.1);
            }
        }
    }
    let called = called(&serving);
    for name in &all {
        let count = generated.iter().filter(|(_, allowed)| allowed.contains(name)).count();
        assert_eq!(called.iter().filter(|called| *called == name).count(), count, "{name}\n{context}");
    }
}

/// Prompts, resources, completions and subscriptions are decided by the same rules.
#[tokio::test]
async fn forbidden_prompts_and_resources_answer_like_unknown_ones() {
    let rules = "[[auth.rules]]\neffect = \"allow\"\nservers = [\"red\"]\n";
    let (serving, keys) = start(rules, &["ann".to_owned()]);
    for era in ERAS {
        let client = RawClient::with_token(&serving.url(), era, Some(&keys[0])).await;
        for list in
            ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "skills/list"]
        {
            let text = format!("{:?}", client.ask("1", list, "").await.last());
            assert!(!text.contains("green") && !text.contains("blue"), "{list}: {text}");
            assert!(
                text.contains("red") || list.contains("templates") || list.contains("skills"),
                "{list}: {text}"
            );
        }
        let ask = async |server: &str| {
            let mut answers = Vec::new();
            let (prompt, uri) = (mark(server, "prompt"), format!("note://{}/a", mark(server, "note")));
            let mut requests = vec![
                ("prompts/get", format!(r#""name":"{prompt}""#)),
                ("resources/read", format!(r#""uri":"{uri}""#)),
                (
                    "completion/complete",
                    format!(
                        r#""ref":{{"type":"ref/prompt","name":"{prompt}"}},"argument":{{"name":"a","value":""}}"#
                    ),
                ),
            ];
            if era == Era::Legacy {
                requests.push(("resources/subscribe", format!(r#""uri":"{uri}""#)));
            }
            for (method, params) in requests {
                let answer = client.ask("1", method, &params).await;
                let error = answer.last().error.as_ref().map(ToString::to_string);
                answers.push((method, error.map(|error| error.replace(server, "SERVER"))));
            }
            answers
        };
        let (allowed, forbidden, unknown) = (ask("red").await, ask("green").await, ask("grey").await);
        for (method, error) in &allowed {
            assert!(error.is_none(), "{method}: {error:?}");
        }
        assert_eq!(forbidden, unknown);
        // An unknown resource is requested from the server that is visible; the forbidden server receives no request, see below.
        let is_refused =
            |(method, error): &(&str, Option<String>)| error.is_some() || method.starts_with("resources/");
        assert!(forbidden.iter().all(is_refused), "{forbidden:?}");
    }
    for server in ["green", "blue"] {
        let journal = Journal::read(serving.folder().join(format!("{server}.journal")));
        for method in
            ["prompts/get", "resources/read", "resources/subscribe", "completion/complete", "tools/call"]
        {
            assert_eq!(journal.count_method(method), 0, "{server} {method}");
        }
    }
}

/// Rules about arguments are decided on the arguments that are sent: after coercion, with fixed arguments, whatever the
/// spelling of the request.
#[tokio::test]
async fn argument_rules_apply_to_what_is_sent() {
    let settings = r#"
[profiles.default]
coerce_arguments = true
[[auth.rules]]
effect = "allow"
tools = ["*redzone"]
arguments = { properties = { path = { pattern = "^/data/" } }, required = ["path"] }
"#;
    let (serving, keys) = start(settings, &["ann".to_owned()]);
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&keys[0])).await;
    let listed = client.ask("1", "tools/list", "").await;
    let listed: Value = serde_json::from_str(listed.result()).unwrap();
    let schema = listed["tools"][0]["inputSchema"].to_string();
    assert!(schema.contains("^/data/"), "the listed schema shows the limit: {schema}");
    let tool = mark("red", "write");
    for (arguments, allowed) in [
        (r#"{"path":"/data/a"}"#, true),
        (r#"{"\u0070ath":"/data/a"}"#, true),
        (r#"{"path":"/etc/passwd"}"#, false),
        (r#"{"path":["/etc/passwd"]}"#, false),
        (r#"{}"#, false),
        (r#"{"path":null}"#, false),
        (r#"{"Path":"/etc/passwd"}"#, false),
        (r#"{"path":" /data/a"}"#, false),
        (r#"{"path":"/data/a","path":"/etc/passwd"}"#, false),
        (r#"{"path":"/data/a","\u0070ath":"/etc/passwd"}"#, false),
    ] {
        for inside in [false, true] {
            let answer = match inside {
                false => client.call(&tool, arguments).await,
                true => {
                    client.call("call_tool", &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#)).await
                }
            };
            let last = answer.last();
            let failed = last.error.is_some() || answer.result().contains("\"isError\":true");
            if !inside {
                assert_eq!(!failed, allowed, "{arguments}: {last:?}");
            } else if !allowed {
                assert!(failed, "call_tool {arguments}: {last:?}");
            }
        }
    }
    let journal = Journal::read(serving.folder().join("red.journal"));
    let calls = journal.messages().into_iter().filter(|message| message["method"] == "tools/call");
    for call in calls {
        let path = call["params"]["arguments"]["path"].as_str().unwrap_or_default().to_owned();
        assert!(path.starts_with("/data/"), "{call}");
    }
}

/// A viewer sees and does not call; a key opens its profiles only; a budget ends the calls of the day, also after a restart.
#[tokio::test]
async fn roles_profiles_and_budgets_limit_a_key() {
    let (serving, _) = start("[profiles.office]\n", &["owner".to_owned()]);
    let cli = serving.kill();
    let make = |arguments: &[&str]| {
        let all = [&["keys", "new"], arguments, &["--json"]].concat();
        cli.run(&all).json()["key"].as_str().unwrap().to_owned()
    };
    let viewer = make(&["vic", "--role", "viewer"]);
    let office = make(&["olga", "--profile", "office"]);
    let bounded = make(&["bo", "--per-day", "2"]);
    let expired = make(&["eve", "--expires", "2020-01-01"]);
    let serving = Serving::start(cli);
    let tool = mark("red", "read");
    let vic = RawClient::with_token(&serving.url(), Era::Modern, Some(&viewer)).await;
    assert!(vic.tools().await.contains(&tool));
    let refused = vic.call(&tool, "{}").await;
    assert!(refused.result().contains("not allowed (reference "), "{}", refused.result());
    assert_eq!(called(&serving), [""; 0]);

    let olga = RawClient::with_token(&format!("{}/office", serving.url()), Era::Modern, Some(&office)).await;
    let answer = olga.call(&tool, "{}").await;
    assert!(!answer.result().contains("\"isError\":true"), "{}", answer.result());
    let elsewhere = RawClient::with_token(&serving.url(), Era::Modern, Some(&office)).await;
    let response = elsewhere.request("1", "tools/list", "").send().await.unwrap();
    assert_eq!(response.status(), 404);
    let text = response.text().await.unwrap();
    assert!(text.contains("`office`") && !text.contains("`default`"), "{text}");

    let eve = RawClient::with_token(&serving.url(), Era::Modern, Some(&expired)).await;
    assert_eq!(eve.request("1", "tools/list", "").send().await.unwrap().status(), 401);

    let spend = async |serving: &Serving| {
        let bo = RawClient::with_token(&serving.url(), Era::Modern, Some(&bounded)).await;
        bo.call(&tool, "{}").await.result().contains("per_day")
    };
    assert!(!spend(&serving).await && !spend(&serving).await);
    assert!(spend(&serving).await, "the third call of the day");
    let serving = serving.restarted().await;
    assert!(spend(&serving).await, "a restart does not reset the budget");
    let history = serving.cli().run(&["history", "--by", "bo", "--json"]).json();
    let history = history.as_array().unwrap();
    assert!(history.len() == 2 && history.iter().all(|call| call["principal"] == "key:bo"), "{history:?}");
}

/// Keys and rules of an edited configuration apply to a running gateway; removing the last key does not open it.
#[tokio::test]
async fn changed_keys_and_rules_apply_while_serving() {
    let (serving, keys) = start("", &["ann".to_owned()]);
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&keys[0])).await;
    let tool = mark("green", "read");
    assert!(client.tools().await.contains(&tool));
    add_settings(serving.cli(), "[[auth.rules]]\neffect = \"allow\"\nservers = [\"red\"]\n");
    let since = std::time::Instant::now();
    while client.tools().await.contains(&tool) {
        assert!(since.elapsed().as_secs() < 20, "the rule is not applied");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(client.call(&tool, "{}").await.error(), -32602);
    let revoked = serving.cli().run(&["keys", "revoke", "ann"]);
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    let since = std::time::Instant::now();
    loop {
        let status = client.request("1", "tools/list", "").send().await.unwrap().status();
        if status == 401 {
            break;
        }
        assert!(since.elapsed().as_secs() < 20, "{status}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let anonymous = RawClient::connect(&serving.url(), Era::Modern).await;
    assert_eq!(anonymous.request("1", "tools/list", "").send().await.unwrap().status(), 401);
}

/// Every method of the gateway, also one that is added later: a principal without permissions receives no data, and no server
/// receives its requests.
#[tokio::test]
async fn every_method_requires_permission() {
    let rules = "[[auth.rules]]\neffect = \"forbid\"\nprincipals = [\"key:eve\"]\n\
        [[auth.rules]]\neffect = \"allow\"\nprincipals = [\"key:ann\"]\n";
    let (serving, keys) = start(rules, &["eve".to_owned(), "ann".to_owned()]);
    let (prompt, tool) = (mark("red", "prompt"), mark("red", "read"));
    let uri = format!("note://{}/a", mark("red", "note"));
    let names = [tool.as_str(), prompt.as_str()];
    // The lists are requested by the owner of the other key first, so that later requests are those of the attacker.
    for era in ERAS {
        let ann = RawClient::with_token(&serving.url(), era, Some(&keys[1])).await;
        assert!(ann.tools().await.contains(&tool));
        for list in ["prompts/list", "resources/list", "resources/templates/list"] {
            ann.ask("1", list, "").await.result();
        }
        let calls_before = messages(&serving);
        let eve = RawClient::with_token(&serving.url(), era, Some(&keys[0])).await;
        let wire_era = match era {
            Era::Legacy => toolhub_mcp_wire::Era::Legacy,
            Era::Modern => toolhub_mcp_wire::Era::Modern,
        };
        let methods: Vec<&str> = toolhub_mcp_gateway::method_names(wire_era).collect();
        assert!(methods.len() > 15, "{methods:?}");
        for method in methods.into_iter().filter(|method| *method != "subscriptions/listen") {
            for name in names {
                let params = format!(
                    r#""name":"{name}","names":["{name}"],"uri":"{uri}","taskId":"{name}","arguments":{{}},"level":"info",
                    "ref":{{"type":"ref/prompt","name":"{name}"}},"argument":{{"name":"a","value":""}}"#
                );
                let answer = eve.ask("1", method, &params).await;
                let text = format!("{:?}", answer.last()).replace(name, "").replace(&uri, "");
                for server in SERVERS {
                    assert!(!text.contains(server), "{method} {name}: {text}");
                }
            }
        }
        assert_eq!(messages(&serving), calls_before, "{era:?}");
    }
}

/// The number of messages that reached the servers.
fn messages(serving: &Serving) -> usize {
    let journal = |server: &str| Journal::read(serving.folder().join(format!("{server}.journal")));
    SERVERS.iter().map(|server| journal(server).messages().len()).sum()
}

/// Names that others choose do not grant and do not evade: a server's tool that is named like one of another server, and the
/// name that a profile gives to a tool.
#[tokio::test]
async fn chosen_names_neither_grant_nor_evade() {
    let settings = "[profiles.default.overrides.pay]\nname = \"zahlen\"\n\
        [[auth.rules]]\neffect = \"allow\"\ntools = [\"good__read\", \"pay\"]\n\
        [[auth.rules]]\neffect = \"forbid\"\ntools = [\"zahlen\"]\n";
    let mut cli = hub("[native]\nenabled = false\n");
    cli.server("good", &Script::both().plain_tool("read").plain_tool("pay"));
    cli.server("evil", &Script::both().plain_tool("good__read"));
    let key = keys(&cli, &["ann".to_owned()]).remove(0);
    add_settings(&cli, settings);
    let serving = Serving::start(cli);
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    assert_eq!(client.tools().await, ["read"]);
    for hidden in ["zahlen", "pay", "evil__good__read"] {
        assert_eq!(client.call(hidden, "{}").await.error(), -32602, "{hidden}");
    }
}

/// `evil__x__b` is the tool `b` of `evil__x`, and looks like `x__b` of `evil`.
#[tokio::test]
async fn qualified_names_with_several_readings_grant_only_with_the_server() {
    for (servers, granted) in [("", "\"b\""), ("servers = [\"evil\"]\n", "\"x__b\"")] {
        let mut cli = hub("[native]\nenabled = false\n");
        let journal = |server: &str| cli.folder().join(format!("{server}.journal"));
        let (one, other) = (journal("evil"), journal("evil__x"));
        cli.server("evil", &Script::both().plain_tool("x__b").journal(&one));
        cli.server("evil__x", &Script::both().plain_tool("b").journal(&other));
        let key = keys(&cli, &["ann".to_owned()]).remove(0);
        add_settings(
            &cli,
            &format!("[[auth.rules]]\neffect = \"allow\"\ntools = [\"evil__x__b\"]\n{servers}"),
        );
        let serving = Serving::start(cli);
        let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
        let tools = client.tools().await;
        assert_eq!(tools.len(), 1, "{tools:?}");
        client.call(&tools[0], "{}").await;
        let journals = [one, other].map(|path| Journal::read(&path));
        let called: Vec<String> = journals
            .iter()
            .flat_map(Journal::messages)
            .filter(|message| message["method"] == "tools/call")
            .map(|message| message["params"]["name"].to_string())
            .collect();
        assert_eq!(called, [granted]);
    }
}

/// The confidence of a search does not depend on tools that are not visible, and a completion reaches only the checked item.
#[tokio::test]
async fn search_and_completion_reveal_nothing_hidden() {
    let rules =
        "[profiles.default]\nexpose = \"search\"\n[[auth.rules]]\neffect = \"allow\"\nservers = [\"red\"]\n";
    let mut cli = hub("");
    for server in SERVERS {
        let script = script(&cli, server);
        cli.server(server, &script);
    }
    let key = keys(&cli, &["ann".to_owned()]).remove(0);
    add_settings(&cli, rules);
    let serving = Serving::start(cli);
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    let confidence = async |query: &str| {
        let found = client.call("search_tools", &json!({"query": query}).to_string()).await;
        let found: Value = serde_json::from_str(found.result()).unwrap();
        found["structuredContent"]["confidence"].as_f64().unwrap_or_else(|| panic!("{found}"))
    };
    let hidden = confidence(&mark("green", "erase")).await;
    let nothing = confidence("qqqq zzzz").await;
    assert!((hidden - nothing).abs() < f64::EPSILON, "{hidden} {nothing}");
    assert!(confidence(&mark("red", "erase")).await > 0.0);
    let uri = format!("note://{}/a", mark("green", "note"));
    let reference = json!({"type": "ref/resource", "uri": uri, "name": mark("red", "prompt")});
    let params = format!(r#""ref":{reference},"argument":{{"name":"a","value":""}}"#);
    client.ask("1", "completion/complete", &params).await;
    for server in SERVERS {
        let journal = Journal::read(serving.folder().join(format!("{server}.journal")));
        let completions = journal.messages().into_iter().filter(|one| one["method"] == "completion/complete");
        for completion in completions {
            let reference = &completion["params"]["ref"];
            assert!(reference["uri"].is_null() || reference["name"].is_null(), "{completion}");
        }
    }
}

/// A rule or a revoked key that comes while a call waits for approval prevents the call.
#[tokio::test]
async fn approved_call_does_not_run_after_its_permission_is_gone() {
    for change in ["rule", "key"] {
        let rules = "[[auth.rules]]\neffect = \"ask\"\ntools = [\"*\"]\n";
        let (serving, keys) = start(rules, &["ann".to_owned(), "bob".to_owned()]);
        let client = RawClient::with_token(&serving.url(), Era::Legacy, Some(&keys[0])).await;
        let tool = mark("red", "write");
        let request = client.request("7", "tools/call", &format!(r#""name":"{tool}","arguments":{{}}"#));
        let stream = crate::raw_client::Stream::open(request).await;
        let held_calls = || serving.cli().run(&["waiting", "--json"]).json();
        let since = std::time::Instant::now();
        while held_calls().as_array().unwrap().is_empty() {
            assert!(since.elapsed().as_secs() < 20, "the call is not held");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let id = held_calls()[0]["id"].as_str().unwrap().to_owned();
        match change {
            "rule" => {
                add_settings(
                    serving.cli(),
                    &format!("[[auth.rules]]\neffect = \"forbid\"\ntools = [\"{tool}\"]\n"),
                );
            }
            _ => assert_eq!(serving.cli().run(&["keys", "revoke", "ann"]).code, Some(0)),
        }
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        serving.cli().run(&["waiting", "approve", &id]);
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        drop(stream);
        assert_eq!(called(&serving), [""; 0], "{change}");
    }
}

/// Stored results stay hidden from keys, also from one that is added or left over while the gateway runs.
#[tokio::test]
async fn stored_results_are_not_for_keys() {
    let mut cli =
        hub("[profiles.default]\ntools = [\"*\"]\nallow = [\"read_result\", \"get_conversation_history\"]\n");
    cli.server("s", &Script::both().plain_tool("echo"));
    let ann = keys(&cli, &["ann".to_owned()]).remove(0);
    let serving = Serving::start(cli);
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&ann)).await;
    let owner_tools = |tools: Vec<String>| {
        tools
            .into_iter()
            .filter(|tool| ["read_result", "get_conversation_history"].contains(&tool.as_str()))
            .count()
    };
    assert_eq!(owner_tools(client.tools().await), 0);
    let eve = keys(serving.cli(), &["eve".to_owned()]).remove(0);
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&eve)).await;
    let since = std::time::Instant::now();
    while client.request("1", "tools/list", "").send().await.unwrap().status() != 200 {
        assert!(since.elapsed().as_secs() < 20, "the new key is not accepted");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(owner_tools(client.tools().await), 0);
}
