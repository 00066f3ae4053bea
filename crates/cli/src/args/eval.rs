//! The options of `eval`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    pub(crate) command: EvalCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Measure how well tools are found
    Search(EvalSearchArgs),
    /// Measure how well requests are planned; nothing is called
    Plan(EvalPlanArgs),
}

#[derive(Debug, Args)]
pub(crate) struct EvalSearchArgs {
    /// Tools, one JSON definition a line
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: PathBuf,
    /// Requests, one a line: {"query", "relevant": [ids or names]}
    #[arg(long, value_name = "FILE")]
    pub(crate) queries: PathBuf,
    /// Other settings, as JSON, to measure beside the usual ones
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct EvalPlanArgs {
    /// Tools, one JSON definition a line
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: PathBuf,
    /// Requests, one a line: {"id", "request", "expected": [{"tool": [names], "arguments": {name: [values]}}]}
    #[arg(long, value_name = "FILE")]
    pub(crate) requests: PathBuf,
    /// Let this model plan, by its name at the endpoint that is set up, instead of the rules
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Print every plan, the right ones too
    #[arg(long)]
    pub(crate) all: bool,
}
