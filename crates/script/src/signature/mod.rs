//! TypeScript signatures of tools, generated from their JSON Schemas: short enough for a prompt, whatever the schema.
//!
//! A signature that exceeds its budget is shown with less: without descriptions, then without nested optional
//! properties, with less nesting, without optional properties, and at last without properties.

mod references;
mod text;
mod types;

use std::collections::BTreeMap;

use serde_json::Value;

use self::text::{comment, key};
use self::types::{Detail, TypeText, render};

pub use self::text::is_identifier;

/// Characters of the description of a tool.
const MAX_DESCRIPTION_CHARS: usize = 300;
/// The types of tools without an output schema: structured content of any form, or text.
const ANY: &str = "any";

/// The budget of a signature that is shown alone, in characters.
pub const DEFAULT_BUDGET: usize = 1_500;

/// From the most to the least detail.
const DETAILS: [Detail; 6] = [
    Detail { description: 160, depth: 8, nested_optional: true, optional: true },
    Detail { description: 60, depth: 8, nested_optional: true, optional: true },
    Detail { description: 0, depth: 8, nested_optional: true, optional: true },
    Detail { description: 0, depth: 3, nested_optional: false, optional: true },
    Detail { description: 0, depth: 1, nested_optional: false, optional: true },
    Detail { description: 0, depth: 1, nested_optional: false, optional: false },
];

/// What is shown of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolShape<'a> {
    /// The server below `tools`, if the tool is reached through one.
    pub server: Option<&'a str>,
    /// The name below the server, or below `tools`.
    pub name: &'a str,
    /// What the tool does; empty for none.
    pub description: &'a str,
    /// The JSON Schema of its arguments.
    pub input: &'a Value,
    /// The JSON Schema of its structured content.
    pub output: Option<&'a Value>,
}

/// The signature of one tool, such as `tools.excel.read(args: { path: string }): Promise<string[]>`. Recursive types follow on lines of
/// their own.
pub fn signature(tool: &ToolShape<'_>, budget: usize) -> String {
    let path = access(tool);
    let function = function(tool, budget);
    let mut text = format!("{path}{}", function.parameters);
    for (name, shown) in function.named {
        text.push_str(&format!("\ntype {name} = {shown};"));
    }
    text
}

/// How a script reaches a tool.
pub fn access(tool: &ToolShape<'_>) -> String {
    let member = |name: &str| match is_identifier(name) {
        true => format!(".{name}"),
        false => format!("[{}]", text::literal(name)),
    };
    let server = tool.server.map(member).unwrap_or_default();
    format!("tools{server}{}", member(tool.name))
}

/// The declaration file of a set of tools, grouped by server; `budget` is the number of characters per tool.
pub fn declaration(tools: &[ToolShape<'_>], budget: usize) -> String {
    let mut groups: BTreeMap<Option<&str>, Vec<&ToolShape<'_>>> = BTreeMap::new();
    for tool in tools {
        groups.entry(tool.server).or_default().push(tool);
    }
    let mut types = String::new();
    let mut body = String::new();
    for (server, mut members) in groups {
        members.sort_by_key(|tool| tool.name);
        let indent = if server.is_some() { "    " } else { "  " };
        if let Some(server) = server {
            body.push_str(&format!("  {}: {{\n", key(server)));
        }
        for tool in members {
            body.push_str(&member(tool, budget, indent, &mut types));
        }
        if server.is_some() {
            body.push_str("  };\n");
        }
    }
    format!(
        "{types}declare const tools: {{\n{body}}};\ndeclare const input: any;\ndeclare function sleep(ms: number): Promise<void>;\n"
    )
}

/// The method of one tool. Its named types get the names of server and tool, so that they are unique.
fn member(tool: &ToolShape<'_>, budget: usize, indent: &str, types: &mut String) -> String {
    let function = function(tool, budget);
    let prefix: String = [tool.server.unwrap_or_default(), tool.name]
        .iter()
        .flat_map(|part| part.chars().filter(char::is_ascii_alphanumeric).chain(['_']))
        .collect();
    let mut parameters = function.parameters;
    let mut named = function.named;
    let names: Vec<String> = named.iter().map(|(name, _)| name.clone()).collect();
    for name in &names {
        let unique = format!("T_{prefix}{name}");
        parameters = rename(&parameters, name, &unique);
        for (_, shown) in &mut named {
            *shown = rename(shown, name, &unique);
        }
        types.push_str(&format!("type {unique} = "));
        let shown =
            named.iter().find(|(other, _)| other == name).map_or("unknown", |(_, shown)| shown.as_str());
        types.push_str(&format!("{shown};\n"));
    }
    let description = comment(tool.description, MAX_DESCRIPTION_CHARS.min(budget / 3));
    let description =
        if description.is_empty() { String::new() } else { format!("{indent}/** {description} */\n") };
    format!("{description}{indent}{}{parameters};\n", key(tool.name))
}

/// Everything behind the name of a function.
struct Function {
    parameters: String,
    named: Vec<(String, String)>,
}

fn function(tool: &ToolShape<'_>, budget: usize) -> Function {
    let shown = DETAILS.iter().map(|detail| with_detail(tool, *detail));
    let fits = |function: &Function| {
        let named: usize =
            function.named.iter().map(|(name, shown)| name.len() + shown.chars().count()).sum();
        function.parameters.chars().count() + named <= budget
    };
    shown.into_iter().find(fits).unwrap_or_else(|| Function {
        parameters: format!("(args: object): Promise<{ANY}>"),
        named: Vec::new(),
    })
}

fn with_detail(tool: &ToolShape<'_>, detail: Detail) -> Function {
    let input = render(tool.input, detail);
    let output = tool.output.map(|output| render(output, detail));
    let mut named = input.named;
    let returned = match output {
        Some(output) => {
            let TypeText { text, named: more, .. } = output;
            merge(&mut named, text, more)
        }
        None => ANY.to_owned(),
    };
    let parameters = match (input.text.as_str(), input.all_optional) {
        ("{}" | "object" | "unknown", true) => "()".to_owned(),
        (text, true) => format!("(args?: {text})"),
        (text, false) => format!("(args: {text})"),
    };
    Function { parameters: format!("{parameters}: Promise<{returned}>"), named }
}

/// Adds the named types of the output to those of the input, under other names if they differ.
fn merge(named: &mut Vec<(String, String)>, mut text: String, mut more: Vec<(String, String)>) -> String {
    for index in 0..more.len() {
        let Some((name, shown)) = more.get(index).cloned() else { break };
        match named.iter().find(|(other, _)| *other == name) {
            Some((_, other)) if *other == shown => continue,
            Some(_) => {
                let renamed = format!("Output{name}");
                text = rename(&text, &name, &renamed);
                for (_, shown) in &mut more {
                    *shown = rename(shown, &name, &renamed);
                }
                let shown = rename(&shown, &name, &renamed);
                named.push((renamed, shown));
            }
            None => named.push((name, shown)),
        }
    }
    text
}

/// Replaces a type name where it is a word of its own, outside of literals and comments.
fn rename(text: &str, name: &str, new: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => literal_length(rest),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            first if is_word(first) => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        // A key is followed by a colon.
        let is_key = behind.starts_with(':') || behind.starts_with("?:");
        result.push_str(if token == name && !is_key { new } else { token });
        rest = behind;
    }
    result
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$')
}

fn literal_length(text: &str) -> usize {
    let mut is_escaped = true;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' if !is_escaped => return at + 1,
            '\\' if !is_escaped => is_escaped = true,
            _ => is_escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
