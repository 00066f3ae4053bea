//! What people read about access: commands about keys and rules, warnings, refusals and metrics.

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::Script;

use crate::raw_client::{Era, RawClient};
use crate::serving::{Serving, hub};

const RULES: &str = r#"
[[auth.rules]]
name = "small"
effect = "allow"
tools = ["s__touch"]
[auth.rules.arguments]
required = ["count"]
properties.count = { type = "integer", maximum = 10 }
"#;

/// A hub with the server `s`, its tools `touch` and `other`, and these settings.
fn with_server(settings: &str) -> CommandLine {
    let mut cli = hub(settings);
    cli.server("s", &Script::both().plain_tool("touch").plain_tool("other"));
    let listed = cli.run(&["tools", "--json"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    cli
}

fn new_key(cli: &CommandLine, name: &str, more: &[&str]) -> String {
    let made = cli.run(&[&["keys", "new", name, "--json"], more].concat());
    made.json()["key"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
}

#[test]
fn wrong_flag_of_a_new_key_is_named() {
    let cli = hub("");
    let made = cli.run(&["keys", "new", "ann", "--role", "boss"]);
    assert_eq!(made.code, Some(2), "{made:?}");
    assert!(made.stderr.contains("`--role boss`") && made.stderr.contains("approver"), "{}", made.stderr);
    assert!(!made.stderr.contains("toolhub.toml"), "{}", made.stderr);
    let made = cli.run(&["keys", "new", "ann", "--expires", "soon"]);
    assert!(made.stderr.contains("`--expires soon`"), "{}", made.stderr);
    assert_eq!(cli.run(&["keys", "list", "--json"]).json(), json!([]));
}

#[tokio::test]
async fn explain_shows_arguments_expiry_and_used_calls() {
    let cli = with_server(RULES);
    let key = new_key(&cli, "ci", &["--per-day", "1"]);
    new_key(&cli, "old", &["--expires", "2020-01-31"]);
    let explain = |cli: &CommandLine, more: &[&str]| -> Value {
        let explained = cli.run(&[&["explain", "touch", "--json"], more].concat());
        explained.json()["sources"][0].clone()
    };
    let open = explain(&cli, &["--as", "ci"]);
    assert_eq!(open["call"]["decision"], "depends", "{open}");
    assert!(open["call"]["reason"].as_str().is_some_and(|text| text.contains("`small`")), "{open}");
    assert!(open["rules"][0].as_str().is_some_and(|text| text.contains("if the arguments fit")), "{open}");
    let small = ["--as", "ci", "--args", r#"{"count":5}"#];
    assert_eq!(explain(&cli, &small)["call"]["decision"], "allow");
    assert_eq!(explain(&cli, &["--as", "ci", "--args", r#"{"count":50}"#])["call"]["decision"], "forbid");
    let old = explain(&cli, &["--as", "old", "--args", r#"{"count":5}"#]);
    for action in ["see", "call"] {
        assert_eq!(old[action]["decision"], "forbid", "{old}");
        assert!(old[action]["reason"].as_str().is_some_and(|text| text.contains("2020-01-31")), "{old}");
    }
    let serving = Serving::start(cli);
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    client.call("touch", r#"{"count":5}"#).await.result();
    let cli = serving.stop();
    let used = explain(&cli, &small);
    assert_eq!(used["call"]["decision"], "forbid", "{used}");
    assert!(used["call"]["reason"].as_str().is_some_and(|text| text.contains("per_day")), "{used}");
    assert_eq!(used["see"]["decision"], "allow", "{used}");
}

#[test]
fn names_in_rules_that_do_not_exist_are_warned_about() {
    let rule = "[[auth.rules]]\neffect = \"allow\"\n";
    let settings = format!(
        "{rule}principals = [\"bob\", \"ann\"]\n{rule}servers = [\"sheets\", \"s\"]\n{rule}tools = [\"tuch\", \"touch\"]\n\
         {rule}profiles = [\"offce\"]\n"
    );
    let cli = with_server(&settings);
    new_key(&cli, "ann", &[]);
    let checks = cli.run(&["doctor", "--json"]).json()["checks"].clone();
    let warnings: Vec<&str> = checks
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["check"] == "rules" && check["status"] == "warning")
        .map(|check| check["text"].as_str().unwrap())
        .collect();
    let names = ["key:bob", "sheets", "tuch", "offce"];
    assert_eq!(warnings.len(), names.len(), "{warnings:?}");
    for (warning, name) in warnings.iter().zip(names) {
        assert!(warning.contains(&format!("`{name}`")), "{warning}");
    }
    let serving = Serving::start_with_stderr(cli);
    assert!(serving.stderr().contains("`tuch`"), "{}", serving.stderr());
}

#[tokio::test]
async fn refusal_names_the_owner_and_calls_are_counted_by_principal() {
    let cli = with_server(RULES);
    let (ann, owner) = (new_key(&cli, "ann", &[]), new_key(&cli, "olga", &["--role", "owner"]));
    let serving = Serving::start(cli);
    for token in [None, Some("wrong")] {
        let client = RawClient::with_token(&serving.url(), Era::Modern, token).await;
        let refused = client.request("1", "tools/list", "").send().await.unwrap();
        assert_eq!(refused.status(), 401);
        let text = refused.text().await.unwrap();
        assert!(text.contains("ask the owner of this hub") && text.contains("所有者"), "{text}");
        assert!(!text.contains("toolhub keys"), "{text}");
    }
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&ann)).await;
    client.call("touch", r#"{"count":5}"#).await.result();
    client.call("touch", r#"{"count":50}"#).await.result();
    client.call("other", "{}").await.error();
    let metrics = crate::raw_client::http().get(format!("{}/metrics", serving.root)).bearer_auth(&owner);
    let metrics = metrics.send().await.unwrap().text().await.unwrap();
    for (outcome, count) in [("succeeded", 1), ("failed", 0), ("refused", 2)] {
        let sample =
            format!("toolhub_principal_calls_total{{principal=\"key:ann\",outcome=\"{outcome}\"}} {count}");
        assert!(metrics.contains(&sample), "{sample}\n{metrics}");
    }
}
