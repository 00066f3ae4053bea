//! Compares the JSON member scanner with `serde_json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_mcp_wire::fuzzing::json_members(data));
