//! Chooses one of the tools found by the search, by search score and by how well the text fills its parameters.

use std::collections::HashMap;
use std::rc::Rc;

use jiff::civil::Date;
use toolhub_core::Tool;
use toolhub_core::finder::{SearchHit, SearchResult};

use crate::assembly::coverage::SideEffect;
use crate::assembly::fill::fill;
use crate::assembly::inherit;
use crate::lexer::back_reference;
use crate::lexer::labels;
use crate::lexer::mention::{Mention, MentionValue, ParsedText};
use crate::lexer::stop_words::is_stop;
use crate::safety::request_scope::{mentions_contents, mentions_tools, opens_workbook};
use crate::selection::candidates::Candidates;
use crate::selection::choice::Choice;
use crate::selection::choice_check::{is_record, lacks_zone, mentions_other_cells};
use crate::selection::clause_intent::intent;
use crate::selection::generalize;
use crate::selection::implied_need;
use crate::selection::intent::Intent;
use crate::selection::intent_match::Agreement;
use crate::selection::preferences::FittingTools;
use crate::selection::tool_profile::Profile;
use crate::selection::verb_class;
use crate::selection::word_usage::{FULL_USE_THRESHOLD, known_words, used};
use crate::values::candidate::MatchContext;
use crate::values::parameter::{Parameter, parameters};

/// Tools with a smaller share of the best search score are not considered.
const MIN_RELATIVE_SCORE: f64 = 0.35;
/// Maximum number of tools considered per search.
const MAX_CONSIDERED_TOOLS: usize = 8;
/// Score bonuses, relative to the best search rank of 1.
const COMPLETE_BONUS: f32 = 0.35;
const CERTAINTY_BONUS: f32 = 0.3;
const USED_MENTIONS_BONUS: f32 = 0.8;
/// Bonus for each optional parameter with a value, up to `MAX_OPTIONAL_BONUSES`.
const OPTIONAL_VALUE_BONUS: f32 = 0.1;
const MAX_OPTIONAL_BONUSES: usize = 3;
/// Penalty for a tool that changes something if the request does not ask for a change.
const UNREQUESTED_CHANGE_PENALTY: f32 = 0.6;
/// Penalty for a search tool if the request contains an expression to calculate.
const NEEDLESS_SEARCH_PENALTY: f32 = 0.6;
/// Penalty for tools about tools if the request does not mention tools.
const ABOUT_TOOLS_PENALTY: f32 = 0.5;
/// If the search found no match by words, minimum certainty of the arguments and minimum search confidence.
const MIN_CERTAINTY: f32 = 0.6;
const MIN_SEARCH_CONFIDENCE: f64 = 0.2;
/// Minimum score for a tool whose name contains both the verb and the object of the request.
const MIN_SCORE_BY_NAME: f32 = 0.55;
/// If more than this share of the words of a request is known from a tool, no further match by words is needed.
const KNOWN_WORDS_THRESHOLD: f32 = 0.79;
/// Maximum length of a search text without names, in characters.
const MAX_SHORT_SEARCH_CHARS: usize = 16;
/// Tools within this distance of the best score are kept as rivals.
const RIVAL_DISTANCE: f32 = 1.0;
/// Bonus for a tool whose words contain all content words of the request, in proportion.
const KNOWN_WORDS_BONUS: f32 = 0.8;
/// Bonus for a read-only tool whose name contains the verb of the request.
const SAME_VERB_BONUS: f32 = 0.3;
/// Penalty for a tool without parameters if the request contains a name.
const UNUSED_NAME_PENALTY: f32 = 0.5;
/// Rank factor for tools found only by the request without its values, if the request itself finds something.
const GENERALIZED_RANK_FACTOR: f32 = 0.75;
/// Rank factor for tools found only by words from the tables.
const TABLE_WORDS_RANK_FACTOR: f32 = 0.7;
/// Rank of a tool that the contents of a text suggest.
const IMPLIED_NEED_RANK: f32 = 0.8;
/// The same if the contents are unambiguous.
const CERTAIN_NEED_RANK: f32 = 1.4;

/// Cache of parsed tool schemas.
#[derive(Default)]
pub(crate) struct Schemas(HashMap<String, (Rc<Vec<Parameter>>, Rc<Profile>)>);

impl Schemas {
    fn of(&mut self, tool: &Tool) -> Rc<Vec<Parameter>> {
        Rc::clone(&self.read(tool).0)
    }

    pub(crate) fn profile(&mut self, tool: &Tool) -> Rc<Profile> {
        Rc::clone(&self.read(tool).1)
    }

