//! A NATS server for a test, from system packages: in a temporary folder, on a free port, and stopped with the test process, even
//! if that is killed.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Places of the program beside those on `PATH`.
const FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A user of a server, by an NKey.
#[derive(Debug)]
pub struct NatsUser {
    /// The seed, which clients need.
    pub seed: String,
    /// The public key, which the server knows.
    pub public: String,
}

impl NatsUser {
    /// A new user.
    #[must_use]
    pub fn new() -> Self {
        let pair = nkeys::KeyPair::new_user();
        Self { seed: pair.seed().expect("a pair has a seed"), public: pair.public_key() }
    }
}

impl Default for NatsUser {
    fn default() -> Self {
        Self::new()
    }
}

/// A running server.
#[derive(Debug)]
pub struct NatsServer {
    program: PathBuf,
    folder: TempDir,
    port: u16,
    /// A shell that ends the server when its stdin is closed, which happens even if the test is killed. Its first line of output
    /// is the process id of the server.
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    watchdog: Child,
    server: Pid,
}

impl NatsServer {
    /// Starts a server.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts a server with these settings.
    #[must_use]
    pub fn start_with(settings: &str) -> Self {
        let program = program().expect(
            "NATS's server is needed: `cargo xtask nats` installs it, or says how (Debian: `apt-get install nats-server`)",
        );
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        drop(listener);
        let folder = TempDir::with_prefix("toolhub-nats-").expect("a temporary folder");
        std::fs::write(folder.path().join("settings"), settings).expect("the settings are written");
        let server = Self { program, folder, port, running: Mutex::new(None) };
        server.restart();
        server
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts it again after [`Self::stop`], on the same port.
    pub fn restart(&self) {
        let log = self.folder.path().join("log");
        let script = r#""$0" --addr 127.0.0.1 --port "$1" --log "$2" --config "$3" &
            echo $!
            read -r _
            kill -KILL $! 2>/dev/null"#;
        let mut watchdog = Command::new("sh")
            .args(["-c", script])
            .arg(&self.program)
            .arg(self.port.to_string())
            .args([&log, &self.folder.path().join("settings")])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("`sh` starts");
        let mut line = String::new();
        let output = watchdog.stdout.take().expect("its output");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a process id");
        let server = line.trim().parse().ok().and_then(Pid::from_raw).expect("a process id");
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            assert!(Instant::now() < deadline, "the NATS server does not start:\n{log}");
            sleep(Duration::from_millis(10));
        }
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Running { watchdog, server });
    }

    /// Kills the server; connections end at once.
    pub fn stop(&self) {
        if let Some(mut running) = self.running.lock().unwrap_or_else(PoisonError::into_inner).take() {
            drop(running.watchdog.stdin.take());
            let _ = running.watchdog.wait();
        }
    }

    /// Stops the server without ending it: connections stay open, and nothing answers.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it run on after [`Self::freeze`].
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(running) = &*self.running.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = kill_process(running.server, signal);
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.thaw();
        self.stop();
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join("nats-server")).find(|program| program.exists())
}
