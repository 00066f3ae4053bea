//! The options of `ask`, `chat` and `prompt`. The Chinese texts are in `help`.

use clap::{Args, ValueEnum};

/// How an agent works with its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// The model calls tools while it talks
    Talk,
    /// The model makes a plan, which is run; then it answers
    Plan,
    /// The model writes scripts that call tools
    Code,
}

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// The agent of the config that answers [default: `default`, where there is one]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The model, by its name at the endpoint that is set up
    #[arg(long, value_name = "MODEL", conflicts_with = "no_llm")]
    pub(crate) model: Option<String>,
    /// Use no model: plan by rules
    #[arg(long)]
    pub(crate) no_llm: bool,
    /// How the model works: talk (it calls tools as it goes), plan (it plans first) or code (it writes scripts)
    #[arg(long, alias = "way", value_name = "MODE", hide_possible_values = true)]
    pub(crate) mode: Option<ModeArg>,
    /// Confirm in advance the tools that change or delete data
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print the answer while the model generates it, also into a pipe
    #[arg(long)]
    pub(crate) stream: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// What you want, in your own words; `-` reads it from standard input
    #[arg(required = true, value_name = "REQUEST")]
    pub(crate) request: Vec<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// The id of the conversation; an unused id starts one [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Resume an earlier conversation; `last` is the latest
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// List earlier conversations
    #[arg(long)]
    pub(crate) list: bool,
}

/// How tools are passed to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// In its instructions
    Text,
    /// As definitions beside them
    Native,
}

#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// The request it is for: decides which tools are shown
    #[arg(long, value_name = "REQUEST")]
    pub(crate) query: Option<String>,
    /// Token budget for tool descriptions
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget: Option<usize>,
    /// The agent of the config that it is for
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The prompt for making a plan instead of talking
    #[arg(long)]
    pub(crate) plan: bool,
    /// How tools are passed to the model: text or native [default: the setting of the model]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    pub(crate) format: Option<FormatArg>,
}
