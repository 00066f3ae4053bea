//! Validates the fields of a skill. Each violation is reported with its line and a correction; most do not prevent use.

use std::path::Path;

use toolhub_core::lang::LocalizedText;

use crate::diagnostic::{Diagnostic, Severity};
use crate::frontmatter::Frontmatter;
use crate::yaml::{NodeContent, YamlMember};
use crate::yaml_repair::quote_scalar;

/// Maximum length of a name, in characters.
pub(crate) const MAX_SKILL_NAME_CHARS: usize = 64;
/// Maximum length of a description, in characters.
pub(crate) const MAX_DESCRIPTION_CHARS: usize = 1024;
/// Maximum length of `compatibility`, in characters.
const MAX_COMPATIBILITY_CHARS: usize = 500;
/// The fields of the format.
const STANDARD_FIELDS: [&str; 6] =
    ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
/// Minimum Jaro-Winkler similarity at which an unknown field is reported as a misspelling.
const MIN_SIMILARITY: f64 = 0.85;

/// The values of the fields, and the faults found.
#[derive(Debug)]
pub(crate) struct Fields {
    pub(crate) name: String,
    /// `None` if missing; the skill cannot be used then.
    pub(crate) description: Option<String>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Reads the fields of the skill in a folder named `folder`.
pub(crate) fn read(file: &Path, frontmatter: &Frontmatter, folder: &str) -> Fields {
    let mut reader = FieldReader { file, diagnostics: Vec::new() };
    let name = reader.name(frontmatter, folder);
    let description = reader.description(frontmatter);
    reader.text(frontmatter.tree.get("license"), usize::MAX);
    reader.text(frontmatter.tree.get("compatibility"), MAX_COMPATIBILITY_CHARS);
    reader.metadata(frontmatter.tree.get("metadata"));
    reader.allowed_tools(frontmatter.tree.get("allowed-tools"));
    reader.check_unknown_keys(frontmatter);
    Fields { name, description, diagnostics: reader.diagnostics }
}

/// Whether a name is valid.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty()
        && name.len() <= MAX_SKILL_NAME_CHARS
        && name.chars().all(plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Converts a text to a valid name; `None` if it contains no ASCII letter or digit.
pub fn as_name(text: &str) -> Option<String> {
    let mut name = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    let cut: String = name.chars().take(MAX_SKILL_NAME_CHARS).collect();
    let name = cut.trim_end_matches('-').to_owned();
    (!name.is_empty()).then_some(name)
}

struct FieldReader<'a> {
    file: &'a Path,
    diagnostics: Vec<Diagnostic>,
}

impl FieldReader<'_> {
    fn add(
        &mut self,
        severity: Severity,
        line: Option<usize>,
        problem: LocalizedText,
        remedy: LocalizedText,
    ) {
        let diagnostic = Diagnostic::new(self.file, severity, problem, remedy);
        self.diagnostics.push(match line {
            Some(line) => diagnostic.at(line),
            None => diagnostic,
        });
    }

    fn name(&mut self, frontmatter: &Frontmatter, folder: &str) -> String {
        let proper = as_name(folder).unwrap_or_else(|| "my-skill".to_owned());
        let member = frontmatter.tree.get("name");
        let written = member.and_then(scalar_text).filter(|name| !name.trim().is_empty());
        let Some(name) = written.map(|name| name.trim().to_owned()) else {
            let line = member.map_or(frontmatter.tree.line, |member| member.line);
            self.add(
                Severity::Error,
                Some(line),
                LocalizedText::new(
                    "`name` is missing, so the folder's name is used",
                    "缺少 `name`，使用目录名",
                ),
                LocalizedText::new(format!("write `name: {proper}`"), format!("请写 `name: {proper}`")),
            );
            return folder.to_owned();
        };
        let line = member.map(|member| member.line);
        if !is_name(&name) {
            self.add(
                Severity::Error,
                line,
                LocalizedText::new(
                    format!(
                        "`{}` is no name for a skill: 1 to 64 lower-case letters, digits and single hyphens",
                        short(&name)
                    ),
                    format!("`{}` 不能作技能名：应为 1 到 64 个小写字母、数字和单个连字符", short(&name)),
                ),
                // Only one correction is needed for both violations: the name must be that of the folder in any case.
                match is_name(folder) {
                    true => LocalizedText::new(
                        format!("write `name: {proper}`"),
                        format!("请写 `name: {proper}`"),
                    ),
                    false => LocalizedText::new(
                        format!("write `name: {proper}`, and rename the folder to `{proper}`"),
                        format!("请写 `name: {proper}`，并把目录改名为 `{proper}`"),
                    ),
                },
            );
        } else if name != folder {
            self.add(
                Severity::Error,
                line,
                LocalizedText::new(
                    format!("the name is not that of its folder, `{}`", short(folder)),
                    format!("名称与所在目录 `{}` 不同", short(folder)),
                ),
                match is_name(folder) {
                    true => LocalizedText::new(
                        format!("write `name: {folder}`, or rename the folder"),
                        format!("请写 `name: {folder}`，或重命名目录"),
                    ),
                    false => LocalizedText::new(
                        format!("rename the folder to `{name}`"),
                        format!("请把目录改名为 `{name}`"),
                    ),
                },
            );
        }
        // Bounds the name that is shown in lists and sent to models.
        name.chars().filter(|c| !c.is_control()).take(4 * MAX_SKILL_NAME_CHARS).collect()
    }

