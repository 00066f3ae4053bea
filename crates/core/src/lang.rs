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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "en" => Ok(Self::En),
            "zh" => Ok(Self::Zh),
            other => Err(format!("unknown language `{other}`: use `en` or `zh`")),
        }
    }
}

/// Something that can be told to a person or a model in either language.
pub trait Say {
    /// The text in `lang`.
    fn say(&self, lang: Lang) -> String;
}

/// A text that carries both languages with it.
#[derive(Debug, Clone, PartialEq, Eq)]
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
