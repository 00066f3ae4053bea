//! Assembles a plan: decides which clauses are steps and which only add details, and reports what is missing.

use jiff::civil::Date;
use toolhub_core::RawJson;

use crate::assembly::coverage::{self, PlannedPart, Unused};
use crate::assembly::expand_list;
use crate::assembly::inherit;
use crate::assembly::problem;
use crate::assembly::unserved;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::lexer::split::{self, Clause};
use crate::plan::{ArgumentSource, Complexity, IncompleteCall, Plan, PlanStep, StepId, UnprovenStep};
use crate::safety::proof::Claim;
use crate::selection::candidates::Candidates;
use crate::selection::choice::Choice;
use crate::selection::choose::{Chooser, Schemas};
use crate::selection::clause_intent;
use crate::selection::implied_need;
use crate::selection::verb_class;
use crate::values::candidate::{ArgumentValue, ValueCandidate};
use crate::values::parameter::{Parameter, ValueType};
use crate::values::role::Role;

/// Score by which a proven tool may be below an unproven one and still be preferred.
const PROVEN_TOLERANCE: f32 = 1.0;

/// A step under construction.
struct StepDraft {
    choice: Choice,
    clause: Clause,
}

impl StepDraft {
    /// All calls of this step, each with the start of the text that contains its arguments.
    fn calls(&self, text: &str, today: Date) -> Vec<(usize, Choice)> {
        let parsed = ParsedText::of(&text[self.clause.start..self.clause.end], today);
        expand_list::expand(&self.choice, &parsed).into_iter().map(|call| (self.clause.start, call)).collect()
    }
}

/// Plans a text with normalised (half-width) characters.
pub(crate) fn assemble(text: &str, candidates: &Candidates, today: Date) -> Plan {
    let parsed = ParsedText::of(text, today);
    let about = clause_intent::intent(&parsed);
    let mut chooser = Chooser { candidates, schemas: Schemas::default(), about };
    let clauses = split::clauses(&parsed);
    if let Some((rest, parts)) = crate::selection::unsupported::split(text, &clauses, candidates) {
        let mut plan = assemble(text[rest.start..rest.end].trim(), candidates, today);
        if !plan.steps.is_empty() {
            plan.unserved.extend(parts);
            return plan;
        }
    }
    let mut drafts: Vec<StepDraft> = Vec::new();
    let mut unfinished: Vec<StepDraft> = Vec::new();
    if clauses.len() > 1 {
        let steps = ClauseSteps::of(text, &clauses, &mut chooser, today);
        (drafts, unfinished) = (steps.drafts, steps.unfinished);
    }
    if drafts.len() < 2 {
        let whole = Clause { start: 0, end: text.len() };
        if let Some(choice) = chooser.choose(&parsed, text, &[]) {
            // A read-only request in one clause is not replaced by an unproven change.
            let has_reads = drafts.iter().any(|draft| verb_class::is_read_only(&draft.choice));
            let unproven = !verb_class::is_read_only(&choice) && {
                let calls = expand_list::expand(&choice, &parsed);
                !Claim { parsed: &parsed, calls: &calls }.doubts().is_empty()
            };
            let better = (choice.is_whole()
                && !(has_reads && unproven)
                && !drafts.iter().any(|draft| covers_as_much(draft, &choice, &parsed)))
                || drafts.is_empty();
            if better {
                let own = vec![StepDraft { choice, clause: whole }];
                (drafts, unfinished) =
                    if own[0].choice.is_whole() { (own, Vec::new()) } else { (Vec::new(), own) };
            }
        }
    }
    prefer_proven(&mut drafts, &mut unfinished, text, today);
    let mut plan = Plan::default();
    for draft in &drafts {
        add(&mut plan, draft, text, today);
    }
    for draft in &unfinished {
        refuse(&mut plan, draft);
    }
    if plan.problems.is_empty() {
        let calls: Vec<(usize, Choice)> = drafts.iter().flat_map(|draft| draft.calls(text, today)).collect();
        let parts: Vec<PlannedPart<'_>> =
            calls.iter().map(|(start, choice)| PlannedPart { start: *start, choice }).collect();
        if !parts.is_empty() {
            let unused = coverage::unused(text, &parts, &parsed);
            let mut against = parts.iter().filter_map(|part| {
                unused.objection(part.choice.tool.name().as_str(), chooser.side_effect(part.choice))
            });
            match against.next() {
                Some(objection) => plan = Plan { problems: vec![objection], ..Plan::default() },
                None => {
                    plan.doubts.extend(unused.doubt());
                    plan.confidence = Some(confidence(&unused));
                }
            }
        }
    }
    if plan.steps.is_empty() && plan.problems.is_empty() {
        plan.problems.push(problem::no_tool(text.trim()));
    }
    if !plan.steps.is_empty() {
        plan.unserved = unserved::parts(text, &clauses, &served(&drafts, text, today));
        // Read-only steps that were all made from unserved parts do not serve the request.
        let instead =
            |step: &PlanStep| plan.unserved.iter().any(|part| part.contains(step.description.as_str()));
        if plan.changing.is_empty() && plan.steps.iter().all(instead) {
            return Plan { problems: vec![problem::no_tool(text.trim())], ..Plan::default() };
        }
    }
    plan
}

