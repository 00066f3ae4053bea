//! The journal of a run: what a re-run after a crash needs in order to send no call twice.
//!
//! A run is a function of its code, input, tools, seed and clock, and of the order in which answers and ends of sleeps
//! reach it. The journal holds all of that. For a call that may change something, `begun` is written before it is sent, and
//! `answered` before the script sees the answer. A call that only reads may be made again: its entries are buffered, and are
//! written at the latest before the next call that may change something is sent. So what is lost in a crash is a suffix of
//! the run in which nothing was changed.

use std::io;

use serde::{Deserialize, Serialize};
use toolhub_core::{BoxFuture, RawJson};

use crate::protocol::CallError;
use crate::report::ScriptReport;

/// One entry of a journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalEntry {
    /// The first entry.
    Started(RunHeader),
    /// A call is about to be sent.
    Begun(CallRecord),
    /// A call has ended.
    Answered(AnswerRecord),
    /// A sleep has ended.
    Woken(WakeRecord),
    /// The last entry: the run has ended.
    Finished(Box<ScriptReport>),
}

/// What determines a run, apart from the answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunHeader {
    /// Hash of the code, the input and the names of the tools.
    pub digest: String,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The time at the start, in milliseconds since 1970.
    pub clock: i64,
    /// The arguments of the call that runs the script, as the caller of the runner gave them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<RawJson>,
}

/// A call that is about to be sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallRecord {
    /// The number of the call.
    pub id: u32,
    /// The unique name of the tool.
    pub tool: String,
    /// The arguments.
    pub arguments: RawJson,
}

/// The end of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The number of the call.
    pub id: u32,
    /// The value or the error.
    pub result: AnswerResult,
}

/// A value or an error.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerResult {
    /// The value.
    Value(RawJson),
    /// The error.
    Error(CallError),
}

/// The end of a sleep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WakeRecord {
    /// The number of the sleep.
    pub id: u32,
}

/// How an entry must be stored before `append` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryDurability {
    /// It may be lost with this process. It is stored before any later entry is.
    Buffered,
    /// It survives the end of this process.
    Process,
    /// It survives a power failure, too: used for calls that may change something.
    Disk,
}

/// Where the journal of one run is kept. It must not be used by two runs at the same time.
pub trait Journal: Send {
    /// The entries of an earlier run; empty for a new one. Called once, before the first `append`.
    fn take_entries(&mut self) -> Vec<JournalEntry>;

    /// Appends an entry. An error ends the run before the call is sent, or before the script sees the answer.
    fn append<'a>(
        &'a mut self,
        entry: &'a JournalEntry,
        durability: EntryDurability,
    ) -> BoxFuture<'a, io::Result<()>>;

    /// Stores the entries that are buffered, so that they survive the end of this process.
    fn flush(&mut self) -> io::Result<()>;
}
