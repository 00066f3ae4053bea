//! Imports realistic files of every client, and exports our servers to each of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolhub_core::lang::{Lang, Localize as _};

use super::*;

/// The client of that name.
pub(crate) fn named(name: &str) -> Client {
    Client::named(name).unwrap()
}

fn environment() -> ClientEnvironment {
    ClientEnvironment {
        system: OperatingSystem::Linux,
        home: Some("/h".into()),
        folder: "/srv/项目".into(),
        named: BTreeMap::new(),
    }
}

fn location(client: Client, project: bool) -> ConfigLocation {
    let scope = if project { FileScope::Project("/srv/项目".into()) } else { FileScope::User };
    ConfigLocation { client, file: "the file".into(), scope }
}

/// The servers read from a client's file, in the form of `mcp.json`, with extras and notes.
fn read_all(location: &ConfigLocation, text: &str) -> Value {
    let mut all = serde_json::Map::new();
    for found in read_servers(location, text, &environment()).unwrap() {
        let (id, described) = match found {
            Ok(server) => (server.id.clone(), describe(&server)),
            Err(unusable) => (unusable.id, json!({"unusable": unusable.why.localize(Lang::En)})),
        };
        all.insert(id, described);
    }
    Value::Object(all)
}

fn describe(server: &ClientServer) -> Value {
    let mut described = Value::Object((TOOLHUB_FORMAT.write)(server).unwrap().members);
    let mut add = |key: &str, value: Value| {
        if !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()) {
            described[key] = value;
        }
    };
    if let TransportSpec::Stdio(spec) = &server.transport {
        add("+env_pass", json!(spec.env_pass));
    }
    add("+connect", json!(server.extras.connect_timeout.map(|time| time.as_secs_f64())));
    add("+call", json!(server.extras.call_timeout.map(|time| time.as_secs_f64())));
    add("+tools", json!(server.extras.tools));
    let login = &server.extras.oauth;
    add(
        "+login",
        json!([
            login.client_id,
            login.client_secret.as_ref().map(|secret| secret.expose().to_owned()),
            login.redirect_port,
            login.scopes
        ])
        .as_array()
        .filter(|_| *login != Default::default())
        .map_or(Value::Null, |parts| parts.clone().into()),
    );
    add("-", json!(server.left_out));
    add("!", json!(server.notes.iter().map(|note| note.localize(Lang::En)).collect::<Vec<_>>()));
    described
}

fn check(client: Client, text: &str, expect: &Value) {
    assert_eq!(&read_all(&location(client, false), text), expect, "{client:?}");
}

#[test]
fn reads_claude_desktop_servers() {
    let text = r#"{
        "globalShortcut": "Ctrl+Space",
        "mcpServers": {
            "表格": {"command": "uvx", "args": ["excel-mcp-server", "stdio"], "env": {"KEY": "s3cret", "PORT": 80}},
            "sh": {"command": "sh", "args": ["-c", "echo ${NAME}"]},
            "odd": {"command": 5},
            "empty": {}
        }
    }"#;
    check(
        named("claude-desktop"),
        text,
        &json!({
            "表格": {"command": "uvx", "args": ["excel-mcp-server", "stdio"], "env": {"KEY": "s3cret", "PORT": "80"}},
            "sh": {"command": "sh", "args": ["-c", "echo ${NAME}"],
                "!": ["`${NAME}` was text there, and is a variable here"]},
            "odd": {"unusable": "its `command` should be a string"},
            "empty": {"unusable": "it has neither a command nor an address"},
        }),
    );
}

