//! Other gateways (peers), measured beside toolhub if they are installed: how each is found, configured and called.
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{RunningServer, Wrap};
use crate::{
    cargo_tools::CargoTool,
    run::{self, program},
    workspace::Workspace,
};

/// Timeout until a peer listens.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Another gateway. Both peers serve clients over HTTP only, in sessions, and connect to servers over HTTP and stdio.
struct Peer {
    tool: CargoTool,
    /// Text in the output of `--help` that identifies this program: other programs have the same name.
    help: &'static str,
    /// The MCP protocol version it supports for clients.
    version: &'static str,
    /// The prefix it adds to the names of tools.
    prefix: &'static str,
    path: &'static str,
    /// Writes the configuration to a folder and returns the command: (program, folder, server, port).
    command: fn(&Path, &Path, &Value, u16) -> Result<Command>,
}

const PEERS: &[Peer] = &[
    Peer {
        tool: CargoTool { name: "mcp-aggregator", version: "0.1.0" },
        help: "An aggregator that merges multiple MCP servers",
        version: "2025-06-18",
        prefix: "",
        path: "/mcp",
        command: aggregator,
    },
    Peer {
        tool: CargoTool { name: "mcp-proxy", version: "0.6.0" },
        help: "Standalone MCP proxy",
        version: "2025-11-25",
        prefix: "up/",
        path: "/",
        command: proxy,
    },
];

/// An installed peer.
pub(super) struct InstalledPeer {
    peer: &'static Peer,
    program: PathBuf,
}

/// The installed peers. Missing ones are installed first if `install` is set, else reported on stdout.
pub(super) fn found(workspace: &Workspace, install: bool) -> Result<Vec<InstalledPeer>> {
    let mut all = Vec::new();
    for peer in PEERS {
        let CargoTool { name, version } = peer.tool;
        let known = |program: &PathBuf| {
            run::read(run::program(program).arg("--help")).is_ok_and(|output| output.contains(peer.help))
        };
        let program = match peer.tool.installed(workspace) {
            Some(installed) => Some(installed),
            None if install => Some(peer.tool.install(workspace, &[])?),
            None => Some(PathBuf::from(name)).filter(known),
        };
        match program {
            Some(program) => all.push(InstalledPeer { peer, program }),
            None => println!("{name} {version} is not installed: `--peers` installs it"),
        }
    }
    Ok(all)
}

impl InstalledPeer {
    pub(super) fn name(&self) -> &'static str {
        self.peer.tool.name
    }

    /// Arguments of `gateway-load` for calls to this peer.
    pub(super) fn call_args(&self) -> Vec<String> {
        self.call_args_for("echo_0")
    }

    /// Like `call_args`, for another tool.
    pub(super) fn call_args_for(&self, tool: &str) -> Vec<String> {
        vec!["session".to_owned(), self.peer.version.to_owned(), format!("{}{tool}", self.peer.prefix)]
    }

    /// Starts the peer in front of `server`, which has the format of an entry in `mcp.json`.
    pub(super) fn serve(&self, folder: &Path, server: &Value) -> Result<RunningServer> {
        self.serve_under(folder, server, &|command| command)
    }

    /// Like `serve`, with a wrapped command.
    pub(super) fn serve_under(&self, folder: &Path, server: &Value, wrap: Wrap<'_>) -> Result<RunningServer> {
        fs::create_dir_all(folder)?;
        // The peers do not report a port assigned by the system, so that a free port is chosen here.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = wrap((self.peer.command)(&self.program, folder, server, port)?);
        let output = fs::File::create(folder.join("said"))?;
        command.current_dir(folder).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().with_context(|| format!("{} does not start", self.name()))?;
        let mut running_server =
            RunningServer { child, url: format!("http://127.0.0.1:{port}{}", self.peer.path) };
        let (address, since) = (SocketAddr::from((Ipv4Addr::LOCALHOST, port)), Instant::now());
        while TcpStream::connect(address).is_err() {
            if running_server.child.try_wait()?.is_some() || since.elapsed() > START_TIMEOUT {
                let output = fs::read_to_string(folder.join("said")).unwrap_or_default();
                bail!("{} does not serve:\n{output}", self.name());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(running_server)
    }
}

fn aggregator(peer: &Path, folder: &Path, server: &Value, port: u16) -> Result<Command> {
    let mut server = server.clone();
    if server["command"].is_string() {
        server["type"] = json!("stdio");
    }
    let file = folder.join("mcp.config.json");
    fs::write(&file, json!({"servers": {"up": server}}).to_string())?;
    let mut command = program(peer);
    command.arg("--config").arg(file).arg("--addr").arg(format!("127.0.0.1:{port}"));
    Ok(command)
}

fn proxy(peer: &Path, folder: &Path, server: &Value, port: u16) -> Result<Command> {
    // JSON strings and arrays of strings are valid TOML.
    let backend = match server["command"].is_string() {
        true => format!("transport = \"stdio\"\ncommand = {}\nargs = {}", server["command"], server["args"]),
        false => format!("transport = \"http\"\nurl = {}", server["url"]),
    };
    let file = folder.join("proxy.toml");
    let text = format!(
        "[proxy]\nname = \"bench\"\nseparator = \"/\"\n\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n\n\
         [observability]\nlog_level = \"error\"\n\n[[backends]]\nname = \"up\"\n{backend}\n"
    );
    fs::write(&file, text)?;
    let mut command = program(peer);
    command.arg("--config").arg(file);
    Ok(command)
}
