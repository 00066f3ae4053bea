//! The options of `toolhub init`.

use clap::Args;

use super::help::client_names;

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Set up this client: {clients}; may be repeated
    #[arg(
        long,
        value_name = "NAME",
        value_parser = client_names(),
        hide_possible_values = true
    )]
    pub(crate) client: Vec<String>,
    /// Set up every client that is found
    #[arg(long, conflicts_with = "client")]
    pub(crate) all: bool,
    /// Change the files without a question, as in a script
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Only show what would be changed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Leave the servers of the clients where they are
    #[arg(long, conflicts_with = "no_connect")]
    pub(crate) no_import: bool,
    /// Only import servers; do not change the files of clients
    #[arg(long)]
    pub(crate) no_connect: bool,
    /// Undo what `toolhub init` changed
    #[arg(long, conflicts_with_all = ["client", "all", "no_import", "no_connect"])]
    pub(crate) undo: bool,
}
