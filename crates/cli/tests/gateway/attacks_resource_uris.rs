//! Attacks with other spellings of URIs: what a rule forbids, and the files of hidden skills, reach no client in any spelling
//! that a server could read as the same resource.

use std::fs;

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::{Journal, Script};

use crate::raw_client::{ERAS, Era, RawClient};
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

/// Everything that a client can do with a URI.
async fn use_uri(client: &RawClient, era: Era, uri: &str) -> Vec<(&'static str, String)> {
    let named = format!(r#""uri":{}"#, json!(uri));
    let completion = format!(
        r#""ref":{{"type":"ref/resource","uri":{}}},"argument":{{"name":"path","value":""}}"#,
        json!(uri)
    );
    let mut requests = vec![
        ("resources/read", named.clone()),
        ("resources/directory/read", named.clone()),
        ("completion/complete", completion),
    ];
    if era == Era::Legacy {
        requests.push(("resources/subscribe", named));
    }
    let mut answers = Vec::new();
    for (method, params) in requests {
        answers.push((method, format!("{:?}", client.ask("1", method, &params).await.last())));
    }
    answers
}

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
        for method in
            ["resources/read", "resources/directory/read", "completion/complete", "resources/subscribe"]
        {
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
            for uri in received(&serving, "resources/read") {
                assert!(!uri.to_lowercase().contains("vault"), "{uri:?} reached the server\n{context}");
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
