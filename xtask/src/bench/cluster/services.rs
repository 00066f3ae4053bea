//! PostgreSQL, NATS and HAProxy of a run, from system packages, on free ports of this machine.
use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::scratch::{Process, Scratch};
use crate::{
    debian, postgres,
    run::{self, program},
    workspace::Workspace,
};

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Connections that PostgreSQL accepts; a member of a cluster has a handful.
const MAX_CONNECTIONS: usize = 200;

/// A PostgreSQL server with the default settings, so that commits wait for the disk.
pub(super) struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    account: Option<Account>,
    server: Process,
}

/// PostgreSQL refuses to run as root, so another account is used then.
#[derive(Clone, Copy)]
struct Account {
    uid: u32,
    gid: u32,
}

impl Postgres {
    pub(super) fn start(scratch: &Scratch) -> Result<Self> {
        let programs = postgres::programs().context("no PostgreSQL server: `cargo xtask postgres`")?;
        let folder = scratch.folder("postgres")?;
        let account = rustix::process::geteuid().is_root().then(unprivileged).transpose()?;
        if let Some(Account { uid, gid }) = account {
            chown(&folder, Some(uid), Some(gid))?;
        }
        let port = free_port()?;
        let mut initdb = command_of(&programs.join("initdb"), &folder, account);
        initdb.args([
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--auth=trust",
            "--username=toolhub",
        ]);
        run::read(initdb.arg("--pgdata").arg(folder.join("data")))?;
        let server = start_server(&programs, &folder, port, account)?;
        Ok(Self { programs, folder, port, account, server })
    }

    pub(super) fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Creates an empty database and returns its URL.
    pub(super) fn database(&self, name: &str) -> Result<String> {
        let port = self.port.to_string();
        let mut createdb = command_of(&self.programs.join("createdb"), &self.folder, self.account);
        run::read(createdb.args(["--host=127.0.0.1", "--username=toolhub", "--port", &port, name]))?;
        Ok(format!("postgres://toolhub@127.0.0.1:{port}/{name}"))
    }

    /// The number of connections to a database.
    pub(super) fn connections(&self, name: &str) -> Result<usize> {
        let statement = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'");
        let port = self.port.to_string();
        let mut psql = command_of(&self.programs.join("psql"), &self.folder, self.account);
        psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--host=127.0.0.1", "--username=toolhub"]);
        let count = run::read(psql.args(["--port", &port, "--command", &statement, "postgres"]))?;
        count.trim().parse().with_context(|| format!("not a number: {count}"))
    }

    /// Kills the server by SIGKILL, and starts it again. Returns when it accepts connections.
    pub(super) fn restart(&mut self) -> Result<()> {
        self.server.kill();
        self.server = start_server(&self.programs, &self.folder, self.port, self.account)?;
        Ok(())
    }
}

impl Drop for Postgres {
    /// Ends the server by SIGQUIT, so that it releases its shared memory.
    fn drop(&mut self) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        let since = Instant::now();
        if pid.is_some_and(|pid| kill_process(pid, Signal::QUIT).is_ok()) {
            while matches!(self.server.0.try_wait(), Ok(None)) && since.elapsed() < STOP_TIMEOUT {
                thread::sleep(POLL_INTERVAL);
            }
        }
    }
}

