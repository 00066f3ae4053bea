//! The cost of the web console: its pages and lists with many tools and a long history, what a browser loads first, its event
//! streams, and calls through the gateway while pages are open.
mod http;
mod pages;
mod streams;

use std::{fs, path::absolute, process::Command};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use self::http::Browser;
use super::gateway::{Programs, RunningServer};
use crate::{
    commands::unknown,
    run::{self, program},
    workspace::Workspace,
};

const TOOLS: usize = 10_000;
const CALLS: usize = 1_000_000;
/// Writes the history into the database of the hub.
const HISTORY_SCRIPT: &str = include_str!("console/history.py");
/// The folder of the configuration and the data of the hub, in the folder of the benchmark.
const HUB: &str = "hub";

pub(super) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let programs = match args {
        [] => Programs::without_peers(workspace, "console")?,
        [flag, programs] if flag == "--programs" => {
            Programs::in_folder(workspace, &absolute(programs)?, "console")
        }
        [other, ..] => return Err(unknown("argument", other, ["--programs"])),
    };
    if programs.folder.exists() {
        fs::remove_dir_all(&programs.folder)?;
    }
    let upstream = programs.upstream(TOOLS)?;
    let setup = Setup { programs: &programs, server: json!({"type": "http", "url": upstream.url}) };
    eprintln!("writing a history of {CALLS} calls");
    setup.write_history()?;
    println!("program: {:.1} MB\n", fs::metadata(&programs.toolhub)?.len() as f64 / 1e6);
    println!("{TOOLS} tools, {CALLS} calls; from the request to the end of the response\n");
    let OpenHub { browser, .. } = &setup.start()?;
    println!("{}", pages::measure(browser)?);
    println!("{}", pages::first_load(browser)?);
    // Memory is compared in hubs that have done little before: otherwise streams and pages take what was freed.
    let OpenHub { hub, browser } = &setup.start()?;
    println!("{}", streams::events(hub, browser)?);
    let OpenHub { hub, browser } = &setup.start()?;
    println!("{}", streams::open_pages(hub, browser)?);
    println!("{}", streams::beside_calls(&programs, hub, browser)?);
    Ok(())
}

/// A running hub and a session of its console.
struct OpenHub {
    hub: RunningServer,
    browser: Browser,
}

/// A hub in front of one server.
struct Setup<'a> {
    programs: &'a Programs,
    server: Value,
}

impl Setup<'_> {
    fn toolhub(&self) -> Result<Command> {
        self.programs.toolhub_with(HUB, &self.server, "[audit]\nenabled = true\n")
    }

    /// Makes one call, and a history from it.
    fn write_history(&self) -> Result<()> {
        run::read(self.toolhub()?.args(["call", "echo_0", "text=hello", "count=3"]))?;
        let mut python = program("python3");
        python.args(["-c", HISTORY_SCRIPT]).arg(self.programs.folder.join(HUB).join("home/toolhub.db"));
        run::read(python.args([CALLS.to_string(), TOOLS.to_string()])).map(drop)
    }

    /// Starts the hub. It serves one call and one page, so that it is connected to its server.
    fn start(&self) -> Result<OpenHub> {
        let hub = Programs::serve(self.toolhub()?, &|command| command)?;
        let browser = self.log_in()?;
        streams::make_call(&mut browser.connect()?)?;
        Ok(OpenHub { hub, browser })
    }

    /// Opens a session with a one-time link.
    fn log_in(&self) -> Result<Browser> {
        let output = run::read(self.toolhub()?.args(["console", "--no-browser", "--json"]))?;
        let found: Value = serde_json::from_str(&output)?;
        Browser::open(found["url"].as_str().context("no link into the console")?)
    }
}
