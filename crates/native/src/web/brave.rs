//! Brave Search: `GET /res/v1/web/search`. See <https://api-dashboard.search.brave.com/api-reference/web/search/get>.

use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderMap};
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use super::response::{Fields, Hit, ParseError, hits};
use super::search_query::{Freshness, SearchQuery};
use super::setup::Target;

const FIELDS: Fields = Fields { snippet: "description", published: &["page_age", "age"] };

pub(super) fn request(client: &Client, target: &Target, search_query: &SearchQuery) -> RequestBuilder {
    let mut url = target.url.clone();
    {
        let mut pairs = url.query_pairs_mut();
        pairs.append_pair("q", &search_query.query).append_pair("count", &search_query.count.to_string());
        pairs.append_pair("result_filter", "web");
        if let Some(language) = &search_query.language {
            pairs.append_pair("search_lang", language.brave());
        }
        if let Some(freshness) = search_query.freshness {
            let code = match freshness {
                Freshness::Day => "pd",
                Freshness::Week => "pw",
                Freshness::Month => "pm",
                Freshness::Year => "py",
            };
            pairs.append_pair("freshness", code);
        }
    }
    let request = client.get(url).header(ACCEPT, "application/json");
    match &target.key {
        Some(key) => request.header("X-Subscription-Token", key.header()),
        None => request,
    }
}

pub(super) fn read(body: &[u8]) -> Result<Vec<Hit>, ParseError> {
    let response = ParseError::parse(body)?;
    match response.get("web").map(|web| web.get("results").and_then(Value::as_array)) {
        Some(Some(results)) => Ok(hits(results, &FIELDS)),
        Some(None) => Err(ParseError::MissingField("web.results")),
        // `web` is omitted if nothing was found.
        None if response.get("type").is_some_and(|kind| kind == "search") => Ok(Vec::new()),
        None => Err(ParseError::MissingField("web")),
    }
}

/// Whether the key was rejected: an invalid key yields 422, like invalid arguments.
pub(super) fn rejects_key(body_json: &Value) -> bool {
    let code = body_json.pointer("/error/code").and_then(Value::as_str);
    code.is_some_and(|code| code.starts_with("SUBSCRIPTION_TOKEN"))
}

/// The time until the rate limit resets: the headers list several limits in order, of which the exhausted one counts.
pub(super) fn wait(headers: &HeaderMap) -> Option<Duration> {
    let numbers = |name: &str| -> Vec<u64> {
        let text = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        text.split(',').filter_map(|number| number.trim().parse().ok()).collect()
    };
    let remaining = numbers("x-ratelimit-remaining");
    let resets = numbers("x-ratelimit-reset");
    let used_up =
        remaining.iter().zip(&resets).filter(|(remaining, _)| **remaining == 0).map(|(_, reset)| *reset);
    used_up.max().map(Duration::from_secs)
}
