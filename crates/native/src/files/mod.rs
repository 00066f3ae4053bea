//! `read_file` and `list_files`: files inside the folders that the owner allows, and no others.

mod decode;
mod folders;
mod glob;
mod guess;
mod list;
mod read;

pub use folders::Folders;
pub use list::list_files;
pub use read::read_file;

use toolhub_core::lang::Text;
use toolhub_core::{RawJson, RawObject, ToolError, ToolOutput};

use crate::in_chinese::block;

/// An output of several texts, each a block of its own: what was asked for, then what is to be said about it.
fn texts(texts: impl IntoIterator<Item = Text>) -> Result<ToolOutput, ToolError> {
    let blocks: Vec<RawObject> = texts.into_iter().map(|text| block(&text)).collect();
    ToolOutput::from_raw(RawObject::default().with("content", RawJson::of(&blocks)).into_raw())
        .ok_or(ToolError::Internal)
}

#[cfg(test)]
mod tests;
