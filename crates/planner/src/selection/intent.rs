//! Compares the action and the object of a request with those of a tool, by words: a tool with another action or object is
//! rejected.

use toolhub_core::Tool;

use crate::lexer::implied::{is_bare, is_own_name, is_tool_name, of_code, of_file};
use crate::lexer::lexicon;
use crate::lexer::literal::Literal;
use crate::lexer::mention::{ParsedText, Value};
use crate::lexer::name::has_han;
use crate::lexer::token::{Kind, Token, tokens};
use crate::selection::verb_position::{NOUN_LEADS, is_denied, is_name_verb, is_verb};
use crate::values::parameter::{Parameter, words};
use crate::values::role::Role;

/// How a tool's actions relate to the requested action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// The tool performs the action.
    Does,
    /// The words do not decide it.
    Unknown,
    /// The tool seems to perform another action.
    Doubtful,
    /// The tool certainly performs another action.
    DoesNot,
}

/// The actions and objects of a tool, from its words.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    /// Actions in the tool's name.
    verbs: Vec<usize>,
    /// Actions in the tool's name or in the first sentence of its description.
    all_verbs: Vec<usize>,
    things: Vec<usize>,
    /// Objects in the name, the description and the parameters.
    all_things: Vec<usize>,
    /// Whether the name denotes a change.
    pub(crate) changes: bool,
    /// Whether the name denotes a deletion.
    pub(crate) destroys: bool,
    pub(crate) searches: bool,
    /// Whether the tool searches with filters that are all optional.
    filters: bool,
    /// Whether the tool searches for tools.
    finds_tools: bool,
    /// Groups of objects, each the possible meanings of one word of the name.
    siblings: Vec<Vec<usize>>,
    /// Whether the tool is read-only, by its hint or by its name.
    pub(crate) is_read_only: bool,
    /// Whether the tool reads files as text, which excludes workbooks and pictures.
    pub(crate) reads_text: bool,
    /// Whether the tool edits files as text.
    edits_text: bool,
}

/// The intent of a text.
#[derive(Debug, Default)]
pub(crate) struct Intent {
    /// The possible actions of each of its verbs, in order.
    verbs: Vec<Vec<usize>>,
    /// The unambiguous ones of these whose actions are marked `!` in the table: a tool must perform them.
    certain: Vec<Vec<usize>>,
    /// Whether the first verb is only a question word: `what`, 多少.
    questions: bool,
    /// Whether the first verb asks to look something up, in any source.
    looks_up: bool,
    /// Whether the last verb is Chinese: then the verbs after the first count as requested actions, too.
    in_han: bool,
    /// Whether the text asks which tool does something.
    asks_which_tool: bool,
    /// The objects that the words denote.
    things: Vec<usize>,
    /// Groups of objects, each the possible meanings of one word.
    groups: Vec<Vec<usize>>,
    /// Whether the text has a verb of reading that is not negated and not only a question word.
    reads: bool,
    /// The byte offset of the first such verb.
    reads_at: Option<usize>,
    /// Whether the text has a verb of changing.
    changes: bool,
    /// Whether the text contains a path without an extension, which may be a file or a folder.
    pub(crate) has_bare_path: bool,
    /// The objects that literals imply: a workbook for its file name, a cell for its address.
    implied: Vec<usize>,
}

/// How well a tool matches an intent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IntentMatch {
    pub(crate) does: Agreement,
    /// Score for or against the tool.
    pub(crate) score: f32,
}

/// Actions that change something.
const CHANGING_VERBS: [&str; 22] = [
    "reschedule",
    "write",
    "create",
    "delete",
    "insert",
    "rename",
    "copy",
    "move",
    "merge",
    "unmerge",
    "format",
    "apply",
    "send",
    "replace",
    "edit",
    "commit",
    "stage",
    "unstage",
    "checkout",
    "mark",
    "book",
    "discard",
];
/// Read-only actions.
const READ_ONLY_VERBS: [&str; 4] = ["read", "search", "validate", "calculate"];

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

