//! Compares the action and the object of a request with those of a tool, by words: a tool with another action or object is
//! rejected.

use crate::lexer::lexicon;
use crate::selection::intent::Intent;
use crate::selection::table_rows::{CHANGING_VERBS, are_special, is_any_verb, overlap};
use crate::selection::tool_profile::Profile;

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

/// How well a tool matches an intent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IntentMatch {
    pub(crate) does: Agreement,
    /// Score for or against the tool.
    pub(crate) score: f32,
}

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

impl Intent {
    /// How well a tool matches this intent.
    pub(crate) fn intent_match(&self, profile: &Profile) -> IntentMatch {
        let mut comparison = Comparison::of_actions(self, profile);
        // 哪个工具可以合并单元格: the request searches for a tool and does not ask to run it.
        if self.asks_which_tool && profile.finds_tools {
            let score = comparison.score.max(0.0) + VERB_IN_NAME_BONUS + SAME_OBJECT_BONUS;
            return IntentMatch { does: Agreement::Does, score };
        }
        comparison.compare_kind_of_tool();
        comparison.compare_requested_objects();
        comparison.compare_changed_object();
        comparison.compare_implied_objects();
        comparison.compare_kind_of_file();
        comparison.compare_unrequested_objects();
        IntentMatch { does: comparison.agreement, score: comparison.score }
    }
}

/// An intent and a tool during their comparison: each step adjusts the agreement and the score.
struct Comparison<'a> {
    intent: &'a Intent,
    profile: &'a Profile,
    agreement: Agreement,
    score: f32,
    /// Whether the request mentions an object that the tool does not.
    has_unexpected: bool,
}

impl<'a> Comparison<'a> {
    /// Compares the verbs of the request with those of the tool's name and description.
    fn of_actions(intent: &'a Intent, profile: &'a Profile) -> Self {
        let mut comparison =
            Self { intent, profile, agreement: Agreement::Unknown, score: 0.0, has_unexpected: false };
        let first = comparison.first_verb();
        comparison.agreement = if first.is_empty() || profile.all_verbs.is_empty() {
            Agreement::Unknown
        } else if overlap(first, &profile.verbs)
            || (profile.verbs.is_empty() && overlap(first, &profile.all_verbs))
        {
            comparison.score += if intent.questions { LATER_VERB_BONUS } else { VERB_IN_NAME_BONUS };
            Agreement::Does
        } else if comparison.names_later_verb() {
            comparison.score += LATER_VERB_BONUS;
            Agreement::Does
        } else if overlap(first, &profile.all_verbs) {
            Agreement::Unknown
        } else if are_special(first) {
            Agreement::DoesNot
        } else {
            Agreement::Doubtful
        };
        comparison
    }

    /// The possible actions of the first verb of the request; empty if it has no verb.
    fn first_verb(&self) -> &'a [usize] {
        self.intent.verbs.first().map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the tool's name contains a later verb of a Chinese request.
    fn names_later_verb(&self) -> bool {
        let mut later = self.intent.verbs.iter().skip(1).filter(|_| self.intent.in_han);
        later.any(|verbs| overlap(verbs, &self.profile.verbs))
    }

    /// Rejects a tool whose kind (special, read-only, search) does not suit the requested action.
    fn compare_kind_of_tool(&mut self) {
        let (profile, first) = (self.profile, self.first_verb());
        // A special action is requested, and this tool does not perform it.
        if self.intent.certain.iter().any(|verbs| !overlap(verbs, &profile.all_verbs))
            && !profile.searches
            && self.agreement != Agreement::DoesNot
        {
            self.agreement = if profile.is_read_only { Agreement::DoesNot } else { Agreement::Doubtful };
        }
        // A read-only tool cannot serve a request for a change.
        let changing = |verb: &usize| CHANGING_VERBS.contains(&lexicon::verb(*verb).name);
        let by_name = overlap(first, &profile.verbs) || self.names_later_verb();
        if !first.is_empty() && !by_name && profile.is_read_only && first.iter().all(changing) {
            self.agreement = Agreement::DoesNot;
        }
        // A search tool accepts any words: it is used only if the request asks for a search.
        if profile.searches && self.agreement == Agreement::Doubtful {
            // A search tool whose filters are all optional can list everything.
            let lists = is_any_verb(first, &["read"]) && profile.filters;
            self.agreement = if lists { Agreement::Does } else { Agreement::DoesNot };
        }
        if self.agreement == Agreement::Doubtful {
            self.score -= OTHER_VERB_PENALTY;
        }
    }

