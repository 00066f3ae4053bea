//! Checks whether a launch is of a known form, in which its words name every file that it starts: a program with plain words, an
//! interpreter with known options and one script or module, or a shell with plain commands. Any other launch may start any file
//! of the project.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use toolhub_client_config::{StdioSpec, expand};

use super::files;
use super::interpreters::form_of;
use super::launch_programs::{
    BUILTINS, CODE_PREFIXES, CODE_VARIABLES, CONTAINERS, LIBRARY_PATHS, READ_AS_CODE, READ_AS_CODE_PREFIXES,
    READERS, SHELLS, STARTERS, WRAPPERS, interpreter_in, is_multi_call, is_task,
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
    /// The folders that relative paths may be resolved against, the working directory first.
    pub(super) folders: &'a [PathBuf],
    pub(super) project: &'a Path,
    /// The `PATH` of the launch.
    pub(super) path: Option<&'a OsStr>,
}

impl LaunchContext<'_> {
    /// The files that a word may start, as they are named.
    fn files_of(&self, word: &str) -> Vec<PathBuf> {
        let word = word.rsplit('=').next().unwrap_or(word);
        if word.is_empty() || word.starts_with('-') || word.contains("://") {
            return Vec::new();
        }
        let in_path = || self.path.into_iter().flat_map(std::env::split_paths);
        let on_path =
            |base: &PathBuf| in_path().map(|folder| base.join(folder).join(word)).collect::<Vec<_>>();
        let named = |base: &PathBuf| vec![base.join(word)];
        // Absolute folders of `PATH` are the same for each base.
        let files: BTreeSet<PathBuf> = self
            .folders
            .iter()
            .flat_map(|base| if word.contains('/') { named(base) } else { on_path(base) })
            .collect();
        files.into_iter().filter(|file| file.is_file()).collect()
    }

    /// The names of the programs that a word may start: the word's own, and that of the file behind links.
    fn names_of(&self, word: &str) -> BTreeSet<String> {
        let own = name_of(word);
        let found = self.files_of(word);
        let of_project = |file: &PathBuf| {
            file.starts_with(self.project)
                || file.canonicalize().is_ok_and(|real| real.starts_with(self.project))
        };
        let behind = |file: &PathBuf| {
            let real = file.canonicalize().ok()?;
            let real = name_of(&real.file_name()?.to_string_lossy());
            // A program with many names decides by the name of its link; only a link of the project can be misleading.
            (of_project(file) || !is_multi_call(&real)).then_some(real)
        };
        let mut names: BTreeSet<String> = found.iter().filter_map(behind).collect();
        names.insert(own);
        // A file of the project is bound, whatever its name is.
        let is_program = found
            .iter()
            .filter(|file| !of_project(file))
            .any(|file| std::fs::metadata(file).is_ok_and(|metadata| files::is_executable(&metadata)));
        let interpreters: Vec<String> =
            names.iter().filter_map(|name| interpreter_in(name, is_program)).map(str::to_owned).collect();
        names.extend(interpreters);
        names
    }

    /// Whether a word, if it starts a program, starts one that the project cannot change.
    fn is_outside(&self, word: &str) -> bool {
        let inside = |file: &PathBuf| {
            file.starts_with(self.project)
                || file.canonicalize().is_ok_and(|real| real.starts_with(self.project))
        };
        !self.files_of(word).iter().any(inside)
    }
}

/// Whether the words of an entry name every file that it starts.
pub(super) fn is_plain(spec: &StdioSpec, context: &LaunchContext<'_>) -> bool {
    let words: Vec<String> =
        [&spec.command].into_iter().chain(&spec.args).map(|text| normalized(text)).collect();
    let fits = words.iter().all(|word| word.len() <= MAX_WORD_BYTES && !word.contains('\0'));
    let variables = spec.env.iter().all(|(name, value)| is_plain_variable(name, &normalized(value), context));
    fits && variables && (is_container(&words, context) || is_plain_launch(&words, context))
}

/// Whether the first line of a script (`#!`) names every file that it starts.
pub(super) fn is_plain_first_line(words: &[String], context: &LaunchContext<'_>) -> bool {
    let mut launch: Vec<String> = words.to_vec();
    let is_env = launch.first().is_some_and(|word| name_of(word) == "env");
    if is_env && launch.get(1).is_some_and(|word| ["-S", "--split-string"].contains(&word.as_str())) {
        launch.remove(1);
    }
    launch.push("file".to_owned());
    is_plain_launch(&launch, context)
}

