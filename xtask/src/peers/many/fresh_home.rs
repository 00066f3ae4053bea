//! Measures how long `toolhub tools` takes to list 100 servers with an empty home directory, compared with starting
//! them directly, two at a time. The direct start is measured before and after, since the load of a shared machine
//! varies.
use std::{collections::BTreeMap, fmt, fs, time::Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};

use super::{Context, Options, WORKERS, hub::Hub, in_parallel, launch::Launch, left_over, rpc::RpcClient};
use crate::run;

/// Number of configured servers; programs are repeated with separate directories to reach it.
const SERVERS: usize = 100;
/// Index of `cutime` among the fields after the program name; `cstime` follows.
const CHILDREN_TIME_FIELD: usize = 13;
const TICKS_PER_SECOND: f64 = 100.0;
/// Maximum length of a printed reason, in characters.
const MAX_SHOWN: usize = 200;

/// A server and its id in `mcp.json`.
struct ServerLaunch {
    id: String,
    launch: Launch,
}

pub(super) fn measure(context: &Context<'_>, options: &Options) -> Result<()> {
    let folder = context.folder.join("fresh-home");
    let servers = servers(context, options)?;
    let mark = folder.display().to_string();
    let entries: Map<String, Value> =
        servers.iter().map(|server| (server.id.clone(), server.launch.entry(&mark))).collect();
    let hub = Hub::create(&context.toolhub, folder.clone(), &entries, "")?;

    println!("{} servers by hand, {WORKERS} at a time", servers.len());
    let (by_hand, before) = timed(|| start_all(&servers, &mark));
    println!("{before}\n`toolhub tools` with the same servers in a fresh home");
    let (listed, by_hub) = timed(|| run::read(&mut hub.command(&["tools"])));
    let leftover = left_over::collect(hub.mark(), &folder);
    let states = states(&hub)?;
    println!("{by_hub}\nby hand again");
    let (_, after) = timed(|| start_all(&servers, &mark));
    println!("{after}");
    left_over::collect(&mark, &folder);

    let mut unlisted = 0;
    for (server, by_hand) in servers.iter().zip(&by_hand) {
        let (state, reason) = states.get(&server.id).context("a server is not in `servers list`")?;
        let truncated: String = reason.chars().take(MAX_SHOWN).collect();
        match (by_hand, state == "ready") {
            (Ok(_), false) => {
                unlisted += 1;
                println!("  {}: starts by hand, through the hub {state}: {truncated}", server.id);
            }
            (Err(error), true) => println!("  {}: ready through the hub, by hand: {error}", server.id),
            (Err(error), false) => println!("  {}: does not start: {error}", server.id),
            (Ok(_), true) => {}
        }
    }
    let ready = states.values().filter(|(state, _)| state == "ready").count();
    let can_start = by_hand.iter().filter(|started| started.is_ok()).count();
    let mean = |value: fn(&Cost) -> f64| f64::midpoint(value(&before), value(&after));
    println!(
        "ready {ready} of {can_start} that start by hand ({} configured), processes left over: {}; \
         of the time by hand {:.2}, of its CPU time {:.2}",
        servers.len(),
        leftover.len(),
        by_hub.seconds / mean(|cost| cost.seconds),
        by_hub.cpu_seconds / mean(|cost| cost.cpu_seconds),
    );
    listed?;
    ensure!(leftover.is_empty(), "left over: {}", leftover.join("; "));
    ensure!(unlisted == 0, "{unlisted} servers that start by hand are not `ready` after `toolhub tools`");
    Ok(())
}

fn servers(context: &Context<'_>, options: &Options) -> Result<Vec<ServerLaunch>> {
    let installed = context.catalog.servers(options)?;
    let usable: Vec<_> =
        installed.iter().filter_map(|server| Some((&server.entry, server.folder.as_ref().ok()?))).collect();
    ensure!(!usable.is_empty(), "no server is installed");
    let repeated = usable.iter().cycle().take(SERVERS.max(usable.len())).enumerate();
    repeated
        .map(|(index, (server, installed))| {
            let round = index / usable.len() + 1;
            let id = if round == 1 { server.name.clone() } else { format!("{}-{round}", server.name) };
            let data = context.folder.join("fresh-home-data").join(&id);
            fs::create_dir_all(&data)?;
            Ok(ServerLaunch { launch: context.catalog.launch(server, installed, data), id })
        })
        .collect()
}

/// The state and the error of each server, from `servers list`.
fn states(hub: &Hub) -> Result<BTreeMap<String, (String, String)>> {
    let listed: Vec<Value> =
        serde_json::from_str(&run::read(&mut hub.command(&["--json", "servers", "list"]))?)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(listed
        .iter()
        .map(|server| (text(&server["id"]), (text(&server["state"]), text(&server["error"]))))
        .collect())
}

/// Starts a server directly and returns the number of its tools. Dropping the client kills it.
fn start(server: &ServerLaunch, mark: &str) -> Result<usize> {
    let log = server.launch.folder.with_extension("log");
    let mut client = RpcClient::start(server.launch.command(mark), &log)?;
    Ok(client.list_tools()?.len())
}

fn start_all(servers: &[ServerLaunch], mark: &str) -> Vec<Result<usize, String>> {
    in_parallel(servers, |server| start(server, mark).map_err(|error| format!("{error:#}")))
}

/// The cost of one measurement.
struct Cost {
    seconds: f64,
    /// CPU time of all terminated child processes; zero on systems without `/proc`.
    cpu_seconds: f64,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {:.1} s, {:.1} s of CPU time", self.seconds, self.cpu_seconds)
    }
}

fn timed<R>(run: impl FnOnce() -> R) -> (R, Cost) {
    let (started, cpu_before) = (Instant::now(), cpu_of_children());
    let result = run();
    let cpu_seconds = cpu_of_children() - cpu_before;
    (result, Cost { seconds: started.elapsed().as_secs_f64(), cpu_seconds })
}

/// User and system time of terminated child processes and their descendants; see `proc_pid_stat(5)`.
fn cpu_of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program name is in parentheses and may contain spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: f64 =
        fields.skip(CHILDREN_TIME_FIELD).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    ticks / TICKS_PER_SECOND
}
