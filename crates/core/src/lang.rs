//! The two languages of messages. Types that implement [`Localize`] provide the texts.

use std::str::FromStr;

/// A language for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

impl Lang {
    /// Selects the text of this language.
    pub fn choose<T>(self, en: T, zh: T) -> T {
        match self {
            Self::En => en,
            Self::Zh => zh,
        }
    }

    /// The language of a locale name such as `zh_CN.UTF-8`.
    pub fn from_locale(locale: &str) -> Self {
        if locale.to_ascii_lowercase().starts_with("zh") { Self::Zh } else { Self::En }
    }
}

impl FromStr for Lang {
    type Err = LocalizedText;

    fn from_str(text: &str) -> Result<Self, LocalizedText> {
        // Accepts common spellings such as `zh-CN`, `zh_TW.UTF-8` and `ZH`.
        let tag = text.to_ascii_lowercase();
        match tag.split(['-', '_', '.']).next() {
            Some("en") => Ok(Self::En),
            Some("zh") => Ok(Self::Zh),
            _ => Err(LocalizedText::new(
                format!("unknown language `{text}`: use `en` or `zh`"),
                format!("未知语言 `{text}`：请用 `en` 或 `zh`"),
            )),
        }
    }
}

/// A message for a person or a model, available in both languages.
pub trait Localize {
    /// The text in `lang`.
    fn localize(&self, lang: Lang) -> String;
}

/// A text in both languages.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LocalizedText {
    en: String,
    zh: String,
}

impl LocalizedText {
    /// Creates a text from its English and its Chinese version.
    pub fn new(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self { en: en.into(), zh: zh.into() }
    }
}

impl Localize for LocalizedText {
    fn localize(&self, lang: Lang) -> String {
        lang.choose(&self.en, &self.zh).clone()
    }
}

impl std::fmt::Display for LocalizedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.en)
    }
}

/// A text can be used as an error, so that the code that displays it chooses the language.
impl std::error::Error for LocalizedText {}

/// A text that is equal in both languages, such as the output of another program.
impl From<String> for LocalizedText {
    fn from(text: String) -> Self {
        Self { zh: text.clone(), en: text }
    }
}

impl From<&str> for LocalizedText {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}
