//! Finds parts of a request that only exclude an action: `… - do not send it`, ，先不发. A plan without that action satisfies
//! them.

use crate::lexer::filler;
use crate::lexer::lexicon;
use crate::lexer::literal;
use crate::lexer::token::{Kind, tokens};

/// Words with which such a part begins.
const NEGATIONS: [&str; 24] = [
    "but do not",
    "but don't",
    "and do not",
    "and don't",
    "do not",
    "don't",
    "no need to",
    "without",
    "please don't",
    "please do not",
    "先不要",
    "先不用",
    "先不",
    "先别",
    "暂时不",
    "暂不",
    "不要",
    "不用",
    "不必",
    "无需",
    "别",
    "也别",
    "但不要",
    "但先别",
];
/// Words without meaning after the verb of such a part.
const AFTER: [&str; 24] = [
    "it", "them", "anything", "yet", "now", "just", "for", "the", "that", "this", "mail", "email", "出去",
    "出来", "了", "它", "掉", "啊", "哦", "就行", "邮件", "任何", "东西", "先",
];

/// A part that excludes an action.
pub(crate) struct Aside {
    start: usize,
    end: usize,
    /// The excluded actions, as rows of the verb table.
    pub(crate) deeds: Vec<usize>,
}

impl Aside {
    /// The request without this part.
    pub(crate) fn without(&self, request: &str) -> String {
        let before = request.get(..self.start).unwrap_or_default();
        let before = before.trim_end_matches(|c: char| c.is_whitespace() || ",，;；-–—(（".contains(c));
        format!("{before}{}", request.get(self.end..).unwrap_or_default())
    }
}

/// The last part of a request, if it only excludes an action and the parts before it ask for something.
pub(crate) fn find(request: &str) -> Option<Aside> {
    let literals = literal::find(request);
    let free = |at: usize| !literals.iter().any(|found| found.start <= at && at < found.end);
    let mark = |(at, c): &(usize, char)| ",，;；.。(（".contains(*c) && free(*at);
    let dash = request.match_indices(" - ").chain(request.match_indices(" – ")).map(|(at, _)| at + 1);
    let but = request.match_indices(" but ").map(|(at, _)| at);
    let marks =
        request.char_indices().filter(mark).filter(|(at, _)| request[*at..].contains(char::is_alphanumeric));
    let from = marks.map(|(at, _)| at).chain(dash).chain(but).filter(|at| free(*at)).max()?;
    let rest = request.get(from..)?;
    let start = from + rest.find(|c: char| c.is_alphanumeric())?;
    let end = start + request[start..].trim_end_matches(|c: char| !c.is_alphanumeric()).len();
    let said = request.get(start..end)?.to_lowercase().replace('’', "'");
    // ，先存着不发: words for keeping something may come first.
    let kept = ["先存着", "存着", "先放着", "先留着", "放着", "留着", "存起来", "先保存"];
    let lead = kept.iter().filter(|word| said.starts_with(**word)).map(|word| word.len()).max().unwrap_or(0);
    let said = said.get(lead..)?.trim_start_matches(['，', ',', ' ']).to_owned();
    let plain = (lead > 0).then_some("不").filter(|word| said.starts_with(word));
    let negation = NEGATIONS
        .iter()
        .filter(|word| said.starts_with(**word))
        .max_by_key(|word| word.len())
        .copied()
        .or(plain)?;
    let rest = said.get(negation.len()..)?.trim_start();
    let all = tokens(rest);
    let spots = lexicon::spots(rest, &all, &|_| false);
    let verb = spots.first().filter(|spot| spot.start == 0 && !spot.meaning.deeds.is_empty())?;
    let known = all.iter().filter(|token| token.start >= verb.end && token.kind != Kind::Mark).all(|token| {
        AFTER.contains(&token.text)
            || filler::always().contains(token.text)
            || AFTER.iter().any(|word| word.contains(token.text))
    });
    let asks = {
        let head = request.get(..from)?;
        let all = tokens(head);
        let taken = |token: &crate::lexer::token::Token<'_>| !free(token.start);
        lexicon::spots(head, &all, &taken).iter().any(|spot| !spot.meaning.deeds.is_empty())
    };
    (known && asks).then(|| Aside { start, end, deeds: verb.meaning.deeds.clone() })
}

/// Whether a tool's name denotes an excluded action.
pub(crate) fn is_denied(aside: &Aside, tool: &str) -> bool {
    let name = crate::values::parameter::words(tool).join(" ");
    let spots = lexicon::spots(&name, &tokens(&name), &|_| false);
    let first = spots.iter().find(|spot| !spot.meaning.deeds.is_empty());
    first.is_some_and(|spot| spot.meaning.deeds.iter().any(|deed| aside.deeds.contains(deed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bare_denial_is_an_aside() {
        let left = |request: &str| find(request).map(|aside| aside.without(request));
        assert_eq!(
            left("Draft an email to a@b.io - do not send it").as_deref(),
            Some("Draft an email to a@b.io")
        );
        assert_eq!(left("给 a@b.cn 写个草稿，先不发").as_deref(), Some("给 a@b.cn 写个草稿"));
        assert_eq!(left("Don't delete the sheet Old in a.xlsx, we need it"), None);
        assert_eq!(left("delete row 3, don't touch row 4"), None);
        assert_eq!(left("don't commit, don't push").as_deref(), Some("don't commit"));
        assert_eq!(left("write 'a, do not send it' to a.txt"), None);
    }
}