const VERB_IN_NAME_BONUS: f32 = 0.45;
const LATER_VERB_BONUS: f32 = 0.1;
const OTHER_VERB_PENALTY: f32 = 0.35;
/// Bonus for each object in both the request and the tool's name.
const SAME_OBJECT_BONUS: f32 = 0.15;
/// Penalty for each object in the tool's name that the request does not mention.
const UNREQUESTED_OBJECT_PENALTY: f32 = 0.45;
/// Penalty for each object in the request that the tool does not mention.
const UNKNOWN_OBJECT_PENALTY: f32 = 0.35;
/// The same if only the tool's description mentions the object.
const DESCRIBED_OBJECT_PENALTY: f32 = 0.1;
const UNKNOWN_DETAIL_PENALTY: f32 = 0.25;

fn add(to: &mut Vec<usize>, rows: &[usize]) {
    for row in rows {
        if !to.contains(row) {
            to.push(*row);
        }
    }
}

impl Profile {
    pub(crate) fn of(tool: &Tool, parameters: &[Parameter]) -> Self {
        // `sports.get_ranking`: the part before a dot is a namespace.
        let name: Vec<String> =
            tool.name().as_str().split(['.', '/']).map(|part| words(part).join(" ")).collect();
        let name = name.join(" . ");
        let description = tool.definition.description();
        let head =
            description.split(['.', '\n', '。']).find(|part| !part.trim().is_empty()).unwrap_or_default();
        let read = |text: &str| lexicon::word_matches(text, &tokens(text), &|_| false);
        let mut profile = Self::default();
        for word_match in read(&name) {
            if is_name_verb(&name, word_match.start) {
                add(&mut profile.verbs, &word_match.meaning.verbs);
            }
            // An object that is only implied by a changing verb such as `merge` does not count as named.
            let is_lookup = |verb: &usize| READ_ONLY_VERBS.contains(&lexicon::verb(*verb).name);
            let about = match word_match.meaning.verbs.iter().all(is_lookup) {
                true => &mut profile.things,
                false => &mut profile.all_things,
            };
            add(about, &word_match.meaning.things);
            if word_match.meaning.things.len() > 1 {
                profile.siblings.push(word_match.meaning.things.clone());
            }
        }
        profile.all_verbs.clone_from(&profile.verbs);
        for word_match in read(head) {
            // `is properly formatted` describes a state, and `by name` a means.
            let before =
                head[..word_match.start].trim_end().rsplit(' ').next().unwrap_or_default().to_lowercase();
            let noun = NOUN_LEADS.contains(&before.as_str());
            if !head[word_match.start..word_match.end].ends_with("ed") && !noun {
                add(&mut profile.all_verbs, &word_match.meaning.verbs);
            }
        }
        let named = profile.things.clone();
        add(&mut profile.all_things, &named);
        for word_match in read(description) {
            add(&mut profile.all_things, &word_match.meaning.things);
        }
        for parameter in parameters.iter().flat_map(Parameter::with_members) {
            for word_match in read(&parameter.words.join(" ")).into_iter().chain(read(&parameter.description))
            {
                add(&mut profile.all_things, &word_match.meaning.things);
            }
        }
        let has = |names: &[&str]| profile.verbs.iter().any(|row| names.contains(&lexicon::verb(*row).name));
        let read_only = tool.hints().read_only;
        profile.changes = match read_only {
            Some(true) => false,
            Some(false) => !has(&READ_ONLY_VERBS),
            None => has(&CHANGING_VERBS) && !has(&READ_ONLY_VERBS),
        };
        profile.is_read_only = match read_only {
            Some(read_only) => read_only,
            None => !profile.changes && !profile.verbs.is_empty(),
        };
        profile.destroys = has(&["delete"]);
        profile.reads_text = has(&["read"])
            && ["text file", "as text", "文本文件"].iter().any(|words| description.contains(words));
        profile.edits_text = has(&["edit", "replace"]) && description.contains("text file");
        let of_tools = |row: &usize| lexicon::thing(*row).name == "tool";
        profile.finds_tools = has(&["search"]) && profile.things.iter().any(of_tools);
        profile.searches =
            has(&["search"]) && parameters.iter().any(|parameter| parameter.role == Role::Query);
        profile.filters = profile.searches && parameters.iter().all(|parameter| !parameter.required);
        profile
    }

