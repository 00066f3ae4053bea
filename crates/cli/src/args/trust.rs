//! The options of `toolhub trust`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// List the trusted folders
    #[arg(long, conflicts_with_all = ["revoke", "yes"])]
    pub(crate) list: bool,
    /// Stop trusting a folder [default: the current one]
    #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = ".", conflicts_with = "yes")]
    pub(crate) revoke: Option<PathBuf>,
    /// Trust without a question, as in a script
    #[arg(long)]
    pub(crate) yes: bool,
}
