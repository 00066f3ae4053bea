//! Fills arguments of a step from earlier steps: their file, the other arguments of the same tool, their results.

use crate::lexer::back_reference::{points_back, refers_to_object, refers_to_result};
use crate::selection::choice::Choice;
use crate::values::candidate::{ArgumentValue, ValueCandidate};
use crate::values::parameter::{Parameter, ValueType};
use crate::values::role::Role;

/// Fills the missing arguments of `choice` with values of earlier steps.
pub(crate) fn inherit(choice: &mut Choice, text: &str, earlier: &[&Choice]) {
    if earlier.is_empty() {
        return;
    }
    let own = choice.assignment.slots.iter().flatten().count();
    let parameters = std::rc::Rc::clone(&choice.parameters);
    // 抓取 … 的内容，存到 a.txt: a verb of saving without an object refers to the result of the step before.
    let saves = [
        "存到",
        "保存到",
        "存成",
        "存进",
        "保存为",
        "save to ",
        "save it to ",
        "save it as ",
        "store it in ",
    ];
    let read = earlier.last().is_some_and(|last| crate::selection::verb_class::is_read_only(last));
    let saved = read && saves.iter().any(|verb| text.trim_start().to_lowercase().starts_with(verb));
    if refers_to_result(text) || saved {
        take_result(choice, &parameters);
    }
    inherit_item_id(choice, text, earlier);
    let missing: Vec<usize> = choice.assignment.missing(&parameters).collect();
    let own_words = crate::values::parameter::name_words(choice.tool.name().as_str());
    let makes_sheet = own_words.iter().any(|word| word == "create" || word == "add")
        && own_words.iter().any(|word| word == "worksheet" || word == "sheet");
    for index in missing {
        let target = &parameters[index];
        // A new sheet has a name of its own.
        if makes_sheet && target.role == Role::Sheet {
            continue;
        }
        let same_tool = |other: &&&Choice| other.tool.name() == choice.tool.name() && own > 0;
        let by_name = earlier.iter().rev().filter(same_tool).find_map(|other| {
            let at = other.parameters.iter().position(|parameter| parameter.name == target.name)?;
            other.assignment.slots.get(at)?.clone()
        });
        // `switch to it`: a branch is inherited only if the text refers to it.
        let pointed = target.role != Role::Revision || points_back(text);
        let found = by_role(target, earlier).filter(|_| pointed).or(by_name).or_else(|| {
            let own_cells = choice
                .assignment
                .others
                .iter()
                .flatten()
                .any(|other| other.end > other.start && is_cell(other));
            let deletes = crate::values::parameter::name_words(choice.tool.name().as_str())
                .iter()
                .any(|word| word == "delete");
            (own > 0 && !deletes && !own_cells).then(|| same_cell(target, earlier)).flatten()
        });
        if let Some(found) = found {
            // The value is from another clause: it has no range in this one.
            choice.assignment.slots[index] = Some(ValueCandidate { start: 0, end: 0, ..found });
        }
    }
    // `give A1:H1 … and make it bold`: a range that is inherited has both corners.
    inherit_end(choice, &parameters, earlier);
    // 算 12*12 然后写到 A1: if only the content is missing, it is the result of the calculation before.
    let worked_out = earlier.last().is_some_and(|last| {
        last.parameters.iter().any(|parameter| parameter.role == Role::Expression && parameter.required)
    });
    let lacks: Vec<usize> = choice.assignment.missing(&parameters).collect();
    let only_data = matches!(lacks.as_slice(), [index] if matches!(parameters[*index].shape, ValueType::List(_) | ValueType::Any));
    if refers_to_object(text) || (worked_out && only_data && own > 0) {
        take_result(choice, &parameters);
    }
}

/// `find the mails about X and open the first one`: an id that, by its description, the earlier tool returns. For read-only
/// tools only, because the id is not known while planning.
fn inherit_item_id(choice: &mut Choice, text: &str, earlier: &[&Choice]) {
    const FIRST_ITEM_PHRASES: [&str; 16] = [
        "the first one",
        "the first",
        "the newest",
        "the latest",
        "the top one",
        "the most recent",
        "the last one",
        "that one",
        " it",
        "第一封",
        "第一个",
        "第一条",
        "最新的",
        "最新那",
        "那一封",
        "那封",
    ];
    let lower = text.to_lowercase();
    if !crate::selection::verb_class::is_read_only(choice)
        || !FIRST_ITEM_PHRASES.iter().any(|word| lower.contains(word))
    {
        return;
    }
    let parameters = std::rc::Rc::clone(&choice.parameters);
    let missing: Vec<usize> = choice.assignment.missing(&parameters).collect();
    for index in missing.into_iter().filter(|index| parameters[*index].role == Role::Id) {
        let gives = |other: &&&Choice| parameters[index].description.contains(other.tool.name().as_str());
        if earlier.last().filter(gives).is_some() {
            choice.assignment.slots[index] =
                Some(ValueCandidate { value: ArgumentValue::Result, start: 0, end: 0, score: 2.0 });
        }
    }
}