/// Whether the only clause that is a step has every value that the same tool would take from the whole request, so that the
/// rest of the request does not belong to its arguments.
fn covers_as_much(draft: &StepDraft, whole: &Choice, parsed: &ParsedText<'_>) -> bool {
    let clause = draft.clause;
    let value = |slot: &Option<ValueCandidate>| slot.as_ref().map(|slot| slot.value.clone());
    let slots = draft.choice.assignment.slots.iter().zip(&whole.assignment.slots);
    let differing: Vec<(&Parameter, bool)> = whole
        .parameters
        .iter()
        .zip(slots)
        .filter(|(_, (own, other))| value(own) != value(other))
        .map(|(parameter, (own, _))| (parameter, own.is_some()))
        .collect();
    // Only open-ended texts may be longer because of words of another part.
    let reaches = |(parameter, is_explicit): &(&Parameter, bool)| {
        let list = matches!(&parameter.shape, ValueType::List(item) if item.shape == ValueType::Text);
        parameter.role == Role::Query
            || *is_explicit && (list || matches!(parameter.role, Role::Text | Role::Name | Role::Other))
    };
    draft.choice.tool.name() == whole.tool.name()
        && draft.choice.is_whole()
        && !differing.is_empty()
        && differing.iter().all(reaches)
        && parsed.mentions.iter().all(|mention| {
            let is_explicit = matches!(
                mention.value,
                MentionValue::Literal(_) | MentionValue::Moment(_) | MentionValue::Number(_)
            );
            let inside = clause.start <= mention.start
                && mention.end <= clause.end
                && draft.choice.assignment.uses(mention.start - clause.start, mention.end - clause.start);
            !is_explicit || inside || !whole.assignment.uses(mention.start, mention.end)
        })
}

/// If the chosen tool changes something and is unproven or incomplete, replaces it by the only other tool that the words
/// prove.
fn prefer_proven(drafts: &mut Vec<StepDraft>, unfinished: &mut Vec<StepDraft>, text: &str, today: Date) {
    let proven = |draft: &StepDraft| -> Option<Choice> {
        let parsed = ParsedText::of(&text[draft.clause.start..draft.clause.end], today);
        let doubts = |choice: &Choice| {
            let calls = expand_list::expand(choice, &parsed);
            Claim { parsed: &parsed, calls: &calls }.doubts()
        };
        if verb_class::is_read_only(&draft.choice)
            || (draft.choice.is_whole() && doubts(&draft.choice).is_empty())
        {
            return None;
        }
        let is_close = |rival: &&Choice| {
            rival.is_whole()
                && !verb_class::is_read_only(rival)
                && rival.score + PROVEN_TOLERANCE >= draft.choice.score
        };
        let mut others = draft.choice.rivals.iter().filter(is_close).filter(|rival| doubts(rival).is_empty());
        let rival = others.next()?;
        others.next().is_none().then(|| rival.clone())
    };
    for draft in drafts.iter_mut() {
        if let Some(choice) = proven(draft) {
            draft.choice = choice;
        }
    }
    if drafts.is_empty()
        && let [draft] = unfinished.as_slice()
        && let Some(choice) = proven(draft)
    {
        drafts.push(StepDraft { choice, clause: draft.clause });
        unfinished.clear();
    }
}

