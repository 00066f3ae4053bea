//! A search request over HTTP, with limits of time and size.

use std::time::Duration;

use reqwest::header::LOCATION;
use reqwest::{Client, RequestBuilder, Response};

use super::client::{client, root_cause};
use super::error::SearchError;
use super::error_response::{ErrorResponse, error_response};
use super::provider::SearchProvider;
use super::response::Hit;
use super::search_query::SearchQuery;
use super::setup::{Target, place_of};
use super::{brave, searxng, tavily};

const MAX_BODY_BYTES: usize = 2 << 20;
/// Maximum number of bytes read of an error response.
const MAX_ERROR_BODY: usize = 64 << 10;

/// Searches with `target` and returns up to the requested number of results.
pub(super) async fn search(
    target: &Target,
    search_query: &SearchQuery,
    deadline: Duration,
) -> Result<Vec<Hit>, SearchError> {
    let client = client()?;
    let request = request(&client, target, search_query);
    match tokio::time::timeout(deadline, exchange(target, request)).await {
        Ok(hits) => hits.map(|mut hits| {
            hits.truncate(search_query.count);
            hits
        }),
        Err(_) => Err(SearchError::TimedOut { location: target.location(), after: deadline }),
    }
}

fn request(client: &Client, target: &Target, search_query: &SearchQuery) -> RequestBuilder {
    match target.provider {
        SearchProvider::Searxng => searxng::request(client, target, search_query),
        SearchProvider::Brave => brave::request(client, target, search_query),
        SearchProvider::Tavily => tavily::request(client, target, search_query),
    }
}

async fn exchange(target: &Target, request: RequestBuilder) -> Result<Vec<Hit>, SearchError> {
    let location = target.location();
    let response = request.send().await.map_err(|error| {
        let cause = target.hide(&root_cause(&error));
        let location = location.clone();
        if error.is_connect() || error.is_builder() {
            SearchError::Unreachable { location, cause }
        } else {
            SearchError::Lost { location, cause }
        }
    })?;
    let status = response.status();
    if status.is_redirection() {
        let to = redirect_of(&response);
        return Err(SearchError::Redirected { location, to });
    }
    let headers = response.headers().clone();
    if !status.is_success() {
        // The body is optional information.
        let (body, _) = read(response, MAX_ERROR_BODY).await.unwrap_or_default();
        return Err(error_response(
            target,
            &ErrorResponse { status: status.as_u16(), headers: &headers, body: &body },
        ));
    }
    let (body, rest) = read(response, MAX_BODY_BYTES).await.map_err(|error| SearchError::Lost {
        location: location.clone(),
        cause: target.hide(&root_cause(&error)),
    })?;
    if rest == Rest::Left {
        return Err(SearchError::TooLarge { location, limit: MAX_BODY_BYTES });
    }
    let hits = match target.provider {
        SearchProvider::Searxng => searxng::read(&body),
        SearchProvider::Brave => brave::read(&body),
        SearchProvider::Tavily => tavily::read(&body),
    };
    hits.map_err(|misread| misread.at(target, &headers))
}

/// Whether a response was read completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Rest {
    #[default]
    None,
    Left,
}

async fn read(mut response: Response, limit: usize) -> Result<(Vec<u8>, Rest), reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let available = limit - body.len();
        if chunk.len() > available {
            body.extend_from_slice(&chunk[..available]);
            return Ok((body, Rest::Left));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, Rest::None))
}

fn redirect_of(response: &Response) -> Option<String> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    response.url().join(location).ok().map(|url| place_of(&url))
}
