//! Programs that the hub starts for itself (browser, keyring, sandbox) are not taken from a project folder, whatever `PATH` contains.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;

use crate::hostile::Victim;

/// Names of programs that the hub may start.
const PROGRAMS: [&str; 8] = ["xdg-open", "open", "secret-tool", "bwrap", "python3", "sh", "node", "git"];
/// A part of the link that opens the console.
const LINK: &str = "/console/open/";
const SERVER_WITH_LOGIN: &str = "[[servers]]\nid = \"a\"\nurl = \"http://127.0.0.1:1/mcp\"\n\
    [servers.oauth]\ngrant = \"client_credentials\"\nclient_id = \"x\"\nclient_secret = \"y\"\n";

#[test]
fn programs_of_the_hub_are_not_found_in_a_clone() {
    let victim = Victim::new();
    for folder in ["", "bin/"] {
        PROGRAMS.iter().for_each(|program| victim.evil_program(&format!("{folder}{program}")));
    }
    victim.write_own_config(SERVER_WITH_LOGIN);
    let system = std::env::var("PATH").unwrap();
    let inside = victim.project().join("bin").display().to_string();
    for path in ["bin", "", ".", "./bin", &inside] {
        let command = |args: &[&str]| {
            let mut command = victim.command_in(&victim.project(), args);
            command.env("PATH", format!("{path}:{system}"));
            command.env("DISPLAY", ":0").env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nothing");
            command
        };
        let commands =
            [&["tools", "--refresh"][..], &["servers", "login", "a"], &["doctor"], &["skills", "list"]];
        for args in commands {
            command(args).output().unwrap();
            victim.assert_unharmed(&format!("`{path}` in PATH, {args:?}"));
        }
        let mut console = command(&["console", "--bind", "127.0.0.1:0"]).spawn().unwrap();
        let lines = BufReader::new(console.stderr.take().unwrap()).lines();
        let link = lines.map_while(Result::ok).find(|line| line.contains(LINK));
        // The browser is opened after the link is printed.
        std::thread::sleep(std::time::Duration::from_millis(300));
        console.kill().unwrap();
        console.wait().unwrap();
        assert!(link.is_some(), "`{path}` in PATH");
        victim.assert_unharmed(&format!("`{path}` in PATH, console"));
    }
}

#[test]
fn browser_of_the_system_is_opened() {
    let victim = Victim::new();
    std::fs::create_dir_all(victim.project()).unwrap();
    let folder = victim.beside("system");
    std::fs::create_dir(&folder).unwrap();
    let opened = victim.beside("opened");
    let opener = folder.join("xdg-open");
    std::fs::write(&opener, format!("#!/bin/sh\necho \"$1\" > '{}'\n", opened.display())).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut console = victim.command_in(&victim.project(), &["console", "--bind", "127.0.0.1:0"]);
    console
        .env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()))
        .env("DISPLAY", ":0");
    let mut console = console.spawn().unwrap();
    let since = std::time::Instant::now();
    let is_opened = || std::fs::read_to_string(&opened).is_ok_and(|address| address.contains(LINK));
    while !is_opened() && since.elapsed() < std::time::Duration::from_secs(30) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    console.kill().unwrap();
    console.wait().unwrap();
    assert!(is_opened(), "the browser was not opened");
}