#[test]
fn reads_claude_code_servers_of_user_and_current_project() {
    let text = r#"{
        "numStartups": 41,
        "projects": {
            "/srv/项目": {
                "allowedTools": [],
                "mcpServers": {"here": {"type": "stdio", "command": "./run.sh", "args": [], "env": {}}},
                "disabledMcpServers": ["api"]
            },
            "/elsewhere": {"mcpServers": {"not": {"command": "x"}}}
        },
        "mcpServers": {
            "api": {"type": "http", "url": "${BASE:-https://api.example.com}/mcp",
                "headers": {"Authorization": "Bearer ${API_KEY}"}, "timeout": 600000, "alwaysLoad": true},
            "old": {"type": "sse", "url": "https://mcp.example.com/sse", "headersHelper": "x.sh", "timeout": 50},
            "socket": {"type": "ws", "url": "wss://x"},
            "untyped": {"url": "https://x/sse/?a=b"}
        }
    }"#;
    check(
        named("claude-code"),
        text,
        &json!({
            "here": {"command": "./run.sh", "cwd": "/srv/项目",
                "!": ["it is started in `/srv/项目`, from where its paths count"]},
            "api": {"type": "http", "url": "${BASE:-https://api.example.com}/mcp",
                "headers": {"Authorization": "Bearer ${API_KEY}"}, "disabled": true, "+call": 600.0, "-": ["alwaysLoad"]},
            "old": {"type": "sse", "url": "https://mcp.example.com/sse", "-": ["headersHelper"]},
            "socket": {"unusable": "its type `ws` is not known here: `stdio`, `http` and `sse` are"},
            "untyped": {"type": "sse", "url": "https://x/sse/?a=b"},
        }),
    );
}

#[test]
fn converts_editor_variables() {
    let text = r#"{"mcpServers": {"a": {"command": "${userHome}/bin/x", "args": ["${workspaceFolder}${/}data", "${env:A_1}"],
        "env": {"T": "${env:TOKEN}", "C": "${config:x.y}", "F": "${file}"}, "envFile": ".env", "disabled": true}}}"#;
    check(
        named("cursor"),
        text,
        &json!({"a": {"command": "${HOME}/bin/x", "args": ["${PWD:-.}/data", "${A_1}"],
            "env": {"T": "${TOKEN}", "C": "${config:x.y}", "F": "${file}"}, "disabled": true,
            "-": ["envFile", "${config:x.y}", "${file}"],
            "!": ["the workspace's folder became the one that toolhub is run in: it starts only in folders that you trust, unless you write an absolute path instead"]}}),
    );
    let text = r#"{
        // asked for
        "inputs": [
            {"type": "promptString", "id": "perplexity-key", "description": "Key", "password": true},
            {"type": "promptString", "id": "host", "default": "localhost"}
        ],
        "servers": {
            "ask": {"type": "stdio", "command": "npx", "args": ["-y", "ask"], "cwd": "sub",
                "env": {"KEY": "${input:perplexity-key}", "GONE": null}, "sandboxEnabled": true, "dev": {"watch": "**"}},
            "搜索": {"type": "http", "url": "http://${input:host}/mcp", "headers": {"F": "${workspaceFolder}"}},
            "pipe": {"type": "http", "url": "unix:///tmp/x.sock"},
        },
    }"#;
    let found = read_all(&location(named("vscode"), true), text);
    assert_eq!(
        found,
        json!({
            "ask": {"command": "npx", "args": ["-y", "ask"], "env": {"KEY": "${PERPLEXITY_KEY}"}, "cwd": "/srv/项目/sub",
                "-": ["env.GONE", "sandboxEnabled", "dev"],
                "!": ["set the variable `PERPLEXITY_KEY`: VS Code asked you for it (input `perplexity-key`)"]},
            "搜索": {"type": "http", "url": "http://${HOST:-localhost}/mcp", "headers": {"F": "/srv/项目"}},
            "pipe": {"unusable": "its type `unix` is not known here: `stdio`, `http` and `sse` are"},
        })
    );
    check(
        named("vscode"),
        r#"{"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"a": {"command": "x"}}}}"#,
        &json!({"a": {"command": "x"}}),
    );
}

