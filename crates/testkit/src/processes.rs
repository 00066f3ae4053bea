//! Lists processes from `/proc`, to check that no process is left behind.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

/// Whether `pid` is running; a zombie is not.
#[must_use]
pub fn alive(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Whether `pid` is a zombie.
#[must_use]
pub fn zombie(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat.state == 'Z')
}

/// The direct children of `pid`, including zombies, which are leaks, too.
#[must_use]
pub fn children_of(pid: u32) -> Vec<u32> {
    all().filter(|child| stat(*child).is_some_and(|stat| stat.parent == pid)).collect()
}

/// The running processes with `env_name=env_value` in their initial environment, even if they were reparented.
#[must_use]
pub fn with_marker(env_name: &str, env_value: &str) -> Vec<u32> {
    let variable = format!("{env_name}={env_value}");
    all()
        .filter(|pid| {
            environment(*pid).split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
                && alive(*pid)
        })
        .collect()
}

/// Waits until `pid` has ended; `false` after `timeout`.
#[must_use]
pub fn gone_within(pid: u32, timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    while alive(pid) {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Reads the environment; retries during exec, when it is empty for a moment.
fn environment(pid: u32) -> Vec<u8> {
    for _ in 0..20 {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        // Kernel threads and processes of other users have no readable `exe`.
        let starting =
            environment.is_empty() && alive(pid) && fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        if !starting {
            return environment;
        }
        thread::sleep(Duration::from_millis(1));
    }
    Vec::new()
}

struct Stat {
    state: char,
    parent: u32,
}

/// The process name may contain any character, so the fields are read after the last `)`.
fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    Some(Stat { state: fields.next()?.chars().next()?, parent: fields.next()?.parse().ok()? })
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
