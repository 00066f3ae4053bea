//! Figures of a cluster: what a worker adds to a call, several replicas, takeover after a kill, idle memory, and many servers; with
//! the real program and real PostgreSQL, NATS and `HAProxy` servers.
mod client;
mod deployment;
mod hop;
mod idle;
mod journal_servers;
mod load;
mod replicas;
mod scratch;
mod servers;
mod services;
mod takeover;
mod usage;

use std::path::{PathBuf, absolute};

use anyhow::{Context as _, Result, ensure};

use self::{
    scratch::Scratch,
    services::{Nats, Postgres},
};
use crate::{
    commands::{UsageError, number_after, unknown},
    run::{Profile, build},
    workspace::Workspace,
};

struct Part {
    name: &'static str,
    about: &'static str,
    run: fn(&mut Environment<'_>) -> Result<()>,
}

const PARTS: &[Part] = &[
    Part {
        name: "hop",
        about: "the same server reached by one hub, by a replica that runs it itself, and through a worker",
        run: |environment| hop::run(environment),
    },
    Part {
        name: "replicas",
        about: "1, 2 and 3 replicas, called directly and through HAProxy",
        run: |environment| replicas::run(environment),
    },
    Part {
        name: "takeover",
        about: "from SIGKILL of a worker, a replica, NATS and PostgreSQL until calls succeed again",
        run: takeover::run,
    },
    Part {
        name: "idle",
        about: "memory of idle servers and idle sessions",
        run: |environment| idle::run(environment),
    },
    Part {
        name: "servers",
        about: "many servers, started on demand by their first calls",
        run: |environment| servers::run(environment),
    },
];

/// What the parts share: programs, services and the folder in which everything runs.
struct Environment<'a> {
    workspace: &'a Workspace,
    options: Options,
    programs: Programs,
    postgres: Postgres,
    nats: Nats,
    /// Dropped last: it removes the folder.
    scratch: Scratch,
}

struct Programs {
    toolhub: PathBuf,
    /// `gateway-load`: generates load, and is a stdio server with little work.
    load: PathBuf,
    /// `journal-server`: a stdio server with little memory that writes down which calls ran.
    journal: PathBuf,
}

struct Options {
    parts: Vec<&'static Part>,
    /// Programs that are built already.
    programs: Option<PathBuf>,
    /// Rounds that are counted, and repetitions of each fault.
    rounds: usize,
    /// Duration of one load.
    seconds: f64,
    /// Servers of the part `servers`.
    servers: usize,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        const OPTIONS: [&str; 4] = ["--programs", "--rounds", "--seconds", "--servers"];
        let mut options = Self { parts: Vec::new(), programs: None, rounds: 5, seconds: 2.0, servers: 1_000 };
        let mut words = args.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--programs" => {
                    let folder =
                        words.next().ok_or_else(|| UsageError("`--programs` needs a folder".to_owned()))?;
                    options.programs = Some(absolute(folder)?);
                }
                "--rounds" => options.rounds = positive(word, number_after(word, &mut words)?)? as usize,
                "--seconds" => options.seconds = positive(word, number_after(word, &mut words)?)?,
                "--servers" => options.servers = positive(word, number_after(word, &mut words)?)? as usize,
                name => match PARTS.iter().find(|part| part.name == name) {
                    Some(part) => options.parts.push(part),
                    None => {
                        let known = PARTS.iter().map(|part| part.name).chain(OPTIONS);
                        return Err(unknown("part", name, known));
                    }
                },
            }
        }
        if options.parts.is_empty() {
            options.parts = PARTS.iter().collect();
        }
        Ok(options)
    }
}

/// Accepts numbers from 1, and fractions for the duration of a load.
fn positive(option: &str, number: f64) -> Result<f64> {
    let least = if option == "--seconds" { 0.1 } else { 1.0 };
    ensure!(number >= least, UsageError(format!("`{option}` needs at least {least}")));
    Ok(number)
}

pub(super) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let programs = match &options.programs {
        Some(folder) => Programs {
            toolhub: folder.join("toolhub"),
            load: folder.join("gateway-load"),
            journal: folder.join("journal-server"),
        },
        None => Programs {
            toolhub: build(workspace, "toolhub-cli", "toolhub", Profile::Dist)?,
            load: build(workspace, "toolhub-testkit", "gateway-load", Profile::Dist)?,
            journal: build(workspace, "toolhub-testkit", "journal-server", Profile::Dist)?,
        },
    };
    for program in [&programs.toolhub, &programs.load, &programs.journal] {
        ensure!(program.is_file(), "`{}` does not exist: build it first", program.display());
    }
    let scratch = Scratch::create()?;
    let (postgres, nats) = (Postgres::start(&scratch)?, Nats::start(&scratch)?);
    let mut environment = Environment { workspace, options, programs, postgres, nats, scratch };
    for part in environment.options.parts.clone() {
        println!("\n{}: {}", part.name, part.about);
        (part.run)(&mut environment).with_context(|| format!("part `{}`", part.name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options> {
        Options::parse(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_select_parts_and_sizes() {
        let names = |options: &Options| options.parts.iter().map(|part| part.name).collect::<Vec<_>>();
        let all = parse("").unwrap();
        assert_eq!(names(&all), ["hop", "replicas", "takeover", "idle", "servers"]);
        assert_eq!((all.rounds, all.servers), (5, 1_000));
        let some = parse("idle --servers 10 hop --rounds 2 --seconds 0.5 --programs x").unwrap();
        assert_eq!(names(&some), ["idle", "hop"]);
        assert_eq!((some.rounds, some.servers), (2, 10));
        assert!(some.programs.unwrap().is_absolute());
        for words in ["hops", "--servers", "--servers 0", "--rounds x", "--seconds 0", "--programs"] {
            assert!(parse(words).err().is_some_and(|error| error.is::<UsageError>()), "{words}");
        }
    }
}
