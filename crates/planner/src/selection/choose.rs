//! Chooses one of the tools found by the search, by search score and by how well the text fills its parameters.

use std::collections::HashMap;
use std::rc::Rc;

use jiff::civil::Date;
use toolhub_core::Tool;
use toolhub_core::finder::{SearchHit, SearchResult};

use crate::assembly::coverage::Trace;
use crate::assembly::fill::{Filling, fill};
use crate::assembly::inherit;
use crate::lexer::labels;
use crate::lexer::mention::{Mention, Reading, Value};
use crate::lexer::token::{Kind, Token};
use crate::safety::spoken_of::{asks_for_all, opens_workbook, speaks_of_inside, speaks_of_tools};
use crate::selection::candidates::Candidates;
use crate::selection::choice_check::{is_list_of_one, is_record, leaves_zone, points_elsewhere};
use crate::selection::deed::{Agreement, Profile, Wish};
use crate::selection::probe;
use crate::selection::skeleton;
use crate::selection::verb_class;
use crate::values::candidate::{Candidate, Given, Scene};
use crate::values::parameter::{Parameter, parameters};
use crate::values::phrase::is_stop;

/// Tools with a smaller share of the best search score are not considered.
const NEAR: f64 = 0.35;
/// Maximum number of tools considered per search.
const MOST: usize = 8;
/// Score bonuses, relative to the best search rank of 1.
const WHOLE: f32 = 0.35;
const CERTAIN: f32 = 0.3;
const USED: f32 = 0.8;
/// Bonus for each optional parameter with a value, up to `MOST_EXTRAS`.
const EXTRA: f32 = 0.1;
const MOST_EXTRAS: usize = 3;
/// Penalty for a tool that changes something if the request does not ask for a change.
const UNASKED: f32 = 0.6;
/// Penalty for a search tool if the request contains an expression to calculate.
const WORKED_OUT: f32 = 0.6;
/// Penalty for tools about tools if the request does not mention tools.
const ABOUT_TOOLS: f32 = 0.5;
/// If the search found no match by words, minimum certainty of the arguments and minimum search confidence.
const CERTAIN_ENOUGH: f32 = 0.6;
const FOUND_ENOUGH: f64 = 0.2;
/// Minimum search confidence for a tool that gets no argument.
const BEYOND_DOUBT: f64 = 0.7;
/// Minimum score for a tool whose name contains both the verb and the object of the request.
const BY_NAME: f32 = 0.55;
/// Score by which an incomplete tool may be below one that gets no argument and still be preferred.
const NEARLY: f32 = 0.5;
/// Maximum length of a search text without names, in characters.
const SHORT_SEARCH: usize = 16;
/// Score by which a complete tool may be below an incomplete one and still be preferred.
const LACKING: f32 = 0.25;
/// Score by which a tool that needs one call may be below one that needs several and still be preferred.
const IN_ONE_CALL: f32 = 1.2;
/// Score by which a tool that takes a single value may be below one that takes a list and still be preferred.
const ALONE: f32 = 0.5;
/// Tools within this distance of the best score are kept as rivals.
const RIVALRY: f32 = 1.0;
/// Bonus for a tool whose words contain all content words of the request, in proportion.
const KNOWN_WORDS: f32 = 0.8;
/// Bonus for a read-only tool whose name contains the verb of the request.
const SAME_VERB: f32 = 0.3;
/// Penalty for a tool without parameters if the request contains a name.
const NAMELESS: f32 = 0.5;
/// Weight of a word that occurs only in the description.
const BY_DESCRIPTION: f32 = 0.8;
/// Rank factor for tools found only by the request without its values, if the request itself finds something.
const BY_SKELETON: f32 = 0.75;
/// Rank factor for tools found only by words from the tables.
const REPHRASED: f32 = 0.7;
/// Rank of a tool that the contents of a text suggest.
const SUGGESTED: f32 = 0.8;
/// The same if the contents are unambiguous.
const BEYOND: f32 = 1.4;

/// A tool with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) tool: Tool,
    pub(crate) parameters: Rc<Vec<Parameter>>,
    pub(crate) filling: Filling,
    pub(crate) score: f32,
    /// Whether the tool performs the requested action, judged by verbs.
    does: Agreement,
    /// Score of the tool's own words.
    stands: f32,
    /// Share of the request's content words that the tool's own words contain.
    known: f32,
    /// Confidence of the search that some tool fits.
    pub(crate) confidence: f64,
    /// Other tools with a similar score.
    pub(crate) rivals: Rc<Vec<Choice>>,
}

