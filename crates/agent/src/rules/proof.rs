//! Whether the words of a request prove a step that changes something. A planner without a model knows little, so it may only
//! change what was asked for beyond doubt: the verb is of the class of the tool's own verb, every word is used, every argument was
//! found by its role, and no other tool is proven by the same words.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use toolhub_core::lang::Text;

use super::candidate::{Candidate, GOOD, Given, Scene};
use super::choose::Choice;
use super::labels;
use super::lexicon;
use super::literal::Literal;
use super::mention::{Mention, Reading, Value};
use super::parameter::{Parameter, Shape, words};
use super::role::Role;
use super::token::{Kind, Token};

const CLASSES: &str = include_str!("../../data/verb_classes.tsv");
const FILLERS: &str = include_str!("../../data/fillers.tsv");

/// An argument that fits less than this was taken because nothing else was left.
const BY_ROLE: f32 = GOOD - 0.1;
/// A word that says nothing elsewhere is a name where it is labelled so plainly.
const PLAINLY: f32 = GOOD + 1.0;
/// How much better an optional parameter may be fitted by what a required one has.
const NEARLY: f32 = 0.2;
/// How much worse another value of the same request must fit.
const CLEARLY: f32 = 0.5;
/// Words that are shown.
const SHOWN: usize = 8;

/// Verbs of requests and of tools.
struct Classes {
    /// By a word of a tool's name.
    tools: HashMap<&'static str, BTreeSet<&'static str>>,
    /// By an English verb; words joined by blanks.
    english: HashMap<String, BTreeSet<&'static str>>,
    chinese: HashMap<&'static str, BTreeSet<&'static str>>,
    /// The longest English and Chinese verb, in words and in characters.
    longest: (usize, usize),
}

static VERBS: LazyLock<Classes> = LazyLock::new(|| {
    let (mut tools, mut english, mut chinese) = (HashMap::new(), HashMap::new(), HashMap::new());
    for row in CLASSES.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = row.split('\t');
        let mut next = || columns.next().unwrap_or_default().split_whitespace();
        let Some(class) = next().next() else { continue };
        let add = |set: &mut BTreeSet<&'static str>| {
            set.insert(class);
        };
        next().for_each(|word| add(tools.entry(word).or_default()));
        next().for_each(|word| add(english.entry(word.replace('_', " ")).or_default()));
        next().for_each(|word| add(chinese.entry(word).or_default()));
    }
    let words = english.keys().map(|verb: &String| verb.split(' ').count()).max().unwrap_or(1);
    let characters = chinese.keys().map(|verb: &&str| verb.chars().count()).max().unwrap_or(1);
    Classes { tools, english, chinese, longest: (words, characters) }
});

/// Words that say nothing of what is to be done, each kind in both languages.
struct Small {
    always: BTreeSet<String>,
    /// Where something is inserted or created.
    insert: BTreeSet<String>,
    /// Where cells are named.
    cells: BTreeSet<String>,
    /// Where cells are merged.
    merge: BTreeSet<String>,
    /// Where it is said which way cells move.
    shift: BTreeSet<String>,
    /// Where something is grouped and summed up.
    group: BTreeSet<String>,
    /// Where the result of an earlier step is an argument.
    result: BTreeSet<String>,
}

/// Numbers in words, for calls that are made so often.
const COUNTS: [(&str, usize); 8] =
    [("two", 2), ("both", 2), ("three", 3), ("four", 4), ("两", 2), ("二", 2), ("三", 3), ("四", 4)];
/// The most tokens of a filler.
const LONGEST_FILLER: usize = 4;

static SMALL: LazyLock<Small> = LazyLock::new(|| {
    let rows = |heads: &[&str]| {
        let rows = FILLERS.lines().filter_map(|line| line.split_once('\t'));
        let rows = rows.filter(|(head, _)| heads.contains(head));
        rows.flat_map(|(_, words)| words.split_whitespace()).map(|word| word.replace('_', " ")).collect()
    };
    Small {
        always: rows(&["en", "zh"]),
        insert: rows(&["insert"]),
        cells: rows(&["cells"]),
        merge: rows(&["merge"]),
        shift: rows(&["shift"]),
        group: rows(&["group"]),
        result: rows(&["result"]),
    }
});

