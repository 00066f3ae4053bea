//! The owner's own servers in the folder of a project: whether they start there, and what they load from it.

pub(super) mod binding;
pub(super) mod entry;
mod git_folder;
pub(super) mod steering;