#[test]
fn reads_codex_servers() {
    let text = r#"
model = "gpt-5"

[mcp_servers.docs]   # a program
command = "npx"
args = ["-y", "docs"]
env_vars = ["TOKEN", { name = "LOCAL", source = "local" }, { name = "FAR", source = "remote" }]
cwd = "/srv"
startup_timeout_sec = 2.5
tool_timeout_sec = 90
enabled_tools = ["read"]
disabled_tools = ["write"]
enabled = false
required = true

[mcp_servers.docs.env]
MODE = "a b"

[mcp_servers.figma]
url = "https://mcp.example.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = { "X-Region" = "us-east-1" }
env_http_headers = { "X-Key" = "FIGMA_KEY" }
startup_timeout_ms = 500

[mcp_servers.none]
scopes = []
"#;
    check(
        named("codex"),
        text,
        &json!({
            "docs": {"command": "npx", "args": ["-y", "docs"], "env": {"MODE": "a b"}, "cwd": "/srv", "disabled": true,
                "+env_pass": ["TOKEN", "LOCAL"], "+connect": 2.5, "+call": 90.0, "+tools": ["read"],
                "-": ["env_vars.FAR", "disabled_tools", "required"]},
            "figma": {"type": "http", "url": "https://mcp.example.com/mcp",
                "headers": {"X-Region": "us-east-1", "X-Key": "${FIGMA_KEY}", "Authorization": "Bearer ${FIGMA_TOKEN}"},
                "+connect": 0.5},
            "none": {"unusable": "it has neither a command nor an address"},
        }),
    );
}

#[test]
fn reads_gemini_servers() {
    let text = r#"{
        "mcp": {"excluded": ["Off"]},
        "mcpServers": {
            "py": {"command": "python", "args": ["-m", "x", "$HOME/a", "${B:-c}"], "cwd": "./sub", "timeout": 15000,
                "env": {"K": "$MY_KEY"}, "trust": true, "includeTools": ["a", "b(c)"], "excludeTools": ["d"]},
            "http": {"httpUrl": "http://localhost:3000/mcp", "headers": {"A": "Bearer ${T}"}, "trust": false},
            "events": {"url": "http://localhost:8080/sse"},
            "typed": {"url": "http://localhost/x", "type": "sse"},
            "either": {"url": "http://localhost/mcp"},
            "off": {"command": "x", "oauth": {"enabled": true}},
            "tcp": {"tcp": "localhost:1"}
        }
    }"#;
    check(
        named("gemini"),
        text,
        &json!({
            "py": {"command": "python", "args": ["-m", "x", "${HOME}/a", "${B:-c}"], "env": {"K": "${MY_KEY}"},
                "cwd": "./sub", "+call": 15.0, "+tools": ["a", "b"], "-": ["trust", "excludeTools"],
                "!": ["its folder `./sub` counts from the one that toolhub is run in: it starts only in folders that you trust, unless you write an absolute path instead"]},
            "http": {"type": "http", "url": "http://localhost:3000/mcp", "headers": {"A": "Bearer ${T}"}},
            "events": {"type": "sse", "url": "http://localhost:8080/sse"},
            "typed": {"type": "sse", "url": "http://localhost/x"},
            "either": {"type": "http", "url": "http://localhost/mcp"},
            "off": {"command": "x", "disabled": true},
            "tcp": {"unusable": "its type `tcp` is not known here: `stdio`, `http` and `sse` are"},
        }),
    );
}

