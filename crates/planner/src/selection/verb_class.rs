//! Verb classes: which verbs of a request prove which verbs of a tool.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use crate::lexer::labels;
use crate::lexer::mention::ParsedText;
use crate::lexer::stop_words::is_stop;
use crate::lexer::token::{Token, TokenKind};
use crate::selection::choice::Choice;
use crate::values::parameter::name_words;

const CLASSES: &str = include_str!("../../data/verb_classes.tsv");

/// The verbs of requests and tools with their classes.
pub(crate) struct Classes {
    /// By a word of a tool's name.
    pub(crate) tools: HashMap<&'static str, BTreeSet<&'static str>>,
    /// By an English verb; several words are separated by spaces.
    pub(crate) english: HashMap<String, BTreeSet<&'static str>>,
    pub(crate) chinese: HashMap<&'static str, BTreeSet<&'static str>>,
    /// Verbs with two separated parts, with their class.
    pub(crate) separated_verbs: Vec<(&'static str, String, String)>,
    /// The maximum length of an English verb in words and of a Chinese verb in characters.
    pub(crate) longest: (usize, usize),
}

pub(crate) static VERBS: LazyLock<Classes> = LazyLock::new(|| {
    let (mut tools, mut english, mut chinese) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut separated_verbs = Vec::new();
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
        let pairs = next().filter_map(|pair| pair.split_once('…'));
        separated_verbs.extend(pairs.map(|(one, two)| (class, one.replace('_', " "), two.replace('_', " "))));
    }
    let words = english.keys().map(|verb: &String| verb.split(' ').count()).max().unwrap_or(1);
    let characters = chinese.keys().map(|verb: &&str| verb.chars().count()).max().unwrap_or(1);
    Classes { tools, english, chinese, separated_verbs, longest: (words, characters) }
});

/// Whether a tool changes nothing: by its `readOnlyHint`, otherwise by its verb.
pub(crate) fn is_read_only(choice: &Choice) -> bool {
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
    let name = name_words(choice.tool.name().as_str());
    // `git_log`: the first word may be a namespace.
    let verb = name
        .iter()
        .take(2)
        .find(|word| READING.contains(&word.as_str()) || VERBS.tools.contains_key(word.as_str()));
    match verb {
        Some(verb) => READING.contains(&verb.as_str()),
        // `container_logs: Get the logs of …`: without a verb in the name, the first word of the description decides.
        None => first_word(choice).is_some_and(|word| DESCRIBED_READING.contains(&word.as_str())),
    }
}

/// First words in the descriptions of tools that only read.
const DESCRIBED_READING: [&str; 9] =
    ["get", "list", "show", "read", "return", "find", "search", "describe", "retrieve"];

/// Whether a tool's description starts with `compare`.
pub(crate) fn compares(choice: &Choice) -> bool {
    first_word(choice).is_some_and(|word| word == labels::stem("compare"))
}

/// The stem of the first word of a tool's description.
fn first_word(choice: &Choice) -> Option<String> {
    let head = choice.tool.definition.description().trim_start().to_lowercase();
    let word = head.split(|c: char| !c.is_alphabetic()).next()?;
    (!word.is_empty()).then(|| labels::stem(word))
}

/// Classes whose verbs (`put`, `note`, `link`) create something only if the tool handles certain things: the class; verbs of
/// tools that always belong to the class; words for those things.
const BOUND_CLASSES: [(&str, &[&str], &[&str]); 3] = [
    (
        "schedule",
        &["schedule", "book"],
        &["event", "meeting", "appointment", "calendar", "reminder", "task", "worksheet", "chart", "table"],
    ),
    (
        "remember",
        &["remember", "store", "save"],
        &["entit", "observation", "memory", "fact", "note", "knowledge", "graph", "contact", "task"],
    ),
    ("relate", &[], &["relation", "link", "edge", "connection"]),
];

/// Whether the verbs of a class prove a tool whose own verb is `verb`.
fn is_about(choice: &Choice, verb: &str, class: &str) -> bool {
    let Some((_, own, things)) = BOUND_CLASSES.iter().find(|(name, ..)| *name == class) else { return true };
    let name = name_words(choice.tool.name().as_str()).join(" ");
    let head = choice.tool.definition.description().trim().to_lowercase();
    let head = head.split(['.', '\n']).next().unwrap_or_default();
    own.contains(&verb) || things.iter().any(|thing| name.contains(thing) || head.contains(thing))
}

/// The classes of the verb in a tool's name.
pub(crate) fn classes_of(choice: &Choice) -> Verb {
    let name = name_words(choice.tool.name().as_str());
    let known = name.iter().take(3).find(|word| VERBS.tools.contains_key(word.as_str()));
    match known {
        Some(word) => {
            let mut classes = VERBS.tools[word.as_str()].clone();
            classes.retain(|class| is_about(choice, word, class));
            classes.extend(described(choice, word));
            // `create_draft` is also of the class of `draft`.
            if MAKING.contains(&word.as_str()) {
                let nouns = name.iter().filter(|noun| *noun != word);
                classes.extend(nouns.filter_map(|noun| VERBS.tools.get(noun.as_str())).flatten());
            }
            Verb { classes, words: vec![word.clone()] }
        }
        // `complete_todo: Mark a task as done`: if the verb of the name is in no class, the first word of the description is
        // used as well.
        None => {
            let verb_stem = first_word(choice).filter(|word| !is_stop(word));
            let classes = verb_stem
                .as_ref()
                .and_then(|word| VERBS.tools.get(word.as_str()))
                .cloned()
                .unwrap_or_default();
            let own = name
                .iter()
                .find(|word| verb_stem.as_ref() == Some(&labels::stem(word)))
                .or(name.first())
                .cloned();
            Verb { classes, words: own.into_iter().chain(verb_stem).collect() }
        }
    }
}

