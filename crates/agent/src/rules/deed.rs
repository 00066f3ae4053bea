//! What is to be done and what it is about, told from words: a tool that does something else, or to something else, is no answer.

use toolhub_core::Tool;

use super::implied::{is_bare, is_own_name, is_tool_name, of_code, of_file};
use super::lexicon;
use super::literal::Literal;
use super::mention::{Reading, Value};
use super::name::has_han;
use super::parameter::{Parameter, words};
use super::role::Role;
use super::token::{Kind, Token, tokens};
use super::verb_place::{NOUN_LEADS, is_denied, is_named_deed, is_verb};

/// How a tool's deeds stand to what a text asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    /// It does that.
    Does,
    /// Nobody can tell.
    Unknown,
    /// It seems to do something else.
    Doubtful,
    /// It certainly does.
    DoesNot,
}

/// What words say of a tool: what it does, and what to.
#[derive(Debug, Default)]
pub(super) struct Profile {
    /// Told by its name.
    deeds: Vec<usize>,
    /// Told by how its description begins, too.
    all_deeds: Vec<usize>,
    things: Vec<usize>,
    /// Everything it speaks of.
    all_things: Vec<usize>,
    /// Whether its name says that it changes something.
    pub(super) changes: bool,
    /// Whether its name says that something is gone afterwards.
    pub(super) destroys: bool,
    pub(super) searches: bool,
    /// Whether it searches with filters that may all be left out.
    filters: bool,
    /// Whether it searches among tools.
    finds_tools: bool,
    /// Kinds of things that one word of its name may stand for.
    siblings: Vec<Vec<usize>>,
    /// Whether it leaves everything as it is, by its hint or by its name.
    pub(super) harmless: bool,
    /// Whether it reads files as text, of which workbooks and pictures have none.
    pub(super) reads_text: bool,
    /// Whether it edits them as text.
    edits_text: bool,
}

/// What a text asks for.
#[derive(Debug, Default)]
pub(super) struct Wish {
    /// What each of its verbs may mean, in order.
    deeds: Vec<Vec<usize>>,
    /// Of these, those that nothing else does and that are meant beyond doubt.
    certain: Vec<Vec<usize>>,
    /// Whether the first is but a word of asking: `what`, 多少.
    questions: bool,
    /// Whether the first asks to look something up, wherever that may be.
    looks_up: bool,
    /// Whether those after the first are to be taken for what is asked, too.
    in_han: bool,
    /// Whether it asks which tool does something.
    asks_which_tool: bool,
    /// What it speaks of in words.
    things: Vec<usize>,
    /// Kinds of things that one of its words may stand for.
    groups: Vec<Vec<usize>>,
    /// Whether it has a verb of reading that is not denied and does not merely ask.
    reads: bool,
    /// Where the first such verb stands.
    reads_at: Option<usize>,
    /// Whether it has a verb of changing.
    changes: bool,
    /// Whether it names a path without an ending, which may lead to a file or to a folder.
    pub(super) has_bare_path: bool,
    /// What its particulars are: a file that is a workbook, a cell.
    implied: Vec<usize>,
}

/// How a tool stands to a wish.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    pub(super) does: Agreement,
    /// What speaks for it, or against.
    pub(super) score: f32,
}

