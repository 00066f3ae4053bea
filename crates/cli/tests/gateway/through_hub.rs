//! Commands through a running hub: by `--hub` and a key with the output of the local commands, and by themselves for the live
//! state of servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script};
use toolhub_testkit::{CommandLine, CommandOutput};

use crate::console::{hub_with_roles, sheets};
use crate::serving::{Serving, TEST_TIMEOUT, hub};
use crate::team_access::{NewKey, new_key};

const PLAIN: &str = "[native]\nenabled = false\n";
const EVERYTHING: NewKey = NewKey {
    name: "all",
    options: &["--role", "caller", "--role", "approver", "--role", "auditor", "--role", "owner"],
};

pub(crate) fn output(command: &mut Command) -> CommandOutput {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A command through the hub at `url`.
pub(crate) fn command(cli: &CommandLine, url: &str, key: &str, args: &[&str]) -> Command {
    let mut command = cli.command(&[&["--hub", url], args].concat());
    command.env("TOOLHUB_HUB_KEY", key);
    command
}

fn run(serving: &Serving, key: &str, args: &[&str]) -> CommandOutput {
    output(&mut command(serving.cli(), &serving.root, key, args))
}

/// A hub with the server `s`, without native tools, and a key with the roles of a local user.
fn serving(script: &Script) -> (Serving, PathBuf, String) {
    let mut cli = hub(PLAIN);
    let journal = cli.folder().join("journal");
    cli.server("s", &script.clone().journal(&journal));
    let key = new_key(&cli, &EVERYTHING);
    (Serving::start(cli), journal, key)
}

fn calls(journal: &Path) -> usize {
    Journal::read(journal).count_method("tools/call")
}

/// Removes members that differ between two runs, and the fractions of a second, of which the API has three digits.
fn comparable(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| {
                !["call_id", "handle", "duration_ms", "reached_by"].contains(&name.as_str())
            });
            members.values_mut().for_each(comparable);
        }
        Value::Array(items) => items.iter_mut().for_each(comparable),
        Value::String(text) if text.len() > 20 && text.ends_with('Z') && text.contains(".") => {
            let end = text.find('.').unwrap();
            text.truncate(end);
        }
        _ => {}
    }
}

fn json_of(output: &CommandOutput) -> Value {
    let mut value = output.json();
    comparable(&mut value);
    value
}

