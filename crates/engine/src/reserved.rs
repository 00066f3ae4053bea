//! Unique tool names: `source__name`, and the names that tool definitions must not use, namely those of the control tools and
//! those that begin with the prefix of another source. Such a tool enters the catalog as `source__name`.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};
use toolhub_core::control_tool::CONTROL_TOOLS;
use toolhub_core::source::{SOURCE_SEPARATOR, SourceKind};
use toolhub_core::{Source, Tool, hex};

/// The longest name that all clients accept.
const MAX_CLIENT_NAME_BYTES: usize = 64;

/// The reserved names for a set of sources.
#[derive(Debug, Clone, Default)]
pub struct ReservedNames {
    /// Each source and its name prefix.
    prefixes: Vec<(String, String)>,
}

impl ReservedNames {
    /// Reserves the prefixes of these servers, enabled or not, and of the built-in sources.
    pub fn new<'a>(servers: impl IntoIterator<Item = &'a str>) -> Self {
        let sources = servers.into_iter().chain(["native", "skill"]);
        let prefix = |source: &str| format!("{}{SOURCE_SEPARATOR}", comparable(source));
        Self { prefixes: sources.map(|source| (source.to_owned(), prefix(source))).collect() }
    }

    /// Whether this source must not use this name. Names are normalised as clients may do it: case-insensitive, with
    /// `_` for every character other than a letter, digit, `-` or `_`.
    pub fn reserves(&self, source: &Source, name: &str) -> bool {
        let kind = source.kind();
        if kind == SourceKind::Native {
            return false;
        }
        let compared = comparable(name.trim());
        let control = CONTROL_TOOLS.iter().find(|control| control.name == compared);
        if control.is_some_and(|control| control.source != kind || control.name != name) {
            return true;
        }
        let source_id = source.to_string();
        self.prefixes
            .iter()
            .any(|(other_id, prefix)| *other_id != source_id && compared.starts_with(prefix.as_str()))
    }

    /// Renames the tools of a source that use reserved names.
    pub(crate) fn apply(&self, source: &Source, tools: &[Tool]) -> Vec<Tool> {
        let (keeping, renamed) = self.renames(source, tools);
        let renamed = renamed.into_iter().map(|(tool, name)| {
            let definition = tool.definition.renamed(&name).into();
            Tool { definition, ..tool.clone() }
        });
        keeping.into_iter().cloned().chain(renamed).collect()
    }

    /// The tools of a source that keep their names, and the new names of the others. A tool without a free name is left out.
    pub fn renames<'a>(
        &self,
        source: &Source,
        tools: &'a [Tool],
    ) -> (Vec<&'a Tool>, Vec<(&'a Tool, String)>) {
        let (taking, keeping): (Vec<&Tool>, Vec<&Tool>) =
            tools.iter().partition(|tool| self.reserves(source, tool.name().as_str()));
        let mut taken: HashSet<String> = keeping.iter().map(|tool| tool.name().as_str().to_owned()).collect();
        let renamed = taking.into_iter().filter_map(|tool| {
            let name = tool.name().as_str();
            let free = [qualified_name(source, name), hashed_name(source, name)];
            Some((tool, free.into_iter().find(|name| taken.insert(name.clone()))?))
        });
        let renamed = renamed.collect();
        (keeping, renamed)
    }
}

/// `source__name` in characters that all clients accept. Unique per tool: a hash is appended if the parts are
/// ambiguous or characters were replaced or cut off.
pub fn qualified_name(source: &Source, name: &str) -> String {
    let id = source.to_string();
    let full_name = format!("{id}{SOURCE_SEPARATOR}{name}");
    if splits_once(&id) && full_name.len() <= MAX_CLIENT_NAME_BYTES && plain(&full_name) == full_name {
        full_name
    } else {
        hashed_name(source, name)
    }
}

/// The qualified name, always with a hash suffix.
pub fn hashed_name(source: &Source, name: &str) -> String {
    let id = source.to_string();
    let full_name = format!("{id}{SOURCE_SEPARATOR}{name}");
    // The parts of an ambiguous name are hashed with their limits. No source begins with a NUL.
    let digest = match splits_once(&id) {
        true => Sha256::digest(full_name.as_bytes()),
        false => Sha256::digest(format!("\0{id}\0{name}").as_bytes()),
    };
    let tail = hex::encode(&digest[..4]);
    let stem: String = plain(&full_name).chars().take(MAX_CLIENT_NAME_BYTES - tail.len() - 1).collect();
    format!("{stem}_{tail}")
}

