//! Files that a trusted launch loads without naming them: packages, interpreters behind links and first lines, folders of
//! variables. They may not be added or changed after the launch was trusted.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use super::hostile::Victim;

/// A launch, and the change of the project that makes it run other code.
struct Attack {
    entry: Value,
    /// Prepares the project before it is trusted.
    before: fn(&Victim),
    /// Adds or changes a file.
    after: fn(&Victim),
}

/// `npx` without a registry.
fn npx(package: &str) -> Value {
    json!({"command": "npx", "args": ["-y", package], "env": {"npm_config_offline": "true"}})
}

/// JavaScript that leaves a trace.
fn javascript(victim: &Victim) -> String {
    format!("#!/usr/bin/env node\nrequire('child_process').execSync('{}');\n", victim.trace())
}

fn perl(victim: &Victim) -> String {
    format!("system('{}');\n1;\n", victim.trace())
}

fn executable(victim: &Victim, path: &str, text: &str) {
    let file = victim.write(path, text);
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

fn link(victim: &Victim, target: &str, path: &str) {
    let path = victim.project().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, path).unwrap();
}

/// Installs a package whose program is `bin`.
fn package(victim: &Victim, name: &str, bin: &str) {
    let manifest = json!({"name": name, "version": "1.0.0", "bin": {bin: "i.js"}});
    victim.write(&format!("node_modules/{name}/package.json"), &manifest.to_string());
    executable(victim, &format!("node_modules/{name}/i.js"), &javascript(victim));
    link(victim, &format!("../{name}/i.js"), &format!("node_modules/.bin/{bin}"));
}

/// Adds a file that every Python of the machine loads at startup from this folder.
fn path_files(victim: &Victim, folder: &str) {
    for minor in 8..16 {
        let line = format!("import os; os.system('{}')\n", victim.trace());
        victim.write(&format!("{folder}/lib/python3.{minor}/site-packages/a.pth"), &line);
    }
}

#[track_caller]
fn check(attacks: &[Attack]) {
    for Attack { entry, before, after } in attacks {
        let victim = Victim::new();
        victim.write(".mcp.json", &json!({"mcpServers": {"a": entry}}).to_string());
        before(&victim);
        let ran = victim.run(&["trust", "--yes"]);
        assert_eq!(ran.code, Some(0), "{entry}: {ran:?}");
        // Control: what nothing names may change.
        victim.write("notes/other.md", "x");
        let is_whole = victim.run(&["servers", "list"]).stderr.contains("changed since you trusted");
        if is_whole {
            assert_eq!(victim.run(&["trust", "--yes"]).code, Some(0), "{entry}");
        }
        victim.run(&["servers", "test"]);
        victim.assert_unharmed(&format!("{entry} before the change"));
        if victim.run(&["servers", "list"]).stderr.contains("changed since you trusted") {
            // The program itself wrote a file into a bound folder.
            assert_eq!(victim.run(&["trust", "--yes"]).code, Some(0), "{entry}");
        }
        after(&victim);
        let ran = victim.run(&["servers", "test"]);
        victim.assert_unharmed(&format!("{entry}"));
        assert!(ran.stderr.contains("changed since you trusted"), "{entry}: {ran:?}");
        // Control: the launch does run the added or changed file.
        let ran = victim.run(&["--trust", "servers", "test"]);
        assert!(victim.was_run(), "{entry}: {ran:?}");
    }
}

#[test]
fn packages_that_appear_after_trust_do_not_run() {
    let node = |option: &str| json!({"command": "node", "args": ["-r", option, "s.js"]});
    let script: fn(&Victim) = |victim| drop(victim.write("s.js", ""));
    check(&[
        Attack {
            entry: node("dotenv/config"),
            before: script,
            after: |victim| drop(victim.write("node_modules/dotenv/config.js", &javascript(victim))),
        },
        Attack {
            entry: node("@acme/reg"),
            before: |victim| {
                victim.write("s.js", "");
                victim.write("node_modules/@acme/reg/index.js", "");
            },
            after: |victim| drop(victim.write("node_modules/@acme/reg/index.js", &javascript(victim))),
        },
        Attack {
            entry: json!({"command": "node", "args": ["s.js"], "env": {"NODE_OPTIONS": "--require=reg/x"}}),
            before: |victim| {
                victim.write("s.js", "");
                victim.write("node_modules/reg/x.js", "");
            },
            after: |victim| drop(victim.write("node_modules/reg/x.js", &javascript(victim))),
        },
        Attack {
            entry: npx("@acme/server"),
            before: |victim| drop(victim.write("package.json", "{}")),
            after: |victim| package(victim, "@acme/server", "server"),
        },
        Attack {
            entry: npx("acme-server@1.0.0"),
            before: |victim| drop(victim.write("package.json", "{}")),
            after: |victim| package(victim, "acme-server", "other"),
        },
    ]);
}

