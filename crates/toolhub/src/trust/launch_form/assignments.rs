//! The variables that a launch sets: those of its entry, and those that its command line and the first lines of its scripts assign
//! (`env NAME=value`, `sh -c "export NAME=value; …"`, `#!/usr/bin/env -S NAME=value`).
//!
//! Every word that has the form of an assignment counts, whichever program it is an argument of: a program behind a link, or one
//! that is not known, may set variables, too. A word too many binds a folder that need not be bound; a missing one would leave the
//! code of a launch unbound.

use std::ffi::OsString;
use std::path::Path;

use toolhub_client_config::StdioSpec;

use super::entry_text::{expand_if_set, without_folder_variable};
use super::loader_variables::is_loader;
use super::programs::{CONTAINERS, SHELLS, name_of};

/// Separators of words in shell code, in which an argument may consist of several commands.
const SEPARATORS: [char; 10] = [';', '&', '|', '(', ')', '<', '>', '\'', '"', '`'];
/// Options of `env` that are directly followed by the text to split.
const SPLIT_OPTIONS: [&str; 2] = ["-S", "--split-string="];

/// A variable that a launch sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::trust) struct Assignment {
    pub(in crate::trust) name: String,
    /// The value, with its variables expanded, and relative to the folder in which a shell is started.
    pub(in crate::trust) value: String,
    /// The value before expansion, for display.
    pub(in crate::trust) written: String,
    /// Whether a review shows it as a variable that is set.
    pub(in crate::trust) is_shown: bool,
}

/// Every assignment of a launch. `first_lines` are the words after `#!` of its scripts.
pub(in crate::trust) fn launch_assignments(spec: &StdioSpec, first_lines: &[Vec<String>]) -> Vec<Assignment> {
    let of_entry = spec.env.iter().map(|(name, value)| Assignment {
        name: name.clone(),
        value: expand_if_set(value),
        written: value.clone(),
        is_shown: true,
    });
    let mut found: Vec<Assignment> = of_entry.collect();
    let sets_variables = [&spec.command].into_iter().chain(&spec.args).any(|text| {
        expand_if_set(text).split(is_separator).map(name_of).any(|name| name == "env" || is_shell(&name))
    });
    for text in command_line(spec) {
        add_assignments(text, sets_variables, &mut found);
    }
    for word in first_lines.iter().flatten() {
        let written = assignments_in(word).into_iter();
        found.extend(written.map(|(name, value)| Assignment {
            name,
            written: value.clone(),
            value,
            is_shown: true,
        }));
    }
    found
}

/// The `PATH`s that programs of a launch may be looked up in: the one that its command is started with, and those that its
/// command line assigns.
pub(in crate::trust) fn search_paths(spec: &StdioSpec, assignments: &[Assignment]) -> Vec<OsString> {
    let of_command_line = assignments.iter().filter(|assignment| is_path(&assignment.name));
    let mut paths: Vec<OsString> = path_of(spec).into_iter().collect();
    paths.extend(of_command_line.map(|assignment| OsString::from(&assignment.value)));
    paths
}

/// The `PATH` that the command of an entry is started with.
pub(in crate::trust) fn path_of(spec: &StdioSpec) -> Option<OsString> {
    let own = spec.env.iter().rev().find(|(name, _)| is_path(name));
    own.map(|(_, value)| OsString::from(expand_if_set(value))).or_else(|| std::env::var_os("PATH"))
}