    /// Compares the objects that the request mentions with those of the tool.
    fn compare_requested_objects(&mut self) {
        let (intent, profile) = (self.intent, self.profile);
        let is_search = profile.searches && self.agreement == Agreement::Does;
        // `graph` can also mean a chart: an ambiguous word matches if one of its meanings does.
        let known = |thing: &usize| profile.all_things.contains(thing);
        let meant_otherwise = |thing: &usize| {
            !known(thing)
                && intent.groups.iter().any(|group| group.contains(thing) && group.iter().any(known))
        };
        for thing in intent.things.iter().filter(|thing| !meant_otherwise(thing)) {
            let mark = lexicon::thing(*thing).mark;
            if profile.things.contains(thing) {
                self.score += SAME_OBJECT_BONUS;
            } else if known(thing) {
                self.score -= DESCRIBED_OBJECT_PENALTY;
            } else if !is_search && mark != Some('?') {
                self.penalize_unknown_object(mark);
            }
        }
    }

    /// The request mentions an object that the tool does not. `mark` is the mark of the object in the table.
    fn penalize_unknown_object(&mut self, mark: Option<char>) {
        let profile = self.profile;
        let slight = mark == Some('~') && !profile.changes;
        // Objects that only dedicated tools handle are not read with other tools.
        let foreign = mark.is_none() && profile.is_read_only;
        self.score -= match (slight, foreign) {
            (true, _) => DESCRIBED_OBJECT_PENALTY,
            (false, true) => UNKNOWN_OBJECT_PENALTY * 1.7,
            (false, false) => UNKNOWN_OBJECT_PENALTY,
        };
        self.has_unexpected = true;
        // A tool does not change an object that it does not mention.
        let unasked = profile.changes || self.agreement == Agreement::Doubtful;
        if mark == Some('!') || (mark.is_none() && unasked) {
            self.agreement = Agreement::DoesNot;
        }
    }

    /// `add a sheet to a.xlsx`: a tool that creates something else and does not mention sheets is rejected.
    fn compare_changed_object(&mut self) {
        let (profile, first) = (self.profile, self.first_verb());
        if let Some(object) = self.intent.things.first().filter(|_| profile.changes)
            && lexicon::thing(*object).mark == Some('~')
            && !profile.things.is_empty()
            && !profile.all_things.contains(object)
            && !(are_special(first) && overlap(first, &profile.verbs))
        {
            self.agreement = Agreement::DoesNot;
        }
    }

    /// Compares the objects that literals of the request imply with those of the tool.
    fn compare_implied_objects(&mut self) {
        let profile = self.profile;
        for thing in self.intent.implied.iter().filter(|thing| !profile.all_things.contains(thing)) {
            self.score -= UNKNOWN_DETAIL_PENALTY;
            self.has_unexpected = true;
            // A picture is also a file: file tools can move, measure and find it.
            let file = lexicon::thing_named("file").is_some_and(|file| profile.all_things.contains(&file));
            let implied = lexicon::thing(*thing);
            if implied.mark == Some('!') && (profile.reads_text || !file)
                || ((profile.reads_text || profile.edits_text) && implied.name == "workbook")
            {
                self.agreement = Agreement::DoesNot;
            }
        }
    }

    /// A text file is not a workbook, and has neither sheets nor cells.
    fn compare_kind_of_file(&mut self) {
        const WORKBOOK_OBJECTS: [&str; 5] = ["workbook", "sheet", "cell", "row", "column"];
        let of_workbook = |row: &usize| WORKBOOK_OBJECTS.contains(&lexicon::thing(*row).name);
        let implies = |name: &str| self.intent.implied.iter().any(|row| lexicon::thing(*row).name == name);
        let file = ["file", "picture", "video"].into_iter().any(implies);
        if file && !implies("workbook") && self.profile.things.iter().any(of_workbook) {
            self.agreement = Agreement::DoesNot;
        }
    }

    /// Compares the objects in the tool's name with those of the request.
    fn compare_unrequested_objects(&mut self) {
        let (intent, profile) = (self.intent, self.profile);
        let means = |thing: &usize| intent.things.contains(thing) || intent.implied.contains(thing);
        let is_stated = |thing: &usize| {
            means(thing)
                || profile.siblings.iter().any(|kinds| kinds.contains(thing) && kinds.iter().any(means))
        };
        for thing in profile.things.iter().filter(|thing| !is_stated(thing)) {
            let mark = lexicon::thing(*thing).mark;
            // A tool for a special object requires that the request mentions it: a text is not read as a picture.
            if profile.is_read_only && mark == Some('!') {
                self.score -= UNREQUESTED_OBJECT_PENALTY;
            }
            if !intent.questions && mark == Some('?') {
                self.score -= UNREQUESTED_OBJECT_PENALTY * 0.5;
            }
            if mark.is_none() {
                self.score -= UNREQUESTED_OBJECT_PENALTY;
                if self.has_unexpected && !(profile.changes && overlap(self.first_verb(), &profile.verbs)) {
                    self.agreement = Agreement::DoesNot;
                }
            }
        }
    }
}
