//! Secrets of the hub never appear: not to clients, not on standard error with `--trace`, not in the access log, traces,
//! probes, metrics, or stored data.

use std::fs;
use std::path::Path;

use serde_json::json;
use toolhub_testkit::scripted::{HttpServer, Script};

use crate::collector::Collector;
use crate::raw_client::{Era, RawClient, http};
use crate::serving::{Serving, hub};

/// The contents of all files below a folder, except those with these names.
fn everything_below(folder: &Path, but: &[&str]) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text += &everything_below(&path, but);
        } else if path.is_file() && !but.contains(&entry.file_name().to_str().unwrap()) {
            text += &String::from_utf8_lossy(&fs::read(path).unwrap());
        }
    }
    text
}

#[tokio::test]
async fn secrets_appear_in_no_output() {
    let collector = Collector::start().await;
    let mut cli = hub("");
    let made = cli.run(&["serve", "--new-token", "ann", "--json"]).json();
    let token = made["token"].as_str().unwrap().to_owned();
    let settings = format!(
        "[serve]\naccess_log = \"access.log\"\n[telemetry]\notlp = \"{}\"\n[[auth.tokens]]\nname = \"ann\"\nsha256 = {}\n",
        collector.url, made["sha256"]
    );
    fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    let script = Script::both()
        .plain_tool("echo")
        .plain_tool("dies")
        .on("tools/call:dies", json!([{"exit": 3}]))
        .plain_tool("fails")
        .on("tools/call:fails", json!([{"tool_error": "no"}]));
    // Secrets of the hub: in a header, in a URL, and in the environment of a program.
    let far = HttpServer::start(&Script::both().plain_tool("far"));
    let mut gone = HttpServer::start(&Script::both().plain_tool("lost"));
    let address = |server: &HttpServer| format!("{}?key=secret-in-an-address", server.url);
    cli.entry(
        "far",
        json!({"url": address(&far), "headers": {"Authorization": "Bearer secret-in-a-header"}}),
    );
    cli.entry("gone", json!({"url": address(&gone), "headers": {"X-Key": "secret-in-a-header"}}));
    let file = script.write(cli.folder());
    let scripted = toolhub_testkit::scripted::binary();
    cli.entry(
        "own",
        json!({"command": scripted, "args": ["stdio", file], "env": {"API_KEY": "secret-in-an-environment"}}),
    );
    cli.entry(
        "wrong",
        json!({"command": "no-such-program-at-all", "env": {"API_KEY": "secret-in-an-environment"}}),
    );
    let serving = Serving::start_with_stderr(cli);

    let mut transcript = String::new();
    for era in [Era::Legacy, Era::Modern] {
        let client = RawClient::with_token(&serving.url(), era, Some(&token)).await;
        client.tools().await;
        gone.kill();
        for tool in ["echo", "far", "lost", "dies", "fails", "nothing"] {
            let answer = client.request("1", "tools/call", &format!(r#""name":"{tool}","arguments":{{}}"#));
            transcript += &answer.send().await.unwrap().text().await.unwrap();
        }
        for (method, params) in [("resources/read", r#""uri":"file:///x""#), ("vendor/thing", "")] {
            transcript += &client.request("1", method, params).send().await.unwrap().text().await.unwrap();
        }
    }
    for path in ["/healthz", "/readyz", "/metrics", "/mcp", "/nothing"] {
        let request = http().get(format!("{}{path}", serving.root)).bearer_auth(&token);
        transcript += &request.send().await.unwrap().text().await.unwrap();
        transcript += &serving.get(path).await;
    }
    let wrong = http().get(format!("{}/metrics", serving.root)).bearer_auth("secret-of-a-stranger");
    transcript += &wrong.send().await.unwrap().text().await.unwrap();
    for command in
        [&["history", "--json"][..], &["servers", "list"], &["servers", "list", "--json"], &["doctor"]]
    {
        let ran = serving.cli().run(command);
        transcript += &(ran.stdout + &ran.stderr);
    }
    collector.spans_once(|spans| spans.iter().any(|span| span.name == "tools/call nothing")).await;
    transcript += &serving.stderr();
    transcript += &collector.text();
    // The config file of the owner contains them and is excluded.
    transcript += &everything_below(serving.folder(), &["mcp.json"]);
    assert!(
        transcript.contains("tools/call") && transcript.contains("toolhub_calls_total"),
        "nothing was said"
    );
    let secrets = [
        token.as_str(),
        "secret-in-a-header",
        "secret-in-an-address",
        "secret-in-an-environment",
        "secret-of-a-stranger",
    ];
    for secret in secrets {
        let position = transcript.find(secret);
        let excerpt = position
            .map(|position| transcript[position.saturating_sub(300)..].chars().take(700).collect::<String>());
        assert_eq!(excerpt, None, "{secret}");
    }
}