impl Choice {
    /// Whether the text contains no value for the tool.
    pub(crate) fn is_empty(&self) -> bool {
        self.filling.slots.iter().all(Option::is_none)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.filling.missing(&self.parameters).next().is_none()
    }
}

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
    pub(crate) about: Wish,
}

impl Chooser<'_> {
    /// The effect of the tool according to its name.
    pub(crate) fn trace(&mut self, choice: &Choice) -> Trace {
        let profile = self.schemas.profile(&choice.tool);
        match (profile.destroys, profile.changes) {
            (true, _) => Trace::Destroyed,
            (false, true) => Trace::Changed,
            (false, false) => Trace::None,
        }
    }

    /// Chooses the tool for a text and fills its arguments from the text. `part` is the searched part of the text.
    pub(crate) fn choose(
        &mut self,
        reading: &Reading<'_>,
        part: &str,
        earlier: &[&Choice],
    ) -> Option<Choice> {
        let asked = Reading::of(part.trim(), Date::ZERO);
        let bare = skeleton::skeleton(&asked);
        let searches: Vec<&SearchResult> = [Some(part.trim()), bare.as_deref()]
            .into_iter()
            .flatten()
            .filter_map(|part| self.candidates.of(part))
            .collect();
        let fits = searches.iter().any(|search| search.fits);
        let confidence = searches.iter().map(|search| search.confidence).fold(0.0, f64::max);
        let mut looked: Vec<Considered<'_>> = Vec::new();
        let own = self.candidates.of(part.trim()).is_some_and(|search| search.fits);
        let ranked = searches.iter().enumerate().flat_map(|(place, search)| {
            let worth = if own && place > 0 { BY_SKELETON } else { 1.0 };
            near(search).into_iter().map(move |one| Considered { rank: one.rank * worth, ..one })
        });
        for considered in ranked {
            match looked.iter_mut().find(|other| other.hit.tool.name() == considered.hit.tool.name()) {
                Some(known) => known.rank = known.rank.max(considered.rank),
                None => looked.push(considered),
            }
        }
        let wish = wish(&asked);
        let about = wish.query_about(&self.about).filter(|_| !earlier.is_empty());
        let in_other_words = [wish.query(), about].into_iter().flatten();
        let in_other_words: Vec<&SearchResult> =
            in_other_words.filter_map(|query| self.candidates.of(&query)).collect();
        for considered in in_other_words.into_iter().flat_map(near) {
            if !looked.iter().any(|other| other.hit.tool.name() == considered.hit.tool.name()) {
                looked.push(Considered { rank: considered.rank * REPHRASED, ..considered });
            }
        }
        let by_words = looked.len();
        for need in probe::needs(&asked) {
            let found = self.candidates.of(probe::query(need)).map(near).unwrap_or_default();
            for Considered { hit, .. } in found {
                if !need.is_met(&self.schemas.of(&hit.tool)) {
                    continue;
                }
                let rank = if by_words == 0 || !fits { 1.0 } else { SUGGESTED };
                // An unambiguous need outweighs the search ranks of other tools.
                let rank = if need.is_plain() { BEYOND } else { rank };
                match looked.iter_mut().find(|other| other.hit.tool.name() == hit.tool.name()) {
                    // A tool that was found by its words keeps its rank.
                    Some(_) if need == probe::Need::Page => {}
                    Some(known) if need == probe::Need::Agenda => {
                        known.suggested = known.suggested || self.schemas.profile(&hit.tool).harmless;
                    }
                    Some(known) if need.is_plain() => (known.suggested, known.rank) = (true, rank),
                    Some(known) => known.suggested = true,
                    None => looked.push(Considered { hit, rank, suggested: true }),
                }
            }
        }
        let mut choices: Vec<Choice> = Vec::new();
        for considered in looked {
            let Some(choice) =
                self.consider(&considered, &Asked { reading, asked: &asked, wish: &wish, earlier })
            else {
                continue;
            };
            let sure = fits
                || considered.suggested
                || speaks_for_itself(&choice, confidence, reading)
                || agrees(&choice, confidence, reading)
                || (wish.searches()
                    && self.schemas.profile(&choice.tool).searches
                    && choice.does == Agreement::Does
                    && choice.stands > 0.0)
                || follows(&choice, confidence, earlier, asked.text)
                || (choice.known > 0.79
                    && (choice.does == Agreement::Does
                        || choice.does == Agreement::Unknown
                            && !wish.asks()
                            && verb_class::is_harmless(&choice))
                    && choice.stands > 0.0
                    && choice.is_whole()
                    && (used(&choice.filling, reading) > 0.99
                        || reading.mentions.is_empty()
                            && self.schemas.profile(&choice.tool).searches
                            && asked.text.chars().count() <= SHORT_SEARCH))
                || (choice.does == Agreement::Does && choice.is_whole() && is_record(&choice));
            if sure {
                let confidence = if considered.suggested { 1.0 } else { confidence };
                choices.push(Choice { confidence, ..choice });
            }
        }
        // A tool without any argument is only mentioned, not requested, if another tool is complete.
        let any_whole = choices.iter().any(|choice| choice.is_whole() && !choice.is_empty());
        choices.retain(|choice| !any_whole || choice.is_whole() || !choice.is_empty());
        let mut best: Option<Choice> = None;
        for choice in &choices {
            if best.as_ref().is_none_or(|best| choice.score > best.score) {
                best = Some(choice.clone());
            }
        }
        // Without a verb, no change is requested: prefer a read-only tool.
        if let Some(change) = best.as_ref().filter(|best| !wish.asks() && !verb_class::is_harmless(best)) {
            let look = choices.iter().filter(|choice| {
                choice.is_whole()
                    && !choice.is_empty()
                    && verb_class::is_harmless(choice)
                    && choice.score + NEARLY * 2.0 >= change.score
            });
            let look = look.max_by(|a, b| a.score.total_cmp(&b.score));
            best = look.filter(|_| !change.is_whole()).or(Some(change)).cloned();
        }
        // `Open the file` refers to one file, not to a list of all files: prefer a tool that reports the missing argument.
        if let Some(empty) = best.as_ref().filter(|best| {
            best.is_empty()
                && !best.parameters.is_empty()
                && best.confidence < 1.0
                && !asks_for_all(asked.text)
        }) {
            let near = |choice: &&Choice| {
                !choice.is_whole() && choice.does == Agreement::Does && choice.score + NEARLY >= empty.score
            };
            let instead = choices.iter().filter(near).max_by(|a, b| a.score.total_cmp(&b.score));
            best = instead.or(Some(empty)).cloned();
        }
        // Prefer a complete tool with the same action to an incomplete one.
        if let Some(lacking) = best.clone().filter(|best| !best.is_whole()) {
            let whole = |choice: &&Choice| {
                choice.is_whole()
                    && !choice.is_empty()
                    && choice.does == Agreement::Does
                    && choice.score + LACKING >= lacking.score
                    && used(&choice.filling, reading) > 0.99
            };
            let instead = choices.iter().filter(whole).max_by(|a, b| a.score.total_cmp(&b.score));
            best = instead.or(Some(&lacking)).cloned();
        }
        // `what folders do I have?`: prefer a tool without parameters to one that got no arguments.
        if let Some(empty) = best.clone().filter(|best| best.is_empty() && !best.parameters.is_empty()) {
            let bare = |choice: &&Choice| {
                choice.parameters.is_empty()
                    && choice.does == Agreement::Does
                    && choice.stands > 0.0
                    && choice.score + NEARLY >= empty.score
            };
            let instead = choices.iter().filter(bare).max_by(|a, b| a.score.total_cmp(&b.score));
            best = instead.or(Some(&empty)).cloned();
        }
        // `read a.md, b.md and c.md`: prefer one call with a list, if a tool takes one.
        if let Some(one) = best.clone() {
            let calls = crate::assembly::fan::out(&one, reading).len();
            let takes = |choice: &&Choice| {
                choice.is_whole()
                    && choice.does == Agreement::Does
                    && choice.score + IN_ONE_CALL >= one.score
                    && choice.filling.slots.iter().flatten().any(|slot| {
                        matches!(&slot.value, Given::Said(serde_json::Value::Array(all)) if all.len() == calls)
                    })
            };
            if calls > 1
                && let Some(list) = choices.iter().filter(takes).max_by(|a, b| a.score.total_cmp(&b.score))
            {
                best = Some(list.clone());
            }
        }
        // `read a.md`: prefer a tool that takes a single value to one that takes a list.
        if let Some(list) = best.clone().filter(is_list_of_one) {
            let alone = |choice: &&Choice| {
                choice.is_whole()
                    && choice.does == list.does
                    && !is_list_of_one(choice)
                    && choice.score + ALONE >= list.score
                    && choice.filling.slots.iter().flatten().any(|slot| {
                        list.filling.uses(slot.start, slot.end) && matches!(slot.value, Given::Said(_))
                    })
            };
            let one = choices.iter().filter(alone).max_by(|a, b| a.score.total_cmp(&b.score));
            best = one.or(Some(&list)).cloned();
        }
        // A tool that gets no arguments requires a high search confidence.
        let mut best = best.filter(|best| {
            !best.is_empty() || best.parameters.is_empty() || best.confidence >= BEYOND_DOUBT
        })?;
        choices.retain(|other| other.tool.name() != best.tool.name() && other.score + RIVALRY >= best.score);
        choices.sort_by(|a, b| b.score.total_cmp(&a.score));
        best.rivals = Rc::new(choices);
        Some(best)
    }

    fn consider(&mut self, considered: &Considered<'_>, about: &Asked<'_>) -> Option<Choice> {
        let Asked { reading, asked, wish, earlier } = *about;
        let tool = &considered.hit.tool;
        let parameters = self.schemas.of(tool);
        let filling = fill(&parameters, &scene(tool, &parameters, reading));
        let mut choice = Choice {
            tool: tool.clone(),
            parameters,
            filling,
            score: considered.rank,
            does: Agreement::Unknown,
            stands: 0.0,
            known: 0.0,
            confidence: 1.0,
            rivals: Rc::default(),
        };
        inherit::inherit(&mut choice, asked.text, earlier);
        if self.schemas.profile(tool).harmless {
            crate::selection::choice_check::unbounded(&mut choice, asked.text);
            crate::selection::choice_check::one_day(&mut choice);
        }
        let filling = &choice.filling;
        let mut score = considered.rank
            + CERTAIN * filling.certainty(&choice.parameters)
            + USED * used(filling, reading)
            + EXTRA * filling.extras(&choice.parameters).min(MOST_EXTRAS) as f32;
        let profile = self.schemas.profile(tool);
        choice.known = known_words(&choice, &profile, asked);
        score += KNOWN_WORDS * choice.known;
        // Completeness counts only if an argument was given, or if the tool has no parameters.
        let fits = !choice.is_empty() || choice.parameters.is_empty() || considered.suggested;
        if choice.is_whole() && fits {
            score += WHOLE;
        }
        let standing = wish.standing(&profile);
        score += standing.score;
        choice.stands = standing.score;
        choice.does = if considered.suggested { Agreement::Unknown } else { standing.does };
        match choice.does {
            Agreement::DoesNot => return None,
            Agreement::Unknown | Agreement::Doubtful if profile.changes => score -= UNASKED,
            Agreement::Does | Agreement::Unknown | Agreement::Doubtful => {}
        }
        if profile.harmless && verb_class::looks_alike(&choice, asked) {
            score += SAME_VERB;
        }
        // `show /etc/hosts`: a path without further words refers to the whole file.
        if profile.reads_text && wish.has_bare_path && !speaks_of_inside(asked.text) {
            score += SAME_VERB;
        }
        // A workbook named earlier is not a text file either.
        if self.schemas.profile(tool).reads_text && opens_workbook(&choice) {
            return None;
        }
        // `clear B2:C4 of sheet S` does not delete the sheet: the change must affect the cells in the request.
        if profile.changes && points_elsewhere(&choice, asked) {
            return None;
        }
        // A request with a name is unlikely to refer to a tool without parameters.
        let names = |mention: &&Mention| matches!(mention.value, Value::Name | Value::Literal(_));
        if choice.parameters.is_empty() && asked.mentions.iter().any(|mention| names(&mention)) {
            score -= NAMELESS;
        }
        // Prefer calculating to searching, unless the request asks for a search.
        if profile.searches && !asked.expressions.is_empty() && !wish.searches() {
            let covered: usize = asked.expressions.iter().map(|found| found.end - found.start).sum();
            score -= if covered * 2 > asked.text.len() { WORKED_OUT * 3.0 } else { WORKED_OUT };
        }
        // The same for questions about the time.
        let for_a_clock = || {
            probe::needs(asked).iter().any(|need| matches!(need, probe::Need::Clock | probe::Need::Countdown))
        };
        if profile.searches && !wish.searches() && for_a_clock() {
            score -= WORKED_OUT;
        }
        // A comparison needs two named things.
        if verb_class::compares(&choice) && !verb_class::looks_alike(&choice, asked) {
            score -= SAME_VERB;
        }
        // In a later part, a tool without parameters must be requested in its own words.
        if !earlier.is_empty() && choice.parameters.is_empty() && choice.known < 0.5 {
            return None;
        }
        // A page with a given address is not searched for, and a missing time zone cannot be guessed.
        if profile.searches && !wish.searches() && probe::needs(asked).contains(&probe::Need::Page) {
            score -= WORKED_OUT;
        }
        if crate::safety::spoken_of::leaves_zone(asked.text) && leaves_zone(&choice) {
            return None;
        }
        if is_about_tools(tool) && !speaks_of_tools(asked.text) {
            score -= ABOUT_TOOLS;
        }
        choice.score = score;
        Some(choice)
    }

    /// The same tool, filled from another text.
    pub(crate) fn again(&mut self, choice: &Choice, reading: &Reading<'_>) -> Choice {
        let filling = fill(&choice.parameters, &scene(&choice.tool, &choice.parameters, reading));
        Choice { filling, ..choice.clone() }
    }
}