/// A package of a parent folder within the repository.
#[test]
fn packages_of_parent_folders_do_not_run_after_change() {
    let victim = Victim::new();
    let sub = victim.project().join("sub");
    victim.write(".git/HEAD", "ref: refs/heads/main\n");
    victim.write("package.json", "{}");
    let entry = npx("acme-server");
    victim.write("sub/.mcp.json", &json!({"mcpServers": {"a": entry}}).to_string());
    assert_eq!(victim.run_in(&sub, &["trust", "--yes"]).code, Some(0));
    package(&victim, "acme-server", "acme-server");
    let ran = victim.run_in(&sub, &["servers", "test"]);
    victim.assert_unharmed("a package of the parent folder");
    assert!(ran.stderr.contains("changed since you trusted"), "{ran:?}");
    victim.run_in(&sub, &["--trust", "servers", "test"]);
    assert!(victim.was_run(), "the control: it is the package that runs");
}

#[test]
fn launches_behind_links_and_first_lines_do_not_run_changed_files() {
    let evil = |command: &str, args: Value| json!({"command": command, "args": args});
    let module: fn(&Victim) = |victim| {
        link(victim, "/usr/bin/perl", "tool");
        victim.write("Evil.pm", "1;");
    };
    let replaced: fn(&Victim) = |victim| drop(victim.write("Evil.pm", &perl(victim)));
    check(&[
        Attack {
            entry: evil("./docker", json!(["-c", ". ./la?er.sh"])),
            before: |victim| {
                link(victim, "/bin/sh", "docker");
                victim.write("laxer.sh", "true\n");
            },
            after: |victim| drop(victim.write("laxer.sh", &victim.trace())),
        },
        Attack {
            entry: evil("env", json!(["./tool", "-I.", "-MEvil", "-e1"])),
            before: module,
            after: replaced,
        },
        Attack {
            entry: evil("nice", json!(["-n", "1", "./tool", "-I.", "-MEvil", "-e1"])),
            before: module,
            after: replaced,
        },
        Attack { entry: evil("sh", json!(["-c", "./tool -I. -MEvil -e1"])), before: module, after: replaced },
        Attack {
            entry: json!({"command": "perltool", "args": ["-I.", "-MEvil", "-e1"], "env": {"PATH": "./bin:/usr/bin:/bin"}}),
            before: |victim| {
                link(victim, "/usr/bin/perl", "bin/perltool");
                victim.write("Evil.pm", "1;");
            },
            after: replaced,
        },
        Attack {
            entry: evil("./s.sh", json!([])),
            before: |victim| {
                executable(victim, "s.sh", "#!./interp\n");
                executable(victim, "interp", "#!/bin/sh\ntrue\n");
            },
            after: |victim| victim.evil_program("interp"),
        },
        Attack {
            entry: evil("./s.sh", json!([])),
            before: |victim| {
                executable(victim, "s.sh", "#!/usr/bin/env -S ./interp x\n");
                executable(victim, "interp", "#!/bin/sh\ntrue\n");
            },
            after: |victim| victim.evil_program("interp"),
        },
    ]);
}

