//! A search query, independent of the service.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use toolhub_core::lang::LocalizedText;

use super::error::SearchError;
use super::language::Language;

/// Maximum length of a query: no service accepts more, and longer URLs may be rejected.
const MAX_QUERY: usize = 2_000;

/// The maximum age of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Freshness {
    /// A day.
    Day,
    /// A week.
    Week,
    /// A month.
    Month,
    /// A year.
    Year,
}

// The derived schema is a list of alternatives, which models handle worse than an enum.
impl JsonSchema for Freshness {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Freshness".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["day", "week", "month", "year"]})
    }
}

impl Freshness {
    /// The value for SearXNG and Tavily.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }
}

/// The arguments as given.
pub(super) struct SearchArguments {
    pub(super) query: String,
    pub(super) count: u8,
    pub(super) language: Option<String>,
    pub(super) freshness: Option<Freshness>,
}

/// The validated arguments.
#[derive(Debug, Clone)]
pub(super) struct SearchQuery {
    pub(super) query: String,
    pub(super) count: usize,
    pub(super) language: Option<Language>,
    pub(super) freshness: Option<Freshness>,
}

impl SearchQuery {
    pub(super) fn read(arguments: &SearchArguments) -> Result<Self, SearchError> {
        let query = arguments.query.trim();
        let wrong = |text: LocalizedText| Err(SearchError::InvalidArgument(text));
        if query.is_empty() {
            return wrong(LocalizedText::new(
                "`query` is empty: say what to search for",
                "`query` 为空：请写出要搜索的内容",
            ));
        }
        if query.len() > MAX_QUERY {
            let length = query.len();
            return wrong(LocalizedText::new(
                format!("`query` has {length} bytes, more than {MAX_QUERY}: search for a few words"),
                format!("`query` 有 {length} 字节，超过 {MAX_QUERY}：请只写几个关键词"),
            ));
        }
        let language = arguments.language.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let language = match language.map(|text| (text, Language::parse(text))) {
            Some((text, None)) => {
                let text: String = text.chars().take(40).collect();
                return wrong(LocalizedText::new(
                    format!("`language` is a code such as `zh`, `en` or `pt-BR`, not `{text}`"),
                    format!("`language` 应为 `zh`、`en`、`pt-BR` 这样的代码，而不是 `{text}`"),
                ));
            }
            Some((_, language)) => language,
            None => None,
        };
        Ok(Self {
            query: query.to_owned(),
            count: usize::from(arguments.count),
            language,
            freshness: arguments.freshness,
        })
    }
}
