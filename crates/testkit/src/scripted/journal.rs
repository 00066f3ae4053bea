//! Reads the journal of a scripted server, which records received messages.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

const POLL: Duration = Duration::from_millis(10);

/// The journal of one or more scripted servers, as of the last read.
///
/// Each entry has `t_ms` (Unix time) and `pid`, and either `message` (with `headers` over HTTP), `invalid` (input that
/// is not JSON) or `event`: `start`, `eof`, `term`, `exit` (`code`), `disconnect` (`method`, `id`), `child` (`child`),
/// `http` (`verb`, `path`, `headers`: anything but a POST to the endpoint).
#[derive(Debug, Clone)]
pub struct Journal {
    path: PathBuf,
    entries: Vec<Value>,
}

impl Journal {
    /// Reads the journal; a missing file is empty.
    #[must_use]
    pub fn read(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        let text = fs::read_to_string(&path).unwrap_or_default();
        // An incomplete line has no newline yet.
        let complete_lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let entries = complete_lines
            .map(|line| serde_json::from_str(line).expect("a journal's line is JSON"))
            .collect();
        Self { path, entries }
    }

    /// Reads the file again.
    pub fn refresh(&mut self) {
        *self = Self::read(&self.path);
    }

    /// All entries, in order.
    #[must_use]
    pub fn entries(&self) -> &[Value] {
        &self.entries
    }

    /// The messages received, in order.
    #[must_use]
    pub fn messages(&self) -> Vec<&Value> {
        self.entries.iter().filter_map(|entry| entry.get("message")).collect()
    }

    /// The methods of the requests and notifications received, in order.
    #[must_use]
    pub fn methods(&self) -> Vec<&str> {
        self.messages().into_iter().filter_map(|message| message["method"].as_str()).collect()
    }

    /// How many requests or notifications of this method were received.
    #[must_use]
    pub fn count_method(&self, name: &str) -> usize {
        self.methods().into_iter().filter(|method| *method == name).count()
    }

    /// The entries of this event, in order.
    #[must_use]
    pub fn events(&self, name: &str) -> Vec<&Value> {
        self.entries.iter().filter(|entry| entry["event"] == name).collect()
    }

    /// The PIDs in the journal, each once, in the order of their first entry.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        let mut pids = Vec::new();
        for pid in self.entries.iter().filter_map(|entry| u32::try_from(entry["pid"].as_u64()?).ok()) {
            if !pids.contains(&pid) {
                pids.push(pid);
            }
        }
        pids
    }

    /// Reads again until `predicate` is true; panics with the entries after `timeout`. Blocks the thread: use
    /// [`Self::wait_for_async`] in async tests.
    pub fn wait_for(&mut self, predicate: impl Fn(&Self) -> bool, timeout: Duration) -> &Self {
        let deadline = Instant::now() + timeout;
        while !self.satisfies(&predicate, deadline) {
            thread::sleep(POLL);
        }
        self
    }

    /// [`Self::wait_for`] for async tests. Waits in real time even if the test's clock is paused.
    pub async fn wait_for_async(&mut self, predicate: impl Fn(&Self) -> bool, timeout: Duration) -> &Self {
        let deadline = Instant::now() + timeout;
        while !self.satisfies(&predicate, deadline) {
            tokio::task::spawn_blocking(|| thread::sleep(POLL)).await.expect("sleeping does not panic");
        }
        self
    }

    fn satisfies(&mut self, predicate: impl Fn(&Self) -> bool, deadline: Instant) -> bool {
        self.refresh();
        let satisfies = predicate(self);
        assert!(
            satisfies || Instant::now() < deadline,
            "the journal never showed what was expected: {:#?}",
            self.entries
        );
        satisfies
    }
}