#[test]
fn prints_what_the_local_command_prints() {
    // Tools in the order of their names, as the API has them, with definitions that the gateway offers unchanged.
    let tool = |name: &str, properties: Value| {
        let schema = json!({"type": "object", "properties": properties});
        json!({"name": name, "description": format!("Tool {name}"), "inputSchema": schema})
    };
    let script = Script::both()
        .tool(tool("delete_sheet", json!({})))
        .tool(tool("read_sheet", json!({})))
        .tool(tool("sum", json!({"a": {"type": "integer"}, "b": {"type": "string"}})))
        .tool(tool("write_sheet", json!({})))
        .on("tools/call:delete_sheet", [json!({"tool_error": "no such sheet"})]);
    let (serving, _, key) = serving(&script);
    let local = |args: &[&str]| serving.cli().run(args);
    let remote = |args: &[&str]| run(&serving, &key, args);
    for args in [&["call", "read_sheet"][..], &["call", "sum", "a=3", "b=4"], &["call", "delete_sheet"]] {
        let (ours, theirs) = (remote(args), local(args));
        assert_eq!(
            (ours.code, &ours.stdout, &ours.stderr),
            (theirs.code, &theirs.stdout, &theirs.stderr),
            "{args:?}"
        );
    }
    for args in [
        &["tools"][..],
        &["tools", "list"],
        &["tools", "--source", "s"],
        &["tools", "--source", "absent"],
        &["tools", "show", "sum"],
        &["tools", "search", "read a sheet"],
        &["tools", "search", "read a sheet", "--explain"],
        &["tools", "search", "fly to the moon"],
        &["explain", "read_sheet"],
        &["servers", "show", "absent"],
        &["history", "--tool", "sum"],
        &["history", "-n", "2"],
        &["stats"],
        &["waiting"],
        &["waiting", "approve", "absent"],
        &["keys"],
        &["keys", "show", "all"],
        &["keys", "show", "absent"],
        &["audit", "verify"],
        &["audit", "--kind", "call", "-n", "2"],
        &["audit", "--kind", "nonsense"],
    ] {
        let (ours, theirs) = (remote(args), local(args));
        assert_eq!(
            (ours.code, &ours.stdout),
            (theirs.code, &theirs.stdout),
            "{args:?}: {ours:?}\n{theirs:?}"
        );
        assert_eq!(ours.stderr, theirs.stderr, "{args:?}");
    }
    for args in [
        &["--json", "call", "sum", "a=3"][..],
        &["--json", "call", "sum", "a=x"],
        &["--json", "call", "absent"],
        &["--json", "call", "delete_sheet"],
        &["--json", "tools"],
        &["--json", "tools", "show", "sum"],
        &["--json", "tools", "search", "read a sheet"],
        &["--json", "explain", "sum"],
        &["--json", "servers"],
        &["--json", "servers", "show", "s"],
        &["--json", "history", "--tool", "delete_sheet", "--by", "local"],
        &["--json", "stats"],
        &["--json", "waiting", "--all"],
        &["--json", "keys"],
        &["--json", "audit", "--kind", "call"],
    ] {
        let (ours, theirs) = (remote(args), local(args));
        assert_eq!(ours.code, theirs.code, "{args:?}: {ours:?}\n{theirs:?}");
        // The calls of the key are newer than those of the local user before them, and the other way round.
        assert_eq!(json_of(&ours), json_of(&theirs), "{args:?}");
    }
    let last = remote(&["result", "last"]);
    assert_eq!((last.code, last.stdout), (Some(0), local(&["result", "last"]).stdout));
    let file = serving.folder().join("audit.jsonl");
    let exported = remote(&["audit", "export", file.to_str().unwrap()]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    assert_eq!(local(&["audit", "verify", file.to_str().unwrap()]).code, Some(0));
}

/// The key is read from a file, too, and the language of the command is that of the answers.
#[test]
fn speaks_the_language_of_the_command() {
    let (serving, keys) = hub_with_roles(PLAIN, &sheets());
    let file = serving.folder().join("hub.key");
    std::fs::write(&file, format!("{}\n", keys["viewer"])).unwrap();
    let from_file = |args: &[&str]| {
        let options = ["--lang", "zh", "--hub", &serving.root, "--hub-key-file", file.to_str().unwrap()];
        output(&mut serving.cli().command(&[&options, args].concat()))
    };
    // The call connects the server.
    assert_eq!(run(&serving, &keys["caller"], &["call", "read_sheet"]).code, Some(0));
    let listed = from_file(&["servers"]);
    assert!(listed.code == Some(0) && listed.stdout.contains("已连接"), "{listed:?}");
    let refused = from_file(&["call", "read_sheet"]);
    assert!(
        refused.code == Some(1) && refused.stderr.contains("hub 拒绝此操作：该主体的角色不允许此操作"),
        "{refused:?}"
    );
    let unknown = from_file(&["tools", "show", "absent"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("没有工具 `absent`"), "{unknown:?}");
    let unsupported = from_file(&["ask", "你好"]);
    assert!(unsupported.code == Some(2) && unsupported.stderr.contains("不能与 `--hub`"), "{unsupported:?}");
    let missing = output(&mut serving.cli().command(&["--lang", "zh", "--hub", &serving.root, "tools"]));
    assert!(missing.code == Some(2) && missing.stderr.contains("`--hub` 需要密钥"), "{missing:?}");
}

/// Each command needs the roles that its route of the API needs.
#[test]
fn keys_act_with_their_roles() {
    let (serving, keys) = hub_with_roles(PLAIN, &sheets());
    let as_role = |role: &str, args: &[&str]| run(&serving, &keys[role], args);
    for (role, args, code) in [
        ("viewer", &["servers"][..], Some(0)),
        ("viewer", &["call", "read_sheet"], Some(1)),
        ("viewer", &["servers", "restart", "s"], Some(1)),
        ("viewer", &["keys"], Some(1)),
        ("viewer", &["audit"], Some(1)),
        ("caller", &["call", "read_sheet"], Some(0)),
        ("caller", &["tools"], Some(0)),
        ("caller", &["servers"], Some(1)),
        ("operator", &["servers", "test", "s"], Some(0)),
        ("operator", &["call", "read_sheet"], Some(1)),
        ("auditor", &["audit", "verify"], Some(0)),
        ("auditor", &["history"], Some(0)),
        ("owner", &["audit"], Some(1)),
        ("owner", &["keys", "new", "other"], Some(0)),
        ("owner", &["keys", "revoke", "other"], Some(0)),
        ("owner", &["keys", "revoke", "other"], Some(2)),
    ] {
        let ran = as_role(role, args);
        assert_eq!(ran.code, code, "{role} {args:?}: {ran:?}");
        if code == Some(1) {
            assert!(ran.stderr.contains("the hub refuses this: the roles"), "{ran:?}");
        }
    }
    let forbidden = as_role("viewer", &["--json", "call", "read_sheet"]).json();
    assert_eq!(
        (&forbidden["success"], &forbidden["_meta"]["error_kind"]),
        (&json!(false), &json!("forbidden"))
    );
    // The history of a key is its own.
    let own = as_role("caller", &["history", "--json"]).json();
    assert_eq!(own.as_array().unwrap().len(), 1, "{own}");
    assert_eq!(own[0]["principal"], "key:caller");
    let serving_root = serving.root.clone();
    let cli = serving.stop();
    let gone = output(&mut command(&cli, &serving_root, &keys["viewer"], &["servers"]));
    assert!(gone.code == Some(3) && gone.stderr.contains("could not be reached"), "{gone:?}");
    let gone = output(&mut command(&cli, &serving_root, &keys["viewer"], &["--json", "servers"]));
    assert_eq!(gone.json()["_meta"]["error_kind"], "hub_unreachable");
}

#[test]
fn wrong_key_and_wrong_options_are_usage_errors() {
    let (serving, _, key) = serving(&sheets());
    let wrong = run(&serving, "thk_wrong", &["tools"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("does not accept the key"), "{wrong:?}");
    assert!(!wrong.stderr.contains("thk_wrong"), "{wrong:?}");
    for args in [
        &["call", "--capability", "sheet"][..],
        &["call", "read_sheet", "--brief"],
        &["call", "read_sheet", "--verify"],
        &["call", "read_sheet", "--for", "x"],
        &["call", "read_sheet", "--idempotency-key", "two words"],
        &["explain", "--capability", "sheet"],
        &["explain", "read_sheet", "--as", "local"],
        &["tools", "--refresh"],
        &["audit", "verify", "file"],
        &["--no-hub", "tools"],
    ] {
        let refused = run(&serving, &key, args);
        assert_eq!(refused.code, Some(2), "{args:?}: {refused:?}");
        assert!(refused.stderr.contains("`--"), "{refused:?}");
    }
    let local = serving.cli().run(&["call", "read_sheet", "--idempotency-key", "k"]);
    assert!(local.code == Some(2) && local.stderr.contains("works with `--hub` only"), "{local:?}");
}

/// `TOOLHUB_HUB` works like `--hub`, and `--no-hub` overrides it.
#[test]
fn variable_names_the_hub() {
    let (serving, _, key) = serving(&sheets());
    let with_variable = |args: &[&str]| {
        let mut command = serving.cli().command(args);
        command.env("TOOLHUB_HUB", &serving.root).env("TOOLHUB_HUB_KEY", &key);
        output(&mut command)
    };
    let remote = with_variable(&["-v", "tools"]);
    assert!(remote.code == Some(0) && remote.stderr.contains("through the hub at"), "{remote:?}");
    let refused = with_variable(&["doctor"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("does not work with `--hub`"), "{refused:?}");
    let local = with_variable(&["--no-hub", "-v", "tools"]);
    assert!(local.code == Some(0) && !local.stderr.contains("through the hub at"), "{local:?}");
    assert_eq!(with_variable(&["help", "call"]).code, Some(0));
}

#[test]
fn call_is_cancelled_at_the_server_by_interrupt_and_timeout() {
    for (args, signalled, code) in [
        (&["call", "slow"][..], true, 130),
        (&["--json", "call", "slow"], true, 130),
        (&["call", "slow", "--timeout", "2s"], false, 124),
    ] {
        let script = Script::legacy().plain_tool("slow").on("tools/call:slow", [json!({"delay_ms": 60_000})]);
        let (serving, journal, key) = serving(&script);
        let mut command = command(serving.cli(), &serving.root, &key, args);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut seen = Journal::read(&journal);
        seen.wait_for(|journal| journal.count_method("tools/call") == 1, TEST_TIMEOUT);
        if signalled {
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        seen.wait_for(|journal| journal.count_method("notifications/cancelled") == 1, TEST_TIMEOUT);
        if args.contains(&"--json") {
            let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(outcome["_meta"]["error_kind"], "cancelled");
        }
        // The hub still serves.
        assert_eq!(run(&serving, &key, &["tools"]).code, Some(0));
    }
}

/// A repeated command with the same key does not run the tool again; commands without one are independent.
#[test]
fn repeated_idempotency_key_runs_once() {
    let (serving, journal, key) = serving(&sheets());
    let repeat = |args: &[&str]| {
        run(&serving, &key, &[&["call", "write_sheet", "--idempotency-key", "order-17"], args].concat())
    };
    let (first, second) = (repeat(&[]), repeat(&[]));
    assert_eq!((first.code, first.stdout.as_str()), (Some(0), second.stdout.as_str()), "{first:?}");
    assert_eq!(calls(&journal), 1);
    let other = repeat(&["--args", r#"{"x":1}"#]);
    assert!(other.code == Some(1) && other.stderr.contains("was used for another request"), "{other:?}");
    assert_eq!(calls(&journal), 1);
    for _ in 0..2 {
        assert_eq!(run(&serving, &key, &["call", "write_sheet"]).code, Some(0));
    }
    assert_eq!(calls(&journal), 3);
}

#[test]
fn held_call_is_decided_and_then_runs() {
    const HOLDING: &str = r#"
[native]
enabled = false
[[auth.rules]]
name = "all"
effect = "allow"
servers = ["s"]
[[auth.rules]]
name = "writes are approved"
effect = "ask"
roles = ["caller"]
tools = ["write_sheet"]
"#;
    let (serving, keys) = hub_with_roles(HOLDING, &sheets());
    let as_role = |role: &str, args: &[&str]| run(&serving, &keys[role], args);
    let held = as_role("caller", &["--json", "call", "write_sheet"]);
    assert_eq!(held.code, Some(1), "{held:?}");
    let meta = held.json()["_meta"].clone();
    assert_eq!((&meta["error_kind"], &meta["effect"]), (&json!("held"), &json!("none")), "{meta}");
    let reference = meta["reference"].as_str().unwrap();
    let listed = as_role("approver", &["--json", "waiting"]).json();
    assert_eq!((&listed[0]["id"], &listed[0]["principal"]), (&json!(reference), &json!("key:caller")));
    assert_eq!(listed, serving.cli().run(&["--json", "waiting"]).json());
    assert_eq!(as_role("caller", &["waiting", "approve", reference]).code, Some(1), "its own call");
    let approved = as_role("approver", &["waiting", "approve", reference]);
    assert!(approved.code == Some(0) && approved.stdout.contains("may run once"), "{approved:?}");
    assert_eq!(as_role("approver", &["waiting", "approve", reference]).code, Some(2));
    assert_eq!(as_role("caller", &["call", "write_sheet"]).code, Some(0));
}

fn pids(journal: &Path) -> usize {
    Journal::read(journal).pids().len()
}

#[test]
fn servers_are_tested_restarted_and_switched_at_the_hub() {
    let (serving, journal, key) = serving(&sheets().set("stderr", ["a line of the server"]));
    let remote = |args: &[&str]| run(&serving, &key, args);
    let tested = remote(&["servers", "test"]);
    assert!(tested.code == Some(0) && tested.stdout.contains("3 tools"), "{tested:?}");
    assert_eq!(pids(&journal), 1, "the hub's process is used");
    let restarted = remote(&["--json", "servers", "restart", "s"]);
    let report = restarted.json();
    assert_eq!((restarted.code, &report["success"], &report["tools"]), (Some(0), &json!(true), &json!(3)));
    assert_eq!(pids(&journal), 2);
    assert!(remote(&["servers", "logs", "s"]).stdout.contains("a line of the server"));
    let unknown = remote(&["servers", "restart", "sa"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("did you mean `s`?"), "{unknown:?}");
    assert_eq!(remote(&["servers", "disable", "s"]).code, Some(0));
    assert_eq!(remote(&["--json", "servers"]).json()[0]["state"], "disabled");
    let disabled = remote(&["servers", "restart", "s"]);
    assert!(disabled.code == Some(1) && disabled.stderr.contains("disabled"), "{disabled:?}");
    assert_eq!(remote(&["servers", "enable", "s"]).code, Some(0));
    assert_eq!(remote(&["call", "read_sheet"]).code, Some(0));
}

/// Without `--hub`, the state is that of the running hub of the same data folder, and nothing is started for it.
#[test]
fn live_state_is_shown_and_servers_restarted_without_options() {
    let (serving, journal, key) = serving(&sheets());
    let cli = serving.cli();
    assert_eq!(run(&serving, &key, &["call", "read_sheet"]).code, Some(0));
    let live = cli.run(&["--json", "servers"]);
    assert_eq!(live.json()[0]["state"], "connected", "{live:?}");
    assert!(live.stderr.contains("live state of the running hub: `s`"), "{live:?}");
    let of_hub = run(&serving, &key, &["--json", "servers"]).json();
    assert_eq!(of_hub, live.json());
    let shown = cli.run(&["servers", "show", "s"]);
    assert!(shown.stdout.contains("connected") && shown.stdout.contains("read_sheet"), "{shown:?}");
    let stored = cli.run(&["--no-hub", "--json", "servers"]);
    assert_eq!((stored.json()[0]["state"].as_str(), stored.stderr.as_str()), (Some("ready"), ""));
    assert_eq!(pids(&journal), 1, "nothing was started");
    let restarted = cli.run(&["servers", "restart", "s"]);
    assert!(restarted.code == Some(0) && restarted.stdout.contains("3 tools"), "{restarted:?}");
    assert_eq!(pids(&journal), 2, "the hub started it again");
    let audit = cli.run(&["--json", "audit", "--kind", "server_change"]).json();
    assert_eq!((&audit[0]["object"], &audit[0]["state"]), (&json!("s"), &json!("updated: restarted")));
    assert_eq!(cli.run(&["--no-hub", "servers", "restart", "s"]).code, Some(2));
    let cli = serving.stop();
    let ended = cli.run(&["--json", "servers"]);
    assert_eq!((ended.json()[0]["state"].as_str(), ended.stderr.as_str()), (Some("ready"), ""));
    let none = cli.run(&["servers", "restart", "s"]);
    assert!(none.code == Some(2) && none.stderr.contains("no running hub"), "{none:?}");
    assert_eq!(pids(&journal), 2);
}

/// A server of the same name in another file is another server.
#[test]
fn server_of_another_entry_is_neither_shown_nor_restarted() {
    let (serving, journal, key) = serving(&sheets());
    assert_eq!(run(&serving, &key, &["call", "read_sheet"]).code, Some(0));
    let other = serving.folder().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("toolhub.toml"), PLAIN).unwrap();
    let servers = std::fs::read_to_string(serving.folder().join("mcp.json")).unwrap();
    let mut entries: BTreeMap<String, Value> = serde_json::from_str(&servers).unwrap();
    entries.get_mut("mcpServers").unwrap()["s"]["env"]["OTHER"] = json!("1");
    std::fs::write(other.join("mcp.json"), serde_json::to_string(&entries).unwrap()).unwrap();
    let home = serving.folder().join("home");
    let elsewhere = |args: &[&str]| {
        let config = other.join("toolhub.toml");
        let options = ["--home", home.to_str().unwrap(), "--config", config.to_str().unwrap()];
        output(serving.cli().command(&[&options, args].concat()).current_dir(&other))
    };
    let listed = elsewhere(&["--json", "servers"]);
    assert_eq!(listed.json()[0]["id"], "s", "{listed:?}");
    assert!(listed.json()[0]["state"] != "connected" && !listed.stderr.contains("live state"), "{listed:?}");
    let restarted = elsewhere(&["servers", "restart", "s"]);
    assert!(
        restarted.code == Some(2) && restarted.stderr.contains("with this configuration"),
        "{restarted:?}"
    );
    assert_eq!(pids(&journal), 1);
}

/// A hub that hangs delays the command by about a second, and the stored state is shown.
#[test]
fn hanging_hub_is_given_up() {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;

    let mut cli = hub(PLAIN);
    cli.server("s", &sheets());
    // Creates the data folder.
    assert_eq!(cli.run(&["servers"]).code, Some(0));
    let hubs = cli.folder().join("home/hubs");
    std::fs::create_dir(&hubs).unwrap();
    std::fs::set_permissions(&hubs, Permissions::from_mode(0o700)).unwrap();
    let (socket, key) = (hubs.join("1.sock"), hubs.join("1.key"));
    let listener = UnixListener::bind(&socket).unwrap();
    std::fs::write(&key, "secret").unwrap();
    for file in [&socket, &key] {
        std::fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
    }
    let since = Instant::now();
    let listed = cli.run(&["--json", "servers"]);
    let took = since.elapsed();
    assert_eq!((listed.code, listed.json()[0]["state"].as_str()), (Some(0), Some("new")), "{listed:?}");
    assert!(
        listed.stderr.contains("the state of a running hub is not shown: it does not answer"),
        "{listed:?}"
    );
    assert!(took < Duration::from_secs(10), "{took:?}");
    let restarted = cli.run(&["servers", "restart", "s"]);
    assert!(restarted.code == Some(1) && restarted.stderr.contains("it does not answer"), "{restarted:?}");
    drop(listener);
}