/// Deeds after which something is not as it was before.
const CHANGING: [&str; 22] = [
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
/// Deeds that leave everything as it is.
const HARMLESS: [&str; 4] = ["read", "search", "validate", "calculate"];

/// Words that ask, and do not say what is to be done.
const ASKING: [&str; 16] = [
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

/// Words after which something is looked up that no tool at hand need know of.
const LOOKS_UP: [&str; 9] =
    ["look up", "lookup", "look for", "look into", "research", "查一下", "查下", "查查", "检索"];

const DONE_BY_NAME: f32 = 0.45;
const DONE_LATER: f32 = 0.1;
const OTHER_DEED: f32 = 0.35;
/// For each thing that both speak of.
const SAME_THING: f32 = 0.15;
/// For each thing that a tool's name tells and nobody spoke of.
const UNSAID: f32 = 0.45;
/// For each thing that was spoken of, and the tool knows nothing of it.
const UNKNOWN_THING: f32 = 0.35;
/// The same, where it knows the thing only by its description.
const BY_THE_WAY: f32 = 0.1;
const UNKNOWN_PARTICULAR: f32 = 0.25;

fn add(to: &mut Vec<usize>, rows: &[usize]) {
    for row in rows {
        if !to.contains(row) {
            to.push(*row);
        }
    }
}

impl Profile {
    pub(super) fn of(tool: &Tool, parameters: &[Parameter]) -> Self {
        // `sports.get_ranking`: what stands before a dot is where it belongs.
        let name: Vec<String> =
            tool.name().as_str().split(['.', '/']).map(|part| words(part).join(" ")).collect();
        let name = name.join(" . ");
        let description = tool.definition.description();
        let head =
            description.split(['.', '\n', '。']).find(|part| !part.trim().is_empty()).unwrap_or_default();
        let read = |text: &str| lexicon::spots(text, &tokens(text), &|_| false);
        let mut profile = Self::default();
        for spot in read(&name) {
            if is_named_deed(&name, spot.start) {
                add(&mut profile.deeds, &spot.meaning.deeds);
            }
            // What `merge` is about it says by what it does.
            let looks = |deed: &usize| HARMLESS.contains(&lexicon::deed(*deed).name);
            let about = match spot.meaning.deeds.iter().all(looks) {
                true => &mut profile.things,
                false => &mut profile.all_things,
            };
            add(about, &spot.meaning.things);
            if spot.meaning.things.len() > 1 {
                profile.siblings.push(spot.meaning.things.clone());
            }
        }
        profile.all_deeds.clone_from(&profile.deeds);
        for spot in read(head) {
            // `is properly formatted` tells how something is, `by name` what with.
            let before = head[..spot.start].trim_end().rsplit(' ').next().unwrap_or_default().to_lowercase();
            let noun = NOUN_LEADS.contains(&before.as_str());
            if !head[spot.start..spot.end].ends_with("ed") && !noun {
                add(&mut profile.all_deeds, &spot.meaning.deeds);
            }
        }
        let named = profile.things.clone();
        add(&mut profile.all_things, &named);
        for spot in read(description) {
            add(&mut profile.all_things, &spot.meaning.things);
        }
        for parameter in parameters.iter().flat_map(Parameter::with_members) {
            for spot in read(&parameter.words.join(" ")).into_iter().chain(read(&parameter.description)) {
                add(&mut profile.all_things, &spot.meaning.things);
            }
        }
        let has = |names: &[&str]| profile.deeds.iter().any(|row| names.contains(&lexicon::deed(*row).name));
        let read_only = tool.hints().read_only;
        profile.changes = match read_only {
            Some(true) => false,
            Some(false) => !has(&HARMLESS),
            None => has(&CHANGING) && !has(&HARMLESS),
        };
        profile.harmless = match read_only {
            Some(read_only) => read_only,
            None => !profile.changes && !profile.deeds.is_empty(),
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

    /// Whether the tool's own words know what a word of a request stands for.
    pub(super) fn knows(&self, meaning: &lexicon::Meaning) -> bool {
        meaning.deeds.iter().any(|deed| self.all_deeds.contains(deed))
            || meaning.things.iter().any(|thing| self.all_things.contains(thing))
    }
}

impl Wish {
    /// `names` are where things are called by their own names: those words say nothing.
    pub(super) fn of(reading: &Reading<'_>, names: &[(usize, usize)]) -> Self {
        let is_taken = |token: &Token<'_>| {
            let literal = reading.mentions.iter().any(|mention| {
                matches!(mention.value, Value::Literal(_))
                    && mention.start < token.end
                    && token.start < mention.end
            });
            literal
                || names.iter().any(|(start, end)| *start < token.end && token.start < *end)
                || is_own_name(reading, token)
        };
        let spots = lexicon::spots(reading.text, &reading.tokens, &is_taken);
        let mut wish = Self::default();
        for spot in &spots {
            add(&mut wish.things, &spot.meaning.things);
            if spot.meaning.things.len() > 1 {
                wish.groups.push(spot.meaning.things.clone());
            }
            let deeds = &spot.meaning.deeds;
            let is = |names: &[&str]| deeds.iter().any(|deed| names.contains(&lexicon::deed(*deed).name));
            let asking = ASKING.contains(
                &reading.text.get(spot.start..spot.end).unwrap_or_default().to_lowercase().as_str(),
            );
            wish.changes = wish.changes || is(&CHANGING) && !is(&HARMLESS);
            if !wish.reads && is(&HARMLESS) && !asking && !is_denied(reading, spot) {
                wish.reads = true;
                wish.reads_at = Some(spot.start);
            }
            if deeds.is_empty() || is_denied(reading, spot) || !is_verb(reading, spot, wish.deeds.is_empty())
            {
                continue;
            }
            let alone = deeds.iter().all(|deed| lexicon::deed(*deed).mark == Some('!'));
            // In English what comes later may be told of something else: `the game he played`.
            let said = reading.text.get(spot.start..spot.end).unwrap_or_default();
            if alone && spot.meaning.things.is_empty() && (wish.deeds.is_empty() || has_han(said)) {
                wish.certain.push(deeds.clone());
            }
            let lower = said.to_lowercase();
            wish.questions = wish.questions || (wish.deeds.is_empty() && ASKING.contains(&lower.as_str()));
            if wish.deeds.is_empty() {
                wish.looks_up = LOOKS_UP.contains(&said.to_lowercase().as_str());
            }
            wish.in_han = has_han(said);
            wish.deeds.push(deeds.clone());
        }
        let lower = reading.text.to_lowercase();
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
        wish.asks_which_tool = which.iter().any(|words| lower.contains(words));
        if wish.deeds.is_empty() {
            // A word that the tables know is no other one misspelt.
            let known =
                |token: &Token<'_>| spots.iter().any(|spot| spot.start < token.end && token.start < spot.end);
            let free = |token: &&Token<'_>| token.kind == Kind::Word && !is_taken(token) && !known(token);
            let meant = reading.tokens.iter().filter(free).find_map(|token| lexicon::misspelt(token.text));
            wish.deeds.extend(meant.map(|meaning| meaning.deeds.clone()));
        }
        for mention in &reading.mentions {
            let Value::Literal(literal) = &mention.value else { continue };
            let implied = match literal {
                // What a path without an ending leads to is not told.
                Literal::Path(path) if is_bare(path) => {
                    wish.has_bare_path = true;
                    continue;
                }
                Literal::Code(_)
                    if super::relative_folder::is_folder(reading, mention.start, mention.end) =>
                {
                    wish.has_bare_path = true;
                    continue;
                }
                Literal::Path(path) if path.contains('*') => "file",
                Literal::Path(path) => of_file(path),
                Literal::Cells(_) => "cell",
                Literal::Formula(_) => "formula",
                Literal::Code(code) if code.to_lowercase().starts_with("sheet") => "sheet",
                Literal::Code(code) if is_tool_name(code) => "tool",
                Literal::Code(code) => {
                    add(&mut wish.implied, &of_code(code));
                    continue;
                }
                _ => continue,
            };
            wish.implied.extend(lexicon::thing_named(implied));
        }
        wish.implied.dedup();
        wish
    }

    /// Whether something is to be searched for, and nothing else.
    pub(super) fn searches(&self) -> bool {
        let search = |deed: &usize| lexicon::deed(*deed).name == "search";
        self.deeds.first().is_some_and(|deeds| {
            deeds.iter().all(search)
                || (deeds.iter().any(search)
                    && self.looks_up
                    && self.things.is_empty()
                    && self.implied.is_empty())
        })
    }

    /// Whether it asks to look at something, in a verb that is not denied.
    pub(super) fn reads(&self) -> bool {
        self.reads
    }

    /// Whether it asks to look at something before a byte of the request.
    pub(super) fn reads_before(&self, at: usize) -> bool {
        self.reads_at.is_some_and(|place| place <= at)
    }

    /// Whether one of its verbs changes something.
    pub(super) fn changes(&self) -> bool {
        self.changes
    }

    /// Whether it asks for something that nothing else does, or about something special, and `any` finds no tool for that.
    pub(super) fn is_beyond(&self, mut any: impl FnMut(&dyn Fn(&Profile) -> bool) -> bool) -> bool {
        let special = |thing: &&usize| lexicon::thing(**thing).mark == Some('!');
        self.certain
            .iter()
            .any(|deeds| !any(&|profile: &Profile| deeds.iter().any(|deed| profile.all_deeds.contains(deed))))
            || self.asks()
                && self
                    .things
                    .iter()
                    .filter(special)
                    .any(|thing| !any(&|profile: &Profile| profile.all_things.contains(thing)))
    }

    /// Whether it speaks of a kind of thing that only tools for it know.
    pub(super) fn speaks_of_own(&self) -> bool {
        self.things.iter().any(|row| lexicon::thing(*row).mark.is_none())
    }

    /// Whether it has a verb.
    pub(super) fn asks(&self) -> bool {
        !self.deeds.is_empty()
    }

    /// The same in the words of the tables: a text to search for where the request's own words find nothing.
    pub(super) fn query(&self) -> Option<String> {
        // A verb alone finds every tool that does such a thing to anything.
        let special = |deeds: &Vec<usize>| deeds.iter().all(|deed| lexicon::deed(*deed).mark == Some('!'));
        let certain = self.deeds.first().is_some_and(special);
        if self.things.is_empty()
            && self.implied.is_empty()
            && !self.searches()
            && !certain
            && !self.has_bare_path
        {
            return None;
        }
        let mut rows: Vec<&str> = Vec::new();
        rows.extend(self.deeds.iter().take(2).flatten().map(|deed| lexicon::deed(*deed).name));
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

    /// The same, about what another wish speaks of: 把 一月 改名 says nothing of sheets where the clause before does.
    pub(super) fn query_about(&self, other: &Self) -> Option<String> {
        if self.deeds.is_empty() || !self.things.is_empty() || !self.implied.is_empty() {
            return None;
        }
        let (things, implied) = (other.things.clone(), other.implied.clone());
        Self { deeds: self.deeds.clone(), things, implied, ..Self::default() }.query()
    }

    /// What a tool is to this wish.
    pub(super) fn standing(&self, profile: &Profile) -> Standing {
        let does = |deeds: &[usize], listed: &[usize]| deeds.iter().any(|deed| listed.contains(deed));
        let first = self.deeds.first().map(Vec::as_slice).unwrap_or_default();
        let later = || self.deeds.iter().skip(1).filter(|_| self.in_han);
        let alone = |deeds: &[usize]| deeds.iter().all(|deed| lexicon::deed(*deed).mark == Some('!'));
        let mut score = 0.0;
        let mut agreement = if first.is_empty() || profile.all_deeds.is_empty() {
            Agreement::Unknown
        } else if does(first, &profile.deeds) || (profile.deeds.is_empty() && does(first, &profile.all_deeds))
        {
            score += if self.questions { DONE_LATER } else { DONE_BY_NAME };
            Agreement::Does
        } else if later().any(|deeds| does(deeds, &profile.deeds)) {
            score += DONE_LATER;
            Agreement::Does
        } else if does(first, &profile.all_deeds) {
            Agreement::Unknown
        } else if alone(first) {
            Agreement::DoesNot
        } else {
            Agreement::Doubtful
        };
        // 哪个工具可以合并单元格: what a tool is to do is searched for, not done.
        if self.asks_which_tool && profile.finds_tools {
            return Standing { does: Agreement::Does, score: score.max(0.0) + DONE_BY_NAME + SAME_THING };
        }
        // Something is asked for that nothing else does, and this tool does not.
        let harmless = profile.harmless;
        if self.certain.iter().any(|deeds| !does(deeds, &profile.all_deeds))
            && !profile.searches
            && agreement != Agreement::DoesNot
        {
            agreement = if harmless { Agreement::DoesNot } else { Agreement::Doubtful };
        }
        // Who wants something changed is not served by looking at it.
        let changing = |deed: &usize| CHANGING.contains(&lexicon::deed(*deed).name);
        let by_name = does(first, &profile.deeds) || later().any(|deeds| does(deeds, &profile.deeds));
        if !first.is_empty() && !by_name && harmless && first.iter().all(changing) {
            agreement = Agreement::DoesNot;
        }
        // Any words can be searched for: that is done only where it is asked for.
        if profile.searches && agreement == Agreement::Doubtful {
            // Where nothing need be searched for, listing is searching with filters.
            let lists = first.iter().any(|deed| lexicon::deed(*deed).name == "read") && profile.filters;
            agreement = if lists { Agreement::Does } else { Agreement::DoesNot };
        }
        if agreement == Agreement::Doubtful {
            score -= OTHER_DEED;
        }
        // Whether something was spoken of that the tool knows nothing of.
        let mut strange = false;
        let searched = profile.searches && agreement == Agreement::Does;
        // `graph` is a chart, too: a word is known where one of its meanings is.
        let known = |thing: &usize| profile.all_things.contains(thing);
        let meant_otherwise = |thing: &usize| {
            !known(thing) && self.groups.iter().any(|group| group.contains(thing) && group.iter().any(known))
        };
        for thing in self.things.iter().filter(|thing| !meant_otherwise(thing)) {
            if profile.things.contains(thing) {
                score += SAME_THING;
            } else if profile.all_things.contains(thing) {
                score -= BY_THE_WAY;
            } else if !searched && lexicon::thing(*thing).mark != Some('?') {
                let slight = lexicon::thing(*thing).mark == Some('~') && !profile.changes;
                // What only some tools know is not looked up with others.
                let foreign = lexicon::thing(*thing).mark.is_none() && harmless;
                score -= match (slight, foreign) {
                    (true, _) => BY_THE_WAY,
                    (false, true) => UNKNOWN_THING * 1.7,
                    (false, false) => UNKNOWN_THING,
                };
                strange = true;
                // What a tool never speaks of it does not change.
                let mark = lexicon::thing(*thing).mark;
                let unasked = profile.changes || agreement == Agreement::Doubtful;
                if mark == Some('!') || (mark.is_none() && unasked) {
                    agreement = Agreement::DoesNot;
                }
            }
        }
        // `add a sheet to a.xlsx`: a tool that makes something else, and never speaks of sheets, is no answer.
        if let Some(object) = self.things.first().filter(|_| profile.changes)
            && lexicon::thing(*object).mark == Some('~')
            && !profile.things.is_empty()
            && !profile.all_things.contains(object)
            && !(alone(first) && does(first, &profile.deeds))
        {
            agreement = Agreement::DoesNot;
        }
        for thing in &self.implied {
            if !profile.all_things.contains(thing) {
                score -= UNKNOWN_PARTICULAR;
                strange = true;
                // A picture is a file, too: it is moved, measured and found like any other.
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
        // A text file is no workbook, and has neither sheets nor cells.
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
            let said = means(thing)
                || profile.siblings.iter().any(|kinds| kinds.contains(thing) && kinds.iter().any(means));
            // What a tool is only good for must be spoken of: a text is not read as a picture.
            if !said && profile.harmless && lexicon::thing(*thing).mark == Some('!') {
                score -= UNSAID;
            }
            if !said && !self.questions && lexicon::thing(*thing).mark == Some('?') {
                score -= UNSAID * 0.5;
            }
            if !said && lexicon::thing(*thing).mark.is_none() {
                score -= UNSAID;
                if strange && !(profile.changes && does(first, &profile.deeds)) {
                    agreement = Agreement::DoesNot;
                }
            }
        }
        Standing { does: agreement, score }
    }
}
