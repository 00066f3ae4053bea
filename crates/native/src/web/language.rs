//! Language tags as given by callers, and as each service expects them.

/// A language tag: `zh`, `pt-BR`, `zh_Hant_TW`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Language {
    /// In lower case.
    primary: String,
    /// Script, region and further subtags, in lower case.
    rest: Vec<String>,
}

impl Language {
    /// Parses a tag; `None` if it is invalid.
    pub(super) fn parse(text: &str) -> Option<Self> {
        // Accepts a locale such as `zh_CN.UTF-8`.
        let tag = text.split('.').next()?.to_ascii_lowercase();
        let mut parts = tag.split(['-', '_']).map(str::to_owned);
        let primary = parts.next().filter(|first| (2..=3).contains(&first.len()))?;
        let rest: Vec<String> = parts.collect();
        let plain = |part: &String| part.chars().all(|c| c.is_ascii_alphanumeric());
        let fits = |part: &String| (2..=8).contains(&part.len()) && plain(part);
        (primary.chars().all(|c| c.is_ascii_alphabetic()) && rest.len() <= 3 && rest.iter().all(fits))
            .then_some(Self { primary, rest })
    }

    fn has(&self, part: &str) -> bool {
        self.rest.iter().any(|own| own == part)
    }

    fn is_traditional_chinese(&self) -> bool {
        ["hant", "tw", "hk", "mo"].iter().any(|part| self.has(part))
    }

    /// For SearXNG: two or three letters, optionally with a region, without script.
    pub(super) fn searxng(&self) -> String {
        let region = self.rest.iter().find(|part| part.len() == 2 && part.chars().all(char::is_alphabetic));
        match region {
            Some(region) => format!("{}-{}", self.primary, region.to_ascii_uppercase()),
            None if self.has("hans") => "zh-CN".to_owned(),
            None if self.has("hant") => "zh-TW".to_owned(),
            None => self.primary.clone(),
        }
    }

    /// For Brave, which only accepts a list of its own.
    pub(super) fn brave(&self) -> &str {
        match self.primary.as_str() {
            "zh" if self.is_traditional_chinese() => "zh-hant",
            "zh" => "zh-hans",
            "ja" => "jp",
            "no" | "nn" => "nb",
            "pt" if self.has("pt") => "pt-pt",
            "pt" => "pt-br",
            "en" if self.has("gb") => "en-gb",
            other => other,
        }
    }
}