fn is_cell(candidate: &ValueCandidate) -> bool {
    matches!(&candidate.value, ArgumentValue::FromRequest(value) if value.as_str().is_some_and(|text| crate::lexer::literal::cells(text).is_some()))
}

/// `merge A1:C1 and make it bold`: without cells in the text, those of the last step are used.
fn same_cell(target: &Parameter, earlier: &[&Choice]) -> Option<ValueCandidate> {
    if target.role != Role::Cell || target.has_word(&["target", "destination", "end"]) {
        return None;
    }
    let last = earlier.last()?;
    let fits = |parameter: &Parameter| {
        parameter.role == Role::Cell && !parameter.has_word(&["target", "end", "source"])
    };
    let (_, slot) = last
        .parameters
        .iter()
        .zip(&last.assignment.slots)
        .find(|(parameter, slot)| fits(parameter) && slot.is_some())?;
    slot.clone()
}

/// Fills the optional last corner of a range whose first corner was inherited from the last step.
fn inherit_end(choice: &mut Choice, parameters: &[Parameter], earlier: &[&Choice]) {
    let Some(last) = earlier.last() else { return };
    let slot_of = |of: &Choice, words: &[&str]| -> Option<(usize, ValueCandidate)> {
        let mut slots = of.parameters.iter().zip(&of.assignment.slots).enumerate();
        slots.find_map(|(index, (parameter, slot))| {
            (parameter.role == Role::Cell && parameter.has_word(words))
                .then(|| slot.clone().map(|slot| (index, slot)))?
        })
    };
    let own_start = slot_of(choice, &["start", "first"]);
    let same = own_start
        .zip(slot_of(last, &["start", "first"]))
        .is_some_and(|((_, own), (_, other))| own.end <= own.start && own.value == other.value);
    let Some((_, end)) = slot_of(last, &["end", "last"]).filter(|_| same) else { return };
    let index = parameters
        .iter()
        .position(|parameter| parameter.role == Role::Cell && parameter.has_word(&["end", "last"]));
    if let Some(index) = index.filter(|index| choice.assignment.slots[*index].is_none()) {
        choice.assignment.slots[index] = Some(ValueCandidate { start: 0, end: 0, ..end });
    }
}

/// Values that are inherited from step to step by their role.
fn by_role(target: &Parameter, earlier: &[&Choice]) -> Option<ValueCandidate> {
    if !matches!(target.role, Role::Path | Role::Sheet | Role::Url | Role::Place | Role::Id | Role::Revision)
        || target.has_word(&["target", "destination", "new", "output", "to"])
    {
        return None;
    }
    let sheet = |parameter: &Parameter| {
        target.role == Role::Sheet
            && parameter.has_word(&["new", "target"])
            && parameter.has_word(&["name", "sheet"])
    };
    earlier.iter().rev().find_map(|other| {
        let slot = |fits: &dyn Fn(&Parameter) -> bool| {
            other
                .parameters
                .iter()
                .zip(&other.assignment.slots)
                .find(|(parameter, slot)| fits(parameter) && slot.is_some())
        };
        // A sheet that was renamed or created is referred to by its new name.
        let found = slot(&sheet).or_else(|| {
            slot(&|parameter| {
                parameter.role == target.role && (target.role != Role::Id || parameter.name == target.name)
            })
        });
        found.and_then(|(_, slot)| slot.clone())
    })
}

/// Assigns the result of the step before to the first missing parameter that can hold it.
fn take_result(choice: &mut Choice, parameters: &[Parameter]) {
    let holds = |parameter: &Parameter| {
        // A result is not a path, URL, mail address or id.
        let address = matches!(parameter.role, Role::Path | Role::Folder | Role::Url | Role::Mail | Role::Id);
        if address {
            return false;
        }
        let text = matches!(parameter.role, Role::Text | Role::Other | Role::Query | Role::Name)
            && parameter.shape == ValueType::Text;
        text || matches!(
            parameter.shape,
            ValueType::Integer | ValueType::Number | ValueType::Any | ValueType::List(_)
        )
    };
    let missing: Vec<usize> = choice.assignment.missing(parameters).collect();
    if let Some(index) = missing.into_iter().find(|index| holds(&parameters[*index])) {
        choice.assignment.slots[index] =
            Some(ValueCandidate { value: ArgumentValue::Result, start: 0, end: 0, score: 2.0 });
    }
}
