//! Checks each client: lists the hub's tools and calls one, without and with hostile definitions behind the hub.
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde_json::{Map, Value, json};

use super::{
    Context, Options,
    catalog::{Client, Installed},
    drive::{Driver, TOOL},
    hostile,
    hub::Hub,
    in_parallel,
    rpc::RpcClient,
};
use crate::{run, table::Table};

/// The server that provides the called tool.
const SERVER: &str = "everything";
/// The result of that tool.
const MESSAGE: &str = "Echo: hello";
const HOSTILE: &str = "hostile";
/// The profile without the hostile definitions.
const PLAIN: &str = "default";
/// Maximum length of a reported failure, in characters.
const MAX_SHOWN: usize = 600;

struct Row {
    name: String,
    /// Number of listed tools without and with the hostile definitions.
    listed: Option<[usize; 2]>,
    called: bool,
    left_over: Vec<String>,
    time: Duration,
    failure: Option<String>,
    /// Hostile definitions that make the client fail.
    rejected: Vec<String>,
}

/// A hub with a fixed list of tools, shared by all clients.
struct Subject<'a> {
    context: &'a Context<'a>,
    hub: Hub,
    /// Number of tools that the hub offers without and with the hostile definitions.
    offered: [usize; 2],
    /// The hostile definitions; each has its own profile.
    hostile: Vec<Value>,
}

/// Checks the clients, prints the table and returns the number of clients that passed.
pub(super) fn check_all(context: &Context<'_>, clients: &[Installed<Client>]) -> Result<usize> {
    let subject = Subject::create(context)?;
    let rows = in_parallel(clients, |client| {
        let row = Row::check(&subject, client);
        eprintln!("{} {}", if row.passed(&subject) { "ok    " } else { "FAILED" }, row.name);
        row
    });
    let passed = rows.iter().filter(|row| row.passed(&subject)).count();
    let mut table = Table::default();
    let head = ["client", "listed", "call works", "listed with hostile definitions", "left over", "time"];
    table.row(head.map(str::to_owned));
    for row in &rows {
        table.row(row.cells(&subject));
    }
    println!("{table}");
    for row in &rows {
        row.print_details();
    }
    println!("{passed} of {} clients pass (hostile definitions: `--seed {}`)\n", rows.len(), context.seed);
    Ok(passed)
}

impl<'a> Subject<'a> {
    fn create(context: &'a Context<'a>) -> Result<Self> {
        let folder = context.folder.join("clients");
        let script = folder.join("hostile.json");
        fs::create_dir_all(&folder)?;
        let definitions = hostile::definitions(context.seed);
        fs::write(&script, json!({"era": "legacy", "tools": definitions}).to_string())?;
        let only = Options { only: vec![SERVER.to_owned()], ..Options::default() };
        let server =
            context.catalog.servers(&only)?.pop().context("the server `everything` is not listed")?;
        let data = folder.join("data");
        fs::create_dir_all(&data)?;
        let launch = context.catalog.launch(&server.entry, &server.folder?, data);
        let mark = folder.display().to_string();
        let scripted = json!({"command": context.scripted, "args": [Path::new("stdio"), &script]});
        let servers: Map<String, Value> =
            [(SERVER.to_owned(), launch.entry(&mark)), (HOSTILE.to_owned(), scripted)].into_iter().collect();
        let hub = Hub::create(&context.toolhub, folder, &servers, &settings(&definitions))?;
        // Now both servers are in the hub's catalog, so that every client gets the same list.
        run::read(&mut hub.command(&["tools"])).context("the hub cannot list its tools")?;
        let count = |profile| -> Result<usize> {
            let command = hub.command(&["serve", "--stdio", "--profile", profile]);
            let mut client = RpcClient::start(command, &hub.folder.join("list.log"))?;
            let listed = client.wait_for_tools()?.len();
            client.close()?;
            Ok(listed)
        };
        let offered = [count(PLAIN)?, count(HOSTILE)?];
        ensure!(offered[0] > 0 && offered[1] > offered[0], "the hub lists {offered:?} tools");
        Ok(Self { context, hub, offered, hostile: definitions })
    }

