//! Runs the client scripts, each of which uses one library, and returns what they observed.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use toolhub_testkit::peers::{node, peers};

use crate::served_hub::ServedHub;

/// How a client is run.
pub(crate) struct ClientLibrary {
    /// Its script.
    pub(crate) script: &'static str,
    /// Which API it uses: the first argument of the script.
    pub(crate) api: &'static str,
}

impl ClientLibrary {
    /// Runs these scenarios, and returns their observations by name.
    pub(crate) fn run(&self, hub: &ServedHub, scenarios: &[&str]) -> Value {
        self.run_with(hub, scenarios, &[])
    }

    /// Like `run`, with further environment variables.
    pub(crate) fn run_with(
        &self,
        hub: &ServedHub,
        scenarios: &[&str],
        environment: &[(&str, &str)],
    ) -> Value {
        let mut command = if self.script.ends_with(".py") { self.python() } else { self.node(hub.folder()) };
        command.arg(self.api).arg(scenarios.join(",")).current_dir(hub.folder()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", hub.folder());
        command.env("PYTHONUTF8", "1").env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("BASE_URL", hub.base_url()).env("API_KEY", &hub.key).envs(environment.iter().copied());
        let output = command.output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let who = format!("{} {} {scenarios:?}", self.script, self.api);
        assert!(output.status.success(), "{who}: {stdout}\n{stderr}\nthe hub: {}", hub.stderr());
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{who}: {error} in {stdout}\n{stderr}"))
    }

    fn python(&self) -> Command {
        let mut python = Command::new(peers().join("openai-python/bin/python"));
        python.arg(scripts().join(self.script));
        python
    }

    /// Modules are resolved from the folder of the script, so it is copied next to a link to the packages.
    fn node(&self, folder: &Path) -> Command {
        let folder = folder.join("node");
        if !folder.exists() {
            std::fs::create_dir(&folder).unwrap();
            let packages = peers().join("openai-node/node_modules");
            std::os::unix::fs::symlink(packages, folder.join("node_modules")).unwrap();
        }
        for script in ["observation.mjs", self.script] {
            std::fs::copy(scripts().join(script), folder.join(script)).unwrap();
        }
        let mut command = Command::new(node());
        command.arg(folder.join(self.script));
        command
    }
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openai/clients")
}