/// Why a step is not proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Doubt {
    /// No verb of the request is of the class of the tool's.
    Verb,
    /// Words that the step does not use.
    Unused(Vec<String>),
    /// An argument that was taken because nothing else was left, or for which another value fits as well.
    Guessed(String),
    /// Another tool that the same words prove.
    Rival(String),
}

impl Doubt {
    pub(super) fn text(&self, tool: &str) -> Text {
        match self {
            Self::Verb => Text::new(
                format!("the request has no verb for what `{tool}` does"),
                format!("请求中没有与 `{tool}` 的操作相符的动词"),
            ),
            Self::Unused(words) => {
                let shown: Vec<String> = words.iter().take(SHOWN).map(|word| format!("`{word}`")).collect();
                Text::new(
                    format!("not understood: {}", shown.join(", ")),
                    format!("没有看懂：{}", shown.join("、")),
                )
            }
            Self::Guessed(parameter) => Text::new(
                format!("the value of `{parameter}` is a guess: say it as `{parameter} = …`"),
                format!("`{parameter}` 的值是猜测的：请写成 `{parameter} = …`"),
            ),
            Self::Rival(other) => Text::new(
                format!("`{other}` fits as well: name the tool that is meant"),
                format!("`{other}` 同样适合：请写出要用的工具名"),
            ),
        }
    }
}

/// Whether a tool leaves everything as it is: by its hint, else by its verb.
pub(super) fn is_harmless(choice: &Choice) -> bool {
    if let Some(read_only) = choice.tool.hints().read_only {
        return read_only;
    }
    const READING: [&str; 32] = [
        "read",
        "get",
        "list",
        "search",
        "find",
        "show",
        "describe",
        "validate",
        "fetch",
        "query",
        "count",
        "check",
        "calculate",
        "compute",
        "convert",
        "status",
        "log",
        "diff",
        "view",
        "look",
        "lookup",
        "preview",
        "inspect",
        "explain",
        "summarize",
        "analyze",
        "compare",
        "translate",
        "evaluate",
        "verify",
        "test",
        "echo",
    ];
    let name = words(choice.tool.name().as_str());
    // `git_log`: what stands first may be whose tool it is.
    let verb = name
        .iter()
        .take(2)
        .find(|word| READING.contains(&word.as_str()) || VERBS.tools.contains_key(word.as_str()));
    verb.is_some_and(|verb| READING.contains(&verb.as_str()))
}

/// A part of a request with the calls that were made of it.
pub(super) struct Claim<'a> {
    pub(super) reading: &'a Reading<'a>,
    pub(super) calls: &'a [Choice],
}

