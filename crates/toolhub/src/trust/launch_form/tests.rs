//! Tests of the known forms of launches.

use std::ffi::OsStr;

use super::*;

fn check(command: &str, args: &[&str], env: &[(&str, &str)]) -> bool {
    check_with(&["pkg/__init__.py"], command, args, env) == LaunchScope::Named
}

fn check_with(files: &[&str], command: &str, args: &[&str], env: &[(&str, &str)]) -> LaunchScope {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let (file, text) = file.split_once(':').unwrap_or((file, ""));
        let file = folder.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let folders = [folder.path().to_owned()];
    let path = std::env::var_os("PATH");
    let context =
        LaunchContext { folders: &folders, project: folder.path(), path: path.as_deref(), has_values: true };
    let pairs = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let spec = StdioSpec {
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: pairs.collect(),
        ..StdioSpec::default()
    };
    scope_of(&spec, &context)
}

/// Entries from READMEs of servers must not be bound to every file of the project.
#[test]
fn accepts_ordinary_launches_as_plain() {
    for (command, args) in [
        ("npx", vec!["-y", "@modelcontextprotocol/server-filesystem", "/My Documents"]),
        (
            "npx",
            vec![
                "-y",
                "mcp-remote",
                "https://example.org/mcp?a=1&b=2",
                "--header",
                "Authorization: Bearer ${TOKEN}",
            ],
        ),
        ("npx", vec!["tsx", "src/index.ts"]),
        ("uvx", vec!["--from", "git+https://example.org/x@v1", "serve"]),
        ("uv", vec!["--directory", "server", "run", "python", "-m", "pkg"]),
        ("uv", vec!["run", "server.py"]),
        ("python3", vec!["server.py", "--port=1"]),
        ("python3.12", vec!["-u", "-m", "pkg.server"]),
        ("/usr/bin/python3", vec!["-uB", "server.py"]),
        ("node", vec!["dist/index.js"]),
        ("node", vec!["--import=./b.js", "--max-old-space-size=512", "c.js"]),
        ("node", vec!["-r", "dotenv/config", "c.js"]),
        ("docker", vec!["run", "-i", "--rm", "-e", "KEY", "python:3", "python", "-c", "print('a')"]),
        ("docker", vec!["--context", "remote", "run", "image"]),
        ("docker", vec!["run", "-v", "/opt/toolhub-data:/data:ro", "-v", "cache:/c", "image"]),
        ("podman", vec!["run", "--mount", "type=bind,src=/opt/toolhub-data,dst=/data", "image"]),
        ("docker", vec!["run", "-v", "${HOME}/.toolhub-none:/data", "-e", "TOKEN=${TOKEN}", "image"]),
        ("Rscript", vec!["--vanilla", "server.R"]),
        ("pipx", vec!["run", "acme-mcp"]),
        ("env", vec!["docker", "run", "-i", "image"]),
        ("npx", vec!["-y", "node-fetch-server", "--port", "1"]),
        ("deno", vec!["run", "-A", "main.ts"]),
        ("bun", vec!["run", "index.ts"]),
        ("cmd", vec!["/c", "npx", "-y", "acme-mcp"]),
        ("sh", vec!["run.sh", "a"]),
        ("sh", vec!["run.sh", "-c", "config.json"]),
        ("bash", vec!["-lc", "cd server && exec python3 server.py"]),
        ("sh", vec!["-c", "cd . && ./a.sh;./e.sh"]),
        ("env", vec!["A=b", "node", "a.js"]),
        ("env", vec!["--", "PYTHONPATH=./pp", "python3", "server.py"]),
        ("sh", vec!["-c", "PYTHONPATH=./pp exec python3 server.py"]),
        ("sh", vec!["-c", "cd server && PORT=1 exec python3 server.py"]),
        ("java", vec!["-Xmx1g", "-jar", "a.jar"]),
        ("./server", vec!["--options", r#"{"a": [1, "b"]}"#]),
        ("./server", vec!["postgres://u:${PASSWORD}@localhost/db?sslmode=off"]),
    ] {
        assert!(check(command, &args, &[]), "{command} {args:?}");
    }
    for (name, value) in [
        ("TOKEN", "a$b'c*"),
        ("PYTHONPATH", "./src"),
        ("NODE_OPTIONS", "--max-old-space-size=4096 --import=./a.js"),
        ("PATH", "./bin:/usr/bin"),
        ("LD_LIBRARY_PATH", "/opt/lib"),
    ] {
        assert!(check("./server", &[], &[(name, value)]), "{name}={value}");
    }
}

#[test]
fn inline_code_and_expansions_are_not_plain() {
    let long = format!("./{}run.sh", "./".repeat(MAX_WORD_BYTES / 2));
    for (command, args) in [
        ("sh", vec!["-c", "printf ./ru%s.sh n | sh"]),
        ("sh", vec!["-c", "ls d | sh"]),
        ("sh", vec!["-c", "./a.sh & ./b.sh"]),
        ("sh", vec!["-c", ". ./a.sh"]),
        ("sh", vec!["-c", "python3 -cimportx"]),
        ("sh", vec!["-c", "./.g?t/run.sh"]),
        ("sh", vec!["-c", "BASH_FUNC_x=a ./a.sh"]),
        ("sh", vec!["-s"]),
        ("bash", vec!["--rcfile", "a", "b"]),
        ("bash", vec!["-ic", "./a.sh"]),
        ("python3", vec!["-uc", "import x"]),
        ("python3", vec!["-cimport x"]),
        ("python3", vec!["-"]),
        ("python3", vec!["-m", "timeit", "import x"]),
        ("python3", vec!["-W", "error::x.Y", "a.py"]),
        ("node", vec!["--eval=import x"]),
        ("node", vec!["-pe", "x"]),
        ("node", vec!["--import=data:text/javascript,import%22./x.mjs%22", "a.js"]),
        ("perl", vec!["-we", "x"]),
        ("perl", vec!["-I.", "-MEvil", "-e1"]),
        ("ruby", vec!["-rx", "a.rb"]),
        ("java", vec!["-cp", ".", "Main"]),
        ("java", vec!["Main"]),
        ("bun", vec!["-e", "x"]),
        ("deno", vec!["eval", "x"]),
        ("lua", vec!["-e", "x"]),
        ("git", vec!["status"]),
        ("git", vec!["-c", "alias.x=!./ru?.sh", "x"]),
        ("flock", vec!["F", "-c", "./ru?.sh"]),
        ("flock", vec!["F", "-c", "python3 -cimportx"]),
        ("su", vec!["-c", "./run.sh"]),
        ("env", vec!["git", "status"]),
        ("npx", vec!["proxy", r#"["sh", "-c", "./ru?.sh"]"#]),
        ("env", vec!["-S", "bash\\_-c\\_./ru[n].sh"]),
        ("env", vec!["-S", "PYTHONPATH=./pp python3 server.py"]),
        ("env", vec!["-C", "pp", "python3", "server.py"]),
        ("env", vec!["--chdir=pp", "python3", "server.py"]),
        ("env", vec!["-u", "HOME", "python3", "server.py"]),
        ("env", vec!["-i", "python3", "server.py"]),
        ("env", vec!["a.b=./x", "perl", "-e1"]),
        ("bash", vec!["-c", "A=./x python3 server.py; PYTHONPATH+=./pp python3 server.py"]),
        ("sh", vec!["-c", "PYTHONPATH=$A python3 server.py"]),
        ("sh", vec!["-c", "export PYTHONPATH=./pp; python3 server.py"]),
        ("sh", vec!["-c", "cd server && HOME=./h bash -l run.sh"]),
        ("env", vec!["-Sbash run.sh"]),
        ("env", vec!["PERL5OPT=-Mx", "perl", "a.pl"]),
        ("uv", vec!["run", "python", "-c", "import x"]),
        ("npx", vec!["-c", "./ru?.sh"]),
        ("npx", vec!["proxy", r#"{"command": "sh", "args": ["-s", "./ru?.sh"]}"#]),
        ("find", vec![".", "-name", "a"]),
        ("run-parts", vec!["d"]),
        ("cmd", vec!["/v", "/c", "a"]),
        ("powershell", vec!["-Command", "a"]),
        ("timeout", vec!["5", "python3", "-c", "import x"]),
        ("perl5.36-x86_64-linux-gnu", vec!["-I.", "-MEvil", "-e1"]),
        ("docker", vec!["--config", "./d", "zz"]),
        ("docker", vec!["--config=./d", "zz"]),
        ("podman", vec!["--hooks-dir", "./d", "run", "image"]),
        ("env", vec!["docker", "--config", "./d", "zz"]),
        ("docker", vec!["run", "-i", "-v", ".:/app", "node:20", "node", "/app/server.js"]),
        ("env", vec!["docker", "run", "-v", "./x:/app", "image"]),
        ("sh", vec!["-c", "docker run -v $PWD:/app image"]),
        ("docker", vec!["run", "-v", "${TOOLHUB_UNSET_VARIABLE}:/app", "image"]),
        ("docker", vec!["run", "-v", "${TOOLHUB_UNSET_VARIABLE:-.}:/app", "image"]),
        ("docker", vec!["run", "--mount", "type=bind,src=${TOOLHUB_UNSET_VARIABLE},dst=/app", "image"]),
        ("docker", vec!["run", "-v", "/:/app", "image"]),
        ("Rscript", vec!["server.R"]),
        ("Rscript", vec!["server.R", "--vanilla"]),
        ("Rscript", vec![]),
        ("./run.sh", vec!["${X:-*.sh}"]),
        ("./run.sh", vec![long.as_str()]),
    ] {
        assert!(!check(command, &args, &[]), "{command} {args:?}");
    }
    for (name, value) in [
        ("BASH_ENV", "$(./ru?.sh)"),
        ("PERL5OPT", "-MEvil"),
        ("RUBYOPT", "-r./x"),
        ("NODE_OPTIONS", "--eval=x"),
        ("LD_LIBRARY_PATH", "./lib"),
        ("GIT_SSH_COMMAND", "./ru?.sh"),
        ("CDPATH", "a"),
        ("LUA_INIT_5_4", "@./a.lua"),
        ("LUA_PATH", "./?.lua"),
        ("PERL5DB", "BEGIN { do q(./a) }"),
        ("DOCKER_CONFIG", "./d"),
    ] {
        assert!(!check("./server", &[], &[(name, value)]), "{name}={value}");
    }
}

#[cfg(unix)]
#[test]
fn symlink_to_interpreter_counts_as_interpreter() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/sh", folder.path().join("tool")).unwrap();
    let folders = [folder.path().to_owned()];
    let path = std::env::var_os("PATH");
    let context =
        LaunchContext { folders: &folders, project: folder.path(), path: path.as_deref(), has_values: true };
    let plain = |args: &[&str]| {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let spec = StdioSpec { command: "./tool".to_owned(), args, ..StdioSpec::default() };
        scope_of(&spec, &context) == LaunchScope::Named
    };
    assert!(plain(&["a.sh"]));
    assert!(!plain(&["-s"]));
    // The same behind a program that starts it, in shell code, by `PATH`, and with the name of a container runner.
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    for link in ["p", "docker", "bin/tool"] {
        std::os::unix::fs::symlink("/bin/sh", folder.path().join(link)).unwrap();
    }
    let path = OsStr::new("./bin:/usr/bin:/bin");
    let context =
        LaunchContext { folders: &folders, project: folder.path(), path: Some(path), has_values: true };
    for (words, is_accepted) in [
        (&["env", "./p", "-s"][..], false),
        (&["nice", "-n", "1", "./p", "-s"], false),
        (&["sh", "-c", "./p -s"], false),
        (&["tool", "-s"], false),
        (&["./docker", "-s"], false),
        (&["./docker", "-c", ". ./la?er.sh"], false),
        (&["./p", "a.sh"], true),
        (&["env", "./p", "a.sh"], true),
        (&["tool", "a.sh"], true),
    ] {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let (command, args) = words.split_first().unwrap();
        let spec = StdioSpec { command: command.clone(), args: args.to_vec(), ..StdioSpec::default() };
        assert_eq!(scope_of(&spec, &context) == LaunchScope::Named, is_accepted, "{words:?}");
    }
}

#[test]
fn first_lines_are_plain_if_they_name_what_they_start() {
    let folder = tempfile::tempdir().unwrap();
    let folders = [folder.path().to_owned()];
    let context = LaunchContext { folders: &folders, project: folder.path(), path: None, has_values: true };
    for (line, is_accepted) in [
        ("/bin/sh", true),
        ("/bin/bash -e", true),
        ("/usr/bin/env node", true),
        ("/usr/bin/env -S node --no-warnings", true),
        ("./interp x", true),
        ("/usr/bin/perl -I. -MEvil", false),
        ("/usr/bin/awk -f", false),
        ("/usr/bin/env -S bash -c ./ru?.sh", false),
        ("/usr/bin/env -S PYTHONPATH=./pp python3", false),
        ("/usr/bin/env PATH=./bin python3", false),
    ] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(is_narrow_first_line(&words, &context), is_accepted, "{line}");
    }
}

#[test]
fn task_runners_are_told_from_package_runners() {
    for (words, runs) in [
        ("make run", true),
        ("npm start", true),
        ("npm run serve", true),
        ("env npm -s start", true),
        ("pnpm dev", true),
        ("bun run dev", true),
        ("cargo run", true),
        ("go run .", true),
        ("sh -c npm&&start", false),
        ("npm exec -- ./run.sh", false),
        ("npm --prefix x start", false),
        ("npx -y acme-server", false),
        ("pnpm dlx acme-server", false),
        ("bun run index.ts", false),
        ("python3 make", false),
        ("unknown make", false),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let (command, args) = words.split_first().unwrap();
        assert_eq!(check_with(&[], command, args, &[]) == LaunchScope::Tasks, runs, "{words:?}");
    }
}

/// Files of the folder with which a launch of a known form starts something else.
#[test]
fn settings_of_runners_bind_the_project() {
    let npx = ("npx", &["-y", "acme-mcp"][..]);
    let uv = ("uv", &["run", "server.py"][..]);
    let python = ("python3", &["server.py"][..]);
    for (files, (command, args), is_narrow) in [
        (&[][..], npx, true),
        (&["package.json:{\"name\": \"x\", \"bin\": {\"other\": \"a.js\"}}"], npx, true),
        (&["package.json:{\"bin\": {\"acme-mcp\": \"a.js\"}}"], npx, false),
        (&["package.json:{\"name\": \"@a/acme-mcp\", \"bin\": \"a.js\"}"], npx, false),
        (&["package.json:{"], npx, false),
        (&[".npmrc:registry=https://example.org/\n//example.org/:_authToken=${T}\nfund=false\n"], npx, true),
        (&[".npmrc:node-options=--require ./x.js"], npx, false),
        (&[".npmrc:script-shell=./x"], npx, false),
        (&[".npmrc:registry=file:./x"], npx, false),
        (&["pyproject.toml:"], uv, false),
        (&[".venv/pyvenv.cfg:"], uv, false),
        (&[], uv, true),
        (&["bunfig.toml:preload = [\"./x\"]"], ("bun", &["s.ts"][..]), false),
        (&["deno.json:{}"], ("deno", &["run", "npm:@acme/mcp"][..]), false),
        (&[], ("deno", &["run", "-A", "npm:@acme/mcp"][..]), true),
        (&[".tool-versions:python path:./x"], python, false),
        (&[".tool-versions:python 3.12"], python, true),
        (&[".python-version:../../x"], python, false),
        (&[".nvmrc:../../x"], python, false),
        (&[".nvmrc:lts/iron"], python, true),
        (&["__pypackages__/3.12/lib/bin/acme-mcp:"], ("pipx", &["run", "acme-mcp"][..]), false),
        (&["__pypackages__/3.12/lib/bin/acme-mcp:"], ("uvx", &["acme-mcp"][..]), true),
        (&[], ("python3", &["-m", "pytest"][..]), false),
        (&[], ("python3", &["-I", "-m", "mcp_server_git"][..]), true),
        (&[], ("node", &["/usr/lib/node_modules/gulp/bin/gulp.js"][..]), false),
    ] {
        assert_eq!(
            check_with(files, command, args, &[]) == LaunchScope::Named,
            is_narrow,
            "{files:?} {command} {args:?}"
        );
    }
}

/// Whether a variable is set must not change the files that a consent is bound to.
#[test]
fn ignores_values_of_user_variables() {
    assert!(check("./server", &["${TOOLHUB_UNSET_VARIABLE}", "${PATH}"], &[]));
    assert!(!check("./server", &["${TOOLHUB_UNSET_VARIABLE:-a*}"], &[]));
}

#[test]
fn address_that_is_also_a_local_path_is_not_plain() {
    let folder = tempfile::tempdir().unwrap();
    let folders = [folder.path().to_owned()];
    let path = std::env::var_os("PATH");
    let context =
        LaunchContext { folders: &folders, project: folder.path(), path: path.as_deref(), has_values: true };
    assert!(is_plain_word("https://a/ru?.sh", &context));
    std::fs::create_dir(folder.path().join("https:")).unwrap();
    assert!(!is_plain_word("https://a/ru?.sh", &context));
}
