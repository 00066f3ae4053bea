//! How the gateway handles a call of a tool.

use toolhub_core::{
    CALL_TOOL, ControlTool, DESCRIBE_TOOL, RUN_SCRIPT, SEARCH_TOOLS, Source, Tool, USE_SKILL,
};

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
    /// A tool under the name of a control tool is handled as one only if the table of control tools has it with this source.
    pub(super) fn of(tool: &Tool) -> Self {
        match ControlTool::of(tool).map(|control| control.name) {
            Some(SEARCH_TOOLS) => Self::Search,
            Some(DESCRIBE_TOOL) => Self::Describe,
            Some(CALL_TOOL) => Self::Call,
            Some(RUN_SCRIPT) => Self::RunScript,
            Some(USE_SKILL) => Self::UseSkill,
            None if tool.source == Source::Skill && tool.is_script => Self::SkillScript,
            _ => Self::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolhub_core::control_tool::CONTROL_TOOLS;
    use toolhub_core::{ControlProperty, RawJson, ToolDefinition};

    use super::*;

    #[test]
    fn every_control_tool_is_handled_by_the_gateway_or_reads_stored_data() {
        for control in CONTROL_TOOLS {
            let definition = ToolDefinition::parse(RawJson::from(json!({"name": control.name}))).unwrap();
            for source in [Source::Native, Source::Skill, Source::from_name("server")] {
                let is_defined_there = source.kind() == control.source;
                let tool = Tool::new(source, definition.clone());
                let is_plain = TargetKind::of(&tool) == TargetKind::Plain;
                assert_eq!(
                    is_plain,
                    !is_defined_there || control.has(ControlProperty::OwnerData),
                    "{}",
                    control.name
                );
            }
        }
    }
}