/// The request: the text with the arguments, the part of it with the action, and the earlier steps.
struct Asked<'a> {
    reading: &'a Reading<'a>,
    asked: &'a Reading<'a>,
    wish: &'a Wish,
    earlier: &'a [&'a Choice],
}

/// A tool under consideration.
struct Considered<'a> {
    hit: &'a SearchHit,
    /// Search score relative to the best.
    rank: f32,
    /// Whether the contents of the text suggest such a tool.
    suggested: bool,
}

/// The hits worth considering, each with its score relative to the best.
fn near(search: &SearchResult) -> Vec<Considered<'_>> {
    let best = search.hits.first().map_or(0.0, |hit| hit.score);
    let near = search.hits.iter().take(MOST).filter(|hit| best > 0.0 && hit.score >= best * NEAR);
    near.map(|hit| Considered { hit, rank: (hit.score / best) as f32, suggested: false }).collect()
}

/// Whether the arguments alone prove that a tool is meant: all values of the text are used, and fit.
fn speaks_for_itself(choice: &Choice, confidence: f64, reading: &Reading<'_>) -> bool {
    let literals =
        reading.mentions.iter().filter(|mention| matches!(mention.value, Value::Literal(_))).count();
    choice.is_whole()
        && choice.does != Agreement::Doubtful
        && literals > 0
        && confidence >= if literals > 1 { FOUND_ENOUGH / 2.0 } else { FOUND_ENOUGH }
        && used(&choice.filling, reading) > 0.99
        && choice.filling.certainty(&choice.parameters) >= CERTAIN_ENOUGH
}

