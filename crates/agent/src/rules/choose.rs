//! Which of the tools that were found is the one: how well it was found, and how well the text fills it.

use std::collections::HashMap;
use std::rc::Rc;

use jiff::civil::Date;
use toolhub_core::Tool;
use toolhub_core::finder::{Found, Search};

use super::candidate::{Candidate, Given, Scene};
use super::candidates::Candidates;
use super::choice_check::{is_list_of_one, is_record, leaves_zone, points_elsewhere};
use super::coverage::Trace;
use super::deed::{Agreement, Profile, Wish};
use super::fill::{Filling, fill};
use super::inherit;
use super::labels;
use super::mention::{Mention, Reading, Value};
use super::parameter::{Parameter, parameters};
use super::phrase::is_stop;
use super::probe;
use super::skeleton;
use super::spoken_of::{asks_for_all, opens_workbook, speaks_of_inside, speaks_of_tools};
use super::token::{Kind, Token};
use super::verb_class;

/// Tools whose score is a smaller share of the best one's are not looked at.
const NEAR: f64 = 0.35;
/// At most this many are.
const MOST: usize = 8;
/// What speaks for a tool beside how well it was found, whose best is worth 1.
const WHOLE: f32 = 0.35;
const CERTAIN: f32 = 0.3;
const USED: f32 = 0.8;
/// For each optional parameter that was spoken of, up to a few.
const EXTRA: f32 = 0.1;
const MOST_EXTRAS: usize = 3;
/// What speaks against a tool that changes something, where nobody asked for that.
const UNASKED: f32 = 0.6;
/// Searching, where there is something to calculate.
const WORKED_OUT: f32 = 0.6;
/// Tools about tools, where nobody speaks of tools.
const ABOUT_TOOLS: f32 = 0.5;
/// Where the words alone say that nothing fits, arguments must say the more: how certain they are, and how well found.
const CERTAIN_ENOUGH: f32 = 0.6;
const FOUND_ENOUGH: f64 = 0.2;
/// How sure the search must be of a tool that gets no argument.
const BEYOND_DOUBT: f64 = 0.7;
/// What stands for a tool whose name says both what is asked for and what to.
const BY_NAME: f32 = 0.55;
/// How much less may speak for a tool that lacks something than for one that takes nothing of what was said.
const NEARLY: f32 = 0.5;
/// A search that names nothing is as short as this, in characters.
const SHORT_SEARCH: usize = 16;
/// How much less may speak for a tool that lacks nothing than for one that does.
const LACKING: f32 = 0.25;
/// How much less may speak for a tool that does in one call what another does in several.
const IN_ONE_CALL: f32 = 1.2;
/// How much less may speak for a tool that takes one thing than for one that takes a list of them.
const ALONE: f32 = 0.5;
/// How much less may speak for a tool that is compared with the chosen one.
const RIVALRY: f32 = 1.0;
/// What speaks for a tool whose own words know all content words of the request.
const KNOWN_WORDS: f32 = 0.8;
/// What speaks for a tool that looks at something, where its name has the verb of the request.
const SAME_VERB: f32 = 0.3;
/// What speaks against a tool that takes nothing, where something is named.
const NAMELESS: f32 = 0.5;
/// How much a word counts that only the description knows.
const BY_DESCRIPTION: f32 = 0.8;
/// How well one counts as found that only the request without its particulars finds, where its own words find something.
const BY_SKELETON: f32 = 0.75;
/// How well one counts as found that only the words of the tables find.
const REPHRASED: f32 = 0.7;
/// How well a tool counts as found that the contents of a text suggest.
const SUGGESTED: f32 = 0.8;
/// The same where there is no doubt of it.
const BEYOND: f32 = 1.4;

/// A tool with its arguments.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) tool: Tool,
    pub(super) parameters: Rc<Vec<Parameter>>,
    pub(super) filling: Filling,
    pub(super) score: f32,
    /// Whether it does what the text asks for, as far as verbs tell.
    does: Agreement,
    /// What its own words say for it, or against.
    stands: f32,
    /// Which share of the request's content words its own words know.
    known: f32,
    /// How sure the search was that some tool fits.
    pub(super) confidence: f64,
    /// The other tools that nearly were chosen.
    pub(super) rivals: Rc<Vec<Choice>>,
}

impl Choice {
    /// Whether the text said nothing that the tool takes.
    pub(super) fn is_empty(&self) -> bool {
        self.filling.slots.iter().all(Option::is_none)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.filling.missing(&self.parameters).next().is_none()
    }
}

/// Reads each tool's schema once.
#[derive(Default)]
pub(super) struct Schemas(HashMap<String, (Rc<Vec<Parameter>>, Rc<Profile>)>);

impl Schemas {
    fn of(&mut self, tool: &Tool) -> Rc<Vec<Parameter>> {
        Rc::clone(&self.read(tool).0)
    }

