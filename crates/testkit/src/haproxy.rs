//! `HAProxy` for a test, from system packages, with the settings that the packages ship: on a free port, before replicas of the test,
//! and stopped with the test process, even if that is killed.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Places of the program beside those on `PATH`.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A running load balancer.
#[derive(Debug)]
pub struct LoadBalancer {
    port: u16,
    /// A shell that ends the program when its stdin is closed.
    watchdog: Child,
    _folder: TempDir,
}

impl LoadBalancer {
    /// Starts it before the replicas at these ports of 127.0.0.1, with the settings in `packaging/haproxy`.
    #[must_use]
    pub fn start(replicas: &[u16]) -> Self {
        let program = program().expect(
            "HAProxy is needed: `cargo xtask haproxy` installs it, or says how (Debian: `apt-get install haproxy`)",
        );
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        drop(listener);
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/haproxy/haproxy.cfg");
        let shipped = std::fs::read_to_string(shipped).expect("the shipped settings");
        let (settings, _) = shipped.split_once("    server replica1").expect("a list of replicas");
        // A limit of connections that needs no more open files than a test may have.
        let mut settings = settings
            .replace("maxconn 20000", "maxconn 1000")
            .replace("bind :8080", &format!("bind 127.0.0.1:{port}"));
        for (number, replica) in replicas.iter().enumerate() {
            settings.push_str(&format!("    server replica{number} 127.0.0.1:{replica} check\n"));
        }
        let folder = TempDir::with_prefix("toolhub-haproxy-").expect("a temporary folder");
        let (file, log) = (folder.path().join("haproxy.cfg"), folder.path().join("log"));
        std::fs::write(&file, settings).expect("the settings are written");
        let script = r#""$0" -db -f "$1" >"$2" 2>&1 &
            read -r _
            kill -KILL $! 2>/dev/null"#;
        let watchdog = Command::new("sh")
            .args(["-c", script])
            .arg(&program)
            .args([&file, &log])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("`sh` starts");
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            assert!(Instant::now() < deadline, "HAProxy does not start:\n{log}");
            sleep(Duration::from_millis(10));
        }
        Self { port, watchdog, _folder: folder }
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for LoadBalancer {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.wait();
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join("haproxy")).find(|program| program.exists())
}
