//! Buffers finished calls for the database. Each I/O thread appends a call to its own journal, which survives the
//! end of the process, and adds it to a block; sealed blocks wait here for the writer. The buffer is bounded: beyond
//! the soft limit callers wait, and beyond the hard limit calls are counted without their details, unless they are
//! audited.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use toolhub_core::BoxFuture;
use toolhub_core::call_log::{CallEnd, CallStart};
use toolhub_core::io_thread::PerIoThread;
use toolhub_core::outcome::AttemptRecord;

use crate::blocks::{Block, BlockBuilder, frame};
use crate::journal::{JournalFolder, JournalKind, Tail};
use crate::options::{DetailLevel, Durability};
use crate::pending_statistics::PendingStatistics;

/// Number of waiting bytes from which callers wait.
const SOFT_LIMIT_BYTES: usize = 24 << 20;
/// Number of waiting bytes from which calls are counted without their details.
const HARD_LIMIT_BYTES: usize = 32 << 20;
/// Maximum time that a call waits for the database.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The same for an audited call. Afterwards it runs and is kept in memory and journal: no call may be missing in the
/// audit log, and this pause bounds how much can accumulate.
const MAX_AUDITED_WAIT: Duration = Duration::from_secs(60);
/// With [`DetailLevel::Sample`]: maximum number of calls stored with details between two writes, which are 50 ms apart.
const MAX_SAMPLED: u32 = 100;
/// Maximum bytes of blocks in one transaction, unless a caller waits for all of them.
const MAX_GROUP_BYTES: usize = 8 << 20;

/// The calls that one I/O thread has recorded since the last write.
#[derive(Debug, Default)]
struct ThreadBuffer {
    builder: BlockBuilder,
    tail: Option<Tail>,
    /// Statistics of calls without details.
    counted: PendingStatistics,
    dropped: u64,
}

impl ThreadBuffer {
    fn is_empty(&self) -> bool {
        self.builder.is_empty() && self.dropped == 0
    }

    fn add(&mut self, start: &CallStart, end: &CallEnd) {
        let entry = self.builder.add(start, end);
        let Some(tail) = &mut self.tail else { return };
        let output = end.output.as_ref().map_or("", |output| output.get()).as_bytes();
        let header = frame::header(entry, output);
        let mut parts = [IoSlice::new(&header), IoSlice::new(entry), IoSlice::new(output)];
        // If it cannot be appended, the call is still in the block.
        if let Ok(range) = tail.append(&mut parts) {
            self.builder.journaled(range);
        }
    }

    /// Takes the current block. A block never spans two files.
    fn seal(&mut self) -> Option<Block> {
        let block = self.builder.seal();
        if let Some(tail) = &mut self.tail
            && tail.is_long()
        {
            tail.rotate();
        }
        block
    }
}

/// The content of one transaction.
#[derive(Debug, Default)]
pub(crate) struct RecordedCalls {
    pub(crate) blocks: Vec<Block>,
    /// Statistics of calls without details.
    pub(crate) counted: PendingStatistics,
}

impl RecordedCalls {
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.counted.is_empty()
    }
}

/// Collects finished calls.
#[derive(Debug)]
pub(crate) struct Recorder {
    buffers: PerIoThread<Mutex<ThreadBuffer>>,
    sealed: Mutex<(VecDeque<Block>, PendingStatistics)>,
    /// Bytes in `sealed` and in blocks that the writer has taken.
    waiting_bytes: AtomicUsize,
    drained: Notify,
    detail: DetailLevel,
    /// Calls belong in the audit log: none is stored without details.
    audit: bool,
    sampled: AtomicU32,
    dropped: AtomicU64,
    closed: AtomicBool,
}

