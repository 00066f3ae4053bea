//! The tool `use_skill`: returns the instructions of a skill, and single files of it.

use std::fmt::Write as _;
use std::path::{Component, Path};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use toolhub_core::lang::LocalizedText;
use toolhub_core::text::cut;
use toolhub_core::{RawJson, RawObject, Source, Tool, ToolDefinition, ToolError, ToolOutput};

use crate::file_set::{FileSet, Stamp, sha256};
use crate::frontmatter;
use crate::registry::{RegisteredSkill, SkillRegistry, Snapshot};
use crate::resource;
use crate::skill::{Shape, Skill};

/// The tool's name.
pub const NAME: &str = "use_skill";
/// The capability tag; no call by capability requests it.
pub const TAG: &str = "skills";
/// The key in `_meta` that lists the skills, for prompts.
pub const LISTED_META_KEY: &str = "toolhub/skills";
/// The key in `_meta` with a short description, for lists that name the skills separately.
pub const BRIEF_META_KEY: &str = "toolhub/brief";

/// Maximum size of the instructions, in bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// Maximum size of a file that is returned to a model, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum length of a skill's description within the description of the tool, in characters.
const MAX_DESCRIPTION_CHARS: usize = 300;
/// Maximum length of the tool's description, in characters, beyond which only names are listed.
const MAX_DESCRIPTIONS_CHARS: usize = 8_000;
/// Maximum number of files that are listed with the instructions.
const MAX_NAMED_FILES: usize = 100;

const INTRODUCTION: &str = "Loads the instructions of a skill, which tell how a kind of work is done here. Call it before such work, with the skill that fits, and follow what it says. `file` reads one of the skill's files instead.";

/// Builds the tool for the skills in use; `None` if there are none.
pub(crate) fn tool(snapshot: &Snapshot) -> Option<Tool> {
    let mut offered: Vec<(String, &str)> = snapshot
        .used()
        .filter(|known| known.skill.shape == Shape::Folder)
        .map(|known| (known.skill.name.clone(), known.skill.description.as_str()))
        .collect();
    offered.sort();
    offered.extend(snapshot.remote.iter().map(|skill| (skill.shown(), skill.description.as_str())));
    let definition = definition(&offered)?;
    Some(Tool { tags: vec![TAG.to_owned()], ..Tool::new(Source::Skill, definition) })
}

/// Returns the skills, with descriptions, that a definition of the tool lists.
pub fn listed(definition: &ToolDefinition) -> Vec<(String, String)> {
    let meta = definition.raw().object().and_then(|members| members.get("_meta")?.object());
    let listed =
        meta.and_then(|meta| meta.get(LISTED_META_KEY)?.decode::<Vec<RawJson>>().ok()).unwrap_or_default();
    let text = |entry: &RawObject, key: &str| entry.get(key).and_then(|text| text.decode::<String>().ok());
    let pair = |entry: RawJson| {
        let entry = entry.object()?;
        Some((text(&entry, "name")?, text(&entry, "description").unwrap_or_default()))
    };
    listed.into_iter().filter_map(pair).collect()
}

/// Builds the definition for these skills; `None` if there are none.
pub fn definition<T: AsRef<str>>(offered: &[(String, T)]) -> Option<ToolDefinition> {
    if offered.is_empty() {
        return None;
    }
    let mut description = format!("{INTRODUCTION}\n\nSkills:\n");
    for (name, summary) in offered {
        let summary = one_line(summary.as_ref());
        let summary = cut(&summary, MAX_DESCRIPTION_CHARS).unwrap_or(summary);
        // Beyond the limit only names are listed.
        if description.chars().count() + summary.chars().count() > MAX_DESCRIPTIONS_CHARS {
            let _ = writeln!(description, "- {name}");
        } else {
            let _ = writeln!(description, "- {name}: {summary}");
        }
    }
    let names: Vec<&str> = offered.iter().map(|(name, _)| name.as_str()).collect();
    let listed: Vec<RawObject> = offered
        .iter()
        .map(|(name, summary)| {
            RawObject::default().with("name", name.as_str()).with("description", summary.as_ref())
        })
        .collect();
    let definition = json!({
        "name": NAME,
        "title": "Use a skill",
        "description": description.trim_end(),
        "inputSchema": {
            "type": "object",
            "properties": {
                "skill": {"type": "string", "enum": names, "description": "Which skill"},
                "file": {"type": "string", "description": "A file of the skill to read instead of its instructions, such as `references/guide.md`"},
            },
            "required": ["skill"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false},
        "_meta": {LISTED_META_KEY: listed, BRIEF_META_KEY: INTRODUCTION},
    });
    ToolDefinition::parse(RawJson::from(definition)).ok()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the instructions of a skill: the text below its frontmatter. Cached until the file changes.
pub fn instructions(registry: &SkillRegistry, skill: &Skill) -> Result<Arc<str>, ToolError> {
    let unreadable = |error: std::io::Error| {
        let file = skill.file.display();
        ToolError::failed(LocalizedText::new(
            format!("`{file}` cannot be read: {error}"),
            format!("无法读取 `{file}`：{error}"),
        ))
    };
    let stamp = Stamp::of(&std::fs::metadata(&skill.file).map_err(unreadable)?);
    if let Some(text) = registry.cached_text(&skill.file, stamp) {
        return Ok(text);
    }
    let body = body_of(skill, None)?;
    registry.cache_text(&skill.file, stamp, Arc::clone(&body));
    Ok(body)
}

/// Reads the instructions without the cache; checks them against the approved files, if any.
fn body_of(skill: &Skill, approved: Option<&FileSet>) -> Result<Arc<str>, ToolError> {
    let name = skill.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = bytes_of(skill, approved, (&name, MAX_MANIFEST_BYTES))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let lines = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = lines.iter().filter(|byte| **byte == b'\n').count() + 1;
        let file = skill.file.display();
        ToolError::failed(LocalizedText::new(
            format!("`{file}` is not UTF-8 from line {line} on; save it as UTF-8"),
            format!("`{file}` 从第 {line} 行起不是 UTF-8；请存为 UTF-8"),
        ))
    })?;
    let body = frontmatter::split(&text).map_or(text.as_str(), |parts| parts.body);
    Ok(body.trim().into())
}

