//! A client of the JSON API of a running hub (`--hub`). It sends the key to one address only: redirects are not followed, and
//! requests within this machine use no proxy. Requests are never repeated.

pub(crate) mod address;
pub(crate) mod error;
pub(crate) mod key;

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT_LANGUAGE, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toolhub_core::{Lang, Localize as _, RawJson, RawObject, Secret};
use toolhub_oauth::http_client;
use url::form_urlencoded;

use crate::app::App;
use crate::exit::UsageError;
use crate::hub_api::address::{HubAddress, PlainHttp};
use crate::hub_api::error::{ApiProblem, HubError};
use crate::hub_api::key::KEY_VARIABLE;

/// The variable with the address of a hub.
const HUB_ADDRESS_VARIABLE: &str = "TOOLHUB_HUB";
/// How long a request that only reads may take.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a request may take that connects to a server or changes something.
const ACTION_TIMEOUT: Duration = Duration::from_secs(600);
/// How often the connection is checked while a call runs, so that the end of the machine of the hub is noticed.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 256 << 20;

/// One page of a list.
#[derive(Debug, Deserialize)]
pub(crate) struct ListPage<T> {
    pub(crate) items: Vec<T>,
    #[serde(default)]
    pub(crate) next: Option<String>,
}

/// The path of a request, below `/api/v1/`.
#[derive(Debug, Clone)]
pub(crate) struct ApiPath(String);

impl ApiPath {
    /// A path without variable parts.
    pub(crate) fn new(path: &'static str) -> Self {
        Self(path.to_owned())
    }

    /// The path of one item, such as `servers/ID`, and what follows it, such as `:restart`.
    pub(crate) fn item(collection: &'static str, id: &str, rest: &'static str) -> Result<Self, HubError> {
        let encoded = form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>().replace('+', "%20");
        // These are resolved as parts of a path, also if they are encoded (URL standard, "double-dot URL path segment").
        if encoded.is_empty() || (matches!(encoded.as_str(), "." | "..") && !rest.starts_with(':')) {
            let detail = format!("`{id}`");
            return Err(HubError::Problem(ApiProblem { status: 404, kind: "not-found".to_owned(), detail }));
        }
        Ok(Self(format!("{collection}/{encoded}{rest}")))
    }
}

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 2_000;

/// The query parameters of a request.
pub(crate) type QueryParameters<'a> = &'a [(&'a str, &'a str)];

/// A connection to the JSON API of a hub, with a key.
pub(crate) struct HubApi {
    client: Client,
    address: HubAddress,
    key: Secret,
    lang: Lang,
}

impl std::fmt::Debug for HubApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubApi").field("address", &self.address).finish_non_exhaustive()
    }
}

impl HubApi {
    /// The hub that `--hub` or `TOOLHUB_HUB` names. Returns `None` if there is neither.
    pub(crate) fn requested(app: &App) -> anyhow::Result<Option<Self>> {
        let lang = app.lang();
        let global = &app.global;
        let variable = || std::env::var(HUB_ADDRESS_VARIABLE).ok().filter(|value| !value.trim().is_empty());
        let text = match (&global.hub, global.no_hub) {
            (Some(_), true) => {
                return Err(UsageError(
                    lang.choose(
                        "`--hub` and `--no-hub` (or TOOLHUB_NO_HUB) contradict each other: give one of them",
                        "`--hub` 与 `--no-hub`（或 TOOLHUB_NO_HUB）互相矛盾：请只给出一个",
                    )
                    .to_owned(),
                )
                .into());
            }
            (Some(text), false) => text.clone(),
            (None, true) => return Ok(None),
            (None, false) => match variable() {
                Some(text) => text,
                None => return Ok(None),
            },
        };
        let plain_http = if global.hub_plain_http { PlainHttp::Anywhere } else { PlainHttp::Loopback };
        let usage = |text: toolhub_core::lang::LocalizedText| UsageError(text.localize(lang));
        let address = HubAddress::parse(&text, plain_http).map_err(usage)?;
        let key = match &global.hub_key_file {
            Some(file) => Some(key::read_file(file).map_err(usage)?),
            None => key::from_environment().map_err(usage)?,
        };
        let key = key.ok_or_else(|| {
            UsageError(lang.choose(
                format!("`--hub` needs a key: set {KEY_VARIABLE}, or name a file with `--hub-key-file`; `toolhub keys new NAME --role ROLE` on the machine of the hub makes one"),
                format!("`--hub` 需要密钥：请设置 {KEY_VARIABLE}，或用 `--hub-key-file` 指定文件；可在 hub 所在的机器上用 `toolhub keys new 名称 --role 角色` 生成"),
            ))
        })?;
        let client = client(&address).map_err(|error| anyhow::anyhow!(error))?;
        Ok(Some(Self { client, address, key, lang }))
    }

    /// The address of the hub.
    pub(crate) fn root(&self) -> &str {
        &self.address.root
    }

