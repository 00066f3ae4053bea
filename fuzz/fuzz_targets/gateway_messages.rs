//! Compares the gateway's message parser with `serde_json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_mcp_gateway::fuzzing::gateway_messages(data));
