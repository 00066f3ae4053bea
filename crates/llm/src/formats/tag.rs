//! Tags as models write them: `<tool_call>`, `</ tool_call >`, `<|python_tag|>`, `<｜tool▁sep｜>`, `<function=name>`,
//! `<invoke name="x">`. `tag_kind` defines their meaning.

use crate::repair::SourceText;

/// Maximum length of a tag, in bytes.
const MAX_TAG_BYTES: usize = 256;

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag<'t> {
    /// In lower case, without bars and prefixes such as `seed:` or `｜DSML｜`.
    pub(super) name: String,
    /// `</…>`.
    pub(super) closing: bool,
    /// With bars: a special token of the model.
    pub(super) special: bool,
    /// The text after `=`: `get_time` in `<function=get_time>`.
    pub(super) value: Option<&'t str>,
    /// The text after the name, which contains the attributes.
    pub(super) attributes: &'t str,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl<'t> Tag<'t> {
    /// Parses the tag at `at`.
    pub(super) fn at(source: &SourceText<'t>, at: usize) -> Option<Self> {
        let rest = source.rest(at);
        let inside = rest.strip_prefix('<')?;
        let mut length = None;
        for (offset, character) in inside.char_indices() {
            match character {
                '>' => {
                    length = Some(offset);
                    break;
                }
                '<' | '\n' | '{' => return None,
                _ if offset > MAX_TAG_BYTES => return None,
                _ => {}
            }
        }
        let Some(length) = length else {
            source.touch_end();
            return None;
        };
        source.spend(length);
        let end = at + 1 + length + 1;
        Self::parse(inside.get(..length)?, at, end)
    }

    fn parse(inside: &'t str, start: usize, end: usize) -> Option<Self> {
        let body = inside.trim();
        let (closing, body) = match body.strip_prefix('/') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, body),
        };
        let bar = |character: char| matches!(character, '|' | '｜');
        let special = body.starts_with(bar) || body.ends_with(bar);
        // Gemma 4 closes `<|tool_call>` with `<tool_call|>`.
        let closing = closing || (body.ends_with(bar) && !body.starts_with(bar));
        let mut body = body.trim_matches(bar);
        // `<｜DSML｜invoke …>`
        if let Some((prefix, rest)) = body.split_once(bar)
            && !prefix.is_empty()
            && prefix.chars().all(char::is_alphanumeric)
        {
            body = rest;
        }
        let name_end = body
            .find(|character: char| {
                !(character.is_alphanumeric() || matches!(character, '_' | '-' | ':' | '▁' | '.'))
            })
            .unwrap_or(body.len());
        let (name, rest) = (body.get(..name_end)?, body.get(name_end..)?);
        if name.is_empty() || !name.starts_with(|first: char| first.is_alphabetic() || first == '_') {
            return None;
        }
        let name = name.rsplit(':').next().unwrap_or(name).replace('▁', "_").to_lowercase();
        let rest = rest.trim_end_matches('/').trim();
        let value = rest.strip_prefix('=').map(|value| unquote(value.trim()));
        let attributes = if value.is_some() { "" } else { rest };
        Some(Self { name, closing, special, value, attributes, start, end })
    }

    /// Returns the value of an attribute.
    pub(super) fn attribute(&self, wanted: &str) -> Option<&'t str> {
        let mut rest = self.attributes;
        loop {
            let (name, after) = rest.split_once('=')?;
            let after = after.trim_start();
            let quote = after.chars().next().filter(|first| matches!(first, '"' | '\'' | '“'));
            let (value, tail) = match quote {
                Some('“') => after.get('“'.len_utf8()..)?.split_once('”')?,
                Some(quote) => after.get(1..)?.split_once(quote)?,
                None => after.split_once(char::is_whitespace).unwrap_or((after, "")),
            };
            if name.trim().eq_ignore_ascii_case(wanted) {
                return Some(value);
            }
            rest = tail;
        }
    }
}

fn unquote(text: &str) -> &str {
    text.trim_matches(|character| matches!(character, '"' | '\'' | '“' | '”'))
}

/// Finds the next tag from `at` on for which `wanted` is true.
pub(super) fn find_tag<'t>(
    source: &SourceText<'t>,
    mut at: usize,
    wanted: impl Fn(&Tag<'t>) -> bool,
) -> Option<Tag<'t>> {
    while let Some(found) = source.find(at, "<") {
        if let Some(tag) = Tag::at(source, found)
            && wanted(&tag)
        {
            return Some(tag);
        }
        at = found + 1;
    }
    None
}
