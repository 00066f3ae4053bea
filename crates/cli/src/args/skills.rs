//! The options of `toolhub skills`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use toolhub::settings::DurationSetting;

#[derive(Debug, Args)]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SkillsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills that were found, with their problems
    List(SkillListArgs),
    /// Show one skill: its instructions, files, tools and grants
    Show(SkillShowArgs),
    /// Check skills against the rules, with corrections
    Validate(ValidateArgs),
    /// Run a tool of a skill
    Run(SkillRunArgs),
    /// Approve skills in their current state, with the permissions they request
    Approve(SkillApproveArgs),
    /// Create a skill from a template
    New(NewArgs),
}

#[derive(Debug, Default, Args)]
pub(crate) struct SkillListArgs {
    /// Also the skills of MCP servers; connects to them
    #[arg(long)]
    pub(crate) servers: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SkillShowArgs {
    /// The skill, or one of its tools
    pub(crate) name: String,
    /// Show this file of the skill instead, such as references/guide.md
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Folders of skills, their SKILL.md files, or single Python files
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SkillRunArgs {
    /// The skill
    pub(crate) name: String,
    /// The tool [default: the skill's only one]
    pub(crate) tool: Option<String>,
    /// Arguments, typed by the tool's schema; `key:=JSON` gives a value as JSON
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// Arguments as a JSON object, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// How long to wait, such as 30s, 500ms or 2m
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<DurationSetting>,
}

#[derive(Debug, Args)]
pub(crate) struct SkillApproveArgs {
    /// The skills, their paths, or tools of theirs
    #[arg(required_unless_present = "all")]
    pub(crate) names: Vec<String>,
    /// All skills that need approval
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// Revoke the approval
    #[arg(long, conflicts_with = "all")]
    pub(crate) revoke: bool,
    /// Do not ask, also for suspicious skills and additional permissions
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The name: lower-case letters, digits and hyphens
    pub(crate) name: String,
    /// The folder to create it in [default: `skills` beside the config file]
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) place: Option<PathBuf>,
    /// With a script that is a tool
    #[arg(long)]
    pub(crate) tool: bool,
}
