//! Compares the framing of responses in the loopback client with hyper's client.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_http1::fuzzing::client_answers(data));
