//! Reads worksheets, cells, rows, formats and summaries.

pub(crate) mod cell_value;
pub(crate) mod entry;
pub(crate) mod format_value;
pub(crate) mod group;
pub(crate) mod header_value;
pub(crate) mod sheet;
pub(crate) mod sheet_renamed;