    fn read(&mut self, tool: &Tool) -> &(Rc<Vec<Parameter>>, Rc<Profile>) {
        let key = format!("{}\n{}", tool.source, tool.name());
        self.0.entry(key).or_insert_with(|| {
            let read = parameters(&tool.definition.input_schema().value(), tool.definition.description());
            let profile = Profile::of(tool, &read);
            (Rc::new(read), Rc::new(profile))
        })
    }
}

/// State for choosing tools for one request.
pub(crate) struct Chooser<'a> {
    pub(crate) candidates: &'a Candidates,
    pub(crate) schemas: Schemas,
    /// The intent of the whole request.
    pub(crate) about: Intent,
}

impl<'a> Chooser<'a> {
    /// The effect of the tool according to its name.
    pub(crate) fn side_effect(&mut self, choice: &Choice) -> SideEffect {
        let profile = self.schemas.profile(&choice.tool);
        match (profile.destroys, profile.changes) {
            (true, _) => SideEffect::Destroyed,
            (false, true) => SideEffect::Changed,
            (false, false) => SideEffect::None,
        }
    }

    /// Chooses the tool for a text and fills its arguments from the text. `part` is the searched part of the text.
    pub(crate) fn choose(
        &mut self,
        parsed: &ParsedText<'_>,
        part: &str,
        earlier: &[&Choice],
    ) -> Option<Choice> {
        let parsed_clause = ParsedText::of(part.trim(), Date::ZERO);
        let intent = intent(&parsed_clause);
        let clause = ClauseContext { parsed, parsed_clause: &parsed_clause, intent: &intent, earlier };
        let search = ClauseSearch::of(self.candidates, &parsed_clause);
        let mut choices: Vec<Choice> = Vec::new();
        for hit in self.ranked_hits(&search, &clause) {
            let Some(choice) = self.consider(&hit, &clause) else { continue };
            if search.fits || hit.suggested || self.is_proven(&choice, search.confidence, &clause) {
                let confidence = if hit.suggested { 1.0 } else { search.confidence };
                choices.push(Choice { confidence, ..choice });
            }
        }
        // A tool without any argument is only mentioned, not requested, if another tool is complete.
        let any_whole = choices.iter().any(|choice| choice.is_whole() && !choice.is_empty());
        choices.retain(|choice| !any_whole || choice.is_whole() || !choice.is_empty());
        let options = FittingTools {
            choices: &choices,
            parsed,
            clause: parsed_clause.text,
            has_verb: intent.has_verb(),
        };
        let mut best = options.preferred()?.clone();
        choices.retain(|other| {
            other.tool.name() != best.tool.name() && other.score + RIVAL_DISTANCE >= best.score
        });
        choices.sort_by(|a, b| b.score.total_cmp(&a.score));
        best.rivals = Rc::new(choices);
        Some(best)
    }