#[test]
fn reads_goose_servers() {
    let text = r#"
GOOSE_MODEL: x
extensions:
  developer: {bundled: true, enabled: true, name: developer, type: builtin}
  表格:
    type: stdio
    name: 表格
    description: sheets
    cmd: uvx
    args: [excel-mcp-server, stdio]
    envs: {MODE: fast, PORT: 80}
    env_keys: [LICENCE]
    timeout: 300
    enabled: false
    available_tools: [read]
  api:
    enabled: true
    type: streamable_http
    name: api
    uri: https://$HOST/mcp
    envs: {HOST: example.com}
    env_keys: [TOKEN]
    headers: {Authorization: "Bearer ${TOKEN}", X: $OTHER}
  old: {enabled: true, type: sse, uri: http://x/sse}
"#;
    check(
        named("goose"),
        text,
        &json!({
            "developer": {"unusable": "it is part of goose itself"},
            "表格": {"command": "uvx", "args": ["excel-mcp-server", "stdio"],
                "env": {"MODE": "fast", "PORT": "80", "LICENCE": "${LICENCE}"}, "disabled": true,
                "+call": 300.0, "+tools": ["read"], "-": ["description"],
                "!": ["set the variable `LICENCE`: goose keeps it with its secrets"]},
            "api": {"type": "http", "url": "https://example.com/mcp",
                "headers": {"Authorization": "Bearer ${TOKEN}", "X": "$OTHER"},
                "!": ["set the variable `TOKEN`: goose keeps it with its secrets"]},
            "old": {"type": "sse", "url": "http://x/sse"},
        }),
    );
}

/// Servers with all settings that toolhub supports.
fn sample_servers() -> Vec<ClientServer> {
    let text = r#"{"mcpServers": {
        "plain": {"command": "npx", "args": ["-y", "数据"], "env": {"MODE": "a b"}},
        "full": {"command": "run", "args": ["a"], "env": {"T": "${T}", "U": "${V:-w}"}, "cwd": "/srv"},
        "api": {"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${TOKEN}", "X": "y"}},
        "old": {"type": "sse", "url": "https://x/sse"}
    }}"#;
    let mut servers: Vec<ClientServer> =
        read_servers(&location(named("claude-code"), false), text, &environment())
            .unwrap()
            .into_iter()
            .map(Result::unwrap)
            .collect();
    servers[1].extras = Extras {
        connect_timeout: Some(std::time::Duration::from_secs(5)),
        call_timeout: Some(std::time::Duration::from_millis(1500)),
        tools: Some(vec!["read".to_owned()]),
        ..Extras::default()
    };
    servers
}

/// Exports our servers into an empty file of a client. Returns its text, and the fields or servers that were left out.
fn exported(client: Client) -> (String, BTreeMap<String, String>) {
    let format = client.format();
    let target = TargetFile { file: Path::new("the file"), text: "", format, replace: false };
    let edited = merge_servers(&target, &sample_servers()).unwrap();
    let remark = |outcome: &ServerOutcome| match &outcome.why {
        Some(why) => format!("{}: {}", outcome.action.name(), why.localize(Lang::En)),
        None => outcome.left_out.join(" "),
    };
    let remarks = edited.outcomes.iter().map(|outcome| (outcome.id.clone(), remark(outcome)));
    (edited.text, remarks.filter(|(_, remark)| !remark.is_empty()).collect())
}

