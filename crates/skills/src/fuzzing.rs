//! Checks for fuzzing: each takes arbitrary bytes and asserts what must hold for them. `cargo xtask fuzz` runs them guided by
//! coverage; the tests here run each over its seeds and some thousand mutations of them.

#[cfg(test)]
#[path = "../../../fuzz/shared/mutator.rs"]
mod mutator;

use std::path::Path;

use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::frontmatter::{self, Frontmatter};
use crate::yaml::{self, NodeContent, YamlNode};
use crate::yaml_repair::quote_scalar;
use crate::{declarations, fields, frontmatter_of};

/// How deep a tree may be, and how many bytes of text it may have beside those of the file.
const MAX_DEPTH: usize = 40;
const MAX_GROWTH: usize = 1 << 20;

/// For any `SKILL.md`: reading does not panic; a strict parser and ours agree; faults refer to lines of the file;
/// declared scripts are inside the skill's folder.
pub fn skill_frontmatter(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let file = Path::new("SKILL.md");
    assert_eq!(
        yaml::parse(&format!("a: {}\n", quote_scalar(text))).ok().map(|tree| tree.value()["a"].clone()),
        Some(Value::from(text))
    );
    let strict = frontmatter_of(text);
    let Ok(frontmatter) = frontmatter::read(file, text) else {
        assert!(strict.is_none_or(|fields| fields.is_empty()));
        return;
    };
    assert_eq!(strict, frontmatter.strict.then(|| frontmatter.fields()));
    let size = size(&frontmatter.tree, 0);
    assert!(size <= text.len() + MAX_GROWTH, "{size} bytes of {}", text.len());
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/skill").canonicalize().unwrap_or_default();
    let read = fields::read(file, &frontmatter, "folder");
    names(&read.name, &frontmatter);
    let declarations = declarations::read(file, &frontmatter.tree, &folder);
    let all: Vec<&Diagnostic> =
        frontmatter.diagnostics.iter().chain(&read.diagnostics).chain(&declarations.diagnostics).collect();
    // YAML also ends a line at a lone carriage return.
    let lines = text.split(['\n', '\r']).count() + 1;
    assert!(
        all.iter().all(|diagnostic| diagnostic.line.is_none_or(|line| (1..=lines).contains(&line))),
        "{all:?}"
    );
    for tool in &declarations.tools {
        let real = folder.join(&tool.file).canonicalize().unwrap_or_default();
        assert!(real.starts_with(folder.join("scripts")), "{}", tool.file);
    }
}

fn names(name: &str, frontmatter: &Frontmatter) {
    assert!(!name.chars().any(char::is_control) && name.chars().count() <= 4 * fields::MAX_SKILL_NAME_CHARS);
    if fields::is_name(name) {
        assert_eq!(fields::as_name(name).as_deref(), Some(name));
    }
    for member in frontmatter.tree.members() {
        if let Some(proper) = fields::as_name(&member.key) {
            assert!(fields::is_name(&proper), "{proper:?} of {:?}", member.key);
        }
    }
}

/// Total size of all keys and texts, in bytes.
fn size(node: &YamlNode, depth: usize) -> usize {
    assert!(depth <= MAX_DEPTH, "nested too deeply");
    match &node.part {
        NodeContent::Scalar(Value::String(text)) => text.len(),
        NodeContent::Scalar(_) => 1,
        NodeContent::List(items) => items.iter().map(|item| size(item, depth + 1)).sum(),
        NodeContent::Map(members) => {
            members.iter().map(|one| one.key.len() + size(&one.node, depth + 1)).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skill_frontmatter_holds_for_mutated_seeds() {
        mutator::run("skill_frontmatter", 4_000, skill_frontmatter);
    }
}
