//! The options of `history`, `stats`, `recommend` and `result`.

use std::path::PathBuf;

use clap::Args;
use toolhub::settings::DurationSetting;

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Show this call, and the calls that it made: an id as the list shows it, or `last`
    #[arg(
        value_name = "ID",
        conflicts_with_all = ["tool", "source", "status", "conversation", "by", "text", "since", "limit", "follow", "export"]
    )]
    pub(crate) id: Option<String>,
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Only calls that this source answered or tried
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Only calls that are: succeeded, failed, unknown or running
    #[arg(long, value_name = "STATUS", value_parser = ["succeeded", "failed", "unknown", "running"], hide_possible_values = true)]
    pub(crate) status: Option<String>,
    /// Only calls of this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// Only calls of this principal, such as key:ci or local
    #[arg(long, value_name = "PRINCIPAL")]
    pub(crate) by: Option<String>,
    /// Only calls with this text in their tool, arguments or request
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Only calls within this time, such as 30m, 2h or 7d
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<DurationSetting>,
    /// Maximum number of calls [default: 20; with `--export`, all]
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
    /// Keep running, and show calls as they finish
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Write all that fit to a file, one JSON object a line; `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "follow")]
    pub(crate) export: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Only this tool
    pub(crate) tool: Option<String>,
    /// Only the tools of this source
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RecommendArgs {
    /// What you want, in your own words
    pub(crate) request: Option<String>,
    /// What usually comes after this tool
    #[arg(long, value_name = "TOOL", conflicts_with = "request")]
    pub(crate) after: Option<String>,
    /// Maximum number of results
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 5, hide_default_value = true)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct ResultArgs {
    /// The handle, as `call --json` and `history` show it; or `last`
    pub(crate) handle: String,
    /// Only this page, of 4,000 characters each
    #[arg(long, value_name = "N")]
    pub(crate) page: Option<usize>,
}