    pub(super) fn profile(&mut self, tool: &Tool) -> Rc<Profile> {
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

/// What tools are chosen from, and for what.
pub(super) struct Chooser<'a> {
    pub(super) candidates: &'a Candidates,
    pub(super) schemas: Schemas,
    /// What the whole request asks for.
    pub(super) about: Wish,
}

impl Chooser<'_> {
    /// What the tool's name says of what it leaves behind.
    pub(super) fn trace(&mut self, choice: &Choice) -> Trace {
        let profile = self.schemas.profile(&choice.tool);
        match (profile.destroys, profile.changes) {
            (true, _) => Trace::Destroyed,
            (false, true) => Trace::Changed,
            (false, false) => Trace::None,
        }
    }

    /// The tool for a text, with what the text says of its arguments. `part` is what was searched for, a part of the text.
    pub(super) fn choose(
        &mut self,
        reading: &Reading<'_>,
        part: &str,
        earlier: &[&Choice],
    ) -> Option<Choice> {
        let asked = Reading::of(part.trim(), Date::ZERO);
        let bare = skeleton::skeleton(&asked);
        let searches: Vec<&Search> = [Some(part.trim()), bare.as_deref()]
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
        let in_other_words: Vec<&Search> =
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
                // What is plain to see outweighs how well others were found.
                let rank = if need.is_plain() { BEYOND } else { rank };
                match looked.iter_mut().find(|other| other.hit.tool.name() == hit.tool.name()) {
                    // A tool that was found by its words stands by them.
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
        // A tool that is named and gets no argument is spoken of, not asked for.
        let any_whole = choices.iter().any(|choice| choice.is_whole() && !choice.is_empty());
        choices.retain(|choice| !any_whole || choice.is_whole() || !choice.is_empty());
        let mut best: Option<Choice> = None;
        for choice in &choices {
            if best.as_ref().is_none_or(|best| choice.score > best.score) {
                best = Some(choice.clone());
            }
        }
        // Without any verb nothing is to be changed: what can be looked at is meant.
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
        // `Open the file` asks for one file, not for a list of all: what lacks is asked for.
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
        // A tool that does the same and lacks nothing is meant before one that lacks something.
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
        // `what folders do I have?`: a tool that takes nothing is meant before one that got nothing.
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
        // `read a.md, b.md and c.md`: one call with a list is meant where a tool takes one.
        if let Some(one) = best.clone() {
            let calls = super::fan::out(&one, reading).len();
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
        // `read a.md`: a list of one is not meant where another tool takes the one by itself.
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
        // A tool that takes nothing of what was said must be meant beyond doubt.
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
            super::choice_check::unbounded(&mut choice, asked.text);
            super::choice_check::one_day(&mut choice);
        }
        let filling = &choice.filling;
        let mut score = considered.rank
            + CERTAIN * filling.certainty(&choice.parameters)
            + USED * used(filling, reading)
            + EXTRA * filling.extras(&choice.parameters).min(MOST_EXTRAS) as f32;
        let profile = self.schemas.profile(tool);
        choice.known = known_words(&choice, &profile, asked);
        score += KNOWN_WORDS * choice.known;
        // Nothing lacks where nothing is needed: that says nothing, unless nothing could be given.
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
        // `show /etc/hosts`: what is shown, and nothing in it, is a file.
        if profile.reads_text && wish.has_bare_path && !speaks_of_inside(asked.text) {
            score += SAME_VERB;
        }
        // A workbook that was named before is no text now, either.
        if self.schemas.profile(tool).reads_text && opens_workbook(&choice) {
            return None;
        }
        // `clear B2:C4 of sheet S` deletes no sheet: what is changed is what was pointed at.
        if profile.changes && points_elsewhere(&choice, asked) {
            return None;
        }
        // What takes nothing is not asked for by name.
        let names = |mention: &&Mention| matches!(mention.value, Value::Name | Value::Literal(_));
        if choice.parameters.is_empty() && asked.mentions.iter().any(|mention| names(&mention)) {
            score -= NAMELESS;
        }
        // What can be worked out is not searched for, unless that is asked.
        if profile.searches && !asked.expressions.is_empty() && !wish.searches() {
            let covered: usize = asked.expressions.iter().map(|found| found.end - found.start).sum();
            score -= if covered * 2 > asked.text.len() { WORKED_OUT * 3.0 } else { WORKED_OUT };
        }
        // Nor is what a clock tells.
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
        // What takes nothing is meant in a later part only where its own words are said.
        if !earlier.is_empty() && choice.parameters.is_empty() && choice.known < 0.5 {
            return None;
        }
        // A page with a given address is not searched for, and a time zone that is not given is not known.
        if profile.searches && !wish.searches() && probe::needs(asked).contains(&probe::Need::Page) {
            score -= WORKED_OUT;
        }
        if super::spoken_of::leaves_zone(asked.text) && leaves_zone(&choice) {
            return None;
        }
        if is_about_tools(tool) && !speaks_of_tools(asked.text) {
            score -= ABOUT_TOOLS;
        }
        choice.score = score;
        Some(choice)
    }

    /// The same tool, filled from another text.
    pub(super) fn again(&mut self, choice: &Choice, reading: &Reading<'_>) -> Choice {
        let filling = fill(&choice.parameters, &scene(&choice.tool, &choice.parameters, reading));
        Choice { filling, ..choice.clone() }
    }
}

/// What is asked for: the text that tells the arguments, the part of it that tells the deed, and the steps before.
struct Asked<'a> {
    reading: &'a Reading<'a>,
    asked: &'a Reading<'a>,
    wish: &'a Wish,
    earlier: &'a [&'a Choice],
}

