//! A scripted server over HTTP with the lifetime of its handle.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::{Script, binary};

/// A running scripted server. It and its children are killed on drop; it also exits with the test process.
#[derive(Debug)]
pub struct HttpServer {
    /// The MCP endpoint, `http://127.0.0.1:PORT/mcp`.
    pub url: String,
    child: Child,
    folder: TempDir,
    /// Whether it was waited for; its PID may be reused then.
    collected: bool,
}

impl HttpServer {
    /// Starts a server on a free port and waits until it listens.
    #[must_use]
    pub fn start(script: &Script) -> Self {
        Self::launch(script, 0)
    }

    /// Starts a server on this port, for example to restart one.
    #[must_use]
    pub fn start_on(script: &Script, port: u16) -> Self {
        Self::launch(script, port)
    }

    fn launch(script: &Script, port: u16) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let stderr = File::create(folder.path().join("stderr")).expect("a file for stderr");
        let mut command = Command::new(binary());
        command.arg("http").arg(script.write(folder.path()));
        command.args(["--port", &port.to_string(), "--until-eof"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().expect("`scripted-mcp` starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut server = Self { url: String::new(), child, folder, collected: false };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("stdout is text");
        match line.trim_end().strip_prefix("listening on ") {
            Some(url) => url.clone_into(&mut server.url),
            None => panic!("`scripted-mcp` does not listen: {line}{}", server.stderr()),
        }
        server
    }

    /// The PID of the server.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The server's port.
    #[must_use]
    pub fn port(&self) -> u16 {
        let authority = self.url.trim_start_matches("http://").trim_end_matches("/mcp");
        authority.rsplit(':').next().and_then(|port| port.parse().ok()).expect("the address has a port")
    }

    /// The stderr output of the server.
    #[must_use]
    pub fn stderr(&self) -> String {
        let bytes = fs::read(self.folder.path().join("stderr")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Kills the server, like a crash.
    pub fn kill(&mut self) {
        if self.collected {
            return;
        }
        self.collected = true;
        #[cfg(unix)]
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            // The process may have exited already.
            _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.kill();
    }
}
