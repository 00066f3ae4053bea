//! A single request to an endpoint: sends it and reads the response into an assembly, within limits.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response};
use toolhub_core::RawObject;
use toolhub_core::event_stream::SseParser;
use toolhub_core::instance::{INSTANCE_HEADER, instance_id};
use url::Url;

use crate::assembly::Assembly;
use crate::endpoint::{Endpoint, WireFormat};
use crate::failure::{AttemptFailure, EndpointError, root_cause};
use crate::retry::retry_after;
use crate::{anthropic, openai};

/// Maximum size of a decompressed response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 20;
/// Maximum number of bytes read of an error response.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;
/// Timeout for the body of an error response after its status.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for the end of a stream after its last event, so that the connection can be reused.
const STREAM_END_TIMEOUT: Duration = Duration::from_millis(50);
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Whether the response continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseState {
    /// More may follow.
    More,
    /// The response is complete.
    Done,
}

/// A piece that is not part of a valid response.
#[derive(Debug)]
pub(crate) enum ResponseError {
    /// It does not match the format.
    Format(String),
    /// It is an error reported by the endpoint.
    EndpointError(EndpointError),
}

impl ResponseError {
    fn at(self, endpoint: &Endpoint) -> AttemptFailure {
        match self {
            Self::Format(why) => AttemptFailure::unreadable(endpoint, &why),
            Self::EndpointError(reported) => AttemptFailure::reported(endpoint, &reported),
        }
    }
}

/// The parser of the endpoint's wire format.
enum Reader {
    OpenAi(openai::Reader),
    Anthropic(anthropic::Reader),
}

impl Reader {
    fn of(api: WireFormat) -> Self {
        match api {
            WireFormat::OpenAi => Self::OpenAi(openai::Reader),
            WireFormat::Anthropic => Self::Anthropic(anthropic::Reader),
        }
    }

    fn event(&mut self, data: &str, assembly: &mut Assembly<'_>) -> Result<ResponseState, ResponseError> {
        match self {
            Self::OpenAi(reader) => reader.event(data, assembly),
            Self::Anthropic(reader) => reader.event(data, assembly),
        }
    }

    fn full_body(&mut self, body: &str, assembly: &mut Assembly<'_>) -> Result<ResponseState, ResponseError> {
        match self {
            Self::OpenAi(reader) => reader.full_body(body, assembly),
            Self::Anthropic(reader) => reader.full_body(body, assembly),
        }
    }
}

/// The client, endpoint and idle timeout of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndpointExchange<'a> {
    pub(crate) client: &'a Client,
    pub(crate) endpoint: &'a Endpoint,
    /// The idle timeout between two pieces.
    pub(crate) idle_timeout: Duration,
}