#[test]
fn exported_servers_read_back_unchanged() {
    let check = |client: Client, remarks: &[(&str, &str)], changed: Value| {
        let (text, remark) = exported(client);
        let expect = remarks.iter().map(|(id, remark)| ((*id).to_owned(), (*remark).to_owned())).collect();
        assert_eq!(remark, expect, "{client:?}\n{text}");
        let mut back = read_all(&location(client, false), &text);
        for (id, value) in changed.as_object().unwrap() {
            assert_eq!(back[id], *value, "{client:?} {id}\n{text}");
        }
        for server in sample_servers().iter().filter(|server| changed.get(&server.id).is_none()) {
            let mut read_back = back[&server.id].take();
            if let Some(members) = read_back.as_object_mut() {
                members.shift_remove("!");
            }
            assert_eq!(read_back, describe(server), "{client:?}\n{text}");
        }
    };
    let programs =
        "skipped: Claude Desktop takes only programs from its file: add the address in its settings";
    check(
        named("claude-desktop"),
        &[
            ("full", "env.T env.U cwd call_timeout tools connect_timeout"),
            ("api", programs),
            ("old", programs),
        ],
        json!({"full": {"command": "run", "args": ["a"]}, "api": null, "old": null}),
    );
    let full = json!({"command": "run", "args": ["a"], "env": {"T": "${T}", "U": "${V:-w}"}});
    let mut timed = full.clone();
    timed["+call"] = json!(1.5);
    check(named("claude-code"), &[("full", "cwd tools connect_timeout")], json!({"full": timed}));
    let no_default = json!({"command": "run", "args": ["a"], "env": {"T": "${T}", "U": "${V}"}});
    let lost = "${V:-…} cwd call_timeout tools connect_timeout";
    check(named("cursor"), &[("full", lost)], json!({"full": no_default}));
    let mut in_folder = no_default;
    in_folder["cwd"] = json!("/srv");
    let lost = "${V:-…} call_timeout tools connect_timeout";
    check(named("vscode"), &[("full", lost)], json!({"full": in_folder}));
    let mut most = full;
    (most["cwd"], most["+call"], most["+tools"]) = (json!("/srv"), json!(1.5), json!(["read"]));
    check(named("gemini"), &[("full", "connect_timeout")], json!({"full": most}));
    let codex = json!({"command": "run", "args": ["a"], "cwd": "/srv", "+env_pass": ["T"], "+connect": 5.0,
        "+call": 1.5, "+tools": ["read"]});
    let api = json!({"type": "http", "url": "https://x/mcp", "headers": {"X": "y", "Authorization": "Bearer ${TOKEN}"}});
    check(
        named("codex"),
        &[("full", "env.U"), ("old", "skipped: Codex does not speak `sse`")],
        json!({"full": codex, "old": null, "api": api}),
    );
    let goose = json!({"command": "run", "args": ["a"], "env": {"T": "${T}"}, "+call": 1.0, "+tools": ["read"],
        "!": ["set the variable `T`: goose keeps it with its secrets"]});
    check(
        named("goose"),
        &[("full", "env.U cwd connect_timeout"), ("old", "skipped: goose no longer speaks `sse`")],
        json!({"full": goose, "old": null}),
    );
}

#[test]
fn merge_preserves_existing_content() {
    let samples: [(Client, &str); 4] = [
        (
            named("claude-code"),
            "\u{feff}{\n  // mine\n  \"n\": 12345678901234567890123,\n  \"mcpServers\": {\n    \"plain\": {\"command\": \"ancient\"}, // kept\n  },\n}\n",
        ),
        (named("vscode"), "{\"inputs\": [], \"servers\": {\"plain\": {\"command\": \"ancient\"}}}"),
        (
            named("codex"),
            "# mine\nmodel = \"x\"\n\n[mcp_servers.plain] # kept\ncommand = \"ancient\"\n\n[profiles.a]\nmodel = \"y\" # z\n",
        ),
        (
            named("goose"),
            "# mine\nA: 1 # a\nextensions:\n  plain: # kept\n    type: stdio\n    cmd: ancient\n\nB: 2\n",
        ),
    ];
    for (client, text) in samples {
        let file = Path::new("the file");
        let target = TargetFile { file, text, format: client.format(), replace: false };
        let edited = merge_servers(&target, &sample_servers()).unwrap();
        assert_eq!(edited.outcomes[0].action, ServerAction::Kept, "{client:?}");
        assert_eq!(edited.outcomes[1].action, ServerAction::Added, "{client:?}");
        for line in text.lines().filter(|line| !line.contains('}')) {
            assert!(edited.text.contains(line), "{client:?}: {line:?} is lost in\n{}", edited.text);
        }
        let again = TargetFile { text: &edited.text, ..target };
        assert_eq!(merge_servers(&again, &sample_servers()).unwrap().text, edited.text, "{client:?}");
        let replaced = merge_servers(&TargetFile { replace: true, ..again }, &sample_servers()).unwrap();
        assert_eq!(replaced.outcomes[0].action, ServerAction::Replaced, "{client:?}");
        assert!(!replaced.text.contains("ancient"), "{client:?}\n{}", replaced.text);
    }
}

