//! What an earlier run left in its journal: which calls need not be sent again, and in which order the script saw what.

use std::collections::{BTreeMap, VecDeque};

use crate::journal::{AnswerRecord, CallRecord, JournalEntry, RunHeader, WakeRecord};
use crate::report::ScriptReport;

/// The journal of an earlier run.
#[derive(Debug)]
pub(crate) enum EarlierRun {
    /// There is none.
    New,
    /// The run has ended; its report is final.
    Finished(Box<ScriptReport>),
    /// The run was interrupted and can be repeated.
    Interrupted(Replay),
    /// These calls were sent and have no end.
    Unknown(Vec<CallRecord>),
    /// The entries contradict each other.
    Damaged,
}

/// A run that was interrupted. All its calls have an end.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) started: RunHeader,
    /// Calls that were sent, by number.
    begun: BTreeMap<u32, CallRecord>,
    /// What the script saw, in this order.
    deliveries: VecDeque<Delivery>,
}

/// Something that the script saw.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// The end of a call.
    Answer(AnswerRecord),
    /// The end of a sleep.
    Wake(WakeRecord),
}

impl EarlierRun {
    pub(crate) fn read(entries: Vec<JournalEntry>) -> Self {
        let mut entries = entries.into_iter();
        let started = match entries.next() {
            None => return Self::New,
            Some(JournalEntry::Started(started)) => started,
            Some(_) => return Self::Damaged,
        };
        let mut begun = BTreeMap::new();
        let mut open = BTreeMap::new();
        let mut deliveries = VecDeque::new();
        for entry in entries {
            match entry {
                JournalEntry::Begun(call) => {
                    if begun.insert(call.id, call.clone()).is_some() {
                        return Self::Damaged;
                    }
                    open.insert(call.id, call);
                }
                JournalEntry::Answered(answer) => {
                    if open.remove(&answer.id).is_none() {
                        return Self::Damaged;
                    }
                    deliveries.push_back(Delivery::Answer(answer));
                }
                JournalEntry::Woken(woken) => deliveries.push_back(Delivery::Wake(woken)),
                // Calls that the script did not await have no end; the report names them.
                JournalEntry::Finished(report) => return Self::Finished(report),
                JournalEntry::Started(_) => return Self::Damaged,
            }
        }
        if !open.is_empty() {
            return Self::Unknown(open.into_values().collect());
        }
        Self::Interrupted(Replay { started, begun, deliveries })
    }
}

/// How a call of the script relates to the journal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum JournalMatch {
    /// The journal has the same call: it is not sent.
    Same,
    /// The journal has another call with this number.
    Other,
    /// The journal does not have it.
    New,
}

impl Replay {
    /// Compares a call of the script with the journal.
    pub(crate) fn compare(&self, call: &CallRecord) -> JournalMatch {
        match self.begun.get(&call.id) {
            None => JournalMatch::New,
            Some(begun) if begun.tool == call.tool && begun.arguments.get() == call.arguments.get() => {
                JournalMatch::Same
            }
            Some(_) => JournalMatch::Other,
        }
    }

    /// The recorded call with a number.
    pub(crate) fn begun(&self, id: u32) -> Option<&CallRecord> {
        self.begun.get(&id)
    }

    /// What the script must see next.
    pub(crate) fn next(&self) -> Option<&Delivery> {
        self.deliveries.front()
    }

    /// Takes what `next` returned.
    pub(crate) fn take(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use toolhub_core::RawJson;

    use super::*;
    use crate::journal::AnswerResult;
    use crate::report::{FailureKind, ScriptFailure};

    fn started() -> JournalEntry {
        JournalEntry::Started(RunHeader { digest: "d".to_owned(), seed: 1, clock: 2, arguments: None })
    }

    fn begun(id: u32) -> JournalEntry {
        JournalEntry::Begun(CallRecord { id, tool: "t".to_owned(), arguments: RawJson::empty_object() })
    }

    fn answered(id: u32) -> JournalEntry {
        JournalEntry::Answered(AnswerRecord { id, result: AnswerResult::Value(RawJson::null()) })
    }

    #[test]
    fn classifies_journals() {
        let report = ScriptReport::failed(ScriptFailure::new(FailureKind::Thrown, "".into()));
        let finished = || JournalEntry::Finished(Box::new(report.clone()));
        let name = |entries| match EarlierRun::read(entries) {
            EarlierRun::New => "new",
            EarlierRun::Finished(_) => "finished",
            EarlierRun::Interrupted(_) => "interrupted",
            EarlierRun::Unknown(_) => "unknown",
            EarlierRun::Damaged => "damaged",
        };
        for (entries, expect) in [
            (vec![], "new"),
            (vec![started()], "interrupted"),
            (vec![started(), begun(1)], "unknown"),
            (vec![started(), begun(1), begun(2), answered(2)], "unknown"),
            (vec![started(), begun(1), begun(2), answered(2), answered(1)], "interrupted"),
            (vec![started(), begun(1), finished()], "finished"),
            (vec![begun(1)], "damaged"),
            (vec![started(), started()], "damaged"),
            (vec![started(), answered(1)], "damaged"),
            (vec![started(), begun(1), answered(1), answered(1)], "damaged"),
            (vec![started(), begun(1), begun(1)], "damaged"),
        ] {
            let shown = format!("{entries:?}");
            assert_eq!(name(entries), expect, "{shown}");
        }
    }

    #[test]
    fn compares_calls_by_tool_and_arguments() {
        let EarlierRun::Interrupted(replay) = EarlierRun::read(vec![started(), begun(1), answered(1)]) else {
            panic!()
        };
        let call = |id, tool: &str, arguments: &str| CallRecord {
            id,
            tool: tool.to_owned(),
            arguments: RawJson::parse(arguments).unwrap(),
        };
        assert_eq!(replay.compare(&call(1, "t", "{}")), JournalMatch::Same);
        assert_eq!(replay.compare(&call(1, "u", "{}")), JournalMatch::Other);
        assert_eq!(replay.compare(&call(1, "t", "{\"a\":1}")), JournalMatch::Other);
        assert_eq!(replay.compare(&call(2, "t", "{}")), JournalMatch::New);
    }
}