/// Reads a file; checks it against the approved files, if any.
fn bytes_of(
    skill: &Skill,
    approved: Option<&FileSet>,
    (path, largest): (&str, u64),
) -> Result<Vec<u8>, ToolError> {
    let bytes = resource::read(&skill.folder, path, largest)
        .map_err(|error| ToolError::failed(error.text().clone()))?;
    let Some(approved) = approved else { return Ok(bytes) };
    let parts = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
    let plain: Vec<String> = parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    // The file may have changed since the approval check.
    match approved.files.get(&plain.join("/")).is_some_and(|file| file.digest == sha256(&bytes)) {
        true => Ok(bytes),
        false => Err(ToolError::failed(LocalizedText::new(
            format!("`{path}` is not what was approved; see `toolhub skills show {}`", skill.name),
            format!("`{path}` 与批准时不同；见 `toolhub skills show {}`", skill.name),
        ))),
    }
}

/// Returns the output of an activation.
pub(crate) fn activation_output(
    registry: &SkillRegistry,
    known: &RegisteredSkill,
    approved: Option<&FileSet>,
) -> Result<ToolOutput, ToolError> {
    let skill = &known.skill;
    let text = match approved {
        None => instructions(registry, skill)?,
        Some(_) => body_of(skill, approved)?,
    };
    let mut text = text.to_string();
    if text.is_empty() {
        text.push_str(&skill.description);
    }
    let files = files(&skill.folder);
    if !files.is_empty() {
        text.push_str("\n\nFiles of this skill, to be read with `file` when they are needed:\n");
        for file in files.iter().take(MAX_NAMED_FILES) {
            let _ = writeln!(text, "- {file}");
        }
        if files.len() > MAX_NAMED_FILES {
            let _ = writeln!(text, "- and {} more", files.len() - MAX_NAMED_FILES);
        }
    }
    if !known.tool_names.is_empty() {
        let _ = write!(text, "\n\nTools of this skill: {}", known.tool_names.join(", "));
    }
    Ok(ToolOutput::text(text.trim_end()))
}

/// Returns the files beside a `SKILL.md`, within limits and without symbolic links.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((folder, inside, depth)) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().take(1_000) {
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
            if name.starts_with('.') || ["node_modules", "__pycache__"].contains(&name.as_str()) {
                continue;
            }
            let path = if inside.is_empty() { name.clone() } else { format!("{inside}/{name}") };
            if kind.is_dir() && depth < 4 {
                waiting.push((entry.path(), path, depth + 1));
            } else if kind.is_file() && !(depth == 0 && name.eq_ignore_ascii_case("skill.md")) {
                found.push(path);
            }
        }
        if found.len() > 10 * MAX_NAMED_FILES {
            break;
        }
    }
    found.sort();
    found
}

/// Returns a file of a skill as output.
pub(crate) fn file(skill: &Skill, path: &str, approved: Option<&FileSet>) -> Result<ToolOutput, ToolError> {
    Ok(as_output(path, bytes_of(skill, approved, (path, MAX_FILE_BYTES))?))
}

/// Converts bytes to an output: text if they are UTF-8, an image by MIME type, otherwise a resource.
pub(crate) fn as_output(path: &str, bytes: Vec<u8>) -> ToolOutput {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return ToolOutput::text(text),
        Err(error) => error.into_bytes(),
    };
    let (mime, data) = (resource::mime_of(path), STANDARD.encode(&bytes));
    let block = match mime.starts_with("image/") {
        true => json!({"type": "image", "mimeType": mime, "data": data}),
        false => {
            json!({"type": "resource", "resource": {"uri": format!("skill-file:{path}"), "mimeType": mime, "blob": data}})
        }
    };
    let output = RawJson::from(json!({"content": [block]}));
    ToolOutput::from_raw(output).unwrap_or_else(|| ToolOutput::text(""))
}
