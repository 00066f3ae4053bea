//! Parses session ids and event ids.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_mcp::fuzzing::gateway_ids(data));
