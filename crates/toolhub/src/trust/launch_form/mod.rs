//! Checks whether a launch is of a known form, in which the files that it loads from the project are known: an interpreter with
//! known options and a script or module of the project, a program of the project, a server of a package registry, a container,
//! or a shell with such commands. Any other launch may load any file of the project: programs and options that are not on the
//! lists are not assumed to be harmless.

pub(super) mod assignments;
mod container_mounts;
pub(super) mod entry_text;
mod interpreters;
pub(super) mod loader_variables;
mod package_runners;
pub(super) mod programs;
pub(super) mod words;

use toolhub_client_config::{StdioSpec, expand_variables, variable_references};

use self::assignments::{assignment_of, is_assignment};
use self::entry_text::{expand_if_set, without_folder_variable};
use self::interpreters::form_of;
use self::loader_variables::{is_loader, is_plain_variable};
use self::package_runners::{is_bun, is_container_run, is_deno, is_npx, is_pipx, is_uv, is_uvx};
use self::programs::{BUILTINS, CONTAINERS, SHELLS, is_task, name_of};
use self::words::{LaunchContext, MAX_WORD_BYTES, PLAIN, Started, are_plain, is_plain_word};

/// Characters of plain shell code, besides letters and digits.
const PLAIN_CODE: &str = "_-./:=,@+ ;&";
/// What a variable counts as if its value is not to affect the form.
const VARIABLE: &str = "x";
/// What a variable counts as that may be the source of a mount and whose value cannot be taken: a path of the project.
const VARIABLE_OF_MOUNT: &str = "./x";
/// Which files a launch may load from the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchScope {
    /// Those that it names, and those that programs of its form are known to read.
    Named,
    /// All, as its program runs tasks of the project. Installed packages and build output are not bound, which its review says.
    Tasks,
    /// All.
    Project,
}

/// The files that an entry may load from the project.
pub(super) fn scope_of(spec: &StdioSpec, context: &LaunchContext<'_>) -> LaunchScope {
    let texts = || [&spec.command].into_iter().chain(&spec.args);
    let words: Vec<String> = texts().map(|text| normalized(text, VARIABLE)).collect();
    let may_mount = texts().any(|text| text.contains("-v") || text.contains("--mount"));
    let unknown = if may_mount { VARIABLE_OF_MOUNT } else { VARIABLE };
    let expanded: Vec<String> = texts().map(|text| expanded(text, unknown)).collect();
    let fits =
        |words: &[String]| words.iter().all(|word| word.len() <= MAX_WORD_BYTES && !word.contains('\0'));
    let variables =
        spec.env.iter().all(|(name, value)| is_plain_variable(name, &normalized(value, VARIABLE), context));
    if !fits(&words) || !fits(&expanded) || !variables || !context.has_plain_versions() {
        return LaunchScope::Project;
    }
    // The form may depend neither on which variables are set now nor on their values, except for the sources of mounts.
    let as_written = LaunchContext { has_values: false, ..*context };
    if is_narrow_launch(&words, &as_written) && is_narrow_launch(&expanded, context) {
        return LaunchScope::Named;
    }
    match runs_tasks(&words, context) && runs_tasks(&expanded, context) {
        true => LaunchScope::Tasks,
        false => LaunchScope::Project,
    }
}

/// Whether the first line of a script (`#!`) names every file that it starts. Not if it sets variables: systems split such a line
/// in different ways.
pub(super) fn is_narrow_first_line(words: &[String], context: &LaunchContext<'_>) -> bool {
    if words.iter().any(|word| is_assignment(word)) {
        return false;
    }
    let mut launch: Vec<String> = words.to_vec();
    let is_env = launch.first().is_some_and(|word| name_of(word) == "env");
    if is_env && launch.get(1).is_some_and(|word| ["-S", "--split-string"].contains(&word.as_str())) {
        launch.remove(1);
    }
    launch.push("./file".to_owned());
    is_narrow_launch(&launch, context)
}

