//! Search results: parsed from a service's JSON, formatted as text and as an object.

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde::Serialize;
use serde_json::Value;
use toolhub_core::{RawJson, RawObject, ToolError, ToolOutput};

use super::error::SearchError;
use super::plain::plain;
use super::provider::SearchProvider;
use super::search_query::SearchQuery;
use super::setup::Target;

/// A search result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Hit {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) published: Option<String>,
}

/// The field names of a service; `title` and `url` are the same for all.
pub(super) struct Fields {
    pub(super) snippet: &'static str,
    /// The first existing field is used.
    pub(super) published: &'static [&'static str],
}

/// Parses a list of results. Skips results without a URL; other missing fields are empty.
pub(super) fn hits(list: &[Value], fields: &Fields) -> Vec<Hit> {
    let hit = |item: &Value| {
        let text = |name: &str| item.get(name).and_then(Value::as_str).map(plain).unwrap_or_default();
        let url = item.get("url").and_then(Value::as_str).map(str::trim).filter(|url| !url.is_empty())?;
        // Removes control characters, which are invalid in URLs and could manipulate a terminal.
        let url: String = url.chars().filter(|c| !c.is_control()).collect();
        let title = Some(text("title")).filter(|title| !title.is_empty()).unwrap_or_else(|| url.clone());
        let published = fields.published.iter().map(|name| text(name)).find(|date| !date.is_empty());
        Some(Hit { title, snippet: text(fields.snippet), published, url })
    };
    list.iter().filter_map(hit).collect()
}

/// A response that is not a list of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ParseError {
    /// Not JSON; contains the reason.
    NotJson(String),
    /// A member is missing.
    MissingField(&'static str),
    /// The service got no response from these search engines.
    EnginesUnresponsive(Vec<String>),
}

impl ParseError {
    /// Parses the response as JSON.
    pub(super) fn parse(body: &[u8]) -> Result<Value, Self> {
        serde_json::from_slice(body).map_err(|error| Self::NotJson(error.to_string()))
    }

    /// Converts it to a failure; an HTML page gets a message of its own.
    pub(super) fn at(self, target: &Target, headers: &HeaderMap) -> SearchError {
        let (provider, location) = (target.provider, target.location());
        match self {
            Self::NotJson(_) if is_page(headers) => SearchError::WebPage { provider, location },
            Self::NotJson(why) => SearchError::Unreadable { provider, location, why },
            Self::MissingField(part) => {
                SearchError::Unreadable { provider, location, why: format!("no `{part}`") }
            }
            Self::EnginesUnresponsive(engines) => SearchError::EnginesUnresponsive { location, engines },
        }
    }
}

fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with("text/html"))
}

/// Formats the results as text and as an object.
pub(super) fn describe(
    provider: SearchProvider,
    search_query: &SearchQuery,
    hits: Vec<Hit>,
) -> Result<ToolOutput, ToolError> {
    let found = RawObject::default()
        .with("provider", provider.id())
        .with("query", search_query.query.as_str())
        .with("results", RawJson::of(&hits));
    let text = if hits.is_empty() {
        format!("nothing was found for `{}`", search_query.query)
    } else {
        let texts = hits.into_iter().enumerate().map(|(index, hit)| hit.describe(index + 1));
        texts.collect::<Vec<_>>().join("\n\n")
    };
    let block = RawObject::default().with("type", "text").with("text", text);
    let output = RawObject::default().with("content", RawJson::of(&[block])).with("structuredContent", found);
    ToolOutput::from_raw(output.into_raw()).ok_or(ToolError::Internal)
}

impl Hit {
    fn describe(self, number: usize) -> String {
        let Self { title, url, snippet, published } = self;
        let mut text = format!("{number}. {title}\n   {url}");
        if let Some(published) = published {
            text.push_str(&format!("\n   [{published}]"));
        }
        if !snippet.is_empty() {
            text.push_str(&format!("\n   {snippet}"));
        }
        text
    }
}
