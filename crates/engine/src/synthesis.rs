//! Merges several results. Pure and independent of completion order. Equal results become one; others are listed with
//! their sources.

use toolhub_core::lang::LocalizedText;
use toolhub_core::outcome::Synthesis;
use toolhub_core::text::truncate;
use toolhub_core::{RawJson, RawObject, Source, ToolName, ToolOutput, meta_keys};

/// Maximum number of results that a model merges.
const MAX_MODEL_RESULTS: usize = 3;
/// Maximum total characters that a model merges.
const MAX_MODEL_CHARS: usize = 2_000;
/// Maximum characters of one result in a merge without a model.
const MAX_SECTION_CHARS: usize = 300;
/// Relative tolerance for equal numbers.
const TOLERANCE: f64 = 1e-9;

/// One result.
#[derive(Debug, Clone)]
pub struct SourceResult {
    /// Its source.
    pub source: Source,
    /// The tool that returned it.
    pub tool: ToolName,
    /// The output.
    pub output: ToolOutput,
}

/// A merged result.
#[derive(Debug, Clone)]
pub struct MergedOutput {
    /// The merged output.
    pub output: ToolOutput,
    /// The complete output, if `output` is shortened.
    pub full_output: Option<ToolOutput>,
    /// Agreements and conflicts of the sources.
    pub synthesis: Synthesis,
}

/// The texts that a model may merge, each cut to the limit of its kind; `None` if a model should not merge them.
pub(crate) fn texts_for_model(parts: &[SourceResult], tags: &[String]) -> Option<Vec<(Source, String)>> {
    let texts: Vec<String> = parts.iter().map(text_of).collect();
    let length: usize = texts.iter().map(|text| text.chars().count()).sum();
    if parts.len() > MAX_MODEL_RESULTS || length > MAX_MODEL_CHARS || agreeing_index(&texts).is_some() {
        return None;
    }
    let has = |tag: &str| tags.iter().any(|tool_tag| tool_tag == tag);
    let limit = match parts.len() {
        _ if has("calculate") => 100,
        count if has("search") => {
            if count <= 2 {
                300
            } else {
                200
            }
        }
        _ if has("extract") => 300,
        _ => 250,
    };
    let cut_to = |text: String| truncate(&text, limit).unwrap_or(text);
    Some(parts.iter().map(|part| part.source.clone()).zip(texts.into_iter().map(cut_to)).collect())
}

/// Merges results in the given order. `merged_text` is the text that a model merged from them, if any.
pub fn merge(parts: &[SourceResult], merged_text: Option<&str>) -> MergedOutput {
    let texts: Vec<String> = parts.iter().map(text_of).collect();
    let sources = parts.iter().map(|part| part.source.to_string()).collect::<Vec<_>>().join(", ");
    let count = parts.len();
    if let Some(same) = agreeing_index(&texts) {
        let note = LocalizedText::new(
            format!("{count} sources agree: {sources}"),
            format!("{count} 个来源一致：{sources}"),
        );
        let synthesis = Synthesis { note, conflict: false };
        // The complete output of the first source, including blocks other than text.
        let output = parts.get(same).map_or_else(|| ToolOutput::text(""), |part| part.output.clone());
        return MergedOutput { output, full_output: None, synthesis };
    }
    let numbers = texts.iter().all(|text| number(text).is_some());
    let note = if numbers {
        let listed = parts
            .iter()
            .zip(&texts)
            .map(|(part, text)| format!("{}: {}", part.source, text.trim()))
            .collect::<Vec<_>>()
            .join(", ");
        LocalizedText::new(format!("the sources differ: {listed}"), format!("来源之间不一致：{listed}"))
    } else {
        LocalizedText::new(
            format!("merged from {count} sources: {sources}"),
            format!("合并自 {count} 个来源：{sources}"),
        )
    };
    let (visible_text, is_cut) = match merged_text {
        Some(merged_text) => (merged_text.trim().to_owned(), true),
        None => plain(parts, &texts),
    };
    let output = assemble(parts, &texts, visible_text);
    let full_output = is_cut.then(|| {
        let sections: Vec<String> =
            parts.iter().zip(&texts).map(|(part, text)| section(part, text)).collect();
        assemble(parts, &texts, sections.join("\n\n"))
    });
    MergedOutput { output, full_output, synthesis: Synthesis { note, conflict: numbers } }
}

/// The index of the result that represents all, if all agree.
fn agreeing_index(texts: &[String]) -> Option<usize> {
    let (first, others) = texts.split_first()?;
    let same = |other: &String| match (number(first), number(other)) {
        (Some(left), Some(right)) => {
            left == right || (left - right).abs() <= TOLERANCE * left.abs().max(right.abs())
        }
        _ => first.split_whitespace().eq(other.split_whitespace()),
    };
    others.iter().all(same).then_some(0)
}

/// Parses a text that is a single number, with or without thousands separators.
fn number(text: &str) -> Option<f64> {
    let text = text.trim().trim_start_matches('=').trim();
    let bare: String = text.chars().filter(|letter| !matches!(letter, ',' | '_')).collect();
    bare.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
        .then(|| bare.parse().ok())
        .flatten()
        .filter(|number: &f64| number.is_finite())
}

fn plain(parts: &[SourceResult], texts: &[String]) -> (String, bool) {
    let mut any_cut = false;
    let sections: Vec<String> = parts
        .iter()
        .zip(texts)
        .map(|(part, text)| {
            let short = truncate(text, MAX_SECTION_CHARS);
            any_cut |= short.is_some();
            section(part, short.as_deref().unwrap_or(text))
        })
        .collect();
    (sections.join("\n\n"), any_cut)
}

fn section(part: &SourceResult, text: &str) -> String {
    format!("[{}] {}", part.source, text.trim())
}

