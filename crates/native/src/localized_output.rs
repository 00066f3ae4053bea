//! Outputs of native tools in both languages: English text, with the Chinese text in `_meta`.

use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::{RawJson, RawObject, meta_keys};

/// A text block in English with the Chinese text in `_meta`, if it differs.
pub fn block(text: &LocalizedText) -> RawObject {
    let (en, zh) = (text.localize(Lang::En), text.localize(Lang::Zh));
    let meta = (en != zh).then(|| RawObject::default().with(meta_keys::CHINESE, zh));
    let block = RawObject::default().with("type", "text").with("text", en);
    meta.into_iter().fold(block, |block, meta| block.with("_meta", meta))
}

/// An output with one such block.
pub(crate) fn with_chinese(text: &LocalizedText) -> RawObject {
    RawObject::default().with("content", RawJson::of(&[block(text)]))
}

/// Notes in brackets, for the end of an output; `None` if there are no notes.
pub(crate) fn bracketed(notes: &[LocalizedText]) -> Option<LocalizedText> {
    let join = |lang: Lang, separator: &str| {
        let texts: Vec<String> = notes.iter().map(|note| note.localize(lang)).collect();
        format!("[{}]", texts.join(separator))
    };
    (!notes.is_empty()).then(|| LocalizedText::new(join(Lang::En, "; "), join(Lang::Zh, "；")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_notes_in_both_languages() {
        assert_eq!(bracketed(&[]), None);
        let notes = [LocalizedText::new("one", "一"), LocalizedText::new("two", "二")];
        assert_eq!(bracketed(&notes), Some(LocalizedText::new("[one; two]", "[一；二]")));
    }

    #[test]
    fn includes_chinese_text_only_if_it_differs() {
        let text = |text: &LocalizedText| block(text).into_raw().get().to_owned();
        assert_eq!(
            text(&LocalizedText::new("one", "一")),
            r#"{"type":"text","text":"one","_meta":{"toolhub/zh":"一"}}"#
        );
        assert_eq!(text(&LocalizedText::from("1")), r#"{"type":"text","text":"1"}"#);
    }
}
