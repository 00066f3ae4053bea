//! Tavily: `POST /search`. See <https://docs.tavily.com/documentation/api-reference/endpoint/search>. It has no
//! language parameter, but uses the language of the query.

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use super::answer::{Fields, Hit, Misread, hits};
use super::question::Question;
use super::setup::Target;

const FIELDS: Fields = Fields { snippet: "content", published: &["published_date"] };

pub(super) fn request(client: &Client, target: &Target, question: &Question) -> RequestBuilder {
    let mut body = json!({
        "query": question.query,
        "max_results": question.count,
        "search_depth": "basic",
        "topic": "general",
    });
    if let Some(freshness) = question.freshness {
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

pub(super) fn read(body: &[u8]) -> Result<Vec<Hit>, Misread> {
    let answer = Misread::parse(body)?;
    let results = answer.get("results").and_then(Value::as_array).ok_or(Misread::No("results"))?;
    Ok(hits(results, &FIELDS))
}
