//! What the contents of a request suggest beyond its words: arithmetic wants a calculator, 几点 a clock.

use super::mention::Reading;
use super::parameter::Parameter;
use super::role::Role;

/// A need that is told from the contents of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Calculator,
    Clock,
}

const CLOCK_WORDS: [&str; 17] = [
    "what time",
    "current time",
    "time is it",
    "local time",
    "time now",
    "what day is",
    "which day is",
    "what date",
    "today's date",
    "几点",
    "什么时间",
    "现在时间",
    "当前时间",
    "几号",
    "星期几",
    "现在的时间",
    "当地时间",
];

impl Need {
    /// What to search for.
    fn query(self) -> &'static str {
        match self {
            Self::Calculator => "calculate an arithmetic expression",
            Self::Clock => "tell the current time in a time zone or city",
        }
    }

    /// Whether a tool with these parameters can meet it.
    pub(super) fn is_met(self, parameters: &[Parameter]) -> bool {
        let wanted = match self {
            Self::Calculator => Role::Expression,
            Self::Clock => Role::Zone,
        };
        let others =
            parameters.iter().filter(|parameter| parameter.required && parameter.role != wanted).count();
        others == 0 && parameters.iter().any(|parameter| parameter.role == wanted)
    }
}

/// The needs of a text.
pub(super) fn needs(reading: &Reading<'_>) -> Vec<Need> {
    let lower = reading.text.to_lowercase();
    let mut found = Vec::new();
    if !reading.expressions.is_empty() {
        found.push(Need::Calculator);
    }
    if CLOCK_WORDS.iter().any(|word| lower.contains(word)) {
        found.push(Need::Clock);
    }
    found
}

/// What to search for beside the words of a text.
pub(super) fn queries(reading: &Reading<'_>) -> Vec<&'static str> {
    needs(reading).into_iter().map(Need::query).collect()
}

pub(super) fn query(need: Need) -> &'static str {
    need.query()
}
