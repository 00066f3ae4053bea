//! How the gateway handles a call of a tool.

use toolhub_core::{RUN_SCRIPT, Source, Tool};
use toolhub_skills::use_skill_definition;

/// How a call of a target is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetKind {
    /// By the engine, like any tool.
    Plain,
    /// `search_tools`, restricted to the tools of the profile.
    Search,
    /// `describe_tool`, restricted to the tools of the profile.
    Describe,
    /// `call_tool`, restricted to the tools of the profile.
    Call,
    /// `use_skill`, restricted to the skills of the profile.
    UseSkill,
    /// `run_script`, restricted to the tools of the profile.
    RunScript,
    /// A script of a skill, restricted to the tools of the profile.
    SkillScript,
}

impl TargetKind {
    pub(super) fn of(tool: &Tool) -> Self {
        match (&tool.source, tool.name().as_str()) {
            (Source::Native, "search_tools") => Self::Search,
            (Source::Native, "describe_tool") => Self::Describe,
            (Source::Native, "call_tool") => Self::Call,
            (Source::Native, RUN_SCRIPT) => Self::RunScript,
            (Source::Skill, use_skill_definition::NAME) => Self::UseSkill,
            (Source::Skill, _) if tool.is_script => Self::SkillScript,
            _ => Self::Plain,
        }
    }
}
