//! Blocks a planned change although every word was used: the request is not an order, a number is only part of the text, or the
//! change affects another object than the named one.

use serde_json::Value;
use toolhub_core::lang::LocalizedText;

use crate::lexer::labels;
use crate::plan::{ArgumentSource, Plan, PlanStep, UnprovenStep};
use crate::safety::bare_change;
use crate::safety::mood::{self, Mood};
use crate::safety::number_mismatch::{self, NumberMismatch};
use crate::safety::reported_order;
use crate::safety::request_check::own_words;
use crate::values::parameter::name_words;

/// Words in the names of parameters for a new value or a destination.
const TARGETS: [&str; 7] = ["new", "target", "dest", "destination", "to", "into", "output"];
/// Words between an old and a new value.
const BECOMES: [&str; 18] = [
    "to",
    "into",
    "as",
    "->",
    "=>",
    "→",
    "to be",
    "改名为",
    "改名成",
    "改名叫",
    "重命名为",
    "重命名成",
    "更名为",
    "改成",
    "改为",
    "变成",
    "移到",
    "移动到",
];
/// Verbs of tools that delete or cancel something.
const DELETING_VERBS: [&str; 12] = [
    "delete", "remove", "cancel", "drop", "clear", "revoke", "erase", "purge", "destroy", "wipe", "discard",
    "trash",
];
/// Words before `of` that are not an object.
const NO_HEADS: [&str; 8] = ["rid", "all", "both", "each", "any", "out", "most", "because"];
/// Parts of a thing, with words of the tools that handle them.
const PARTS: [(&str, &[&str]); 12] = [
    ("内容", &["content", "contents", "data", "range", "cells", "text", "observations"]),
    ("数据", &["data", "range", "cells", "records"]),
    ("文件", &["file", "files", "directory", "path"]),
    ("名字", &["name"]),
    ("名称", &["name"]),
    ("格式", &["format", "style"]),
    ("样式", &["style", "format"]),
    ("颜色", &["color", "colour", "format"]),
    ("值", &["value", "data", "range"]),
    ("文字", &["text", "data", "range"]),
    ("备注", &["note", "notes", "comment"]),
    ("附件", &["attachment", "attachments"]),
];

/// Marks every change that must not be run for this request, and assigns source and destination to their parameters.
/// `rewritten` is the request as it was planned.
pub(crate) fn mark_unordered_changes(request: &str, rewritten: &str, plan: &mut Plan) {
    let lower = request.to_lowercase();
    let own = own_words(&lower);
    let plain = own_words(&rewritten.to_lowercase());
    let changing = plan.changing.clone();
    for step in plan.steps.iter_mut().filter(|step| changing.contains(&step.id)) {
        assign_source_and_destination(&lower, step);
    }
    let numbers: Vec<f64> = plan
        .steps
        .iter()
        .filter(|step| changing.contains(&step.id))
        .flat_map(|step| step.arguments.iter().filter_map(|(_, slot)| number(slot)))
        .collect();
    let mood = mood::first(&own);
    let steps: Vec<&PlanStep> = plan.steps.iter().filter(|step| changing.contains(&step.id)).collect();
    let reporting_phrase = if steps.is_empty() { None } else { reported_order::find(request, &steps) };
    for step in plan.steps.iter().filter(|step| changing.contains(&step.id)) {
        let mut reasons: Vec<LocalizedText> = mood.map(no_order).into_iter().collect();
        reasons.extend(reporting_phrase.as_deref().map(reported));
        reasons.extend(unordered(&own, &plain, step));
        reasons.extend(retracted(&own));
        reasons.extend(other_object(&own, step));
        reasons.extend(ambiguous_direction(&lower, step));
        for (name, slot) in &step.arguments {
            let mismatch =
                number(slot).and_then(|value| number_mismatch::mismatch(&own, name, value, &numbers));
            let mismatch = mismatch.or_else(|| number_mismatch::bound_of_text(&own, name, &text(slot)?));
            reasons.extend(mismatch.map(|number_mismatch| not_whole(name, number_mismatch)));
        }
        if reasons.is_empty() {
            continue;
        }
        match plan.unproven.iter_mut().find(|unproven| unproven.step == step.id) {
            Some(unproven) => unproven.reasons.extend(reasons),
            None => plan.unproven.push(UnprovenStep { step: step.id.clone(), reasons }),
        }
    }
}

/// `He said: delete the file X`: the reason not to run an order that may only be reported.
fn reported(head: &str) -> LocalizedText {
    LocalizedText::new(
        format!(
            "nothing was run: `{head}` may mean that the order is only reported, labelled or rejected; write only the order"
        ),
        format!("没有执行：“{head}”可能表示后面只是转述、标题或已被拒绝的内容；请只写要做的事"),
    )
}

/// Phrases that take the order beside them back.
const RETRACTIONS: [&str; 26] = [
    "再想想",
    "再考虑",
    "我自己来",
    "我自己删",
    "我自己处理",
    "我自己改",
    "，算了",
    "开玩笑",
    "逗你",
    "先等等",
    "再说吧",
    "kidding",
    "a joke",
    "never mind",
    "nevermind",
    "let me think",
    "think about it",
    "do it myself",
    "do that myself",
    "handle it myself",
    "on second thought",
    "scratch that",
    "changed my mind",
    "i'll handle it",
    "not sure about",
    "等我消息",
];

