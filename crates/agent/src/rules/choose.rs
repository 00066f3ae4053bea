//! Which of the tools that were found is the one: how well it was found, and how well the text fills it.

use std::collections::HashMap;
use std::rc::Rc;

use toolhub_core::Tool;
use toolhub_core::finder::{Found, Search};

use super::candidate::Scene;
use super::candidates::Candidates;
use super::fill::{Filling, fill};
use super::labels;
use super::mention::{Reading, Value};
use super::parameter::{Parameter, parameters};
use super::phrase::is_stop;
use super::probe;

/// Tools whose score is a smaller share of the best one's are not looked at.
const NEAR: f64 = 0.5;
/// At most this many are.
const MOST: usize = 8;
/// What speaks for a tool beside how well it was found, whose best is worth 1.
const WHOLE: f32 = 0.45;
const CERTAIN: f32 = 0.3;
const USED: f32 = 0.35;
/// How well a tool counts as found that the contents of a text suggest.
const SUGGESTED: f32 = 0.8;

/// A tool with its arguments.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) tool: Tool,
    pub(super) parameters: Rc<Vec<Parameter>>,
    pub(super) filling: Filling,
    pub(super) score: f32,
}

impl Choice {
    pub(super) fn is_whole(&self) -> bool {
        self.filling.missing(&self.parameters).next().is_none()
    }
}

/// Reads each tool's schema once.
#[derive(Default)]
pub(super) struct Schemas(HashMap<String, Rc<Vec<Parameter>>>);

impl Schemas {
    fn of(&mut self, tool: &Tool) -> Rc<Vec<Parameter>> {
        let key = format!("{}\n{}", tool.source, tool.name());
        let read =
            || Rc::new(parameters(&tool.definition.input_schema().value(), tool.definition.description()));
        Rc::clone(self.0.entry(key).or_insert_with(read))
    }
}

/// What tools are chosen from, and for what.
pub(super) struct Chooser<'a> {
    pub(super) candidates: &'a Candidates,
    pub(super) schemas: Schemas,
}

impl Chooser<'_> {
    /// The tool for a text, with what the text says of its arguments. `part` is what was searched for, a part of the text.
    pub(super) fn choose(&mut self, reading: &Reading<'_>, part: &str) -> Option<Choice> {
        let search = self.candidates.of(part.trim());
        let mut looked: Vec<(&Found, f32)> = search.map(near).unwrap_or_default();
        let by_words = looked.len();
        for need in probe::needs(reading) {
            let found = self.candidates.of(probe::query(need)).map(near).unwrap_or_default();
            for (hit, _) in found {
                let known = looked.iter().any(|(other, _)| other.tool.name() == hit.tool.name());
                if !known && need.is_met(&self.schemas.of(&hit.tool)) {
                    looked.push((hit, if by_words == 0 { 1.0 } else { SUGGESTED }));
                }
            }
        }
        let mut best: Option<Choice> = None;
        for (hit, rank) in looked {
            let choice = self.consider(hit, rank, reading);
            if best.as_ref().is_none_or(|best| choice.score > best.score) {
                best = Some(choice);
            }
        }
        best
    }

    fn consider(&mut self, hit: &Found, rank: f32, reading: &Reading<'_>) -> Choice {
        let parameters = self.schemas.of(&hit.tool);
        let filling = fill(&parameters, &scene(&hit.tool, &parameters, reading));
        let whole = filling.missing(&parameters).next().is_none();
        let mut score = rank + CERTAIN * filling.certainty(&parameters) + USED * used(&filling, reading);
        if whole {
            score += WHOLE;
        }
        Choice { tool: hit.tool.clone(), parameters, filling, score }
    }

    /// The same tool, filled from another text.
    pub(super) fn again(&mut self, choice: &Choice, reading: &Reading<'_>) -> Choice {
        let filling = fill(&choice.parameters, &scene(&choice.tool, &choice.parameters, reading));
        Choice { filling, ..choice.clone() }
    }
}

/// The hits that are worth a look, with how well each was found beside the best.
fn near(search: &Search) -> Vec<(&Found, f32)> {
    let best = search.hits.first().map_or(0.0, |hit| hit.score);
    let near = search.fitting().iter().take(MOST).filter(|hit| best > 0.0 && hit.score >= best * NEAR);
    near.map(|hit| (hit, (hit.score / best) as f32)).collect()
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
    let tool_words = words.iter().map(|word| labels::stem(word)).collect();
    Scene { reading, stems: labels::stems(reading), tool_words }
}

/// Which share of what could be an argument is one.
fn used(filling: &Filling, reading: &Reading<'_>) -> f32 {
    let weight = |value: &Value| match value {
        Value::Literal(_) => 2.0,
        Value::Number(number) if number.weak => 0.2,
        Value::Number(_) | Value::When(_) | Value::Place => 1.0,
        Value::Name => 0.8,
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
