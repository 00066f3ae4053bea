//! The options of `keys` and `waiting`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) command: Option<KeysCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key for a person or a program; it is shown once
    New(NewKeyArgs),
    /// List the keys
    List,
    /// Show one key: its roles, profiles, expiry and budget
    Show(KeyArgs),
    /// Remove a key; open connections that use it end within a second
    Revoke(KeyArgs),
    /// Replace the secret of a key and keep its settings
    Rotate(KeyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NewKeyArgs {
    /// Name of the person or program
    pub(crate) name: String,
    /// Role: viewer, caller, approver, operator, auditor or owner; repeatable [default: caller]
    #[arg(long = "role", value_name = "ROLE")]
    pub(crate) roles: Vec<String>,
    /// Profile that the key opens; repeatable [default: all]
    #[arg(long = "profile", value_name = "NAME")]
    pub(crate) profiles: Vec<String>,
    /// Date or time from which it is refused, such as 2027-01-31
    #[arg(long, value_name = "DATE")]
    pub(crate) expires: Option<String>,
    /// Maximum number of calls per day (UTC)
    #[arg(long, value_name = "COUNT")]
    pub(crate) per_day: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Name of the key
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct WaitingArgs {
    #[command(subcommand)]
    pub(crate) command: Option<WaitingCommand>,
    /// Also show calls that were decided or have expired
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WaitingCommand {
    /// Let a held call run, once
    Approve(WaitingIdArgs),
    /// Refuse a held call
    Deny(WaitingIdArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WaitingIdArgs {
    /// The reference of the call
    pub(crate) id: String,
}
