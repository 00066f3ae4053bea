//! What can be written on the command line. The Chinese texts stand in `help`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use toolhub::settings::Span;

/// One place for every tool an AI agent can use
#[derive(Debug, Parser)]
#[command(
    name = "toolhub",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Config file [default: ./toolhub.toml, then the user's config folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Data folder [default: the user's data folder]
    #[arg(long, global = true, value_name = "DIR", env = "TOOLHUB_HOME", hide_env = true)]
    pub(crate) home: Option<PathBuf>,
    /// Machine-readable answers on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show the route and every event on stderr
    #[arg(long, global = true)]
    pub(crate) trace: bool,
    /// Say nothing but answers and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more on stderr
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Language of messages: en or zh [default: the locale's]
    #[arg(long, global = true, value_name = "LANG", value_parser = ["en", "zh"], hide_possible_values = true)]
    pub(crate) lang: Option<String>,
    /// Colours: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub(crate) color: Color,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Call a tool
    Call(CallArgs),
    /// Show who would serve a call and why; run nothing
    Explain(ExplainArgs),
    /// List tools, or show one
    Tools(ToolsArgs),
    /// List, add, remove and test MCP servers
    Servers(ServersArgs),
    /// Check config, servers and data, and say what to do
    Doctor,
    /// Print completions for a shell
    Completions(CompletionsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool
    pub(crate) tool: String,
    /// Arguments, typed by the tool's schema; `key:=JSON` gives a value as JSON
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// Arguments as a JSON object, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Where the tool lives; a server's id makes it the only one asked
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// How long to wait, connecting included, such as 30s, 500ms or 2m
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Span>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The tool
    pub(crate) tool: String,
    /// Where the caller believes the tool to live
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Arguments as a JSON object, `@FILE`, or `-`: candidates that do not accept them are left out
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ToolsCommand>,
    /// Only the tools of this source
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Ask every server again
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Only what is known already; connect to nothing
    #[arg(long, conflicts_with = "refresh")]
    pub(crate) cached: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Show one tool, with its arguments
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The tool
    pub(crate) tool: String,
    /// The source to show it from [default: the one that would be called]
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServersArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ServersCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServersCommand {
    /// List the configured servers, connecting to none
    List,
    /// Add a server to mcp.json
    Add(AddArgs),
    /// Remove a server
    Remove(RemoveArgs),
    /// Connect to servers and list their tools
    Test(TestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// What to call it
    pub(crate) id: String,
    /// The address of an HTTP server
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "env", "cwd"])]
    pub(crate) url: Option<String>,
    /// How an HTTP server is spoken to: http or sse
    #[arg(long = "type", value_name = "TYPE", value_parser = ["http", "sse"], default_value = "http", requires = "url", hide_possible_values = true, hide_default_value = true)]
    pub(crate) kind: String,
    /// A header for every request
    #[arg(long, value_name = "NAME=VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// A variable for the program
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// The folder the program starts in
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Replace a server of the same name
    #[arg(long)]
    pub(crate) replace: bool,
    /// Do not try to connect
    #[arg(long)]
    pub(crate) no_test: bool,
    /// The program and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Which server
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Which servers [default: all]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    #[arg(hide_possible_values = true)]
    pub(crate) shell: clap_complete::Shell,
}
