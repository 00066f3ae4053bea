//! Files that calls are appended to before the database has them.

pub(crate) mod folder;
mod segment;

pub(crate) use folder::{JournalFolder, Kind};
pub(crate) use segment::{JournalRange, Segment, Tail};
