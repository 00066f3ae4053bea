//! Programs outside of the project whose arguments do not tell what they load: after a change of any file of the project they do
//! not start before the owner was asked again.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::hostile::Victim;

/// Installs a program outside of the project, which loads a file that no argument names.
pub(super) fn installed(victim: &Victim, name: &str) -> PathBuf {
    let folder = victim.beside("tools");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    fs::write(&file, "#!/bin/sh\n. ./conf/load.inc\nexit 1\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn servers(victim: &Victim, entry: &Value) {
    victim.write(".mcp.json", &json!({"mcpServers": {"a": entry}}).to_string());
}

#[track_caller]
fn trust(victim: &Victim) {
    let ran = victim.run(&["trust", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = victim.run(&["servers", "list"]);
    assert!(!ran.stderr.contains("changed since you trusted"), "{ran:?}");
}

/// Changes the file that no argument names.
#[track_caller]
fn assert_bound(victim: &Victim, entry: &str) {
    victim.write("conf/load.inc", &format!("{}\n", victim.trace()));
    let ran = victim.run(&["servers", "test"]);
    victim.assert_unharmed(entry);
    assert!(ran.stderr.contains("changed since you trusted"), "{entry}: {ran:?}");
    // Control: the launch does load the file.
    let ran = victim.run(&["--trust", "servers", "test"]);
    assert!(victim.was_run(), "{entry}: {ran:?}");
}

#[test]
fn programs_and_options_that_are_not_known_bind_the_project() {
    for launch in [
        "pipenv run server",
        "mise exec -- server",
        "mise x server",
        "mise run server",
        "tox",
        "hatch run server",
        "deno task start",
        "deno run start",
        "uv run server",
        "uv run --env-file x server.py",
        "podman unshare server",
        "docker compose up",
        "docker --config d run image",
        "docker run -i --rm -v .:/app image sh /app/server.sh",
        "docker run --volume ./conf:/conf image",
        "docker run -v ${PWD}:/app image",
        "podman run --mount type=bind,src=${PWD},dst=/app image",
        "nerdctl run -v/:/host image",
        "Rscript server.R",
        "npx -c server",
        "npx ./server",
        "npx gulp",
        "npx -y -w . acme-mcp",
        "npm --prefix X exec server",
        "npm --prefix X start",
        "uvx --from . acme-mcp",
        "uvx tox",
        "uvx --config-file x acme-mcp",
        "nix run",
        "just",
        "task serve",
        "rake",
        "make serve",
        "cargo run",
        "go run .",
        "gradle run",
        "direnv exec . server",
        "acme-unknown-server",
        "python3 -m pytest",
        "node --run start",
        "node --env-file=x s.js",
        "bun --preload x.js s.js",
        "sh -ic x",
    ] {
        let victim = Victim::new();
        let mut words = launch.split(' ');
        let program = installed(&victim, words.next().unwrap());
        let args: Vec<&str> = words.collect();
        servers(&victim, &json!({"command": program, "args": args}));
        victim.write("conf/load.inc", "true\n");
        trust(&victim);
        assert_bound(&victim, launch);
    }
}

/// `pipx run` prefers programs in `__pypackages__` to packages of the index.
#[test]
fn program_that_pipx_prefers_does_not_run_after_trust() {
    let victim = Victim::new();
    let pipx = installed(&victim, "pipx");
    let program = "__pypackages__/3.12/lib/bin/acme-mcp";
    fs::write(&pipx, format!("#!/bin/sh\ntest -x {program} && exec ./{program}\nexit 1\n")).unwrap();
    servers(&victim, &json!({"command": pipx, "args": ["run", "acme-mcp"]}));
    trust(&victim);
    victim.evil_program(program);
    let ran = victim.run(&["servers", "test"]);
    victim.assert_unharmed("__pypackages__");
    assert!(ran.stderr.contains("changed since you trusted"), "{ran:?}");
    // The same for a change of a program that was trusted.
    victim.write(program, "#!/bin/sh\nexit 1\n");
    trust(&victim);
    victim.evil_program(program);
    victim.run(&["servers", "test"]);
    victim.assert_unharmed("a changed program in __pypackages__");
    victim.run(&["--trust", "servers", "test"]);
    assert!(victim.was_run(), "the control");
}

/// The program behind a link of the project, or behind another name outside, decides.
#[test]
fn links_with_other_names_bind_the_project() {
    for (name, link) in [("make", "node"), ("make", "tool"), ("just", "python3"), ("unknown", "npx")] {
        let victim = Victim::new();
        let program = installed(&victim, name);
        symlink(&program, victim.project().join(link)).unwrap();
        servers(&victim, &json!({"command": format!("./{link}"), "args": ["s.js"]}));
        victim.write("conf/load.inc", "true\n");
        victim.write("s.js", "");
        trust(&victim);
        assert_bound(&victim, &format!("./{link} -> {name}"));
    }
    let victim = Victim::new();
    let program = installed(&victim, "make");
    let other = program.with_file_name("build-tool");
    symlink(&program, &other).unwrap();
    servers(&victim, &json!({"command": other}));
    victim.write("conf/load.inc", "true\n");
    trust(&victim);
    assert_bound(&victim, "a link outside of the project");
}

/// A script outside of the project is an unknown program, whichever interpreter runs it.
#[test]
fn scripts_outside_of_the_project_bind_the_project() {
    let victim = Victim::new();
    let program = installed(&victim, "acme-cli");
    servers(&victim, &json!({"command": "sh", "args": [program]}));
    victim.write("conf/load.inc", "true\n");
    trust(&victim);
    assert_bound(&victim, "sh /…/acme-cli");
}

/// Names in the configuration of git are chosen by others: a shell could be made to run them.
#[test]
fn text_that_git_writes_is_bound_to_launches_of_no_known_form() {
    let victim = Victim::new();
    servers(&victim, &json!({"command": "sh", "args": ["-c", ". ./.g?t/packed-re?s"]}));
    victim.write(".git/HEAD", "ref: refs/heads/main\n");
    victim.write(".git/packed-refs", "true\n");
    trust(&victim);
    victim.write(".git/packed-refs", &format!("{}\n", victim.trace()));
    victim.run(&["servers", "test"]);
    victim.assert_unharmed("packed-refs");
    victim.run(&["--trust", "servers", "test"]);
    assert!(victim.was_run(), "the control");
}

#[test]
fn project_with_too_many_files_is_not_bound_in_part() {
    let victim = Victim::new();
    servers(&victim, &json!({"command": "uvx", "args": ["--from", ".", "acme-mcp"]}));
    for number in 0..10_001 {
        victim.write(&format!("many/{}/{number}.txt", number % 100), "");
    }
    let refused = victim.run(&["trust", "--yes"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("more than 10000 files"), "{refused:?}");
    assert!(refused.stderr.contains("toolhub servers add"), "it says what to do: {refused:?}");
}

/// A program in a folder of `PATH` that lies in the project is bound, also if a script or a runner starts it by its name.
#[test]
fn programs_in_path_of_project_are_bound() {
    let victim = Victim::new();
    servers(&victim, &json!({"command": "sh", "args": ["run.sh"]}));
    victim.write("run.sh", "helper\nexit 1\n");
    let path = format!("{}:{}", victim.project().join("bin").display(), std::env::var("PATH").unwrap());
    let run = |args: &[&str]| {
        let mut command = victim.command_in(&victim.project(), args);
        super::hostile::ended(command.env("PATH", &path).spawn().unwrap(), args)
    };
    assert_eq!(run(&["trust", "--yes"]).code, Some(0));
    victim.evil_program("bin/helper");
    let ran = run(&["servers", "test"]);
    victim.assert_unharmed("a program in PATH");
    assert!(ran.stderr.contains("changed since you trusted"), "{ran:?}");
    run(&["--trust", "servers", "test"]);
    assert!(victim.was_run(), "the control");
}
