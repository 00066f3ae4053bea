//! Output: tables, colours, progress and text of others made harmless.

pub(crate) mod findings;
pub(crate) mod listing_progress;
pub(crate) mod live;
pub(crate) mod plural;
pub(crate) mod record_table;
pub(crate) mod sanitize;
pub(crate) mod screen;
pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod trace;
