//! Names of tools on the wire: endpoints take 64 letters, digits, `_` and `-`, sources give what they like.

use std::collections::HashMap;

use toolhub_core::ToolName;
use toolhub_core::model::OfferedTool;

const LONGEST: usize = 64;
/// `_` and eight digits.
const TAIL: usize = 9;

/// The name as an endpoint takes it: itself where it fits, else what is left of it and a hash. The same every time, since
/// calls of earlier turns, and caches of prompts, go by it.
pub(crate) fn wire_name(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= LONGEST && name.chars().all(allowed) {
        return name.to_owned();
    }
    let plain = name.chars().map(|c| if allowed(c) { c } else { '_' });
    let head: String = plain.take(LONGEST - TAIL).collect();
    format!("{head}_{:08x}", hash(name))
}

/// The id of a call as an endpoint takes it: what another endpoint gave may have signs that this one refuses.
pub(crate) fn wire_id(id: &str) -> String {
    wire_name(id)
}

/// FNV-1a, 32 bits: it need only tell the tools of one prompt apart, and be the same in every version of this program.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Leads back from the names on the wire.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<String, ToolName>);

impl Names {
    /// Of these tools.
    pub(crate) fn of(tools: &[OfferedTool]) -> Self {
        Self(tools.iter().map(|tool| (wire_name(tool.name.as_str()), tool.name.clone())).collect())
    }

    /// The tool that is meant; the name itself where it was not offered.
    pub(crate) fn meant(&self, wire: &str) -> ToolName {
        self.0.get(wire).cloned().unwrap_or_else(|| ToolName::new(wire))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolhub_core::RawJson;

    use super::*;

    #[test]
    fn what_fits_stays() {
        for name in ["search_web", "a-b", "x", &"y".repeat(64)] {
            assert_eq!(wire_name(name), name);
        }
        assert_eq!(wire_name("读表"), "___406836fa");
        assert_ne!(wire_name("读表"), wire_name("写表"));
    }

    proptest! {
        #[test]
        fn any_name_leads_back(name in "\\PC{0,90}") {
            let wire = wire_name(&name);
            prop_assert!((1..=64).contains(&wire.len()));
            prop_assert!(wire.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)));
            let tool = OfferedTool {
                name: ToolName::new(name.as_str()),
                description: String::new(),
                schema: RawJson::empty_object(),
            };
            let meant = Names::of(&[tool]).meant(&wire);
            prop_assert_eq!(meant.as_str(), name);
        }
    }
}
