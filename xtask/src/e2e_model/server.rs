//! The model's server: started on a free port, waited for until it is well, and ended with its handle.
use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::run::program;

/// Reading a gigabyte from a slow disk takes a while.
const START: Duration = Duration::from_secs(180);
/// What the model is called; the path of its file otherwise.
const NAME: &str = "qwen2.5-coder-1.5b";
const POLL: Duration = Duration::from_millis(200);
const ANSWER: Duration = Duration::from_secs(2);

/// A server that runs; it is ended when this is dropped.
pub(super) struct Running {
    child: Child,
    address: SocketAddr,
}

impl Running {
    pub(super) fn start(llama: &Path, model: &Path, log: &Path) -> Result<Self> {
        let address = free_address()?;
        let written = File::create(log)?;
        let child = program(llama)
            // Its libraries lie beside it.
            .env("LD_LIBRARY_PATH", llama.parent().unwrap_or(llama))
            .arg("-m")
            .arg(model)
            .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
            // A driver for graphics that is there by chance must not change what is measured.
            .args(["-c", "4096", "-np", "1", "--device", "none", "--jinja", "--alias", NAME])
            .stdin(Stdio::null())
            .stdout(written.try_clone()?)
            .stderr(written)
            .spawn()
            .with_context(|| format!("`{}` does not start", llama.display()))?;
        let mut server = Self { child, address };
        server.wait(log)?;
        Ok(server)
    }

    /// Where its models are spoken to.
    pub(super) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    fn wait(&mut self, log: &Path) -> Result<()> {
        let deadline = Instant::now() + START;
        while !is_well(self.address) {
            if let Some(status) = self.child.try_wait()? {
                bail!("the model's server ended ({status}):\n{}", tail(log));
            }
            if Instant::now() > deadline {
                bail!("the model's server is not ready after {} s:\n{}", START.as_secs(), tail(log));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?)
}

/// Whether it answers `GET /health` with 200; while it loads it answers with 503.
fn is_well(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        Ok(status.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