/// Whether `id__name` has no other parts, whatever the name is.
fn splits_once(id: &str) -> bool {
    !id.contains(SOURCE_SEPARATOR) && !id.ends_with('_')
}

fn plain(text: &str) -> String {
    let accepted = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.chars().map(|c| if accepted(c) { c } else { '_' }).collect()
}

fn comparable(name: &str) -> String {
    plain(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use toolhub_core::{RawJson, ServerId, ToolDefinition};

    use super::*;

    fn server(id: &str) -> Source {
        Source::Server(ServerId::new(id))
    }

    fn tool(source: &Source, name: &str) -> Tool {
        let definition = ToolDefinition::parse(RawJson::from(json!({"name": name}))).unwrap();
        Tool::new(source.clone(), definition)
    }

    fn names(source: &Source, original: &[&str]) -> Vec<(String, String)> {
        let reserved = ReservedNames::new(["good", "evil", "Mixed.Case"]);
        let tools: Vec<Tool> = original.iter().map(|name| tool(source, name)).collect();
        let renamed =
            |tool: &Tool| (tool.name().as_str().to_owned(), tool.definition.wire_name().as_str().to_owned());
        reserved.apply(source, &tools).iter().map(renamed).collect()
    }

    #[test]
    fn prefixes_reserved_names_and_keeps_wire_names() {
        let check = |original: &str, expect: &str| {
            assert_eq!(names(&server("evil"), &[original]), [(expect.to_owned(), original.to_owned())]);
        };
        check("write", "write");
        check("good__write", "evil__good__write");
        check("call_tool", "evil__call_tool");
        check("read_result", "evil__read_result");
        check("use_skill", "evil__use_skill");
        check("native__calculate", "evil__native__calculate");
        check("skill__run", "evil__skill__run");
        check("GOOD__write", "evil__GOOD__write");
        check("Search_Tools", "evil__Search_Tools");
        // A source may use its own prefix; similar prefixes are not reserved.
        check("evil__write", "evil__write");
        check("goodness__write", "goodness__write");
        check("good_write", "good_write");
        for hashed in ["describe.tool", "good..write", "mixed_case__x y", " call_tool"] {
            let renamed = names(&server("evil"), &[hashed]);
            assert!(renamed[0].0.starts_with("evil__") && renamed[0].1 == hashed, "{renamed:?}");
        }
    }

    #[test]
    fn each_control_tool_keeps_its_own_source() {
        assert_eq!(names(&Source::Native, &["call_tool"])[0].0, "call_tool");
        assert_eq!(names(&Source::Skill, &["use_skill"])[0].0, "use_skill");
        assert_eq!(names(&Source::Skill, &["call_tool"])[0].0, "skill__call_tool");
        assert_eq!(names(&Source::Skill, &["good__write"])[0].0, "skill__good__write");
    }

    #[test]
    fn prefixed_name_does_not_shadow_another_tool_of_its_server() {
        for order in [["call_tool", "evil__call_tool"], ["evil__call_tool", "call_tool"]] {
            let renamed = names(&server("evil"), &order);
            let own = renamed.iter().find(|(_, wire)| wire == "evil__call_tool").unwrap();
            let taking = renamed.iter().find(|(_, wire)| wire == "call_tool").unwrap();
            assert_eq!(own.0, "evil__call_tool");
            assert!(
                taking.0.starts_with("evil__call_tool_") && taking.0.len() <= MAX_CLIENT_NAME_BYTES,
                "{taking:?}"
            );
        }
    }

    #[test]
    fn ambiguous_parts_have_different_names() {
        for (one, other) in
            [(("__", "__."), ("___", "_.")), (("a", "b__c"), ("a__b", "c")), (("a", "_b"), ("a_", "b"))]
        {
            for name in [qualified_name, hashed_name] {
                assert_ne!(name(&server(one.0), one.1), name(&server(other.0), other.1), "{one:?} {other:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn qualified_names_are_unique(
            one in ("[ab_.]{1,4}", "[ab_.]{1,4}"),
            other in ("[ab_.]{1,4}", "[ab_.]{1,4}"),
        ) {
            let name = |(id, tool): &(String, String)| qualified_name(&server(id), tool);
            prop_assert_eq!(name(&one) == name(&other), one == other, "{:?} {:?}", one, other);
        }
    }
}
