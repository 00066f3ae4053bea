//! The two languages people are spoken to in; who says what is left to the types that implement [`Say`].

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
    /// The text of this language.
    pub fn pick<T>(self, en: T, zh: T) -> T {
        match self {
            Self::En => en,
            Self::Zh => zh,
        }
    }

    /// The language that a locale name such as `zh_CN.UTF-8` asks for.
    pub fn from_locale(locale: &str) -> Self {
        if locale.to_ascii_lowercase().starts_with("zh") { Self::Zh } else { Self::En }
    }
}

impl FromStr for Lang {
    type Err = Text;

    fn from_str(text: &str) -> Result<Self, Text> {
        // `zh-CN`, `zh_TW.UTF-8` and `ZH` are what people have at hand.
        let tag = text.to_ascii_lowercase();
        match tag.split(['-', '_', '.']).next() {
            Some("en") => Ok(Self::En),
            Some("zh") => Ok(Self::Zh),
            _ => Err(Text::new(
                format!("unknown language `{text}`: use `en` or `zh`"),
                format!("未知语言 `{text}`：请用 `en` 或 `zh`"),
            )),
        }
    }
}

/// Something that can be told to a person or a model in either language.
pub trait Say {
    /// The text in `lang`.
    fn say(&self, lang: Lang) -> String;
}

/// A text that carries both languages with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Text {
    en: String,
    zh: String,
}

impl Text {
    /// One text, said twice.
    pub fn new(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self { en: en.into(), zh: zh.into() }
    }
}

impl Say for Text {
    fn say(&self, lang: Lang) -> String {
        lang.pick(&self.en, &self.zh).clone()
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.en)
    }
}

/// A text may be an error, so that the code that shows it chooses the language.
impl std::error::Error for Text {}

/// A text that is the same in both languages, such as what another program said.
impl From<String> for Text {
    fn from(text: String) -> Self {
        Self { zh: text.clone(), en: text }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}
