//! Fuzz targets: each takes arbitrary bytes and asserts invariants. `cargo xtask fuzz` runs them with coverage guidance; the
//! tests here run each on its seeds and some thousand mutations of them.

#[path = "../../../fuzz/shared/hyper_client.rs"]
pub(crate) mod hyper_client;
#[path = "../../../fuzz/shared/hyper_peer.rs"]
pub(crate) mod hyper_peer;
#[cfg(test)]
#[path = "../../../fuzz/shared/mutator.rs"]
mod mutator;

use bytes::BytesMut;
use http::HeaderMap;
use hyper_peer::{pieces, requests};

use crate::{BodyPart, CachedResponse, FramingError, RequestHead, ResponseHead};

/// A response as our client reads it.
#[derive(Debug, Default, PartialEq, Eq)]
struct ReadResponse {
    head: Option<(String, HeaderMap)>,
    body: Vec<u8>,
    complete: bool,
    /// Whether the connection would be reused.
    reusable: bool,
    /// The unread bytes.
    rest: Vec<u8>,
}

/// Reads one response as the client does; `Err` if it is rejected.
fn read(
    input: &[&[u8]],
    known: &mut Option<Box<CachedResponse>>,
    closes: bool,
) -> Result<ReadResponse, FramingError> {
    let (mut buffer, mut incoming) = (BytesMut::new(), input.iter());
    let mut answer = ReadResponse::default();
    let head = loop {
        match ResponseHead::take(&mut buffer, known)? {
            Some(head) => break head,
            None => match incoming.next() {
                Some(piece) => buffer.extend_from_slice(piece),
                None => return Ok(answer),
            },
        }
    };
    answer.head = Some((head.status.as_str().to_owned(), head.headers()));
    let mut framing = head.body;
    answer.complete = loop {
        match framing.take(&mut buffer)? {
            BodyPart::Data(data) => answer.body.extend_from_slice(&data),
            BodyPart::End => break true,
            BodyPart::Wait => match incoming.next() {
                Some(piece) => buffer.extend_from_slice(piece),
                None => break closes && framing.ends_with_connection(),
            },
        }
    };
    incoming.for_each(|piece| buffer.extend_from_slice(piece));
    answer.reusable = answer.complete && head.reusable && buffer.is_empty() && !closes;
    answer.rest = buffer.to_vec();
    Ok(answer)
}

/// Checks that hyper accepts every response that our client accepts, with the same status, headers and body, and that hyper
/// reuses the connection if ours does. A cached head makes no difference.
pub fn client_answers(data: &[u8]) {
    let mut known = None;
    let (mut rest, mut answers) = (data.to_vec(), 0);
    while !rest.is_empty() && answers < 8 {
        let (cut, uncut) = (pieces(&rest), [&rest[..]]);
        let mut last = Err(FramingError(String::new()));
        for (input, closes) in [(&cut[..], false), (&uncut, false), (&cut, true)] {
            let ours = read(input, &mut None, closes);
            assert_eq!(read(input, &mut known, closes), ours, "with and without a cached head");
            if let Ok(ours) = &ours {
                compare(ours, &hyper_client::answer(input, closes));
            }
            last = ours;
        }
        // The remaining bytes are read as if they arrived on another connection.
        rest = last.map(|answer| answer.rest).unwrap_or_default();
        answers += 1;
    }
}

fn compare(ours: &ReadResponse, theirs: &hyper_client::ReadResponse) {
    let Some((status, headers)) = &ours.head else { return };
    assert!(theirs.message.is_some(), "hyper refuses the head: {ours:?}");
    let Some(message) = &theirs.message else { return };
    assert_eq!((status, &without_length(headers)), (&message.start, &without_length(&message.headers)));
    assert_eq!(ours.body.escape_ascii().to_string(), message.body.escape_ascii().to_string());
    if ours.complete {
        assert!(message.complete && !theirs.failed, "hyper does not accept this: {ours:?}");
    }
    assert!(!ours.reusable || theirs.reusable, "hyper would not keep the connection: {ours:?}");
}

/// Removes `Content-Length`: the body is compared instead.
fn without_length(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.remove("content-length");
    headers
}

/// Checks that hyper reads every request whose head is accepted as exactly that request, with the same target, headers and
/// body. The cached head makes no difference.
pub fn request_heads(data: &[u8]) {
    let Ok((head, length, body)) = RequestHead::parse(data, b"POST /mcp") else { return };
    assert_eq!(head.matches(data), Some((length, body)), "with and without a cached head");
    // Any other path is passed to hyper when the endpoint is looked up.
    let is_plain = head.path().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte));
    let Some(message) = data.get(..length + body).filter(|_| is_plain) else { return };
    let escaped = message.escape_ascii().to_string();
    let seen = requests(&[message]);
    assert_eq!(seen.len(), 1, "{escaped}");
    let Some(seen) = seen.first() else { return };
    assert_eq!(seen.start, format!("POST {} HTTP/1.1", head.path()), "{escaped}");
    assert!(seen.complete && seen.body == message[length..], "{escaped}");
    for name in seen.headers.keys().filter(|name| *name != "content-length") {
        let theirs: Vec<&[u8]> = seen.headers.get_all(name).iter().map(http::HeaderValue::as_bytes).collect();
        let ours: Vec<&[u8]> = head.values(name.as_str()).map(str::as_bytes).collect();
        assert_eq!(ours, theirs, "{name} in {escaped}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_answers_hold_for_mutated_seeds() {
        mutator::run("client_answers", 8_000, client_answers);
    }

    #[test]
    fn request_heads_hold_for_mutated_seeds() {
        mutator::run("server_requests", 8_000, request_heads);
    }
}
