//! Tavily: `POST /search`. See <https://docs.tavily.com/documentation/api-reference/endpoint/search>. It has no
//! language parameter, but uses the language of the query.

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use super::response::{Fields, Hit, ParseError, hits};
use super::search_query::SearchQuery;
use super::setup::Target;

const FIELDS: Fields = Fields { snippet: "content", published: &["published_date"] };

pub(super) fn request(client: &Client, target: &Target, search_query: &SearchQuery) -> RequestBuilder {
    let mut body = json!({
        "query": search_query.query,
        "max_results": search_query.count,
        "search_depth": "basic",
        "topic": "general",
    });
    if let Some(freshness) = search_query.freshness {
        body["time_range"] = Value::from(freshness.word());
    }
    let request = client
        .post(target.url.clone())
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string());
    match &target.key {
        Some(key) => request.bearer_auth(key.expose()),
        None => request,
    }
}

pub(super) fn read(body: &[u8]) -> Result<Vec<Hit>, ParseError> {
    let response = ParseError::parse(body)?;
    let results =
        response.get("results").and_then(Value::as_array).ok_or(ParseError::MissingField("results"))?;
    Ok(hits(results, &FIELDS))
}
