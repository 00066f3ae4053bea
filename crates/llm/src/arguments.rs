//! Parses the arguments of a native tool call, with repair; otherwise returns an error for the model.

use serde_json::Value;
use toolhub_core::RawJson;
use toolhub_core::json::too_deep;
use toolhub_core::lang::LocalizedText;

use crate::repair::{Ending, repair_json};

/// Parsed arguments.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// The object, as written by the model.
    pub(crate) object: RawJson,
    /// Notes on the repairs.
    pub(crate) repaired: Vec<LocalizedText>,
}

/// Parses the arguments of a call of `tool`; the error explains to the model how to write them.
pub(crate) fn read_arguments(tool: &str, text: &str) -> Result<Arguments, LocalizedText> {
    let text = text.trim();
    // Models often omit the arguments of a tool without parameters.
    if text.is_empty() || text == "null" {
        return Ok(Arguments { object: RawJson::empty_object(), repaired: Vec::new() });
    }
    if too_deep(text).is_some() {
        return Err(unreadable(tool, "they are nested too deeply", "嵌套太深"));
    }
    match RawJson::parse(text) {
        Ok(object) if object.is_object() => Ok(Arguments { object, repaired: Vec::new() }),
        Ok(other) => match other.value() {
            // Some endpoints encode the object twice.
            Value::String(inner) if inner.trim_start().starts_with('{') => {
                let mut read = read_arguments(tool, &inner)?;
                read.repaired.push(LocalizedText::new(
                    "the arguments were JSON within a text",
                    "参数是写在文本里的 JSON",
                ));
                Ok(read)
            }
            _ => Err(unreadable(tool, "they are no object", "它们不是对象")),
        },
        Err(error) => {
            repair_arguments(text).ok_or_else(|| unreadable(tool, &error.to_string(), &error.to_string()))
        }
    }
}

/// Repairs arguments that are invalid JSON; `None` if they are truncated or ambiguous.
fn repair_arguments(text: &str) -> Option<Arguments> {
    let repaired = repair_json(text)?;
    let is_complete =
        repaired.json.is_object() && repaired.ending != Ending::CutInside && !repaired.placeholder;
    is_complete.then(|| Arguments { object: repaired.json, repaired: repaired.repairs.texts() })
}

fn unreadable(tool: &str, en: &str, zh: &str) -> LocalizedText {
    LocalizedText::new(
        format!(
            "the arguments of your call of `{tool}` cannot be read: {en}; call it again with one JSON object"
        ),
        format!("你对 `{tool}` 的调用参数无法读取：{zh}；请用一个 JSON 对象重新调用"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_valid_arguments_verbatim() {
        let check = |text: &str, expect: Result<&str, &str>| {
            let read = read_arguments("t", text);
            match (&read, expect) {
                (Ok(read), Ok(expect)) => assert_eq!(read.object.get(), expect, "{text}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
                _ => panic!("{text}: {read:?}"),
            }
        };
        let digits = "{\"n\": 1234567890123456789012345678901234567890}";
        check(digits, Ok(digits));
        check("", Ok("{}"));
        check(" null ", Ok("{}"));
        check("\"{\\\"a\\\": 1e400}\"", Ok("{\"a\": 1e400}"));
        check("[1]", Err("no object"));
        check("{\"a\": ", Err("EOF"));
        check(&"[".repeat(200), Err("deep"));
    }
}
