//! Dynamic shell completion: candidates come from the config and the cached lists, without starting a server.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a failed expectation fails the test")]

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
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
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

/// Presses the tabulator after a command in a real bash on a pseudo-terminal, then enter. `setup` defines the completion.
/// Returns what the terminal showed until the end; `toolhub` prints its arguments there.
#[cfg(unix)]
fn press_tab(cli: &CommandLine, folder: &std::path::Path, setup: &str, typed: &str) -> String {
    use std::fs::File;
    use std::io::{Read as _, Write as _};

    let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
    let master = rustix::pty::openpt(flags).unwrap();
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let name = rustix::pty::ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let side = || File::options().read(true).write(true).open(&name).unwrap();
    let of_program = cli.command(&[]);
    let variables =
        of_program.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    let mut bash = std::process::Command::new("bash");
    bash.current_dir(folder).env_clear().envs(variables);
    bash.env("PROGRAM", of_program.get_program()).env("TERM", "dumb").env("PS1", "$ ");
    bash.env("INPUTRC", "/dev/null").env("LC_ALL", "C.UTF-8");
    bash.args(["--norc", "--noprofile", "-i"]).stdin(side()).stdout(side()).stderr(side());
    let mut child = bash.spawn().unwrap();
    let mut master = File::from(master);
    let (sender, received) = std::sync::mpsc::sync_channel(1_000);
    let mut reader = master.try_clone().unwrap();
    let reading = std::thread::spawn(move || {
        let mut some = [0; 4096];
        while let Ok(many @ 1..) = reader.read(&mut some) {
            if sender.send(some[..many].to_vec()).is_err() {
                break;
            }
        }
    });
    let mut shown = String::new();
    let mut await_text = |text: &str| {
        let from = shown.len();
        let end = Instant::now() + Duration::from_secs(30);
        while !shown[from..].contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            let bytes = received.recv_timeout(left).unwrap_or_else(|_| panic!("no `{text}`: {shown:?}"));
            shown.push_str(&String::from_utf8_lossy(&bytes));
        }
    };
    // The quotes keep the echo of the input apart from its output.
    writeln!(master, "{setup}; toolhub() {{ printf '<%s>' \"$@\"; }}; echo REA''DY").unwrap();
    await_text("READY");
    writeln!(master, "toolhub {typed}\t").unwrap();
    writeln!(master, "echo DO''NE").unwrap();
    await_text("DONE");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(master);
    drop(received);
    // Ends when the last descriptor of the terminal is closed.
    drop(reading);
    shown
}

/// A file name that contains a command, as a cloned repository may bring it, is inserted as one word, or not at all.
#[cfg(unix)]
#[test]
fn attack_file_names_are_not_run_by_bash_after_completion() {
    let cli = cli();
    let repository = cli.folder().join("repository");
    for setup in [r#"source <("$PROGRAM" completions bash)"#, r#"source <(COMPLETE=bash "$PROGRAM")"#] {
        for (typed, name, is_completed) in [
            ("--config plain", "plain.toml", true),
            ("--config tool", "toolhub.toml;touch PWNED;", true),
            ("--config b", "b$(touch PWNED).toml", true),
            ("--config c", "c`touch PWNED`.toml", true),
            ("--config d", "d|touch PWNED", true),
            ("--config e", "e'f\"g h&touch PWNED&", true),
            ("--config x", "x*", true),
            ("--config n", "n\ntouch PWNED\n", false),
        ] {
            std::fs::create_dir_all(&repository).unwrap();
            std::fs::write(repository.join(name), "").unwrap();
            let shown = press_tab(&cli, &repository, setup, typed);
            let files: Vec<_> =
                std::fs::read_dir(&repository).unwrap().map(|one| one.unwrap().file_name()).collect();
            assert_eq!(files, [name], "{setup} {typed}: {shown}");
            if is_completed {
                assert!(shown.contains(&format!("<--config><{name}>")), "{setup} {typed}: {shown}");
            }
            std::fs::remove_dir_all(&repository).unwrap();
        }
    }
}

/// PowerShell inserts candidates as they are; the other shells quote them.
#[test]
fn only_plain_file_names_complete_where_the_shell_does_not_quote() {
    let cli = cli();
    for name in ["kplain.toml", "k;reboot", "k$(reboot)", "k\nreboot", "k reboot"] {
        std::fs::write(cli.folder().join(name), "").unwrap();
    }
    let found = |shell: &str| {
        let mut command = cli.command(&["--", "toolhub", "--config", "k"]);
        command.env("COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "2").env("_CLAP_IFS", "\n");
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let mut lines: Vec<String> = output.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(found("powershell"), ["kplain.toml"]);
    for shell in ["zsh", "fish", "elvish"] {
        assert_eq!(found(shell), ["k reboot", "k$(reboot)", "k;reboot", "kplain.toml"], "{shell}");
    }
    assert_eq!(found("bash"), [r"k\ reboot", r"k\$\(reboot\)", r"k\;reboot", "kplain.toml"]);
}

#[test]
fn static_bash_script_leaves_file_names_to_bash() {
    let script = cli().run(&["completions", "bash"]).stdout;
    assert!(script.contains("--config)") && !script.contains("compgen -f"), "{script}");
    assert!(script.contains("-o bashdefault -o default"), "{script}");
}
