//! Checks that the `input` of declared tools is valid JSON Schema, and finds the line of an error.

use std::path::Path;

use jsonschema::PatternOptions;
use serde_json::{Value, json};
use toolhub_core::lang::LocalizedText;
use toolhub_core::text::truncate;

use crate::declarations;
use crate::diagnostic::{Diagnostic, Severity};
use crate::yaml::{NodeContent, YamlNode};

/// Maximum length of a reported error, in characters.
const MAX_ERROR_CHARS: usize = 200;

/// Returns the faults of the `input` of each tool declared in the frontmatter.
pub(crate) fn diagnostics(file: &Path, tree: &YamlNode) -> Vec<Diagnostic> {
    let Some(toolhub_metadata) = declarations::toolhub_metadata(tree) else { return Vec::new() };
    let Some(NodeContent::List(tools)) = toolhub_metadata.get("tools").map(|tools| &tools.node.part) else {
        return Vec::new();
    };
    let inputs = tools.iter().filter_map(|tool| Some((tool, tool.get("input")?)));
    let schema_error = inputs.filter_map(|(tool, input)| {
        let (location, why) = schema_error(&input.node.value())?;
        let name = tool.get("name").and_then(|name| name.node.text()).unwrap_or("?");
        let problem = LocalizedText::new(
            format!("the `input` of the tool `{name}` is no JSON Schema{}: {why}", at(&location, " at")),
            format!("工具 `{name}` 的 `input` 不是 JSON Schema{}：{why}", at(&location, "，位于")),
        );
        let remedy = LocalizedText::new(
            "write each argument as `NAME: {type: string, description: …}` below `properties`",
            "请在 `properties` 下把每个参数写成 `名称: {type: string, description: …}`",
        );
        Some(Diagnostic::new(file, Severity::Error, problem, remedy).at(line_at(
            input.line,
            &input.node,
            &location,
        )))
    });
    schema_error.collect()
}

/// Checks a schema outside of frontmatter; returns the error, if any.
pub(crate) fn invalid_schema(schema: &Value) -> Option<String> {
    schema_error(schema).map(|(location, why)| format!("{why}{}", at(&location, " at")))
}

fn at(location: &str, word: &str) -> String {
    if location.is_empty() { String::new() } else { format!("{word} `{location}`") }
}

/// Returns the JSON pointer and the message of the first schema error.
fn schema_error(schema: &Value) -> Option<(String, String)> {
    // Values other than mappings are reported by `declarations`.
    let mut schema = schema.as_object()?.clone();
    schema.entry("type").or_insert_with(|| json!("object"));
    let patterns = PatternOptions::fancy_regex().backtrack_limit(100_000).size_limit(1 << 20);
    let options = jsonschema::options().offline().should_validate_formats(false);
    let error = options.with_pattern_options(patterns).build(&Value::Object(schema)).err()?;
    let why = error.to_string();
    Some((error.instance_path().as_str().to_owned(), truncate(&why, MAX_ERROR_CHARS).unwrap_or(why)))
}

/// Returns the line of the deepest node that a JSON pointer reaches.
fn line_at(line: usize, node: &YamlNode, location: &str) -> usize {
    let (mut line, mut node) = (line, node);
    for step in location.split('/').skip(1) {
        let key = step.replace("~1", "/").replace("~0", "~");
        let next = match &node.part {
            NodeContent::Map(_) => node.get(&key).map(|member| (member.line, &member.node)),
            NodeContent::List(items) => {
                key.parse::<usize>().ok().and_then(|at| items.get(at)).map(|item| (item.line, item))
            }
            NodeContent::Scalar(_) => None,
        };
        let Some(next) = next else { break };
        (line, node) = next;
    }
    line
}

#[cfg(test)]
mod tests {
    use toolhub_core::lang::{Lang, Localize as _};

    use super::*;

    #[test]
    fn reports_line_of_schema_error() {
        let check = |input: &str, line: usize, words: &str| {
            let text =
                format!("metadata:\n  toolhub:\n    tools:\n      - name: cut\n        input:\n{input}");
            let found = diagnostics(Path::new("SKILL.md"), &crate::yaml::parse(&text).unwrap());
            let messages: Vec<String> =
                found.iter().map(|diagnostic| diagnostic.localize(Lang::En)).collect();
            assert_eq!(found.first().and_then(|diagnostic| diagnostic.line), Some(line), "{messages:?}");
            assert!(messages[0].contains(words), "{messages:?}");
        };
        check("          properties:\n            a: {type: strin}\n", 7, "`/properties/a/type`");
        check(
            "          properties:\n            a: {type: string}\n          required: a\n",
            8,
            "`/required`",
        );
        check(
            "          properties:\n            b: {}\n            a: {type: string, pattern: \"(\"}\n",
            8,
            "the `input` of the tool `cut` is no JSON Schema",
        );
        let good =
            "metadata:\n  toolhub:\n    tools:\n      - {name: a, input: {properties: {b: {type: string}}}}";
        assert_eq!(diagnostics(Path::new("SKILL.md"), &crate::yaml::parse(good).unwrap()), []);
    }
}