/// Output with the text first, then the other blocks of each result with their source; and all parts as structured
/// content.
fn assemble(parts: &[SourceResult], texts: &[String], merged_text: String) -> ToolOutput {
    let mut blocks = vec![RawObject::default().with("type", "text").with("text", merged_text).into_raw()];
    let mut listed = Vec::with_capacity(parts.len());
    for (part, text) in parts.iter().zip(texts) {
        let source = part.source.to_string();
        for block in part.output.blocks() {
            let Some(mut members) = block.object() else { continue };
            if members.get("type").is_some_and(|kind| kind.get() == "\"text\"") {
                continue;
            }
            let meta = members.get("_meta").and_then(RawJson::object).unwrap_or_default();
            members.set("_meta", meta.with(meta_keys::SOURCE, source.as_str()));
            blocks.push(members.into_raw());
        }
        let mut entry = RawObject::default()
            .with("source", source)
            .with("tool", part.tool.as_str())
            .with("text", text.as_str());
        if let Some(structured) = part.output.structured() {
            entry.set("structuredContent", structured.clone());
        }
        listed.push(entry);
    }
    let structured = RawObject::default().with("parts", RawJson::of(&listed));
    let members =
        RawObject::default().with("content", RawJson::of(&blocks)).with("structuredContent", structured);
    ToolOutput::from_raw(members.into_raw()).unwrap_or_else(|| ToolOutput::text(""))
}

/// The text of a result: its text blocks, or else its structured content.
fn text_of(part: &SourceResult) -> String {
    let (texts, _) = part.output.texts();
    if texts.is_empty() {
        return part.output.structured().map(|value| value.get().to_owned()).unwrap_or_default();
    }
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use toolhub_core::{Lang, Localize as _, ServerId};

    fn part(source: &str, text: &str) -> SourceResult {
        let source = Source::Server(ServerId::new(source));
        SourceResult { source, tool: ToolName::new("t"), output: ToolOutput::text(text) }
    }

    fn merged(texts: &[&str]) -> (String, String, bool) {
        let parts: Vec<SourceResult> =
            texts.iter().enumerate().map(|(index, text)| part(&format!("s{index}"), text)).collect();
        let synthesized = merge(&parts, None);
        let text = synthesized.output.texts().0.join("\n");
        (text, synthesized.synthesis.note.localize(Lang::En), synthesized.synthesis.conflict)
    }

    #[test]
    fn compares_numbers() {
        assert_eq!(
            merged(&["0.3", "0.30000000000000004"]),
            ("0.3".to_owned(), "2 sources agree: s0, s1".to_owned(), false)
        );
        assert_eq!(merged(&["1,000", "1000.0"]).1, "2 sources agree: s0, s1");
        let (text, note, conflict) = merged(&["0.3", "0.4"]);
        assert_eq!((text.as_str(), conflict), ("[s0] 0.3\n\n[s1] 0.4", true));
        assert_eq!(note, "the sources differ: s0: 0.3, s1: 0.4");
        assert!(!merged(&["3 apples", "4 pears"]).2);
    }

    #[test]
    fn labels_texts_with_source_and_keeps_full_output() {
        let long = "一句话。".repeat(200);
        let parts = [part("a", &long), part("b", "short")];
        let synthesized = merge(&parts, None);
        let text = synthesized.output.texts().0.join("");
        assert!(text.starts_with("[a] 一句话。") && text.ends_with("[b] short"), "{text}");
        assert!(text.chars().count() < 330, "{}", text.chars().count());
        let full_output = synthesized.full_output.unwrap().texts().0.join("");
        assert!(full_output.contains(&long));
        let structured = synthesized.output.structured().unwrap().value();
        assert_eq!(structured["parts"][0]["source"], "a");
        assert_eq!(structured["parts"][0]["text"], long);
    }

    #[test]
    fn keeps_non_text_content() {
        let image = r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}"#;
        let output = ToolOutput::from_raw(RawJson::parse(image).unwrap()).unwrap();
        let parts = [SourceResult { output, ..part("a", "") }, part("b", "a picture")];
        let blocks = merge(&parts, None).output.blocks();
        assert_eq!(blocks[1].value()["data"], "AA==");
        assert_eq!(blocks[1].value()["_meta"]["toolhub/source"], "a");
    }

    #[test]
    fn calls_model_only_for_differing_texts() {
        let tags = ["search".to_owned()];
        let long = "x".repeat(1_500);
        assert!(texts_for_model(&[part("a", "1"), part("b", "1")], &tags).is_none());
        assert!(texts_for_model(&[part("a", &long), part("b", &long)], &tags).is_none());
        let four = ["a", "b", "c", "d"].map(|source| part(source, source));
        assert!(texts_for_model(&four, &tags).is_none());
        let texts = texts_for_model(&[part("a", &long), part("b", "y")], &tags).unwrap();
        assert_eq!(texts[0].1.chars().count(), 300);
    }

    proptest! {
        #[test]
        fn keeps_words_of_arbitrary_texts(texts in proptest::collection::vec("\\PC{0,400}", 2..5)) {
            let parts: Vec<SourceResult> =
                texts.iter().enumerate().map(|(index, text)| part(&format!("s{index}"), text)).collect();
            let synthesized = merge(&parts, None);
            if agreeing_index(&texts).is_none() {
                let visible_text = synthesized.output.texts().0.join("\n");
                for part in &parts {
                    let named = format!("[{}]", part.source);
                    prop_assert!(visible_text.contains(&named));
                }
                let structured = synthesized.output.structured().unwrap().value();
                for (index, text) in texts.iter().enumerate() {
                    prop_assert_eq!(structured["parts"][index]["text"].as_str(), Some(text.as_str()));
                }
            }
        }
    }
}
