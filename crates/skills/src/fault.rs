//! What is wrong with a skill: where, how much it matters, and what to write instead.

use std::path::{Path, PathBuf};

use toolhub_core::lang::{Lang, Say, Text};

/// How much a fault matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// It could be better.
    Advice,
    /// It is against the rules, and is read all the same.
    Wrong,
    /// The skill cannot be used.
    Fatal,
}

impl Weight {
    /// Its name, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Advice => "advice",
            Self::Wrong => "wrong",
            Self::Fatal => "fatal",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// In which file.
    pub file: PathBuf,
    /// On which line, from 1.
    pub line: Option<usize>,
    /// How much it matters.
    pub weight: Weight,
    /// What is wrong.
    pub what: Text,
    /// What to write instead, or to do.
    pub instead: Text,
}

impl Fault {
    pub(crate) fn new(file: &Path, weight: Weight, (what, instead): (Text, Text)) -> Self {
        Self { file: file.to_owned(), line: None, weight, what, instead }
    }

    pub(crate) fn at(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    /// What is wrong and what to do, without the place.
    pub fn advice(&self, lang: Lang) -> String {
        let (what, instead) = (self.what.say(lang), self.instead.say(lang));
        lang.pick(format!("{what}; {instead}"), format!("{what}；{instead}"))
    }
}

impl Say for Fault {
    fn say(&self, lang: Lang) -> String {
        let place = match self.line {
            Some(line) => format!("{}:{line}", self.file.display()),
            None => self.file.display().to_string(),
        };
        format!("{place}: {}", self.advice(lang))
    }
}
