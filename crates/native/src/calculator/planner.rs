//! The steps of a calculation while they are planned: operations and the variables for their results.

use toolhub_core::lang::LocalizedText;

use super::steps::{Operation, Step};
use super::tokens::Token;

pub(super) struct Planner<'a> {
    pub(super) tokens: &'a [Token],
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) steps: Vec<Step>,
    pub(super) names: usize,
}

impl Planner<'_> {
    /// Assigns the value of `text` to a new variable.
    pub(super) fn assign(&mut self, text: String) -> Result<String, LocalizedText> {
        check_length(&text)?;
        let name = self.name();
        self.steps.push(Step::Assign { name: name.clone(), text });
        Ok(name)
    }

    /// Assigns the result of `operation` to a new variable.
    pub(super) fn operation(&mut self, operation: Operation) -> String {
        let name = self.name();
        self.steps.push(Step::Operation { name: name.clone(), operation });
        name
    }

    /// A variable name that expressions cannot contain.
    fn name(&mut self) -> String {
        self.names += 1;
        format!("_v{}", self.names)
    }
}

/// Maximum number of pieces per fend expression: its stack use grows with them.
const MAX_PIECES: usize = 64;

pub(super) fn check_length(text: &str) -> Result<(), LocalizedText> {
    if text.split_whitespace().count() > MAX_PIECES {
        return Err(LocalizedText::new(
            "the expression is too long in one piece: put parentheses around its parts",
            "表达式一段太长：请用括号分段",
        ));
    }
    Ok(())
}
