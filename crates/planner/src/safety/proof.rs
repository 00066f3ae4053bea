//! Decides whether the words of a request prove a step that changes something. Rules cannot resolve ambiguity, so the planner
//! only makes a change if the request leaves no doubt: the verb has the class of the tool's own verb, every word is used, every
//! argument was found by its role, and the same words prove no other tool.

use std::collections::BTreeSet;

use crate::lexer::filler;
use crate::lexer::labels;
use crate::lexer::lexicon;
use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue, ParsedText};
use crate::lexer::token::{Token, TokenKind};
use crate::safety::doubt::Doubt;
use crate::selection::choice::Choice;
use crate::selection::verb_class::{VERBS, classes_of, verbs};
use crate::spreadsheet::cell_value::cells_of;
use crate::values::candidate::{ArgumentValue, MatchContext};
use crate::values::flag;
use crate::values::parameter::{ValueType, name_words};
use crate::values::role::Role;

/// The minimum strength of a phrase that sets a flag.
const MIN_FLAG_STRENGTH: f32 = 2.0;

/// Number words for the number of calls.
const COUNT_WORDS: [(&str, usize); 11] = [
    ("one", 1),
    ("a", 1),
    ("一", 1),
    ("two", 2),
    ("both", 2),
    ("three", 3),
    ("four", 4),
    ("两", 2),
    ("二", 2),
    ("三", 3),
    ("四", 4),
];
/// The maximum length of a filler in tokens.
const MAX_FILLER_TOKENS: usize = 4;

/// A part of a request and the calls that were planned for it.
pub(crate) struct Claim<'a> {
    pub(crate) parsed: &'a ParsedText<'a>,
    pub(crate) calls: &'a [Choice],
}