/// `delete email 5, just kidding`, 取消日程 ev-3，我再想想: the reason not to run an order that is taken back.
fn retracted(own: &str) -> Option<LocalizedText> {
    let phrase = RETRACTIONS.iter().find(|phrase| own.contains(**phrase))?;
    Some(LocalizedText::new(
        format!("`{phrase}` takes the order back: say only what is to be done"),
        format!("“{phrase}”表示收回了这个请求：请只说要做的事"),
    ))
}

fn value(slot: &ArgumentSource) -> Option<Value> {
    match slot {
        ArgumentSource::Value(raw) => Some(raw.value()),
        _ => None,
    }
}

fn number(slot: &ArgumentSource) -> Option<f64> {
    value(slot)?.as_f64()
}

/// The text of an argument.
fn text(slot: &ArgumentSource) -> Option<String> {
    value(slot)?.as_str().map(str::to_owned)
}

/// `delete this`: the reason not to run a tool without values that the request does not order by its verb and object.
fn unordered(own: &str, plain: &str, step: &PlanStep) -> Option<LocalizedText> {
    let tool = step.tool.as_ref()?.as_str();
    let example = name_words(tool).join(" ");
    let is_open = bare_change::is_bare(step) && !bare_change::is_ordered(own, plain, tool);
    is_open.then(|| {
        LocalizedText::new(
            format!(
                "nothing was run: `{tool}` takes no values from the request, so write it as an instruction that names its object, such as `{example}`"
            ),
            format!("没有执行：`{tool}` 不从请求中取值，请用动词写成指令，并写出对象，例如 `{example}`"),
        )
    })
}

/// `rename A to B`: the value after the preposition is the new one, regardless of the parameter names.
fn assign_source_and_destination(lower: &str, step: &mut PlanStep) {
    let texts: Vec<(usize, String)> = step
        .arguments
        .iter()
        .enumerate()
        .filter_map(|(at, (_, slot))| Some((at, value(slot)?.as_str()?.to_lowercase())))
        .collect();
    let is_target =
        |at: usize| name_words(&step.arguments[at].0).iter().any(|word| TARGETS.contains(&word.as_str()));
    for (one, from) in texts.iter().filter(|(at, _)| is_target(*at)) {
        for (other, to) in texts.iter().filter(|(at, _)| !is_target(*at)) {
            let (Some(first), Some(second)) = (lower.find(from.as_str()), lower.find(to.as_str())) else {
                continue;
            };
            let between = lower.get(first + from.len()..second).unwrap_or_default();
            let between = between.trim_matches(|c: char| c.is_whitespace() || "\"'`“”‘’「」".contains(c));
            let passive = ["should be renamed ", "is to be renamed ", "must be renamed ", "be renamed "];
            let between = passive.iter().find_map(|lead| between.strip_prefix(lead)).unwrap_or(between);
            if !from.is_empty() && BECOMES.contains(&between) {
                let (one, other) = (*one, *other);
                let swapped = step.arguments[one].1.clone();
                step.arguments[one].1 = step.arguments[other].1.clone();
                step.arguments[other].1 = swapped;
                return;
            }
        }
    }
}

/// `rename A, B`: no word gives the direction.
fn ambiguous_direction(lower: &str, step: &PlanStep) -> Option<LocalizedText> {
    let name = name_words(step.tool.as_ref()?.as_str());
    if !name.iter().any(|word| ["rename", "move", "copy"].contains(&word.as_str())) {
        return None;
    }
    let texts: Vec<String> = step
        .arguments
        .iter()
        .filter_map(|(_, slot)| Some(value(slot)?.as_str()?.to_lowercase()))
        .filter(|text| !text.is_empty())
        .collect();
    // 然后把 B 移到这里: the object after 把 is moved and is not the destination.
    let led = step.arguments.iter().any(|(name, slot)| {
        let target = name_words(name).iter().any(|word| TARGETS.contains(&word.as_str()));
        let text = value(slot).and_then(|value| Some(value.as_str()?.to_lowercase())).unwrap_or_default();
        let before = lower.find(text.as_str()).map_or("", |at| lower[..at].trim_end());
        let before = before.trim_end_matches(['"', '\'', '“', '「']);
        target
            && !text.is_empty()
            && ["把", "将", " move", " rename", " copy"].iter().any(|word| before.ends_with(word))
            && lower.matches(text.as_str()).count() == 1
    });
    if led {
        return Some(unclear());
    }
    let [one, other] = texts.as_slice() else { return None };
    let (one_at, other_at) = (lower.find(one.as_str())?, lower.find(other.as_str())?);
    let between =
        lower.get(one_at + one.len()..other_at).or_else(|| lower.get(other_at + other.len()..one_at))?;
    let between = between.trim_matches(|c: char| c.is_whitespace() || "\"'`“”‘’「」,，、;".contains(c));
    ["", "and", "和", "与"].contains(&between).then(unclear)
}