/// Whether a tool performs the requested action with the given values.
fn agrees(choice: &Choice, confidence: f64, reading: &Reading<'_>) -> bool {
    let given = reading.mentions.iter().any(|mention| matches!(mention.value, Value::Literal(_)));
    choice.does == Agreement::Does
        && (choice.stands >= BY_NAME && (confidence >= FOUND_ENOUGH || verb_class::is_harmless(choice))
            || choice.stands > 0.0 && given && used(&choice.filling, reading) > 0.7)
}

/// Whether a step continues an earlier one: it performs the requested action with a value from this part.
fn follows(choice: &Choice, confidence: f64, earlier: &[&Choice], asked: &str) -> bool {
    let own = choice.filling.slots.iter().flatten().any(|slot| slot.end > slot.start);
    let pointed = choice.stands > 0.0 && !verb_class::is_harmless(choice) && inherit::points_back(asked);
    !earlier.is_empty()
        && (own || pointed)
        && choice.does == Agreement::Does
        && choice.is_whole()
        && (choice.stands > 0.0 || confidence >= FOUND_ENOUGH / 2.0)
}

fn is_about_tools(tool: &Tool) -> bool {
    tool.tags.iter().any(|tag| tag == "tools")
        || crate::values::parameter::words(tool.name().as_str())
            .iter()
            .any(|word| word == "tool" || word == "tools")
}

