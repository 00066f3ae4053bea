//! The options of `work` and `cluster`.

use std::num::NonZeroUsize;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// What this machine offers to servers that ask for it, separated by commas [default: that of `[worker]`]
    #[arg(long, value_name = "LABELS", value_delimiter = ',')]
    pub(crate) labels: Option<Vec<String>>,
    /// How many programs run at once [default: that of `[worker]`]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) capacity: Option<NonZeroUsize>,
    /// How many scripts run at once; 0 for none [default: that of `[worker]`]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) scripts: Option<usize>,
    /// How many scripts of skills run at once; 0 for none [default: that of `[worker]`]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) skills: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    pub(crate) command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show replicas, workers, where servers run, and what is degraded
    Status,
}