    /// Reads a resource.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &ApiPath,
        query: QueryParameters<'_>,
    ) -> Result<T, HubError> {
        let bytes = self.get_bytes(path, query).await?;
        self.decode(&bytes)
    }

    /// Reads a resource that is not JSON.
    pub(crate) async fn get_bytes(
        &self,
        path: &ApiPath,
        query: QueryParameters<'_>,
    ) -> Result<Vec<u8>, HubError> {
        self.send(self.request(Method::GET, path, query)?.timeout(READ_TIMEOUT)).await
    }

    /// Reads all pages of a list, or as many items as are needed, from the `cursor` of the query on.
    pub(crate) async fn get_all<T: DeserializeOwned>(
        &self,
        path: &ApiPath,
        query: QueryParameters<'_>,
        max_items: Option<usize>,
    ) -> Result<Vec<T>, HubError> {
        let first = query.iter().find(|(name, _)| *name == "cursor");
        let (mut items, mut pages) = (Vec::new(), 0);
        let mut cursor = first.map(|(_, cursor)| (*cursor).to_owned());
        loop {
            let mut query: Vec<(&str, &str)> =
                query.iter().filter(|(name, _)| *name != "cursor").copied().collect();
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page: ListPage<T> = self.get(path, &query).await?;
            pages += 1;
            if pages > MAX_PAGES || (page.next.is_some() && page.next == cursor) {
                return Err(self.unreadable("its list has no end"));
            }
            items.extend(page.items);
            if let Some(max_items) = max_items.filter(|max_items| items.len() >= *max_items) {
                items.truncate(max_items);
                return Ok(items);
            }
            match page.next {
                // A page may be empty although more follow: a search is continued with the next one.
                Some(next) => cursor = Some(next),
                None => return Ok(items),
            }
        }
    }

    /// Sends a request with a body that reads, connects or changes.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &ApiPath,
        body: RawObject,
    ) -> Result<T, HubError> {
        self.write(Method::POST, path, body).await
    }

    /// Sends a request that changes something.
    pub(crate) async fn write<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &ApiPath,
        body: RawObject,
    ) -> Result<T, HubError> {
        let request = with_body(self.request(method, path, &[])?, body).timeout(ACTION_TIMEOUT);
        self.decode(&self.send(request).await?)
    }

    /// Calls a tool. Dropping the future ends the connection, and the hub cancels the call. There is no timeout: the hub has one
    /// for each server.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        path: &ApiPath,
        body: RawObject,
        idempotency_key: &str,
    ) -> Result<T, HubError> {
        let request = self.request(Method::POST, path, &[])?.header("idempotency-key", idempotency_key);
        self.decode(&self.send(with_body(request, body)).await?)
    }

    fn request(
        &self,
        method: Method,
        path: &ApiPath,
        query: QueryParameters<'_>,
    ) -> Result<RequestBuilder, HubError> {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let separator = if query.is_empty() { "" } else { "?" };
        let url = format!("{}/api/v1/{}{separator}{query}", self.address.root, path.0);
        let header = HeaderValue::from_str(&format!("Bearer {}", self.key.expose()));
        let mut header = header.map_err(|_| self.unreadable("the key is invalid"))?;
        header.set_sensitive(true);
        let language = self.lang.choose("en", "zh");
        Ok(self
            .client
            .request(method, url)
            .header(AUTHORIZATION, header)
            .header(ACCEPT_LANGUAGE, HeaderValue::from_static(language)))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Vec<u8>, HubError> {
        let response = request.send().await.map_err(|error| self.failed(&error))?;
        let status = response.status();
        if status.is_redirection() {
            let location = response.headers().get(LOCATION);
            let location = location.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
            return Err(HubError::Redirected { location: location.unwrap_or_default() });
        }
        let mut body = Vec::new();
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece.map_err(|error| self.failed(&error))?);
            if body.len() > MAX_RESPONSE_BYTES {
                return Err(self.unreadable("the response is too long"));
            }
        }
        match status {
            StatusCode::OK => Ok(body),
            other => Err(HubError::Problem(ApiProblem::read(other.as_u16(), &body))),
        }
    }

    fn decode<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, HubError> {
        serde_json::from_slice(body).map_err(|error| self.unreadable(&error.to_string()))
    }

    fn unreadable(&self, detail: &str) -> HubError {
        HubError::Unreadable { hub: self.address.root.clone(), detail: detail.to_owned() }
    }

    fn failed(&self, error: &reqwest::Error) -> HubError {
        let (hub, cause) = (self.address.root.clone(), http_client::root_cause(error));
        match (error.is_connect(), error.is_timeout()) {
            (true, _) => HubError::Unreachable { hub, cause },
            (false, true) => HubError::Silent { hub },
            (false, false) => HubError::Lost { hub, cause },
        }
    }
}

fn with_body(request: RequestBuilder, body: RawObject) -> RequestBuilder {
    let body: RawJson = body.into_raw();
    request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body.get().to_owned())
}

/// The HTTP client for one hub.
fn client(address: &HubAddress) -> Result<Client, String> {
    http_client::build_client(|builder| {
        let builder = builder.redirect(Policy::none()).tcp_keepalive(KEEPALIVE_INTERVAL).referer(false);
        // A proxy for plain HTTP would receive the key.
        let builder = if address.is_https { builder } else { builder.no_proxy() };
        match &address.pinned {
            Some((name, addresses)) => builder.resolve_to_addrs(name, addresses),
            None => builder,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_into_one_segment() {
        let item = |id: &str, rest| ApiPath::item("tools", id, rest).map(|path| path.0).ok();
        assert_eq!(item("a/b:c?d#e%", "").unwrap(), "tools/a%2Fb%3Ac%3Fd%23e%25");
        assert_eq!(item("表 格", ":call").unwrap(), "tools/%E8%A1%A8%20%E6%A0%BC:call");
        assert_eq!(item("..", ":call").unwrap(), "tools/..:call");
        for id in ["", ".", ".."] {
            assert_eq!(item(id, ""), None, "{id}");
        }
        assert_eq!(item("..", "/log"), None);
    }
}
