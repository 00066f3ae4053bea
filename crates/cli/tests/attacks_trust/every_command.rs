//! Runs every command that the help lists in a folder that tries to run programs, contact addresses and read secrets.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::hostile::{SECRET, SKILL_TEXT, Victim, initialize, request, talk_stdio};

/// A command and its flags without a value, as listed by `--help`.
#[derive(Debug)]
struct Leaf {
    path: Vec<String>,
    flags: Vec<String>,
}

/// Excluded flags: they trust the folder, never end, or have their own tests.
const LEFT_OUT: [&str; 6] = ["--trust", "--help", "--version", "--follow", "--stdio", "--yes"];

fn leaves(victim: &Victim) -> Vec<Leaf> {
    let mut waiting = vec![Vec::new()];
    let mut leaves = Vec::new();
    while let Some(path) = waiting.pop() {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let help = victim.run(&[&["help"], &words[..]].concat()).stdout;
        let section = |title: &str| {
            let lines = help.lines().skip_while(move |line| !line.starts_with(title)).skip(1);
            lines.take_while(|line| line.starts_with(' ') || line.is_empty()).collect::<Vec<_>>()
        };
        let commands: Vec<&str> = section("Commands:")
            .into_iter()
            .take_while(|line| !line.is_empty())
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        for command in &commands {
            waiting.push([&path[..], &[(*command).to_owned()]].concat());
        }
        let flags = section("Options:")
            .into_iter()
            .filter_map(|line| {
                line.split_whitespace().find(|word| word.starts_with("--")).map(|flag| (line, flag))
            })
            .filter(|(line, flag)| {
                !line.contains(&format!("{flag} <")) && !line.contains(&format!("{flag} ["))
            })
            .map(|(_, flag)| flag.trim_end_matches("...").to_owned())
            .filter(|flag| !LEFT_OUT.contains(&flag.as_str()));
        // A command with subcommands may also run without one.
        leaves.push(Leaf { flags: flags.collect(), path });
    }
    leaves.sort_by(|one, other| one.path.cmp(&other.path));
    leaves
}

/// Arguments that make a command do its work. Commands that are not listed run without arguments and with a name.
fn arguments() -> BTreeMap<&'static str, Vec<Vec<&'static str>>> {
    BTreeMap::from([
        ("ask", vec![vec!["what time is it in Tokyo?"], vec!["--no-llm", "use the bad skill"]]),
        (
            "call",
            vec![
                vec!["calculate", "expression=1+1"],
                vec!["greet", "--source", "project"],
                vec!["bad"],
                vec!["use_skill", "name=bad"],
                vec!["search_web", "query=x"],
                vec!["--capability", "search", "query=x"],
            ],
        ),
        ("chat", vec![vec![], vec!["--list"]]),
        ("completions", vec![vec!["bash"]]),
        // An address at which keys are required: it ends after the hub was built.
        ("console", vec![vec!["--no-browser", "--bind", "192.0.2.1:7460"]]),
        ("doctor", vec![vec![], vec!["--ask-model"]]),
        ("explain", vec![vec!["greet"], vec!["--capability", "search"]]),
        ("help", vec![vec!["tools"]]),
        ("prompt", vec![vec!["use the bad skill"], vec!["--plan", "x"]]),
        ("recommend", vec![vec![], vec!["something"]]),
        ("result", vec![vec!["last"]]),
        ("serve", vec![vec!["--new-token", "ann"]]),
        ("servers add", vec![vec!["own", "--no-test", "--", "true"]]),
        ("servers disable", vec![vec!["own"], vec!["project"]]),
        ("servers enable", vec![vec!["project"]]),
        ("servers export", vec![vec!["cursor", "--dry-run"], vec!["cursor", "--gateway", "--dry-run"]]),
        ("servers import", vec![vec![], vec!["--all"], vec!["cursor"], vec!["vscode"], vec!["claude-code"]]),
        ("servers login", vec![vec!["remote", "--no-browser"], vec!["project"]]),
        ("servers logout", vec![vec!["remote"]]),
        ("servers logs", vec![vec!["project"]]),
        ("servers offers", vec![vec!["project"], vec!["remote"]]),
        ("servers refresh", vec![vec![], vec!["project"], vec!["remote"]]),
        ("servers remove", vec![vec!["project"]]),
        ("servers test", vec![vec![], vec!["project"], vec!["remote"], vec!["old"], vec!["imported"]]),
        ("skills approve", vec![vec!["--all"], vec!["--all", "--yes"], vec!["bad", "--yes"]]),
        ("skills list", vec![vec![], vec!["--servers"]]),
        ("skills new", vec![vec!["mine"]]),
        ("skills run", vec![vec!["bad"], vec!["bad", "run"]]),
        ("skills show", vec![vec!["bad"]]),
        ("tools approve", vec![vec!["--all"], vec!["--server", "project"], vec!["--list"]]),
        ("tools diff", vec![vec!["greet"]]),
        ("tools search", vec![vec!["greet a person"]]),
        ("tools show", vec![vec!["greet"], vec!["greet", "--source", "project"]]),
        ("trust", vec![vec![], vec!["--list"], vec!["--revoke"]]),
    ])
}

