//! Checks the request heads that the loopback client writes by parsing them with hyper's server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_mcp_client::fuzzing::client_requests(data));
