//! The control tools of the hub: tools that find and call other tools, load skills, or read stored data. Their names are reserved.

use crate::source::SourceKind;
use crate::tool::Tool;

/// The tool that calls a tool by its name.
pub const CALL_TOOL: &str = "call_tool";
/// The tool that returns the definition of a tool.
pub const DESCRIBE_TOOL: &str = "describe_tool";
/// The tool that returns earlier turns of conversations.
pub const GET_CONVERSATION_HISTORY: &str = "get_conversation_history";
/// The tool that returns the full result of an earlier call.
pub const READ_RESULT: &str = "read_result";
/// The tool that runs scripts.
pub const RUN_SCRIPT: &str = "run_script";
/// The tool that finds tools.
pub const SEARCH_TOOLS: &str = "search_tools";
/// The tool that returns the instructions of a skill.
pub const USE_SKILL: &str = "use_skill";

use ControlProperty::{CallsTools, CodeMode, OwnerData, SearchMode};
use SourceKind::{Native, Skill};

/// All control tools. The order within a mode is the order in prompts.
pub const CONTROL_TOOLS: &[ControlTool] = &[
    ControlTool { name: RUN_SCRIPT, source: Native, properties: &[CodeMode, CallsTools] },
    ControlTool { name: SEARCH_TOOLS, source: Native, properties: &[SearchMode, CodeMode] },
    ControlTool { name: DESCRIBE_TOOL, source: Native, properties: &[SearchMode, CodeMode] },
    ControlTool { name: CALL_TOOL, source: Native, properties: &[SearchMode, CallsTools] },
    ControlTool { name: READ_RESULT, source: Native, properties: &[OwnerData] },
    ControlTool { name: GET_CONVERSATION_HISTORY, source: Native, properties: &[OwnerData] },
    ControlTool { name: USE_SKILL, source: Skill, properties: &[] },
];

/// A property that only control tools have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlProperty {
    /// It is listed where a client or model finds tools and calls them one by one (`expose = "search"`).
    SearchMode,
    /// It is listed where a client or model finds tools and calls them in scripts (`expose = "code"`).
    CodeMode,
    /// It calls other tools. A running call does not use it, since it can call those tools directly.
    CallsTools,
    /// It returns calls of all clients and the owner's conversations: stored records do not contain their principal.
    OwnerData,
}

/// A control tool.
#[derive(Debug)]
pub struct ControlTool {
    /// The reserved name.
    pub name: &'static str,
    /// The kind of source that defines the tool. A tool of another source gets another name.
    pub source: SourceKind,
    properties: &'static [ControlProperty],
}

impl ControlTool {
    /// The control tool that a tool of the catalog is: one with this name and source. `None` for any other tool.
    pub fn of(tool: &Tool) -> Option<&'static Self> {
        let (kind, name) = (tool.source.kind(), tool.name().as_str());
        CONTROL_TOOLS.iter().find(|control| control.source == kind && control.name == name)
    }

    /// Whether it has a property.
    pub fn has(&self, property: ControlProperty) -> bool {
        self.properties.contains(&property)
    }

    /// The names of the control tools with a property, in the order of the table.
    pub fn names_with(property: ControlProperty) -> impl Iterator<Item = &'static str> {
        CONTROL_TOOLS.iter().filter(move |control| control.has(property)).map(|control| control.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{RawJson, Source, ToolDefinition};

    fn tool(source: Source, name: &str) -> Tool {
        Tool::new(source, ToolDefinition::parse(RawJson::from(json!({"name": name}))).unwrap())
    }

    #[test]
    fn names_are_unique_and_belong_to_one_source() {
        for (index, control) in CONTROL_TOOLS.iter().enumerate() {
            assert!(CONTROL_TOOLS.iter().skip(index + 1).all(|other| other.name != control.name));
            for source in [Source::Native, Source::Skill, Source::from_name("server")] {
                let expect = (source.kind() == control.source).then_some(control.name);
                let actual = ControlTool::of(&tool(source, control.name)).map(|control| control.name);
                assert_eq!(actual, expect, "{}", control.name);
            }
        }
        assert!(ControlTool::of(&tool(Source::Native, "calculate")).is_none());
    }

    #[test]
    fn modes_list_their_tools_in_order() {
        let names = |property| ControlTool::names_with(property).collect::<Vec<_>>();
        assert_eq!(names(SearchMode), [SEARCH_TOOLS, DESCRIBE_TOOL, CALL_TOOL]);
        assert_eq!(names(CodeMode), [RUN_SCRIPT, SEARCH_TOOLS, DESCRIBE_TOOL]);
        assert_eq!(names(CallsTools), [RUN_SCRIPT, CALL_TOOL]);
        assert_eq!(names(OwnerData), [READ_RESULT, GET_CONVERSATION_HISTORY]);
    }
}