impl Claim<'_> {
    /// Everything that keeps the first call from being proven. The other calls differ only in their arguments.
    pub(crate) fn doubts(&self) -> Vec<Doubt> {
        let Some(choice) = self.calls.first() else { return Vec::new() };
        let mut doubts = self.own_doubts(choice);
        if doubts.is_empty()
            && let Some(rival) =
                choice.rivals.iter().find(|rival| self.is_comparable(choice, rival) && self.proves(rival))
        {
            doubts.push(Doubt::Rival(rival.tool.name().to_string()));
        }
        doubts
    }

    /// Whether the request could also mean `rival`. If the chosen tool fits, a rival is excluded if its name contains things
    /// that the request does not mention, or fewer of the mentioned things.
    fn is_comparable(&self, choice: &Choice, rival: &Choice) -> bool {
        let rows = |text: &str| -> BTreeSet<usize> {
            let all = crate::lexer::token::tokenize(text);
            lexicon::word_matches(text, &all, &|_| false)
                .into_iter()
                .flat_map(|word_match| word_match.meaning.things)
                .collect()
        };
        let named = |choice: &Choice| rows(&name_words(choice.tool.name().as_str()).join(" "));
        let literal = |token: &Token<'_>| {
            self.parsed.mentions.iter().any(|mention| {
                matches!(mention.value, MentionValue::Literal(_))
                    && mention.start < token.end
                    && token.start < mention.end
            })
        };
        let word_matches = lexicon::word_matches(self.parsed.text, &self.parsed.tokens, &literal);
        let stated: BTreeSet<usize> =
            word_matches.into_iter().flat_map(|word_match| word_match.meaning.things).collect();
        let implied = self.implied();
        let is_expected = |row: &usize| stated.contains(row) || implied.contains(row);
        let (own, other) = (named(choice), named(rival));
        let fits = own.iter().all(is_expected);
        let unexpected = other.iter().any(|row| !is_expected(row));
        let of =
            |rows: &BTreeSet<usize>| -> BTreeSet<usize> { rows.intersection(&stated).copied().collect() };
        let fewer = of(&other).is_subset(&of(&own)) && of(&other).len() < of(&own).len();
        !(fits && (unexpected || fewer))
    }

    /// The kinds of things that the files, cells, formulas and codes of the request imply.
    fn implied(&self) -> Vec<usize> {
        let kinds = self.parsed.mentions.iter().filter_map(|mention| match &mention.value {
            MentionValue::Literal(Literal::Path(path)) => Some(crate::lexer::implied::of_file(path)),
            MentionValue::Literal(Literal::Quoted(text)) if text.contains(['/', '\\']) => {
                Some(crate::lexer::implied::of_file(text))
            }
            MentionValue::Literal(Literal::Cells(_)) => Some("cell"),
            MentionValue::Literal(Literal::Formula(_)) => Some("formula"),
            _ => None,
        });
        let mut kinds: Vec<usize> = kinds.filter_map(lexicon::thing_named).collect();
        let codes = self.parsed.mentions.iter().filter_map(|mention| match &mention.value {
            MentionValue::Literal(Literal::Code(code)) => Some(crate::lexer::implied::of_code(code)),
            _ => None,
        });
        kinds.extend(codes.flatten());
        kinds
    }

    /// Whether the same words prove another tool.
    fn proves(&self, rival: &Choice) -> bool {
        let name = self.calls[0].tool.name();
        // A value from the request takes precedence over the result of an earlier step.
        let from_result = |choice: &Choice| {
            choice.assignment.slots.iter().flatten().any(|slot| slot.value == ArgumentValue::Result)
        };
        rival.tool.name() != name
            && (!from_result(rival) || from_result(&self.calls[0]))
            && rival.is_whole()
            && Claim { parsed: self.parsed, calls: std::slice::from_ref(rival) }.own_doubts(rival).is_empty()
    }

    fn own_doubts(&self, choice: &Choice) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        let verbs = verbs(self.parsed, &classes_of(choice), &self.stated());
        if verbs.is_empty() && !self.is_noun_phrase(choice) {
            doubts.push(Doubt::Verb);
        }
        let unused = self.unused(choice, &verbs);
        if !unused.is_empty() {
            doubts.push(Doubt::Unused(unused));
        }
        doubts.extend(self.calls.iter().flat_map(|call| self.guessed(call)).map(Doubt::Guessed));
        doubts.dedup();
        doubts
    }

    /// `Line chart of A1:B13 at E2`: a request without a verb that starts with the thing to create or the format to apply.
    fn is_noun_phrase(&self, choice: &Choice) -> bool {
        let classes = classes_of(choice).classes;
        let first = self.parsed.tokens.iter().position(|token| token.kind != TokenKind::Mark).unwrap_or(0);
        let head: Vec<&Token<'_>> = self.parsed.tokens[first..].iter().take(3).collect();
        let known = |token: &&Token<'_>| {
            let lower = token.text.to_lowercase();
            VERBS.english.contains_key(&lower)
                && !["chart", "graph", "plot", "bold", "format", "style"].contains(&lower.as_str())
        };
        let verbs = self
            .parsed
            .tokens
            .iter()
            .filter(|token| token.kind == TokenKind::Word)
            .any(|token| known(&token));
        let is_question = self.parsed.text.contains(['?', '？'])
            || self.parsed.tokens.iter().any(|token| {
                token.is_any(&[
                    "is", "are", "was", "were", "has", "have", "did", "does", "if", "what", "which", "why",
                    "should",
                ]) || token.kind == TokenKind::Han
            });
        if verbs || is_question {
            return false;
        }
        if classes.contains("format") {
            let flags = ["bold", "italic", "underline", "underlined", "italics"];
            return head.first().is_some_and(|token| token.is_any(&flags));
        }
        let things: Vec<String> = name_words(choice.tool.name().as_str()).into_iter().skip(1).collect();
        classes.contains("create")
            && choice.assignment.slots.iter().flatten().count() > 2
            && head.iter().any(|token| things.iter().any(|thing| token.is_word(thing)))
    }

    /// The byte ranges of arguments that cannot be verbs. Flags and choices are left out: a word such as `wrap` may be both.
    pub(crate) fn stated(&self) -> Vec<(usize, usize)> {
        let slots = self.calls.iter().flat_map(|call| call.parameters.iter().zip(&call.assignment.slots));
        let plain = slots.filter(|(parameter, _)| {
            !matches!(parameter.shape, ValueType::Boolean)
                && parameter.choices.is_empty()
                && crate::values::choice::kinds(&parameter.words).is_empty()
        });
        let slots = plain.filter_map(|(_, slot)| slot.as_ref());
        slots.filter(|slot| slot.end > slot.start).map(|slot| (slot.start, slot.end)).collect()
    }

    /// The byte ranges from which arguments were read.
    fn used_spans(&self) -> Vec<(usize, usize)> {
        let mut used_spans = Vec::new();
        for slot in self.calls.iter().flat_map(|call| call.assignment.slots.iter().flatten()) {
            if slot.end > slot.start {
                used_spans.push((slot.start, slot.end));
            }
            if let ArgumentValue::FromRequest(value) = &slot.value {
                let (short, texts): (Vec<String>, Vec<String>) =
                    texts_in(value).into_iter().partition(|text| text.chars().count() < 2);
                used_spans.extend(texts.iter().filter_map(|text| self.place_of(text)));
                // 类型是 人: a single character counts only as a separate word.
                let alone = |text: &String| {
                    let at = self.parsed.text.find(&format!(" {text}"))? + 1;
                    let end = at + text.len();
                    let ends = self.parsed.text[end..].chars().next().is_none_or(|c| !c.is_alphanumeric());
                    (ends && crate::lexer::name::has_han(text)).then_some((at, end))
                };
                used_spans.extend(short.iter().filter_map(alone));
            }
        }
        used_spans
    }

    /// The byte range of a text in the request, at token boundaries.
    fn place_of(&self, text: &str) -> Option<(usize, usize)> {
        let tokens = &self.parsed.tokens;
        let mut places = self.parsed.text.match_indices(text).map(|(at, _)| (at, at + text.len()));
        places.find(|(start, end)| {
            tokens.iter().any(|token| token.start == *start) && tokens.iter().any(|token| token.end == *end)
        })
    }

    fn unused(&self, choice: &Choice, verbs: &[(usize, usize)]) -> Vec<String> {
        let parsed = self.parsed;
        let mut used = self.used_spans();
        used.extend(verbs);
        used.extend(self.things(choice));
        used.extend(self.names_of_arguments(choice));
        used.extend(self.flags());
        used.extend(self.filled_ranges(choice));
        used.extend(self.repeated(choice));
        let fillers = self.fillers(choice);
        let tool_words: Vec<String> =
            name_words(choice.tool.name().as_str()).iter().map(|word| labels::stem(word)).collect();
        let described = self.described_words(choice);
        // 表头 is one word, although 表 alone may be a label of an argument.
        let words_of_two: Vec<(usize, usize)> = (0..parsed.tokens.len().saturating_sub(1))
            .filter_map(|at| {
                let (first, second) = (&parsed.tokens[at], &parsed.tokens[at + 1]);
                let text = parsed.text.get(first.start..second.end)?;
                let han = first.kind == TokenKind::Han && second.kind == TokenKind::Han;
                (han && fillers.iter().any(|set| set.contains(text))).then_some((first.start, second.end))
            })
            .collect();
        used.extend(words_of_two);
        let covered =
            |token: &Token<'_>| used.iter().any(|(from, to)| *from < token.end && token.start < *to);
        let mut unused: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        while let Some(token) = parsed.tokens.get(at) {
            at += 1;
            // `A -> B`: the arrow is not a comparison.
            let arrow = token.text == ">" && parsed.text[..token.start].ends_with(['-', '=']);
            let ends = arrow
                || token.text == "!"
                    && !parsed.text[token.end..].starts_with(|c: char| c.is_alphanumeric() || c == '=');
            if covered(token) || ends || (token.kind == TokenKind::Mark && !is_significant_mark(token.text)) {
                continue;
            }
            let run = parsed.tokens[at - 1..].iter().take(MAX_FILLER_TOKENS);
            let run = run.take_while(|other| other.kind == token.kind && !covered(other)).count();
            let filler = (1..=run).rev().find(|length| {
                let end = parsed.tokens[at + length - 2].end;
                let text = parsed.text.get(token.start..end).unwrap_or_default();
                let text = text.to_lowercase().replace('’', "'");
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                fillers.iter().any(|set| set.contains(&text)) || self.counts(&text)
            });
            if let Some(length) = filler {
                at += length - 1;
                continue;
            }
            // 说明写“空腹”: 写 directly before an argument only introduces it.
            if token.text == "写" && parsed.tokens.get(at).is_some_and(&covered) {
                continue;
            }
            if self.names_literal(choice, at - 1, &covered) {
                continue;
            }
            if takes_all(choice) && token.is_any(&["everything", "all"]) {
                continue;
            }
            let plain = labels::stem(&token.text.replace('-', ""));
            if token.kind == TokenKind::Word
                && (tool_words.contains(&labels::stem(token.text)) || tool_words.contains(&plain))
                || described.contains(&labels::stem(token.text))
            {
                continue;
            }
            let joined =
                |end: usize| parsed.text.get(end..token.start).is_some_and(|gap| gap.trim().is_empty());
            match unused.last_mut().filter(|(_, end)| joined(*end)) {
                Some(last) => last.1 = token.end,
                None => unused.push((token.start, token.end)),
            }
        }
        unused.iter().filter_map(|(start, end)| parsed.text.get(*start..*end)).map(str::to_owned).collect()
    }

    /// `the report /data/q1.pdf`: whether a lowercase noun between an article and a path describes the path. Never true for
    /// tools that delete.
    fn names_literal(&self, choice: &Choice, at: usize, covered: &dyn Fn(&Token<'_>) -> bool) -> bool {
        let tokens = &self.parsed.tokens;
        let (Some(token), Some(next)) = (tokens.get(at), tokens.get(at + 1)) else { return false };
        let article = at.checked_sub(1).and_then(|before| tokens.get(before));
        let path = self.parsed.mentions.iter().any(|mention| {
            matches!(mention.value, MentionValue::Literal(Literal::Path(_) | Literal::Url(_)))
                && mention.start == next.start
        });
        token.kind == TokenKind::Word
            && token.text.bytes().all(|byte| byte.is_ascii_lowercase())
            && article.is_some_and(|article| article.is_any(&["the", "my", "our", "this"]))
            && path
            && covered(next)
            && !classes_of(choice).classes.contains("delete")
            && !RESTRICTING_WORDS.contains(&token.text)
    }

    /// The byte ranges of words that set or clear flags.
    fn flags(&self) -> Vec<(usize, usize)> {
        let stems = labels::stems(self.parsed);
        let slots = self.calls.iter().flat_map(|call| call.parameters.iter().zip(&call.assignment.slots));
        let flags = slots.filter(|(parameter, slot)| parameter.shape == ValueType::Boolean && slot.is_some());
        flags
            .flat_map(|(parameter, _)| flag::find(parameter, self.parsed, &stems))
            .filter(|span| span.strength > MIN_FLAG_STRENGTH)
            .map(|span| (span.start, span.end))
            .collect()
    }

    /// `write Name, Mail into A1:B1`: a range counts as used through its first cell if there is one value for each of its
    /// cells.
    fn filled_ranges(&self, choice: &Choice) -> Vec<(usize, usize)> {
        let values = choice.assignment.slots.iter().flatten().find_map(|slot| match &slot.value {
            ArgumentValue::FromRequest(serde_json::Value::Array(rows)) => {
                Some(rows.iter().map(|row| row.as_array().map_or(0, Vec::len)).sum::<usize>())
            }
            _ => None,
        });
        let ranges = self.parsed.mentions.iter().filter_map(|mention| match &mention.value {
            MentionValue::Literal(Literal::Cells(cells)) => Some((mention, cells_of(cells)?)),
            _ => None,
        });
        ranges
            .filter(|(mention, count)| {
                values == Some(*count)
                    && choice.assignment.slots.iter().flatten().any(|slot| slot.start == mention.start)
            })
            .map(|(mention, _)| (mention.start, mention.end))
            .collect()
    }

    /// The fillers that are allowed for a call.
    fn fillers(&self, choice: &Choice) -> Vec<&'static BTreeSet<String>> {
        let classes = classes_of(choice).classes;
        let mut fillers = vec![filler::always()];
        fillers.extend(classes.iter().map(|class| filler::of_class(class)));
        let filled = |words: &[&str]| {
            choice.parameters.iter().zip(&choice.assignment.slots).any(|(parameter, slot)| {
                parameter.has_word(words) && slot.as_ref().is_some_and(|slot| slot.end > slot.start)
            })
        };
        if filled(&["shift"]) {
            fillers.push(filler::of("shift"));
        }
        if filled(&["agg", "aggregation", "rows"]) && filled(&["values"]) {
            fillers.push(filler::of("group"));
        }
        let cells = |mention: &Mention| matches!(mention.value, MentionValue::Literal(Literal::Cells(_)));
        if self.parsed.mentions.iter().any(cells) {
            fillers.push(filler::of("cells"));
        }
        let mut slots = self.calls.iter().flat_map(|call| call.assignment.slots.iter().flatten());
        if slots.any(|slot| slot.value == ArgumentValue::Result) {
            fillers.push(filler::of("result"));
        }
        fillers
    }

    /// Whether a text is the number of calls, rows or list items.
    fn counts(&self, text: &str) -> bool {
        let rows =
            self.calls.iter().flat_map(|call| call.assignment.slots.iter().flatten()).find_map(|slot| {
                match &slot.value {
                    ArgumentValue::FromRequest(serde_json::Value::Array(rows))
                        if rows.iter().all(serde_json::Value::is_array) =>
                    {
                        Some(rows.len())
                    }
                    _ => None,
                }
            });
        // 加两条观察：“甲”、“乙”: the number of list items, or of texts in the only object of a list.
        let texts =
            self.calls.iter().flat_map(|call| call.assignment.slots.iter().flatten()).find_map(|slot| {
                match &slot.value {
                    ArgumentValue::FromRequest(serde_json::Value::Array(rows))
                        if !rows.iter().any(serde_json::Value::is_array) =>
                    {
                        let inner = rows
                            .first()
                            .and_then(serde_json::Value::as_object)
                            .into_iter()
                            .flat_map(|row| row.values());
                        inner
                            .filter_map(serde_json::Value::as_array)
                            .map(Vec::len)
                            .next()
                            .filter(|_| rows.len() == 1)
                            .or(Some(rows.len()))
                    }
                    _ => None,
                }
            });
        let number = |text: &str| COUNT_WORDS.iter().find(|(word, _)| *word == text).map(|(_, count)| *count);
        let (head, unit) = text.rsplit_once(' ').unwrap_or(match text.strip_suffix('行') {
            Some(head) => (head, "行"),
            None => (text, ""),
        });
        match unit {
            "rows" | "lines" | "row" | "line" | "行" => {
                number(head).is_some_and(|count| Some(count) == rows)
            }
            _ => number(text)
                .is_some_and(|count| count > 1 && (count == self.calls.len() || Some(count) == texts)),
        }
    }

    /// Words for the kinds of things in the tool's name and arguments.
    fn things(&self, choice: &Choice) -> Vec<(usize, usize)> {
        let mut rows: Vec<usize> = Vec::new();
        let mut add = |text: &str| {
            let all = crate::lexer::token::tokenize(text);
            let word_matches = lexicon::word_matches(text, &all, &|_| false);
            rows.extend(word_matches.iter().flat_map(|word_match| word_match.meaning.things.iter().copied()));
        };
        add(&name_words(choice.tool.name().as_str()).join(" "));
        for (parameter, slot) in choice.parameters.iter().zip(&choice.assignment.slots) {
            if slot.is_some() {
                add(&parameter.words.join(" "));
                if let ValueType::List(item) = &parameter.shape
                    && let ValueType::Object(members) = &item.shape
                {
                    members.iter().for_each(|member| add(&member.words.join(" ")));
                }
            }
        }
        rows.extend(self.implied());
        let deletes = classes_of(choice).classes.contains("delete");
        // The tool's own environment may be mentioned: `in the knowledge graph`, `from my calendar`.
        let described = choice.tool.definition.description();
        let head = first_sentence(described);
        let all = crate::lexer::token::tokenize(head);
        let inside: Vec<usize> = lexicon::word_matches(head, &all, &|_| false)
            .into_iter()
            .flat_map(|word_match| word_match.meaning.things)
            .collect();
        // The entities of a graph are its nodes.
        let is_node = |thing: &usize| lexicon::thing(*thing).name == "node";
        let is_entity = |thing: &usize| lexicon::thing(*thing).name == "entity";
        let word_matches = lexicon::word_matches(self.parsed.text, &self.parsed.tokens, &|_| false);
        let agree = |word_match: &&lexicon::WordMatch| {
            let things = &word_match.meaning.things;
            let stated = self.parsed.text.get(word_match.start..word_match.end).unwrap_or_default();
            let small = !stated.contains(char::is_uppercase);
            let vague = |thing: &usize| small && VAGUE_NOUNS.contains(&lexicon::thing(*thing).name);
            things.iter().any(|thing| rows.contains(thing))
                || !deletes && !things.is_empty() && things.iter().all(vague)
                || things.iter().any(|thing| inside.contains(thing)) && self.is_place(word_match)
                || things.iter().any(is_node) && inside.iter().any(is_entity)
        };
        word_matches.iter().filter(agree).map(|word_match| (word_match.start, word_match.end)).collect()
    }

    /// Words of the description's first sentence that neither restrict, count nor name another kind of thing: they only repeat
    /// the tool's purpose. Empty for tools that delete.
    fn described_words(&self, choice: &Choice) -> BTreeSet<String> {
        if classes_of(choice).classes.contains("delete") {
            return BTreeSet::new();
        }
        let head = first_sentence(choice.tool.definition.description()).to_lowercase();
        let plain = |word: &&str| {
            let all = crate::lexer::token::tokenize(word);
            word.len() > 2
                && !RESTRICTING_WORDS.contains(word)
                && !VERBS.english.contains_key(*word)
                && lexicon::word_matches(word, &all, &|_| false).is_empty()
        };
        head.split(|c: char| !c.is_alphanumeric()).filter(plain).map(labels::stem).collect()
    }

    /// `to my to-do list`, `in the address book`: the byte ranges of two or more adjacent words of the description's first
    /// sentence. Empty for tools that delete.
    fn repeated(&self, choice: &Choice) -> Vec<(usize, usize)> {
        if classes_of(choice).classes.contains("delete") {
            return Vec::new();
        }
        let stems = |text: &str| -> Vec<String> {
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            words.map(|word| labels::stem(&word.to_lowercase())).collect()
        };
        let described = stems(first_sentence(choice.tool.definition.description()));
        let words: Vec<&Token<'_>> =
            self.parsed.tokens.iter().filter(|token| token.kind == TokenKind::Word).collect();
        let content =
            |word: &str| !crate::lexer::stop_words::is_stop(word) && !RESTRICTING_WORDS.contains(&word);
        let pairs = words.windows(2).filter(|pair| {
            let stated: Vec<String> = pair.iter().flat_map(|token| stems(token.text)).collect();
            pair.iter().any(|token| content(&token.text.to_lowercase()))
                && self.parsed.text.get(pair[0].end..pair[1].start).is_some_and(|gap| gap.trim().is_empty())
                && described.windows(stated.len()).any(|run| run == stated.as_slice())
        });
        pairs.map(|pair| (pair[0].start, pair[1].end)).collect()
    }

    /// Whether a word is a location: after `in`, `from` or `to`, or before 里 or 中.
    fn is_place(&self, word_match: &lexicon::WordMatch) -> bool {
        let before = self.parsed.text.get(..word_match.start).unwrap_or_default().trim_end().to_lowercase();
        let mut words = before.rsplit(' ');
        let last = words.next().unwrap_or_default();
        let lead = if ["the", "my", "our", "this"].contains(&last) {
            words.next().unwrap_or_default()
        } else {
            last
        };
        let after = self.parsed.text.get(word_match.end..).unwrap_or_default().trim_start();
        ["in", "from", "to", "into", "on", "off"].contains(&lead)
            || before.ends_with(['在', '从', '往'])
            || after.starts_with(['里', '中', '上'])
    }

    /// The byte ranges of the labels of arguments that were found.
    fn names_of_arguments(&self, choice: &Choice) -> Vec<(usize, usize)> {
        let stems = labels::stems(self.parsed);
        let context = MatchContext { parsed: self.parsed, stems, tool_words: Vec::new() };
        let mut found = Vec::new();
        for (parameter, slot) in choice.parameters.iter().zip(&choice.assignment.slots) {
            let Some(slot) = slot else { continue };
            // The members of an object are labelled beside their values.
            if let ValueType::List(item) = &parameter.shape
                && let ValueType::Object(members) = &item.shape
            {
                let named = members.iter().flat_map(|member| {
                    let last = member.words.last().cloned().unwrap_or_default();
                    let mut all = vec![labels::Label::new(&last, 1.0)];
                    all.extend(labels::family(&last).iter().map(|name| labels::Label::new(name, 1.0)));
                    labels::find(&all, self.parsed, &context.stems)
                });
                found.extend(named.map(|span| (span.start, span.end)));
            }
            for span in labels::find(&parameter.labels, self.parsed, &context.stems) {
                let is_close = slot.end <= slot.start
                    || labels::closeness(span, self.parsed, slot.start, slot.end) > 0.8;
                if is_close && span.strength >= 1.0 {
                    found.push((span.start, span.end));
                }
            }
        }
        found
    }
}