/// Whether an entry runs tasks that files of the project define: these run whatever they like in the project.
fn runs_tasks(words: &[String], context: &LaunchContext<'_>) -> bool {
    let is_env = words.first().is_some_and(|word| word == "env");
    let assigned = words.iter().skip(usize::from(is_env)).take_while(|word| is_env && is_assignment(word));
    if !assigned.clone().all(|word| is_plain_assignment(word, context)) {
        return false;
    }
    let skipped = assigned.count();
    let Some((command, rest)) = words.get(usize::from(is_env) + skipped..).and_then(<[String]>::split_first)
    else {
        return false;
    };
    words.iter().all(|word| is_plain_word(word, context))
        && !context.files_of(command).iter().any(|file| context.is_in_project(file))
        && is_task(&name_of(command), rest)
}

/// The text with the values of its variables, as long as these are plain words or options; otherwise with `unknown` for each.
fn expanded(text: &str, unknown: &str) -> String {
    let value = expand_if_set(text);
    let is_plain = value.chars().all(|c| c.is_alphanumeric() || PLAIN.contains(c));
    // Other values cannot be options, programs or code of a known form; they may be secrets.
    match !variable_references(text).is_empty() && (is_plain || value.starts_with('-')) {
        true => value,
        false => normalized(text, unknown),
    }
}

/// Replaces each variable without a default by `placeholder`: values are set by the owner and must not affect the form. Defaults
/// are set by the project and are kept.
fn normalized(text: &str, placeholder: &str) -> String {
    let mut without_default: Vec<String> = Vec::new();
    loop {
        let lookup =
            |name: &str| without_default.iter().any(|known| known == name).then(|| placeholder.to_owned());
        match expand_variables(text, &lookup) {
            Ok(text) => return text,
            Err(name) if without_default.contains(&name) => return text.to_owned(),
            Err(name) => without_default.push(name),
        }
    }
}

/// Whether the words start programs of known forms only.
fn is_narrow_launch(words: &[String], context: &LaunchContext<'_>) -> bool {
    let Some((command, rest)) = words.split_first() else { return false };
    // A shell or `env` could take a command with `=` for an assignment.
    let is_other = command.starts_with('-') || command.contains("://") || command.contains('=');
    if is_other || !is_plain_word(command, context) {
        return false;
    }
    match context.started(command) {
        Started::OfProject => are_plain(rest, context),
        Started::Known(names) => names.iter().all(|name| has_known_form(name, rest, context)),
        Started::Unknown => false,
    }
}

/// Whether the arguments of a program of this name are of a known form.
fn has_known_form(name: &str, rest: &[String], context: &LaunchContext<'_>) -> bool {
    let after = |count: usize| rest.get(count..).unwrap_or_default();
    match name {
        "docker-compose" => return false,
        name if CONTAINERS.contains(&name) => return is_container_run(rest, context),
        name if SHELLS.contains(&name) => return has_shell_form(rest, context),
        "cmd" => return has_cmd_form(rest, context),
        _ if !are_plain(rest, context) => return false,
        _ => {}
    }
    let first = rest.first().map(String::as_str).unwrap_or_default();
    let is_number =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || "-.smh".contains(c));
    match name {
        "env" => has_env_form(rest, context),
        "nohup" => is_narrow_launch(rest, context),
        "nice" if first == "-n" => {
            rest.get(1).is_some_and(|word| is_number(word)) && is_narrow_launch(after(2), context)
        }
        "nice" => is_narrow_launch(rest, context),
        "timeout" => is_number(first) && is_narrow_launch(after(1), context),
        "stdbuf" => {
            let options = rest
                .iter()
                .take_while(|word| ["-i0", "-o0", "-e0", "-oL", "-eL"].contains(&word.as_str()))
                .count();
            is_narrow_launch(after(options), context)
        }
        "npx" | "bunx" => is_npx(name, rest, context),
        "npm" if ["exec", "x"].contains(&first) => is_npx("npx", after(1), context),
        "pnpx" => is_npx("pnpm", rest, context),
        "pnpm" if first == "dlx" => is_npx("pnpm", after(1), context),
        "uvx" => is_uvx(rest, context),
        "pipx" if first == "run" => is_pipx(after(1), context),
        "uv" => is_uv(rest, context, &|words| is_narrow_launch(words, context)),
        "bun" => is_bun(rest, context),
        "deno" => is_deno(rest, context),
        "powershell" => has_powershell_form(rest),
        name => form_of(name).is_some_and(|form| form.accepts(rest, context)),
    }
}