/// The intent of a text. Names of sheets are ignored.
pub(crate) fn wish(asked: &Reading<'_>) -> Wish {
    let scene = Scene { reading: asked, stems: labels::stems(asked), tool_words: Vec::new() };
    let mut names: Vec<(usize, usize)> =
        crate::spreadsheet::sheet::find(&scene).iter().map(|name| (name.start, name.end)).collect();
    // Text to be written into cells is ignored, too, but `a comment` is an object and not such a text.
    let is_text = |entry: &&Candidate| {
        let written = asked.text.get(entry.start..entry.end).unwrap_or_default().trim_start().to_lowercase();
        !["a ", "an ", "some ", "the ", "一"].iter().any(|article| written.starts_with(article))
    };
    // The text of a reply is ignored as well.
    names.extend(crate::lexer::split::answer_begins(asked).map(|start| (start, asked.text.len())));
    let written = crate::spreadsheet::entry::candidates(&scene);
    names.extend(written.iter().filter(is_text).map(|entry| (entry.start, entry.end)));
    Wish::of(asked, &names)
}

fn scene<'a>(tool: &Tool, parameters: &[Parameter], reading: &'a Reading<'a>) -> Scene<'a> {
    let description = tool.definition.description();
    let head = description.split("\n\n").find(|part| !part.trim().is_empty()).unwrap_or_default();
    let mut words: Vec<String> = crate::values::parameter::words(tool.name().as_str());
    words.extend(
        head.split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.len() > 2 && !is_stop(word))
            .map(str::to_owned),
    );
    words.extend(parameters.iter().flat_map(|parameter| parameter.words.iter().cloned()));
    words.push(tool.name().as_str().to_owned());
    let tool_words = words.iter().map(|word| labels::stem(word)).collect();
    Scene { reading, stems: labels::stems(reading), tool_words }
}

