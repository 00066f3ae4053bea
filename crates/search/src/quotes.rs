//! Splits a request at its quotation marks: quoted text is usually a value, not the purpose of the request.

/// A part of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QuotedPart<'a> {
    pub(crate) text: &'a str,
    pub(crate) quoted: bool,
}

/// The parts of a request, in order.
pub(crate) fn parts(text: &str) -> Vec<QuotedPart<'_>> {
    let mut parts = Vec::new();
    let mut before = None;
    let (mut from, mut at) = (0, 0);
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let inner = at + c.len_utf8();
        let end = closing(c, before).and_then(|close| end_of(text, inner, close));
        before = Some(c);
        let Some(end) = end else {
            at = inner;
            continue;
        };
        parts.push(QuotedPart { text: text.get(from..at).unwrap_or_default(), quoted: false });
        parts.push(QuotedPart { text: text.get(inner..end).unwrap_or_default(), quoted: true });
        at = end + text.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        from = at;
    }
    parts.push(QuotedPart { text: text.get(from..).unwrap_or_default(), quoted: false });
    parts.retain(|part| !part.text.is_empty());
    parts
}

/// The closing mark for `c`. An apostrophe inside a word is not a quotation mark.
fn closing(c: char, before: Option<char>) -> Option<char> {
    match c {
        '"' => Some('"'),
        '“' => Some('”'),
        '‘' => Some('’'),
        '「' => Some('」'),
        '『' => Some('』'),
        '\'' if before.is_none_or(|before| !before.is_alphanumeric()) => Some('\''),
        _ => None,
    }
}

fn end_of(text: &str, inner: usize, close: char) -> Option<usize> {
    let rest = text.get(inner..)?;
    let is_end = |at: usize| {
        let next = rest.get(at + close.len_utf8()..).and_then(|rest| rest.chars().next());
        !matches!(close, '\'' | '’') || next.is_none_or(|next| !next.is_alphanumeric())
    };
    rest.char_indices().find(|(at, c)| *c == close && is_end(*at)).map(|(at, _)| inner + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_quoted_values_from_request() {
        let check = |text: &str, expect: &[&str]| {
            let rendered: Vec<String> = parts(text)
                .iter()
                .map(|part| if part.quoted { format!("<{}>", part.text) } else { part.text.to_owned() })
                .collect();
            assert_eq!(rendered, expect, "{text}");
        };
        check("write \"a b\" now", &["write ", "<a b>", " now"]);
        check("say 'it's here' to Bob's dog", &["say ", "<it's here>", " to Bob's dog"]);
        check("写入“明日会议”的内容", &["写入", "<明日会议>", "的内容"]);
        check("5\" of rain", &["5\" of rain"]);
        check("", &[]);
    }
}
