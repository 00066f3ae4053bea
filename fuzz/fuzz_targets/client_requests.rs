//! Parses the request heads that the loopback client writes with hyper's server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_mcp::fuzzing::client_requests(data));
