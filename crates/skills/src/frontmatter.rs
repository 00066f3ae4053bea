//! The frontmatter of a `SKILL.md`: finds its bounds and parses it. Invalid YAML is repaired where the meaning is
//! clear, and reported.

use std::path::Path;

use serde_json::{Map, Value};
use toolhub_core::lang::LocalizedText;

use crate::diagnostic::{Diagnostic, Severity};
use crate::yaml::{self, YamlNode};
use crate::yaml_repair::repair;

/// The parsed frontmatter.
#[derive(Debug, Clone)]
pub(crate) struct Frontmatter {
    /// The mapping, with line numbers of the file.
    pub(crate) tree: YamlNode,
    /// Whether the text is valid YAML without repair.
    pub(crate) strict: bool,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Frontmatter {
    /// All fields as written.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        match self.tree.value() {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// A text split into frontmatter and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SplitText<'a> {
    pub(crate) yaml: &'a str,
    /// Number of lines before the YAML.
    pub(crate) before: usize,
    pub(crate) body: &'a str,
}

/// Why a text has no frontmatter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SplitError {
    MissingStart,
    MissingEnd,
}

/// Splits a text. Ignores a byte order mark and blank lines at the start.
pub(crate) fn split(text: &str) -> Result<SplitText<'_>, SplitError> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut before = 0;
    loop {
        let (line, after) = first_line(rest);
        before += 1;
        match line.trim_end() {
            "---" => {
                rest = after;
                break;
            }
            "" if !after.is_empty() => rest = after,
            _ => return Err(SplitError::MissingStart),
        }
    }
    let mut at = 0;
    loop {
        let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) else {
            return Err(SplitError::MissingEnd);
        };
        let (line, after) = first_line(tail);
        let next = rest.len() - after.len();
        if matches!(line.trim_end(), "---" | "...") {
            return Ok(SplitText { yaml: rest.get(..at).unwrap_or_default(), before, body: after });
        }
        at = next;
    }
}

fn first_line(text: &str) -> (&str, &str) {
    match text.split_once('\n') {
        Some((line, rest)) => (line.strip_suffix('\r').unwrap_or(line), rest),
        None => (text, ""),
    }
}

/// Parses the frontmatter of a file's text.
pub(crate) fn read(file: &Path, text: &str) -> Result<Frontmatter, Box<Diagnostic>> {
    let parts = split(text).map_err(|none| Box::new(without(file, none)))?;
    let mut diagnostics = Vec::new();
    let (mut tree, strict) = match yaml::parse(parts.yaml) {
        Ok(tree) => (tree, true),
        Err(error) => {
            let (repaired, lines) = repair(parts.yaml);
            let Ok(tree) = yaml::parse(&repaired) else {
                let problem = &error.problem;
                let diagnostic = Diagnostic::new(
                    file,
                    Severity::Fatal,
                    LocalizedText::new(
                        format!("not valid YAML: {problem}"),
                        format!("不是有效的 YAML：{problem}"),
                    ),
                    LocalizedText::new(
                        "write each field as `key: value`, and put values with special characters into double quotes",
                        "每个字段写成 `key: value`，含特殊字符的值用双引号括起来",
                    ),
                );
                return Err(Box::new(diagnostic.at(parts.before + error.line)));
            };
            for line in lines {
                let problem = LocalizedText::new(
                    "this line is not valid YAML, and was read as it was probably meant",
                    "此行不是有效的 YAML，已按可能的意思读取",
                );
                let remedy = line.remedy.trim_end();
                let remedy = LocalizedText::new(format!("write `{remedy}`"), format!("请写成 `{remedy}`"));
                diagnostics.push(
                    Diagnostic::new(file, Severity::Error, problem, remedy).at(parts.before + line.line),
                );
            }
            (tree, false)
        }
    };
    shift(&mut tree, parts.before);
    if tree.members().is_empty() {
        let diagnostic = Diagnostic::new(
            file,
            Severity::Fatal,
            LocalizedText::new("the frontmatter has no fields", "文件头没有任何字段"),
            LocalizedText::new(
                "write `name: …` and `description: …`",
                "请写入 `name: …` 和 `description: …`",
            ),
        );
        return Err(Box::new(diagnostic.at(tree.line)));
    }
    Ok(Frontmatter { tree, strict, diagnostics })
}

