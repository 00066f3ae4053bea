//! Reads worksheets, cells, rows, formats and summaries.

pub(crate) mod aggregation;
pub(crate) mod cell_like_name;
pub(crate) mod cell_value;
pub(crate) mod entry;
pub(crate) mod format_value;
pub(crate) mod header_value;
pub(crate) mod sheet;
pub(crate) mod sheet_name;
pub(crate) mod sheet_rename;
