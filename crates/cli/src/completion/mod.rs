//! Dynamic shell completion (`COMPLETE=bash toolhub`): names and values from the configuration and the cached lists. Connects to
//! no server, and offers nothing if the configuration cannot be read.

pub(crate) mod bash;
pub(crate) mod values;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::{Arg, ArgMatches, Command, ValueHint};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _};
use clap_complete::env::{Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};
use toolhub::settings::{Paths, Settings};
use toolhub::trust::RunTrust;
use toolhub::{Hub, RawJson};
use toolhub_core::Tool;

use crate::args::help;
use crate::completion::bash::Bash;
use crate::completion::values::{is_plain_word, values_of};
use crate::render::sanitize::one_line;

/// The maximum time for computing candidates.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum length of a description next to a candidate, in characters.
const MAX_HELP_CHARS: usize = 80;
const SHELLS: &[&dyn EnvCompleter] = &[&Bash, &Elvish, &Fish, &Powershell, &Zsh];

/// Handles a completion request of a shell, or prints its registration script. Returns `false` if this is an ordinary run. Must
/// be called before any thread is started, because it removes `COMPLETE` from the environment.
pub(crate) fn run_if_requested() -> bool {
    if std::env::var_os("COMPLETE").is_none() {
        return false;
    }
    let args: Vec<OsString> = std::env::args_os().collect();
    let words: Vec<OsString> = args.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let lang = help::language(&words);
    let quoting = Quoting::of_shell();
    let factory = || {
        let command = with_file_completers(help::command(lang), quoting);
        with_completers(command, &Arc::new(CompletionRequest::new(words.clone())))
    };
    let folder = std::env::current_dir().ok();
    // An error means an unknown shell, or a word without candidates.
    let done =
        CompleteEnv::with_factory(factory).shells(Shells(SHELLS)).try_complete(args, folder.as_deref());
    done.unwrap_or(!words.is_empty())
}

/// Which file names can be candidates. A name may come from a cloned repository, and may contain a command of the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// The shell, or [`Bash`], quotes a candidate before it is inserted. Only its lines and separators must be intact.
    Quotes,
    /// A candidate is inserted as it is.
    Verbatim,
}

impl Quoting {
    /// Zsh (`compadd`), fish and elvish quote candidates; PowerShell inserts the text of a `CompletionResult` as it is.
    fn of_shell() -> Self {
        let shell = std::env::var("COMPLETE").unwrap_or_default();
        match shell.as_str() {
            "bash" | "zsh" | "fish" | "elvish" => Self::Quotes,
            _ => Self::Verbatim,
        }
    }

    fn accepts(self, name: &str) -> bool {
        match self {
            Self::Quotes => !name.chars().any(char::is_control),
            Self::Verbatim => is_plain_word(name),
        }
    }
}

/// Completes files and folders with names that are safe in this shell.
fn with_file_completers(command: Command, quoting: Quoting) -> Command {
    let command = command.mut_args(|arg| {
        let completer: fn() -> PathCompleter = match arg.get_value_hint() {
            ValueHint::AnyPath | ValueHint::ExecutablePath => PathCompleter::any,
            ValueHint::FilePath => PathCompleter::file,
            ValueHint::DirPath => PathCompleter::dir,
            _ => return arg,
        };
        let safe = move |current: &OsStr| {
            let mut found = completer().complete(current);
            found.retain(|one| one.get_value().to_str().is_some_and(|name| quoting.accepts(name)));
            found
        };
        arg.add(ArgValueCompleter::new(safe))
    });
    command.mut_subcommands(|below| with_file_completers(below, quoting))
}

/// The kind of values that complete an argument.
#[derive(Clone, Copy)]
enum ValueKind {
    Tool,
    Server,
    Source,
    Capability,
    Profile,
    Pair,
}