impl Claim<'_> {
    /// Everything that keeps the first call from being proven; the others differ from it in arguments alone.
    pub(super) fn doubts(&self) -> Vec<Doubt> {
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

    /// Whether another tool may be meant by what the request speaks of: a tool whose name tells of things that nobody
    /// mentioned, or that knows fewer of the things that were named, is not, where the chosen one fits.
    fn is_comparable(&self, choice: &Choice, rival: &Choice) -> bool {
        let rows = |text: &str| -> BTreeSet<usize> {
            let all = super::token::tokens(text);
            lexicon::spots(text, &all, &|_| false).into_iter().flat_map(|spot| spot.meaning.things).collect()
        };
        let named = |choice: &Choice| rows(&words(choice.tool.name().as_str()).join(" "));
        let literal = |token: &Token<'_>| {
            self.reading.mentions.iter().any(|mention| {
                matches!(mention.value, Value::Literal(_))
                    && mention.start < token.end
                    && token.start < mention.end
            })
        };
        let spots = lexicon::spots(self.reading.text, &self.reading.tokens, &literal);
        let said: BTreeSet<usize> = spots.into_iter().flat_map(|spot| spot.meaning.things).collect();
        let implied = self.implied();
        let meant = |row: &usize| said.contains(row) || implied.contains(row);
        let (own, other) = (named(choice), named(rival));
        let fits = own.iter().all(meant);
        let strange = other.iter().any(|row| !meant(row));
        let of = |rows: &BTreeSet<usize>| -> BTreeSet<usize> { rows.intersection(&said).copied().collect() };
        let fewer = of(&other).is_subset(&of(&own)) && of(&other).len() < of(&own).len();
        !(fits && (strange || fewer))
    }

    /// The kinds of things that files, cells and formulas of the request are.
    fn implied(&self) -> Vec<usize> {
        let kinds = self.reading.mentions.iter().filter_map(|mention| match &mention.value {
            Value::Literal(Literal::Path(path)) => Some(super::deed::of_file(path)),
            Value::Literal(Literal::Quoted(text)) if text.contains(['/', '\\']) => {
                Some(super::deed::of_file(text))
            }
            Value::Literal(Literal::Cells(_)) => Some("cell"),
            Value::Literal(Literal::Formula(_)) => Some("formula"),
            _ => None,
        });
        kinds.filter_map(lexicon::thing_named).collect()
    }

    /// Whether the same words prove another tool.
    fn proves(&self, rival: &Choice) -> bool {
        let name = self.calls[0].tool.name();
        rival.tool.name() != name
            && rival.is_whole()
            && Claim { reading: self.reading, calls: std::slice::from_ref(rival) }
                .own_doubts(rival)
                .is_empty()
    }

    fn own_doubts(&self, choice: &Choice) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        let verbs = verbs(self.reading, &classes_of(choice), &self.said());
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

    /// `Line chart of A1:B13 at E2`, `italic, size 14 for B2`: a request without any verb that begins with what is to be made, or
    /// with the format that is to be given.
    fn is_noun_phrase(&self, choice: &Choice) -> bool {
        let classes = classes_of(choice).classes;
        let first = self.reading.tokens.iter().position(|token| token.kind != Kind::Mark).unwrap_or(0);
        let head: Vec<&Token<'_>> = self.reading.tokens[first..].iter().take(3).collect();
        let known = |token: &&Token<'_>| {
            let lower = token.text.to_lowercase();
            VERBS.english.contains_key(&lower)
                && !["chart", "graph", "plot", "bold", "format", "style"].contains(&lower.as_str())
        };
        let verbs =
            self.reading.tokens.iter().filter(|token| token.kind == Kind::Word).any(|token| known(&token));
        let asks = self.reading.text.contains(['?', '？'])
            || self.reading.tokens.iter().any(|token| {
                token.is_any(&[
                    "is", "are", "was", "were", "has", "have", "did", "does", "if", "what", "which", "why",
                    "should",
                ]) || token.kind == Kind::Han
            });
        if verbs || asks {
            return false;
        }
        if classes.contains("format") {
            let flags = ["bold", "italic", "underline", "underlined", "italics"];
            return head.first().is_some_and(|token| token.is_any(&flags));
        }
        let things: Vec<String> = words(choice.tool.name().as_str()).into_iter().skip(1).collect();
        classes.contains("create")
            && choice.filling.slots.iter().flatten().count() > 2
            && head.iter().any(|token| things.iter().any(|thing| token.is(thing)))
    }

    /// Where arguments stand that are no verbs: what is a flag or a choice may be both, as `wrap` is.
    fn said(&self) -> Vec<(usize, usize)> {
        let slots = self.calls.iter().flat_map(|call| call.parameters.iter().zip(&call.filling.slots));
        let plain = slots.filter(|(parameter, _)| {
            !matches!(parameter.shape, Shape::Boolean)
                && parameter.choices.is_empty()
                && super::choice::kinds(&parameter.words).is_empty()
        });
        let slots = plain.filter_map(|(_, slot)| slot.as_ref());
        slots.filter(|slot| slot.end > slot.start).map(|slot| (slot.start, slot.end)).collect()
    }

    /// Where arguments were read from.
    fn taken(&self) -> Vec<(usize, usize)> {
        let mut taken = Vec::new();
        for slot in self.calls.iter().flat_map(|call| call.filling.slots.iter().flatten()) {
            if slot.end > slot.start {
                taken.push((slot.start, slot.end));
            }
            if let Given::Said(value) = &slot.value {
                let texts = texts_in(value).into_iter().filter(|text| text.chars().count() > 1);
                taken.extend(texts.filter_map(|text| self.place_of(&text)));
            }
        }
        taken
    }

    /// Where a text stands in the request as whole words.
    fn place_of(&self, text: &str) -> Option<(usize, usize)> {
        let tokens = &self.reading.tokens;
        let mut places = self.reading.text.match_indices(text).map(|(at, _)| (at, at + text.len()));
        places.find(|(start, end)| {
            tokens.iter().any(|token| token.start == *start) && tokens.iter().any(|token| token.end == *end)
        })
    }

    fn unused(&self, choice: &Choice, verbs: &[(usize, usize)]) -> Vec<String> {
        let reading = self.reading;
        let mut used = self.taken();
        used.extend(verbs);
        used.extend(self.things(choice));
        used.extend(self.names_of_arguments(choice));
        used.extend(self.flags());
        used.extend(self.filled_ranges(choice));
        let fillers = self.fillers(choice);
        let tool_words: Vec<String> =
            words(choice.tool.name().as_str()).iter().map(|word| labels::stem(word)).collect();
        // 表头 is one word, though 表 alone may be an argument's name.
        let words_of_two: Vec<(usize, usize)> = (0..reading.tokens.len().saturating_sub(1))
            .filter_map(|at| {
                let (first, second) = (&reading.tokens[at], &reading.tokens[at + 1]);
                let text = reading.text.get(first.start..second.end)?;
                let han = first.kind == Kind::Han && second.kind == Kind::Han;
                (han && fillers.iter().any(|set| set.contains(text))).then_some((first.start, second.end))
            })
            .collect();
        used.extend(words_of_two);
        let covered =
            |token: &Token<'_>| used.iter().any(|(from, to)| *from < token.end && token.start < *to);
        let mut unused: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        while let Some(token) = reading.tokens.get(at) {
            at += 1;
            let ends = token.text == "!"
                && !reading.text[token.end..].starts_with(|c: char| c.is_alphanumeric() || c == '=');
            if covered(token) || ends || (token.kind == Kind::Mark && !is_telling(token.text)) {
                continue;
            }
            let run = reading.tokens[at - 1..].iter().take(LONGEST_FILLER);
            let run = run.take_while(|other| other.kind == token.kind && !covered(other)).count();
            let filler = (1..=run).rev().find(|length| {
                let end = reading.tokens[at + length - 2].end;
                let text = reading.text.get(token.start..end).unwrap_or_default();
                let text = text.to_lowercase().replace('’', "'");
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                fillers.iter().any(|set| set.contains(&text)) || self.counts(&text)
            });
            if let Some(length) = filler {
                at += length - 1;
                continue;
            }
            if takes_all(choice) && token.is_any(&["everything", "all"]) {
                continue;
            }
            if token.kind == Kind::Word && tool_words.contains(&labels::stem(token.text)) {
                continue;
            }
            let joined =
                |end: usize| reading.text.get(end..token.start).is_some_and(|gap| gap.trim().is_empty());
            match unused.last_mut().filter(|(_, end)| joined(*end)) {
                Some(last) => last.1 = token.end,
                None => unused.push((token.start, token.end)),
            }
        }
        unused.iter().filter_map(|(start, end)| reading.text.get(*start..*end)).map(str::to_owned).collect()
    }

    /// Where the words stand that turn flags on or off.
    fn flags(&self) -> Vec<(usize, usize)> {
        let slots = self.calls.iter().flat_map(|call| call.parameters.iter().zip(&call.filling.slots));
        let flags = slots.filter(|(parameter, _)| parameter.shape == Shape::Boolean);
        let starts = flags.filter_map(|(_, slot)| slot.as_ref().map(|slot| slot.start));
        starts
            .filter_map(|start| {
                let at = self.reading.token_at(start);
                let token = self.reading.tokens.get(at).filter(|token| token.start == start)?;
                let end = match token.kind {
                    // 斜体, 加粗: a word of two characters.
                    Kind::Han => self.reading.tokens.get(at + 1).filter(|next| next.kind == Kind::Han)?.end,
                    _ => token.end,
                };
                Some((token.start, end))
            })
            .collect()
    }

    /// `write Name, Mail into A1:B1`: a range is used by its first cell where there is one value for each of its cells.
    fn filled_ranges(&self, choice: &Choice) -> Vec<(usize, usize)> {
        let values = choice.filling.slots.iter().flatten().find_map(|slot| match &slot.value {
            Given::Said(serde_json::Value::Array(rows)) => {
                Some(rows.iter().map(|row| row.as_array().map_or(0, Vec::len)).sum::<usize>())
            }
            _ => None,
        });
        let ranges = self.reading.mentions.iter().filter_map(|mention| match &mention.value {
            Value::Literal(Literal::Cells(cells)) => Some((mention, cells_of(cells)?)),
            _ => None,
        });
        ranges
            .filter(|(mention, count)| {
                values == Some(*count)
                    && choice.filling.slots.iter().flatten().any(|slot| slot.start == mention.start)
            })
            .map(|(mention, _)| (mention.start, mention.end))
            .collect()
    }

    /// The fillers that count for a call.
    fn fillers(&self, choice: &Choice) -> Vec<&'static BTreeSet<String>> {
        let classes = classes_of(choice).classes;
        let mut fillers = vec![&SMALL.always];
        if classes.contains("insert") || classes.contains("create") {
            fillers.push(&SMALL.insert);
        }
        if classes.contains("merge") || classes.contains("unmerge") {
            fillers.push(&SMALL.merge);
        }
        let filled = |words: &[&str]| {
            choice.parameters.iter().zip(&choice.filling.slots).any(|(parameter, slot)| {
                parameter.has_word(words) && slot.as_ref().is_some_and(|slot| slot.end > slot.start)
            })
        };
        if filled(&["shift"]) {
            fillers.push(&SMALL.shift);
        }
        if filled(&["agg", "aggregation", "rows"]) && filled(&["values"]) {
            fillers.push(&SMALL.group);
        }
        let cells = |mention: &Mention| matches!(mention.value, Value::Literal(Literal::Cells(_)));
        if self.reading.mentions.iter().any(cells) {
            fillers.push(&SMALL.cells);
        }
        let mut slots = self.calls.iter().flat_map(|call| call.filling.slots.iter().flatten());
        if slots.any(|slot| slot.value == Given::Result) {
            fillers.push(&SMALL.result);
        }
        fillers
    }

    /// Whether a word says how many calls there are.
    fn counts(&self, text: &str) -> bool {
        let rows =
            self.calls.iter().flat_map(|call| call.filling.slots.iter().flatten()).find_map(
                |slot| match &slot.value {
                    Given::Said(serde_json::Value::Array(rows))
                        if rows.iter().all(serde_json::Value::is_array) =>
                    {
                        Some(rows.len())
                    }
                    _ => None,
                },
            );
        let number = |text: &str| COUNTS.iter().find(|(word, _)| *word == text).map(|(_, count)| *count);
        let (head, unit) = text.rsplit_once(' ').unwrap_or(match text.strip_suffix('行') {
            Some(head) => (head, "行"),
            None => (text, ""),
        });
        match unit {
            "rows" | "lines" | "行" => number(head).is_some_and(|count| Some(count) == rows),
            _ => number(text) == Some(self.calls.len()),
        }
    }

    /// The first argument that was not found by its role, or that might as well be another.
    fn guessed(&self, choice: &Choice) -> Option<String> {
        let used = |other: &Candidate| {
            self.calls.iter().any(|call| call.filling.uses(other.start, other.end))
                || other.end <= other.start
        };
        let others = |place: usize| choice.filling.others.get(place).into_iter().flatten();
        if self.leaves_sum(choice) {
            let sum = choice
                .parameters
                .iter()
                .find(|parameter| parameter.has_word(&["agg", "aggregation", "aggregate"]));
            return sum.map(|parameter| parameter.name.clone());
        }
        for (place, parameter) in choice.parameters.iter().enumerate() {
            let Some(slot) = &choice.filling.slots[place] else { continue };
            if slot.end <= slot.start {
                continue;
            }
            let said = self.reading.text.get(slot.start..slot.end).unwrap_or_default();
            let short = said.chars().nth(1).is_none();
            let small = SMALL.always.contains(said)
                && (short || parameter.role != Role::Sheet || slot.score < PLAINLY);
            if slot.score < least(parameter) || small || self.is_torn(parameter, slot) {
                return Some(parameter.name.clone());
            }
            let near = |other: &Candidate| !used(other) && other.score + CLEARLY > slot.score;
            if parameter.shape == Shape::Text && parameter.required && others(place).any(near) {
                return Some(parameter.name.clone());
            }
            // The same words fit another parameter that has nothing: which of the two is meant was not said.
            let fits = |other: &Candidate| {
                other.start < slot.end && slot.start < other.end && other.score + CLEARLY > slot.score
            };
            // What is needed comes before what may be left out, unless that fits better.
            let before = |other: usize| {
                let other = &choice.parameters[other];
                parameter.required && parameter.role != Role::Sheet && !other.required
            };
            // `called X` is a name, and not how something looks.
            let titled = parameter.has_word(&["name", "title"]) && self.is_called(slot.start);
            let better = |other: &Candidate| fits(other) && other.score > slot.score + NEARLY;
            let empty = |other: usize| other != place && choice.filling.slots[other].is_none();
            let rivals = |other: usize| match before(other) {
                true => others(other).any(better),
                false => others(other).any(fits),
            };
            let named = |other: usize| !titled || choice.parameters[other].has_word(&["name", "title"]);
            if (0..choice.parameters.len()).any(|other| empty(other) && named(other) && rivals(other)) {
                return Some(parameter.name.clone());
            }
        }
        None
    }

    /// Whether a list was cut where its members may not end: at an `and` among commas, inside a number, or with the words of
    /// another part of the request.
    fn is_torn(&self, parameter: &Parameter, slot: &Candidate) -> bool {
        let Given::Said(value @ serde_json::Value::Array(_)) = &slot.value else { return false };
        let said = self.reading.text.get(slot.start..slot.end).unwrap_or_default();
        if !matches!(parameter.shape, Shape::List(_)) || said.starts_with(['[', '{', '(']) {
            return false;
        }
        let is_quoted = said.contains(['"', '“', '「', '\'', '‘', '『']);
        let digits = said.as_bytes().windows(5).any(|part| {
            part[0].is_ascii_digit() && part[1] == b',' && part[2..].iter().all(u8::is_ascii_digit)
        });
        let mixed = said.find(" and ").is_some_and(|at| said[at..].contains(',') && said[..at].contains(','))
            || said.find('和').is_some_and(|at| said[at..].contains('、'));
        let strange = ["in", "on", "to", "of", "with", "then", "into", "from", "at", "sheet", "cell"];
        let foreign =
            |text: &String| text.split(' ').any(|word| strange.contains(&word.to_lowercase().as_str()));
        digits || mixed || !is_quoted && texts_in(value).iter().any(foreign)
    }

    /// Whether a request says how values are summed up, and the call does not.
    fn leaves_sum(&self, choice: &Choice) -> bool {
        let unsaid = choice.parameters.iter().zip(&choice.filling.slots).any(|(parameter, slot)| {
            parameter.has_word(&["agg", "aggregation", "aggregate"]) && slot.is_none()
        });
        let lower = self.reading.text.to_lowercase();
        let words = [
            "sum", "total", "average", "mean", "count", "max", "min", "汇总", "求", "合计", "总", "平均",
            "计数", "统计",
        ];
        unsaid && words.iter().any(|word| lower.contains(word))
    }

    /// Whether the word before a place says that a name follows.
    fn is_called(&self, start: usize) -> bool {
        let before = self.reading.text.get(..start).unwrap_or_default();
        let before =
            before.trim_end_matches(|c: char| c.is_whitespace() || "\"'“‘「".contains(c)).to_lowercase();
        ["called", "named", "叫", "叫做", "名为", "命名为", "名字是", "名称为"]
            .iter()
            .any(|word| before.ends_with(word))
    }

    /// Words for the kinds of things that the tool's name and its arguments are about.
    fn things(&self, choice: &Choice) -> Vec<(usize, usize)> {
        let mut about: Vec<usize> = Vec::new();
        let mut add = |text: &str| {
            let all = super::token::tokens(text);
            let spots = lexicon::spots(text, &all, &|_| false);
            about.extend(spots.iter().flat_map(|spot| spot.meaning.things.iter().copied()));
        };
        add(&words(choice.tool.name().as_str()).join(" "));
        for (parameter, slot) in choice.parameters.iter().zip(&choice.filling.slots) {
            if slot.is_some() {
                add(&parameter.words.join(" "));
                if let Shape::List(item) = &parameter.shape
                    && let Shape::Object(members) = &item.shape
                {
                    members.iter().for_each(|member| add(&member.words.join(" ")));
                }
            }
        }
        about.extend(self.implied());
        // What the tool works in is said in passing: `in the knowledge graph`, `from my calendar`.
        let described = choice.tool.definition.description();
        let head =
            described.split(['.', '\n', '。']).find(|part| !part.trim().is_empty()).unwrap_or_default();
        let all = super::token::tokens(head);
        let inside: Vec<usize> =
            lexicon::spots(head, &all, &|_| false).into_iter().flat_map(|spot| spot.meaning.things).collect();
        let spots = lexicon::spots(self.reading.text, &self.reading.tokens, &|_| false);
        let agree = |spot: &&lexicon::Spot| {
            let things = &spot.meaning.things;
            things.iter().any(|thing| about.contains(thing))
                || things.iter().any(|thing| inside.contains(thing)) && self.is_place(spot)
        };
        spots.iter().filter(agree).map(|spot| (spot.start, spot.end)).collect()
    }

    /// Whether a word stands where something is told to be: after `in`, `from` or `to`, or before 里 or 中.
    fn is_place(&self, spot: &lexicon::Spot) -> bool {
        let before = self.reading.text.get(..spot.start).unwrap_or_default().trim_end().to_lowercase();
        let mut words = before.rsplit(' ');
        let last = words.next().unwrap_or_default();
        let lead = if ["the", "my", "our", "this"].contains(&last) {
            words.next().unwrap_or_default()
        } else {
            last
        };
        let after = self.reading.text.get(spot.end..).unwrap_or_default().trim_start();
        ["in", "from", "to", "into", "on"].contains(&lead)
            || before.ends_with(['在', '从', '往'])
            || after.starts_with(['里', '中', '上'])
    }

    /// Where the names of the arguments stand that were found.
    fn names_of_arguments(&self, choice: &Choice) -> Vec<(usize, usize)> {
        let stems = labels::stems(self.reading);
        let scene = Scene { reading: self.reading, stems, tool_words: Vec::new() };
        let mut found = Vec::new();
        for (parameter, slot) in choice.parameters.iter().zip(&choice.filling.slots) {
            let Some(slot) = slot else { continue };
            // The members of an object are named beside their values.
            if let Shape::List(item) = &parameter.shape
                && let Shape::Object(members) = &item.shape
            {
                let named = members.iter().flat_map(|member| {
                    let last = member.words.last().cloned().unwrap_or_default();
                    let mut all = vec![labels::Label::new(&last, 1.0)];
                    all.extend(labels::family(&last).iter().map(|name| labels::Label::new(name, 1.0)));
                    labels::places(&all, self.reading, &scene.stems)
                });
                found.extend(named.map(|place| (place.start, place.end)));
            }
            for place in labels::places(&parameter.labels, self.reading, &scene.stems) {
                let near = slot.end <= slot.start
                    || labels::closeness(place, self.reading, slot.start, slot.end) > 0.8;
                if near && place.strength >= 1.0 {
                    found.push((place.start, place.end));
                }
            }
        }
        found
    }
}

