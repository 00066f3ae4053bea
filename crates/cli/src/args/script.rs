//! The arguments of `toolhub script`.

use clap::{Args, Subcommand};
use toolhub::settings::DurationSetting;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ScriptArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ScriptCommand>,
    /// The file with the program; `-` reads it from standard input
    #[arg(required = true)]
    pub(crate) file: Option<String>,
    /// The value of `input` in the program: JSON, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// Change nothing: call only tools that declare themselves read-only, and list the other calls
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How long the program may run, such as 30s or 2m
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<DurationSetting>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScriptCommand {
    /// Print TypeScript declarations (.d.ts) of the tools that a script can call
    Types(ScriptTypesArgs),
    /// Resume a script whose hub was killed; changes that have an answer are not repeated
    Resume(ScriptResumeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ScriptTypesArgs {
    /// Only the tools of these servers
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ScriptResumeArgs {
    /// The id of the script in `toolhub history`
    pub(crate) id: String,
}