/// The measured share of right plans, by the number of unused words.
fn confidence(unused: &Unused) -> f64 {
    match unused.lost_weight() {
        words if words < 0.75 => 0.9,
        words if words < 2.0 => 0.7,
        _ => 0.4,
    }
}

/// The calls of a plan, each with the start of its text.
fn served(drafts: &[StepDraft], text: &str, today: Date) -> Vec<(usize, Choice)> {
    drafts.iter().flat_map(|draft| draft.calls(text, today)).collect()
}

/// The steps of a request while its clauses are read in order.
struct ClauseSteps<'a> {
    text: &'a str,
    today: Date,
    /// The clauses that are complete steps.
    drafts: Vec<StepDraft>,
    /// Those with missing arguments.
    unfinished: Vec<StepDraft>,
    /// Start of the words that no step has used yet.
    open: Option<usize>,
}

/// A clause that is read, alone and with the unused words before it.
struct ReadClause<'a> {
    clause: Clause,
    own: &'a str,
    /// The clause alone, analysed without the date of the request.
    bare: ParsedText<'a>,
    /// From the words that no step has used to the end of the clause.
    scope: Clause,
    parsed: ParsedText<'a>,
}

impl ReadClause<'_> {
    /// Whether the clause can be a step: it has a verb or asks for something. `last` is the step before it.
    fn can_be_step(&self, last: Option<&StepDraft>) -> bool {
        let intent = clause_intent::intent(&self.bare);
        // `… and the last 3 commits`: without a verb of its own, the clause continues the read-only clause before it.
        let continues = last.is_some_and(|last| {
            verb_class::is_read_only(&last.choice)
                && self.own.trim_start().starts_with(|c: char| c.is_alphabetic())
        });
        // 都有哪些工作表？: a question about a thing may have no other verb.
        let questions = ["哪些", "什么", "多少", "哪几", "几"].iter().any(|word| self.own.contains(word));
        intent.has_verb()
            || !implied_need::needs(&self.bare).is_empty()
            || (continues || questions) && intent.has_own_object()
    }
}

impl<'a> ClauseSteps<'a> {
    /// Reads the clauses of a request.
    fn of(text: &'a str, clauses: &[Clause], chooser: &mut Chooser<'_>, today: Date) -> Self {
        let mut steps = Self { text, today, drafts: Vec::new(), unfinished: Vec::new(), open: None };
        for clause in clauses {
            steps.add(*clause, chooser);
        }
        steps.add_rest(clauses, chooser);
        steps
    }

