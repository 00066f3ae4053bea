//! What runs on this machine, read from `/proc`: tests assert with it that no process is left behind.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

/// Whether `pid` runs; a zombie that only waits to be collected does not.
#[must_use]
pub fn alive(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Whether `pid` is a zombie: it ended, and its parent has not collected it.
#[must_use]
pub fn zombie(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat.state == 'Z')
}

/// The direct children of `pid`, zombies included: an uncollected child is a leak too.
#[must_use]
pub fn children_of(pid: u32) -> Vec<u32> {
    all().filter(|child| stat(*child).is_some_and(|stat| stat.parent == pid)).collect()
}

/// The living processes started with `env_name=env_value` in their environment, wherever they have been moved to.
#[must_use]
pub fn with_marker(env_name: &str, env_value: &str) -> Vec<u32> {
    let wanted = format!("{env_name}={env_value}");
    all()
        .filter(|pid| {
            environment(*pid).split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()) && alive(*pid)
        })
        .collect()
}

/// Waits until `pid` no longer runs; false when it still does after `timeout`.
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

/// A program that is just being started has no environment for a moment, and is looked at again.
fn environment(pid: u32) -> Vec<u8> {
    for _ in 0..20 {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        // The kernel's own threads have neither, and other users' processes show neither.
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

/// The program's name stands in parentheses and may hold anything, so the fields are read after the last one.
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
