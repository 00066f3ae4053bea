//! Checks each server: compares its definitions and one result through the hub with those of a direct session, and
//! detects processes that outlive the hub.
use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

use super::{
    Context,
    catalog::{Call, Installed, Server},
    hub::Hub,
    in_parallel,
    launch::Launch,
    left_over,
    rpc::RpcClient,
};
use crate::table::Table;

/// Unmodified definitions: `lossless` disables the hub's repairs for strict clients.
const SETTINGS: &str = "[profiles.default]\nservers = [\"server\"]\nexpose = \"all\"\nlossless = true\n";
const ID: &str = "server";
/// Maximum length of a reported difference, in characters.
const MAX_SHOWN: usize = 400;

struct Row {
    name: String,
    listed: Option<usize>,
    definitions: Verdict,
    call: Verdict,
    left_over: Vec<String>,
    /// Time from the start of the hub to the complete list.
    time: Option<Duration>,
    /// The reason why the tools could not be listed.
    failure: Option<String>,
}

#[derive(PartialEq)]
enum Verdict {
    Equal,
    Different(String),
    /// Not compared, with the reason.
    Skipped(String),
}

/// The tools and the result that a server returned in one session.
struct Session {
    tools: BTreeMap<String, Value>,
    answer: Option<Result<Value>>,
    listed_after: Duration,
}

/// Checks the servers, prints the table and returns the number of servers that passed.
pub(super) fn check_all(context: &Context<'_>, servers: &[Installed<Server>]) -> usize {
    let rows = in_parallel(servers, |server| {
        let row = Row::check(context, server);
        eprintln!("{} {}", if row.passed() { "ok    " } else { "FAILED" }, row.name);
        row
    });
    let passed = rows.iter().filter(|row| row.passed()).count();
    let mut table = Table::default();
    let head = ["server", "listed", "equal to direct", "call equal to direct", "left over", "time"];
    table.row(head.map(str::to_owned));
    for row in &rows {
        table.row(row.cells());
    }
    println!("{table}");
    for row in &rows {
        row.print_details();
    }
    let tools: usize = rows.iter().filter(|row| row.passed()).filter_map(|row| row.listed).sum();
    println!("{passed} of {} servers pass, with {tools} tools\n", rows.len());
    passed
}

impl Row {
    fn check(context: &Context<'_>, server: &Installed<Server>) -> Self {
        let mut row = Self {
            name: server.entry.name.clone(),
            listed: None,
            definitions: Verdict::Skipped("not listed".to_owned()),
            call: Verdict::Skipped("not listed".to_owned()),
            left_over: Vec::new(),
            time: None,
            failure: None,
        };
        let installed = match &server.folder {
            Ok(folder) => folder,
            Err(error) => {
                row.failure = Some(format!("cannot be installed: {error:#}"));
                return row;
            }
        };
        if let Err(error) = row.compare(context, &server.entry, installed) {
            row.failure = Some(format!("{error:#}"));
        }
        row
    }

    fn compare(&mut self, context: &Context<'_>, server: &Server, installed: &Path) -> Result<()> {
        let folder = context.folder.join("servers").join(&server.name);
        let data = folder.join("data");
        fs::create_dir_all(&data)?;
        let launch = context.catalog.launch(server, installed, data);
        let direct = direct(&launch, server, &folder).context("directly");
        // Processes left over by the direct session are caused by the server, not by the hub; they are not reported.
        left_over::collect(&direct_mark(&folder), &folder);
        let direct = direct?;

        let servers: Map<String, Value> =
            [(ID.to_owned(), launch.entry(&folder.display().to_string()))].into_iter().collect();
        let hub = Hub::create(&context.toolhub, folder.clone(), &servers, SETTINGS)?;
        let through = through_hub(&hub, server, &folder).context("through the hub");
        self.left_over = left_over::collect(hub.mark(), &folder);
        let through = through?;

        self.listed = Some(through.tools.len());
        self.time = Some(through.listed_after);
        self.definitions = compare_definitions(&direct.tools, &through.tools);
        self.call = match (&server.call, direct.answer, through.answer) {
            (Call::Tool(..), Some(direct), Some(through)) => compare_answers(direct, through),
            (Call::None(reason), ..) => Verdict::Skipped(reason.clone()),
            _ => Verdict::Different("no answer".to_owned()),
        };
        Ok(())
    }

    fn passed(&self) -> bool {
        let listed = self.listed.is_some_and(|count| count > 0) && self.definitions == Verdict::Equal;
        listed && !matches!(self.call, Verdict::Different(_)) && self.left_over.is_empty()
    }

    fn cells(&self) -> [String; 6] {
        let dash = || "-".to_owned();
        [
            self.name.clone(),
            self.listed.map_or_else(dash, |count| count.to_string()),
            self.definitions.to_string(),
            self.call.to_string(),
            if self.listed.is_some() { self.left_over.len().to_string() } else { dash() },
            self.time.map_or_else(dash, |time| format!("{:.1} s", time.as_secs_f64())),
        ]
    }

