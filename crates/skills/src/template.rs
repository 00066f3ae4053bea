//! Templates of new skills: instructions with hints on their structure, and optionally a script that is a tool.

use std::path::{Path, PathBuf};

use toolhub_core::lang::{Lang, LocalizedText};

use crate::fields::{as_name, is_name};

/// Why a skill was not created.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CreateError(pub LocalizedText);

/// The kind of template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateKind {
    /// Instructions only.
    Instructions,
    /// Instructions and a script that is a tool.
    WithTool,
}

/// Creates a skill in `parent` and returns its folder.
pub fn create_skill(
    parent: &Path,
    name: &str,
    kind: TemplateKind,
    lang: Lang,
) -> Result<PathBuf, CreateError> {
    if !is_name(name) {
        let suggestion = as_name(name).map(|suggestion| format!("`{suggestion}`"));
        let hint = |en: &str| suggestion.clone().unwrap_or_else(|| en.to_owned());
        return Err(CreateError(LocalizedText::new(
            format!(
                "`{name}` is no name for a skill: use 1 to 64 lower-case letters, digits and single hyphens, such as {}",
                hint("`pdf-forms`")
            ),
            format!(
                "`{name}` 不能作技能名：请用 1 到 64 个小写字母、数字和单个连字符，例如 {}",
                hint("`pdf-forms`")
            ),
        )));
    }
    let folder = parent.join(name);
    if folder.exists() {
        let displayed = folder.display();
        return Err(CreateError(LocalizedText::new(
            format!("`{displayed}` exists already: choose another name, or remove it"),
            format!("`{displayed}` 已存在：请换个名称，或先删除"),
        )));
    }
    create(parent, name, kind, lang).map_err(|error| {
        let displayed = folder.display();
        CreateError(LocalizedText::new(
            format!("`{displayed}` cannot be written: {error}"),
            format!("无法写入 `{displayed}`：{error}"),
        ))
    })?;
    Ok(folder)
}

/// Writes the skill to a temporary folder and renames it, so that an error leaves no partial skill.
fn create(parent: &Path, name: &str, kind: TemplateKind, lang: Lang) -> std::io::Result<()> {
    std::fs::create_dir_all(parent)?;
    let temporary = tempfile::Builder::new().prefix(".toolhub-new-").tempdir_in(parent)?;
    let folder = temporary.path().join(name);
    write(&folder, name, kind, lang)?;
    std::fs::rename(&folder, parent.join(name))
}

fn write(folder: &Path, name: &str, kind: TemplateKind, lang: Lang) -> std::io::Result<()> {
    std::fs::create_dir_all(folder.join("references"))?;
    let tool = name.replace('-', "_");
    let tools = match kind {
        TemplateKind::Instructions => String::new(),
        TemplateKind::WithTool => lang.choose(TOOLS, TOOLS_ZH).replace("TOOL", &tool),
    };
    let text = lang.choose(MANIFEST, MANIFEST_ZH).replace("NAME", name).replace("TOOLS\n", &tools);
    std::fs::write(folder.join("SKILL.md"), text)?;
    std::fs::write(folder.join("references/details.md"), lang.choose(DETAILS, DETAILS_ZH))?;
    if kind == TemplateKind::WithTool {
        let script = folder.join("scripts").join(format!("{tool}.py"));
        std::fs::create_dir_all(folder.join("scripts"))?;
        std::fs::write(&script, SCRIPT)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

/// Whether a description is the unedited one of a template.
pub(crate) fn is_placeholder(description: &str) -> bool {
    let of = |text: &'static str| text.lines().find_map(|line| line.strip_prefix("description: "));
    [MANIFEST, MANIFEST_ZH].into_iter().filter_map(of).any(|unwritten| unwritten == description)
}

const MANIFEST: &str = "---
name: NAME
description: Says in a sentence what this skill does. Use it when the user asks for that, or names it.
TOOLS
---

# NAME

When to use this, and what a good result looks like.

1. Look at what there is.
2. Do the work, step by step.
3. Check the result before you answer.

Details that are seldom needed stand in [references/details.md](references/details.md).
";

const MANIFEST_ZH: &str = "---
name: NAME
description: 用一句话说明这个技能做什么。当用户提出此类请求或点名时使用。
TOOLS
---

# NAME

何时使用，好的结果是什么样。

1. 先查看现有内容。
2. 逐步完成工作。
3. 回答前检查结果。

不常用的细节放在 [references/details.md](references/details.md)。
";

const TOOLS: &str = "metadata:
  toolhub:
    tools:
      - name: TOOL
        description: Counts the words of a text
        script: scripts/TOOL.py
        input:
          properties:
            text: {type: string, description: The text}
          required: [text]
        hints: {read_only: true}
";

const TOOLS_ZH: &str = "metadata:
  toolhub:
    tools:
      - name: TOOL
        description: 统计文本的词数
        script: scripts/TOOL.py
        input:
          properties:
            text: {type: string, description: 文本}
          required: [text]
        hints: {read_only: true}
";

const DETAILS: &str = "# Details\n\nWhat the instructions leave out.\n";
const DETAILS_ZH: &str = "# 细节\n\n说明中没有写的内容。\n";

const SCRIPT: &str = r#"#!/usr/bin/env python3
"""Arguments come as a JSON object on stdin; the answer goes to stdout, as JSON or text."""

import json
import sys

arguments = json.load(sys.stdin)
words = arguments["text"].split()
json.dump({"words": len(words), "characters": len(arguments["text"])}, sys.stdout)
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creates_only_the_skill_directory() {
        let parent = tempfile::tempdir().unwrap();
        let skills = parent.path().join("skills");
        let folder = create_skill(&skills, "pdf-forms", TemplateKind::WithTool, Lang::En).unwrap();
        assert!(folder.join("scripts/pdf_forms.py").is_file());
        let names: Vec<_> =
            std::fs::read_dir(&skills).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["pdf-forms"]);
        assert!(create_skill(&skills, "pdf-forms", TemplateKind::Instructions, Lang::En).is_err());
        assert_eq!(std::fs::read_dir(&skills).unwrap().count(), 1);
    }
}
