//! The options of `run` and `parse`. The Chinese texts are in `help`.

use clap::Args;
use toolhub::settings::DurationSetting;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Print only as much of each result as a model would get; the rest is stored, see `toolhub result`
    #[arg(long)]
    pub(crate) brief: bool,
    /// How long each call may take, connecting included, such as 30s, 500ms or 2m
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<DurationSetting>,
}

#[derive(Debug, Args)]
pub(crate) struct ParseArgs {
    /// One text per line: `{"id","text","tools"?}` in, `{"id","calls","repaired","error"}` out
    #[arg(long)]
    pub(crate) jsonl: bool,
}
