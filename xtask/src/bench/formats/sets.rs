//! The sets of texts: their files, the expected calls, and the figures of other parsers.
use std::{
    collections::HashMap,
    fs::File,
    io::{BufRead as _, BufReader, ErrorKind, Read},
    path::Path,
    sync::Arc,
};

use anyhow::Result;
use flate2::read::GzDecoder;
use serde_json::Value;

use super::judge::Expect;

/// A text and its expected calls.
pub(super) struct Sample {
    pub(super) text: String,
    pub(super) tools: Option<Arc<Value>>,
    pub(super) expect: Expect,
    pub(super) groups: Vec<String>,
    /// Whether it counts in the total of the set.
    pub(super) counts: bool,
}

pub(super) struct Set {
    pub(super) name: &'static str,
    /// Returns `None` if the set is missing.
    pub(super) load: fn(&Path) -> Result<Option<Vec<Sample>>>,
}

/// Figures of other parsers on the same texts.
pub(super) const BASELINES: &[(&str, &str)] = &[
    ("real <tool_call> outputs", "strict reader 60.0 %, tolerant reader 77.7 %"),
    ("all kinds", "jsonrepair-rs 0.2.6: 88.5 %"),
    ("malformed hermes", "tool-parser 1.10: 27 %"),
];

pub(super) fn all() -> [Set; 3] {
    [
        Set { name: "rendered formats", load: rendered },
        Set { name: "malformed JSON", load: malformed },
        Set { name: "outputs of models", load: outputs },
    ]
}

fn rendered(folder: &Path) -> Result<Option<Vec<Sample>>> {
    let Some(lines) = lines(&folder.join("rendered_formats.jsonl"))? else { return Ok(None) };
    let sample = |line: Value| {
        let (format, variant) = (text(&line["format"]), text(&line["variant"]));
        let mut groups = vec![format!("format {format}")];
        if !matches!(variant.as_str(), "clean" | "no_call") {
            groups.push(format!("malformed or surrounded: {variant}"));
            if format == "hermes" && variant != "text_before" {
                groups.push("malformed hermes".to_owned());
            }
        }
        Sample {
            text: text(&line["text"]),
            tools: None,
            expect: Expect::Exactly(line["calls"].clone()),
            groups,
            counts: true,
        }
    };
    Ok(Some(lines.into_iter().map(sample).collect()))
}

fn malformed(folder: &Path) -> Result<Option<Vec<Sample>>> {
    let Some(lines) = lines(&folder.join("repair_cases.jsonl"))? else { return Ok(None) };
    let sample = |line: Value| {
        let expect = if line["gold"].is_null() {
            Expect::Truncated { name: text(&line["name"]), argument: text(&line["first_arg"]) }
        } else {
            let gold = &line["gold"];
            Expect::Exactly(serde_json::json!([{"name": gold["name"], "arguments": gold["arguments"]}]))
        };
        let groups = vec![text(&line["kind"]), "all kinds".to_owned()];
        Sample { text: text(&line["text"]), tools: None, expect, groups, counts: true }
    };
    Ok(Some(lines.into_iter().map(sample).collect()))
}

fn outputs(folder: &Path) -> Result<Option<Vec<Sample>>> {
    let (Some(tasks), Some(lines)) =
        (lines(&folder.join("tasks.jsonl.gz"))?, lines(&folder.join("model_outputs.jsonl.gz"))?)
    else {
        return Ok(None);
    };
    let tools: HashMap<String, Arc<Value>> =
        tasks.into_iter().map(|task| (text(&task["task"]), Arc::new(task["tools"].clone()))).collect();
    let sample = |line: Value| {
        let family = text(&line["family"]);
        let called = line["expected"].as_array().is_some_and(|calls| !calls.is_empty());
        let mut groups = Vec::new();
        if called {
            groups.push(format!("family {family}"));
            if family.starts_with("hermes") {
                groups.push("real <tool_call> outputs".to_owned());
            }
        } else if family == "text" {
            // Plain text for a task without a call: any parsed call is a false positive.
            groups.push("no call wanted, and none in the text".to_owned());
        }
        Sample {
            text: text(&line["text"]),
            tools: tools.get(&text(&line["task"])).cloned(),
            expect: Expect::OneOfMany(line["expected"].clone()),
            groups,
            counts: called,
        }
    };
    Ok(Some(lines.into_iter().map(sample).collect()))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The lines of a file as JSON; `None` if the file does not exist.
fn lines(path: &Path) -> Result<Option<Vec<Value>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    let reader: Box<dyn Read> = if packed { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
    let mut values = Vec::new();
    for line in BufReader::new(reader).lines() {
        let line = line?;
        if !line.trim().is_empty() {
            values.push(serde_json::from_str(&line)?);
        }
    }
    Ok(Some(values))
}