    fn description(&mut self, frontmatter: &Frontmatter) -> Option<String> {
        let member = frontmatter.tree.get("description");
        let text = member.and_then(scalar_text).map(|text| text.trim().to_owned());
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            let line = member.map_or(frontmatter.tree.line, |member| member.line);
            self.add(
                Severity::Fatal,
                Some(line),
                LocalizedText::new(
                    "there is no `description`, so no model could know when to use the skill",
                    "没有 `description`，模型无从知道何时使用该技能",
                ),
                LocalizedText::new(
                    "write `description: What it does, and when to use it`",
                    "请写 `description: 做什么，何时使用`",
                ),
            );
            return None;
        };
        let line = member.map(|member| member.line);
        let length = text.chars().count();
        if length > MAX_DESCRIPTION_CHARS {
            self.add(
                Severity::Error,
                line,
                LocalizedText::new(
                    format!("the description has {length} characters, more than {MAX_DESCRIPTION_CHARS}"),
                    format!("描述有 {length} 个字符，超过 {MAX_DESCRIPTION_CHARS}"),
                ),
                LocalizedText::new(
                    "shorten it, and move details into the text below",
                    "请缩短，把细节移到正文",
                ),
            );
        }
        if let Some(member) = member.filter(|member| member.node.text().is_none()) {
            let remedy = quote_scalar(&text);
            self.add(
                Severity::Error,
                Some(member.line),
                LocalizedText::new("the description is no text", "描述不是文本"),
                LocalizedText::new(
                    format!("write `description: {remedy}`"),
                    format!("请写 `description: {remedy}`"),
                ),
            );
        }
        if text.contains('<') && text.contains('>') {
            self.add(
                Severity::Advice,
                line,
                LocalizedText::new(
                    "some agents refuse a description with `<` and `>`",
                    "部分智能体不接受含 `<` 和 `>` 的描述",
                ),
                LocalizedText::new("say it in words", "请改用文字"),
            );
        }
        Some(text)
    }

    fn text(&mut self, member: Option<&YamlMember>, longest: usize) {
        let Some(member) = member else { return };
        let key = &member.key;
        match member.node.text() {
            Some(text) if !text.trim().is_empty() && text.chars().count() <= longest => {}
            Some(_) => self.add(
                Severity::Error,
                Some(member.line),
                LocalizedText::new(
                    format!("`{key}` must have 1 to {longest} characters"),
                    format!("`{key}` 应有 1 到 {longest} 个字符"),
                ),
                LocalizedText::new("shorten it, or leave it out", "请缩短或去掉"),
            ),
            None => self.add(
                Severity::Error,
                Some(member.line),
                LocalizedText::new(format!("`{key}` must be a text"), format!("`{key}` 应为文本")),
                LocalizedText::new(format!("write `{key}: \"…\"`"), format!("请写 `{key}: \"…\"`")),
            ),
        }
    }

    fn metadata(&mut self, member: Option<&YamlMember>) {
        let Some(member) = member else { return };
        if !matches!(member.node.part, NodeContent::Map(_)) && !member.node.is_null() {
            self.add(
                Severity::Error,
                Some(member.line),
                LocalizedText::new("`metadata` must be a mapping", "`metadata` 应为映射"),
                LocalizedText::new(
                    "write `metadata:` and below it, indented, `key: value`",
                    "请写 `metadata:`，下面缩进写 `key: value`",
                ),
            );
        }
        for reserved in
            member.node.members().iter().filter(|one| one.key.starts_with("io.modelcontextprotocol/"))
        {
            self.add(
                Severity::Advice,
                Some(reserved.line),
                LocalizedText::new(
                    format!("`{}` is a name that MCP keeps for itself", reserved.key),
                    format!("`{}` 是 MCP 保留的名称", reserved.key),
                ),
                LocalizedText::new("choose another one", "请换一个名称"),
            );
        }
    }

    fn allowed_tools(&mut self, member: Option<&YamlMember>) {
        let Some(member) = member else { return };
        let (problem, remedy) = match &member.node.part {
            NodeContent::Scalar(value) if value.is_string() => return,
            NodeContent::List(items) if items.iter().all(|item| item.text().is_some()) => {
                let words: Vec<&str> = items.iter().filter_map(|item| item.text()).collect();
                let remedy = format!("allowed-tools: {}", words.join(" "));
                self.add(
                    Severity::Advice,
                    Some(member.line),
                    LocalizedText::new(
                        "`allowed-tools` is a list, which not every agent reads",
                        "`allowed-tools` 是列表，并非所有智能体都能读取",
                    ),
                    LocalizedText::new(format!("write `{remedy}`"), format!("请写 `{remedy}`")),
                );
                return;
            }
            _ => (
                LocalizedText::new(
                    "`allowed-tools` must be names with blanks between them",
                    "`allowed-tools` 应为以空格分隔的名称",
                ),
                LocalizedText::new("write `allowed-tools: Read Grep`", "请写 `allowed-tools: Read Grep`"),
            ),
        };
        self.add(Severity::Error, Some(member.line), problem, remedy);
    }

    /// Accepts the additional fields of other agents; reports those that look like misspellings.
    fn check_unknown_keys(&mut self, frontmatter: &Frontmatter) {
        for member in
            frontmatter.tree.members().iter().filter(|member| !STANDARD_FIELDS.contains(&member.key.as_str()))
        {
            let written = member.key.to_lowercase().replace('_', "-");
            let suggestion =
                STANDARD_FIELDS.iter().find(|known| strsim::jaro_winkler(known, &written) >= MIN_SIMILARITY);
            if let Some(suggestion) =
                suggestion.filter(|suggestion| frontmatter.tree.get(suggestion).is_none())
            {
                self.add(
                    Severity::Advice,
                    Some(member.line),
                    LocalizedText::new(
                        format!("`{}` means nothing to most agents", member.key),
                        format!("`{}` 对多数智能体没有意义", member.key),
                    ),
                    LocalizedText::new(
                        format!("did you mean `{suggestion}`?"),
                        format!("是否想写 `{suggestion}`？"),
                    ),
                );
            }
        }
    }
}

