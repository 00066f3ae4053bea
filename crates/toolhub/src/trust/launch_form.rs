//! Checks whether a launch is of a known form, in which its words name every file that it starts: a program with plain words, an
//! interpreter with known options and one script or module, or a shell with plain commands. Any other launch may start any file
//! of the project.

use std::path::Path;

use toolhub_client_config::{StdioSpec, expand};

use super::interpreters::form_of;
use super::launch_programs::{
    BUILTINS, CODE_VARIABLES, CONTAINERS, LIBRARY_PATHS, READ_AS_CODE, READ_AS_CODE_PREFIXES, READERS,
    SHELLS, STARTERS, WRAPPERS,
};

/// The maximum length of a word; no path is longer.
pub(super) const MAX_WORD_BYTES: usize = 4_096;
/// Characters, besides letters and digits, that have no special meaning to any program.
const PLAIN: &str = "_-./:=,@%+~#^ ";
/// Further characters that are allowed in URLs.
const IN_ADDRESSES: &str = "?&*!$()[];{}";
/// Characters of plain shell code, besides letters and digits.
const PLAIN_CODE: &str = "_-./:=,@+ ;&";
/// The location of a launch, for words whose meaning depends on it.
pub(super) struct LaunchContext<'a> {
    pub(super) work: &'a Path,
    pub(super) project: &'a Path,
}

/// Whether the words of an entry name every file that it starts.
pub(super) fn is_plain(spec: &StdioSpec, context: &LaunchContext<'_>) -> bool {
    let words: Vec<String> =
        [&spec.command].into_iter().chain(&spec.args).map(|text| normalized(text)).collect();
    let fits = words.iter().all(|word| word.len() <= MAX_WORD_BYTES && !word.contains('\0'));
    let variables = spec.env.iter().all(|(name, value)| is_plain_variable(name, &normalized(value), context));
    let in_container = words.first().is_some_and(|word| CONTAINERS.contains(&name_of(word).as_str()));
    fits && variables
        && (in_container || (is_plain_launch(&words, context) && is_plain_behind_link(words, context)))
}

/// Whether the launch is also plain with the target's name, if the command is a symbolic link in the project.
fn is_plain_behind_link(mut words: Vec<String>, context: &LaunchContext<'_>) -> bool {
    let Some(command) = words.first_mut() else { return true };
    let named = context.work.join(&*command);
    if !command.contains('/') || !named.starts_with(context.project) {
        return true;
    }
    let Ok(real) = named.canonicalize() else { return true };
    *command = real.to_string_lossy().into_owned();
    is_plain_launch(&words, context)
}

/// Replaces each variable without a default by a letter: values are set by the owner and must not affect the form. Defaults are
/// set by the project and are kept.
fn normalized(text: &str) -> String {
    let mut without_default: Vec<String> = Vec::new();
    loop {
        let lookup = |name: &str| without_default.iter().any(|known| known == name).then(|| "x".to_owned());
        match expand(text, &lookup) {
            Ok(text) => return text,
            Err(name) if without_default.contains(&name) => return text.to_owned(),
            Err(name) => without_default.push(name),
        }
    }
}

/// The name of the program that a word refers to, without folder, extension and version: `python` for `/usr/bin/python3.12`.
fn name_of(word: &str) -> String {
    let word = word.rsplit(['=', '/', '\\']).next().unwrap_or(word);
    let word = word.strip_suffix(".exe").or_else(|| word.strip_suffix(".cmd")).unwrap_or(word);
    let bare = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    // A word that consists of dots and digits is kept.
    if bare.is_empty() { word.to_owned() } else { bare.trim_end_matches('-').to_owned() }
}

fn is_plain_launch(words: &[String], context: &LaunchContext<'_>) -> bool {
    let Some((command, mut rest)) = words.split_first() else { return true };
    let mut pieces = vec![command.clone()];
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let shell = pieces.iter().rposition(|piece| SHELLS.contains(&name_of(piece).as_str()));
        let options = shell.and_then(|at| pieces.get(at + 1..)).unwrap_or_default();
        let only_options = options.iter().all(|option| option.starts_with('-'));
        if only_options && options.last().is_some_and(|option| takes_code(option)) {
            if !options.iter().all(|option| is_shell_option(option)) || !is_plain_code(word, context) {
                return false;
            }
            // Arguments of the code: plain code cannot refer to them.
            pieces.push("code".to_owned());
            continue;
        }
        if !is_plain_word(word, context) {
            return false;
        }
        if word.contains('"') {
            let mut strings = word.split('"').flat_map(str::split_whitespace);
            if strings.any(can_hide_files) {
                return false;
            }
        }
        match word.contains(char::is_whitespace) {
            true => pieces.extend(word.split_whitespace().map(str::to_owned)),
            false => pieces.push(word.clone()),
        }
    }
    let mut programs = pieces.iter().filter(|piece| !is_assignment(piece)).map(|piece| name_of(piece));
    let first = programs.next().unwrap_or_default();
    let is_reader = |name: String| READERS.contains(&name.as_str());
    let reads = is_reader(first.clone()) || (WRAPPERS.contains(&first.as_str()) && programs.any(is_reader));
    !reads && (0..pieces.len()).all(|at| has_known_form(&pieces, at, context))
}

