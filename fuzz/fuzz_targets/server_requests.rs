//! Compares request heads and framing on the server's fast path with hyper's server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_server::fuzzing::server_requests(data));
