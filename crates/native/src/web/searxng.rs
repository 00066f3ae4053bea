//! SearXNG: `GET /search?format=json`. See <https://docs.searxng.org/dev/search_api.html>.

use reqwest::header::{ACCEPT, ACCEPT_LANGUAGE};
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use super::response::{Fields, Hit, ParseError, hits};
use super::search_query::SearchQuery;
use super::setup::Target;

const FIELDS: Fields = Fields { snippet: "content", published: &["publishedDate", "pubdate"] };

pub(super) fn request(client: &Client, target: &Target, search_query: &SearchQuery) -> RequestBuilder {
    let language = search_query.language.as_ref().map(super::language::Language::searxng);
    let mut url = target.url.clone();
    {
        let mut pairs = url.query_pairs_mut();
        pairs.append_pair("q", &search_query.query).append_pair("format", "json");
        if let Some(language) = &language {
            pairs.append_pair("language", language);
        }
        if let Some(freshness) = search_query.freshness {
            pairs.append_pair("time_range", freshness.word());
        }
    }
    // The limiter of SearXNG treats clients without `text/html` or `Accept-Language` as bots.
    let request = client
        .get(url)
        .header(ACCEPT, "application/json, text/html;q=0.5")
        .header(ACCEPT_LANGUAGE, language.as_deref().unwrap_or("*"));
    match &target.key {
        Some(key) => request.bearer_auth(key.expose()),
        None => request,
    }
}

pub(super) fn read(body: &[u8]) -> Result<Vec<Hit>, ParseError> {
    let response = ParseError::parse(body)?;
    let results =
        response.get("results").and_then(Value::as_array).ok_or(ParseError::MissingField("results"))?;
    let found = hits(results, &FIELDS);
    let silent = silent_engines(&response);
    // No results because no engine responded is a failure.
    if found.is_empty() && !silent.is_empty() {
        Err(ParseError::EnginesUnresponsive(silent))
    } else {
        Ok(found)
    }
}

/// The engines that did not respond to SearXNG: pairs of name and reason.
fn silent_engines(response: &Value) -> Vec<String> {
    let engines = response.get("unresponsive_engines").and_then(Value::as_array);
    let name = |engine: &Value| {
        let pair = engine.as_array()?;
        let (name, why) = (pair.first()?.as_str()?, pair.get(1).and_then(Value::as_str));
        Some(why.map_or_else(|| name.to_owned(), |why| format!("{name} ({why})")))
    };
    engines.into_iter().flatten().filter_map(name).take(5).collect()
}
