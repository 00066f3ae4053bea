//! The ids of sessions and events.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_mcp::fuzzing::gateway_ids(data));
