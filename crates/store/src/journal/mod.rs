//! Journal files: calls are appended before they are written to the database.

pub(crate) mod folder;
mod segment;

pub(crate) use folder::{JournalFolder, JournalKind};
pub(crate) use segment::{JournalRange, Segment, Tail};
