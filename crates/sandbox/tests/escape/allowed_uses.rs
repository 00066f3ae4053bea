//! Ordinary programs work in the sandbox: users would switch off a sandbox that breaks them.

use std::fs;
use std::process::Command;

use tempfile::TempDir;
use toolhub_sandbox::{Isolation, SandboxError, SandboxPolicy, StopReason, confine, support};

use crate::harness::{ISOLATIONS, interpreter, policy, python, run};

#[test]
fn all_protections_are_available() {
    let support = support();
    assert_eq!(support.missing(Isolation::Builtin), [], "{support:#?}");
    assert_eq!(support.missing(Isolation::Bubblewrap), [], "{support:#?}");
}

#[test]
fn python_works() {
    let code = r#"
import concurrent.futures, json, os, pathlib, random, shutil, sqlite3, ssl, subprocess, tempfile, threading, uuid, zoneinfo, datetime
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "a.txt"); path.write_text("汉字"); shutil.copy(path, folder + "/b.txt"); os.chmod(path, 0o600)
    assert pathlib.Path(folder, "b.txt").read_text() == "汉字"
    db = sqlite3.connect(folder + "/x.db"); db.execute("create table t(a)"); db.commit(); db.close()
assert subprocess.run(["bash", "-c", "echo $((6 * 7)) | tr 4 5"], capture_output=True, text=True, check=True).stdout == "52\n"
with concurrent.futures.ThreadPoolExecutor() as pool: assert sum(pool.map(lambda n: n * n, range(10))) == 285
assert os.cpu_count() > 0 and len(os.urandom(8)) == 8 and uuid.uuid4()
ssl.create_default_context()
datetime.datetime.now(zoneinfo.ZoneInfo("Asia/Shanghai"))
print(json.dumps({"done": True}))
"#;
    for isolation in ISOLATIONS {
        run(&policy(isolation), python(code, &[])).printed(r#"{"done": true}"#);
    }
}

#[test]
fn node_works() {
    let code = r#"
const fs = require('fs'), child = require('child_process'), { Worker } = require('worker_threads');
fs.writeFileSync('a.txt', '汉字');
if (fs.readFileSync('a.txt', 'utf8') !== '汉字') throw new Error('file');
if (child.execFileSync('sh', ['-c', 'echo hello']).toString() !== 'hello\n') throw new Error('child');
require('crypto').randomBytes(8); require('os').cpus();
const worker = new Worker('require("worker_threads").parentPort.postMessage(42)', { eval: true });
worker.on('message', (n) => console.log(n));
"#;
    for isolation in ISOLATIONS {
        let mut command = Command::new(interpreter("node"));
        command.args(["-e", code]);
        run(&policy(isolation), command).printed("42");
    }
}

/// A shell waits for its children one by one while others exit. Each `wait` must find its child.
#[test]
fn shells_can_start_many_short_processes() {
    let code =
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do x=$(echo a | cat | wc -l); printf '%s,' $x; done";
    for isolation in ISOLATIONS.into_iter().chain([Isolation::Auto]) {
        for _ in 0..4 {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", code]);
            run(&policy(isolation), command).printed("1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,");
        }
    }
}

#[test]
fn shells_work() {
    let code = r#"set -euo pipefail
printf 'b\na\n' > list; sort list > sorted; chmod 700 sorted
diff <(printf 'a\nb\n') sorted
while read -r line; do echo "$line"; done < <(cat sorted) | paste -sd+
"#;
    for isolation in ISOLATIONS {
        let mut command = Command::new(interpreter("bash"));
        command.args(["-c", code]);
        run(&policy(isolation), command).printed("a+b");
    }
}

#[test]
fn grants_give_access() {
    for isolation in ISOLATIONS {
        let (read, write) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::write(read.path().join("in"), "42").unwrap();
        let code = "import os, sys\nread, write = sys.argv[1:]\nopen(write + '/out', 'w').write(open(read + '/in').read())\nos.rename(write + '/out', write + '/end')\nprint(os.environ['GIVEN'])";
        let policy = SandboxPolicy {
            read: vec![read.path().into()],
            write: vec![write.path().into()],
            environment: vec![("GIVEN".into(), "yes".into())],
            ..policy(isolation)
        };
        let arguments = [read.path().to_str().unwrap(), write.path().to_str().unwrap()];
        run(&policy, python(code, &arguments)).printed("yes");
        assert_eq!(fs::read_to_string(write.path().join("end")).unwrap(), "42");
        // The working directory of the command may be a granted folder.
        let mut command = python("open('here', 'w').write('x')\nprint('done')", &[]);
        command.current_dir(write.path());
        run(&policy, command).printed("done");
        assert!(write.path().join("here").exists());
    }
}

#[test]
fn does_not_attribute_program_failures_to_sandbox() {
    for isolation in ISOLATIONS {
        for code in ["raise ValueError('no such column')", "import sys\nsys.exit(3)", "open('absent.txt')"] {
            let result = run(&policy(isolation), python(code, &[]));
            assert!(!result.status.success() && result.stop.is_none(), "{result:#?}");
        }
    }
}

#[test]
fn reports_missing_grant() {
    for isolation in ISOLATIONS {
        let policy = SandboxPolicy { read: vec!["/not/there".into()], ..policy(isolation) };
        let error = confine(&policy, &mut Command::new("true")).unwrap_err();
        assert!(
            matches!(error, SandboxError::Grant { .. }) && error.to_string().contains("`/not/there`"),
            "{error}"
        );
        assert!(error.chinese().contains("`/not/there`"));
    }
}

#[test]
fn reports_missing_program() {
    let mut command = Command::new("/usr/bin/no-such-program");
    let builtin = SandboxPolicy { isolation: Isolation::Builtin, ..SandboxPolicy::default() };
    let _confinement = confine(&builtin, &mut command).unwrap();
    assert_eq!(command.spawn().unwrap_err().kind(), std::io::ErrorKind::NotFound);
    let wrapped = SandboxPolicy { isolation: Isolation::Bubblewrap, ..SandboxPolicy::default() };
    let result = run(&wrapped, Command::new("/usr/bin/no-such-program"));
    assert!(!result.status.success() && result.stderr.contains("no-such-program"), "{result:#?}");
    assert!(!matches!(result.stop, Some(StopReason::File(_))), "{result:#?}");
}
