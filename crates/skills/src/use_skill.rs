//! The tool `use_skill`: returns the instructions of a skill, and single files of it.

use std::fmt::Write as _;
use std::path::{Component, Path};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use toolhub_core::lang::LocalizedText;
use toolhub_core::shell;
use toolhub_core::{RawJson, ToolError, ToolOutput, hex};

use crate::file_set::{FileSet, Stamp};
use crate::frontmatter;
use crate::registry::{RegisteredSkill, SkillRegistry};
use crate::skill::Skill;
use crate::skill_file;

/// Maximum size of the instructions, in bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// Maximum size of a file that is returned to a model, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of files that are listed with the instructions.
const MAX_NAMED_FILES: usize = 100;

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
    let bytes = bytes_of(skill, approved, &name, MAX_MANIFEST_BYTES)?;
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
    path: &str,
    largest: u64,
) -> Result<Vec<u8>, ToolError> {
    let bytes = skill_file::read(&skill.folder, path, largest)
        .map_err(|error| ToolError::failed(error.text().clone()))?;
    let Some(approved) = approved else { return Ok(bytes) };
    let parts = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
    let plain: Vec<String> = parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    // The file may have changed since the approval check.
    match approved.files.get(&plain.join("/")).is_some_and(|file| file.digest == hex::sha256(&bytes)) {
        true => Ok(bytes),
        false => Err(ToolError::failed(LocalizedText::new(
            format!(
                "`{path}` is not what was approved; see `toolhub skills show {}`",
                shell::shell_quote(&skill.name)
            ),
            format!("`{path}` 与批准时不同；见 `toolhub skills show {}`", shell::shell_quote(&skill.name)),
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
    Ok(as_output(path, bytes_of(skill, approved, path, MAX_FILE_BYTES)?))
}

/// Converts bytes to an output: text if they are UTF-8, an image by MIME type, otherwise a resource.
pub(crate) fn as_output(path: &str, bytes: Vec<u8>) -> ToolOutput {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return ToolOutput::text(text),
        Err(error) => error.into_bytes(),
    };
    let (mime, data) = (skill_file::mime_of(path), STANDARD.encode(&bytes));
    let block = match mime.starts_with("image/") {
        true => json!({"type": "image", "mimeType": mime, "data": data}),
        false => {
            json!({"type": "resource", "resource": {"uri": format!("skill-file:{path}"), "mimeType": mime, "blob": data}})
        }
    };
    let output = RawJson::from(json!({"content": [block]}));
    ToolOutput::from_raw(output).unwrap_or_else(|| ToolOutput::text(""))
}