impl Recorder {
    /// With `journal`, every call survives the end of the process once it is added.
    pub(crate) fn new(detail: DetailLevel, journal: Option<&Arc<JournalFolder>>, audit: bool) -> Self {
        let detail = if audit { DetailLevel::All } else { detail };
        let buffer = || {
            let tail = |folder| Tail::new(Arc::clone(folder), JournalKind::Calls, Durability::Program);
            let builder = BlockBuilder::new(audit);
            Mutex::new(ThreadBuffer { builder, tail: journal.map(tail), ..ThreadBuffer::default() })
        };
        Self {
            buffers: PerIoThread::with(buffer),
            sealed: Mutex::default(),
            waiting_bytes: AtomicUsize::new(0),
            drained: Notify::new(),
            detail,
            audit,
            sampled: AtomicU32::new(0),
            dropped: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Adds a finished call. Returns whether it is the first of its thread since the last write, so that the writer
    /// must be woken.
    pub(crate) fn add(&self, start: &CallStart, end: &CallEnd) -> bool {
        let mut buffer = lock(self.buffers.current());
        let was_empty = buffer.is_empty();
        if self.closed.load(Ordering::Relaxed)
            || (!self.audit && self.waiting_bytes.load(Ordering::Relaxed) >= HARD_LIMIT_BYTES)
        {
            drop(buffer);
            return self.count_lost(start, end);
        }
        buffer.add(start, end);
        if self.detail == DetailLevel::Sample {
            self.sampled.fetch_add(1, Ordering::Relaxed);
        }
        if buffer.builder.is_full() {
            let block = buffer.seal();
            drop(buffer);
            self.push(block);
        }
        was_empty
    }

    /// Counts a call without its details. Returns the same as [`Recorder::add`].
    pub(crate) fn count(&self, attempts: &[AttemptRecord], at: SystemTime) -> bool {
        let mut buffer = lock(self.buffers.current());
        let was_empty = buffer.is_empty();
        buffer.counted.count_tried(attempts, at);
        buffer.dropped += 1;
        was_empty
    }

    /// Counts a call whose details cannot be stored. Returns the same as [`Recorder::add`].
    pub(crate) fn count_lost(&self, start: &CallStart, end: &CallEnd) -> bool {
        let mut buffer = lock(self.buffers.current());
        let was_empty = buffer.is_empty();
        buffer.counted.count(&end.attempts, start.at);
        buffer.dropped += 1;
        was_empty
    }

    /// Whether to store the details of a successful call that changes nothing.
    pub(crate) fn should_store_details(&self) -> bool {
        self.detail == DetailLevel::All || self.sampled.load(Ordering::Relaxed) < MAX_SAMPLED
    }

    /// Waits while too many bytes wait for the database; `None` if that is not the case.
    pub(crate) fn wait_for_capacity(&self) -> Option<BoxFuture<'_, ()>> {
        if !self.is_behind() {
            return None;
        }
        Some(Box::pin(async {
            let drained = async {
                loop {
                    let notified = self.drained.notified();
                    if !self.is_behind() {
                        return;
                    }
                    notified.await;
                }
            };
            // After the timeout the call runs, and may be counted without its details.
            let max_wait = if self.audit { MAX_AUDITED_WAIT } else { MAX_WAIT };
            let _ = tokio::time::timeout(max_wait, drained).await;
        }))
    }

    fn is_behind(&self) -> bool {
        self.waiting_bytes.load(Ordering::Relaxed) >= SOFT_LIMIT_BYTES && !self.closed.load(Ordering::Relaxed)
    }

    /// Seals the blocks of all threads. [`Recorder::take`] then returns everything added before.
    pub(crate) fn seal(&self) {
        self.sampled.store(0, Ordering::Relaxed);
        for buffer in self.buffers.all() {
            let mut buffer = lock(buffer);
            let (counted, dropped) =
                (std::mem::take(&mut buffer.counted), std::mem::take(&mut buffer.dropped));
            let block = buffer.seal();
            drop(buffer);
            self.dropped.fetch_add(dropped, Ordering::Relaxed);
            self.push(block);
            if !counted.is_empty() {
                lock(&self.sealed).1.add(counted);
            }
        }
    }

    fn push(&self, block: Option<Block>) {
        if let Some(block) = block {
            self.waiting_bytes.fetch_add(block.bytes(), Ordering::Relaxed);
            lock(&self.sealed).0.push_back(block);
        }
    }

    /// Takes sealed blocks: all of them, or up to the usual size of one transaction.
    pub(crate) fn take(&self, takes_all: bool) -> RecordedCalls {
        let mut sealed = lock(&self.sealed);
        let (mut blocks, mut bytes) = (Vec::new(), 0);
        while (takes_all || bytes < MAX_GROUP_BYTES)
            && let Some(block) = sealed.0.pop_front()
        {
            bytes += block.bytes();
            blocks.push(block);
        }
        RecordedCalls { blocks, counted: std::mem::take(&mut sealed.1) }
    }

    /// Whether there are sealed blocks.
    pub(crate) fn has_sealed(&self) -> bool {
        let sealed = lock(&self.sealed);
        !sealed.0.is_empty() || !sealed.1.is_empty()
    }

    /// Confirms that these are in the database.
    pub(crate) fn written(&self, recorded: &RecordedCalls) {
        let bytes: usize = recorded.blocks.iter().map(Block::bytes).sum();
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.drained.notify_waiters();
    }

    /// Returns blocks that could not be written now.
    pub(crate) fn put_back(&self, recorded: RecordedCalls) {
        let mut sealed = lock(&self.sealed);
        for block in recorded.blocks.into_iter().rev() {
            sealed.0.push_front(block);
        }
        sealed.1.add(recorded.counted);
    }

    /// Returns blocks that the database rejects permanently: details are lost, statistics are kept.
    pub(crate) fn drop_details(&self, recorded: RecordedCalls) {
        self.written(&recorded);
        let mut sealed = lock(&self.sealed);
        for block in recorded.blocks {
            self.dropped.fetch_add(block.calls as u64, Ordering::Relaxed);
            sealed.1.add(block.counted);
        }
        sealed.1.add(recorded.counted);
    }

    /// Number of calls counted without their details.
    pub(crate) fn dropped(&self) -> u64 {
        let buffers: u64 = self.buffers.all().map(|buffer| lock(buffer).dropped).sum();
        self.dropped.load(Ordering::Relaxed) + buffers
    }

    /// Rejects new calls.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.drained.notify_waiters();
    }

