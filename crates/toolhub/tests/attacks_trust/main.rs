//! Attacks on workspace trust: a folder that an attacker wrote runs nothing, contacts nothing and learns nothing, unless
//! its owner trusted exactly this.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod binding;
mod every_command;
mod hidden_files;
mod hostile;
mod own_servers;
mod what_is_said;