#[test]
fn folders_that_variables_name_are_bound() {
    let python =
        |name: &str| json!({"command": "/usr/bin/python3", "args": ["s.py"], "env": {name: "./data"}});
    let script: fn(&Victim) = |victim| {
        victim.write("s.py", "pass");
        victim.write("data/readme", "");
    };
    check(&[
        Attack { entry: python("HOME"), before: script, after: |victim| path_files(victim, "data/.local") },
        Attack {
            entry: python("PYTHONUSERBASE"),
            before: script,
            after: |victim| path_files(victim, "data"),
        },
        Attack {
            entry: json!({"command": "bash", "args": ["-l", "run.sh"], "env": {"HOME": "./h"}}),
            before: |victim| drop(victim.write("run.sh", "true\n")),
            after: |victim| drop(victim.write("h/.profile", &victim.trace())),
        },
        Attack {
            entry: json!({"command": "perl", "args": ["s.pl"], "env": {"PERLLIB": "./lib"}}),
            before: |victim| drop(victim.write("s.pl", "use strict; 1;")),
            after: |victim| drop(victim.write("lib/strict.pm", &format!("package strict; {}", perl(victim)))),
        },
        Attack {
            entry: json!({"command": ".venv/bin/python", "args": ["s.py"]}),
            before: |victim| {
                link(victim, "/usr/bin/python3", ".venv/bin/python");
                victim.write(".venv/pyvenv.cfg", "home = /usr/bin\n");
                victim.write("s.py", "pass");
            },
            after: |victim| path_files(victim, ".venv"),
        },
    ]);
    // Control: folders with data stay unbound.
    let victim = Victim::new();
    let entry = json!({"command": "/usr/bin/python3", "args": ["s.py"], "env": {"DATA_DIR": "./data"}});
    victim.write(".mcp.json", &json!({"mcpServers": {"a": entry}}).to_string());
    script(&victim);
    assert_eq!(victim.run(&["trust", "--yes"]).code, Some(0));
    victim.write("data/more", "");
    assert!(!victim.run(&["servers", "list"]).stderr.contains("changed since"));
}

/// A module that Python loads at startup from a folder of `PYTHONPATH`.
fn startup_module(victim: &Victim, folder: &str) {
    let text = format!("import os; os.system('{}')\n", victim.trace());
    victim.write(&format!("{folder}/sitecustomize.py"), &text);
}

fn entry(command: &str, args: &[&str]) -> Value {
    json!({"command": command, "args": args})
}

fn attack(entry: Value, before: fn(&Victim), after: fn(&Victim)) -> Attack {
    Attack { entry, before, after }
}

/// Variables that the command line or the first line of a script sets, in place of the entry.
#[test]
fn folders_that_assigned_variables_name_are_bound() {
    let python: fn(&Victim) = |victim| {
        victim.write("s.py", "pass");
        victim.write("pp/keep.py", "");
    };
    let without_folder: fn(&Victim) = |victim| drop(victim.write("s.py", "pass"));
    let perl_script: fn(&Victim) = |victim| drop(victim.write("s.pl", "use strict; 1;"));
    let adds_module: fn(&Victim) = |victim| startup_module(victim, "pp");
    let adds_strict: fn(&Victim) =
        |victim| drop(victim.write("lib/strict.pm", &format!("package strict; {}", perl(victim))));
    let interpreter = "/usr/bin/python3";
    check(&[
        attack(entry("env", &["PYTHONPATH=./pp", interpreter, "s.py"]), python, adds_module),
        attack(entry("nohup", &["env", "PYTHONPATH=pp", interpreter, "s.py"]), without_folder, adds_module),
        attack(entry("sh", &["-c", "PYTHONPATH=./pp exec /usr/bin/python3 s.py"]), python, adds_module),
        attack(entry("sh", &["-c", "export PYTHONPATH=./pp; /usr/bin/python3 s.py"]), python, adds_module),
        attack(entry("bash", &["-c", "PYTHONPATH+=./pp /usr/bin/python3 s.py"]), python, adds_module),
        attack(
            entry("env", &["${TOOLHUB_UNSET_VARIABLE:-PYTHONPATH=./pp}", interpreter, "s.py"]),
            python,
            adds_module,
        ),
        attack(entry("env", &["-u", "X", "PYTHONPATH=./pp", interpreter, "s.py"]), python, adds_module),
        attack(entry("env", &["PERLLIB=./lib", "perl", "s.pl"]), perl_script, adds_strict),
        attack(
            entry("./run", &[]),
            |victim| executable(victim, "run", "#!/usr/bin/env -S PERLLIB=./lib perl\nuse strict; 1;\n"),
            adds_strict,
        ),
        attack(
            entry("env", &["NODE_PATH=./np", "node", "-r", "zz", "s.js"]),
            |victim| drop(victim.write("s.js", "")),
            |victim| drop(victim.write("np/zz/index.js", &javascript(victim))),
        ),
        attack(
            entry("env", &["HOME=./h", "bash", "-l", "run.sh"]),
            |victim| drop(victim.write("run.sh", "true\n")),
            |victim| drop(victim.write("h/.profile", &victim.trace())),
        ),
        attack(
            entry("env", &["PATH=./bin:/usr/bin:/bin", "sh", "run.sh"]),
            |victim| {
                victim.write("run.sh", "greet\n");
                executable(victim, "bin/greet", "#!/bin/sh\ntrue\n");
            },
            |victim| victim.evil_program("bin/greet"),
        ),
    ]);
}