/// How many cells a range has that is one row or one column.
fn cells_of(range: &str) -> Option<usize> {
    let (first, last) = range.split_once(':')?;
    let column = |cell: &str| {
        let letters = cell.bytes().take_while(u8::is_ascii_uppercase);
        letters.fold(0usize, |column, letter| column * 26 + usize::from(letter - b'A') + 1)
    };
    let row = |cell: &str| cell.trim_start_matches(|c: char| c.is_ascii_uppercase()).parse::<usize>().ok();
    let across = column(last).checked_sub(column(first))? + 1;
    let down = row(last)?.checked_sub(row(first)?)? + 1;
    (across == 1 || down == 1).then_some(across * down)
}

/// Whether a tool says that it does everything there is, and takes nothing that would bound it.
fn takes_all(choice: &Choice) -> bool {
    let head = choice.tool.definition.description().to_lowercase();
    let head = head.split(['.', '\n']).next().unwrap_or_default();
    let says = head.split(|c: char| !c.is_alphanumeric()).any(|word| word == "everything" || word == "all");
    says && choice.parameters.iter().all(|parameter| parameter.role == Role::Path && parameter.required)
}

/// Marks that may change what is asked: everything else is punctuation.
fn is_telling(mark: &str) -> bool {
    matches!(mark, "%" | "#" | "@" | "&" | "+" | "<" | ">" | "≥" | "≤" | "≠" | "!")
}

