//! Compares request heads with hyper.

use http::{HeaderMap, HeaderName, HeaderValue};
use toolhub_mcp_wire::headers;
use url::Url;

use super::direct::DirectClient;
use super::request_head::RequestHead;
use crate::fuzzing::hyper_peer::{self, pieces};
use crate::transport::{OutgoingRequest, Repeat};

/// Checks that hyper reads a request that our client writes as exactly that one request, for any names and values.
///
/// The input consists of fields terminated by a zero byte: session, version, method, name, body, and pairs of name and value. A
/// pair is an `Mcp-Param-NAME` header, whose name comes from a server's schema, or a configured header if the name starts with
/// `!`.
pub fn client_requests(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut fields = text.split('\0');
    let mut next = || fields.next().unwrap_or_default().to_owned();
    let (session, version, method, name, body) = (next(), next(), next(), next(), next());
    // hyper accepts at most 100 headers.
    let rest: Vec<&str> = fields.take(64).collect();
    let (mut configured, mut own) = (HeaderMap::new(), Vec::new());
    for pair in rest.chunks_exact(2) {
        match pair[0].strip_prefix('!') {
            None => own.push((format!("Mcp-Param-{}", pair[0]), pair[1].to_owned())),
            Some(name) => {
                let parsed = (name.parse::<HeaderName>(), pair[1].parse::<HeaderValue>());
                if let (Ok(name), Ok(value)) = parsed {
                    configured.append(name, value);
                }
            }
        }
    }
    // Only the owner can configure headers that affect framing; a server cannot.
    for framing in ["connection", "transfer-encoding", "upgrade", "expect"] {
        configured.remove(framing);
    }
    let Some(direct) = Url::parse("http://localhost:8/mcp?x=y").ok().as_ref().and_then(DirectClient::to)
    else {
        return;
    };
    let mut request_head = RequestHead::new(Some(&direct), &configured);
    request_head.session = (!session.is_empty()).then(|| session.clone());
    request_head.version = Some(if version.is_empty() { "2026-07-28".to_owned() } else { version });
    request_head.serialize_lines(Some(&direct), &configured);
    let name = (!name.is_empty()).then_some(name.as_str());
    let request = OutgoingRequest {
        id: 1,
        method: &method,
        name,
        body: body.clone(),
        headers: &own,
        listener: None,
        repeat: Repeat::default(),
        principal: None,
        client: None,
    };
    let mut bytes = request_head.head(Some(&request), 0).to_vec();
    let mut length = itoa::Buffer::new();
    for part in ["content-length: ", length.format(body.len()), "\r\n\r\n", &body] {
        bytes.extend_from_slice(part.as_bytes());
    }
    let written = bytes.escape_ascii().to_string();
    let seen = hyper_peer::requests(&pieces(&bytes));
    assert_eq!(seen.len(), 1, "{written}");
    let Some(seen) = seen.first() else { return };
    assert_eq!(seen.start, "POST /mcp?x=y HTTP/1.1", "{written}");
    assert!(seen.complete && seen.body == body.as_bytes(), "{written}");
    let usual = ["host", "user-agent", "content-type", "accept", "content-length"];
    let of_protocol = ["mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"];
    for (name, value) in &seen.headers {
        let (name, value) = (name.as_str(), value.as_bytes());
        let is_own = own.iter().any(|(own, header_value)| {
            own.eq_ignore_ascii_case(name) && header_value.trim_matches([' ', '\t']).as_bytes() == value
        });
        let is_configured = configured.get_all(name).iter().any(|one| one.as_bytes().trim_ascii() == value);
        assert!(
            usual.contains(&name) || of_protocol.contains(&name) || is_own || is_configured,
            "{name} in {written}"
        );
    }
    let header_value = |name: &str| seen.headers.get(name).map(HeaderValue::as_bytes);
    let trimmed = session.trim_matches([' ', '\t']);
    let is_sent = !session.is_empty() && headers::is_plain(&session);
    assert_eq!(header_value("mcp-session-id"), is_sent.then_some(trimmed.as_bytes()), "{written}");
}
