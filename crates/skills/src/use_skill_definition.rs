//! The definition of the tool `use_skill`, which lists the skills.

use std::fmt::Write as _;

use serde_json::json;
use toolhub_core::meta_keys::{BRIEF, SKILLS};
use toolhub_core::text::truncate;
use toolhub_core::{RawJson, RawObject, Source, Tool, ToolDefinition, USE_SKILL};

/// The capability tag; no call by capability requests it.
pub const TAG: &str = "skills";

/// Maximum length of a skill's description within the description of the tool, in characters.
const MAX_DESCRIPTION_CHARS: usize = 300;
/// Maximum length of the tool's description, in characters, beyond which only names are listed.
const MAX_DESCRIPTIONS_CHARS: usize = 8_000;
const INTRODUCTION: &str = "Loads the instructions of a skill, which tell how a kind of work is done here. Call it before such work, with the skill that fits, and follow what it says. `file` reads one of the skill's files instead.";

/// Builds the tool for these skills; `None` if there are none.
pub(crate) fn tool(offered: &[(String, &str)]) -> Option<Tool> {
    let definition = definition(offered)?;
    Some(Tool { tags: vec![TAG.to_owned()], ..Tool::new(Source::Skill, definition) })
}

/// Returns the skills, with descriptions, that a definition of the tool lists.
pub fn listed(definition: &ToolDefinition) -> Vec<(String, String)> {
    let meta = definition.raw().object().and_then(|members| members.get("_meta")?.object());
    let listed = meta.and_then(|meta| meta.get(SKILLS)?.decode::<Vec<RawJson>>().ok()).unwrap_or_default();
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
        let summary = truncate(&summary, MAX_DESCRIPTION_CHARS).unwrap_or(summary);
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
        "name": USE_SKILL,
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
        "_meta": {SKILLS: listed, BRIEF: INTRODUCTION},
    });
    ToolDefinition::parse(RawJson::from(definition)).ok()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
