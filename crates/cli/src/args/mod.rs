//! The clap types of the command line. The Chinese texts are in `help`.

pub(crate) mod access;
pub(crate) mod ask;
pub(crate) mod cluster;
pub(crate) mod eval;
pub(crate) mod help;
pub(crate) mod history;
pub(crate) mod init;
pub(crate) mod script;
pub(crate) mod serve;
pub(crate) mod skills;
pub(crate) mod text;
pub(crate) mod tool_arguments;
pub(crate) mod trust;
pub(crate) mod usage_error;

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use toolhub::Lang;
use toolhub::settings::DurationSetting;

use crate::args::access::{AuditArgs, HeldCallsArgs, KeysArgs};
use crate::args::ask::{AskArgs, ChatArgs, PromptArgs};
use crate::args::eval::EvalArgs;
use crate::args::history::{HistoryArgs, RecommendArgs, ResultArgs, StatsArgs};
use crate::args::init::InitArgs;
use crate::args::script::ScriptArgs;
use crate::args::serve::{ConsoleArgs, ServeArgs};
use crate::args::skills::SkillsArgs;
use crate::args::text::{ParseArgs, RunArgs};
use crate::args::trust::TrustArgs;

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
    /// Config file [default: ./toolhub.toml if this folder is trusted, else the user's]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Data folder [default: the user's data folder]
    #[arg(long, global = true, value_name = "DIR", env = "TOOLHUB_HOME", hide_env = true)]
    pub(crate) home: Option<PathBuf>,
    /// Trust this folder for this run; also TOOLHUB_TRUST=1, or TOOLHUB_TRUST=FOLDER:FOLDER for these folders
    #[arg(long, global = true)]
    pub(crate) trust: bool,
    /// Use the running hub at this address, with the key in TOOLHUB_HUB_KEY; also TOOLHUB_HUB=URL
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) hub: Option<String>,
    /// With `--hub`: read the key from this file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) hub_key_file: Option<PathBuf>,
    /// With `--hub`: permit http:// to another machine, where others may read the key
    #[arg(long, global = true)]
    pub(crate) hub_plain_http: bool,
    /// Use no running hub: start own servers even if `toolhub serve` runs with the same configuration; also TOOLHUB_NO_HUB=1
    #[arg(long, global = true, env = "TOOLHUB_NO_HUB", hide_env = true, value_parser = FalseyValueParser::new())]
    pub(crate) no_hub: bool,
    /// Machine-readable answers on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show the route and every event on stderr
    #[arg(long, global = true)]
    pub(crate) trace: bool,
    /// Print only answers and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print more on stderr
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Language of messages: en or zh [default: the locale's]
    #[arg(long, global = true, value_name = "LANG")]
    pub(crate) lang: Option<Lang>,
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
    /// Set up toolhub for the MCP clients of this machine: import their servers, point them at the hub
    Init(InitArgs),
    /// Ask in your own words: plan, run tools, answer
    Ask(AskArgs),
    /// Start or resume a conversation
    Chat(ChatArgs),
    /// Print the prompt for a model, tools included
    Prompt(PromptArgs),
    /// Call a tool
    Call(CallArgs),
    /// Run a JavaScript program that calls tools
    Script(ScriptArgs),
    /// Run every tool call in a model's text, read from standard input
    Run(RunArgs),
    /// Show the tool calls in a model's text, read from standard input; run nothing
    Parse(ParseArgs),
    /// Show which tool would serve a call and why, without calling it
    Explain(ExplainArgs),
    /// List tools, or show one
    Tools(ToolsArgs),
    /// List, add, remove and test MCP servers
    Servers(ServersArgs),
    /// List, check, approve and run skills
    Skills(SkillsArgs),
    /// Serve every tool to MCP clients, over HTTP or stdio
    Serve(ServeArgs),
    /// Run servers for the hubs of a cluster on this machine
    Work(cluster::WorkArgs),
    /// Show the state of a cluster
    Cluster(cluster::ClusterArgs),
    /// Open the web console of the running hub, or start one
    Console(ConsoleArgs),
    /// Make, list, revoke and rotate keys for people and programs that use the gateway
    Keys(KeysArgs),
    /// List, approve and deny calls that wait for a decision
    Waiting(HeldCallsArgs),
    /// Show, verify and export the audit log
    Audit(AuditArgs),
    /// Show past calls and their results
    History(HistoryArgs),
    /// Show success rate and latency of tools
    Stats(StatsArgs),
    /// Recommend tools: after another one, for a request, or in general
    Recommend(RecommendArgs),
    /// Show the full result of an earlier call
    Result(ResultArgs),
    /// Measure how well toolhub works on a set of your own
    Eval(EvalArgs),
    /// Show what this folder's config, servers and skills would do, and trust them
    Trust(TrustArgs),
    /// Check config, servers, data and the model, and suggest what to do
    Doctor(DoctorArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Write man pages
    #[cfg(feature = "man-pages")]
    #[command(hide = true)]
    ManPages(ManPagesArgs),
    /// Show the help of a command
    Help(HelpArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Send a short message to the language model to test it; may incur a small cost
    #[arg(long)]
    pub(crate) ask_model: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool; with `--capability`, the first argument
    #[arg(required_unless_present = "capability")]
    pub(crate) tool: Option<String>,
    /// Arguments, typed by the tool's schema; `key:=JSON` gives a value as JSON
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// Arguments as a JSON object, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// The source of the tool: a server id, `skill` or `native`
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// How long to wait, connecting included, such as 30s, 500ms or 2m
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<DurationSetting>,
    /// Call by capability, such as search, calculate or time, instead of by tool name
    #[arg(long, value_name = "TAG")]
    pub(crate) capability: Option<String>,
    /// Show only as much as a model would get; the rest is stored, see `toolhub result`
    #[arg(long)]
    pub(crate) brief: bool,
    /// Check the answer: against earlier answers, and its numbers, dates and times
    #[arg(long)]
    pub(crate) verify: bool,
    /// What you want, in your own words: remembered for `toolhub recommend`
    #[arg(long = "for", value_name = "REQUEST")]
    pub(crate) request: Option<String>,
    /// With `--hub`: a repeated call with the same key gets the first result instead of running again
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The tool
    #[arg(required_unless_present = "capability")]
    pub(crate) tool: Option<String>,
    /// The source to use: a server id, `skill` or `native`
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Arguments as a JSON object, `@FILE`, or `-`: candidates that do not accept them are left out
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Route by capability instead of by tool name
    #[arg(long, value_name = "TAG", conflicts_with = "tool")]
    pub(crate) capability: Option<String>,
    /// Show whether this principal may see and call the tool through the gateway: a key's name, or local
    #[arg(long = "as", value_name = "PRINCIPAL", conflicts_with_all = ["capability", "source"])]
    pub(crate) principal: Option<String>,
    /// The profile that the principal uses [default: default]
    #[arg(long, value_name = "NAME", requires = "principal")]
    pub(crate) profile: Option<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ToolsCommand>,
    /// Only the tools of this source
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Only tools with this capability, such as search or table
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Ask every server again
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Only what is known already; connect to nothing
    #[arg(long, conflicts_with = "refresh")]
    pub(crate) cached: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List all tools
    List,
    /// Show one tool, with its arguments
    Show(ShowArgs),
    /// Show what changed in a tool's definition
    Diff(ShowArgs),
    /// Find tools for what you want to do
    Search(SearchArgs),
    /// Approve the current definitions of tools, so that a change is noticed
    Approve(ApproveArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// What the tool should do, in your own words, or its name
    pub(crate) query: String,
    /// Maximum number of results
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 10, hide_default_value = true)]
    pub(crate) limit: usize,
    /// Show what each score is made of
    #[arg(long)]
    pub(crate) explain: bool,
    /// Show the nearest tools even if none fits
    #[arg(long)]
    pub(crate) all: bool,
    /// Only what is known already; connect to nothing
    #[arg(long)]
    pub(crate) cached: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The tool
    #[arg(required_unless_present_any = ["server", "all", "list"])]
    pub(crate) tool: Option<String>,
    /// The source, if several have the tool
    #[arg(long, value_name = "SOURCE", requires = "tool")]
    pub(crate) source: Option<String>,
    /// All tools of this server
    #[arg(long, value_name = "SERVER", conflicts_with = "tool")]
    pub(crate) server: Option<String>,
    /// All tools of all servers
    #[arg(long, conflicts_with_all = ["tool", "server"])]
    pub(crate) all: bool,
    /// Revoke the approval
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Only show what is approved
    #[arg(long, conflicts_with_all = ["tool", "server", "all", "revoke", "yes"])]
    pub(crate) list: bool,
    /// Approve what is suspicious too
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) yes: bool,
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
    /// List the configured servers, without connecting
    List,
    /// Add a server to mcp.json
    Add(AddArgs),
    /// Remove a server
    #[command(visible_alias = "rm")]
    Remove(ServerIdArgs),
    /// Connect to servers and list their tools
    Test(TestArgs),
    /// List the tools of servers again, and show what changed
    Refresh(TestArgs),
    /// Restart a server of the running hub
    Restart(ServerIdArgs),
    /// Show what a server last wrote to its standard error
    Logs(ServerIdArgs),
    /// Show what is known about a server, without connecting
    Show(ServerIdArgs),
    /// List a server's resources, resource templates and prompts
    Offers(ServerIdArgs),
    /// Read a resource of a server
    Read(ReadArgs),
    /// Get a prompt of a server
    Prompt(PromptGetArgs),
    /// Use a server again
    Enable(ServerIdArgs),
    /// Keep a server in the config, but do not use it
    Disable(ServerIdArgs),
    /// Log in to a server that requires authentication
    Login(LoginArgs),
    /// Revoke and delete the tokens of a server
    Logout(LogoutArgs),
    /// Import the servers of another client, such as Claude Code, Cursor or VS Code
    Import(ImportArgs),
    /// Write servers into another client's file
    Export(ExportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// What to call it; `-` reads `{"mcpServers": …}` from standard input
    pub(crate) id: String,
    /// The address of an HTTP server
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "env", "cwd"])]
    pub(crate) url: Option<String>,
    /// How an HTTP server is spoken to: http or sse
    #[arg(long = "type", value_name = "TYPE", value_parser = ["http", "sse"], hide_possible_values = true)]
    pub(crate) kind: Option<String>,
    /// A header for every request
    #[arg(long, value_name = "NAME=VALUE")]
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
    /// The program and its arguments; `-` reads the server's JSON from standard input
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// Which server
    pub(crate) id: String,
    /// The resource's URI
    pub(crate) uri: String,
    /// Save it to this file instead of printing it
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PromptGetArgs {
    /// Which server
    pub(crate) id: String,
    /// The prompt's name
    pub(crate) name: String,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// Save its contents to this file instead of printing them
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ServerIdArgs {
    /// Which server
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// Which server
    pub(crate) id: String,
    /// Only show the address, open no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Log in at this authorization server, and bind the credentials to it
    #[arg(long, value_name = "URL")]
    pub(crate) issuer: Option<String>,
    /// For this caller of the gateway, with `credentials = "caller"`: a key's name, or oidc:ISSUER#SUBJECT
    #[arg(long = "as", value_name = "PRINCIPAL", conflicts_with = "issuer")]
    pub(crate) principal: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LogoutArgs {
    /// Which server
    pub(crate) id: String,
    /// Of this caller of the gateway: a key's name, or oidc:ISSUER#SUBJECT
    #[arg(long = "as", value_name = "PRINCIPAL")]
    pub(crate) principal: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Which servers [default: all]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// {clients}; or a file [default: list the clients that are found]
    #[arg(value_name = "CLIENT|FILE")]
    pub(crate) what: Option<String>,
    /// Import from every client that is found
    #[arg(long, conflicts_with = "what")]
    pub(crate) all: bool,
    /// Only show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace servers of the same name
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// {clients}
    #[arg(value_parser = help::client_names(), hide_possible_values = true)]
    pub(crate) client: String,
    /// Which servers [default: all]
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// Toolhub itself instead of its servers: the client then has every tool through `toolhub serve --stdio`
    #[arg(long, conflicts_with = "servers")]
    pub(crate) gateway: bool,
    /// With `--gateway`, the profile that the client sees
    #[arg(long, value_name = "NAME", requires = "gateway")]
    pub(crate) profile: Option<String>,
    /// The file to write [default: the client's own]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Only show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace servers of the same name
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// Which command
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    #[arg(hide_possible_values = true)]
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(feature = "man-pages")]
#[derive(Debug, Args)]
pub(crate) struct ManPagesArgs {
    /// The folder to write to
    pub(crate) folder: PathBuf,
}