    fn read(&self, clause: Clause) -> ReadClause<'a> {
        let text = self.text;
        let own = &text[clause.start..clause.end];
        let scope = Clause { start: self.open.unwrap_or(clause.start), end: clause.end };
        let parsed = ParsedText::of(&text[scope.start..scope.end], self.today);
        ReadClause { clause, own, bare: ParsedText::of(own, Date::ZERO), scope, parsed }
    }

    /// Adds a clause: as a step, to the step before it, or to the words that a later step may use.
    fn add(&mut self, clause: Clause, chooser: &mut Chooser<'_>) {
        let read = self.read(clause);
        let earlier: Vec<Choice> = self.drafts.iter().map(|draft| draft.choice.clone()).collect();
        let earlier: Vec<&Choice> = earlier.iter().collect();
        if self.completes_unfinished(&read, &earlier, chooser) {
            return;
        }
        let can_be_step = read.can_be_step(self.drafts.last());
        let Some(choice) = chooser.choose(&read.parsed, read.own, &earlier).filter(|_| can_be_step) else {
            self.open = Some(read.scope.start);
            return;
        };
        if let Some(last) = self.drafts.last_mut().filter(|last| adds(&choice, &last.choice)) {
            join(&mut last.choice, choice);
            return;
        }
        // 不要了，删掉吧: an action that is stated twice is done once.
        if self.drafts.last().is_some_and(|last| repeats(&choice, &last.choice)) {
            return;
        }
        let is_whole = choice.is_whole();
        let draft = StepDraft { choice, clause: read.scope };
        if is_whole {
            self.drafts.push(draft);
            self.unfinished.clear();
            self.open = None;
        } else {
            self.unfinished.push(draft);
            self.open = Some(read.scope.start);
        }
    }

    /// Whether a clause contains the missing arguments of the unfinished step, which is then complete.
    fn completes_unfinished(
        &mut self,
        read: &ReadClause<'_>,
        earlier: &[&Choice],
        chooser: &mut Chooser<'_>,
    ) -> bool {
        let Some(begun) = self.unfinished.last() else { return false };
        let mut refill = chooser.refill(&begun.choice, &read.parsed);
        inherit::inherit(&mut refill, &self.text[read.scope.start..read.scope.end], earlier);
        if !refill.is_whole() {
            return false;
        }
        // `the status and the diff of X`: the clause may also be a step of its own.
        let other = chooser.choose(&read.bare, read.own, earlier).filter(|other| {
            begins_with_article(read.own) && continues_reading(&refill, other) && repeats_path(&refill, other)
        });
        self.drafts.push(StepDraft { choice: refill, clause: read.scope });
        self.drafts.extend(other.map(|choice| StepDraft { choice, clause: read.clause }));
        self.unfinished.clear();
        self.open = None;
        true
    }

    /// Adds the text after the last step to it, if that gives it more details.
    fn add_rest(&mut self, clauses: &[Clause], chooser: &mut Chooser<'_>) {
        if let (Some(from), Some(last)) = (self.open, self.drafts.last_mut())
            && self.unfinished.is_empty()
            && let Some(end) = clauses.last().map(|clause| clause.end).filter(|end| *end > from)
        {
            let scope = Clause { start: last.clause.start, end };
            let parsed = ParsedText::of(&self.text[scope.start..scope.end], self.today);
            let refill = chooser.refill(&last.choice, &parsed);
            let filled = |choice: &Choice| choice.assignment.slots.iter().flatten().count();
            if refill.is_whole() && filled(&refill) > filled(&last.choice) {
                *last = StepDraft { choice: refill, clause: scope };
            }
        }
    }
}

/// `… and the diff of X`: whether a clause begins with a new noun phrase.
fn begins_with_article(clause: &str) -> bool {
    let lower = clause.trim_start().to_lowercase();
    ["the ", "its ", "their "].iter().any(|word| lower.starts_with(word))
}

/// Whether both tools are read-only, and the second has all its arguments.
fn continues_reading(first: &Choice, second: &Choice) -> bool {
    verb_class::is_read_only(first)
        && verb_class::is_read_only(second)
        && second.is_whole()
        && !second.is_empty()
}

/// Whether the second choice is another tool with the same path.
fn repeats_path(first: &Choice, second: &Choice) -> bool {
    let path = |choice: &Choice| {
        let mut slots = choice.parameters.iter().zip(&choice.assignment.slots);
        slots
            .find(|(parameter, _)| parameter.role == Role::Path)
            .and_then(|(_, slot)| slot.clone())
            .map(|slot| slot.value)
    };
    first.tool.name() != second.tool.name() && path(first).is_some() && path(first) == path(second)
}

/// Whether a clause adds details to the step before it: the same tool, and only arguments that the step lacks.
fn adds(choice: &Choice, before: &Choice) -> bool {
    let own = choice.assignment.slots.iter().zip(&before.assignment.slots).filter(|(slot, _)| {
        slot.as_ref().is_some_and(|slot| slot.end > slot.start || slot.score > 0.0 && slot.start > 0)
    });
    let mut some = false;
    let fresh = own.into_iter().all(|(_, before)| {
        some = true;
        before.is_none()
    });
    choice.tool.name() == before.tool.name() && fresh && some
}

