//! How long `toolhub tools` takes to list 100 servers in a fresh home, beside starting them by hand, two at a time.
use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};

use super::{Context, Options, WORKERS, hub::Hub, in_parallel, launch::Launch, left_over, rpc::RpcClient};
use crate::run;

/// Servers in the configuration; programs are repeated with folders of their own until there are so many.
const SERVERS: usize = 100;
/// How much of a reason is shown, in characters.
const MAX_SHOWN: usize = 200;

/// A server by its id in `mcp.json`.
struct Started {
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

    println!("`toolhub tools` with {} servers in a fresh home", servers.len());
    let begun = Instant::now();
    let listed = run::read(&mut hub.command(&["tools"]));
    let by_hub = begun.elapsed();
    let left = left_over::collect(hub.mark(), &folder);
    let listed = listed.map(|text| text.lines().count());
    let states = states(&hub)?;

    println!("the same servers by hand, {WORKERS} at a time");
    let begun = Instant::now();
    let by_hand = in_parallel(&servers, |server| start(server, &mark).map_err(|error| format!("{error:#}")));
    let hand_time = begun.elapsed();
    left_over::collect(&mark, &folder);

    let mut unlisted = 0;
    for (server, by_hand) in servers.iter().zip(&by_hand) {
        let (state, reason) = states.get(&server.id).context("a server is not in `servers list`")?;
        let shown: String = reason.chars().take(MAX_SHOWN).collect();
        match (by_hand, state == "ready") {
            (Ok(_), false) => {
                unlisted += 1;
                println!("  {}: starts by hand, through the hub {state}: {shown}", server.id);
            }
            (Err(error), true) => println!("  {}: ready through the hub, by hand: {error}", server.id),
            (Err(error), false) => println!("  {}: does not start: {error}", server.id),
            (Ok(_), true) => {}
        }
    }
    let ready = states.values().filter(|(state, _)| state == "ready").count();
    let can_start = by_hand.iter().filter(|started| started.is_ok()).count();
    let ratio = by_hub.as_secs_f64() / hand_time.as_secs_f64();
    println!(
        "ready {ready} of {can_start} that start by hand ({} configured); `toolhub tools` {}, by hand {}, ratio {ratio:.2}; \
         processes left over: {}; lines listed: {}",
        servers.len(),
        seconds(by_hub),
        seconds(hand_time),
        left.len(),
        listed.as_ref().map_or_else(|error| format!("{error:#}"), usize::to_string),
    );
    listed?;
    ensure!(left.is_empty(), "left over: {}", left.join("; "));
    ensure!(unlisted == 0, "{unlisted} servers that start by hand are not `ready` after `toolhub tools`");
    Ok(())
}

fn servers(context: &Context<'_>, options: &Options) -> Result<Vec<Started>> {
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
            Ok(Started { launch: context.catalog.launch(server, installed, data), id })
        })
        .collect()
}

/// State and error of each server, as the hub reports them.
fn states(hub: &Hub) -> Result<BTreeMap<String, (String, String)>> {
    let listed: Vec<Value> =
        serde_json::from_str(&run::read(&mut hub.command(&["--json", "servers", "list"]))?)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(listed.iter().map(|one| (text(&one["id"]), (text(&one["state"]), text(&one["error"])))).collect())
}

/// Starts a server directly and lists its tools. It is killed afterwards.
fn start(server: &Started, mark: &str) -> Result<usize> {
    let log = server.launch.folder.with_extension("log");
    let mut client = RpcClient::start(server.launch.command(mark), &log)?;
    Ok(client.list_tools()?.len())
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