/// The classes of the verb in a tool's name.
fn classes_of(choice: &Choice) -> Verb {
    let name = words(choice.tool.name().as_str());
    let known = name.iter().take(3).find(|word| VERBS.tools.contains_key(word.as_str()));
    match known {
        Some(word) => {
            let mut classes = VERBS.tools[word.as_str()].clone();
            classes.extend(described(choice, word));
            Verb { classes, word: word.clone() }
        }
        None => Verb { classes: BTreeSet::new(), word: name.first().cloned().unwrap_or_default() },
    }
}

/// `Moves or renames a file`: the classes of the verb that a description names beside that of the name.
fn described(choice: &Choice, verb: &str) -> BTreeSet<&'static str> {
    let head = choice.tool.definition.description().trim_start().to_lowercase();
    let mut words = head.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let plain = |word: Option<&str>| word.map(labels::stem).unwrap_or_default();
    let (first, joint, second) = (plain(words.next()), words.next(), plain(words.next()));
    match joint {
        Some("or") if first == labels::stem(verb) => {
            VERBS.tools.get(second.as_str()).cloned().unwrap_or_default()
        }
        _ => BTreeSet::new(),
    }
}

struct Verb {
    classes: BTreeSet<&'static str>,
    word: String,
}

impl Verb {
    fn is_english(&self, verb: &str) -> bool {
        verb == self.word
            || VERBS.english.get(verb).is_some_and(|classes| !classes.is_disjoint(&self.classes))
    }