    /// Gives up unwritten calls: their journals are kept for the next store that is opened, and calls without a
    /// journal are at least counted, if the database accepts that.
    pub(crate) fn keep_for_replay(&self, recorded: RecordedCalls) {
        let (journaled, others): (Vec<_>, Vec<_>) =
            recorded.blocks.into_iter().partition(|block| block.journal.is_some());
        for range in journaled.iter().filter_map(|block| block.journal.as_ref()) {
            range.segment.keep_for_replay();
        }
        // Without such blocks the counts are dropped: put back, they would be taken and given up again for ever.
        if !others.is_empty() {
            self.drop_details(RecordedCalls { blocks: others, counted: recorded.counted });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The state is consistent between any two statements, so that a poisoned lock is still usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolhub_core::RawJson;

    use crate::blocks::frame;
    use crate::blocks::tests::call;
    use crate::journal::folder::journals_of_dead_stores;
    use crate::owner::OwnerId;

    fn long_call(bytes: usize) -> (CallStart, CallEnd) {
        let (start, mut end) = call("t");
        end.output = Some(RawJson::parse(format!("\"{}\"", "x".repeat(bytes))).unwrap());
        (start, end)
    }

    #[tokio::test]
    async fn callers_wait_above_the_soft_limit_without_loss() {
        let recorder = Recorder::new(DetailLevel::All, None, false);
        assert!(recorder.wait_for_capacity().is_none());
        let (start, end) = long_call(1 << 20);
        for _ in 0..SOFT_LIMIT_BYTES >> 20 {
            recorder.add(&start, &end);
        }
        let mut capacity = recorder.wait_for_capacity().expect("must wait");
        assert!(futures_util::poll!(&mut capacity).is_pending());
        let taken = recorder.take(false);
        assert!(futures_util::poll!(&mut capacity).is_pending(), "taken is not written");
        recorder.written(&taken);
        capacity.await;
        assert!(recorder.wait_for_capacity().is_none());
        assert_eq!(recorder.dropped(), 0);
    }

    #[test]
    fn counts_dropped_calls_beyond_the_hard_limit() {
        let recorder = Recorder::new(DetailLevel::All, None, false);
        let (start, end) = long_call(1 << 20);
        for _ in 0..(HARD_LIMIT_BYTES >> 20) + 3 {
            recorder.add(&start, &end);
        }
        assert_eq!(recorder.dropped(), 3);
        recorder.seal();
        let taken = recorder.take(true);
        let calls: usize = taken.blocks.iter().map(|block| block.calls).sum();
        assert_eq!((calls, taken.counted.sorted()[0].tally().total()), (HARD_LIMIT_BYTES >> 20, 3));
    }

    #[test]
    fn audited_calls_are_neither_sampled_nor_dropped() {
        let recorder = Recorder::new(DetailLevel::Sample, None, true);
        let (start, end) = long_call(1 << 20);
        for _ in 0..(HARD_LIMIT_BYTES >> 20) + 3 {
            assert!(recorder.should_store_details());
            recorder.add(&start, &end);
        }
        assert_eq!(recorder.dropped(), 0);
        recorder.seal();
        let taken = recorder.take(true);
        let calls: usize = taken.blocks.iter().map(|block| block.calls).sum();
        assert_eq!(calls, (HARD_LIMIT_BYTES >> 20) + 3);
        assert!(
            taken.blocks.iter().all(|block| block.records.is_some()),
            "also after the first block was sealed"
        );
    }

    #[test]
    fn bounds_sampled_calls_between_writes() {
        let recorder = Recorder::new(DetailLevel::Sample, None, false);
        let (start, end) = call("t");
        for _ in 0..MAX_SAMPLED {
            assert!(recorder.should_store_details());
            recorder.add(&start, &end);
        }
        assert!(!recorder.should_store_details());
        recorder.seal();
        assert!(recorder.should_store_details());
    }

    #[test]
    fn journal_contains_every_call_until_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let own = OwnerId(7);
        let journals = Arc::new(JournalFolder::new(folder.path(), own));
        let recorder = Recorder::new(DetailLevel::All, Some(&journals), false);
        let files = || std::fs::read_dir(folder.path().join("running")).unwrap().count();
        let (start, end) = long_call(10 << 10);
        for _ in 0..1_000 {
            recorder.add(&start, &end);
        }
        recorder.seal();
        let taken = recorder.take(true);
        assert!(files() > 3, "ten megabytes are several segments");
        for block in &taken.blocks {
            let range = block.journal.as_ref().unwrap();
            let name = format!("{:016x}.{}.calls", own.0, range.segment.number());
            let bytes = std::fs::read(folder.path().join("running").join(name)).unwrap();
            let part = &bytes[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
            assert_eq!(frame::read(part).count(), block.calls);
        }
        assert!(
            journals_of_dead_stores(folder.path(), OwnerId(8), JournalKind::Calls).is_empty(),
            "its owner lives"
        );
        recorder.written(&taken);
        drop(taken);
        assert!(files() <= 2, "the lock and the current segment");
        drop((recorder, journals));
        assert_eq!(files(), 0);
    }
}
