//! The heads and framing of requests on the server's fast path, against hyper's server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_server::fuzzing::server_requests(data));
