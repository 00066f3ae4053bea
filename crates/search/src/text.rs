//! Tokenization: splits text into words, identifiers into their parts, and Chinese into characters.

mod letters;
mod scan;
mod stem;
mod stop;
mod term;

pub(crate) use letters::letters_of;
pub(crate) use scan::{TermScript, TextRun, is_han, runs};
pub(crate) use stem::Stemmer;
pub(crate) use stop::{is_measure_word, is_request_word, is_stop_gram, is_stop_word};
pub(crate) use term::{Term, TermMap};