    fn is_chinese(&self, verb: &str) -> bool {
        VERBS.chinese.get(verb).is_some_and(|classes| !classes.is_disjoint(&self.classes))
    }
}

/// Where verbs of the tool's class stand in a request, outside of what is taken.
fn verbs(reading: &Reading<'_>, tool: &Verb, taken: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let free = |token: &Token<'_>| !taken.iter().any(|(from, to)| *from < token.end && token.start < *to);
    let tokens = &reading.tokens;
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let (longest, kind) = match token.kind {
            Kind::Word => (VERBS.longest.0, Kind::Word),
            Kind::Han => (VERBS.longest.1, Kind::Han),
            _ => {
                at += 1;
                continue;
            }
        };
        let run =
            tokens[at..].iter().take(longest).take_while(|token| token.kind == kind && free(token)).count();
        // The longest verb that stands here, of whatever class.
        let known = (1..=run).rev().find_map(|length| {
            let text = reading.text.get(token.start..tokens[at + length - 1].end)?.to_lowercase();
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let (known, fits) = match kind {
                Kind::Word => {
                    (VERBS.english.contains_key(&text) || text == tool.word, tool.is_english(&text))
                }
                _ => (VERBS.chinese.contains_key(text.as_str()), tool.is_chinese(&text)),
            };
            known.then_some((length, fits))
        });
        match known {
            Some((length, fits)) => {
                if fits {
                    found.push((token.start, tokens[at + length - 1].end));
                }
                at += length;
            }
            None => at += 1,
        }
    }
    if found.is_empty() && tool.classes.contains("unmerge") {
        found.extend(apart(reading));
    }
    found
}