/// Kinds of things that are mentioned beside others without restricting them: `the changes`, `the repository`.
const VAGUE_NOUNS: [&str; 3] = ["diff", "repository", "graph"];

/// Words that restrict, count, compare or negate. They add meaning that a tool's description does not cover.
const RESTRICTING_WORDS: [&str; 32] = [
    "all", "both", "each", "every", "only", "but", "not", "without", "except", "other", "others", "another",
    "several", "certain", "some", "any", "one", "two", "first", "last", "next", "more", "less", "least",
    "most", "than", "before", "after", "instead", "existing", "hidden", "same",
];

fn first_sentence(description: &str) -> &str {
    description.split(['.', '\n', '。']).find(|part| !part.trim().is_empty()).unwrap_or_default()
}

/// Whether the tool's description covers everything and no parameter restricts it.
fn takes_all(choice: &Choice) -> bool {
    let head = choice.tool.definition.description().to_lowercase();
    let head = head.split(['.', '\n']).next().unwrap_or_default();
    let names_all =
        head.split(|c: char| !c.is_alphanumeric()).any(|word| word == "everything" || word == "all");
    names_all && choice.parameters.iter().all(|parameter| parameter.role == Role::Path && parameter.required)
}

/// Marks that may change the meaning; all others are punctuation.
fn is_significant_mark(mark: &str) -> bool {
    matches!(mark, "%" | "#" | "@" | "&" | "+" | "<" | ">" | "≥" | "≤" | "≠" | "!")
}

/// All strings and numbers inside a JSON value.
pub(crate) fn texts_in(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::String(text) => vec![text.clone()],
        serde_json::Value::Number(number) => vec![number.to_string()],
        serde_json::Value::Array(items) => items.iter().flat_map(texts_in).collect(),
        serde_json::Value::Object(members) => members.values().flat_map(texts_in).collect(),
        _ => Vec::new(),
    }
}
