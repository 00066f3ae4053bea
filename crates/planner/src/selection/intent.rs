//! The actions and objects that a request asks for, by its words and literals.

use crate::lexer::implied::{is_bare, is_own_name, is_tool_name, of_code, of_file};
use crate::lexer::lexicon::{self, Meaning, WordMatch};
use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue, ParsedText};
use crate::lexer::name::has_han;
use crate::lexer::token::{Token, TokenKind};
use crate::selection::table_rows::{READ_ONLY_VERBS, add, are_special, is_any_verb, only_changes};
use crate::selection::tool_profile::Profile;
use crate::selection::verb_position::{is_denied, is_verb};
use crate::values::relative_folder;

/// The intent of a text.
#[derive(Debug, Default)]
pub(crate) struct Intent {
    /// The possible actions of each of its verbs, in order.
    pub(super) verbs: Vec<Vec<usize>>,
    /// The unambiguous ones of these whose actions are marked `!` in the table: a tool must perform them.
    pub(super) certain: Vec<Vec<usize>>,
    /// Whether the first verb is only a question word: `what`, 多少.
    pub(super) questions: bool,
    /// Whether the first verb asks to look something up, in any source.
    looks_up: bool,
    /// Whether the last verb is Chinese: then the verbs after the first count as requested actions, too.
    pub(super) in_han: bool,
    /// Whether the text asks which tool does something.
    pub(super) asks_which_tool: bool,
    /// The objects that the words denote.
    pub(super) things: Vec<usize>,
    /// Groups of objects, each the possible meanings of one word.
    pub(super) groups: Vec<Vec<usize>>,
    /// Whether the text has a verb of reading that is not negated and not only a question word.
    reads: bool,
    /// The byte offset of the first such verb.
    reads_at: Option<usize>,
    /// Whether the text has a verb of changing.
    changes: bool,
    /// Whether the text contains a path without an extension, which may be a file or a folder.
    pub(crate) has_bare_path: bool,
    /// The objects that literals imply: a workbook for its file name, a cell for its address.
    pub(super) implied: Vec<usize>,
}

/// Question words, which do not denote an action.
const QUESTION_WORDS: [&str; 16] = [
    "what",
    "what's",
    "whats",
    "which",
    "who",
    "where",
    "how",
    "how many",
    "any",
    "is",
    "is there",
    "are there",
    "什么",
    "哪些",
    "几",
    "多少",
];

/// Verbs for looking something up, possibly outside the available tools.
const LOOKUP_VERBS: [&str; 9] =
    ["look up", "lookup", "look for", "look into", "research", "查一下", "查下", "查查", "检索"];