    /// The tools that the searches found: by the words of the text, by words from the tables, and by what its contents need.
    fn ranked_hits(&mut self, search: &ClauseSearch<'a>, clause: &ClauseContext<'_>) -> Vec<RankedHit<'a>> {
        let candidates = self.candidates;
        let mut hits = search.hits();
        let about = clause.intent.query_about(&self.about).filter(|_| !clause.earlier.is_empty());
        let in_other_words = [clause.intent.query(), about].into_iter().flatten();
        for found in in_other_words.filter_map(|query| candidates.of(&query)).flat_map(nearest_hits) {
            if !hits.iter().any(|known| known.is_of_tool(&found)) {
                hits.push(RankedHit { rank: found.rank * TABLE_WORDS_RANK_FACTOR, ..found });
            }
        }
        let found_by_words = !hits.is_empty();
        for need in implied_need::needs(clause.parsed_clause) {
            // An unambiguous need outweighs the search ranks of other tools.
            let rank = if need.is_plain() {
                CERTAIN_NEED_RANK
            } else if found_by_words && search.fits {
                IMPLIED_NEED_RANK
            } else {
                1.0
            };
            for found in candidates.of(implied_need::query(need)).map(nearest_hits).unwrap_or_default() {
                let tool = &found.hit.tool;
                if !need.is_satisfied(&self.schemas.of(tool)) {
                    continue;
                }
                match hits.iter_mut().find(|known| known.is_of_tool(&found)) {
                    // A tool that was found by its words keeps its rank.
                    Some(_) if need == implied_need::Need::Page => {}
                    Some(known) if need == implied_need::Need::Agenda => {
                        known.suggested = known.suggested || self.schemas.profile(tool).is_read_only;
                    }
                    Some(known) if need.is_plain() => (known.suggested, known.rank) = (true, rank),
                    Some(known) => known.suggested = true,
                    None => hits.push(RankedHit { rank, suggested: true, ..found }),
                }
            }
        }
        hits
    }

    /// Whether the text proves that a tool is meant although the search found no match by words.
    fn is_proven(&mut self, choice: &Choice, confidence: f64, clause: &ClauseContext<'_>) -> bool {
        let ClauseContext { parsed, parsed_clause, intent, earlier } = *clause;
        let does = choice.does == Agreement::Does;
        let searches = self.schemas.profile(&choice.tool).searches;
        let uses_all = || used(&choice.assignment, parsed) > FULL_USE_THRESHOLD;
        let is_short_search = || {
            parsed.mentions.is_empty()
                && searches
                && parsed_clause.text.chars().count() <= MAX_SHORT_SEARCH_CHARS
        };
        let may_do = does
            || choice.does == Agreement::Unknown && !intent.has_verb() && verb_class::is_read_only(choice);
        is_proven_by_arguments(choice, confidence, parsed)
            || agrees(choice, confidence, parsed)
            || (intent.searches() && searches && does && choice.intent_score > 0.0)
            || follows(choice, confidence, earlier, parsed_clause.text)
            || (choice.known > KNOWN_WORDS_THRESHOLD
                && may_do
                && choice.intent_score > 0.0
                && choice.is_whole()
                && (uses_all() || is_short_search()))
            || (does && choice.is_whole() && is_record(choice))
    }

    /// The tool with arguments from the text and its score; `None` if the request contradicts it.
    fn consider(&mut self, considered: &RankedHit<'_>, about: &ClauseContext<'_>) -> Option<Choice> {
        let mut choice = self.filled(considered, about);
        let profile = self.schemas.profile(&considered.hit.tool);
        choice.known = known_words(&choice, &profile, about.parsed_clause);
        let intent_match = about.intent.intent_match(&profile);
        choice.intent_score = intent_match.score;
        choice.does = if considered.suggested { Agreement::Unknown } else { intent_match.does };
        if is_contradicted(&choice, &profile, about) {
            return None;
        }
        choice.score = score(&choice, &profile, considered, about);
        Some(choice)
    }

    /// The tool with arguments from the text and from earlier steps.
    fn filled(&mut self, considered: &RankedHit<'_>, about: &ClauseContext<'_>) -> Choice {
        let tool = &considered.hit.tool;
        let parameters = self.schemas.of(tool);
        let assignment = fill(&parameters, &context(tool, &parameters, about.parsed));
        let mut choice = Choice {
            tool: tool.clone(),
            parameters,
            assignment,
            score: considered.rank,
            does: Agreement::Unknown,
            intent_score: 0.0,
            known: 0.0,
            confidence: 1.0,
            rivals: Rc::default(),
        };
        inherit::inherit(&mut choice, about.parsed_clause.text, about.earlier);
        if self.schemas.profile(tool).is_read_only {
            crate::selection::choice_check::set_all(&mut choice, about.parsed_clause.text);
            crate::selection::choice_check::set_single_day(&mut choice);
        }
        choice
    }

    /// The same tool, filled from another text.
    pub(crate) fn refill(&mut self, choice: &Choice, parsed: &ParsedText<'_>) -> Choice {
        let assignment = fill(&choice.parameters, &context(&choice.tool, &choice.parameters, parsed));
        Choice { assignment, ..choice.clone() }
    }
}

/// Whether the request rules a tool out.
fn is_contradicted(choice: &Choice, profile: &Profile, about: &ClauseContext<'_>) -> bool {
    let parsed_clause = about.parsed_clause;
    choice.does == Agreement::DoesNot
        // A workbook named earlier is not a text file either.
        || (profile.reads_text && opens_workbook(choice))
        // `clear B2:C4 of sheet S` does not delete the sheet: the change must affect the cells in the request.
        || (profile.changes && mentions_other_cells(choice, parsed_clause))
        // In a later part, a tool without parameters must be requested in its own words.
        || (!about.earlier.is_empty() && choice.parameters.is_empty() && choice.known < 0.5)
        // A missing time zone cannot be guessed.
        || (crate::safety::request_scope::lacks_zone(parsed_clause.text) && lacks_zone(choice))
}