/// The text of a scalar, including numbers and booleans: `name: 2048` is common.
fn scalar_text(member: &YamlMember) -> Option<String> {
    match &member.node.part {
        NodeContent::Scalar(serde_json::Value::Null) | NodeContent::List(_) | NodeContent::Map(_) => None,
        NodeContent::Scalar(serde_json::Value::String(text)) => Some(text.clone()),
        NodeContent::Scalar(other) => Some(other.to_string()),
    }
}

fn short(text: &str) -> String {
    toolhub_core::text::truncate(text, MAX_SKILL_NAME_CHARS + 16).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontmatter;
    use toolhub_core::{Lang, Localize as _};

    fn messages(yaml: &str, folder: &str) -> Vec<String> {
        let file = Path::new("SKILL.md");
        let frontmatter = frontmatter::read(file, &format!("---\n{yaml}---\n")).unwrap();
        read(file, &frontmatter, folder)
            .diagnostics
            .iter()
            .map(|diagnostic| diagnostic.localize(Lang::En))
            .collect()
    }

    #[test]
    fn enforces_name_rules() {
        for name in ["a", "pdf-forms", "a1-b2", "2048"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "A", "a_b", "-a", "a-", "a--b", "é", "技能", "a b"] {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_name(&"a".repeat(64)) && !is_name(&"a".repeat(65)));
        assert_eq!(as_name("My PDF_Tool!").as_deref(), Some("my-pdf-tool"));
        assert_eq!(as_name("技能"), None);
    }

    #[test]
    fn every_violation_includes_advice() {
        let check =
            |yaml: &str, folder: &str, expect: &[&str]| assert_eq!(messages(yaml, folder), expect, "{yaml}");
        check("name: a\ndescription: d\nlicense: MIT\nversion: 1\nhooks: {}\n", "a", &[]);
        check(
            "name: a\ndescription: d\n",
            "b",
            &["SKILL.md:2: the name is not that of its folder, `b`; write `name: b`, or rename the folder"],
        );
        check(
            "name: My Tool\ndescription: d\n",
            "my-tool",
            &[
                "SKILL.md:2: `My Tool` is no name for a skill: 1 to 64 lower-case letters, digits and single hyphens; write `name: my-tool`",
            ],
        );
        check(
            "name: Big Kitchen\ndescription: d\n",
            "The Kitchen",
            &[
                "SKILL.md:2: `Big Kitchen` is no name for a skill: 1 to 64 lower-case letters, digits and single hyphens; write `name: the-kitchen`, and rename the folder to `the-kitchen`",
            ],
        );
        check(
            "description: d\n",
            "a",
            &["SKILL.md:2: `name` is missing, so the folder's name is used; write `name: a`"],
        );
        check(
            "name: a\ndescription:\n",
            "a",
            &[
                "SKILL.md:3: there is no `description`, so no model could know when to use the skill; write `description: What it does, and when to use it`",
            ],
        );
        let long = format!("name: a\ndescription: {}\n", "x".repeat(1025));
        check(
            &long,
            "a",
            &[
                "SKILL.md:3: the description has 1025 characters, more than 1024; shorten it, and move details into the text below",
            ],
        );
        check(
            "name: a\ndescription: d\nmetadata: x\nallowed-tools:\n  - Read\n  - Grep\n",
            "a",
            &[
                "SKILL.md:4: `metadata` must be a mapping; write `metadata:` and below it, indented, `key: value`",
                "SKILL.md:5: `allowed-tools` is a list, which not every agent reads; write `allowed-tools: Read Grep`",
            ],
        );
        check(
            "name: a\ndescription: d\nallowed_tools: Read\n",
            "a",
            &["SKILL.md:4: `allowed_tools` means nothing to most agents; did you mean `allowed-tools`?"],
        );
    }
}