/// The share of the request's content words that occur in the tool's name, description or parameters. Words that are
/// arguments are not counted.
fn known_words(choice: &Choice, profile: &Profile, asked: &Reading<'_>) -> f32 {
    let mut own: Vec<String> = crate::assembly::coverage::words_of(choice);
    let described = choice.parameters.iter().flat_map(|parameter| {
        parameter.description.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2)
    });
    own.extend(described.map(labels::stem));
    let taken = |token: &Token<'_>| {
        asked.mentions.iter().any(|mention| mention.start < token.end && token.start < mention.end)
    };
    let named: Vec<String> = crate::values::parameter::words(choice.tool.name().as_str())
        .iter()
        .map(|word| labels::stem(word))
        .collect();
    let (mut all, mut known) = (0usize, 0.0);
    for token in &asked.tokens {
        if token.kind != Kind::Word || taken(token) || crate::assembly::coverage::is_small(token) {
            continue;
        }
        all += 1;
        let stem = labels::stem(token.text);
        known += match named.contains(&stem) {
            true => 1.0,
            false if own.contains(&stem) => BY_DESCRIPTION,
            false => 0.0,
        };
    }
    let spots = crate::lexer::lexicon::spots(asked.text, &asked.tokens, &taken);
    for spot in spots.iter().filter(|spot| crate::lexer::name::has_han(&asked.text[spot.start..spot.end])) {
        all += 1;
        known += if profile.knows(&spot.meaning) { 1.0 } else { 0.0 };
    }
    if all == 0 { 0.5 } else { known / all as f32 }
}

/// The weighted share of the mentions in a text that are used as arguments.
fn used(filling: &Filling, reading: &Reading<'_>) -> f32 {
    let weight = |value: &Value| match value {
        Value::Literal(_) => 2.0,
        Value::Number(number) if number.weak => 0.2,
        Value::Number(_) | Value::When(_) | Value::Place => 1.0,
        Value::Name | Value::Holiday => 0.8,
    };
    let all: f32 = reading.mentions.iter().map(|mention| weight(&mention.value)).sum();
    let used: f32 = reading
        .mentions
        .iter()
        .filter(|mention| filling.uses(mention.start, mention.end))
        .map(|mention| weight(&mention.value))
        .sum();
    if all > 0.0 { used / all } else { 0.5 }
}
