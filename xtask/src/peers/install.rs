//! Installs Python and Node packages into separate directories, and locates the interpreters for it.
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::run::{check, download, program, read};

const PYTHONS: &[&str] = &["python3.11", "python3", "python3.12", "python3.13", "python"];
const OLDEST_PYTHON: Version = Version(3, 11);
const OLDEST_NODE: Version = Version(20, 0);

pub(crate) fn python(home: &Path, requirements: &[&str]) -> Result<()> {
    let python = find_python()?;
    check(program(python).args(["-m", "venv"]).arg(home))
        .context("no virtual environment; on Debian and Ubuntu it needs the package `python3-venv`")?;
    let mut pip = program(home.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    download(pip.args(requirements))
}

/// uv, a fast Python package installer that keeps one copy of each file on disk.
pub(crate) struct Uv {
    pub(crate) program: PathBuf,
    /// On the same file system as the environments, so that files can be hard-linked.
    pub(crate) cache: PathBuf,
}

impl Uv {
    /// Creates a virtual environment with these requirements.
    pub(super) fn python(&self, home: &Path, requirements: &[&str]) -> Result<()> {
        let uv = |words: &[&str]| {
            let mut command = program(&self.program);
            command.arg("--quiet").arg("--cache-dir").arg(&self.cache).args(words);
            command
        };
        check(uv(&["venv", "--no-project", "--allow-existing", "--python", find_python()?]).arg(home))?;
        let mut pip = uv(&["pip", "install"]);
        if let Some(index) = std::env::var_os("PIP_INDEX_URL") {
            pip.arg("--default-index").arg(index);
        }
        download(pip.arg("--python").arg(home.join("bin/python")).args(requirements))
    }
}

pub(crate) fn node(home: &Path, packages: &[&str]) -> Result<()> {
    let output = read(program("node").arg("--version")).ok();
    let version = output.as_deref().and_then(|output| Version::parse(output.trim_start_matches('v'), '.'));
    match version {
        Some(version) if version >= OLDEST_NODE => {}
        Some(Version(major, _)) => bail!("Node {major} is too old: install Node {} or newer", OLDEST_NODE.0),
        None => bail!("Node was not found: install Node {} or newer, with npm", OLDEST_NODE.0),
    }
    let mut npm = program("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    download(npm.arg("--prefix").arg(home).args(packages)).context("npm comes with Node")
}

fn find_python() -> Result<&'static str> {
    let Version(major, minor) = OLDEST_PYTHON;
    let good = |name: &&&str| {
        let output = read(program(name).args(["-c", "import sys; print(*sys.version_info[:2])"])).ok();
        output.and_then(|output| Version::parse(&output, ' ')).is_some_and(|version| version >= OLDEST_PYTHON)
    };
    PYTHONS.iter().find(good).copied().with_context(|| {
        format!(
            "no Python {major}.{minor} or newer (tried {}): install one and put it on PATH",
            PYTHONS.join(", ")
        )
    })
}

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Version(u32, u32);

impl Version {
    fn parse(text: &str, separator: char) -> Option<Self> {
        let mut numbers = text.trim().split(separator).map(|number| number.parse().ok());
        Some(Self(numbers.next()??, numbers.next()??))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_versions() {
        for (text, separator, expect) in [
            ("3 11\n", ' ', Some(Version(3, 11))),
            ("20.20.2\n", '.', Some(Version(20, 20))),
            ("20", '.', None),
            ("", '.', None),
            ("x.y", '.', None),
        ] {
            assert_eq!(Version::parse(text, separator), expect, "{text}");
        }
        assert!(
            Version(3, 9) < OLDEST_PYTHON && Version(3, 12) > OLDEST_PYTHON && Version(4, 0) > OLDEST_PYTHON
        );
    }
}