/// Whether a clause has no values of its own and repeats the step before it.
fn repeats(choice: &Choice, before: &Choice) -> bool {
    let own = choice.assignment.slots.iter().flatten().any(|slot| slot.end > slot.start);
    choice.tool.name() == before.tool.name() && !own && !choice.parameters.is_empty()
}

fn join(before: &mut Choice, choice: Choice) {
    for (old, new) in before.assignment.slots.iter_mut().zip(choice.assignment.slots) {
        if old.is_none() {
            // The value belongs to another clause: it has no range in this one.
            *old = new.map(|new| ValueCandidate { start: 0, end: 0, ..new });
        }
    }
}

fn add(plan: &mut Plan, draft: &StepDraft, text: &str, today: Date) {
    let clause_text = &text[draft.clause.start..draft.clause.end];
    let before = plan.steps.last().map(|step| step.id.clone());
    let calls: Vec<Choice> = draft.calls(text, today).into_iter().map(|(_, call)| call).collect();
    // A series is planned as a whole or not at all.
    if calls.len() > expand_list::MAX_SERIES_CALLS {
        plan.problems.push(problem::too_many(
            draft.choice.tool.name().as_str(),
            calls.len(),
            expand_list::MAX_SERIES_CALLS,
        ));
        return;
    }
    let parsed = ParsedText::of(clause_text, today);
    let is_read_only = verb_class::is_read_only(&draft.choice);
    let doubts = match is_read_only {
        true => Vec::new(),
        false => Claim { parsed: &parsed, calls: &calls }.doubts(),
    };
    for call in calls {
        let id = StepId::new(format!("step{}", plan.steps.len() + 1));
        if !is_read_only {
            plan.changing.push(id.clone());
        }
        if !doubts.is_empty() {
            let reasons = doubts.iter().map(|doubt| doubt.text(call.tool.name().as_str())).collect();
            plan.unproven.push(UnprovenStep { step: id.clone(), reasons });
        }
        let mut dependencies = Vec::new();
        let mut arguments = Vec::new();
        for (parameter, slot) in call.parameters.iter().zip(&call.assignment.slots) {
            let Some(slot) = slot else { continue };
            let value = match (&slot.value, &before) {
                (ArgumentValue::FromRequest(value), _) => ArgumentSource::Value(RawJson::from(value.clone())),
                (ArgumentValue::Result, Some(before)) => {
                    dependencies.push(before.clone());
                    ArgumentSource::ResultOf(before.clone())
                }
                (ArgumentValue::Result, None) => continue,
            };
            arguments.push((parameter.name.clone(), value));
        }
        plan.steps.push(PlanStep {
            id,
            description: clause_text.trim().to_owned(),
            tool: Some(call.tool.name().clone()),
            source: None,
            capability: call.tool.tags.first().cloned(),
            arguments,
            dependencies,
            complexity: Complexity::Simple,
        });
    }
}

fn refuse(plan: &mut Plan, draft: &StepDraft) {
    let choice = &draft.choice;
    let name = choice.tool.name();
    let mut missing = Vec::new();
    for index in choice.assignment.missing(&choice.parameters) {
        let parameter = &choice.parameters[index];
        missing.push(parameter.name.clone());
        plan.problems.push(problem::missing(name.as_str(), parameter));
    }
    let known = choice.parameters.iter().zip(&choice.assignment.slots).filter_map(|(parameter, slot)| {
        match &slot.as_ref()?.value {
            ArgumentValue::FromRequest(value) => {
                Some((parameter.name.clone(), ArgumentSource::Value(RawJson::from(value.clone()))))
            }
            ArgumentValue::Result => None,
        }
    });
    plan.unfinished.push(IncompleteCall { tool: name.clone(), arguments: known.collect(), missing });
}