fn run_every_command(victim: &Victim) {
    let known = arguments();
    let leaves = leaves(victim);
    assert!(leaves.len() > 35, "the help lists the commands: {leaves:?}");
    for leaf in &leaves {
        let name = leaf.path.join(" ");
        let path: Vec<&str> = leaf.path.iter().map(String::as_str).collect();
        let mut variants = known.get(name.as_str()).cloned().unwrap_or_else(|| vec![vec![], vec!["project"]]);
        if name == "serve" {
            variants.retain(|variant| !variant.is_empty());
        } else {
            let first = variants[0].clone();
            variants.extend(leaf.flags.iter().map(|flag| [&first[..], &[flag.as_str()]].concat()));
        }
        for variant in variants {
            for more in [&[][..], &["--json"][..]] {
                let args = [&path[..], &variant[..], more].concat();
                let ran = victim.run(&args);
                victim.assert_unharmed(&format!("{args:?}"));
                let output = format!("{}{}", ran.stdout, ran.stderr);
                assert!(!output.contains(SECRET), "{args:?} shows the secret: {output}");
                // `trust` shows the contents that would be used.
                if name != "trust" {
                    assert!(!output.contains(SKILL_TEXT), "{args:?} uses what the project brings: {output}");
                }
            }
        }
    }
}

#[test]
fn no_command_uses_content_of_untrusted_folder() {
    run_every_command(&Victim::new().with_everything());
}

#[test]
fn no_command_starts_a_server_beside_an_empty_config() {
    run_every_command(&Victim::new().with_empty_config());
}

#[test]
fn no_command_starts_a_server_of_a_shared_file() {
    run_every_command(&Victim::new().with_shared_servers());
}

/// Client requests that would need every server.
fn requests() -> Vec<Value> {
    vec![
        initialize(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        request(2, "tools/list", &json!({})),
        request(3, "tools/call", &json!({"name": "greet", "arguments": {}})),
        request(4, "tools/call", &json!({"name": "project__greet", "arguments": {}})),
        request(5, "prompts/list", &json!({})),
        request(6, "resources/list", &json!({})),
        request(7, "tools/call", &json!({"name": "calculate", "arguments": {"expression": "1+1"}})),
        request(8, "tools/call", &json!({"name": "use_skill", "arguments": {"name": "bad"}})),
    ]
}

#[test]
fn stdio_gateway_uses_nothing_of_untrusted_folder() {
    for victim in [
        Victim::new().with_everything(),
        Victim::new().with_empty_config(),
        Victim::new().with_shared_servers(),
    ] {
        let command = victim.command_in(&victim.project(), &["serve", "--stdio"]);
        let (answers, ran) = talk_stdio(command, &requests());
        victim.assert_unharmed("serve --stdio");
        let output = serde_json::to_string(&answers).unwrap();
        assert!(!output.contains(SKILL_TEXT) && !output.contains(SECRET), "{output}");
        // Meanwhile the hub serves the tools of the user, and explains the rest on standard error.
        assert!(output.contains("calculate"), "{output}");
        assert!(ran.stderr.contains("not used until you trust"), "{ran:?}");
    }
}

#[test]
fn http_gateway_uses_nothing_of_untrusted_folder() {
    let victim = Victim::new().with_everything();
    let mut command = victim.command_in(&victim.project(), &["--json", "serve", "--bind", "127.0.0.1:0"]);
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output: Value = serde_json::from_str(&line).unwrap();
    let url = output["mcp"].as_str().unwrap().strip_prefix("http://").unwrap();
    let (address, _) = url.split_once('/').unwrap();
    for message in requests() {
        let body = message.to_string();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with("HTTP/1.1"), "{answer}");
        assert!(!answer.contains(SKILL_TEXT) && !answer.contains(SECRET), "{answer}");
    }
    victim.assert_unharmed("serve");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Control: in the same folder, once trusted, everything that was refused happens.
#[test]
fn trusted_folder_starts_programs_and_contacts_addresses() {
    let victim = Victim::new().with_empty_config();
    let trusted = victim.run(&["trust", "--yes"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    victim.assert_unharmed("trust");
    let tested = victim.run(&["servers", "test"]);
    assert!(victim.was_run() && victim.was_contacted(), "{tested:?}");
}