fn unclear() -> LocalizedText {
    LocalizedText::new(
        "the request does not state which of the two becomes the other: write it as `A to B`",
        "请求没有说明哪一个变成哪一个：请写成“把 A 改成 B”",
    )
}

/// `delete the file of user X`: the object is the file, not the user. `write a mail`: the mail is not to be sent yet.
fn other_object(own: &str, step: &PlanStep) -> Option<LocalizedText> {
    let name = name_words(step.tool.as_ref()?.as_str());
    let is_deleting_verb = |word: &&String| DELETING_VERBS.contains(&word.as_str());
    let object_stems: Vec<String> =
        name.iter().filter(|word| !is_deleting_verb(word)).map(|word| labels::stem(word)).collect();
    let own_words: Vec<&str> =
        own.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_object = |word: &str| {
        let stem = labels::stem(word);
        object_stems.iter().any(|own| *own == stem || own.ends_with(&stem) && stem.len() > 3)
    };
    if name.iter().any(|word| DELETING_VERBS.contains(&word.as_str())) {
        for at in (1..own_words.len()).filter(|at| own_words[*at] == "of") {
            let after = own_words[at + 1..]
                .iter()
                .find(|word| !["the", "a", "an", "my", "our", "this"].contains(word));
            let head = own_words[at - 1];
            // `column F of sheet Plan`: the word before `of` belongs to the tool's own object.
            let own_object = own_words[at.saturating_sub(5)..at].iter().any(|word| is_object(word));
            if after.is_some_and(|word| is_object(word)) && !own_object && !NO_HEADS.contains(&head) {
                return Some(reason_for_other_object(head));
            }
        }
        let is_whole_word = |rest: &str| {
            rest.chars().next().is_none_or(|c| !c.is_alphanumeric() || "了吧都全删清掉给也呢".contains(c))
        };
        let part = PARTS.iter().find(|(part, tools)| {
            let phrase = format!("的{part}");
            !name.iter().any(|word| tools.contains(&word.as_str()))
                && own.match_indices(&phrase).any(|(at, found)| is_whole_word(&own[at + found.len()..]))
        });
        if let Some((part, _)) = part {
            return Some(reason_for_other_object(part));
        }
    }
    let sends = name.iter().any(|word| word == "send");
    let drafts = own_words.windows(3).any(|run| {
        ["write", "draft", "compose"].contains(&run[0])
            && run[1..].iter().any(|word| ["mail", "email"].contains(word))
    });
    let drafts_han = own.contains('写')
        && ["邮件", "封信", "写信"].iter().any(|word| own.contains(word))
        && !own.contains(['发', '寄', '回']);
    (sends && (drafts && !own_words.contains(&"send") || drafts_han)).then(|| {
        LocalizedText::new(
            "the request is to write a message, not to send it: add `send` to send it",
            "请求是写邮件，没有要求发送：若要发送，请写明“发送”",
        )
    })
}

fn reason_for_other_object(head: &str) -> LocalizedText {
    LocalizedText::new(
        format!("the request is about `{head}`, which is not what this tool changes"),
        format!("请求针对的是“{head}”，而不是这个工具所改的对象"),
    )
}

fn no_order(mood: Mood) -> LocalizedText {
    match mood {
        Mood::Question => LocalizedText::new(
            "nothing was run: the request is a question, and the tool would change something; write it as an instruction to run the tool",
            "没有执行：请求是一个问题，而该工具会改动数据；若要执行，请写成指令",
        ),
        Mood::Intent => LocalizedText::new(
            "nothing was run: the request states what you intend to do, and the tool would change something; write it as an instruction to run the tool",
            "没有执行：请求说的是你打算做的事，而该工具会改动数据；若要执行，请写成指令",
        ),
        Mood::Report => LocalizedText::new(
            "nothing was run: the request reports what was done, and the tool would change something; write it as an instruction to run the tool",
            "没有执行：请求说的是已经做过的事，而该工具会改动数据；若要执行，请写成指令",
        ),
    }
}

fn not_whole(parameter: &str, number_mismatch: NumberMismatch) -> LocalizedText {
    let (en, zh) = match number_mismatch {
        NumberMismatch::Part => ("is only a part of the numbers that are named", "只是所说数字中的一部分"),
        NumberMismatch::Count => {
            ("is a count in the request, and not a position", "在请求中是数量，而不是位置")
        }
        NumberMismatch::Suffix => {
            ("has a unit or a suffix that was not understood", "带有无法识别的单位或后缀")
        }
        NumberMismatch::Difference => {
            ("is a difference in the request, and not a value", "在请求中是增减量，而不是数值")
        }
        NumberMismatch::Negative => ("is negative", "是负数"),
        NumberMismatch::Bound => {
            ("is a bound or an approximation in the request", "在请求中是界限或约数，而不是确切的值")
        }
    };
    LocalizedText::new(
        format!("the number for `{parameter}` {en}: write it as `{parameter} = …`"),
        format!("`{parameter}` 的数字{zh}：请写成 `{parameter} = …`"),
    )
}
