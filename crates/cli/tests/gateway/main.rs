//! The gateway as its clients meet it: the real `toolhub serve`, real servers behind it, and before it the official
//! conformance suites, the SDKs that people use, and clients of our own where every byte is looked at.
//! `cargo xtask peers` installs what others wrote.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation fails the test with its message"
)]

mod access;
mod access_changes;
mod access_commands;
mod access_log;
mod access_rules;
mod api_description;
mod attacks_authority;
mod attacks_budgets;
mod attacks_connections;
mod attacks_console;
mod attacks_disclosure;
mod attacks_encoding;
mod attacks_http_servers;
mod attacks_key_names;
mod attacks_keys;
mod attacks_names;
mod attacks_origin;
mod attacks_quotas;
mod attacks_resource_uris;
mod attacks_servers;
mod attacks_sessions;
mod attacks_state;
mod attacks_subscriptions;
mod attacks_tasks;
mod attacks_through_hub;
mod attacks_views;
mod audit_surfaces;
mod caller_credentials;
mod capabilities;
mod client_behavior;
mod code_mode_tasks;
mod collector;
mod concurrent_callers;
mod conformance;
mod console;
mod console_calls;
mod console_clients;
mod console_people;
mod console_questions;
mod console_replicas;
mod console_servers;
mod console_settings;
mod console_words;
mod error_responses;
mod examples;
mod fast_path;
#[cfg(target_arch = "x86_64")]
mod held_calls;
mod hub_faults;
#[cfg(target_arch = "x86_64")]
mod identity_provider;
mod lossless;
mod many_clients;
mod memory_bounds;
mod metrics;
mod nested_calls;
mod offers;
mod portable_types;
mod profiles;
mod raw_client;
mod real_clients;
mod reload;
mod replica_link;
mod replica_link_faults;
#[cfg(target_arch = "x86_64")]
mod replicas;
mod restarts;
mod running_hub;
mod rust_sdk;
#[cfg(target_arch = "x86_64")]
mod script_approvals;
mod scripts;
mod secrets;
mod serve_check;
mod serving;
mod settings;
mod shutdown;
mod skill_scripts;
mod skills;
mod streams;
#[cfg(target_arch = "x86_64")]
mod team_access;
mod through_hub;
mod traces;
mod wire;
