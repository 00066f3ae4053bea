//! The heads of requests that the loopback client writes, against hyper's server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_mcp::fuzzing::client_requests(data));
