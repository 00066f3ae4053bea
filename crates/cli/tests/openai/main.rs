//! The OpenAI-compatible endpoint of `toolhub serve` as the client libraries use it: the official libraries for Python and Node,
//! and the frameworks above them, each with its own types and stream parsers. `cargo xtask peers` installs them.
//!
//! | library | chat completions | responses |
//! |---|---|---|
//! | openai-python 3.51.0 | yes | yes |
//! | langchain-openai 1.7.3 | yes | yes |
//! | pydantic-ai 2.66.0 | yes | yes, without approvals |
//! | openai-agents 0.24.0 | yes | yes |
//! | openai-node 7.55.0 | yes | yes |
//! | `@ai-sdk/openai` 4.0.118 with `ai` 7.0.173 | yes | yes |
//! | `@ai-sdk/openai-compatible` 3.0.92 | yes | has no such model |

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation fails the test with its message"
)]

mod approvals;
mod attacks;
mod changed_rights;
mod chat_stream_rules;
mod client_library;
mod compliance;
mod exhaustion;
mod expectations;
mod generated_turns;
mod hostile_requests;
mod hostile_texts;
mod malformed_requests;
mod model_faults;
mod node_libraries;
mod python_libraries;
mod raw_streams;
mod real_model;
mod response_schema;
mod scripted_model;
mod served_hub;
mod shown_tools;
mod sse_frames;
mod stream_rules;
mod stream_rules_tests;
mod two_hubs;
mod without_model;
