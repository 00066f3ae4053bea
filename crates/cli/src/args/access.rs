//! The options of `keys`, `waiting` and `audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use toolhub::settings::DurationSetting;

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
    List(ListKeysArgs),
    /// Show one key: its roles, profiles, expiry and budget
    Show(KeyArgs),
    /// Remove a key; open connections that use it end within a second
    Revoke(KeyArgs),
    /// Replace the secret of a key and keep its settings
    Rotate(KeyArgs),
}

#[derive(Debug, Default, Args)]
pub(crate) struct ListKeysArgs {
    /// Also show the names of revoked keys
    #[arg(long)]
    pub(crate) all: bool,
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
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) per_day: Option<u64>,
    /// For the person whose key of this name was revoked: with access to the calls, responses and approvals under that name
    #[arg(long)]
    pub(crate) same_person: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Name of the key
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct HeldCallsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<HeldCallsCommand>,
    /// Also show calls that were decided or have expired
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HeldCallsCommand {
    /// Let a held call run, once
    Approve(HeldCallIdArgs),
    /// Refuse a held call
    Deny(HeldCallIdArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HeldCallIdArgs {
    /// The reference of the call
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AuditCommand>,
    /// Without a subcommand: those of `audit show`.
    #[command(flatten)]
    pub(crate) show: AuditShowArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Show the newest records
    Show(AuditShowArgs),
    /// Check that no record was changed, removed or reordered
    Verify(AuditVerifyArgs),
    /// Write the whole log to a file, or to standard output with `-`
    Export(AuditExportArgs),
}

#[derive(Debug, Default, PartialEq, Args)]
pub(crate) struct AuditShowArgs {
    /// Only records of this principal, such as key:ci or local
    #[arg(long, value_name = "PRINCIPAL")]
    pub(crate) by: Option<String>,
    /// Only this kind: login, refusal, call, held_call, key_change, rule_change, config_change, server_change or use
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Only records within this time, such as 30m, 2h or 7d
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<DurationSetting>,
    /// Only the record with this reference: of a refusal, a held call or a call
    #[arg(long, value_name = "REFERENCE")]
    pub(crate) reference: Option<String>,
    /// Maximum number of records [default: 20]
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct AuditVerifyArgs {
    /// Verify this export instead of the stored log
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AuditExportArgs {
    /// The file; `-` for standard output
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// jsonl, which `audit verify FILE` checks, or ocsf
    #[arg(long, value_name = "FORMAT", value_parser = ["jsonl", "ocsf"], default_value = "jsonl", hide_possible_values = true)]
    pub(crate) format: String,
}