/// How well a tool fits the request, relative to the best search rank of 1.
fn score(choice: &Choice, profile: &Profile, considered: &RankedHit<'_>, about: &ClauseContext<'_>) -> f32 {
    let ClauseContext { parsed, parsed_clause, intent, .. } = *about;
    let assignment = &choice.assignment;
    let mut score = considered.rank
        + CERTAINTY_BONUS * assignment.certainty(&choice.parameters)
        + USED_MENTIONS_BONUS * used(assignment, parsed)
        + OPTIONAL_VALUE_BONUS * assignment.extras(&choice.parameters).min(MAX_OPTIONAL_BONUSES) as f32;
    score += KNOWN_WORDS_BONUS * choice.known;
    // Completeness counts only if an argument was given, or if the tool has no parameters.
    let fits = !choice.is_empty() || choice.parameters.is_empty() || considered.suggested;
    if choice.is_whole() && fits {
        score += COMPLETE_BONUS;
    }
    score += choice.intent_score;
    if profile.changes && choice.does != Agreement::Does {
        score -= UNREQUESTED_CHANGE_PENALTY;
    }
    if profile.is_read_only && verb_class::looks_alike(choice, parsed_clause) {
        score += SAME_VERB_BONUS;
    }
    // `show /etc/hosts`: a path without further words refers to the whole file.
    if profile.reads_text && intent.has_bare_path && !mentions_contents(parsed_clause.text) {
        score += SAME_VERB_BONUS;
    }
    // A request with a name is unlikely to refer to a tool without parameters.
    let is_name = |mention: &Mention| matches!(mention.value, MentionValue::Name | MentionValue::Literal(_));
    if choice.parameters.is_empty() && parsed_clause.mentions.iter().any(is_name) {
        score -= UNUSED_NAME_PENALTY;
    }
    let is_unrequested_search = profile.searches && !intent.searches();
    // Prefer calculating to searching, unless the request asks for a search.
    if is_unrequested_search && !parsed_clause.expressions.is_empty() {
        let covered: usize = parsed_clause.expressions.iter().map(|found| found.end - found.start).sum();
        score -= if covered * 2 > parsed_clause.text.len() {
            NEEDLESS_SEARCH_PENALTY * 3.0
        } else {
            NEEDLESS_SEARCH_PENALTY
        };
    }
    // The same for questions about the time.
    let is_for_a_clock =
        |need: &implied_need::Need| matches!(need, implied_need::Need::Clock | implied_need::Need::Countdown);
    if is_unrequested_search && implied_need::needs(parsed_clause).iter().any(is_for_a_clock) {
        score -= NEEDLESS_SEARCH_PENALTY;
    }
    // A comparison needs two named things.
    if verb_class::compares(choice) && !verb_class::looks_alike(choice, parsed_clause) {
        score -= SAME_VERB_BONUS;
    }
    // A page with a given address is not searched for.
    if is_unrequested_search && implied_need::needs(parsed_clause).contains(&implied_need::Need::Page) {
        score -= NEEDLESS_SEARCH_PENALTY;
    }
    if is_about_tools(&choice.tool) && !mentions_tools(parsed_clause.text) {
        score -= ABOUT_TOOLS_PENALTY;
    }
    score
}

/// The request: the text with the arguments, the part of it with the action, and the earlier steps.
struct ClauseContext<'a> {
    parsed: &'a ParsedText<'a>,
    parsed_clause: &'a ParsedText<'a>,
    intent: &'a Intent,
    earlier: &'a [&'a Choice],
}

/// A tool under consideration.
struct RankedHit<'a> {
    hit: &'a SearchHit,
    /// Search score relative to the best.
    rank: f32,
    /// Whether the contents of the text suggest such a tool.
    suggested: bool,
}

impl RankedHit<'_> {
    fn is_of_tool(&self, other: &RankedHit<'_>) -> bool {
        self.hit.tool.name() == other.hit.tool.name()
    }
}

/// The searches for a clause.
struct ClauseSearch<'a> {
    /// Whether a tool fits its own words.
    fits_own_words: bool,
    /// The searches for its own words, and for those without its values.
    searches: Vec<&'a SearchResult>,
    fits: bool,
    confidence: f64,
}

impl<'a> ClauseSearch<'a> {
    fn of(candidates: &'a Candidates, clause: &ParsedText<'_>) -> Self {
        let own = candidates.of(clause.text);
        let generalized = generalize::generalize(clause).and_then(|text| candidates.of(&text));
        let searches: Vec<&SearchResult> = [own, generalized].into_iter().flatten().collect();
        Self {
            fits_own_words: own.is_some_and(|search| search.fits),
            fits: searches.iter().any(|search| search.fits),
            confidence: searches.iter().map(|search| search.confidence).fold(0.0, f64::max),
            searches,
        }
    }