impl EndpointExchange<'_> {
    /// Sends the request and reads the response to its end.
    pub(crate) async fn run(
        self,
        body: &RawObject,
        assembly: &mut Assembly<'_>,
    ) -> Result<(), AttemptFailure> {
        let endpoint = self.endpoint;
        let body = serde_json::to_vec(body)
            .map_err(|error| AttemptFailure::unreadable(endpoint, &error.to_string()))?;
        let request = with_headers(self.client.post(endpoint.chat_url()), endpoint)
            .header(INSTANCE_HEADER, instance_id())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .body(body);
        let response = request.send().await.map_err(|error| AttemptFailure::send(endpoint, &error))?;
        if !response.status().is_success() {
            return Err(refused(endpoint, response).await);
        }
        match kind_of(&response) {
            ContentKind::Page => {
                Err(AttemptFailure::unreadable(endpoint, "it answered with a web page; check its `url`"))
            }
            ContentKind::Json => self.read_whole(response, assembly).await,
            ContentKind::Events => self.read_events(response, assembly).await,
        }
    }

    async fn read_events(
        &self,
        response: Response,
        assembly: &mut Assembly<'_>,
    ) -> Result<(), AttemptFailure> {
        let endpoint = self.endpoint;
        let (mut reader, mut parser) = (Reader::of(endpoint.api), SseParser::default());
        let mut stream = Box::pin(response.bytes_stream());
        let (mut taken, mut full_body) = (0_usize, None);
        loop {
            // Before the first piece the model processes the prompt, so only the total deadline applies.
            let next = match taken {
                0 => stream.next().await,
                _ => tokio::time::timeout(self.idle_timeout, stream.next())
                    .await
                    .map_err(|_| AttemptFailure::timed_out(endpoint, self.idle_timeout))?,
            };
            let piece: Bytes = match next {
                Some(Ok(piece)) => piece,
                // After a stop reason the response is complete, even if the connection fails.
                Some(Err(_)) | None if assembly.stopped() => return Ok(()),
                Some(Err(error)) => return Err(AttemptFailure::truncated(endpoint, &root_cause(&error))),
                None => break,
            };
            taken += piece.len();
            if taken > MAX_RESPONSE_BYTES {
                return Err(AttemptFailure::unreadable(endpoint, "it is too long"));
            }
            // Some endpoints send JSON with another content type.
            if full_body.is_none() && taken == piece.len() && piece.trim_ascii_start().starts_with(b"{") {
                full_body = Some(Vec::new());
            }
            if let Some(full_body) = &mut full_body {
                full_body.extend_from_slice(&piece);
                continue;
            }
            for event in parser.push(&piece) {
                if event.data.is_empty() {
                    continue;
                }
                if reader.event(&event.data, assembly).map_err(|misread| misread.at(endpoint))?
                    == ResponseState::Done
                {
                    let _ = tokio::time::timeout(STREAM_END_TIMEOUT, stream.next()).await;
                    return Ok(());
                }
            }
        }
        match full_body {
            Some(full_body) => self.take_whole(&full_body, assembly),
            None => Err(AttemptFailure::truncated(endpoint, "it ended without a finish reason")),
        }
    }

    async fn read_whole(
        &self,
        mut response: Response,
        assembly: &mut Assembly<'_>,
    ) -> Result<(), AttemptFailure> {
        let endpoint = self.endpoint;
        let mut full_body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(piece)) => full_body.extend_from_slice(&piece),
                Ok(None) => break,
                Err(error) => return Err(AttemptFailure::truncated(endpoint, &root_cause(&error))),
            }
            if full_body.len() > MAX_RESPONSE_BYTES {
                return Err(AttemptFailure::unreadable(endpoint, "it is too long"));
            }
        }
        self.take_whole(&full_body, assembly)
    }

    fn take_whole(&self, full_body: &[u8], assembly: &mut Assembly<'_>) -> Result<(), AttemptFailure> {
        let text = String::from_utf8_lossy(full_body);
        let read = Reader::of(self.endpoint.api).full_body(&text, assembly);
        read.map(|_| ()).map_err(|misread| misread.at(self.endpoint))
    }

    /// Sends a GET request and returns the body: the list of models.
    pub(crate) async fn get(self, url: Url) -> Result<Vec<u8>, AttemptFailure> {
        let endpoint = self.endpoint;
        let request = with_headers(self.client.get(url), endpoint).header(ACCEPT, "application/json");
        let mut response = request.send().await.map_err(|error| AttemptFailure::send(endpoint, &error))?;
        if !response.status().is_success() {
            return Err(refused(endpoint, response).await);
        }
        let mut body = Vec::new();
        while let Some(piece) = response
            .chunk()
            .await
            .map_err(|error| AttemptFailure::truncated(endpoint, &root_cause(&error)))?
        {
            body.extend_from_slice(&piece);
            if body.len() > MAX_RESPONSE_BYTES {
                return Err(AttemptFailure::unreadable(endpoint, "it is too long"));
            }
        }
        Ok(body)
    }
}

/// Adds the authentication headers.
fn with_headers(request: RequestBuilder, endpoint: &Endpoint) -> RequestBuilder {
    let key = |prefix: &str| endpoint.key.as_ref().and_then(|key| key.header(prefix));
    match endpoint.api {
        WireFormat::OpenAi => match key("Bearer ") {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        },
        WireFormat::Anthropic => {
            let request = request.header("anthropic-version", ANTHROPIC_VERSION);
            match key("") {
                Some(value) => request.header("x-api-key", value),
                None => request,
            }
        }
    }
}

/// The kind of a response, by its content type.
enum ContentKind {
    Events,
    Json,
    Page,
}

fn kind_of(response: &Response) -> ContentKind {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().unwrap_or_default().trim() {
        "text/html" => ContentKind::Page,
        json if json.ends_with("json") => ContentKind::Json,
        _ => ContentKind::Events,
    }
}

async fn refused(endpoint: &Endpoint, mut response: Response) -> AttemptFailure {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(piece)) = response.chunk().await {
            body.extend_from_slice(&piece);
            if body.len() > MAX_ERROR_BODY_BYTES {
                break;
            }
        }
    };
    // On timeout the status alone is reported.
    let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, read).await;
    let reported = EndpointError { retry_after, ..EndpointError::read(&String::from_utf8_lossy(&body)) };
    AttemptFailure::status(endpoint, status, &reported)
}
