//! Tests of the files that a launch is bound to.

use super::*;

#[test]
fn finds_files_in_commands_flags_shell_words_modules_and_links() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for file in
        ["a.sh", "b.js", "c/index.js", "pkg/__main__.py", "node_modules/.bin/mcp-tool", "e.sh", "f.so"]
    {
        std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        std::fs::write(root.join(file), file).unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("/bin/sh", root.join("shell")).unwrap();
    let site = LaunchSite { folder: root.clone(), project: root.clone() };
    let check = |command: &str, args: &[&str], expect: &[&str]| {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let env = vec![("LD_PRELOAD".to_owned(), "./f.so".to_owned())];
        let spec = StdioSpec { command: command.to_owned(), args, env, ..StdioSpec::default() };
        let found = site.named_files(&spec).unwrap();
        let names: Vec<String> =
            found.keys().map(|file| file.strip_prefix(&root).unwrap().display().to_string()).collect();
        let mut expect = [expect, &["f.so"]].concat();
        expect.sort_unstable();
        assert_eq!(names, expect, "{command} {args:?}", args = spec.args);
    };
    check("./a.sh", &[], &["a.sh"]);
    check("node", &["--require=./b.js", "c"], &["b.js", "c/index.js"]);
    check("sh", &["-c", "cd . && ./a.sh;./e.sh"], &["a.sh", "e.sh"]);
    check("python3", &["-m", "pkg"], &["pkg/__main__.py"]);
    check("npx", &["-y", "mcp-tool"], &["node_modules/.bin/mcp-tool"]);
    #[cfg(unix)]
    check("./shell", &[], &["shell"]);
    check("/bin/sh", &[], &[]);
}

