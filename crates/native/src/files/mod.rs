//! `read_file` and `list_files`: access to files inside the allowed folders only.

mod decode;
mod folders;
mod glob;
mod guess;
mod list;
mod read;

pub use folders::Folders;
pub use list::list_files;
pub use read::read_file;

use toolhub_core::lang::LocalizedText;
use toolhub_core::{RawJson, RawObject, ToolError, ToolOutput};

use crate::localized_output::block;

/// An output with a block per text: the content, then notes about it.
fn texts(texts: impl IntoIterator<Item = LocalizedText>) -> Result<ToolOutput, ToolError> {
    let blocks: Vec<RawObject> = texts.into_iter().map(|text| block(&text)).collect();
    ToolOutput::from_raw(RawObject::default().with("content", RawJson::of(&blocks)).into_raw())
        .ok_or(ToolError::Internal)
}

/// The error of a call that is cancelled.
fn cancelled() -> LocalizedText {
    LocalizedText::new("cancelled", "已取消")
}

#[cfg(test)]
mod tests;
