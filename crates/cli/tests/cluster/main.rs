//! Several machines on one: replicas and workers as processes, with a real PostgreSQL and a real NATS server.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod calls;
mod faults;
mod placement;
mod test_cluster;
