//! Formats one tool for a prompt: name, description, parameters, hints and an example.

use std::fmt::Write as _;

use serde_json::Value;
use toolhub_core::lang::Lang;
use toolhub_core::text::truncate;
use toolhub_core::tool::Tool;
use toolhub_core::{RawJson, RawObject};

use super::PromptPurpose;

/// Maximum characters of a tool's description.
const MAX_DESCRIPTION_CHARS: usize = 400;
/// Maximum characters of a parameter's description.
const MAX_PARAMETER_CHARS: usize = 160;
/// Maximum number of enum values.
const MAX_CHOICES: usize = 20;
/// Maximum bytes of an example.
const MAX_EXAMPLE_BYTES: usize = 300;

/// The arguments of a successful call.
pub(crate) struct Example<'a> {
    pub(crate) arguments: &'a RawJson,
    pub(crate) purpose: PromptPurpose,
}

impl Example<'_> {
    /// The call in the form that the model must write: small models copy what they see.
    fn written(&self, tool: &Tool) -> String {
        match self.purpose {
            PromptPurpose::Plan => self.arguments.get().to_owned(),
            PromptPurpose::Talk | PromptPurpose::Code => {
                let call = RawObject::default()
                    .with("tool_name", tool.name().as_str())
                    .with("arguments", self.arguments.clone());
                format!("<tool_call>{}</tool_call>", call.into_raw())
            }
        }
    }
}

/// The description on one line, truncated.
pub(crate) fn described(tool: &Tool) -> String {
    let brief = super::skills::brief(tool);
    one_line(brief.as_deref().unwrap_or(tool.definition.description()), MAX_DESCRIPTION_CHARS)
}

/// The section on one tool.
pub(crate) fn tool_text(tool: &Tool, example: Option<&Example<'_>>, lang: Lang) -> String {
    let mut text = format!("**{}**", tool.name());
    let hints = hints(tool, lang);
    if !hints.is_empty() {
        let _ = write!(text, " ({})", hints.join(", "));
    }
    let _ = writeln!(text, ": {}", described(tool));
    let schema = tool.definition.input_schema().value();
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map_or(Vec::new(), |names| names.iter().filter_map(Value::as_str).collect());
    for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
        let need = match required.contains(&name.as_str()) {
            true => lang.choose("required", "必填"),
            false => lang.choose("optional", "可选"),
        };
        let _ = write!(text, "- `{name}` ({}, {need})", kind(parameter));
        let description =
            one_line(parameter["description"].as_str().unwrap_or_default(), MAX_PARAMETER_CHARS);
        if !description.is_empty() {
            let _ = write!(text, ": {description}");
        }
        if let Some(choices) = parameter["enum"].as_array() {
            let listed: Vec<String> = choices.iter().take(MAX_CHOICES).map(Value::to_string).collect();
            let more = if choices.len() > MAX_CHOICES { ", …" } else { "" };
            let _ = write!(text, " {} {}{more}", lang.choose("One of:", "可选值："), listed.join(", "));
        }
        if let Some(default) = parameter.get("default").filter(|value| !value.is_null()) {
            let _ = write!(text, " {} {default}", lang.choose("Default:", "默认："));
        }
        text.push('\n');
    }
    if let Some(example) = example.filter(|example| example.arguments.get().len() <= MAX_EXAMPLE_BYTES) {
        let _ = writeln!(text, "{} {}", lang.choose("Example:", "示例："), example.written(tool));
    }
    text
}

fn hints(tool: &Tool, lang: Lang) -> Vec<&'static str> {
    let hints = tool.hints();
    [
        (hints.read_only, lang.choose("read-only", "只读")),
        (hints.destructive, lang.choose("destructive", "有破坏性")),
        (hints.idempotent.filter(|_| hints.read_only != Some(true)), lang.choose("idempotent", "幂等")),
    ]
    .into_iter()
    .filter(|(hint, _)| *hint == Some(true))
    .map(|(_, name)| name)
    .collect()
}

/// The type of a parameter as its schema gives it.
fn kind(parameter: &Value) -> String {
    match &parameter["type"] {
        Value::String(name) if name == "array" => match parameter["items"]["type"].as_str() {
            Some(items) => format!("array of {items}"),
            None => name.clone(),
        },
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => {
            let alternatives = parameter["anyOf"].as_array().or_else(|| parameter["oneOf"].as_array());
            let names: Vec<String> =
                alternatives.into_iter().flatten().map(kind).filter(|name| name != "null").collect();
            if names.is_empty() { "any".to_owned() } else { names.join(" or ") }
        }
    }
}

fn one_line(text: &str, limit: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    truncate(&line, limit).unwrap_or(line)
}