/// Starts the server and waits until it accepts connections. It ends at once while processes of a killed one are left, and is
/// started again then.
fn start_server(programs: &Path, folder: &Path, port: u16, account: Option<Account>) -> Result<Process> {
    let log = folder.join("log");
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let mut command = command_of(&programs.join("postgres"), folder, account);
        command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder).args(["-h", "127.0.0.1"]);
        command.args(["-p", &port.to_string(), "-c", &format!("max_connections={MAX_CONNECTIONS}")]);
        let output = File::options().create(true).append(true).open(&log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let mut server = Process::spawn(&mut command)?;
        while server.0.try_wait()?.is_none() {
            let mut is_ready = command_of(&programs.join("pg_isready"), folder, account);
            is_ready.args(["--quiet", "--host=127.0.0.1", "--port", &port.to_string()]);
            if is_ready.status()?.success() {
                return Ok(server);
            }
            if Instant::now() > deadline {
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
        if Instant::now() > deadline {
            bail!("PostgreSQL does not start:\n{}", fs::read_to_string(&log).unwrap_or_default());
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn command_of(path: &Path, folder: &Path, account: Option<Account>) -> Command {
    let mut command = program(path);
    command.current_dir(folder);
    if let Some(Account { uid, gid }) = account {
        command.uid(uid).gid(gid);
    }
    command
}

/// The account created by the packages, otherwise the one that owns no files.
fn unprivileged() -> Result<Account> {
    let accounts = fs::read_to_string("/etc/passwd")?;
    let find = |name: &str| {
        accounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let id = |index: usize| fields.get(index)?.parse().ok();
            (fields.first() == Some(&name)).then_some(Account { uid: id(2)?, gid: id(3)? })
        })
    };
    find("postgres").or_else(|| find("nobody")).context("no account that is not root")
}

/// A NATS server.
pub(super) struct Nats {
    program: PathBuf,
    folder: PathBuf,
    port: u16,
    server: Process,
}

impl Nats {
    pub(super) fn start(scratch: &Scratch) -> Result<Self> {
        let program = debian::system_program("nats-server").context("no NATS server: `cargo xtask nats`")?;
        let (folder, port) = (scratch.folder("nats")?, free_port()?);
        let server = start_listener(&mut nats_command(&program, &folder, port), port, &folder.join("log"))?;
        Ok(Self { program, folder, port, server })
    }

    pub(super) fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub(super) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills the server by SIGKILL, and starts it again. Returns when it accepts connections.
    pub(super) fn restart(&mut self) -> Result<()> {
        self.server.kill();
        let mut command = nats_command(&self.program, &self.folder, self.port);
        self.server = start_listener(&mut command, self.port, &self.folder.join("log"))?;
        Ok(())
    }
}

fn nats_command(path: &Path, folder: &Path, port: u16) -> Command {
    let mut command = program(path);
    command.current_dir(folder).args(["--addr", "127.0.0.1", "--port", &port.to_string()]);
    command
}

/// `HAProxy` with the settings that the packages ship, in front of replicas.
pub(super) struct LoadBalancer {
    server: Process,
    /// The address for clients.
    pub(super) url: String,
}

impl LoadBalancer {
    pub(super) fn start(workspace: &Workspace, folder: &Path, replicas: &[&str]) -> Result<Self> {
        let path = debian::system_program("haproxy").context("no HAProxy: `cargo xtask haproxy`")?;
        let shipped = fs::read_to_string(workspace.root.join("packaging/haproxy/haproxy.cfg"))?;
        let (file, port) = (folder.join(format!("haproxy-{}.cfg", replicas.len())), free_port()?);
        fs::write(&file, settings(&shipped, port, replicas)?)?;
        let mut command = program(path);
        command.current_dir(folder).arg("-db").arg("-f").arg(&file);
        let server = start_listener(&mut command, port, &file.with_extension("log"))?;
        Ok(Self { server, url: format!("http://127.0.0.1:{port}/mcp") })
    }

    pub(super) fn pid(&self) -> u32 {
        self.server.pid()
    }
}

/// The shipped settings with this port and these replicas.
fn settings(shipped: &str, port: u16, replicas: &[&str]) -> Result<String> {
    let (before, _) = shipped.split_once("    server replica1").context("the settings list no replicas")?;
    // A limit of connections that needs no more open files than a process usually may have.
    let mut settings = before
        .replace("maxconn 20000", "maxconn 1000")
        .replace("bind :8080", &format!("bind 127.0.0.1:{port}"));
    for (number, replica) in replicas.iter().enumerate() {
        let address = replica.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let address = address.with_context(|| format!("`{replica}` is no address of a replica"))?;
        settings.push_str(&format!("    server replica{number} {address} check\n"));
    }
    Ok(settings)
}

/// Starts a server and waits until it listens.
fn start_listener(command: &mut Command, port: u16, log: &Path) -> Result<Process> {
    let output = File::options().create(true).append(true).open(log)?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let mut server = Process::spawn(command)?;
    let since = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if server.0.try_wait()?.is_some() || since.elapsed() > START_TIMEOUT {
            let name = command.get_program().to_string_lossy();
            bail!("`{name}` does not listen:\n{}", fs::read_to_string(log).unwrap_or_default());
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(server)
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_settings_get_the_replicas() {
        let shipped = include_str!("../../../../packaging/haproxy/haproxy.cfg");
        let found = settings(shipped, 9, &["http://127.0.0.1:1/mcp", "http://127.0.0.1:2/mcp"]).unwrap();
        assert!(found.contains("bind 127.0.0.1:9\n") && found.contains("maxconn 1000\n"), "{found}");
        let servers: Vec<&str> = found.lines().filter(|line| line.starts_with("    server ")).collect();
        let expected = ["    server replica0 127.0.0.1:1 check", "    server replica1 127.0.0.1:2 check"];
        assert_eq!(servers, expected);
        assert!(settings("frontend mcp", 9, &[]).is_err());
    }
}
