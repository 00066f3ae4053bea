//! Attacks with other spellings of URIs: what a rule forbids, and the files of hidden skills, reach no client in any spelling
//! that a server could read as the same resource.

use std::fs;

use serde_json::{Value, json};
use toolhub_mcp_gateway::uri_methods;
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::{Journal, Script};

use crate::raw_client::{ERAS, Era, RawClient, Stream, is_stream};
use crate::serving::{Serving, hub};
use crate::team_access::{NewKey, new_key};

/// Spellings that a parser by the URL Standard, or a program that ignores parts, reads as `file:///secret/a`.
const SPELLINGS: [&str; 22] = [
    "file:///secret/a",
    "file:/secret/a",
    "file:secret/a",
    "file:///sec\tret/a",
    "file:///x/..\\secret/a",
    " file:///secret/a",
    "file:///secret/a ",
    "file:\\\\\\secret\\a",
    "file://LOCALHOST/secret/a",
    "file:///secret\\a",
    "file:///public/.\t./secret/a",
    "file:///public/.%2\te/secret/a",
    "file:///public/.%2e/secret/a",
    "file:///public/..%2fsecret/a",
    "file:///public/..%5Csecret/a",
    "fi\nle:///secret/a",
    "\u{1}file:///secret/a",
    "file://other/secret/a",
    "file:///secret/a?x",
    "file:////secret//a",
    "FILE:///Secret/a",
    "file:///%73ecret/a",
];

fn files(cli: &CommandLine) -> Script {
    let content = json!([{"reply": {"contents": [{"uri": "file:///secret/a", "text": "the secret"}]}}]);
    let resources =
        json!([{"uri": "file:///public/a", "name": "a"}, {"uri": "file:///secret/a", "name": "b"}]);
    let templates = json!([{"uriTemplate": "file:///{+path}", "name": "any"}]);
    Script::both()
        .plain_tool("t")
        .set(
            "capabilities",
            json!({"tools": {}, "resources": {"subscribe": true}, "completions": {},
            "extensions": {"io.modelcontextprotocol/skills": {}}}),
        )
        .on("skills/list", json!([{"reply": {"skills": []}}]))
        .on("resources/list", json!([{"reply": {"resources": resources}}]))
        .on("resources/templates/list", json!([{"reply": {"resourceTemplates": templates}}]))
        .on("resources/read", content.clone())
        .on("resources/directory/read", content)
        .on("resources/subscribe", json!([{"reply": {}}]))
        .on("completion/complete", json!([{"reply": {"completion": {"values": ["the secret"]}}}]))
        .journal(cli.folder().join("files.journal"))
}

const CALLER: NewKey = NewKey { name: "ann", options: &["--role", "caller"] };

/// A gateway before the server `files`, with a key.
fn start(settings: &str, script: impl Fn(&CommandLine) -> Script) -> (Serving, String) {
    let mut cli = hub("[native]\nenabled = false\n");
    let script = script(&cli);
    cli.server("files", &script);
    let key = new_key(&cli, &CALLER);
    let file = cli.folder().join("toolhub.toml");
    let before = fs::read_to_string(&file).unwrap();
    fs::write(file, format!("{before}\n{settings}")).unwrap();
    (Serving::start(cli), key)
}

/// The URIs that reached the server in requests of this method.
fn received(serving: &Serving, method: &str) -> Vec<String> {
    let journal = Journal::read(serving.folder().join("files.journal"));
    let uri = |message: &Value| {
        let params = &message["params"];
        params["uri"].as_str().or(params["ref"]["uri"].as_str()).unwrap_or_default().to_owned()
    };
    journal.messages().into_iter().filter(|message| message["method"] == method).map(uri).collect()
}

