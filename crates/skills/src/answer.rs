//! Converts the result of a finished script into a tool output (JSON or text) or an error with the reason.

use serde_json::Value;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::skill_jobs::SkillExit;
use toolhub_core::text::truncate;
use toolhub_core::{RawJson, ToolError, ToolOutput};

use crate::declarations::Runner;

/// Number of trailing stderr lines included in an error.
const STDERR_TAIL_LINES: usize = 8;
/// Maximum length of each of those lines, in characters.
const MAX_LINE_CHARS: usize = 300;

/// Returns the output of a finished script, or the reason for its failure.
pub(crate) fn answer(exit: &SkillExit, runner: &Runner) -> Result<ToolOutput, ToolError> {
    // A successful exit counts as success even if the sandbox denied an operation: the script handled the denial.
    if !exit.success {
        return Err(failed(exit));
    }
    let Ok(text) = String::from_utf8(exit.output.clone()) else {
        return Err(ToolError::failed(LocalizedText::new(
            "the script's answer is not UTF-8; let it write text or JSON",
            "脚本的输出不是 UTF-8；请输出文本或 JSON",
        )));
    };
    match runner {
        Runner::Script | Runner::Calling => Ok(output(&text)),
        Runner::PythonClass(_) => from_runner(&text, exit),
    }
}

/// JSON becomes structured output, other text becomes text; a value already in MCP result form is passed through.
fn output(text: &str) -> ToolOutput {
    let trimmed = text.trim();
    let Ok(raw) = RawJson::parse(trimmed) else { return ToolOutput::text(text.trim_end()) };
    let is_blocks = |raw: &RawJson| {
        let content = raw.object().and_then(|members| members.get("content").cloned());
        let blocks = content.and_then(|content| content.decode::<Vec<Value>>().ok()).unwrap_or_default();
        !blocks.is_empty() && blocks.iter().all(|block| block.get("type").is_some_and(Value::is_string))
    };
    if is_blocks(&raw) {
        return ToolOutput::from_raw(raw).unwrap_or_else(|| ToolOutput::text(trimmed));
    }
    match raw.decode::<String>() {
        Ok(words) => ToolOutput::text(words),
        Err(_) => ToolOutput::json(raw),
    }
}

/// Decodes the JSON frame printed by the runner of Python classes.
fn from_runner(text: &str, exit: &SkillExit) -> Result<ToolOutput, ToolError> {
    let frame = RawJson::parse(text.trim()).ok().and_then(|raw| raw.object());
    let Some(frame) = frame else { return Err(failed(exit)) };
    if let Some(error) = frame.get("error").and_then(|error| error.decode::<String>().ok()) {
        let stopped = exit.stopped.as_ref();
        let message = |lang: Lang| match stopped {
            Some(stop) => format!("{error} ({})", stop.localize(lang)),
            None => error.clone(),
        };
        return Err(ToolError::failed(LocalizedText::new(message(Lang::En), message(Lang::Zh))));
    }
    Ok(match frame.get("result") {
        None => ToolOutput::text(""),
        Some(raw) if raw.get() == "null" => ToolOutput::text("done"),
        Some(raw) => output(raw.get()),
    })
}

fn failed(exit: &SkillExit) -> ToolError {
    let words = stderr_tail(&exit.stderr_text);
    let localize = |lang: Lang| {
        let why = exit.stopped.as_ref().unwrap_or(&exit.exit_reason).localize(lang);
        let mut text = lang.choose(format!("the script failed: {why}"), format!("脚本失败：{why}"));
        if !words.is_empty() {
            text += lang.choose("\nlast stderr output:", "\nstderr 的最后输出：");
            words.iter().for_each(|line| text += &format!("\n  {line}"));
        }
        text
    };
    ToolError::failed(LocalizedText::new(localize(Lang::En), localize(Lang::Zh)))
}

fn stderr_tail(stderr_text: &str) -> Vec<String> {
    let lines: Vec<&str> = stderr_text.lines().filter(|line| !line.trim().is_empty()).collect();
    let start = lines.len().saturating_sub(STDERR_TAIL_LINES);
    let last = lines.iter().skip(start);
    last.map(|line| {
        let line: String = line.chars().filter(|c| !c.is_control() || *c == '\t').collect();
        truncate(&line, MAX_LINE_CHARS).unwrap_or(line)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_script_output_by_shape() {
        let check = |input: &str, expect: &str| assert_eq!(output(input).raw().get(), expect, "{input}");
        check("hello\n", r#"{"content":[{"type":"text","text":"hello"}]}"#);
        check(
            r#"{"n":1}"#,
            r#"{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}"#,
        );
        check("\"quoted\"", r#"{"content":[{"type":"text","text":"quoted"}]}"#);
        check(r#"{"content":[{"type":"text","text":"x"}]}"#, r#"{"content":[{"type":"text","text":"x"}]}"#);
        check(
            r#"{"content":"a page"}"#,
            r#"{"content":[{"type":"text","text":"{\"content\":\"a page\"}"}],"structuredContent":{"content":"a page"}}"#,
        );
        check(
            "123456789012345678901234567890",
            r#"{"content":[{"type":"text","text":"123456789012345678901234567890"}]}"#,
        );
    }
}