    /// The definitions that make a client fail on their own, with its error.
    fn find_rejected(&self, driver: &Driver<'_>) -> Result<Vec<String>> {
        // The random definitions, which follow the fixed ones, only combine them.
        let profiles: Vec<String> =
            (0..self.hostile.len() - hostile::RANDOM_DEFINITIONS).map(profile_of).collect();
        let reports = driver.reports(&profiles)?;
        driver.left_over();
        let failures = self.hostile.iter().zip(&reports);
        let failures = failures.filter_map(|(definition, report)| Some((definition, failure(report)?)));
        Ok(failures.map(|(definition, error)| format!("rejects {definition}: {error}")).collect())
    }
}

impl Row {
    fn check(subject: &Subject<'_>, client: &Installed<Client>) -> Self {
        let started = Instant::now();
        let mut row = Self {
            name: client.entry.name.clone(),
            listed: None,
            called: false,
            left_over: Vec::new(),
            time: Duration::ZERO,
            failure: None,
            rejected: Vec::new(),
        };
        let checked = match &client.folder {
            Ok(installed) => row.compare(subject, &client.entry, installed),
            Err(error) => Err(anyhow!("cannot be installed: {error:#}")),
        };
        row.failure = row.failure.or(checked.err().map(|error| format!("{error:#}")));
        row.time = started.elapsed();
        row
    }

    fn compare(&mut self, subject: &Subject<'_>, client: &Client, installed: &Path) -> Result<()> {
        let driver = Driver::new(subject.context, &subject.hub, client, installed)?;
        let reports = driver.reports(&[PLAIN, HOSTILE].map(str::to_owned));
        self.left_over = driver.left_over();
        let reports = reports?;
        let [plain, hostile] = &reports[..] else { bail!("{} reports, not two", reports.len()) };
        self.listed = Some([count(plain), count(hostile)]);
        self.called = plain["called"] == MESSAGE;
        self.failure = failure(plain);
        if let (None, Some(error)) = (&self.failure, failure(hostile)) {
            self.failure = Some(format!("with hostile definitions: {error}"));
            if subject.context.explain {
                self.rejected = subject.find_rejected(&driver)?;
            }
        }
        Ok(())
    }

    /// Whether the client lists all offered tools, and the call works in both profiles.
    fn passed(&self, subject: &Subject<'_>) -> bool {
        self.listed == Some(subject.offered) && self.failure.is_none() && self.left_over.is_empty()
    }

    fn cells(&self, subject: &Subject<'_>) -> [String; 6] {
        let listed = |index: usize| match self.listed {
            Some(listed) => format!("{} of {}", listed[index], subject.offered[index]),
            None => "-".to_owned(),
        };
        [
            self.name.clone(),
            listed(0),
            if self.called { "yes" } else { "NO" }.to_owned(),
            listed(1),
            self.left_over.len().to_string(),
            format!("{:.1} s", self.time.as_secs_f64()),
        ]
    }

    fn print_details(&self) {
        for text in self.failure.iter().chain(&self.left_over).chain(&self.rejected) {
            let truncated: String = text.chars().take(MAX_SHOWN).collect();
            println!("  {}: {truncated}", self.name);
        }
    }
}

/// The error in a report, or an unexpected result of the call.
fn failure(report: &Value) -> Option<String> {
    match (&report["error"], &report["called"]) {
        (Value::String(error), _) => Some(error.clone()),
        (_, called) if called != MESSAGE => Some(format!("the call returned {called}")),
        _ => None,
    }
}

fn profile_of(definition: usize) -> String {
    format!("hostile_{definition}")
}

/// A profile without the hostile definitions, one with all of them, and one with each.
fn settings(hostile: &[Value]) -> String {
    let profile = |name: &str, servers: &str, tools: &str| {
        format!("[profiles.{name}]\nservers = [{servers}]\nexpose = \"all\"\n{tools}\n")
    };
    let both = format!("\"{SERVER}\", \"{HOSTILE}\"");
    let mut settings = profile(PLAIN, &format!("\"{SERVER}\""), "") + &profile(HOSTILE, &both, "");
    for (index, definition) in hostile.iter().enumerate() {
        // A name that is not a string becomes `""`, which matches no tool.
        let tools =
            format!("tools = [\"{TOOL}\", {}]", json!(definition["name"].as_str().unwrap_or_default()));
        settings.push_str(&profile(&profile_of(index), &both, &tools));
    }
    settings
}

fn count(report: &Value) -> usize {
    report["tools"].as_array().map_or(0, Vec::len)
}