/// Whether a word is the name of a program that can run files its arguments do not name.
fn can_hide_files(word: &str) -> bool {
    let name = name_of(word);
    let name = name.as_str();
    SHELLS.contains(&name) || STARTERS.contains(&name) || READERS.contains(&name) || form_of(name).is_some()
}

/// Whether the word at this position, if it is such a program, is followed by arguments of a known form.
fn has_known_form(pieces: &[String], at: usize, context: &LaunchContext<'_>) -> bool {
    let (Some(piece), Some(rest)) = (pieces.get(at), pieces.get(at + 1..)) else { return true };
    let name = name_of(piece);
    if piece.starts_with('-') && !piece.contains('=') {
        return true;
    }
    match name.as_str() {
        "env" => has_env_form(rest, context),
        "cmd" => has_cmd_form(rest),
        "powershell" | "pwsh" => has_powershell_form(rest),
        shell if SHELLS.contains(&shell) => has_shell_form(rest),
        starter if STARTERS.contains(&starter) => false,
        interpreter => form_of(interpreter).is_none_or(|form| form.accepts(rest)),
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn has_env_form(rest: &[String], context: &LaunchContext<'_>) -> bool {
    let mut words = rest.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-" | "-i" | "--" | "--ignore-environment" => {}
            "-u" | "-C" | "--chdir" | "--unset" => drop(words.next()),
            _ if word.starts_with("--chdir=") || word.starts_with("--unset=") => {}
            _ if word.starts_with('-') => return false,
            _ => match word.split_once('=') {
                Some((name, value)) if is_assignment(word) => {
                    if !is_plain_variable(name, value, context) {
                        return false;
                    }
                }
                _ => return true,
            },
        }
    }
    true
}

fn has_shell_form(rest: &[String]) -> bool {
    let script = rest.iter().position(|word| !word.starts_with(['-', '+'])).unwrap_or(rest.len());
    rest.iter().take(script).all(|word| is_shell_option(word))
}

fn is_shell_option(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty());
    letters.is_some_and(|letters| letters.chars().all(|c| "leuxc".contains(c)))
        || ["--login", "--norc", "--noprofile", "--posix"].contains(&word)
}

/// Whether an option of a shell is followed by code.
fn takes_code(word: &str) -> bool {
    !word.starts_with("--") && word.starts_with('-') && word.contains('c')
}

fn has_cmd_form(rest: &[String]) -> bool {
    let options = rest.iter().take_while(|word| word.starts_with('/'));
    let known = |word: &String| ["/c", "/d", "/s", "/q"].contains(&word.to_lowercase().as_str());
    options.into_iter().all(known) && !rest.iter().any(|word| word.contains(['%', '^']))
}

fn has_powershell_form(rest: &[String]) -> bool {
    let mut words = rest.iter().map(|word| word.to_lowercase());
    while let Some(word) = words.next() {
        match word.as_str() {
            "-noprofile" | "-noninteractive" | "-nologo" => {}
            "-executionpolicy" => drop(words.next()),
            "-file" => return true,
            _ => return false,
        }
    }
    true
}

/// Whether shell code consists of plain commands, each of a known form, joined by `;` and `&&`.
fn is_plain_code(code: &str, context: &LaunchContext<'_>) -> bool {
    let code = code.replace("${PWD}", ".").replace("$PWD", ".");
    if !code.chars().all(|c| c.is_alphanumeric() || PLAIN_CODE.contains(c)) {
        return false;
    }
    let joined = code.replace("&&", ";");
    !joined.contains('&')
        && joined.split(';').all(|command| {
            let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            let assigned = words.iter().take_while(|word| is_assignment(word)).count();
            let (before, mut words) = words.split_at(assigned);
            let is_plain_assignment = |word: &String| {
                word.split_once('=').is_some_and(|(name, value)| is_plain_variable(name, value, context))
            };
            if words.first().is_some_and(|word| word == "exec") {
                words = words.get(1..).unwrap_or_default();
            }
            let first = words.first().map(String::as_str).unwrap_or_default();
            let operands = words.get(1..).unwrap_or_default();
            before.iter().all(is_plain_assignment)
                && match first {
                    "cd" => operands.len() == 1 && !operands.iter().any(|word| word.starts_with('-')),
                    "export" => operands.iter().all(is_plain_assignment),
                    _ => {
                        !first.starts_with('-')
                            && !BUILTINS.contains(&first)
                            && is_plain_launch(words, context)
                    }
                }
        })
}

fn is_plain_word(word: &str, context: &LaunchContext<'_>) -> bool {
    let is_data_address = word.split('=').any(|part| part.starts_with("data:"));
    let is_plain = |c: char| c.is_alphanumeric() || PLAIN.contains(c) || (cfg!(windows) && c == '\\');
    !is_data_address && (word.chars().all(is_plain) || is_address(word, context) || is_json(word))
}