/// 取消 C2 到 C5 的合并, `undo the merge of …`: a verb whose parts stand apart.
fn apart(reading: &Reading<'_>) -> Vec<(usize, usize)> {
    let lower = reading.text.to_lowercase();
    let pairs =
        [("取消", "合并"), ("解除", "合并"), ("撤销", "合并"), ("undo", "merge"), ("remove", "merge")];
    pairs
        .iter()
        .find_map(|(first, second)| {
            let at = lower.find(first)?;
            let next = lower.get(at + first.len()..)?.find(second)? + at + first.len();
            Some(vec![(at, at + first.len()), (next, next + second.len())])
        })
        .unwrap_or_default()
}

/// The texts that a value holds.
fn texts_in(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::String(text) => vec![text.clone()],
        serde_json::Value::Number(number) => vec![number.to_string()],
        serde_json::Value::Array(items) => items.iter().flat_map(texts_in).collect(),
        serde_json::Value::Object(members) => members.values().flat_map(texts_in).collect(),
        _ => Vec::new(),
    }
}

/// How well an argument must fit.
fn least(parameter: &Parameter) -> f32 {
    match (&parameter.shape, parameter.role) {
        // A list or an object is as good as what is in it.
        (Shape::List(_), _) => 1.5,
        (Shape::Object(_), _) => 1.0,
        (Shape::Integer | Shape::Number, _) => 1.2,
        (_, Role::Name | Role::Id | Role::Revision | Role::Other) => 1.5,
        _ => BY_ROLE,
    }
}