/// The hashed file is the one that is started, however the entry names it.
#[cfg(unix)]
#[test]
fn binds_the_started_program() {
    let outer = tempfile::tempdir().unwrap();
    let top = outer.path().canonicalize().unwrap();
    let root = top.join("project");
    for file in [
        "run.py",
        "a/run.py",
        "a/b/x",
        "bin/python3",
        "dist/index.js",
        "index.js",
        "srv/package.json",
        "srv/lib/m.js",
        "sub/run.py",
        "sub/src/run.py",
        "sub/Makefile",
        "package.json",
        "pkg/__init__.py",
        "pkg/srv.py",
        "my run.py",
        "../out.py",
        "../outside/run.py",
        "d/d/d/d/run.py",
        ".git/run.py",
        "sub/site.py",
        "node_modules/hook/index.js",
    ] {
        std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        std::fs::write(root.join(file), r#"{"main": "lib/m"}"#).unwrap();
    }
    std::os::unix::fs::symlink("a/b", root.join("link")).unwrap();
    let site = LaunchSite { folder: root.clone(), project: root.clone() };
    std::os::unix::fs::symlink(".git", root.join("hidden")).unwrap();
    let path = [("PATH", "./bin:/usr/bin:/bin")];
    let many: Vec<String> = (0..=MAX_BASES).map(|number| format!("many/{number}")).collect();
    for folder in &many {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    let many_folders = format!("echo {}; cd sub && ./run.py", many.join(" "));
    let mut by_name = 0;
    let long_word = "x".repeat(MAX_WORD_BYTES + 1);
    for (command, args, env, started) in [
        ("link/../run.py", vec![], vec![], "a/run.py"),
        ("python3", vec!["link/../run.py"], vec![], "a/run.py"),
        ("python3", vec!["x.py"], path.to_vec(), "bin/python3"),
        ("env", vec!["python3"], path.to_vec(), "bin/python3"),
        ("node", vec!["dist/index"], vec![], "dist/index.js"),
        ("node", vec!["."], vec![], "index.js"),
        ("node", vec!["srv"], vec![], "srv/lib/m.js"),
        ("sh", vec!["-c", "cd sub && exec ./run.py"], vec![], "sub/run.py"),
        ("sh", vec!["-c", "cd sub && exec python3 src/run.py"], vec![], "sub/src/run.py"),
        ("sh", vec!["-c", "exec \"$PWD/run.py\""], vec![], "run.py"),
        ("sh", vec!["-c", "./su?/ru?.py"], vec![], "sub/run.py"),
        ("bash", vec!["-lc", "./my\\ run.py"], vec![], "my run.py"),
        ("env", vec!["-C", "sub", "./run.py"], vec![], "sub/run.py"),
        ("env", vec!["MODE=a", "./run.py"], vec![], "run.py"),
        ("env", vec!["PYTHONPATH=./sub", "python3", "run.py"], vec![], "sub/site.py"),
        ("nohup", vec!["env", "HOME=sub", "python3", "run.py"], vec![], "sub/site.py"),
        ("sh", vec!["-c", "PYTHONPATH=$PWD/sub exec python3 run.py"], vec![], "sub/site.py"),
        ("env", vec!["PATH=./bin:/usr/bin:/bin", "python3", "run.py"], vec![], "bin/python3"),
        ("sh", vec!["-c", "export PYTHONPATH=./sub; python3 run.py"], vec![], "sub/site.py"),
        ("sh", vec!["-c", "PYTHONPATH=../outside exec python3 run.py"], vec![], "../outside/run.py"),
        ("make", vec!["-s", "-C", "sub"], vec![], "sub/Makefile"),
        ("env", vec!["npm", "start"], vec![], "package.json"),
        ("sh", vec!["-c", "npm -s start"], vec![], "package.json"),
        ("python3", vec!["-m", "pkg.srv"], vec![], "pkg/__init__.py"),
        ("../out.py", vec![], vec![], "../out.py"),
        ("sh", vec!["-c", "exec ./r'u'n.py"], vec![], "run.py"),
        ("bash", vec!["-c", "exec ~+/run.py"], vec![], "run.py"),
        ("python3", vec!["-c", "import os; os.execv('run' + '.py', [])"], vec![], "run.py"),
        ("perl", vec!["-e", "do 'ru' . 'n.py'"], vec![], "run.py"),
        ("find", vec![".", "-name", "r*.py", "-exec", "python3", "{}", "+"], vec![], "run.py"),
        ("sh", vec!["-c", "cd d && cd d && cd d && cd d && ./run.py"], vec![], "d/d/d/d/run.py"),
        ("sh", vec!["-c", &many_folders], vec![], "sub/run.py"),
        ("sh", vec!["-c", "./run.py", &long_word], vec![], "a/run.py"),
        ("sh", vec!["-c", "printf ./ru%s.py n | sh"], vec![], "run.py"),
        ("sh", vec!["-c", "ls d | sh"], vec![], "run.py"),
        ("python3", vec!["-uc", "import run"], vec![], "a/run.py"),
        ("python3", vec!["-cimport run"], vec![], "a/run.py"),
        ("node", vec!["--eval=import('./a/' + 'run')"], vec![], "a/run.py"),
        ("perl", vec!["-we", "do 'ru' . 'n.py'"], vec![], "run.py"),
        ("perl", vec!["-I.", "-MEvil", "-e1"], vec![], "a/run.py"),
        ("git", vec!["-c", "alias.x=!./ru?.py", "x"], vec![], "run.py"),
        ("flock", vec!["F", "-c", "./ru?.py"], vec![], "run.py"),
        ("su", vec!["-c", "./ru?.py"], vec![], "run.py"),
        ("env", vec!["-S", "bash\\_-c\\_./ru[n].py"], vec![], "run.py"),
        ("sh", vec!["-c", "./.g?t/run.py"], vec![], ".git/run.py"),
        ("sh", vec!["-c", "./hidd?n/run.py"], vec![], ".git/run.py"),
        ("sh", vec!["-c", "cd ../outside && ./run.py"], vec![], "../outside/run.py"),
        ("sh", vec!["-c", "cd sub && cd ../../outside && ./run.py"], vec![], "../outside/run.py"),
        ("sh", vec!["-c", "cd ../outside && ./ru?.py"], vec![], "../outside/run.py"),
        ("env", vec!["-C", "../outside", "./run.py"], vec![], "../outside/run.py"),
        ("node", vec!["-r", "hook", "index.js"], vec![], "node_modules/hook/index.js"),
        ("npx", vec!["-y", "tool"], vec![("PATH", "./bin:/usr/bin:/bin")], "bin/python3"),
    ] {
        let spec = StdioSpec {
            command: command.to_owned(),
            args: args.into_iter().map(str::to_owned).collect(),
            env: env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            ..StdioSpec::default()
        };
        let before = site.named_files(&spec).unwrap();
        let file = root.join(started).canonicalize().unwrap();
        std::fs::write(&file, "changed").unwrap();
        assert_ne!(site.named_files(&spec).unwrap(), before, "{spec:?}");
        std::fs::write(&file, r#"{"main": "lib/m"}"#).unwrap();
        assert_eq!(site.named_files(&spec).unwrap(), before, "{spec:?}");
        // Control: a file that is not named may change.
        std::fs::write(root.join("a/b/x"), "other").unwrap();
        if !before.contains_key(&root.join("a/b/x")) {
            assert_eq!(site.named_files(&spec).unwrap(), before, "{spec:?}");
            by_name += 1;
        }
        std::fs::write(root.join("a/b/x"), r#"{"main": "lib/m"}"#).unwrap();
    }
    assert!(by_name >= 12, "only {by_name} entries are bound to the files that they name");
    let spec = StdioSpec {
        command: "python3".to_owned(),
        env: vec![("PATH".to_owned(), "./bin".to_owned())],
        ..StdioSpec::default()
    };
    assert_eq!(site.program(&spec), Some(root.join("bin/python3")), "the review names what is started");
}

/// Python prefers native modules to source files, and bytecode can replace source files.
#[test]
fn binds_files_that_python_loads_instead_of_a_module() {
    for (args, added) in [
        (vec!["server.py"], "__pycache__/server.cpython-312.pyc"),
        (vec!["server.py"], "server.pyc"),
        (vec!["-m", "server"], "__pycache__/server.cpython-312.opt-1.pyc"),
        (vec!["-m", "server"], "server.cpython-312-x86_64-linux-gnu.so"),
        (vec!["-m", "server"], "server.abi3.so"),
        (vec!["-m", "server"], "server.pyd"),
        (vec!["-m", "server"], "server/__init__.so"),
        (vec!["-m", "pkg.srv"], "pkg/__pycache__/__init__.cpython-312.pyc"),
        (vec!["-m", "pkg.srv"], "pkg/__pycache__/srv.cpython-312.pyc"),
        (vec!["-m", "pkg.srv"], "pkg/__init__.so"),
        (vec!["-m", "pkg.srv"], "pkg/srv.abi3.so"),
        (vec!["-m", "pkg"], "pkg/__main__.abi3.so"),
        (vec!["-m", "pkg"], "pkg/__pycache__/__main__.cpython-312.pyc"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |file: &str, text: &str| {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), text).unwrap();
        };
        for file in ["server.py", "pkg/__init__.py", "pkg/srv.py", "pkg/__main__.py"] {
            write(file, "");
        }
        let site = LaunchSite { folder: root.clone(), project: root.clone() };
        let args = args.into_iter().map(str::to_owned).collect();
        let spec = StdioSpec { command: "python3".to_owned(), args, ..StdioSpec::default() };
        let before = site.named_files(&spec).unwrap();
        // Control: bytecode of another module is not loaded instead.
        write("__pycache__/other.cpython-312.pyc", "");
        assert_eq!(site.named_files(&spec).unwrap(), before, "{spec:?}");
        write(added, "1");
        let with = site.named_files(&spec).unwrap();
        assert_ne!(with, before, "{spec:?}: {added}");
        write(added, "2");
        assert_ne!(site.named_files(&spec).unwrap(), with, "{spec:?}: {added}");
    }
}
