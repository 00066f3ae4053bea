//! A diagnostic about a skill: location, severity and correction.

use std::path::{Path, PathBuf};

use toolhub_core::lang::{Lang, Localize, LocalizedText};

/// The severity of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A suggestion.
    Advice,
    /// A violation of the rules; the skill is usable all the same.
    Error,
    /// The skill cannot be used.
    Fatal,
}

impl Severity {
    /// The machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Advice => "advice",
            Self::Error => "wrong",
            Self::Fatal => "fatal",
        }
    }
}

/// A diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The severity.
    pub severity: Severity,
    /// What is wrong.
    pub problem: LocalizedText,
    /// The correction.
    pub remedy: LocalizedText,
}

impl Diagnostic {
    /// A fault of a file, with its correction.
    pub fn new(file: &Path, severity: Severity, problem: LocalizedText, remedy: LocalizedText) -> Self {
        Self { file: file.to_owned(), line: None, severity, problem, remedy }
    }

    /// Adds the line, from 1.
    #[must_use]
    pub fn at(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    /// The fault and its correction, without file and line.
    pub fn advice(&self, lang: Lang) -> String {
        let (problem, remedy) = (self.problem.localize(lang), self.remedy.localize(lang));
        lang.choose(format!("{problem}; {remedy}"), format!("{problem}；{remedy}"))
    }
}

impl Localize for Diagnostic {
    fn localize(&self, lang: Lang) -> String {
        let location = match self.line {
            Some(line) => format!("{}:{line}", self.file.display()),
            None => self.file.display().to_string(),
        };
        format!("{location}: {}", self.advice(lang))
    }
}
