//! Parses session ids and event ids.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_mcp_gateway::fuzzing::gateway_ids(data));
