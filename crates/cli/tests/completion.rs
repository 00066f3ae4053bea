//! Dynamic shell completion: candidates come from the config and the cached lists, without starting a server.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::time::{Duration, Instant};

use serde_json::json;
use toolhub_testkit::scripted::{Journal, Script};
use toolhub_testkit::{CommandLine, CommandOutput};

fn cli() -> CommandLine {
    CommandLine::new(env!("CARGO_BIN_EXE_toolhub"))
}

/// The candidates for the last word, in the form that bash requests them.
fn candidates(cli: &CommandLine, words: &[&str]) -> Vec<String> {
    let ran = completed(cli, words);
    assert!(ran.code == Some(0) && ran.stderr.is_empty(), "{ran:?}");
    ran.stdout.split('\n').filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn completed(cli: &CommandLine, words: &[&str]) -> CommandOutput {
    let mut command = cli.command(&["--", "toolhub"]);
    command.args(words).env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn sheets() -> Script {
    let schema = json!({
        "type": "object",
        "properties": {
            "mode": {"enum": ["fast", "safe", "$(reboot)"]},
            "header": {"type": "boolean", "description": "Whether row 1 is a header"},
            "path": {"type": "string"},
        },
        "required": ["path"],
    });
    Script::legacy().tool(json!({"name": "read_sheet", "inputSchema": schema})).plain_tool("`reboot`")
}

#[test]
fn names_arguments_and_enum_values_complete_without_starting_a_server() {
    let mut cli = cli();
    let journal = cli.folder().join("journal");
    cli.server("excel", &sheets().journal(&journal));
    cli.entry("extra", json!({"command": "toolhub-test-none"}));
    assert_eq!(cli.run(&["servers", "test", "excel"]).code, Some(0));
    let starts = Journal::read(&journal).events("start").len();

    assert_eq!(candidates(&cli, &["call", "read_s"]), ["read_sheet"]);
    assert!(candidates(&cli, &["call", ""]).iter().all(|name| !name.contains('`')));
    assert_eq!(candidates(&cli, &["servers", "remove", "ex"]), ["excel", "extra"]);
    assert_eq!(candidates(&cli, &["tools", "--source", "ex"]), ["excel", "extra"]);
    assert_eq!(candidates(&cli, &["call", "read_sheet", ""])[..3], ["path=", "mode=", "header="]);
    assert_eq!(candidates(&cli, &["call", "read_sheet", "path=a", "p"]), [""; 0], "it is given");
    assert_eq!(candidates(&cli, &["call", "read_sheet", "mode="]), ["mode=fast", "mode=safe"]);
    assert_eq!(candidates(&cli, &["call", "read_sheet", "header=t"]), ["header=true"]);
    assert_eq!(candidates(&cli, &["serv"]), ["servers", "serve"]);
    assert_eq!(Journal::read(&journal).events("start").len(), starts, "no server was started");
}

#[test]
fn untrusted_folder_offers_no_completions() {
    let mut cli = cli();
    cli.server("excel", &sheets());
    let mut command = cli.command(&["--", "toolhub", "servers", "show", "e"]);
    command.env_remove("TOOLHUB_TRUST").env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "3");
    let output = command.output().unwrap();
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn completion_is_silent_on_invalid_config_and_unknown_shell() {
    let mut cli = cli();
    cli.server("excel", &sheets());
    std::fs::write(cli.folder().join("toolhub.toml"), "[[").unwrap();
    let started = Instant::now();
    assert_eq!(candidates(&cli, &["call", "x"]), [""; 0]);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let output = cli.command(&["--", "toolhub", "call", ""]).env("COMPLETE", "tcsh").output().unwrap();
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    let output = cli.command(&["--version"]).env("COMPLETE", "tcsh").output().unwrap();
    assert!(output.stdout.starts_with(b"toolhub "), "an ordinary run: {output:?}");
}

/// Bash splits words at `=`; a candidate contains only the part that bash replaces.
#[cfg(unix)]
#[test]
fn bash_replaces_the_part_after_the_equals_sign() {
    let mut cli = cli();
    cli.server("excel", &sheets());
    assert_eq!(cli.run(&["servers", "test", "excel"]).code, Some(0));
    let script = r#"
        source <(COMPLETE=bash "$PROGRAM")
        ask() { COMP_LINE=$1; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _toolhub_complete; echo "${COMPREPLY[*]}"; }
        ask 'toolhub call read_sheet mode=' toolhub call read_sheet mode =
        ask 'toolhub call read_sheet mode=s' toolhub call read_sheet mode = s
        ask 'toolhub call read_sheet path=a m' toolhub call read_sheet path = a m
        ask 'toolhub call read_s' toolhub call read_s
    "#;
    let mut command = std::process::Command::new("bash");
    let of_program = cli.command(&[]);
    let variables =
        of_program.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    command.current_dir(cli.folder()).env_clear().envs(variables);
    let output =
        command.env("PROGRAM", of_program.get_program()).args(["--norc", "-c", script]).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout, "fast safe\nsafe\nmode=\nread_sheet\n", "{}", String::from_utf8_lossy(&output.stderr));
}
