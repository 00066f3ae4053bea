//! Finds parts of a request that only exclude an action: `… - do not send it`, ，先不发. A plan without that action satisfies
//! them.

use crate::lexer::filler;
use crate::lexer::lexicon;
use crate::lexer::literal_scanner;
use crate::lexer::token::{TokenKind, tokenize};

/// Words with which such a part begins.
const EXCLUSION_STARTS: [&str; 24] = [
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
const FILLERS_AFTER_VERB: [&str; 24] = [
    "it", "them", "anything", "yet", "now", "just", "for", "the", "that", "this", "mail", "email", "出去",
    "出来", "了", "它", "掉", "啊", "哦", "就行", "邮件", "任何", "东西", "先",
];

/// A part that excludes an action.
pub(crate) struct Exclusion {
    start: usize,
    end: usize,
    /// The excluded actions, as rows of the verb table.
    pub(crate) verbs: Vec<usize>,
}

impl Exclusion {
    /// The request without this part.
    pub(crate) fn without(&self, request: &str) -> String {
        let before = request.get(..self.start).unwrap_or_default();
        let before = before.trim_end_matches(|c: char| c.is_whitespace() || ",，;；-–—(（".contains(c));
        format!("{before}{}", request.get(self.end..).unwrap_or_default())
    }
}

/// The last part of a request, if it only excludes an action and the parts before it ask for something.
pub(crate) fn find(request: &str) -> Option<Exclusion> {
    let literals = literal_scanner::find(request);
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
    let clause = request.get(start..end)?.to_lowercase().replace('’', "'");
    // ，先存着不发: words for keeping something may come first.
    let keep_phrases = ["先存着", "存着", "先放着", "先留着", "放着", "留着", "存起来", "先保存"];
    let lead = keep_phrases
        .iter()
        .filter(|word| clause.starts_with(**word))
        .map(|word| word.len())
        .max()
        .unwrap_or(0);
    let clause = clause.get(lead..)?.trim_start_matches(['，', ',', ' ']).to_owned();
    let plain = (lead > 0).then_some("不").filter(|word| clause.starts_with(word));
    let negation = EXCLUSION_STARTS
        .iter()
        .filter(|word| clause.starts_with(**word))
        .max_by_key(|word| word.len())
        .copied()
        .or(plain)?;
    let rest = clause.get(negation.len()..)?.trim_start();
    let all = tokenize(rest);
    let word_matches = lexicon::word_matches(rest, &all, &|_| false);
    let verb = word_matches
        .first()
        .filter(|word_match| word_match.start == 0 && !word_match.meaning.verbs.is_empty())?;
    let known =
        all.iter().filter(|token| token.start >= verb.end && token.kind != TokenKind::Mark).all(|token| {
            FILLERS_AFTER_VERB.contains(&token.text)
                || filler::always().contains(token.text)
                || FILLERS_AFTER_VERB.iter().any(|word| word.contains(token.text))
        });
    let has_order_before = {
        let head = request.get(..from)?;
        let all = tokenize(head);
        let is_used = |token: &crate::lexer::token::Token<'_>| !free(token.start);
        lexicon::word_matches(head, &all, &is_used)
            .iter()
            .any(|word_match| !word_match.meaning.verbs.is_empty())
    };
    (known && has_order_before).then(|| Exclusion { start, end, verbs: verb.meaning.verbs.clone() })
}

/// Whether a tool's name denotes an excluded action.
pub(crate) fn is_denied(exclusion: &Exclusion, tool: &str) -> bool {
    let name = crate::values::parameter::name_words(tool).join(" ");
    let word_matches = lexicon::word_matches(&name, &tokenize(&name), &|_| false);
    let first = word_matches.iter().find(|word_match| !word_match.meaning.verbs.is_empty());
    first.is_some_and(|word_match| word_match.meaning.verbs.iter().any(|verb| exclusion.verbs.contains(verb)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_only_bare_negations() {
        let without_exclusion = |request: &str| find(request).map(|exclusion| exclusion.without(request));
        assert_eq!(
            without_exclusion("Draft an email to a@b.io - do not send it").as_deref(),
            Some("Draft an email to a@b.io")
        );
        assert_eq!(without_exclusion("给 a@b.cn 写个草稿，先不发").as_deref(), Some("给 a@b.cn 写个草稿"));
        assert_eq!(without_exclusion("Don't delete the sheet Old in a.xlsx, we need it"), None);
        assert_eq!(without_exclusion("delete row 3, don't touch row 4"), None);
        assert_eq!(without_exclusion("don't commit, don't push").as_deref(), Some("don't commit"));
        assert_eq!(without_exclusion("write 'a, do not send it' to a.txt"), None);
    }
}
