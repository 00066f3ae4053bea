//! The search benchmark: finds the data and runs the example `search_bench` of the search crate.
use std::path::absolute;

use anyhow::Result;

use crate::{
    run::{self, cargo},
    workspace::Workspace,
};

/// The supported sets, with the publication of each.
const SETS: &[(&str, &str)] = &[
    ("metatool_single, metatool_multi", "MetaTool (github HowieHwong/MetaTool)"),
    ("bfcl", "Berkeley Function Calling Leaderboard (the Python package bfcl-eval)"),
    ("sealtools", "Seal-Tools (github fairyshine/Seal-Tools)"),
    ("acebench_en, acebench_zh", "ACEBench (github chenchen0103/ACEBench)"),
    ("ultratool_dev_en, _zh, _zh2en", "UltraTool (github JoeYing1019/UltraTool)"),
    ("toucan_catalogue", "Toucan (github TheAgentArk/Toucan)"),
    ("livemcp_tasks, livemcp_steps", "LiveMCPBench (github icip-cas/LiveMCPBench)"),
    ("mcptoolbench", "MCPToolBench++ (github mcp-tool-bench/MCPToolBenchPP)"),
];

pub(super) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    if !args.iter().any(|arg| arg == "--data") {
        println!("No data: name a folder with `--data DIR`. In it, a folder for each set with `tools.jsonl`");
        println!(
            "(`id, name, description, parameters`, and `server` where known) and `queries.jsonl` (`id, query, relevant`). Known sets:"
        );
        for (sets, place) in SETS {
            println!("  {sets}: {place}");
        }
        return Ok(());
    }
    let mut command = cargo(&workspace.root);
    command.args([
        "run",
        "--quiet",
        "--profile",
        "dist",
        "--package",
        "toolhub-search",
        "--example",
        "search_bench",
        "--",
    ]);
    let mut is_path = false;
    for arg in args {
        // Paths are relative to the working directory of the caller, but the program runs in the project root.
        command.arg(if is_path { absolute(arg)? } else { arg.into() });
        is_path = ["--data", "--model", "--settings"].contains(&arg.as_str());
    }
    run::check(&mut command)
}