/// A tool that may be chosen.
struct Considered<'a> {
    hit: &'a Found,
    /// How well it was found beside the best.
    rank: f32,
    /// Whether the contents of the text ask for such a tool.
    suggested: bool,
}

/// The hits that are worth a look, with how well each was found beside the best.
fn near(search: &Search) -> Vec<Considered<'_>> {
    let best = search.hits.first().map_or(0.0, |hit| hit.score);
    let near = search.hits.iter().take(MOST).filter(|hit| best > 0.0 && hit.score >= best * NEAR);
    near.map(|hit| Considered { hit, rank: (hit.score / best) as f32, suggested: false }).collect()
}

/// Whether the arguments alone show that a tool is meant: all that was given is used, and fits.
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

/// Whether a tool does what is asked for, with everything that was given.
fn agrees(choice: &Choice, confidence: f64, reading: &Reading<'_>) -> bool {
    let given = reading.mentions.iter().any(|mention| matches!(mention.value, Value::Literal(_)));
    choice.does == Agreement::Does
        && (choice.stands >= BY_NAME && (confidence >= FOUND_ENOUGH || verb_class::is_harmless(choice))
            || choice.stands > 0.0 && given && used(&choice.filling, reading) > 0.7)
}

/// Whether a step goes on where an earlier one left off: it does what is asked, with something that is said here.
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
        || super::parameter::words(tool.name().as_str()).iter().any(|word| word == "tool" || word == "tools")
}

/// What a text asks for; names of sheets say nothing of it.
pub(super) fn wish(asked: &Reading<'_>) -> Wish {
    let scene = Scene { reading: asked, stems: labels::stems(asked), tool_words: Vec::new() };
    let mut names: Vec<(usize, usize)> =
        super::sheet::find(&scene).iter().map(|name| (name.start, name.end)).collect();
    // What is written into cells says nothing of what is to be done, either.
    // `a comment` in a cell is a thing, and no text.
    let is_text = |entry: &&Candidate| {
        let written = asked.text.get(entry.start..entry.end).unwrap_or_default().trim_start().to_lowercase();
        !["a ", "an ", "some ", "the ", "一"].iter().any(|article| written.starts_with(article))
    };
    // Nor does the text of an answer.
    names.extend(super::split::answer_begins(asked).map(|start| (start, asked.text.len())));
    let written = super::entry::candidates(&scene);
    names.extend(written.iter().filter(is_text).map(|entry| (entry.start, entry.end)));
    Wish::of(asked, &names)
}

fn scene<'a>(tool: &Tool, parameters: &[Parameter], reading: &'a Reading<'a>) -> Scene<'a> {
    let description = tool.definition.description();
    let head = description.split("\n\n").find(|part| !part.trim().is_empty()).unwrap_or_default();
    let mut words: Vec<String> = super::parameter::words(tool.name().as_str());
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

/// Which share of the request's content words the tool's own words know: its name, its description and its parameters. Words
/// that are arguments say nothing of the tool.
fn known_words(choice: &Choice, profile: &Profile, asked: &Reading<'_>) -> f32 {
    let mut own: Vec<String> = super::coverage::words_of(choice);
    let described = choice.parameters.iter().flat_map(|parameter| {
        parameter.description.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2)
    });
    own.extend(described.map(labels::stem));
    let taken = |token: &Token<'_>| {
        asked.mentions.iter().any(|mention| mention.start < token.end && token.start < mention.end)
    };
    let named: Vec<String> =
        super::parameter::words(choice.tool.name().as_str()).iter().map(|word| labels::stem(word)).collect();
    let (mut all, mut known) = (0usize, 0.0);
    for token in &asked.tokens {
        if token.kind != Kind::Word || taken(token) || super::coverage::is_small(token) {
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
    let spots = super::lexicon::spots(asked.text, &asked.tokens, &taken);
    for spot in spots.iter().filter(|spot| super::name::has_han(&asked.text[spot.start..spot.end])) {
        all += 1;
        known += if profile.knows(&spot.meaning) { 1.0 } else { 0.0 };
    }
    if all == 0 { 0.5 } else { known / all as f32 }
}

/// Which share of what could be an argument is one.
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
