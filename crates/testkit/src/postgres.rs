//! A PostgreSQL server for a test, from system packages: created in a temporary folder, on a free port, and removed
//! with the test process, even if that is killed.

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

/// The folder of the programs on Debian-based systems, with a subfolder per version.
const PACKAGES: &str = "/usr/lib/postgresql";

/// A running server.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    user: Option<Account>,
    /// Stops the server when its stdin is closed, which happens even if the test is killed.
    watchdog: Child,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Connections are closed, all data is flushed.
    Fast,
    /// Like a crash: recovery is required at the next start.
    Immediate,
}

/// PostgreSQL refuses to run as root, so another account is used then.
#[derive(Debug, Clone, Copy)]
struct Account {
    uid: u32,
    gid: u32,
}

impl PostgresServer {
    /// A server shared by all tests of a process, started on first use.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<PostgresServer> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    /// Starts a new server.
    #[must_use]
    pub fn start() -> Self {
        let programs = programs().expect(
            "PostgreSQL's server is needed: `cargo xtask postgres` installs it, or says how (Debian: `apt-get install postgresql`)",
        );
        let folder = TempDir::with_prefix("toolhub-postgres-").expect("a temporary folder");
        let user = rustix::process::geteuid().is_root().then(unprivileged);
        if let Some(Account { uid, gid }) = user {
            chown(folder.path(), Some(uid), Some(gid)).expect("the folder is given away");
        }
        let port = free_port();
        let watchdog = watchdog(&programs, folder.path(), user);
        let server = Self { programs, folder, port, user, watchdog };
        let data = server.data();
        let data = data.to_str().expect("a temporary folder has a plain name");
        let locale = ["--encoding=UTF8", "--locale=C.UTF-8", "--auth=trust", "--username=toolhub"];
        server.run("initdb", &[&["--no-sync", "--pgdata", data], &locale[..]].concat());
        server.restart();
        server
    }

    /// Starts it again after [`PostgresServer::stop`], on the same port.
    pub fn restart(&self) {
        let socket = self.folder.path().display();
        // Durability across a crash of the machine is not needed, so fsync is off; a killed server still recovers its
        // data.
        let options =
            format!("-p {} -k {socket} -h 127.0.0.1 -c fsync=off -c max_connections=200", self.port);
        let log = self.folder.path().join("log");
        let (data, log) = (self.data(), log.display().to_string());
        let data = data.display().to_string();
        self.run("pg_ctl", &["start", "--wait", "--pgdata", &data, "--log", &log, "--options", &options]);
    }

    /// Stops the server and closes its connections.
    pub fn stop(&self, how: Stop) {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        let data = self.data().display().to_string();
        self.run("pg_ctl", &["stop", "--wait", "--pgdata", &data, "--mode", mode]);
    }

    /// Creates an empty database and returns its URL.
    #[must_use]
    pub fn new_database(&self) -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let port = self.port.to_string();
        self.run("createdb", &["--host=127.0.0.1", "--port", &port, "--username=toolhub", &name]);
        format!("postgres://toolhub@127.0.0.1:{port}/{name}")
    }

    /// Executes a statement in the database of a URL, and returns its rows, one per line.
    #[must_use]
    pub fn execute(&self, url: &str, statement: &str) -> String {
        let mut command = command(&self.programs.join("psql"), self.user);
        let output = command
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", statement, url])
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .expect("`psql` starts");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "`{statement}`: {text}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The data folder, which contains the configuration.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Writes a file to the data folder that only the server may read: certificates, settings.
    pub fn write_file(&self, name: &str, content: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.data().join(name);
        std::fs::write(&path, content).expect("the file is written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("the file is closed");
        if let Some(Account { uid, gid }) = self.user {
            chown(&path, Some(uid), Some(gid)).expect("the file is given away");
        }
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = command(&self.programs.join(program), self.user);
        // The server inherits the output streams, so a pipe would stay open as long as it runs.
        let output = tempfile::tempfile().expect("a temporary file");
        let other = output.try_clone().expect("a second handle");
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(other);
        let status = command.status().expect("a program of PostgreSQL starts");
        if !status.success() {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            panic!("`{program} {}` failed ({status})\n{log}", arguments.join(" "));
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.wait();
    }
}

/// The programs of the newest installed version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir(PACKAGES).into_iter().flatten().flatten();
    let newest = versions.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let programs = entry.path().join("bin");
        programs.join("initdb").exists().then_some((version, programs))
    });
    newest.max().map(|(_, programs)| programs).or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find(|folder| folder.join("initdb").exists())
    })
}

/// Starts a shell that waits for the end of this process, then stops the server and removes its files.
fn watchdog(programs: &Path, folder: &Path, user: Option<Account>) -> Child {
    let script = r#"trap '' INT TERM HUP
        read -r _
        "$0" stop --pgdata "$1/data" --mode immediate
        rm -rf "$1""#;
    let mut shell = command(Path::new("sh"), user);
    shell.args(["-c", script]).arg(programs.join("pg_ctl")).arg(folder).current_dir("/");
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.spawn().expect("`sh` starts")
}

fn command(program: &Path, user: Option<Account>) -> Command {
    let mut command = Command::new(program);
    if let Some(Account { uid, gid }) = user {
        command.uid(uid).gid(gid);
    }
    command
}

/// The account created by the packages, otherwise `nobody`.
fn unprivileged() -> Account {
    let accounts = std::fs::read_to_string("/etc/passwd").expect("the list of accounts");
    let find = |key: &str| {
        accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            if fields.next() != Some(key) {
                return None;
            }
            Some(Account { uid: fields.nth(1)?.parse().ok()?, gid: fields.next()?.parse().ok()? })
        })
    };
    find("postgres").or_else(|| find("nobody")).expect("an account that is not root")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}