/// Everything that a client can do with a URI: all methods of its era that take one.
async fn use_uri(client: &RawClient, era: Era, uri: &str) -> Vec<(&'static str, String)> {
    let mut answers = Vec::new();
    for method in uri_methods(protocol_era(era)) {
        let uri = json!(uri);
        let params = match method {
            "completion/complete" => format!(
                r#""ref":{{"type":"ref/resource","uri":{uri}}},"argument":{{"name":"path","value":""}}"#
            ),
            "subscriptions/listen" => format!(r#""notifications":{{"resourceSubscriptions":[{uri}]}}"#),
            "resources/read"
            | "resources/directory/read"
            | "skills/get"
            | "resources/subscribe"
            | "resources/unsubscribe" => format!(r#""uri":{uri}"#),
            other => panic!("`{other}` takes a URI, and is not attacked here"),
        };
        let answer = match method {
            "subscriptions/listen" => {
                let response = client.request("\"listen\"", method, &params).send().await.unwrap();
                match response.status().as_u16() {
                    200 if is_stream(&response) => format!("{:?}", Stream::of(response).message().await),
                    _ => response.text().await.unwrap(),
                }
            }
            _ => format!("{:?}", client.ask("1", method, &params).await.last()),
        };
        answers.push((method, answer));
    }
    answers
}

fn protocol_era(era: Era) -> toolhub_mcp_wire::Era {
    match era {
        Era::Legacy => toolhub_mcp_wire::Era::Legacy,
        Era::Modern => toolhub_mcp_wire::Era::Modern,
    }
}

/// The methods of servers that take a URI.
const SERVER_METHODS: [&str; 6] = [
    "resources/read",
    "resources/directory/read",
    "completion/complete",
    "resources/subscribe",
    "resources/unsubscribe",
    "skills/get",
];

#[tokio::test]
async fn attack_other_spellings_of_a_forbidden_uri() {
    for rules in [
        "[[auth.rules]]\neffect = \"forbid\"\nkinds = [\"resource\"]\ntools = [\"file:///secret/*\"]\n\
         [[auth.rules]]\neffect = \"allow\"\n",
        "[[auth.rules]]\neffect = \"allow\"\nkinds = [\"resource\"]\ntools = [\"file:///public/*\"]\n",
    ] {
        let (serving, key) = start(rules, files);
        for era in ERAS {
            let client = RawClient::with_token(&serving.url(), era, Some(&key)).await;
            let listed = client.ask("1", "resources/list", "").await;
            assert!(!listed.result().contains("secret"), "{}", listed.result());
            assert!(listed.result().contains("file:///public/a"), "{}", listed.result());
            for uri in SPELLINGS {
                for (method, answer) in use_uri(&client, era, uri).await {
                    assert!(!answer.contains("the secret"), "{era:?} {method} {uri:?}: {answer}\n{rules}");
                }
            }
            // The control: what is allowed is read, also if a parser only changes its notation.
            for uri in
                ["file:///public/a", "file:///public/my file", "file:///public/日记", "file:///public/x%20y"]
            {
                let read = client.ask("1", "resources/read", &format!(r#""uri":{}"#, json!(uri))).await;
                assert!(read.result().contains("the secret"), "{uri}");
            }
        }
        for method in SERVER_METHODS {
            for uri in received(&serving, method) {
                assert!(uri.starts_with("file:///public/"), "{method} {uri:?} reached the server\n{rules}");
            }
        }
        assert_eq!(received(&serving, "resources/read").len(), 8);
    }
}

/// The control: without rules every spelling is forwarded as it is.
#[tokio::test]
async fn unrestricted_principals_send_any_spelling() {
    let (serving, key) = start("", files);
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    for uri in SPELLINGS {
        let read = client.ask("1", "resources/read", &format!(r#""uri":{}"#, json!(uri))).await;
        assert!(read.result().contains("the secret"), "{uri:?}");
    }
    assert_eq!(received(&serving, "resources/read"), SPELLINGS);
}

/// A rule may name a listed resource in a spelling that is not the canonical one.
#[tokio::test]
async fn attack_canonical_spelling_of_a_rule_in_another_one() {
    let rules = "[[auth.rules]]\neffect = \"forbid\"\nkinds = [\"resource\"]\ntools = [\"file:///c%3A/secret/a\"]\n\
        [[auth.rules]]\neffect = \"allow\"\n";
    let (serving, key) = start(rules, |cli| {
        let resources = json!([{"uri": "file:///c%3A/secret/a", "name": "a"}]);
        files(cli).on("resources/list", json!([{"reply": {"resources": resources}}]))
    });
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    for uri in
        ["file:///c%3A/secret/a", "file:///c:/secret/a", "file:///c%3a/secret/a", "file:///C%3A/secret/a"]
    {
        let read = client.ask("1", "resources/read", &format!(r#""uri":{}"#, json!(uri))).await;
        assert!(read.last().error.is_some(), "{uri}: {:?}", read.last());
    }
    assert_eq!(received(&serving, "resources/read"), [""; 0]);
}

/// A server with the skills `vault` and `report`, whose content differs from its listing, and a plain resource.
fn skills(cli: &CommandLine, scheme: &str) -> Script {
    let skill = |name: &str| {
        let uri = format!("{scheme}://{name}/SKILL.md");
        let resources = json!([{"uri": uri, "digest": format!("sha256:{}", "0".repeat(64)), "size": 10}]);
        json!({"uri": uri, "frontmatter": {"name": name, "description": name}, "resources": resources})
    };
    let resource = |uri: String| json!({"uri": uri, "name": uri});
    let resources: Vec<Value> = ["vault", "report"]
        .into_iter()
        .map(|name| resource(format!("{scheme}://{name}/SKILL.md")))
        .chain([resource("note://x/a".to_owned())])
        .collect();
    files(cli)
        .on("skills/list", json!([{"reply": {"skills": [skill("vault"), skill("report")]}}]))
        .on("resources/list", json!([{"reply": {"resources": resources}}]))
        .on("resources/templates/list", json!([{"reply": {"resourceTemplates": []}}]))
}

const FORBIDDEN_SKILL: &str = "[[auth.rules]]\neffect = \"allow\"\nkinds = [\"resource\", \"skill\"]\n\
    [[auth.rules]]\neffect = \"forbid\"\nkinds = [\"skill\"]\ntools = [\"vault*\"]\n";
const DENIED_SKILL: &str = "[profiles.default]\ndeny = [\"vault\"]\n";
const ONE_SKILL: &str = "[[auth.rules]]\neffect = \"allow\"\nkinds = [\"resource\"]\n\
    [[auth.rules]]\neffect = \"allow\"\nkinds = [\"skill\"]\ntools = [\"report\"]\n";

#[tokio::test]
async fn attack_files_of_hidden_skills_as_resources() {
    for scheme in ["skill", "docs"] {
        for settings in [FORBIDDEN_SKILL, DENIED_SKILL, ONE_SKILL] {
            let (serving, key) = start(settings, |cli| skills(cli, scheme));
            let context = format!("{scheme}\n{settings}");
            let client = RawClient::with_token(&serving.url(), Era::Legacy, Some(&key)).await;
            let upper = scheme.to_uppercase();
            // The first request after the start, before anything was listed.
            for uri in [
                format!("{scheme}://vault/SKILL.md"),
                format!("{upper}://vault/SKILL.md"),
                format!("{scheme}://va\tult/SKILL.md"),
                format!(" {scheme}://vault/SKILL.md"),
                format!("{scheme}://vault/./SKILL.md"),
                format!("{scheme}://vault/x/../SKILL.md"),
                format!("{scheme}://vault/%53KILL.md"),
                format!("{scheme}://vault/SKILL.md?x"),
                format!("{scheme}://vault/SKILL.md#x"),
                format!("{scheme}://VAULT/SKILL.md"),
                format!("{scheme}://user@vault/SKILL.md"),
                format!("{scheme}://vault:80/SKILL.md"),
                format!("{scheme}://vault"),
            ] {
                for (method, answer) in use_uri(&client, Era::Legacy, &uri).await {
                    assert!(!answer.contains("the secret"), "{method} {uri:?}: {answer}\n{context}");
                }
            }
            let listed = client.ask("1", "resources/list", "").await;
            assert!(!listed.result().contains("vault"), "{}\n{context}", listed.result());
            assert!(listed.result().contains("report"), "{}\n{context}", listed.result());
            // The controls: another resource is read, and a visible skill is checked in every spelling.
            let read = client.ask("1", "resources/read", r#""uri":"note://x/a""#).await;
            assert!(read.result().contains("the secret"), "{context}");
            for uri in [format!("{scheme}://report/SKILL.md"), format!("{upper}://report/SKILL.md")] {
                let read = client.ask("1", "resources/read", &format!(r#""uri":{}"#, json!(uri))).await;
                let error = format!("{:?}", read.last());
                assert!(!error.contains("the secret"), "{uri} is not what was listed: {error}\n{context}");
            }
            for method in SERVER_METHODS {
                for uri in received(&serving, method) {
                    let is_hidden = uri.to_lowercase().contains("vault");
                    assert!(!is_hidden, "{method} {uri:?} reached the server\n{context}");
                }
            }
        }
    }
}

/// A list of skills that cannot be fetched hides what could be a skill.
#[tokio::test]
async fn attack_hidden_skill_of_a_server_whose_list_fails() {
    let (serving, key) = start(FORBIDDEN_SKILL, |cli| {
        skills(cli, "docs").on("skills/list", json!([{"error": {"code": -32603, "message": "no"}}]))
    });
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    let read = client.ask("1", "resources/read", r#""uri":"docs://vault/SKILL.md""#).await;
    assert!(read.last().error.is_some(), "{:?}", read.last());
    assert_eq!(received(&serving, "resources/read"), [""; 0]);
}

/// A rule may name a listed resource in another spelling. A known subscription of another principal changes nothing.
#[tokio::test]
async fn attack_known_subscription_and_folder_in_another_spelling() {
    let rules = "[[auth.rules]]\neffect = \"forbid\"\nkinds = [\"resource\"]\ntools = [\"file:///c%3A/secret/a\", \
        \"file:///hidden/*\"]\nprincipals = [\"ann\"]\n[[auth.rules]]\neffect = \"allow\"\n";
    let mut cli = hub("[native]\nenabled = false\n");
    let folder = json!([
        {"uri": "file:///public/a", "name": "a"},
        {"uri": "file:///c%3A/secret/a", "name": "b"},
        {"uri": "file:///hidden/a", "name": "c"},
    ]);
    let script = files(&cli)
        .on(
            "resources/list",
            json!([{"reply": {"resources": [{"uri": "file:///c%3A/secret/a", "name": "a"}]}}]),
        )
        .on("resources/directory/read", json!([{"reply": {"resources": folder}}]));
    cli.server("files", &script);
    let keys = ["ann", "bob"].map(|name| new_key(&cli, &NewKey { name, options: &["--role", "caller"] }));
    let file = cli.folder().join("toolhub.toml");
    let before = fs::read_to_string(&file).unwrap();
    fs::write(file, format!("{before}\n{rules}")).unwrap();
    let serving = Serving::start(cli);
    let [ann, bob] = &keys;
    let ann = RawClient::with_token(&serving.url(), Era::Legacy, Some(ann)).await;
    let bob = RawClient::with_token(&serving.url(), Era::Legacy, Some(bob)).await;
    let spellings =
        ["file:///c%3A/secret/a", "file:///c:/secret/a", "file:///c%3a/secret/a", "file:///C%3A/secret/a"];
    for uri in spellings {
        let params = format!(r#""uri":{}"#, json!(uri));
        bob.ask("1", "resources/subscribe", &params).await.result();
        for (method, answer) in use_uri(&ann, Era::Legacy, uri).await {
            let is_refused = answer.contains("code") || method == "resources/unsubscribe";
            assert!(is_refused, "{method} {uri}: {answer}");
        }
    }
    assert_eq!(received(&serving, "resources/directory/read"), [""; 0]);
    // A folder is the same with and without a final slash, and shows what its list would show.
    for uri in ["file:///hidden", "file:///hidden/"] {
        let read = ann.ask("1", "resources/directory/read", &format!(r#""uri":"{uri}""#)).await;
        assert!(read.last().error.is_some(), "{uri}: {:?}", read.last());
    }
    for (client, count) in [(&ann, 1), (&bob, 3)] {
        let read = client.ask("1", "resources/directory/read", r#""uri":"file:///""#).await;
        let read: Value = serde_json::from_str(read.result()).unwrap();
        let listed = read["resources"].as_array().unwrap();
        assert_eq!((listed.len(), &listed[0]["uri"]), (count, &json!("file:///public/a")), "{read}");
    }
}

/// A hidden skill hides neither one of another server with the same folder, nor one within its folder, nor one whose name begins
/// with its name.
#[tokio::test]
async fn visible_skills_stay_visible_beside_similar_hidden_ones() {
    let mut cli = hub("[native]\nenabled = false\n");
    for (id, folders) in [("first", &["vault", "vault/open", "vaults"][..]), ("second", &["vault"])] {
        let uri = |folder: &&str| format!("docs://{folder}/SKILL.md");
        let skill = |folder: &&str| {
            let name = folder.rsplit('/').next();
            json!({"uri": uri(folder), "frontmatter": {"name": name, "description": "d"}, "resources": "dynamic"})
        };
        let skills: Vec<Value> = folders.iter().map(skill).collect();
        let resource = |folder: &&str| json!({"uri": uri(folder), "name": format!("{id} {folder}")});
        let resources: Vec<Value> = folders.iter().map(resource).collect();
        let script = files(&cli)
            .on("skills/list", json!([{"reply": {"skills": skills}}]))
            .on("resources/list", json!([{"reply": {"resources": resources}}]))
            .on("resources/templates/list", json!([{"reply": {"resourceTemplates": []}}]))
            .journal(cli.folder().join(format!("{id}.journal")));
        cli.server(id, &script);
    }
    let key = new_key(&cli, &CALLER);
    let file = cli.folder().join("toolhub.toml");
    let before = fs::read_to_string(&file).unwrap();
    let rules = "[[auth.rules]]\neffect = \"allow\"\n[[auth.rules]]\neffect = \"forbid\"\nkinds = [\"skill\"]\n\
        servers = [\"first\"]\ntools = [\"vault\"]\n";
    fs::write(file, format!("{before}\n{rules}")).unwrap();
    let serving = Serving::start(cli);
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    let listed: Value = serde_json::from_str(client.ask("1", "resources/list", "").await.result()).unwrap();
    let mut names: Vec<&str> =
        listed["resources"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["first vault/open", "first vaults", "second vault"], "{listed}");
    let read = client.ask("1", "resources/read", r#""uri":"docs://vault/SKILL.md""#).await;
    // Only the server of the visible skill is asked; its file is not what it listed.
    assert!(format!("{:?}", read.last()).contains("`second`"), "{read:?}");
    let read_at = |id: &str| {
        let journal = Journal::read(serving.folder().join(format!("{id}.journal")));
        journal.count_method("resources/read")
    };
    assert_eq!((read_at("first"), read_at("second")), (0, 1));
}

/// A principal that rules restrict gets the same answer about an unknown resource as about a hidden one.
#[tokio::test]
async fn attack_telling_hidden_resources_from_unknown_ones() {
    let (serving, key) = start(FORBIDDEN_SKILL, |cli| {
        skills(cli, "docs").on(
            "resources/read",
            json!([{"error": {"code": -32002, "message": "the server has no such file"}}]),
        )
    });
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    let mut answers = Vec::new();
    for name in ["vault", "other"] {
        let read = client.ask("1", "resources/read", &format!(r#""uri":"docs://{name}/SKILL.md""#)).await;
        answers.push(format!("{:?}", read.last().error).replace(name, "NAME"));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(received(&serving, "resources/read"), ["docs://other/SKILL.md"]);
}

/// URIs below `doc://ok/` that a server reads as `hid/1` if it appends them to the path of a folder.
const DOT_DOT: [&str; 11] = [
    "doc://ok/../hid/1",
    "doc://ok/x/../../hid/1",
    "doc://ok/%2e%2e/hid/1",
    "doc://ok/%2E./hid/1",
    "doc://ok/.%2e%2fhid/1",
    "doc://ok/%252e%252e/hid/1",
    "doc://ok/%252e%252e%252fhid/1",
    "doc://ok/..\\hid\\1",
    "doc://ok/..%5chid/1",
    "doc://ok/..;x/hid/1",
    "doc://ok/%ff/../../hid/1",
];

fn documents(cli: &CommandLine) -> Script {
    let resources =
        json!([{"uri": "doc://ok/1", "name": "1"}, {"uri": "doc://ok/../hid/1", "name": "climbing"}]);
    let templates = json!([{"uriTemplate": "doc://ok/{+path}", "name": "any"}]);
    files(cli)
        .on("resources/list", json!([{"reply": {"resources": resources}}]))
        .on("resources/templates/list", json!([{"reply": {"resourceTemplates": templates}}]))
}

/// A request to complete the variable of the template of `documents`.
fn completion(value: &str, earlier: &str) -> String {
    format!(
        r#""ref":{{"type":"ref/resource","uri":"doc://ok/{{+path}}"}},"argument":{{"name":"path","value":{}}},"context":{{"arguments":{{"folder":{}}}}}"#,
        json!(value),
        json!(earlier)
    )
}

#[tokio::test]
async fn attack_dot_dot_segments_leave_an_allowed_folder() {
    let rules = "[[auth.rules]]\neffect = \"allow\"\nkinds = [\"resource\"]\ntools = [\"doc://ok/*\"]\n";
    let (serving, key) = start(rules, documents);
    for era in ERAS {
        let client = RawClient::with_token(&serving.url(), era, Some(&key)).await;
        let listed = client.ask("1", "resources/list", "").await;
        assert!(listed.result().contains("doc://ok/1"), "{}", listed.result());
        assert!(!listed.result().contains("climbing"), "{}", listed.result());
        let read =
            async |uri: &str| client.ask("1", "resources/read", &format!(r#""uri":{}"#, json!(uri))).await;
        // No rule allows it, and no server has it.
        let unknown = read("doc://other/1").await.last().error.clone().unwrap();
        for uri in DOT_DOT {
            for (method, answer) in use_uri(&client, era, uri).await {
                assert!(!answer.contains("the secret"), "{era:?} {method} {uri:?}: {answer}");
            }
            let error = read(uri).await.last().error.clone().unwrap();
            assert_eq!(error["code"], unknown["code"], "{era:?} {uri:?}: {error}");
            assert_eq!(error["message"], format!("Resource not found: {uri}"), "{era:?} {uri:?}: {error}");
        }
        for (value, earlier) in
            [("../hid/", ""), ("x/../../hid", ""), ("%2e%2e/hid", ""), ("..", ""), ("a", "../hid")]
        {
            let completed = client.ask("1", "completion/complete", &completion(value, earlier)).await;
            assert!(completed.last().error.is_some(), "{era:?} {value:?}: {:?}", completed.last());
        }
        // The controls: dots that are no segment.
        for uri in ["doc://ok/1", "doc://ok/a..b", "doc://ok/.../x", "doc://ok/..a/x"] {
            assert!(read(uri).await.result().contains("the secret"), "{era:?} {uri}");
        }
        let completed = client.ask("1", "completion/complete", &completion("a..", "b")).await;
        assert!(completed.result().contains("the secret"), "{era:?}");
    }
    for method in SERVER_METHODS {
        for uri in received(&serving, method) {
            assert!(!uri.contains("hid"), "{method} {uri:?} reached the server");
        }
    }
    // The control: a principal that nothing restricts sends any URI.
    let (serving, key) = start("", documents);
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    for uri in DOT_DOT {
        let read = client.ask("1", "resources/read", &format!(r#""uri":{}"#, json!(uri))).await;
        assert!(read.result().contains("the secret"), "{uri:?}: {:?}", read.last());
    }
    let completed = client.ask("1", "completion/complete", &completion("../hid/", "")).await;
    assert!(completed.result().contains("the secret"));
    assert_eq!(received(&serving, "resources/read"), DOT_DOT);
}
