//! The negotiated version and session of an HTTP transport, and the header lines that follow from them. Serialized once, since
//! every request carries them.

use reqwest::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};

use toolhub_core::write_buffer::WriteBuffer;
use toolhub_http1::write_header;
use toolhub_mcp_wire::era::MODERN;
use toolhub_mcp_wire::headers::{
    METHOD_HEADER, NAME_HEADER, PROTOCOL_VERSION, SESSION_ID, encode_header_value, is_plain,
};

use super::direct::DirectClient;
use crate::transport::OutgoingRequest;

/// Reserved space for the header lines of one request, in bytes.
const EXTRA_CAPACITY: usize = 256;

/// The negotiated values.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestHead {
    /// The `Mcp-Session-Id` of a legacy server.
    pub(super) session: Option<String>,
    /// The protocol version; no header is sent while it is `None`.
    pub(super) version: Option<String>,
    /// Whether the version is a modern one.
    modern: bool,
    /// The serialized start of every request of the direct client.
    lines: Vec<u8>,
}

impl RequestHead {
    pub(super) fn new(direct: Option<&DirectClient>, headers: &HeaderMap) -> Self {
        let mut request_head = Self::default();
        request_head.serialize_lines(direct, headers);
        request_head
    }

    pub(super) fn is_modern(&self) -> bool {
        self.modern
    }

    /// Serializes the lines again. Configured headers are kept, except those that the transport sets itself.
    pub(super) fn serialize_lines(&mut self, direct: Option<&DirectClient>, headers: &HeaderMap) {
        self.modern = self.version.as_deref().is_some_and(|version| MODERN.contains(&version));
        let Some(direct) = direct else { return };
        let ours = [ACCEPT, CONTENT_TYPE, CONTENT_LENGTH];
        let configured = headers.iter().filter(|(name, _)| !ours.contains(name) && !is_protocol_header(name));
        let mut lines = format!("POST {} HTTP/1.1\r\n", direct.target).into_bytes();
        for (name, value) in configured {
            write_header(name.as_str(), value.as_bytes(), &mut lines);
        }
        if !headers.contains_key(HOST) {
            write_header("host", direct.authority.as_bytes(), &mut lines);
        }
        if !headers.contains_key(USER_AGENT) {
            write_header("user-agent", toolhub_oauth::http_client::USER_AGENT.as_bytes(), &mut lines);
        }
        write_header("content-type", b"application/json", &mut lines);
        write_header("accept", b"application/json, text/event-stream", &mut lines);
        let negotiated = [(SESSION_ID, &self.session), (PROTOCOL_VERSION, &self.version)];
        for (name, value) in negotiated {
            if let Some(value) = value.as_deref().filter(|value| is_plain(value)) {
                write_header(name, value.as_bytes(), &mut lines);
            }
        }
        self.lines = lines;
    }

    /// The head of a request for the direct client without its last line, with `body_capacity` bytes reserved.
    pub(super) fn head(&self, outgoing: Option<&OutgoingRequest<'_>>, body_capacity: usize) -> WriteBuffer {
        let mut head = WriteBuffer::acquire();
        head.reserve(self.lines.len() + EXTRA_CAPACITY + body_capacity);
        head.extend_from_slice(&self.lines);
        let Some(request) = outgoing.filter(|_| self.is_modern()) else { return head };
        if is_plain(request.method) {
            write_header(METHOD_HEADER, request.method.as_bytes(), &mut head);
        }
        if let Some(name) = request.name {
            write_header(NAME_HEADER, encode_header_value(name).as_bytes(), &mut head);
        }
        for (name, value) in request.headers {
            if is_header_name(name) && is_plain(value) {
                write_header(name, value.as_bytes(), &mut head);
            }
        }
        head
    }

    /// The additional headers of a request for the general client.
    pub(super) fn extra_headers(&self, outgoing: Option<&OutgoingRequest<'_>>) -> HeaderMap {
        let mut map = HeaderMap::new();
        let Some(request) = outgoing.filter(|_| self.is_modern()) else { return map };
        let name = request.name.map(|name| (NAME_HEADER, encode_header_value(name)));
        let headers = request.headers.iter().map(|(name, value)| (name.as_str(), value.into()));
        for (name, value) in [(METHOD_HEADER, request.method.into())].into_iter().chain(name).chain(headers) {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
                map.insert(name, value);
            }
        }
        map
    }
}

fn is_protocol_header(name: &HeaderName) -> bool {
    let reserved_names = [SESSION_ID, PROTOCOL_VERSION, METHOD_HEADER, NAME_HEADER];
    reserved_names.contains(&name.as_str()) || name.as_str().starts_with("mcp-param-")
}

/// Whether the text is a valid header name.
fn is_header_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && (name.bytes().all(fits) || name.parse::<HeaderName>().is_ok())
}
