//! The JSON member scanner, against `serde_json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_mcp::fuzzing::json_members(data));
