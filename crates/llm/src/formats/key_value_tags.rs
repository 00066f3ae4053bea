//! Arguments as pairs of tags: `<arg_key>city</arg_key><arg_value>Kyoto</arg_value>`, as in GLM 4.5 and Hunyuan.

use toolhub_core::RawObject;

use super::expression::ParseContext;
use super::parsed_call::{Group, Name, ParsedCall};
use super::tag::Tag;
use super::xml::{element, typed};
use crate::repair::Repairs;

impl<'s, 't> ParseContext<'s, 't> {
    /// Parses the pairs at `at` as arguments of `name`.
    pub(super) fn pairs(&self, at: usize, name: Name<'_>) -> Option<Group> {
        let mut members = RawObject::default();
        let mut repairs = Repairs::default();
        let mut end = at;
        while let Some((key, after)) = self.part(end, "arg_key") {
            let Some((value, after)) = self.part(after, "arg_value") else { break };
            let key = key.trim();
            let parameter_kind = name.tool.and_then(|tool| tool.parameter_kind(key));
            members.set(key.to_owned(), typed(value, parameter_kind, &mut repairs));
            end = after;
        }
        if members.is_empty() {
            return None;
        }
        let mut call = ParsedCall::new(name, members.into_raw());
        call.repairs.join(repairs);
        Some(Group { calls: vec![call], end })
    }

    fn part(&self, at: usize, tag_name: &str) -> Option<(&'t str, usize)> {
        let tag = Tag::at(self.source, self.source.skip_space(at))?;
        if tag.closing || tag.name != tag_name {
            return None;
        }
        // An unclosed value ends at the next key or at the end of the call.
        let (text, end) = element(self.source, &tag);
        Some(match text.find("<arg_key>").or_else(|| text.find("</tool_call")) {
            Some(stop) => (text.get(..stop)?, tag.end + stop),
            None => (text, end),
        })
    }
}
