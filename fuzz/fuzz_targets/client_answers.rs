//! The framing of answers in the loopback client, against hyper's client.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_mcp::fuzzing::client_answers(data));
