//! Launch commands that do not name the file they run: that file may not change after the launch was trusted either.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use super::hostile::Victim;

/// A project with one server, started by `entry`, and a harmless program in `file`.
fn project(entry: &Value, file: &str) -> Victim {
    let victim = Victim::new();
    victim.write(".mcp.json", &json!({"mcpServers": {"a": entry}}).to_string());
    let file = victim.write(file, "#!/bin/sh\nexit 1\n");
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    victim
}

fn trust(victim: &Victim) {
    let ran = victim.run(&["trust", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = victim.run(&["servers", "list"]);
    assert!(!ran.stderr.contains("changed since you trusted"), "{ran:?}");
}

#[test]
fn indirectly_launched_program_does_not_run_after_change() {
    let shell = |code: &str| json!({"command": "sh", "args": ["-c", code]});
    let folders: Vec<String> = (0..70).map(|number| format!("many/{number}")).collect();
    let python = "import subprocess; subprocess.run(['./' + 'run.sh'])";
    let perl = "exec './ru' . 'n.sh'";
    for (entry, file) in [
        (shell("cd d && cd d && cd d && cd d && ./run.sh"), "d/d/d/d/run.sh"),
        (shell(&format!("true {}; cd sub && ./run.sh", folders.join(" "))), "sub/run.sh"),
        (shell(&format!("true {}; ./ru?.sh", "x".repeat(5_000))), "run.sh"),
        (shell("printf ./ru%s.sh n | sh"), "run.sh"),
        (shell("ls d | sed s,^,./d/, | sh"), "d/run.sh"),
        (json!({"command": "python3", "args": ["-uc", python]}), "run.sh"),
        (json!({"command": "python3", "args": [format!("-c{python}")]}), "run.sh"),
        (json!({"command": "perl", "args": ["-we", perl]}), "run.sh"),
        (json!({"command": "perl", "args": ["-I.", "-MEvil", "-e1"]}), "Evil.pm"),
        (json!({"command": "git", "args": ["-c", "alias.x=!./ru?.sh", "x"]}), "run.sh"),
        (json!({"command": "flock", "args": ["/dev/null", "-c", "./ru?.sh"]}), "run.sh"),
        (json!({"command": "env", "args": ["-S", r"bash\_-c\_./ru[n].sh"]}), "run.sh"),
        (shell("./.g?t/run.sh"), ".git/run.sh"),
        (shell("./hidd?n/run.sh"), ".git/run.sh"),
        (shell("cd ../outside2 && ./run.sh"), "../outside2/run.sh"),
        (json!({"command": "./run.sh"}), "run.sh"),
    ] {
        let victim = project(&entry, file);
        for folder in &folders {
            fs::create_dir_all(victim.project().join(folder)).unwrap();
        }
        fs::create_dir_all(victim.project().join(".git")).unwrap();
        symlink(".git", victim.project().join("hidden")).unwrap();
        trust(&victim);
        match file {
            "Evil.pm" => drop(victim.write(file, &format!("system('{}');\n1;\n", victim.trace()))),
            _ => victim.evil_program(file),
        }
        let ran = victim.run(&["servers", "test"]);
        victim.assert_unharmed(&format!("{entry}"));
        assert!(ran.stderr.contains("changed since you trusted"), "{entry}: {ran:?}");
        // Control: the launch does run this program.
        let ran = victim.run(&["--trust", "servers", "test"]);
        assert!(victim.was_run(), "{entry}: {ran:?}");
    }
}

/// Bytecode that Python does not compare with the source, and native modules, which take precedence over it.
#[test]
fn does_not_run_bytecode_added_beside_trusted_module() {
    let entry =
        json!({"command": "python3", "args": ["-m", "server"], "env": {"PYTHONDONTWRITEBYTECODE": "1"}});
    let victim = project(&entry, "server.py");
    victim.write("server.py", "import sys\nsys.exit(1)\n");
    trust(&victim);
    let code = format!("import os; os.system('{}')\n", victim.trace());
    let source = victim.beside("evil.py");
    fs::write(&source, code).unwrap();
    let compile = "import py_compile, sys, importlib.util as u; py_compile.compile(sys.argv[1], cfile=u.cache_from_source(sys.argv[2]), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)";
    let target = victim.project().join("server.py");
    let compiled =
        std::process::Command::new("python3").args(["-c", compile]).args([&source, &target]).status();
    assert!(compiled.unwrap().success());
    let ran = victim.run(&["servers", "test"]);
    victim.assert_unharmed("bytecode");
    assert!(ran.stderr.contains("changed since you trusted"), "{ran:?}");
    let ran = victim.run(&["--trust", "servers", "test"]);
    assert!(victim.was_run(), "the control: Python runs the bytecode: {ran:?}");
}

/// Entries that name the file they run stay trusted when other files change.
#[test]
fn plain_launches_bind_only_their_files() {
    for entry in [
        json!({"command": "python3", "args": ["run.sh"]}),
        json!({"command": "npx", "args": ["-y", "some-server", "https://example.org/?a=1&b=2"]}),
        json!({"command": "node", "args": ["run.sh"]}),
        json!({"command": "docker", "args": ["run", "-i", "--rm", "image"]}),
        json!({"command": "uv", "args": ["run", "run.py"]}),
        json!({"command": "sh", "args": ["-c", "exec python3 run.sh"]}),
        json!({"command": "uvx", "args": ["some-server"]}),
    ] {
        let victim = project(&entry, "run.sh");
        trust(&victim);
        victim.write("notes/other.py", "x");
        let ran = victim.run(&["servers", "list"]);
        assert!(!ran.stderr.contains("changed since you trusted"), "{entry}: {ran:?}");
    }
}