    /// The tools that were found, each once, with its best rank.
    fn hits(&self) -> Vec<RankedHit<'a>> {
        let mut hits: Vec<RankedHit<'_>> = Vec::new();
        for (index, search) in self.searches.iter().enumerate() {
            let factor = if self.fits_own_words && index > 0 { GENERALIZED_RANK_FACTOR } else { 1.0 };
            for found in nearest_hits(search) {
                let found = RankedHit { rank: found.rank * factor, ..found };
                match hits.iter_mut().find(|known| known.is_of_tool(&found)) {
                    Some(known) => known.rank = known.rank.max(found.rank),
                    None => hits.push(found),
                }
            }
        }
        hits
    }
}

/// The hits worth considering, each with its score relative to the best.
fn nearest_hits(search: &SearchResult) -> Vec<RankedHit<'_>> {
    let best = search.hits.first().map_or(0.0, |hit| hit.score);
    let nearest_hits = search
        .hits
        .iter()
        .take(MAX_CONSIDERED_TOOLS)
        .filter(|hit| best > 0.0 && hit.score >= best * MIN_RELATIVE_SCORE);
    nearest_hits.map(|hit| RankedHit { hit, rank: (hit.score / best) as f32, suggested: false }).collect()
}

/// Whether the arguments alone prove that a tool is meant: all values of the text are used, and fit.
fn is_proven_by_arguments(choice: &Choice, confidence: f64, parsed: &ParsedText<'_>) -> bool {
    let literals =
        parsed.mentions.iter().filter(|mention| matches!(mention.value, MentionValue::Literal(_))).count();
    choice.is_whole()
        && choice.does != Agreement::Doubtful
        && literals > 0
        && confidence >= if literals > 1 { MIN_SEARCH_CONFIDENCE / 2.0 } else { MIN_SEARCH_CONFIDENCE }
        && used(&choice.assignment, parsed) > FULL_USE_THRESHOLD
        && choice.assignment.certainty(&choice.parameters) >= MIN_CERTAINTY
}

/// Whether a tool performs the requested action with the given values.
fn agrees(choice: &Choice, confidence: f64, parsed: &ParsedText<'_>) -> bool {
    let has_literal = parsed.mentions.iter().any(|mention| matches!(mention.value, MentionValue::Literal(_)));
    choice.does == Agreement::Does
        && (choice.intent_score >= MIN_SCORE_BY_NAME
            && (confidence >= MIN_SEARCH_CONFIDENCE || verb_class::is_read_only(choice))
            || choice.intent_score > 0.0 && has_literal && used(&choice.assignment, parsed) > 0.7)
}

/// Whether a step continues an earlier one: it performs the requested action with a value from this part.
fn follows(choice: &Choice, confidence: f64, earlier: &[&Choice], parsed_clause: &str) -> bool {
    let own = choice.assignment.slots.iter().flatten().any(|slot| slot.end > slot.start);
    let pointed = choice.intent_score > 0.0
        && !verb_class::is_read_only(choice)
        && back_reference::points_back(parsed_clause);
    !earlier.is_empty()
        && (own || pointed)
        && choice.does == Agreement::Does
        && choice.is_whole()
        && (choice.intent_score > 0.0 || confidence >= MIN_SEARCH_CONFIDENCE / 2.0)
}

fn is_about_tools(tool: &Tool) -> bool {
    tool.tags.iter().any(|tag| tag == "tools")
        || crate::values::parameter::name_words(tool.name().as_str())
            .iter()
            .any(|word| word == "tool" || word == "tools")
}

fn context<'a>(tool: &Tool, parameters: &[Parameter], parsed: &'a ParsedText<'a>) -> MatchContext<'a> {
    let description = tool.definition.description();
    let head = description.split("\n\n").find(|part| !part.trim().is_empty()).unwrap_or_default();
    let mut words: Vec<String> = crate::values::parameter::name_words(tool.name().as_str());
    words.extend(
        head.split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.len() > 2 && !is_stop(word))
            .map(str::to_owned),
    );
    words.extend(parameters.iter().flat_map(|parameter| parameter.words.iter().cloned()));
    words.push(tool.name().as_str().to_owned());
    let tool_words = words.iter().map(|word| labels::stem(word)).collect();
    MatchContext { parsed, stems: labels::stems(parsed), tool_words }
}
