//! Input from the person at the terminal: lines, answers to elicitations, and a browser.

pub(crate) mod browser;
pub(crate) mod elicitation;
pub(crate) mod input;
pub(crate) mod line_editor;
