//! Differential fuzzing: heads and boundaries of requests on the fast path, compared with hyper's server.

use bytes::BytesMut;
use http::HeaderMap;
use toolhub_mcp_gateway::HeaderLookup as _;

use super::head::{ParseOutcome, ParsedHead};
use crate::fuzzing::hyper_peer::{Message, pieces, requests};

/// Headers that decisions depend on. They are compared even if hyper did not read them.
const COMPARED_HEADERS: [&str; 9] = [
    "accept",
    "authorization",
    "content-type",
    "expect",
    "host",
    "mcp-protocol-version",
    "mcp-session-id",
    "origin",
    "transfer-encoding",
];

/// If the fast path accepts a request, hyper reads the same target, headers and body, and both agree on the start of the
/// next request. Requests that the fast path leaves to hyper are not compared.
pub fn server_requests(data: &[u8]) {
    // Input in many small pieces is parsed again after each piece.
    let uncut = [data];
    let cut = pieces(data);
    for input in [&uncut[..], &cut] {
        let expected = requests(input);
        let end = accepted(input, &expected);
        let remainder = data.get(end.bytes..).unwrap_or_default();
        let rest: Vec<Message> = expected.into_iter().skip(end.messages).collect();
        assert_eq!(requests(&[remainder]), rest, "the request after the accepted ones begins elsewhere");
    }
}

/// The number of accepted messages and bytes.
#[derive(Debug, Default)]
struct End {
    messages: usize,
    bytes: usize,
}

/// Reads messages as a connection on the fast path does, and compares each with the one that hyper read.
fn accepted(input: &[&[u8]], expected: &[Message]) -> End {
    let (mut read, mut cached, mut coming) = (BytesMut::new(), None::<ParsedHead>, input.iter());
    let mut end = End::default();
    loop {
        let found = if read.is_empty() { None } else { Some(ParsedHead::find(&read, &mut cached)) };
        let lengths = match found {
            Some(ParseOutcome::Complete(lengths)) => lengths,
            Some(ParseOutcome::Unsupported) => return end,
            Some(ParseOutcome::Incomplete(_)) | None => match coming.next() {
                Some(piece) => {
                    read.extend_from_slice(piece);
                    continue;
                }
                None => return end,
            },
        };
        let message = read.split_to(lengths.all()).freeze();
        let escaped = message.escape_ascii().to_string();
        let Some(head) = cached.as_ref().map(|cached| cached.head(&message, lengths)) else { return end };
        // Any other path is passed to hyper when the endpoint is looked up.
        if !is_endpoint(head.path) {
            return end;
        }
        let hyper = expected.get(end.messages);
        assert!(hyper.is_some(), "hyper does not accept {escaped}");
        let Some(hyper) = hyper else { return end };
        assert_eq!(hyper.start, format!("POST {} HTTP/1.1", head.path), "{escaped}");
        assert!(hyper.complete, "hyper waits for more than {escaped}");
        assert_eq!(hyper.body.escape_ascii().to_string(), head.body.escape_ascii().to_string(), "{escaped}");
        let names = hyper.headers.keys().map(http::HeaderName::as_str).chain(COMPARED_HEADERS);
        for name in names.filter(|name| *name != "content-length") {
            let mut ours = Vec::new();
            head.any(name, &mut |value| {
                ours.push(value.to_vec());
                false
            });
            assert_eq!(ours, values(&hyper.headers, name), "{name} in {escaped}");
            assert_eq!(head.value(name), ours.first().map(Vec::as_slice));
            assert_eq!(head.text(name), hyper.headers.text(name), "{name} in {escaped}");
        }
        assert_eq!((head.session(), head.revision()), (hyper.headers.session(), hyper.headers.revision()));
        for framing in ["transfer-encoding", "expect", "upgrade", "origin"] {
            assert!(!hyper.headers.contains_key(framing), "{framing} in {escaped}");
        }
        end = End { messages: end.messages + 1, bytes: end.bytes + message.len() };
        ParsedHead::admit(&mut cached);
    }
}

fn is_endpoint(path: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    path == "/mcp" || path.strip_prefix("/mcp/").is_some_and(is_name)
}

fn values(headers: &HeaderMap, name: &str) -> Vec<Vec<u8>> {
    headers.get_all(name).iter().map(|value| value.as_bytes().to_vec()).collect()
}