/// Whether a word is a URL. Not if the folder has an entry named like its scheme (`https:`): then the word is also a path, which
/// a shell could expand.
fn is_address(word: &str, context: &LaunchContext<'_>) -> bool {
    let Some((scheme, _)) = word.split_once("://") else { return false };
    let scheme = scheme.rsplit('=').next().unwrap_or(scheme);
    let is_scheme =
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '-');
    is_scheme
        && word
            .chars()
            .all(|c| c.is_alphanumeric() || (c != ' ' && PLAIN.contains(c)) || IN_ADDRESSES.contains(c))
        && !context.work.join(format!("{scheme}:")).exists()
}

fn is_json(word: &str) -> bool {
    word.starts_with(['{', '[']) && serde_json::from_str::<serde_json::Value>(word).is_ok()
}

fn is_plain_variable(name: &str, value: &str, context: &LaunchContext<'_>) -> bool {
    let name = name.to_uppercase();
    let is_plain = |value: &str| {
        value.len() <= MAX_WORD_BYTES
            && value
                .chars()
                .all(|c| c.is_alphanumeric() || PLAIN.contains(c) || (cfg!(windows) && "\\;()".contains(c)))
    };
    let leads_inside = |part: std::path::PathBuf| {
        let part = context.work.join(part);
        part.starts_with(context.project)
            || part.canonicalize().is_ok_and(|real| real.starts_with(context.project))
    };
    match name.as_str() {
        "NODE_OPTIONS" => {
            let words: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
            words.iter().all(|word| is_plain_word(word, context))
                && form_of("node").is_some_and(|form| form.accepts(&words))
        }
        name if CODE_VARIABLES.contains(&name) || name.starts_with("BASH_FUNC_") => value.is_empty(),
        name if LIBRARY_PATHS.contains(&name) => {
            is_plain(value) && !std::env::split_paths(value).any(leads_inside)
        }
        name if READ_AS_CODE.contains(&name)
            || READ_AS_CODE_PREFIXES.iter().any(|head| name.starts_with(head)) =>
        {
            is_plain(value) || is_address(value, context)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, args: &[&str], env: &[(&str, &str)]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let context = LaunchContext { work: folder.path(), project: folder.path() };
        let pairs = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let spec = StdioSpec {
            command: command.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: pairs.collect(),
            ..StdioSpec::default()
        };
        is_plain(&spec, &context)
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
            ("go", vec!["run", "."]),
            ("cargo", vec!["run", "--quiet"]),
            ("deno", vec!["run", "-A", "main.ts"]),
            ("bun", vec!["run", "index.ts"]),
            ("cmd", vec!["/c", "npx", "-y", "pkg"]),
            ("sh", vec!["run.sh", "a"]),
            ("sh", vec!["run.sh", "-c", "config.json"]),
            ("bash", vec!["-lc", "cd server && exec python3 server.py"]),
            ("sh", vec!["-c", "cd . && ./a.sh;./e.sh"]),
            ("env", vec!["-u", "X", "A=b", "node", "a.js"]),
            ("java", vec!["-Xmx1g", "-jar", "a.jar"]),
            ("./server", vec!["--options", r#"{"a": [1, "b"]}"#]),
            ("C:\\Program Files (x86)\\tool.exe", vec!["a"]),
            ("server", vec!["postgres://u:${PASSWORD}@localhost/db?sslmode=off"]),
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
            assert!(check("server", &[], &[(name, value)]), "{name}={value}");
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
        ] {
            assert!(!check("server", &[], &[(name, value)]), "{name}={value}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn symlink_to_interpreter_counts_as_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/sh", folder.path().join("tool")).unwrap();
        let context = LaunchContext { work: folder.path(), project: folder.path() };
        let plain = |args: &[&str]| {
            let args = args.iter().map(|arg| (*arg).to_owned()).collect();
            is_plain(&StdioSpec { command: "./tool".to_owned(), args, ..StdioSpec::default() }, &context)
        };
        assert!(plain(&["a.sh"]));
        assert!(!plain(&["-s"]));
    }

    /// Whether a variable is set must not change the files that a consent is bound to.
    #[test]
    fn ignores_values_of_user_variables() {
        assert!(check("server", &["${TOOLHUB_UNSET_VARIABLE}", "${PATH}"], &[]));
        assert!(!check("server", &["${TOOLHUB_UNSET_VARIABLE:-a*}"], &[]));
    }

    #[test]
    fn address_that_is_also_a_local_path_is_not_plain() {
        let folder = tempfile::tempdir().unwrap();
        let context = LaunchContext { work: folder.path(), project: folder.path() };
        assert!(is_plain_word("https://a/ru?.sh", &context));
        std::fs::create_dir(folder.path().join("https:")).unwrap();
        assert!(!is_plain_word("https://a/ru?.sh", &context));
    }
}
