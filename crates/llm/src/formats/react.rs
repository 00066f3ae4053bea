//! Calls in ReAct syntax: `Action: name` and `Action Input: …`, in English and Chinese.

use super::expression::ParseContext;
use super::json_shape::arguments_in_text;
use super::parsed_call::{Group, Name, ParsedCall};
use super::pythonic;
use crate::repair::{Repairs, SourceText};

const ACTIONS: &[&str] =
    &["Action:", "Action：", "行动:", "行动：", "动作:", "动作：", "**Action:**", "**Action**:"];
const INPUTS: &[&str] = &[
    "Action Input:",
    "Action Input：",
    "Action_Input:",
    "ActionInput:",
    "行动输入:",
    "行动输入：",
    "动作输入:",
    "动作输入：",
    "**Action Input:**",
    "**Action Input**:",
];
const ANSWERS: &[&str] = &["Observation:", "Observation：", "观察:", "观察：", "Thought:", "思考:", "思考："];

/// Returns the offset after one of `marks` at `at`.
fn mark_at(source: &SourceText<'_>, at: usize, marks: &[&str]) -> Option<usize> {
    marks.iter().find(|mark| source.starts_with(at, mark)).map(|mark| at + mark.len())
}

/// Whether an invented tool result begins at `at`.
pub(super) fn answer_at(source: &SourceText<'_>, at: usize) -> bool {
    mark_at(source, at, ANSWERS.get(..4).unwrap_or_default()).is_some()
}

impl<'s, 't> ParseContext<'s, 't> {
    /// Parses the call whose `Action:` begins the line at `at`.
    pub(super) fn react(&self, at: usize) -> Option<Group> {
        let after = mark_at(self.source, at, ACTIONS)?;
        let line = self.source.line_end(after);
        let raw_name = self.source.slice(after, line).trim();
        let begin = self.source.skip_space(after);
        if raw_name.contains('(')
            && let Some((call, end)) = pythonic::call_at(self.source, begin, self.known)
        {
            return Some(Group { calls: vec![call], end });
        }
        let name = Name::read(raw_name, self.known)?;
        let input = self.source.skip_space(line);
        let input = mark_at(self.source, input, INPUTS)?;
        let start = self.source.skip_space(input);
        let fence = if self.source.starts_with(start, "```") { self.fence_line(start) } else { start };
        let start = self.source.skip_space(fence);
        let stop = self.input_end(start);
        if self.source.char_at(start) == Some('{') {
            let repaired = self.json_at(start, stop).filter(|repaired| !repaired.placeholder)?;
            let mut call = ParsedCall::new(name, repaired.json);
            call.repairs.join(repaired.repairs);
            call.ending = repaired.ending;
            let end = self.source.skip_space(repaired.end);
            let end =
                if fence != start && self.source.starts_with(end, "```") { end + 3 } else { repaired.end };
            return Some(Group { calls: vec![call], end });
        }
        let mut repairs = Repairs::default();
        let text = self.source.slice(start, stop).trim().trim_matches('"');
        let arguments = arguments_in_text(text, &name, &mut repairs)?;
        let mut call = ParsedCall::new(name, arguments);
        call.repairs.join(repairs);
        Some(Group { calls: vec![call], end: stop })
    }

    /// The end of the input: before the next marker line, or the end of the text.
    fn input_end(&self, start: usize) -> usize {
        let mut at = start;
        loop {
            let end = self.source.line_end(at);
            if end >= self.source.len() {
                return end;
            }
            let next = end + 1;
            if mark_at(self.source, next, ANSWERS).or_else(|| mark_at(self.source, next, ACTIONS)).is_some() {
                return end;
            }
            at = next;
        }
    }
}
