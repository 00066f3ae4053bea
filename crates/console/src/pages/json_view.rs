//! Values and results for people. All of it may be hostile: it is shown as text, apart from raster images.

use maud::{Markup, html};
use toolhub_core::RawJson;
use toolhub_core::json::{pretty_json, too_deep};
use toolhub_engine::definition_scan::escape_invisible;

use super::layout::PageFrame;

/// The types of images that are shown. Scalable images may contain scripts.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Longer texts are shown in part.
const MAX_TEXT_BYTES: usize = 200_000;

/// JSON text for people.
pub(crate) struct Indented {
    /// The text, or its beginning.
    pub(crate) text: String,
    /// Whether it is the whole text.
    pub(crate) is_complete: bool,
}

/// Indents a value. Invisible characters are written as escapes, so that the text is what it looks like. Very deep values are
/// not indented: the indentation would be much longer than the value.
pub(crate) fn indented(value: &RawJson) -> Indented {
    let source = value.get();
    let source = shortened(source);
    let is_complete = source.len() == value.get().len();
    let text = match is_complete && too_deep(source).is_none() {
        true => pretty_json(source),
        false => source.to_owned(),
    };
    Indented { text: escape_invisible(&text).into_owned(), is_complete }
}

/// A JSON value, indented.
pub(crate) fn json(value: &RawJson, label: &str) -> Markup {
    let Indented { text, is_complete } = indented(value);
    html! {
        pre.json tabindex="0" role="region" aria-label=(label) { (text) @if !is_complete { " …" } }
    }
}

/// A text as it is, apart from invisible characters.
pub(crate) fn text(text: &str, label: &str) -> Markup {
    let part = shortened(text);
    html! {
        pre tabindex="0" role="region" aria-label=(label) {
            (escape_invisible(part)) @if part.len() < text.len() { " …" }
        }
    }
}

/// The beginning of a long text.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}

/// The result of a call as an MCP client receives it: its content by type, and the whole as JSON.
pub(crate) fn result(value: &RawJson, frame: &PageFrame<'_>) -> Markup {
    let members = value.object().unwrap_or_default();
    let content: Vec<RawJson> = members.get("content").and_then(|all| all.decode().ok()).unwrap_or_default();
    let label = frame.text("Result", "结果");
    html! {
        @for block in &content { (content_block(block, frame)) }
        @if let Some(structured) = members.get("structuredContent") {
            (json(structured, frame.text("Structured content", "结构化内容")))
        }
        @if content.is_empty() && !members.contains("structuredContent") {
            (json(value, label))
        } @else {
            details {
                summary { (frame.text("The message as JSON", "以 JSON 显示消息")) }
                (json(value, label))
            }
        }
        @if value.get().len() > MAX_TEXT_BYTES {
            p.muted { (frame.text("The beginning is shown; the API returns all of it.", "仅显示开头；完整内容可由 API 获取。")) }
        }
    }
}

fn content_block(block: &RawJson, frame: &PageFrame<'_>) -> Markup {
    let members = block.object().unwrap_or_default();
    let text = |key: &str| members.get(key).and_then(RawJson::text).map(|text| text.into_owned());
    let kind = text("type").unwrap_or_default();
    let image = || {
        let (mime, data) = (text("mimeType")?, text("data")?);
        let is_base64 =
            data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
        (IMAGE_TYPES.contains(&mime.as_str()) && is_base64).then(|| format!("data:{mime};base64,{data}"))
    };
    match (kind.as_str(), text("text"), image()) {
        ("text", Some(text), _) => html! {
            pre.result tabindex="0" role="region" aria-label=(frame.text("Text", "文本")) { (escape_invisible(shortened(&text))) }
        },
        ("image", _, Some(source)) => html! {
            img.result src=(source) alt=(frame.text("Image in the result", "结果中的图像"));
        },
        _ => json(block, frame.text("Part of the result", "结果的一部分")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_and_long_values_are_shown_in_bounded_size() {
        let deep = RawJson::parse(format!("{}{}", "[".repeat(20_000), "]".repeat(20_000))).unwrap();
        let shown = indented(&deep);
        assert!(shown.is_complete && shown.text.len() == 40_000);
        let long = RawJson::parse(format!("\"{}\"", "x".repeat(2 * MAX_TEXT_BYTES))).unwrap();
        let shown = indented(&long);
        assert!(!shown.is_complete && shown.text.len() <= MAX_TEXT_BYTES);
        let odd = RawJson::parse("{\"a\u{202e}b\": 1}".to_owned()).unwrap();
        assert!(!indented(&odd).text.contains('\u{202e}'));
    }
}