#[test]
fn returns_snippet_without_secrets_if_file_cannot_be_edited() {
    let text = "extensions: {a: {type: builtin}}\n";
    let file = PathBuf::from("config.yaml");
    let target = TargetFile { file: &file, text, format: named("goose").format(), replace: false };
    let Err(EditError::Unsafe { why, snippet }) = merge_servers(&target, &sample_servers()) else { panic!() };
    assert!(why.to_string().starts_with("`config.yaml`: its servers are written in brackets"), "{why}");
    assert!(snippet.contains("MODE: \"<MODE>\"") && !snippet.contains("a b"), "{snippet}");
    assert!(snippet.starts_with("extensions:\n  plain:\n    enabled: true\n    type: stdio\n"), "{snippet}");
}

#[test]
fn syntax_errors_name_file_line_and_column() {
    let check = |client: Client, text: &str, expect: &str| {
        let error = read_servers(&location(client, false), text, &environment()).unwrap_err().to_string();
        assert!(error.starts_with(expect), "{error}");
        let target = TargetFile { file: Path::new("the file"), text, format: client.format(), replace: true };
        assert!(matches!(merge_servers(&target, &sample_servers()), Err(EditError::Config(_))));
    };
    check(named("cursor"), "{\n  \"mcpServers\": {,}\n}", "`the file`, line 2, column 18: not valid JSON");
    check(named("codex"), "a = 1\nb = \n", "`the file`, line 2, column 5: not valid TOML");
    check(named("goose"), "a: [1\nb: 2\n", "`the file`, line 2, column 2: not valid YAML");
}

#[test]
fn converts_oauth_settings_of_each_client() {
    let samples = [
        (
            named("claude-code"),
            r#"{"mcpServers": {"a": {"type": "http", "url": "u", "oauth":
                {"clientId": "c", "callbackPort": 8080, "scopes": "x y", "authServerMetadataUrl": "https://m"}}}}"#,
            json!(["c", null, 8080, ["x", "y"]]),
            json!(["oauth.authServerMetadataUrl"]),
        ),
        (
            named("cursor"),
            r#"{"mcpServers": {"a": {"url": "u", "auth":
                {"CLIENT_ID": "${env:ID}", "CLIENT_SECRET": "${env:S}", "scopes": ["x"]}}}}"#,
            json!(["${ID}", "${S}", null, ["x"]]),
            Value::Null,
        ),
        (
            named("vscode"),
            r#"{"servers": {"a": {"type": "http", "url": "u", "oauth": {"clientId": "c"}}}}"#,
            json!(["c", null, null, []]),
            Value::Null,
        ),
        (
            named("codex"),
            "[mcp_servers.a]\nurl = \"u\"\nscopes = [\"x\"]\noauth = { client_id = \"c\", callback_port = 99 }\n",
            json!(["c", null, 99, ["x"]]),
            Value::Null,
        ),
        (
            named("gemini"),
            r#"{"mcpServers": {"a": {"httpUrl": "u", "oauth":
                {"enabled": true, "clientId": "c", "clientSecret": "$S", "scopes": ["x"], "tokenUrl": "t"}}}}"#,
            json!(["c", "${S}", null, ["x"]]),
            json!(["oauth.tokenUrl"]),
        ),
    ];
    for (client, text, login, left_out) in samples {
        let found = read_all(&location(client, false), text);
        assert_eq!((&found["a"]["+login"], &found["a"]["-"]), (&login, &left_out), "{client:?}");
        let servers: Vec<ClientServer> = read_servers(&location(client, false), text, &environment())
            .unwrap()
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let target = TargetFile { file: Path::new("f"), text: "", format: client.format(), replace: false };
        let edited = merge_servers(&target, &servers).unwrap();
        assert_eq!(read_all(&location(client, false), &edited.text)["a"]["+login"], login, "{}", edited.text);
    }
}
