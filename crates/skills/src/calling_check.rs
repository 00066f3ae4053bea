//! Advice about scripts that call tools: parameters that are declared and not used, or used and not declared, and files that no
//! tool declares. The text is searched, not understood, so that nothing here is an error.

use std::collections::BTreeSet;

use toolhub_core::lang::LocalizedText;

use crate::calling_script::MAX_SCRIPT_BYTES;
use crate::declarations::{Runner, SkillTool};
use crate::diagnostic::{Diagnostic, Severity};
use crate::skill::Skill;
use crate::skill_file;

/// Returns the advice about the scripts of a skill. `instructions` is the text of its `SKILL.md`.
pub(crate) fn diagnostics(skill: &Skill, instructions: &str) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for tool in skill.tools.iter().filter(|tool| tool.runner == Runner::Calling) {
        if let Some(code) = text_of(skill, &tool.file) {
            found.extend(parameters(skill, tool, &code));
        }
    }
    let Ok(entries) = std::fs::read_dir(skill.folder.join("scripts")) else { return found };
    let mut files: Vec<String> = entries
        .flatten()
        .filter_map(|entry| Some(format!("scripts/{}", entry.file_name().to_str()?)))
        .filter(|file| file.ends_with(".js"))
        .filter(|file| {
            !skill.tools.iter().any(|tool| tool.file == *file) && !instructions.contains(file.as_str())
        })
        .collect();
    files.sort();
    for file in files {
        let problem = LocalizedText::new(
            format!("no tool declares `{file}`, and the instructions do not name it"),
            format!("没有工具声明 `{file}`，说明中也未提及"),
        );
        let remedy = LocalizedText::new(
            "declare a tool with this `script`, or remove the file",
            "请声明使用该 `script` 的工具，或删除文件",
        );
        found.push(Diagnostic::new(&skill.file, Severity::Advice, problem, remedy));
    }
    found
}

fn text_of(skill: &Skill, file: &str) -> Option<String> {
    String::from_utf8(skill_file::read(&skill.folder, file, MAX_SCRIPT_BYTES).ok()?).ok()
}

fn parameters(skill: &Skill, tool: &SkillTool, code: &str) -> Vec<Diagnostic> {
    let schema = tool.schema.value();
    let declared: Vec<&str> = schema
        .get("properties")
        .and_then(|properties| properties.as_object())
        .map(|properties| properties.keys().map(String::as_str).collect())
        .unwrap_or_default();
    let Inputs { members, is_used_as_a_whole } = inputs(code);
    let file = skill.folder.join(&tool.file);
    let name = &tool.name;
    let mut found = Vec::new();
    // A script that passes `input` on, or takes it apart, may use every parameter.
    if !is_used_as_a_whole {
        for unused in declared.iter().filter(|name| !members.contains(**name)) {
            let problem = LocalizedText::new(
                format!("the tool `{name}` declares the parameter `{unused}`, which its script does not use"),
                format!("工具 `{name}` 声明了参数 `{unused}`，但脚本没有使用"),
            );
            let remedy = LocalizedText::new(
                format!("read `input.{unused}`, or remove the parameter"),
                format!("请使用 `input.{unused}`，或删除该参数"),
            );
            found.push(Diagnostic::new(&file, Severity::Advice, problem, remedy));
        }
    }
    for undeclared in members.iter().filter(|member| !declared.contains(&member.as_str())) {
        let problem = LocalizedText::new(
            format!(
                "the script of the tool `{name}` reads `input.{undeclared}`, which the tool does not declare"
            ),
            format!("工具 `{name}` 的脚本读取了 `input.{undeclared}`，但工具没有声明该参数"),
        );
        let remedy = LocalizedText::new(
            format!("declare `{undeclared}` below `properties` of `input`"),
            format!("请在 `input` 的 `properties` 下声明 `{undeclared}`"),
        );
        found.push(Diagnostic::new(&file, Severity::Advice, problem, remedy));
    }
    found
}

/// The uses of `input` in a text.
struct Inputs {
    members: BTreeSet<String>,
    is_used_as_a_whole: bool,
}

fn inputs(code: &str) -> Inputs {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut found = Inputs { members: BTreeSet::new(), is_used_as_a_whole: false };
    for (at, word) in code.match_indices("input") {
        let before = code.get(..at).unwrap_or_default();
        let rest = code.get(at + word.len()..).unwrap_or_default();
        if before.ends_with(|c| is_name(c) || c == '.') && !before.ends_with("...")
            || rest.starts_with(is_name)
        {
            continue;
        }
        let member = rest.strip_prefix("?.").or_else(|| rest.strip_prefix('.'));
        let name = member.map(|member| member.split(|c| !is_name(c)).next().unwrap_or_default());
        match name.filter(|name| !name.is_empty()) {
            Some(name) => drop(found.members.insert(name.to_owned())),
            None => found.is_used_as_a_whole = true,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_uses_of_input() {
        let check = |code: &str, members: &[&str], whole: bool| {
            let found = inputs(code);
            assert_eq!(found.members.iter().map(String::as_str).collect::<Vec<_>>(), members, "{code}");
            assert_eq!(found.is_used_as_a_whole, whole, "{code}");
        };
        check("return input.a + input?.b", &["a", "b"], false);
        check("const { a } = input", &[], true);
        check("f({ ...input })", &[], true);
        check("input['a']", &[], true);
        check("my_input.a; x.input.b; inputs.c", &[], false);
    }
}
