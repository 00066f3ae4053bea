//! `cargo xtask peers --many`: checks the hub with real MCP servers and real MCP clients. Every server is compared
//! with and without the hub; every client lists the hub's tools and calls one.
mod catalog;
mod client_check;
mod drive;
mod fresh_home;
mod hostile;
mod hub;
mod launch;
mod left_over;
mod rpc;
mod server_check;

use std::{
    fs::{self, File},
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, ensure};

use self::catalog::Catalog;
use crate::{
    commands::{UsageError, unknown},
    run::{Profile, build},
    workspace::Workspace,
};

pub(crate) const FLAG: &str = "--many";
const OPTIONS: [&str; 8] =
    ["--few", "--fresh-home", "--servers", "--clients", "--only", "--explain", "--program", "--seed"];

/// Minimum number of servers that must pass in a complete run.
const MIN_SERVERS: usize = 60;
const MIN_CLIENTS: usize = 15;
/// Number of concurrent checks.
const WORKERS: usize = 2;

/// The parsed command line.
#[derive(Default)]
struct Options {
    /// Only the entries marked `few`, all of which must pass.
    few: bool,
    fresh_home: bool,
    servers_only: bool,
    clients_only: bool,
    /// Only the entries of these names.
    only: Vec<String>,
    /// Determine which hostile definitions a client rejects.
    explain: bool,
    program: Option<PathBuf>,
    seed: Option<u64>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = args.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| UsageError(format!("`{word}` needs a value")));
            match word.as_str() {
                "--few" => options.few = true,
                "--fresh-home" => options.fresh_home = true,
                "--servers" => options.servers_only = true,
                "--clients" => options.clients_only = true,
                "--explain" => options.explain = true,
                "--only" => options.only.extend(value()?.split(',').map(str::to_owned)),
                "--program" => options.program = Some(value()?.into()),
                "--seed" => {
                    let seed = value()?.parse();
                    options.seed = Some(seed.map_err(|_| UsageError("`--seed` needs a number".to_owned()))?);
                }
                other => return Err(unknown("argument", other, OPTIONS)),
            }
        }
        Ok(options)
    }

    /// Whether an entry is selected.
    fn selects(&self, name: &str, few: bool) -> bool {
        (!self.few || few) && (self.only.is_empty() || self.only.iter().any(|one| one == name))
    }
}

/// The programs, paths and options of one run.
struct Context<'a> {
    toolhub: PathBuf,
    /// The scripted server, which provides the hostile definitions.
    scripted: PathBuf,
    catalog: Catalog<'a>,
    /// Home directories and configurations of this run; removed at the start of the next one.
    folder: PathBuf,
    seed: u64,
    explain: bool,
    /// Held during the run: a concurrent run would remove its directory.
    _lock: File,
}

/// The entries marked `few`, as a step of `cargo xtask test`.
pub(crate) fn check_few(workspace: &Workspace) -> Result<()> {
    run(workspace, &Options { few: true, ..Options::default() })
}

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    run(workspace, &Options::parse(args)?)
}

fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let context = Context::prepare(workspace, options)?;
    if options.fresh_home {
        return fresh_home::measure(&context, options);
    }
    let mut shortfalls = Vec::new();
    if !options.clients_only {
        let servers = context.catalog.servers(options)?;
        let passed = server_check::check_all(&context, &servers);
        shortfalls.extend(shortfall("servers", passed, required(options, servers.len(), MIN_SERVERS)));
    }
    if !options.servers_only {
        let clients = context.catalog.clients(options)?;
        let passed = client_check::check_all(&context, &clients)?;
        shortfalls.extend(shortfall("clients", passed, required(options, clients.len(), MIN_CLIENTS)));
    }
    ensure!(shortfalls.is_empty(), "{}", shortfalls.join("; "));
    Ok(())
}

/// All entries of a selection must pass; in a complete run, some packages may no longer be installable.
fn required(options: &Options, selected: usize, min: usize) -> usize {
    if options.few || !options.only.is_empty() { selected } else { min }
}

fn shortfall(what: &str, passed: usize, required: usize) -> Option<String> {
    (passed < required).then(|| format!("{passed} {what} passed, {required} must"))
}

impl<'a> Context<'a> {
    fn prepare(workspace: &'a Workspace, options: &Options) -> Result<Self> {
        let toolhub = match &options.program {
            Some(program) => program.canonicalize().context("`--program` cannot be found")?,
            None => build(workspace, "toolhub-cli", "toolhub", Profile::Debug)?,
        };
        let scripted = build(workspace, "toolhub-testkit", "scripted-mcp", Profile::Debug)?;
        let catalog = Catalog::load(workspace)?;
        let lock = File::create(workspace.target.join("many/.lock"))?;
        lock.lock()?;
        let folder = workspace.target.join("many/.run");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let seed = match options.seed {
            Some(seed) => seed,
            None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
        };
        Ok(Self { toolhub, scripted, catalog, folder, seed, explain: options.explain, _lock: lock })
    }
}

/// Runs `check` on all items with `WORKERS` threads and returns the results in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], check: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let worker = || {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(index) else { return done };
                done.push((index, check(item)));
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).flatten().collect()
    });
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
