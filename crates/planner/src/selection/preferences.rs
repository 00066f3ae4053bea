//! Which of several tools is preferred: the one with the best score, unless another one, whose score is not much lower, fits the
//! form of the request better.

use crate::assembly::expand_list::expand;
use crate::lexer::mention::ParsedText;
use crate::safety::request_scope::asks_for_all;
use crate::selection::choice::Choice;
use crate::selection::choice_check::is_list_of_one;
use crate::selection::intent_match::Agreement;
use crate::selection::verb_class::is_read_only;
use crate::selection::word_usage::{FULL_USE_THRESHOLD, used};
use crate::values::candidate::ArgumentValue;

/// Score by which an incomplete tool may be below one that gets no argument and still be preferred.
const INCOMPLETE_TOLERANCE: f32 = 0.5;
/// Score by which a complete tool may be below an incomplete one and still be preferred.
const COMPLETE_TOLERANCE: f32 = 0.25;
/// Score by which a read-only tool may be below one that changes something and still be preferred.
const READ_ONLY_TOLERANCE: f32 = 1.0;
/// Score by which a tool that needs one call may be below one that needs several and still be preferred.
const SINGLE_CALL_TOLERANCE: f32 = 1.2;
/// Score by which a tool that takes a single value may be below one that takes a list and still be preferred.
const SINGLE_VALUE_TOLERANCE: f32 = 0.5;
/// Minimum search confidence for a tool that gets no argument.
const MIN_CONFIDENCE_WITHOUT_ARGUMENT: f64 = 0.7;

/// The tools that fit a text, and the text.
pub(crate) struct FittingTools<'a> {
    pub(crate) choices: &'a [Choice],
    /// The text with the arguments.
    pub(crate) parsed: &'a ParsedText<'a>,
    /// The part of it with the action.
    pub(crate) clause: &'a str,
    pub(crate) has_verb: bool,
}

impl<'a> FittingTools<'a> {
    /// The preferred tool.
    pub(crate) fn preferred(&self) -> Option<&'a Choice> {
        // Each rule replaces what the rules before it prefer.
        let rules = [
            Self::prefer_read_only,
            Self::prefer_missing_argument,
            Self::prefer_complete,
            Self::prefer_without_parameters,
            Self::prefer_one_call,
            Self::prefer_single_value,
        ];
        let best = rules.iter().fold(self.with_best_score()?, |best, rule| rule(self, best).unwrap_or(best));
        let is_certain = !best.is_empty()
            || best.parameters.is_empty()
            || best.confidence >= MIN_CONFIDENCE_WITHOUT_ARGUMENT;
        is_certain.then_some(best)
    }

    /// The first one with the best score.
    fn with_best_score(&self) -> Option<&'a Choice> {
        self.choices.iter().reduce(|best, choice| if choice.score > best.score { choice } else { best })
    }

    /// The one with the best score among those that meet the condition, and are at most `tolerance` below `best`.
    fn instead_of(
        &self,
        best: &Choice,
        tolerance: f32,
        condition: impl Fn(&Choice) -> bool,
    ) -> Option<&'a Choice> {
        let near = self.choices.iter().filter(|choice| choice.score + tolerance >= best.score);
        near.filter(|choice| condition(choice)).max_by(|a, b| a.score.total_cmp(&b.score))
    }

    /// Without a verb, no change is requested: a read-only tool instead of an incomplete change.
    fn prefer_read_only(&self, best: &Choice) -> Option<&'a Choice> {
        if self.has_verb || is_read_only(best) || best.is_whole() {
            return None;
        }
        self.instead_of(best, READ_ONLY_TOLERANCE, |choice| {
            choice.is_whole() && !choice.is_empty() && is_read_only(choice)
        })
    }

    /// `Open the file` refers to one file, not to a list of all files: a tool that reports the missing argument.
    fn prefer_missing_argument(&self, best: &Choice) -> Option<&'a Choice> {
        let lists_all = best.is_empty() && !best.parameters.is_empty() && best.confidence < 1.0;
        if !lists_all || asks_for_all(self.clause) {
            return None;
        }
        self.instead_of(best, INCOMPLETE_TOLERANCE, |choice| {
            !choice.is_whole() && choice.does == Agreement::Does
        })
    }

    /// A complete tool with the same action instead of an incomplete one.
    fn prefer_complete(&self, best: &Choice) -> Option<&'a Choice> {
        if best.is_whole() {
            return None;
        }
        self.instead_of(best, COMPLETE_TOLERANCE, |choice| {
            choice.is_whole()
                && !choice.is_empty()
                && choice.does == Agreement::Does
                && used(&choice.assignment, self.parsed) > FULL_USE_THRESHOLD
        })
    }

    /// `what folders do I have?`: a tool without parameters instead of one that got no arguments.
    fn prefer_without_parameters(&self, best: &Choice) -> Option<&'a Choice> {
        if !best.is_empty() || best.parameters.is_empty() {
            return None;
        }
        self.instead_of(best, INCOMPLETE_TOLERANCE, |choice| {
            choice.parameters.is_empty() && choice.does == Agreement::Does && choice.intent_score > 0.0
        })
    }

    /// `read a.md, b.md and c.md`: one call with a list, if a tool takes one.
    fn prefer_one_call(&self, best: &Choice) -> Option<&'a Choice> {
        let calls = expand(best, self.parsed).len();
        if calls < 2 {
            return None;
        }
        self.instead_of(best, SINGLE_CALL_TOLERANCE, |choice| {
            choice.is_whole()
                && choice.does == Agreement::Does
                && choice.assignment.slots.iter().flatten().any(|slot| {
                    matches!(&slot.value, ArgumentValue::FromRequest(serde_json::Value::Array(all)) if all.len() == calls)
                })
        })
    }

    /// `read a.md`: a tool that takes a single value instead of one that takes a list.
    fn prefer_single_value(&self, best: &Choice) -> Option<&'a Choice> {
        if !is_list_of_one(best) {
            return None;
        }
        self.instead_of(best, SINGLE_VALUE_TOLERANCE, |choice| {
            choice.is_whole()
                && choice.does == best.does
                && !is_list_of_one(choice)
                && choice.assignment.slots.iter().flatten().any(|slot| {
                    best.assignment.uses(slot.start, slot.end)
                        && matches!(slot.value, ArgumentValue::FromRequest(_))
                })
        })
    }
}