/// Command (levels separated by `/`), argument, and the kind of its values.
const COMPLETED_ARGUMENTS: &[(&str, &str, ValueKind)] = &[
    ("call", "tool", ValueKind::Tool),
    ("call", "pairs", ValueKind::Pair),
    ("call", "source", ValueKind::Source),
    ("call", "capability", ValueKind::Capability),
    ("explain", "tool", ValueKind::Tool),
    ("explain", "source", ValueKind::Source),
    ("explain", "capability", ValueKind::Capability),
    ("tools", "source", ValueKind::Source),
    ("tools", "tag", ValueKind::Capability),
    ("tools/show", "tool", ValueKind::Tool),
    ("tools/show", "source", ValueKind::Source),
    ("tools/diff", "tool", ValueKind::Tool),
    ("tools/diff", "source", ValueKind::Source),
    ("tools/approve", "tool", ValueKind::Tool),
    ("tools/approve", "source", ValueKind::Source),
    ("tools/approve", "server", ValueKind::Server),
    ("servers/remove", "id", ValueKind::Server),
    ("servers/test", "ids", ValueKind::Server),
    ("servers/refresh", "ids", ValueKind::Server),
    ("servers/logs", "id", ValueKind::Server),
    ("servers/show", "id", ValueKind::Server),
    ("servers/offers", "id", ValueKind::Server),
    ("servers/read", "id", ValueKind::Server),
    ("servers/prompt", "id", ValueKind::Server),
    ("servers/enable", "id", ValueKind::Server),
    ("servers/disable", "id", ValueKind::Server),
    ("servers/login", "id", ValueKind::Server),
    ("servers/logout", "id", ValueKind::Server),
    ("servers/export", "servers", ValueKind::Server),
    ("history", "tool", ValueKind::Tool),
    ("history", "source", ValueKind::Source),
    ("stats", "tool", ValueKind::Tool),
    ("stats", "source", ValueKind::Source),
    ("recommend", "after", ValueKind::Tool),
    ("serve", "profile", ValueKind::Profile),
];

fn with_completers(mut command: Command, request: &Arc<CompletionRequest>) -> Command {
    for (path, id, kind) in COMPLETED_ARGUMENTS {
        let completer = {
            let (request, kind) = (Arc::clone(request), *kind);
            move |current: &OsStr| request.candidates(kind, current)
        };
        let levels: Vec<&str> = path.split('/').collect();
        command = with_completer(command, &levels, &|arg: Arg| match arg.get_id() == *id {
            true => arg.add(ArgValueCompleter::new(completer.clone())),
            false => arg,
        });
    }
    command
}

fn with_completer(command: Command, levels: &[&str], add: &dyn Fn(Arg) -> Arg) -> Command {
    match levels {
        [] => command.mut_args(add),
        [level, below @ ..] => command.mut_subcommand(level, |sub| with_completer(sub, below, add)),
    }
}

/// A completion request: the words of the command line, and the hub with their options.
struct CompletionRequest {
    words: Vec<OsString>,
    hub: OnceLock<Option<Hub>>,
}

impl CompletionRequest {
    fn new(words: Vec<OsString>) -> Self {
        Self { words, hub: OnceLock::new() }
    }

    fn candidates(&self, kind: ValueKind, current: &OsStr) -> Vec<CompletionCandidate> {
        let Some(current) = current.to_str() else { return Vec::new() };
        let matches = help::command(toolhub::Lang::En)
            .ignore_errors(true)
            .try_get_matches_from(&self.words)
            .unwrap_or_default();
        let Some(hub) = self.hub.get_or_init(|| open(&matches)) else { return Vec::new() };
        let found: Vec<(String, String)> = match kind {
            ValueKind::Tool if text(&matches, "capability").is_some() => pairs(hub, &matches, current),
            ValueKind::Tool => tools(hub),
            ValueKind::Server => servers(hub),
            ValueKind::Source => {
                let fixed = ["native", "skill"].map(|name| (name.to_owned(), String::new()));
                servers(hub).into_iter().chain(fixed).collect()
            }
            ValueKind::Capability => named(hub.catalog().capabilities()),
            ValueKind::Profile => named(hub.settings().profiles.keys()),
            ValueKind::Pair => pairs(hub, &matches, current),
        };
        let fits = |(value, _): &(String, String)| value.starts_with(current) && is_plain_word(value);
        let mut seen = std::collections::HashSet::new();
        found
            .into_iter()
            .filter(fits)
            .filter(|(value, _)| seen.insert(value.clone()))
            .enumerate()
            .map(|(index, (value, help))| {
                let help = (!help.is_empty()).then(|| help.into());
                CompletionCandidate::new(value).help(help).display_order(Some(index))
            })
            .collect()
    }
}