/// The name and the value of an assignment: `NAME=value`, or `NAME+=value` of a shell.
pub(super) fn assignment_of(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

pub(super) fn is_assignment(word: &str) -> bool {
    assignment_of(word).is_some()
}

/// Command and arguments; of a container runner only what precedes its command, as the rest applies inside of the container.
fn command_line(spec: &StdioSpec) -> impl Iterator<Item = &String> {
    let command = expand_if_set(&spec.command);
    let name = Path::new(&command).file_name().unwrap_or_default();
    let is_container = CONTAINERS.iter().any(|known| name == *known);
    let args = spec.args.iter().take_while(move |arg| !is_container || arg.starts_with('-'));
    [&spec.command].into_iter().chain(args)
}

/// Adds the assignments of a text, as it is written and with its variables expanded: a default may contain a whole assignment.
fn add_assignments(text: &str, sets_variables: bool, found: &mut Vec<Assignment>) {
    let written = assignments_in(text);
    for (name, value) in assignments_in(&without_folder_variable(&expand_if_set(text))) {
        let known = written.iter().find(|(written, _)| *written == name).map(|(_, value)| value.clone());
        // A name that comes from a value of the user is shown only if it matters: the value may be a secret.
        let is_shown = is_loader(&name) || (sets_variables && known.is_some());
        let written = known.unwrap_or_else(|| text.to_owned());
        found.push(Assignment { name, value, written, is_shown });
    }
}

/// The assignments in a text: the text itself, or words of it.
fn assignments_in(text: &str) -> Vec<(String, String)> {
    let words = [text].into_iter().chain(text.split(is_separator));
    let split_by_env = |word| SPLIT_OPTIONS.iter().find_map(|option| str::strip_prefix(word, option));
    let words = words.map(|word| split_by_env(word).unwrap_or(word));
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, value) in words.filter_map(assignment_of) {
        let pair = (name.to_owned(), value.to_owned());
        if !found.contains(&pair) {
            found.push(pair);
        }
    }
    found
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || SEPARATORS.contains(&c)
}

fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

fn is_path(name: &str) -> bool {
    name == "PATH" || (cfg!(windows) && name.eq_ignore_ascii_case("PATH"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str, args: &[&str]) -> Vec<(String, String, bool)> {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let spec = StdioSpec { command: command.to_owned(), args, ..StdioSpec::default() };
        let all = launch_assignments(&spec, &[]).into_iter();
        all.map(|one| (one.name, one.value, one.is_shown)).collect()
    }

    #[test]
    fn finds_assignments_of_command_lines() {
        for (command, args) in [
            ("env", &["PYTHONPATH=./pp", "python3", "s.py"][..]),
            ("nohup", &["env", "-u", "X", "PYTHONPATH=./pp", "python3", "s.py"]),
            ("./link", &["PYTHONPATH=./pp", "python3", "s.py"]),
            ("sh", &["-c", "PYTHONPATH=./pp exec python3 s.py"]),
            ("sh", &["-c", "true;export PYTHONPATH=./pp&&python3 s.py"]),
            ("bash", &["-c", "PYTHONPATH+=./pp python3 s.py"]),
            ("env", &["-S", "PYTHONPATH=./pp python3 s.py"]),
            ("env", &["-SPYTHONPATH=./pp python3 s.py"]),
            ("env", &["${TOOLHUB_UNSET_VARIABLE:-PYTHONPATH=./pp}", "python3", "s.py"]),
            ("env", &["PYTHONPATH=${TOOLHUB_UNSET_VARIABLE:-./pp}", "python3", "s.py"]),
            ("sh", &["-c", "PYTHONPATH=$PWD/pp python3 s.py"]),
            ("make", &["PYTHONPATH=./pp"]),
        ] {
            let expected = ("PYTHONPATH".to_owned(), "./pp".to_owned(), true);
            assert!(found(command, args).contains(&expected), "{command} {args:?}");
        }
        // Other variables are shown only if the command line has a program that sets them.
        assert_eq!(found("env", &["MODE=a", "b"]), [("MODE".to_owned(), "a".to_owned(), true)]);
        assert_eq!(found("server", &["mode=a"]), [("mode".to_owned(), "a".to_owned(), false)]);
        for (command, args) in [
            ("docker", &["run", "-e", "HOME=./x", "image"][..]),
            ("server", &["--home=./x", "https://example.org/?a=b", "a.b=c", "=x"]),
        ] {
            assert!(found(command, args).is_empty(), "{command} {args:?}");
        }
    }

    #[test]
    fn programs_are_searched_in_every_assigned_path() {
        let spec = StdioSpec {
            command: "env".to_owned(),
            args: vec!["PATH=./bin:/usr/bin".to_owned(), "greet".to_owned()],
            env: vec![("PATH".to_owned(), "/bin".to_owned())],
            ..StdioSpec::default()
        };
        let paths = search_paths(&spec, &launch_assignments(&spec, &[]));
        assert_eq!(paths, ["/bin", "/bin", "./bin:/usr/bin"]);
        assert_eq!(path_of(&spec), Some(OsString::from("/bin")));
    }
}
