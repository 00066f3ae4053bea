//! The inference server: started on a free port, polled until it is healthy, and killed when its handle is dropped.
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

use super::Model;
use crate::run::program;

/// Loading a gigabyte from a slow disk takes time.
const START_TIMEOUT: Duration = Duration::from_secs(180);
const SCRIPT: &str = include_str!("serve.py");
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

/// A running server; dropping this kills it.
pub(super) struct ModelServer {
    child: Child,
    address: SocketAddr,
}

impl ModelServer {
    /// Starts the server with the Python of `environment`.
    pub(super) fn start(environment: &Path, model: &Model, file: &Path, log: &Path) -> Result<Self> {
        let address = free_address()?;
        let written = File::create(log)?;
        let python = environment.join("bin/python");
        let child = program(&python)
            .args(["-c", SCRIPT])
            .arg(file)
            .args([model.name, &address.port().to_string()])
            .args([model.context.to_string(), model.max_tokens.to_string()])
            .arg(model.repeat_penalty)
            .stdin(Stdio::piped())
            .stdout(written.try_clone()?)
            .stderr(written)
            .spawn()
            .with_context(|| format!("`{}` does not start", python.display()))?;
        let mut server = Self { child, address };
        server.wait(log)?;
        Ok(server)
    }

    /// The base URL of its OpenAI-compatible API.
    pub(super) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    fn wait(&mut self, log: &Path) -> Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        while !is_healthy(self.address) {
            if let Some(status) = self.child.try_wait()? {
                bail!("the model's server ended ({status}):\n{}", tail(log));
            }
            if Instant::now() > deadline {
                bail!("the model's server is not ready after {} s:\n{}", START_TIMEOUT.as_secs(), tail(log));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // It may have exited already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?)
}

/// Whether `GET /health` returns 200; while the model is loading, the status is 503.
fn is_healthy(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&address, HEALTH_TIMEOUT)?;
        stream.set_read_timeout(Some(HEALTH_TIMEOUT))?;
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
