//! One row per client: it lists the hub's tools and calls one, without and with hostile definitions behind the hub.
use std::{
    fs,
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Map, Value, json};

use super::{
    Context, Options,
    catalog::{Client, Installed},
    hostile,
    hub::Hub,
    in_parallel, left_over,
    rpc::RpcClient,
};
use crate::{
    run::{self, program},
    table::Table,
};

/// The server whose tool is called.
const SERVER: &str = "everything";
const TOOL: &str = "echo";
const MESSAGE: &str = "Echo: hello";
const HOSTILE: &str = "hostile";
/// One profile without the hostile definitions, one with them.
const SETTINGS: &str = "[profiles.default]\nservers = [\"everything\"]\nexpose = \"all\"\n\
    [profiles.hostile]\nservers = [\"everything\", \"hostile\"]\nexpose = \"all\"\n";
const CLIENT_TIMEOUT: Duration = Duration::from_secs(180);
const BETWEEN_POLLS: Duration = Duration::from_millis(20);
/// How much of a failure is shown, in characters.
const MAX_SHOWN: usize = 600;

struct Row {
    name: String,
    /// Tools that are listed without and with the hostile definitions.
    listed: Option<[usize; 2]>,
    called: bool,
    left_over: Vec<String>,
    time: Duration,
    failure: Option<String>,
}

/// A hub with a known list of tools, for all clients.
struct Subject<'a> {
    context: &'a Context<'a>,
    hub: Hub,
    /// How many tools a client is offered without and with the hostile definitions.
    offered: [usize; 2],
}

/// Checks the clients, prints the table and returns how many passed.
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
        fs::write(&script, hostile::script(context.seed).to_string())?;
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
        let hub = Hub::create(&context.toolhub, folder, servers, SETTINGS)?;
        // From here on both servers are known, so that every client gets the same list.
        run::read(&mut hub.command(&["tools"])).context("the hub cannot list its tools")?;
        let count = |profile| -> Result<usize> {
            let command = hub.command(&["serve", "--stdio", "--profile", profile]);
            let mut client = RpcClient::start(command, &hub.folder.join("list.log"))?;
            let listed = client.wait_for_tools()?.len();
            client.close()?;
            Ok(listed)
        };
        let offered = [count("default")?, count(HOSTILE)?];
        ensure!(offered[0] > 0 && offered[1] > offered[0], "the hub lists {offered:?} tools");
        Ok(Self { context, hub, offered })
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
        };
        let reports = match &client.folder {
            Ok(installed) => row.drive(subject, &client.entry, installed),
            Err(error) => Err(anyhow::anyhow!("cannot be installed: {error:#}")),
        };
        row.time = started.elapsed();
        match reports {
            Ok([plain, hostile]) => {
                row.listed = Some([count(&plain), count(&hostile)]);
                row.called = [&plain, &hostile].iter().all(|report| report["called"] == MESSAGE);
                let errors = [("", &plain), ("with hostile definitions: ", &hostile)];
                let mut errors =
                    errors.map(|(when, report)| failure(report).map(|text| format!("{when}{text}")));
                row.failure = errors.iter_mut().find_map(Option::take);
            }
            Err(error) => row.failure = Some(format!("{error:#}")),
        }
        row
    }

    /// Runs the script of the client. It prints a report for each of the two profiles.
    fn drive(&mut self, subject: &Subject<'_>, client: &Client, installed: &Path) -> Result<[Value; 2]> {
        let folder = subject.context.folder.join("clients").join(&client.name);
        fs::create_dir_all(&folder)?;
        let targets = ["default", HOSTILE]
            .map(|profile| subject.hub.words(&["serve", "--stdio", "--profile", profile]));
        let (interpreter, environment) = subject.context.catalog.interpreter(client, installed, &folder);
        let mark = folder.display().to_string();
        let mut command = program(&interpreter);
        if !client.is_python() {
            command.arg("--experimental-import-meta-resolve");
        }
        command.arg(script(&client.script)).arg(installed).arg(json!(targets).to_string());
        command.current_dir(&folder).env_clear().envs(environment).env(left_over::MARKER, &mark);
        // Nothing leaves the machine, and nothing is reported home.
        command.env("DO_NOT_TRACK", "1").env("NO_COLOR", "1").env("TOOL", TOOL);
        let output = folder.join("output");
        let errors = folder.join("errors");
        command.stdout(fs::File::create(&output)?).stderr(fs::File::create(&errors)?);
        let mut child = command.stdin(Stdio::null()).process_group(0).spawn()?;
        let deadline = Instant::now() + CLIENT_TIMEOUT;
        let status = loop {
            match child.try_wait()? {
                Some(status) => break Some(status),
                None if Instant::now() > deadline => break None,
                None => thread::sleep(BETWEEN_POLLS),
            }
        };
        if status.is_none() {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            child.wait()?;
        }
        self.left_over = left_over::collect(&mark, &folder);
        let said = fs::read_to_string(&output)?;
        // Frameworks may print lines of their own before.
        let reports = said.lines().rev().find_map(|line| serde_json::from_str::<Vec<Value>>(line).ok());
        match reports.and_then(|reports| <[Value; 2]>::try_from(reports).ok()) {
            Some(reports) => Ok(reports),
            None => bail!("no report: {}", last_lines(&errors)?),
        }
    }

    /// Whether as many tools are listed as are offered, and the call works in both profiles.
    fn passed(&self, subject: &Subject<'_>) -> bool {
        self.listed == Some(subject.offered) && self.called && self.left_over.is_empty()
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
        for text in self.failure.iter().chain(&self.left_over) {
            let shown: String = text.chars().take(MAX_SHOWN).collect();
            println!("  {}: {shown}", self.name);
        }
    }
}

/// Why a report is not what it should be, where it says so or has another result.
fn failure(report: &Value) -> Option<String> {
    match (&report["error"], &report["called"]) {
        (Value::String(error), _) => Some(error.clone()),
        (_, called) if called != MESSAGE => Some(format!("the call returned {called}")),
        _ => None,
    }
}

fn count(report: &Value) -> usize {
    report["tools"].as_array().map_or(0, Vec::len)
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/peers/many/clients").join(name)
}

fn last_lines(file: &Path) -> Result<String> {
    let mut text = String::new();
    fs::File::open(file)?.read_to_string(&mut text)?;
    let skipped = text.chars().count().saturating_sub(MAX_SHOWN);
    Ok(text.chars().skip(skipped).collect::<String>().replace('\n', " | "))
}