impl Intent {
    /// `names` are the byte ranges of proper names, whose words are ignored.
    pub(crate) fn of(parsed: &ParsedText<'_>, names: &[(usize, usize)]) -> Self {
        let is_taken = |token: &Token<'_>| {
            let literal = parsed.mentions.iter().any(|mention| {
                matches!(mention.value, MentionValue::Literal(_))
                    && mention.start < token.end
                    && token.start < mention.end
            });
            literal
                || names.iter().any(|(start, end)| *start < token.end && token.start < *end)
                || is_own_name(parsed, token)
        };
        let word_matches = lexicon::word_matches(parsed.text, &parsed.tokens, &is_taken);
        let mut intent = Self { asks_which_tool: asks_which_tool(parsed.text), ..Self::default() };
        for word_match in &word_matches {
            intent.add_word(parsed, word_match);
        }
        if intent.verbs.is_empty() {
            // A word in the tables is not a misspelling of another one.
            let known = |token: &Token<'_>| {
                word_matches
                    .iter()
                    .any(|word_match| word_match.start < token.end && token.start < word_match.end)
            };
            let free =
                |token: &&Token<'_>| token.kind == TokenKind::Word && !is_taken(token) && !known(token);
            let correction =
                parsed.tokens.iter().filter(free).find_map(|token| lexicon::misspelt(token.text));
            intent.verbs.extend(correction.map(|meaning| meaning.verbs.clone()));
        }
        for mention in &parsed.mentions {
            intent.add_implied_object(parsed, mention);
        }
        intent.implied.dedup();
        intent
    }

    /// Adds the actions and the objects that a word denotes.
    fn add_word(&mut self, parsed: &ParsedText<'_>, word_match: &WordMatch) {
        let Meaning { verbs, things } = &word_match.meaning;
        add(&mut self.things, things);
        if things.len() > 1 {
            self.groups.push(things.clone());
        }
        if verbs.is_empty() {
            return;
        }
        self.changes = self.changes || only_changes(verbs);
        if is_denied(parsed, word_match) {
            return;
        }
        let stated = parsed.text.get(word_match.start..word_match.end).unwrap_or_default();
        let lower = stated.to_lowercase();
        let is_question_word = QUESTION_WORDS.contains(&lower.as_str());
        if !self.reads && is_any_verb(verbs, &READ_ONLY_VERBS) && !is_question_word {
            self.reads = true;
            self.reads_at = Some(word_match.start);
        }
        let is_first = self.verbs.is_empty();
        if !is_verb(parsed, word_match, is_first) {
            return;
        }
        // In English, a later verb may belong to a subordinate clause: `the game he played`.
        if are_special(verbs) && things.is_empty() && (is_first || has_han(stated)) {
            self.certain.push(verbs.clone());
        }
        if is_first {
            self.questions = is_question_word;
            self.looks_up = LOOKUP_VERBS.contains(&lower.as_str());
        }
        self.in_han = has_han(stated);
        self.verbs.push(verbs.clone());
    }

    /// Adds the object that a literal implies: a workbook for its file name, a cell for its address.
    fn add_implied_object(&mut self, parsed: &ParsedText<'_>, mention: &Mention) {
        let MentionValue::Literal(literal) = &mention.value else { return };
        let implied = match literal {
            // A path without an extension does not imply an object.
            Literal::Path(path) if is_bare(path) => {
                self.has_bare_path = true;
                return;
            }
            Literal::Code(_) if relative_folder::is_folder(parsed, mention.start, mention.end) => {
                self.has_bare_path = true;
                return;
            }
            Literal::Path(path) if path.contains('*') => "file",
            Literal::Path(path) => of_file(path),
            Literal::Cells(_) => "cell",
            Literal::Formula(_) => "formula",
            Literal::Code(code) if code.to_lowercase().starts_with("sheet") => "sheet",
            Literal::Code(code) if is_tool_name(code) => "tool",
            Literal::Code(code) => {
                add(&mut self.implied, &of_code(code));
                return;
            }
            _ => return,
        };
        self.implied.extend(lexicon::thing_named(implied));
    }

    /// Whether the only requested action is a search.
    pub(crate) fn searches(&self) -> bool {
        let search = |verb: &usize| lexicon::verb(*verb).name == "search";
        self.verbs.first().is_some_and(|verbs| {
            verbs.iter().all(search)
                || (verbs.iter().any(search)
                    && self.looks_up
                    && self.things.is_empty()
                    && self.implied.is_empty())
        })
    }

    /// Whether the text asks to read something, with a verb that is not negated.
    pub(crate) fn reads(&self) -> bool {
        self.reads
    }

    /// Whether it asks to read something before a byte offset.
    pub(crate) fn reads_before(&self, at: usize) -> bool {
        self.reads_at.is_some_and(|position| position <= at)
    }

    /// Whether one of its verbs denotes a change.
    pub(crate) fn changes(&self) -> bool {
        self.changes
    }

    /// Whether it asks for a special action or object for which `any` finds no tool.
    pub(crate) fn is_beyond(&self, mut any: impl FnMut(&dyn Fn(&Profile) -> bool) -> bool) -> bool {
        let special = |thing: &&usize| lexicon::thing(**thing).mark == Some('!');
        self.certain
            .iter()
            .any(|verbs| !any(&|profile: &Profile| verbs.iter().any(|verb| profile.all_verbs.contains(verb))))
            || self.has_verb()
                && self
                    .things
                    .iter()
                    .filter(special)
                    .any(|thing| !any(&|profile: &Profile| profile.all_things.contains(thing)))
    }

    /// Whether it mentions an object that only dedicated tools handle.
    pub(crate) fn has_own_object(&self) -> bool {
        self.things.iter().any(|row| lexicon::thing(*row).mark.is_none())
    }

    /// Whether it has a verb.
    pub(crate) fn has_verb(&self) -> bool {
        !self.verbs.is_empty()
    }

    /// The intent in the words of the tables: a search text in case the words of the request find nothing.
    pub(crate) fn query(&self) -> Option<String> {
        // A verb without an object would match every tool with that action.
        let certain = self.verbs.first().is_some_and(|verbs| are_special(verbs));
        if self.things.is_empty()
            && self.implied.is_empty()
            && !self.searches()
            && !certain
            && !self.has_bare_path
        {
            return None;
        }
        let mut rows: Vec<&str> = Vec::new();
        rows.extend(self.verbs.iter().take(2).flatten().map(|verb| lexicon::verb(*verb).name));
        rows.extend(self.things.iter().chain(&self.implied).map(|thing| lexicon::thing(*thing).name));
        if self.has_bare_path && self.things.is_empty() && self.implied.is_empty() {
            rows.push("file");
        }
        let mut seen: Vec<&str> = Vec::new();
        for row in rows {
            if !seen.contains(&row) {
                seen.push(row);
            }
        }
        (!seen.is_empty()).then(|| seen.join(" "))
    }

    /// The same with the objects of another intent: 把 一月 改名 does not mention sheets, but the clause before may.
    pub(crate) fn query_about(&self, other: &Self) -> Option<String> {
        if self.verbs.is_empty() || !self.things.is_empty() || !self.implied.is_empty() {
            return None;
        }
        let (things, implied) = (other.things.clone(), other.implied.clone());
        Self { verbs: self.verbs.clone(), things, implied, ..Self::default() }.query()
    }
}

/// Whether a text asks which tool does something: 哪个工具可以合并单元格.
fn asks_which_tool(text: &str) -> bool {
    let lower = text.to_lowercase();
    let which =
        ["which tool", "what tool", "哪个工具", "哪些工具", "什么工具", "哪种工具", "有没有工具", "有工具"];
    which.iter().any(|words| lower.contains(words))
}
