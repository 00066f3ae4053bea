//! Request heads that parsers may interpret differently: the fast path must come to the same decision as hyper.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use toolhub_mcp_gateway::HeaderLookup;

use super::head::{ParseOutcome, ParsedHead};
use crate::access::{AccessRefusal, AccessRequest, ServerAccess};

/// The headers as hyper would read them.
fn header_map(head: &[u8]) -> Option<HeaderMap> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut fields);
    request.parse(head).ok().filter(httparse::Status::is_complete)?;
    let mut headers = HeaderMap::new();
    for field in &*request.headers {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some(headers)
}

/// The decisions of the fast path and of hyper. `None` if the fast path does not accept the message.
fn verdicts(access: &ServerAccess, message: &[u8]) -> Option<[Result<Option<String>, AccessRefusal>; 2]> {
    let mut cached = None;
    let ParseOutcome::Complete(lengths) = ParsedHead::find(message, &mut cached) else { return None };
    let message = bytes::Bytes::copy_from_slice(&message[..lengths.all()]);
    let cached = cached?;
    let head = cached.head(&message, lengths);
    let admit = |headers: &dyn HeaderLookup| {
        let verdict = access.admit(&AccessRequest { headers, target: None, profile: None });
        verdict.map(|verified| verified.map(|verified| verified.principal.display.clone()))
    };
    let other = header_map(&message)?;
    Some([admit(&head), admit(&other)])
}

fn access_rules() -> [ServerAccess; 2] {
    let keys = crate::KeyTable::from(vec![crate::StaticKey::of_caller("ann", crate::hash_of("t"))]);
    let local =
        ServerAccess { local: true, hosts: vec!["hub.example".to_owned()], ..ServerAccess::default() };
    [ServerAccess { authenticator: Arc::new(keys), ..local.clone() }, local]
}

fn host() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("localhost"),
        Just("127.0.0.1"),
        Just("[::1]"),
        Just("hub.example"),
        Just("evil.example"),
        Just(":7460"),
        Just(":"),
        Just("@"),
        Just("."),
        Just(","),
        Just(" "),
        Just("\t"),
        Just("%"),
        Just("\u{e9}"),
        Just("["),
        Just("]"),
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
}

fn line() -> impl Strategy<Value = String> {
    let name =
        prop_oneof![3 => Just("Host"), 1 => Just("hOST"), 1 => Just("X-Forwarded-Host"), 1 => Just("X")];
    let token = prop_oneof![Just("Bearer t"), Just("bearer  t "), Just("Bearer x"), Just("t"), Just("")];
    prop_oneof![
        4 => (name, host()).prop_map(|(name, host)| format!("{name}: {host}\r\n")),
        1 => token.prop_map(|token| format!("Authorization: {token}\r\n")),
        1 => host().prop_map(|host| format!("Origin: http://{host}\r\n")),
    ]
}

proptest! {
    #[test]
    fn fast_path_and_hyper_agree_on_access(lines in prop::collection::vec(line(), 0..5)) {
        let head = format!("POST /mcp HTTP/1.1\r\n{}Content-Length: 2\r\n\r\n{{}}", lines.concat());
        for access in access_rules() {
            if let Some([fast, other]) = verdicts(&access, head.as_bytes()) {
                prop_assert_eq!(fast, other, "{}", head);
            }
        }
    }
}

/// The property is not vacuous: the fast path accepts ordinary heads, and both decide.
#[test]
fn fast_path_and_hyper_decide_common_heads() {
    let [tokens, local] = access_rules();
    let head = |lines: &str| format!("POST /mcp HTTP/1.1\r\n{lines}Content-Length: 2\r\n\r\n{{}}");
    let check = |access: &ServerAccess, lines: &str, expect: Result<Option<String>, AccessRefusal>| {
        assert_eq!(verdicts(access, head(lines).as_bytes()), Some([expect.clone(), expect]), "{lines}");
    };
    check(&local, "Host: localhost\r\n", Ok(None));
    check(&local, "", Err(AccessRefusal::Authority));
    check(&local, "Host: localhost\r\nHost: localhost\r\n", Err(AccessRefusal::Authority));
    check(&local, "Host: [::1]evil.example\r\n", Err(AccessRefusal::Authority));
    check(&tokens, "Host: localhost\r\nAuthorization: Bearer t\r\n", Ok(Some("ann".to_owned())));
    check(&tokens, "Host: localhost\r\n", Err(AccessRefusal::Token(crate::TokenRefusal::Missing)));
}

/// The fast path and hyper both accept lines that end with a bare LF, and read them alike.
#[test]
fn fast_path_and_hyper_agree_on_bare_line_feeds() {
    let crlf = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: 1\r\nContent-Length: 2\r\n\r\n{}";
    let next = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n[{}]";
    for index in 0..=crlf.matches("\r\n").count() {
        let mut lines: Vec<String> = crlf.split("\r\n").map(|line| format!("{line}\r\n")).collect();
        if let Some(line) = lines.get_mut(index) {
            *line = line.replace("\r\n", "\n");
        }
        let message = lines.concat();
        super::fuzzing::server_requests(
            format!("{}{next}", message.trim_end_matches(['\r', '\n'])).as_bytes(),
        );
    }
    super::fuzzing::server_requests(format!("{}{next}", crlf.replace("\r\n", "\n")).as_bytes());
}

/// The fast path never accepts a message with contradictory or ambiguous framing (request smuggling).
#[test]
fn fast_path_rejects_ambiguous_framing() {
    let body = "{}GET /metrics HTTP/1.1\r\n\r\n";
    for lines in [
        "Content-Length: 2\r\nContent-Length: 28\r\n",
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
        "Transfer-Encoding: identity\r\nContent-Length: 2\r\n",
        "Content-Length: 2\r\nTransfer-Encoding : chunked\r\n",
        "Content-Length: 2\r\n Transfer-Encoding: chunked\r\n",
        "Content-Length: +2\r\n",
        "Content-Length: -2\r\n",
        "Content-Length: 2,2\r\n",
        "Content-Length: 0x2\r\n",
        "Content-Length: 2\0\r\n",
        "Content-Length : 2\r\n",
        "Content-Length:\r\n 2\r\n",
        "Content-Length: \r\n",
        "X: a\rContent-Length: 2\r\n",
    ] {
        let message = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n{body}");
        let found = ParsedHead::find(message.as_bytes(), &mut None);
        assert!(matches!(found, ParseOutcome::Unsupported), "{lines:?}: {found:?}");
    }
}
