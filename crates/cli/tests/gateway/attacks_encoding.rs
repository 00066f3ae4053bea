//! Attacks with `Content-Encoding`: the gateway decodes nothing, so that a message declared as encoded is refused instead of
//! being read as plain text.

use toolhub_testkit::scripted::Script;

use crate::serving::Serving;
use crate::wire::{Wire, call, chunked, request};

/// Long enough to be sent in two chunks.
const BODY: &str = r#"{"a": "0123456789"}"#;

#[test]
fn rejects_content_encoding_on_every_path() {
    let serving = Serving::before(&Script::both().plain_tool("echo"), "");
    for (encoding, expected) in
        [("gzip", 415), ("br", 415), ("identity, gzip", 415), ("", 415), ("Identity", 200)]
    {
        let header = format!("Content-Encoding: {encoding}\r\n");
        let usual = call("x", &header);
        for message in [usual.clone(), chunked(&usual)] {
            let mut wire = Wire::to(&serving);
            wire.send(&message);
            let response = wire.receive();
            assert_eq!(response.status, expected, "{encoding} {response:?}");
            assert!(expected == 200 || response.body.contains("Content-Encoding"), "{response:?}");
        }
        for path in ["/v1/responses", "/v1/chat/completions", "/api/v1/calls", "/console", "/nothing"] {
            for message in
                [request("POST", path, &header, BODY), chunked(&request("POST", path, &header, BODY))]
            {
                let mut wire = Wire::to(&serving);
                wire.send(&message);
                let response = wire.receive();
                assert_eq!(response.status == 415, expected == 415, "{path} {encoding} {response:?}");
                let names_header = response.body.contains("without the header `Content-Encoding`");
                assert_eq!(names_header, expected == 415, "{path} {encoding} {response:?}");
            }
        }
        let mut wire = Wire::to(&serving);
        wire.send(&request("POST", "/messages?sessionId=none", &header, "{}"));
        assert_eq!(wire.receive().status, if expected == 415 { 415 } else { 404 }, "{encoding}");
    }
}