/// Reads the configuration and the cached lists. Skills are disabled: listing them may start Python.
fn open(matches: &ArgMatches) -> Option<Hub> {
    let mut trust = RunTrust::from_variable(std::env::var_os("TOOLHUB_TRUST").as_deref());
    trust.current_folder |= matches.try_get_one("trust").ok().flatten().is_some_and(|trust: &bool| *trust);
    let path = |id: &str| matches.try_get_one::<PathBuf>(id).ok().flatten().cloned();
    let paths = Paths::find_trusting(path("config").as_deref(), path("home").as_deref(), &trust).ok()?;
    let mut settings = Settings::read(&paths).ok()?;
    settings.skills.enabled = false;
    let has_local_store = settings.store.url.is_none() && paths.data_dir.join("toolhub.db").is_file();
    let mut builder = Hub::builder().paths(paths).settings(settings).one_shot();
    if !has_local_store {
        builder = builder.without_store();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let hub = runtime
        .block_on(async { tokio::time::timeout(COMPLETION_TIMEOUT, builder.build()).await })
        .ok()?
        .ok();
    runtime.shutdown_background();
    hub
}

fn tools(hub: &Hub) -> Vec<(String, String)> {
    let catalog = hub.catalog();
    let candidate = |tool: &Tool| (tool.name().to_string(), brief(tool.definition.description()));
    let mut tools: Vec<_> = catalog.iter().map(|entry| candidate(&entry.tool)).collect();
    tools.sort();
    tools
}

fn servers(hub: &Hub) -> Vec<(String, String)> {
    hub.servers().into_iter().map(|server| (server.spec.id.to_string(), String::new())).collect()
}

fn named(names: impl IntoIterator<Item = impl ToString>) -> Vec<(String, String)> {
    names.into_iter().map(|name| (name.to_string(), String::new())).collect()
}

/// `KEY=` for every argument that is not given yet, required ones first; after `KEY=`, the values that its schema defines.
fn pairs(hub: &Hub, matches: &ArgMatches, current: &str) -> Vec<(String, String)> {
    let Some(schema) = schema(hub, matches) else { return Vec::new() };
    if let Some((key, _)) = current.split_once('=') {
        let values = values_of(&schema.value(), key).into_iter();
        return values.map(|value| (format!("{key}={value}"), String::new())).collect();
    }
    let Some(properties) = schema.object().and_then(|schema| schema.get("properties")?.object()) else {
        return Vec::new();
    };
    let present = given_keys(matches);
    let root = schema.value();
    let required = |key: &str| {
        root["required"].as_array().is_some_and(|required| required.iter().any(|name| name == key))
    };
    let mut keys: Vec<(bool, String, String)> = properties
        .iter()
        .filter(|(key, _)| !present.iter().any(|present| present == key))
        .map(|(key, property)| {
            let help = property.value()["description"].as_str().map(brief).unwrap_or_default();
            (!required(key), format!("{key}="), help)
        })
        .collect();
    keys.sort_by_key(|(optional, ..)| *optional);
    keys.into_iter().map(|(_, key, help)| (key, help)).collect()
}

/// The schema of the tool on the command line, or of the first tool with the capability.
fn schema(hub: &Hub, matches: &ArgMatches) -> Option<RawJson> {
    let catalog = hub.catalog();
    let source = text(matches, "source");
    let of_source = |tool: &Tool| source.as_ref().is_none_or(|source| tool.source.to_string() == *source);
    let fits = |tool: &Tool, tags: &[String]| match text(matches, "capability") {
        Some(capability) => tags.contains(&capability),
        None => text(matches, "tool").is_some_and(|name| tool.name().as_str() == name),
    };
    let fitting: Vec<_> = catalog.iter().filter(|entry| fits(&entry.tool, entry.tags())).collect();
    let entry = fitting.iter().find(|entry| of_source(&entry.tool)).or(fitting.first())?;
    Some(entry.tool.definition.input_schema().clone())
}

fn given_keys(matches: &ArgMatches) -> Vec<String> {
    let pairs = innermost(matches).try_get_many::<String>("pairs").ok().flatten().into_iter().flatten();
    pairs
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, _)| key.trim_end_matches(':').to_owned())
        .collect()
}

fn text(matches: &ArgMatches, id: &str) -> Option<String> {
    innermost(matches).try_get_one::<String>(id).ok().flatten().cloned()
}

/// The matches of the innermost subcommand.
fn innermost(mut matches: &ArgMatches) -> &ArgMatches {
    while let Some((_, below)) = matches.subcommand() {
        matches = below;
    }
    matches
}

/// The first line of a description, truncated and without terminal escape sequences.
fn brief(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    one_line(line).chars().take(MAX_HELP_CHARS).collect()
}