    fn print_details(&self) {
        let detail = |what: &str, text: &str| {
            let truncated: String = text.chars().take(MAX_SHOWN).collect();
            println!("  {}: {what}{truncated}", self.name);
        };
        if let Some(failure) = &self.failure {
            detail("", failure);
        }
        for (what, verdict) in [("definitions: ", &self.definitions), ("call: ", &self.call)] {
            match verdict {
                Verdict::Different(difference) => detail(what, difference),
                Verdict::Skipped(reason) if self.failure.is_none() => detail(what, reason),
                _ => {}
            }
        }
        for process in &self.left_over {
            detail("left over: ", process);
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "yes",
            Self::Different(_) => "NO",
            Self::Skipped(_) => "-",
        })
    }
}

fn direct_mark(folder: &Path) -> String {
    format!("{}/direct", folder.display())
}

fn direct(launch: &Launch, server: &Server, folder: &Path) -> Result<Session> {
    let started = Instant::now();
    let command = launch.command(&direct_mark(folder));
    let mut client = RpcClient::start(command, &folder.join("direct.log"))?;
    // Many servers do not exit when stdin is closed; dropping the client kills them.
    session(&mut client, server, started)
}

fn through_hub(hub: &Hub, server: &Server, folder: &Path) -> Result<Session> {
    let started = Instant::now();
    let log: PathBuf = folder.join("hub.log");
    let mut client = RpcClient::start(hub.command(&["serve", "--stdio"]), &log)?;
    let session = session(&mut client, server, started)?;
    client.close()?;
    Ok(session)
}

fn session(client: &mut RpcClient, server: &Server, started: Instant) -> Result<Session> {
    let tools = client.wait_for_tools()?;
    let listed_after = started.elapsed();
    let answer = match &server.call {
        Call::Tool(tool, arguments) => Some(client.call(tool, arguments)),
        Call::None(_) => None,
    };
    let named = |tool: Value| (tool["name"].as_str().unwrap_or_default().to_owned(), tool);
    Ok(Session { tools: tools.into_iter().map(named).collect(), answer, listed_after })
}

fn compare_definitions(direct: &BTreeMap<String, Value>, hub: &BTreeMap<String, Value>) -> Verdict {
    let names = direct.keys().chain(hub.keys().filter(|name| !direct.contains_key(*name)));
    for name in names {
        let difference = match (direct.get(name), hub.get(name)) {
            (Some(_), None) => format!("`{name}` is missing through the hub"),
            (None, Some(_)) => format!("`{name}` is listed by the hub only"),
            (Some(direct), Some(hub)) if direct != hub => {
                format!("`{name}` {}", first_difference(direct, hub))
            }
            _ => continue,
        };
        return Verdict::Different(difference);
    }
    Verdict::Equal
}

/// The hub may use a newer protocol revision with a server than the direct session does. Removes the members that
/// only results of the newer revision have.
fn without_newer_members(mut answer: Value) -> Value {
    let Some(result) = answer.get_mut("result").and_then(Value::as_object_mut) else { return answer };
    result.remove("resultType");
    if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.retain(|key, _| !key.starts_with("io.modelcontextprotocol/"));
        if meta.is_empty() {
            result.remove("_meta");
        }
    }
    answer
}

fn compare_answers(direct: Result<Value>, hub: Result<Value>) -> Verdict {
    match (direct.map(without_newer_members), hub.map(without_newer_members)) {
        (Ok(direct), Ok(hub)) if direct == hub => Verdict::Equal,
        (Ok(direct), Ok(hub)) => Verdict::Different(first_difference(&direct, &hub)),
        (Err(error), _) => Verdict::Different(format!("directly: {error:#}")),
        (_, Err(error)) => Verdict::Different(format!("through the hub: {error:#}")),
    }
}

/// The path of the first difference between two values, with both values.
fn first_difference(direct: &Value, hub: &Value) -> String {
    let pair = match (direct, hub) {
        (Value::Object(left), Value::Object(right)) => {
            let keys = left.keys().chain(right.keys());
            keys.map(|key| (key.clone(), left.get(key), right.get(key)))
                .find(|(_, left, right)| left != right)
        }
        (Value::Array(left), Value::Array(right)) => (0..left.len().max(right.len()))
            .map(|index| (index.to_string(), left.get(index), right.get(index)))
            .find(|(_, left, right)| left != right),
        _ => None,
    };
    match pair {
        Some((key, Some(left), Some(right))) => format!("{key}.{}", first_difference(left, right)),
        Some((key, Some(left), None)) => format!("{key}: directly {left}, through the hub missing"),
        Some((key, None, Some(right))) => format!("{key}: directly missing, through the hub {right}"),
        _ => format!(": directly {direct}, through the hub {hub}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_the_first_difference() {
        for (direct, hub, expect) in [
            (json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), "a.b.: directly 1, through the hub 2"),
            (json!({"a": [1, 2]}), json!({"a": [1]}), "a.1: directly 2, through the hub missing"),
            (json!({}), json!({"a": 1}), "a: directly missing, through the hub 1"),
        ] {
            assert_eq!(first_difference(&direct, &hub), expect);
        }
    }

    #[test]
    fn compares_definitions_by_name_in_both_directions() {
        let list =
            |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), json!({"name": name}))).collect();
        let different = |text: &str| Verdict::Different(text.to_owned());
        for (direct, hub, expect) in [
            (list(&["a", "b"]), list(&["b", "a"]), Verdict::Equal),
            (list(&["a", "b"]), list(&["a"]), different("`b` is missing through the hub")),
            (list(&["a"]), list(&["a", "b"]), different("`b` is listed by the hub only")),
        ] {
            assert!(compare_definitions(&direct, &hub) == expect);
        }
    }
}
