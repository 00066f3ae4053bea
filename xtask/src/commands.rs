//! The table of commands, their dispatch and their listing, and the error for an unknown word.
use std::fmt;

use anyhow::Result;

use crate::{
    bench, bubblewrap, chaos, checks, chromium, deny, dist_assets, e2e_model, faketime, features, fuzz,
    haproxy, mutants, nats, nearest::nearest, package, packaging, peers, postgres, screenshots, soak,
    table::Table, tidy, workspace::Workspace,
};

pub(crate) struct Command {
    pub(crate) name: &'static str,
    about: &'static str,
    run: fn(&Workspace, &[String]) -> Result<()>,
}

pub(crate) const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        about: "every check and every test; `--quick`: format, tidy and unit tests; `--install`: may install packages of the system; `--write-docs`: may write documents; `-- ARGS` go to `cargo test --workspace`",
        run: checks::test,
    },
    Command {
        name: "tests",
        about: "only the test programs, two at a time on two processors: all, or those whose names contain `NAME ...`",
        run: checks::tests,
    },
    Command {
        name: "lint",
        about: "fmt, clippy, tidy and deny; `--fix` mends what fmt and clippy can",
        run: checks::lint,
    },
    Command {
        name: "tidy",
        about: "the house rules: crate edges, first lines, file sizes, paths, commands and config keys of the documents",
        run: tidy::command,
    },
    Command {
        name: "deny",
        about: "licences, sources and bans of the dependencies; installs cargo-deny when it is missing",
        run: deny::command,
    },
    Command {
        name: "package",
        about: "pack every published crate, without building it",
        run: package::command,
    },
    Command {
        name: "packaging",
        about: "actionlint on the workflows and hadolint on the Dockerfile; installs both under `target` when they are missing",
        run: packaging::command,
    },
    Command {
        name: "dist-assets",
        about: "write man pages, shell completions and notices to `target/assets`, for packages",
        run: dist_assets::command,
    },
    Command {
        name: "peers",
        about: "set up the MCP servers and SDKs that tests talk to; `--list` shows them, `--many` checks the hub with 87 servers and 30 clients (CONTRIBUTING.md)",
        run: peers::command,
    },
    Command {
        name: "postgres",
        about: "see to it that tests can start a PostgreSQL server; as root on Debian, installs it",
        run: postgres::command,
    },
    Command {
        name: "nats",
        about: "see to it that tests can start a NATS server; as root on Debian, installs it",
        run: nats::command,
    },
    Command {
        name: "haproxy",
        about: "see to it that tests can put HAProxy in front of several hubs; as root on Debian, installs it",
        run: haproxy::command,
    },
    Command {
        name: "faketime",
        about: "see to it that tests can give a program another clock; on Debian, takes the library from its package",
        run: faketime::command,
    },
    Command {
        name: "bubblewrap",
        about: "see to it that the sandbox's tests find Bubblewrap; as root on Debian, installs it",
        run: bubblewrap::command,
    },
    Command {
        name: "chromium",
        about: "see to it that the tests of the web console find a browser; as root on Debian, installs it",
        run: chromium::command,
    },
    Command {
        name: "screenshots",
        about: "take the pictures of the web console for the documents: writes `docs/images`",
        run: screenshots::command,
    },
    Command {
        name: "features",
        about: "build the program without its optional parts, and check that it names those that are missing",
        run: features::command,
    },
    Command {
        name: "e2e-model",
        about: "end-to-end tests with a real language model (1.1 GB); `--small` tests client libraries only (100 MB)",
        run: e2e_model::command,
    },
    Command {
        name: "bench",
        about: "measure, all benchmarks or the one named; `--list` shows them",
        run: bench::command,
    },
    Command {
        name: "soak",
        about: "15 minutes of load through the gateway while servers are killed; `--minutes N`, `--seconds N`, `--seed N`, `--debug`",
        run: soak::command,
    },
    Command {
        name: "chaos",
        about: "a minute of load through a cluster whose replicas, workers and NATS server are killed and frozen at random; `--minutes N`, `--seconds N`, `--seed N`",
        run: chaos::command,
    },
    Command {
        name: "fuzz",
        about: "arbitrary text for what reads text: `fuzz --all|TARGET [--seconds N]`; installs cargo-fuzz when it is missing",
        run: fuzz::command,
    },
    Command {
        name: "mutants",
        about: "change the code whose mistakes do harm, and count the changes that tests notice (hours): `mutants [AREA ...] [--shard K/N]`; installs cargo-mutants when it is missing",
        run: mutants::command,
    },
    Command { name: "help", about: "this list", run: help },
];

/// An invalid command line; the process exits with status 2.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

pub(crate) fn dispatch(args: &[String]) -> Result<()> {
    let Some((name, rest)) = args.split_first() else { return print_commands() };
    if name == "-h" || name == "--help" {
        return print_commands();
    }
    let names = COMMANDS.iter().map(|command| command.name);
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(&Workspace::load()?, rest),
        None => Err(unknown("command", name, names)),
    }
}

pub(crate) fn unknown(
    what: &str,
    word: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> anyhow::Error {
    let hint = nearest(word, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    UsageError(format!("unknown {what} `{word}`{hint}")).into()
}

/// Whether `flag`, the only option of a command, is given. Any other argument is an error.
pub(crate) fn only_flag(args: &[String], flag: &'static str) -> Result<bool> {
    match args.iter().find(|arg| *arg != flag) {
        Some(other) => Err(unknown("argument", other, [flag])),
        None => Ok(!args.is_empty()),
    }
}

pub(crate) fn no_arguments(args: &[String]) -> Result<()> {
    match args.first() {
        Some(other) => Err(unknown("argument", other, [])),
        None => Ok(()),
    }
}

fn help(_: &Workspace, _: &[String]) -> Result<()> {
    print_commands()
}

fn print_commands() -> Result<()> {
    println!("Usage: cargo xtask COMMAND\n");
    let mut table = Table::default();
    for command in COMMANDS {
        table.row([format!("  {}", command.name), command.about.to_owned()]);
    }
    print!("{table}");
    Ok(())
}

/// The number that follows an option.
pub(crate) fn number_after<'a>(option: &str, words: &mut impl Iterator<Item = &'a String>) -> Result<f64> {
    let value = words.next().and_then(|number| number.parse::<f64>().ok());
    let wrong = || UsageError(format!("`{option}` needs a number")).into();
    value.filter(|number| *number >= 0.0).ok_or_else(wrong)
}
