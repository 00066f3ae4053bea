//! Splits a request into tokens, literals, numbers, names and clauses, with the word tables of both languages.

pub(crate) mod back_reference;
pub(crate) mod file_extension;
pub(crate) mod filler;
pub(crate) mod han_path;
pub(crate) mod implied;
pub(crate) mod labels;
pub(crate) mod lexicon;
pub(crate) mod literal;
pub(crate) mod literal_scanner;
pub(crate) mod mention;
pub(crate) mod name;
pub(crate) mod number;
pub(crate) mod number_words;
pub(crate) mod parse;
pub(crate) mod series;
pub(crate) mod spaced_path;
pub(crate) mod split;
pub(crate) mod stop_words;
pub(crate) mod token;
pub(crate) mod units;