/// `Moves or renames a file`, `Cancel and delete an event`: the classes of other verbs in the description, beside that of the
/// name.
fn described(choice: &Choice, verb: &str) -> BTreeSet<&'static str> {
    let head = choice.tool.definition.description().trim_start().to_lowercase();
    let mut words = head.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let plain = |word: Option<&str>| word.map(labels::stem).unwrap_or_default();
    let (first, joint, second) = (plain(words.next()), words.next(), plain(words.next()));
    // `Writes content to a file: creates the file, …`: the word after a colon restates the purpose.
    let sentence = head.split(['.', '\n']).next().unwrap_or_default();
    let verb_stem = sentence
        .split_once(": ")
        .and_then(|(_, verb_stem)| verb_stem.split_whitespace().next())
        .map(labels::stem);
    let second_classes =
        verb_stem.and_then(|verb_stem| VERBS.tools.get(verb_stem.as_str())).cloned().unwrap_or_default();
    let other = match joint {
        Some("or" | "and") if first == labels::stem(verb) => second,
        Some("or" | "and") if second == labels::stem(verb) => first,
        _ => return second_classes,
    };
    VERBS.tools.get(other.as_str()).cloned().unwrap_or_default()
}

/// Verbs of tools that create the thing in the rest of the name.
const MAKING: [&str; 3] = ["create", "make", "new"];

/// Whether a request contains a verb of the class of a tool that reads.
pub(crate) fn looks_alike(choice: &Choice, parsed: &ParsedText<'_>) -> bool {
    let mut verb = classes_of(choice);
    verb.classes.retain(|class| class.starts_with("look_"));
    let used_spans: Vec<(usize, usize)> =
        parsed.mentions.iter().map(|mention| (mention.start, mention.end)).collect();
    !verb.classes.is_empty() && !verbs(parsed, &verb, &used_spans).is_empty()
}

pub(crate) struct Verb {
    pub(crate) classes: BTreeSet<&'static str>,
    /// The verb as written in the tool's name or description.
    pub(crate) words: Vec<String>,
}

impl Verb {
    fn is_english(&self, verb: &str) -> bool {
        self.words.iter().any(|word| word == verb)
            || VERBS.english.get(verb).is_some_and(|classes| !classes.is_disjoint(&self.classes))
    }

    fn is_chinese(&self, verb: &str) -> bool {
        VERBS.chinese.get(verb).is_some_and(|classes| !classes.is_disjoint(&self.classes))
    }
}

/// The byte ranges of verbs of the tool's class in a request, outside of `used_spans`.
pub(crate) fn verbs(
    parsed: &ParsedText<'_>,
    tool: &Verb,
    used_spans: &[(usize, usize)],
) -> Vec<(usize, usize)> {
    let free =
        |token: &Token<'_>| !used_spans.iter().any(|(from, to)| *from < token.end && token.start < *to);
    let tokens = &parsed.tokens;
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let (longest, kind) = match token.kind {
            TokenKind::Word => (VERBS.longest.0, TokenKind::Word),
            TokenKind::Han => (VERBS.longest.1, TokenKind::Han),
            _ => {
                at += 1;
                continue;
            }
        };
        let run =
            tokens[at..].iter().take(longest).take_while(|token| token.kind == kind && free(token)).count();
        // The longest verb at this token, of any class.
        let known = (1..=run).rev().find_map(|length| {
            let text = parsed.text.get(token.start..tokens[at + length - 1].end)?.to_lowercase();
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let (known, fits) = match kind {
                TokenKind::Word => {
                    (VERBS.english.contains_key(&text) || tool.words.contains(&text), tool.is_english(&text))
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
    if found.is_empty() {
        found.extend(separated_verbs(parsed, tool, used_spans));
    }
    found
}

/// 取消 C2 到 C5 的合并, `undo the merge of …`: a verb with separated parts.
fn separated_verbs(
    parsed: &ParsedText<'_>,
    tool: &Verb,
    used_spans: &[(usize, usize)],
) -> Vec<(usize, usize)> {
    let lower = parsed.text.to_lowercase();
    let free = |start: usize, end: usize| !used_spans.iter().any(|(from, to)| *from < end && start < *to);
    let find = |from: usize, part: &str| {
        let span = |(at, _): (usize, &str)| (from + at, from + at + part.len());
        lower.get(from..)?.match_indices(part).map(span).find(|(start, end)| free(*start, *end))
    };
    let fits = VERBS.separated_verbs.iter().filter(|(class, _, _)| tool.classes.contains(class));
    fits.filter_map(|(_, first, second)| {
        let first = find(0, first)?;
        Some(vec![first, find(first.1, second)?])
    })
    .next()
    .unwrap_or_default()
}