fn without(file: &Path, none: SplitError) -> Diagnostic {
    let problem = match none {
        SplitError::MissingStart => {
            LocalizedText::new("the file does not begin with `---`", "文件没有以 `---` 开头")
        }
        SplitError::MissingEnd => LocalizedText::new("the frontmatter has no end", "文件头没有结束标记"),
    };
    let remedy = match none {
        SplitError::MissingStart => LocalizedText::new(
            "begin with a line `---`, then `name: …` and `description: …`, then a line `---`",
            "第一行写 `---`，接着写 `name: …` 和 `description: …`，再写一行 `---`",
        ),
        SplitError::MissingEnd => {
            LocalizedText::new("write a line `---` after the last field", "在最后一个字段之后写一行 `---`")
        }
    };
    Diagnostic::new(file, Severity::Fatal, problem, remedy).at(1)
}

/// Converts line numbers of the frontmatter to those of the file.
fn shift(node: &mut YamlNode, by: usize) {
    node.line += by;
    match &mut node.part {
        yaml::NodeContent::Scalar(_) => {}
        yaml::NodeContent::List(items) => items.iter_mut().for_each(|item| shift(item, by)),
        yaml::NodeContent::Map(members) => {
            for member in members {
                member.line += by;
                shift(&mut member.node, by);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolhub_core::{Lang, Localize as _};

    #[test]
    fn splits_frontmatter_with_any_line_ending() {
        let check = |text: &str, expect: Result<(&str, usize, &str), SplitError>| {
            let found = split(text).map(|parts| (parts.yaml, parts.before, parts.body));
            assert_eq!(found, expect, "{text:?}");
        };
        check("---\na: 1\n---\nbody\n", Ok(("a: 1\n", 1, "body\n")));
        check("\u{feff}---\r\na: 1\r\n---\r\nbody", Ok(("a: 1\r\n", 1, "body")));
        check("\n\n--- \na: 1\n...\n", Ok(("a: 1\n", 3, "")));
        check("---\na: 1\n---", Ok(("a: 1\n", 1, "")));
        check("---\na: 1\n", Err(SplitError::MissingEnd));
        check("# Title\n---\n", Err(SplitError::MissingStart));
        check("", Err(SplitError::MissingStart));
        check("---", Err(SplitError::MissingEnd));
    }

    #[test]
    fn errors_name_the_line_of_the_file() {
        let file = Path::new("SKILL.md");
        let check = |text: &str, expect: &str| {
            let diagnostic = read(file, text).unwrap_err();
            assert!(diagnostic.localize(Lang::En).starts_with(expect), "{}", diagnostic.localize(Lang::En));
        };
        check("---\nname: a\n  b\n c: [\n---\n", "SKILL.md:");
        check("---\n---\n", "SKILL.md:2: the frontmatter has no fields");
        check("---\n- a\n---\n", "SKILL.md:2: the frontmatter has no fields");
        let read = read(file, "---\nname: a\ndescription: Use when: go\n---\n").unwrap();
        assert!(!read.strict);
        assert_eq!(
            read.diagnostics[0].localize(Lang::En),
            "SKILL.md:3: this line is not valid YAML, and was read as it was probably meant; write `description: \"Use when: go\"`"
        );
        assert_eq!(read.tree.get("description").unwrap().line, 3);
    }

    proptest::proptest! {
        #[test]
        fn parses_arbitrary_frontmatter_without_panic(
            text in "(---\n)?([a-z-]{0,12}:[ \t]?[\\PC]{0,30}\n|[ \t-]{0,4}[\\PC]{0,20}\n){0,12}(---\n)?[\\PC]{0,20}",
        ) {
            let file = Path::new("SKILL.md");
            if let Ok(frontmatter) = read(file, &text) {
                let fields = crate::fields::read(file, &frontmatter, "folder");
                crate::declarations::read(file, &frontmatter.tree, Path::new("."));
                for diagnostic in fields.diagnostics.iter().chain(&frontmatter.diagnostics) {
                    proptest::prop_assert!(diagnostic.line.is_none_or(|line| line >= 1 && line <= text.lines().count() + 1));
                }
            }
        }
    }
}