    /// Whether the tool's own words contain a meaning of a word in the request.
    pub(crate) fn knows(&self, meaning: &lexicon::Meaning) -> bool {
        meaning.verbs.iter().any(|verb| self.all_verbs.contains(verb))
            || meaning.things.iter().any(|thing| self.all_things.contains(thing))
    }
}

impl Intent {
    /// `names` are the byte ranges of proper names, whose words are ignored.
    pub(crate) fn of(parsed: &ParsedText<'_>, names: &[(usize, usize)]) -> Self {
        let is_taken = |token: &Token<'_>| {
            let literal = parsed.mentions.iter().any(|mention| {
                matches!(mention.value, Value::Literal(_))
                    && mention.start < token.end
                    && token.start < mention.end
            });
            literal
                || names.iter().any(|(start, end)| *start < token.end && token.start < *end)
                || is_own_name(parsed, token)
        };
        let word_matches = lexicon::word_matches(parsed.text, &parsed.tokens, &is_taken);
        let mut intent = Self::default();
        for word_match in &word_matches {
            add(&mut intent.things, &word_match.meaning.things);
            if word_match.meaning.things.len() > 1 {
                intent.groups.push(word_match.meaning.things.clone());
            }
            let verbs = &word_match.meaning.verbs;
            let is = |names: &[&str]| verbs.iter().any(|verb| names.contains(&lexicon::verb(*verb).name));
            let asking = QUESTION_WORDS.contains(
                &parsed
                    .text
                    .get(word_match.start..word_match.end)
                    .unwrap_or_default()
                    .to_lowercase()
                    .as_str(),
            );
            intent.changes = intent.changes || is(&CHANGING_VERBS) && !is(&READ_ONLY_VERBS);
            if !intent.reads && is(&READ_ONLY_VERBS) && !asking && !is_denied(parsed, word_match) {
                intent.reads = true;
                intent.reads_at = Some(word_match.start);
            }
            if verbs.is_empty()
                || is_denied(parsed, word_match)
                || !is_verb(parsed, word_match, intent.verbs.is_empty())
            {
                continue;
            }
            let alone = verbs.iter().all(|verb| lexicon::verb(*verb).mark == Some('!'));
            // In English, a later verb may belong to a subordinate clause: `the game he played`.
            let stated = parsed.text.get(word_match.start..word_match.end).unwrap_or_default();
            if alone && word_match.meaning.things.is_empty() && (intent.verbs.is_empty() || has_han(stated)) {
                intent.certain.push(verbs.clone());
            }
            let lower = stated.to_lowercase();
            intent.questions =
                intent.questions || (intent.verbs.is_empty() && QUESTION_WORDS.contains(&lower.as_str()));
            if intent.verbs.is_empty() {
                intent.looks_up = LOOKUP_VERBS.contains(&stated.to_lowercase().as_str());
            }
            intent.in_han = has_han(stated);
            intent.verbs.push(verbs.clone());
        }
        let lower = parsed.text.to_lowercase();
        let which = [
            "which tool",
            "what tool",
            "哪个工具",
            "哪些工具",
            "什么工具",
            "哪种工具",
            "有没有工具",
            "有工具",
        ];
        intent.asks_which_tool = which.iter().any(|words| lower.contains(words));
        if intent.verbs.is_empty() {
            // A word in the tables is not a misspelling of another one.
            let known = |token: &Token<'_>| {
                word_matches
                    .iter()
                    .any(|word_match| word_match.start < token.end && token.start < word_match.end)
            };
            let free = |token: &&Token<'_>| token.kind == Kind::Word && !is_taken(token) && !known(token);
            let correction =
                parsed.tokens.iter().filter(free).find_map(|token| lexicon::misspelt(token.text));
            intent.verbs.extend(correction.map(|meaning| meaning.verbs.clone()));
        }
        for mention in &parsed.mentions {
            let Value::Literal(literal) = &mention.value else { continue };
            let implied = match literal {
                // A path without an extension does not imply an object.
                Literal::Path(path) if is_bare(path) => {
                    intent.has_bare_path = true;
                    continue;
                }
                Literal::Code(_)
                    if crate::values::relative_folder::is_folder(parsed, mention.start, mention.end) =>
                {
                    intent.has_bare_path = true;
                    continue;
                }
                Literal::Path(path) if path.contains('*') => "file",
                Literal::Path(path) => of_file(path),
                Literal::Cells(_) => "cell",
                Literal::Formula(_) => "formula",
                Literal::Code(code) if code.to_lowercase().starts_with("sheet") => "sheet",
                Literal::Code(code) if is_tool_name(code) => "tool",
                Literal::Code(code) => {
                    add(&mut intent.implied, &of_code(code));
                    continue;
                }
                _ => continue,
            };
            intent.implied.extend(lexicon::thing_named(implied));
        }
        intent.implied.dedup();
        intent
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
            || self.is_question()
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
    pub(crate) fn is_question(&self) -> bool {
        !self.verbs.is_empty()
    }

    /// The intent in the words of the tables: a search text in case the words of the request find nothing.
    pub(crate) fn query(&self) -> Option<String> {
        // A verb without an object would match every tool with that action.
        let special = |verbs: &Vec<usize>| verbs.iter().all(|verb| lexicon::verb(*verb).mark == Some('!'));
        let certain = self.verbs.first().is_some_and(special);
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

    /// How well a tool matches this intent.
    pub(crate) fn intent_match(&self, profile: &Profile) -> IntentMatch {
        let does = |verbs: &[usize], listed: &[usize]| verbs.iter().any(|verb| listed.contains(verb));
        let first = self.verbs.first().map(Vec::as_slice).unwrap_or_default();
        let later = || self.verbs.iter().skip(1).filter(|_| self.in_han);
        let alone = |verbs: &[usize]| verbs.iter().all(|verb| lexicon::verb(*verb).mark == Some('!'));
        let mut score = 0.0;
        let mut agreement = if first.is_empty() || profile.all_verbs.is_empty() {
            Agreement::Unknown
        } else if does(first, &profile.verbs) || (profile.verbs.is_empty() && does(first, &profile.all_verbs))
        {
            score += if self.questions { LATER_VERB_BONUS } else { VERB_IN_NAME_BONUS };
            Agreement::Does
        } else if later().any(|verbs| does(verbs, &profile.verbs)) {
            score += LATER_VERB_BONUS;
            Agreement::Does
        } else if does(first, &profile.all_verbs) {
            Agreement::Unknown
        } else if alone(first) {
            Agreement::DoesNot
        } else {
            Agreement::Doubtful
        };
        // 哪个工具可以合并单元格: the request searches for a tool and does not ask to run it.
        if self.asks_which_tool && profile.finds_tools {
            return IntentMatch {
                does: Agreement::Does,
                score: score.max(0.0) + VERB_IN_NAME_BONUS + SAME_OBJECT_BONUS,
            };
        }
        // A special action is requested, and this tool does not perform it.
        let is_read_only = profile.is_read_only;
        if self.certain.iter().any(|verbs| !does(verbs, &profile.all_verbs))
            && !profile.searches
            && agreement != Agreement::DoesNot
        {
            agreement = if is_read_only { Agreement::DoesNot } else { Agreement::Doubtful };
        }
        // A read-only tool cannot serve a request for a change.
        let changing = |verb: &usize| CHANGING_VERBS.contains(&lexicon::verb(*verb).name);
        let by_name = does(first, &profile.verbs) || later().any(|verbs| does(verbs, &profile.verbs));
        if !first.is_empty() && !by_name && is_read_only && first.iter().all(changing) {
            agreement = Agreement::DoesNot;
        }
        // A search tool accepts any words: it is used only if the request asks for a search.
        if profile.searches && agreement == Agreement::Doubtful {
            // A search tool whose filters are all optional can list everything.
            let lists = first.iter().any(|verb| lexicon::verb(*verb).name == "read") && profile.filters;
            agreement = if lists { Agreement::Does } else { Agreement::DoesNot };
        }
        if agreement == Agreement::Doubtful {
            score -= OTHER_VERB_PENALTY;
        }
        // Whether the request mentions an object that the tool does not.
        let mut has_unexpected = false;
        let searched = profile.searches && agreement == Agreement::Does;
        // `graph` can also mean a chart: an ambiguous word matches if one of its meanings does.
        let known = |thing: &usize| profile.all_things.contains(thing);
        let meant_otherwise = |thing: &usize| {
            !known(thing) && self.groups.iter().any(|group| group.contains(thing) && group.iter().any(known))
        };
        for thing in self.things.iter().filter(|thing| !meant_otherwise(thing)) {
            if profile.things.contains(thing) {
                score += SAME_OBJECT_BONUS;
            } else if profile.all_things.contains(thing) {
                score -= DESCRIBED_OBJECT_PENALTY;
            } else if !searched && lexicon::thing(*thing).mark != Some('?') {
                let slight = lexicon::thing(*thing).mark == Some('~') && !profile.changes;
                // Objects that only dedicated tools handle are not read with other tools.
                let foreign = lexicon::thing(*thing).mark.is_none() && is_read_only;
                score -= match (slight, foreign) {
                    (true, _) => DESCRIBED_OBJECT_PENALTY,
                    (false, true) => UNKNOWN_OBJECT_PENALTY * 1.7,
                    (false, false) => UNKNOWN_OBJECT_PENALTY,
                };
                has_unexpected = true;
                // A tool does not change an object that it does not mention.
                let mark = lexicon::thing(*thing).mark;
                let unasked = profile.changes || agreement == Agreement::Doubtful;
                if mark == Some('!') || (mark.is_none() && unasked) {
                    agreement = Agreement::DoesNot;
                }
            }
        }
        // `add a sheet to a.xlsx`: a tool that creates something else and does not mention sheets is rejected.
        if let Some(object) = self.things.first().filter(|_| profile.changes)
            && lexicon::thing(*object).mark == Some('~')
            && !profile.things.is_empty()
            && !profile.all_things.contains(object)
            && !(alone(first) && does(first, &profile.verbs))
        {
            agreement = Agreement::DoesNot;
        }
        for thing in &self.implied {
            if !profile.all_things.contains(thing) {
                score -= UNKNOWN_DETAIL_PENALTY;
                has_unexpected = true;
                // A picture is also a file: file tools can move, measure and find it.
                let file =
                    lexicon::thing_named("file").is_some_and(|file| profile.all_things.contains(&file));
                if lexicon::thing(*thing).mark == Some('!') && (profile.reads_text || !file)
                    || ((profile.reads_text || profile.edits_text)
                        && lexicon::thing(*thing).name == "workbook")
                {
                    agreement = Agreement::DoesNot;
                }
            }
        }
        // A text file is not a workbook, and has neither sheets nor cells.
        let about = |names: &[&str]| {
            let named = |row: &usize| names.contains(&lexicon::thing(*row).name);
            profile.things.iter().any(named)
        };
        let implies = |name: &str| self.implied.iter().any(|row| lexicon::thing(*row).name == name);
        let file = ["file", "picture", "video"].into_iter().any(implies);
        if file && !implies("workbook") && about(&["workbook", "sheet", "cell", "row", "column"]) {
            agreement = Agreement::DoesNot;
        }
        for thing in &profile.things {
            let means = |thing: &usize| self.things.contains(thing) || self.implied.contains(thing);
            let stated = means(thing)
                || profile.siblings.iter().any(|kinds| kinds.contains(thing) && kinds.iter().any(means));
            // A tool for a special object requires that the request mentions it: a text is not read as a picture.
            if !stated && profile.is_read_only && lexicon::thing(*thing).mark == Some('!') {
                score -= UNREQUESTED_OBJECT_PENALTY;
            }
            if !stated && !self.questions && lexicon::thing(*thing).mark == Some('?') {
                score -= UNREQUESTED_OBJECT_PENALTY * 0.5;
            }
            if !stated && lexicon::thing(*thing).mark.is_none() {
                score -= UNREQUESTED_OBJECT_PENALTY;
                if has_unexpected && !(profile.changes && does(first, &profile.verbs)) {
                    agreement = Agreement::DoesNot;
                }
            }
        }
        IntentMatch { does: agreement, score }
    }
}
