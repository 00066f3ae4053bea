//! Tool names on the wire: endpoints accept up to 64 letters, digits, `_` and `-`; sources use any name.

use std::collections::HashMap;

use toolhub_core::ToolName;
use toolhub_core::model::OfferedTool;

const MAX_TOOL_NAME_BYTES: usize = 64;
/// Length of `_` and eight hexadecimal digits.
const HASH_SUFFIX_BYTES: usize = 9;

/// Converts a name for an endpoint: unchanged if valid, otherwise shortened with a hash. Deterministic, since calls of
/// earlier turns and prompt caches depend on it.
pub(crate) fn wire_name(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= MAX_TOOL_NAME_BYTES && name.chars().all(allowed) {
        return name.to_owned();
    }
    let plain = name.chars().map(|c| if allowed(c) { c } else { '_' });
    let head: String = plain.take(MAX_TOOL_NAME_BYTES - HASH_SUFFIX_BYTES).collect();
    format!("{head}_{:08x}", hash(name))
}

/// Converts a call id: an id from another endpoint may contain characters that this one rejects.
pub(crate) fn wire_id(id: &str) -> String {
    wire_name(id)
}

/// FNV-1a, 32 bits: only has to distinguish the tools of one prompt, and must be stable across versions.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Maps wire names back to tools.
#[derive(Debug, Default)]
pub(crate) struct WireNames(HashMap<String, ToolName>);

impl WireNames {
    /// Creates the map for these tools.
    pub(crate) fn of(tools: &[OfferedTool]) -> Self {
        Self(tools.iter().map(|tool| (wire_name(tool.name.as_str()), tool.name.clone())).collect())
    }

    /// The tool of a wire name; the name itself if it was not offered.
    pub(crate) fn tool_name(&self, wire: &str) -> ToolName {
        self.0.get(wire).cloned().unwrap_or_else(|| ToolName::new(wire))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolhub_core::RawJson;

    use super::*;

    #[test]
    fn keeps_names_that_are_valid_on_the_wire() {
        for name in ["search_web", "a-b", "x", &"y".repeat(64)] {
            assert_eq!(wire_name(name), name);
        }
        assert_eq!(wire_name("读表"), "___406836fa");
        assert_ne!(wire_name("读表"), wire_name("写表"));
    }

    proptest! {
        #[test]
        fn maps_wire_name_back_to_tool_name(name in "\\PC{0,90}") {
            let wire = wire_name(&name);
            prop_assert!((1..=64).contains(&wire.len()));
            prop_assert!(wire.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)));
            let tool = OfferedTool {
                name: ToolName::new(name.as_str()),
                description: String::new(),
                schema: RawJson::empty_object(),
            };
            let tool_name = WireNames::of(&[tool]).tool_name(&wire);
            prop_assert_eq!(tool_name.as_str(), name);
        }
    }
}