/// Whether a launch that makes this assignment can be of a known form.
fn is_plain_assignment(word: &str, context: &LaunchContext<'_>) -> bool {
    assignment_of(word).is_some_and(|(name, value)| is_plain_variable(name, value, context))
}

/// Assignments, and then a command. Options change the folder, the variables or the words of the command, so that it is of no
/// known form.
fn has_env_form(rest: &[String], context: &LaunchContext<'_>) -> bool {
    let words = rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest);
    let assigned = words.iter().take_while(|word| is_assignment(word)).count();
    let (before, words) = words.split_at(assigned);
    before.iter().all(|word| is_plain_assignment(word, context))
        && (words.is_empty() || is_narrow_launch(words, context))
}

/// Options, and then plain code or a script of the project.
fn has_shell_form(rest: &[String], context: &LaunchContext<'_>) -> bool {
    let options = rest.iter().take_while(|word| word.starts_with(['-', '+'])).count();
    let (options, rest) = rest.split_at(options);
    let Some((script, arguments)) = rest.split_first() else {
        // Without a script the shell reads standard input, which is controlled by the client.
        return options.iter().all(|word| is_shell_option(word) && !takes_code(word));
    };
    let is_known = match options.iter().any(|word| takes_code(word)) {
        true => is_plain_code(script, context),
        false => is_plain_word(script, context) && context.is_script_of_project(script),
    };
    options.iter().all(|word| is_shell_option(word)) && is_known && are_plain(arguments, context)
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

fn has_cmd_form(rest: &[String], context: &LaunchContext<'_>) -> bool {
    let options = rest.iter().take_while(|word| word.starts_with('/')).count();
    let (options, rest) = rest.split_at(options);
    let is_known = |word: &String| ["/c", "/d", "/s", "/q"].contains(&word.to_lowercase().as_str());
    options.iter().all(is_known)
        && !rest.iter().any(|word| word.contains(['%', '^', '&', '|']))
        && is_narrow_launch(rest, context)
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
    let code = without_folder_variable(code);
    if !code.chars().all(|c| c.is_alphanumeric() || PLAIN_CODE.contains(c)) {
        return false;
    }
    let joined = code.replace("&&", ";");
    let commands: Vec<Vec<String>> = joined
        .split(';')
        .map(|command| command.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
        .collect();
    // What an assignment means depends on the commands before it, and it applies to those that follow.
    let is_single = commands.len() == 1;
    !joined.contains('&') && commands.iter().all(|words| is_plain_command(words, is_single, context))
}

/// Whether a command of shell code is of a known form.
fn is_plain_command(words: &[String], is_single: bool, context: &LaunchContext<'_>) -> bool {
    let accepts = |word: &String| {
        let is_exact = is_single || assignment_of(word).is_some_and(|(name, _)| !is_loader(name));
        is_exact && is_plain_assignment(word, context)
    };
    let assigned = words.iter().take_while(|word| is_assignment(word)).count();
    let (before, mut words) = words.split_at(assigned);
    if words.first().is_some_and(|word| word == "exec") {
        words = words.get(1..).unwrap_or_default();
    }
    let first = words.first().map(String::as_str).unwrap_or_default();
    let operands = words.get(1..).unwrap_or_default();
    before.iter().all(accepts)
        && match first {
            "cd" => operands.len() == 1 && !operands.iter().any(|word| word.starts_with('-')),
            "export" => operands.iter().all(accepts),
            "true" | "echo" => true,
            _ => words.is_empty() || (!BUILTINS.contains(&first) && is_narrow_launch(words, context)),
        }
}

#[cfg(test)]
mod tests;