/// Whether an entry runs tasks that files of the project define: these run whatever they like in the project.
pub(super) fn runs_tasks(spec: &StdioSpec) -> bool {
    let texts = [&spec.command].into_iter().chain(&spec.args).map(|text| normalized(text));
    let separates = |c: char| c.is_whitespace() || [';', '&'].contains(&c);
    let texts: Vec<String> = texts.collect();
    let words: Vec<&str> =
        texts.iter().flat_map(|text| text.split(separates)).filter(|word| !word.is_empty()).collect();
    let names: Vec<String> = words.iter().map(|word| name_of(word)).collect();
    let Some(first) = names.first() else { return false };
    let starts_others = WRAPPERS.contains(&first.as_str()) || SHELLS.contains(&first.as_str());
    let last = if starts_others { names.len() } else { 1 };
    names
        .iter()
        .take(last)
        .enumerate()
        .any(|(at, name)| is_task(name, words.get(at + 1..).unwrap_or_default()))
}

/// Whether the words start a container runner that the project cannot change or configure: then the rest applies inside of the
/// container.
fn is_container(words: &[String], context: &LaunchContext<'_>) -> bool {
    const FLAGS: [&str; 6] = ["-D", "--debug", "--tls", "--tlsverify", "-r", "--remote"];
    const VALUED: [&str; 14] = [
        "-l",
        "--log-level",
        "-H",
        "--host",
        "-c",
        "--context",
        "--connection",
        "--url",
        "-f",
        "--file",
        "-p",
        "--project-name",
        "--profile",
        "--env-file",
    ];
    let Some((command, rest)) = words.split_first() else { return false };
    let is_client = CONTAINERS.contains(&name_of(command).as_str())
        && context.is_outside(command)
        && !context.names_of(command).iter().any(|name| can_hide_files(name));
    let mut rest = rest.iter().map(String::as_str);
    while is_client && let Some(word) = rest.next() {
        match word.split_once('=') {
            _ if !word.starts_with('-') => return true,
            Some((name, _)) if VALUED.contains(&name) => {}
            None if VALUED.contains(&word) => drop(rest.next()),
            None if FLAGS.contains(&word) => {}
            _ => return false,
        }
    }
    is_client
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
    let is_shell = |piece: &str| context.names_of(piece).iter().any(|name| SHELLS.contains(&name.as_str()));
    let mut pieces = vec![command.clone()];
    let mut shell = is_shell(command).then_some(0);
    while let Some((word, after)) = rest.split_first() {
        rest = after;
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
        let parts: Vec<&str> = match word.contains(char::is_whitespace) {
            true => word.split_whitespace().collect(),
            false => vec![word],
        };
        for part in parts {
            if is_shell(part) {
                shell = Some(pieces.len());
            }
            pieces.push(part.to_owned());
        }
    }
    let mut programs =
        pieces.iter().filter(|piece| !is_assignment(piece)).map(|piece| context.names_of(piece));
    let first = programs.next().unwrap_or_default();
    let is_in =
        |names: &BTreeSet<String>, known: &[&str]| names.iter().any(|name| known.contains(&name.as_str()));
    let reads = is_in(&first, &READERS)
        || (is_in(&first, &WRAPPERS) && programs.any(|names| is_in(&names, &READERS)));
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
    if piece.starts_with('-') && !piece.contains('=') {
        return true;
    }
    let is_container = || pieces.get(at..).is_some_and(|words| is_container(words, context));
    context.names_of(piece).iter().all(|name| match name.as_str() {
        client if CONTAINERS.contains(&client) => is_container(),
        "env" => has_env_form(rest, context),
        "cmd" => has_cmd_form(rest),
        "powershell" | "pwsh" => has_powershell_form(rest),
        shell if SHELLS.contains(&shell) => has_shell_form(rest),
        starter if STARTERS.contains(&starter) => false,
        interpreter => form_of(interpreter).is_none_or(|form| form.accepts(rest)),
    })
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
        && !context.folders.iter().any(|folder| folder.join(format!("{scheme}:")).exists())
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
    let leads_inside = |part: PathBuf| {
        context.folders.iter().map(|folder| folder.join(&part)).any(|part| {
            part.starts_with(context.project)
                || part.canonicalize().is_ok_and(|real| real.starts_with(context.project))
        })
    };
    match name.as_str() {
        "NODE_OPTIONS" => {
            let words: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
            words.iter().all(|word| is_plain_word(word, context))
                && form_of("node").is_some_and(|form| form.accepts(&words))
        }
        name if CODE_VARIABLES.contains(&name) || CODE_PREFIXES.iter().any(|head| name.starts_with(head)) => {
            value.is_empty()
        }
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
mod tests;