/// The control of the attacks: an unchanged folder still starts, and data may change. The review shows the variables.
#[test]
fn launches_with_assigned_variables_start_and_are_shown() {
    for (command, args) in [
        ("env", &["DATA_DIR=./data", "PYTHONPATH=./pp", "/usr/bin/python3", "s.py"][..]),
        ("sh", &["-c", "DATA_DIR=./data PYTHONPATH=./pp exec /usr/bin/python3 s.py"]),
        ("./run", &[]),
    ] {
        let victim = Victim::new();
        let entry = entry(command, args);
        victim.write(".mcp.json", &json!({"mcpServers": {"a": entry}}).to_string());
        victim.write("s.py", &format!("import os; os.system('{}')\n", victim.trace()));
        victim.write("pp/keep.py", "");
        victim.write("data/readme", "");
        let first = "#!/usr/bin/env -S DATA_DIR=./data PYTHONPATH=./pp /usr/bin/python3";
        executable(&victim, "run", &format!("{first}\nimport os; os.system('{}')\n", victim.trace()));
        let shown = victim.run(&["trust"]).stdout;
        assert!(shown.contains("PYTHONPATH=./pp") && shown.contains("`a` sets `PYTHONPATH`"), "{shown}");
        assert_eq!(victim.run(&["trust", "--yes"]).code, Some(0), "{entry}");
        let ran = victim.run(&["servers", "test"]);
        assert!(victim.was_run(), "{entry}: {ran:?}");
        if command != "./run" {
            victim.write("data/more", "");
            let listed = victim.run(&["servers", "list"]).stderr;
            assert!(!listed.contains("changed since"), "{entry}: {listed}");
        }
    }
}

#[test]
fn task_runners_bind_the_project_and_the_review_says_what_is_not_bound() {
    let npm: fn(&Victim) = |victim| {
        victim.write("package.json", r#"{"scripts": {"start": "node s.js"}}"#);
        victim.write("s.js", "");
    };
    check(&[
        Attack {
            entry: json!({"command": "make", "args": ["run"]}),
            before: |victim| drop(victim.write("Makefile", "-include local.mk\nrun:\n\ttrue\n")),
            after: |victim| drop(victim.write("local.mk", &format!("X:=$(shell {})\n", victim.trace()))),
        },
        Attack {
            entry: json!({"command": "npm", "args": ["start"]}),
            before: npm,
            after: |victim| drop(victim.write("s.js", &javascript(victim))),
        },
    ]);
    let victim = Victim::new();
    let entry = json!({"command": "npm", "args": ["start"]});
    victim.write(".mcp.json", &json!({"mcpServers": {"a": entry}}).to_string());
    npm(&victim);
    let shown = victim.run(&["trust"]).stdout;
    assert!(shown.contains("runs tasks of the project") && shown.contains("`node_modules`"), "{shown}");
    // Installed packages may change, as they do in each build.
    assert_eq!(victim.run(&["trust", "--yes"]).code, Some(0));
    victim.write("node_modules/other/index.js", "");
    assert!(!victim.run(&["servers", "list"]).stderr.contains("changed since"));
}
