//! The tools that the owner of the hub lets run without the approval of the client. Each is named with its source, since a
//! server chooses the names of its tools itself.

use toolhub_agent::ToolAllowlist;
use toolhub_core::Tool;
use toolhub_core::source::SOURCE_SEPARATOR;

/// All tools of all sources.
const ALL: &str = "*";

/// `approved_tools` in `[openai]`: `SERVER__TOOL`, with `*` for any characters in the name of the tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApprovedTools(Vec<String>);

impl ApprovedTools {
    pub(crate) fn new(patterns: Vec<String>) -> Self {
        Self(patterns)
    }

    /// Whether a tool is among them. A name without a source names no tool. `a__b__c` is the tool `c` of `a__b`, never a tool `b__c` of
    /// the server `a`, which chooses that name itself.
    pub(crate) fn has(&self, tool: &Tool) -> bool {
        let source = tool.source.to_string();
        self.0.iter().any(|pattern| {
            let of_source = || {
                let name = pattern.strip_prefix(source.as_str())?.strip_prefix(SOURCE_SEPARATOR)?;
                (!name.contains(SOURCE_SEPARATOR)).then_some(name)
            };
            pattern == ALL
                || of_source().is_some_and(|name| {
                    let names = ToolAllowlist::only(vec![name.to_owned()]);
                    names.has(tool.definition.wire_name().as_str())
                })
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;
    use toolhub_core::tool::ToolDefinition;
    use toolhub_core::{RawJson, Source};

    use super::*;

    pub(crate) fn tool(source: &str, name: &str) -> Tool {
        let definition = json!({ "name": name, "inputSchema": { "type": "object" } });
        Tool::new(Source::from_name(source), ToolDefinition::parse(RawJson::from(definition)).unwrap())
    }

    #[test]
    fn a_tool_is_approved_with_its_server() {
        let check = |patterns: &[&str], (source, name): (&str, &str), expect: bool| {
            let approved = ApprovedTools::new(patterns.iter().map(ToString::to_string).collect());
            assert_eq!(approved.has(&tool(source, name)), expect, "{patterns:?} {source} {name}");
        };
        check(&[], ("files", "wipe"), false);
        check(&["files__wipe"], ("files", "wipe"), true);
        check(&["files__wipe"], ("other", "wipe"), false);
        check(&["files__wipe"], ("files", "wipe_all"), false);
        check(&["files__w*"], ("files", "wipe_all"), true);
        check(&["files__*"], ("files2", "wipe"), false);
        check(&["files__old__wipe"], ("files__old", "wipe"), true);
        check(&["files__old__wipe"], ("files", "old__wipe"), false);
        check(&["files__old*wipe"], ("files", "old__wipe"), true);
        // A server cannot take over the name of a tool of another one.
        check(&["files__wipe"], ("other", "files__wipe"), false);
        check(&["wipe", "w*", "*wipe", "*__wipe"], ("files", "wipe"), false);
        check(&["*"], ("files", "wipe"), true);
        check(&["native__write_file"], ("native", "write_file"), true);
    }
}
