//! The options of `toolhub serve` and `toolhub console`.

use clap::Args;
use toolhub::settings::BindAddress;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen [default: 127.0.0.1:7460]
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "stdio")]
    pub(crate) bind: Option<BindAddress>,
    /// Talk to one client over stdin and stdout
    #[arg(long)]
    pub(crate) stdio: bool,
    /// The profile for clients that name none
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Offer native tools and skills alone: start no MCP server, and connect to none
    #[arg(long)]
    pub(crate) no_servers: bool,
    /// Create a token for a caller, and exit
    #[arg(long, value_name = "NAME", conflicts_with_all = ["bind", "stdio", "profile"])]
    pub(crate) new_token: Option<String>,
    /// Check that a running hub is ready, and exit; for health checks
    #[arg(long, conflicts_with_all = ["stdio", "profile", "new_token"])]
    pub(crate) check: bool,
    /// Whether a link into the console is printed, and how.
    #[arg(skip)]
    pub(crate) console_link: Option<ConsoleLink>,
}

/// How a link into the console is presented.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConsoleLink {
    /// Whether a browser opens it.
    pub(crate) opens_browser: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConsoleArgs {
    /// Where to listen if no hub is running [default: 127.0.0.1:7460]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) bind: Option<BindAddress>,
    /// Print the link; open no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
}
