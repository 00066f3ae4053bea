//! Attacks on workspace trust: a folder written by an attacker runs no program, contacts no address and reads no secret, unless
//! the owner trusted exactly these contents.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod binding;
mod every_command;
mod hidden_files;
mod hostile;
mod hub_programs;
mod loaded_files;
mod messages;
mod own_servers;
mod own_trusted;
mod unknown_programs;
