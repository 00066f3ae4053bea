//! Several machines on one: replicas and workers as processes, with a real PostgreSQL and a real NATS server.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failed expectation fails the test"
)]

mod cluster_calls;
mod cluster_chaos;
mod cluster_conformance;
mod cluster_console;
mod cluster_faults;
mod cluster_load_balancer;
mod cluster_placement;
mod cluster_scripts;
mod cluster_sessions;
mod cluster_skills;
mod cluster_tls;
mod test_cluster;
