//! What is said of calls that a request does not prove: what was understood, what was not, and how to make the call.

use toolhub_core::RawJson;
use toolhub_core::lang::{Lang, Say as _, Text};

use crate::plan::{Plan, Slot, Step};

/// For each step that is not proven, and each that changes something beside it, what is said instead of running it.
pub(crate) fn offered(plan: &Plan) -> Vec<Text> {
    if !plan.holds_back() {
        return Vec::new();
    }
    let mut said = Vec::new();
    for step in plan.steps.iter().filter(|step| plan.changing.contains(&step.id)) {
        let reasons = plan.unproven.iter().filter(|unproven| unproven.step == step.id);
        let reasons: Vec<&Text> = reasons.flat_map(|unproven| &unproven.reasons).collect();
        said.push(not_run(step, &reasons));
    }
    said
}

/// What is said first of an answer that leaves a part out.
pub(crate) fn unserved(plan: &Plan) -> Option<Text> {
    let parts: Vec<String> = plan.unserved.iter().map(|part| format!("`{part}`")).collect();
    (!parts.is_empty()).then(|| {
        Text::new(
            format!("no tool does this part: {}", parts.join(", ")),
            format!("没有工具能完成这一部分：{}", parts.join("、")),
        )
    })
}

fn not_run(step: &Step, reasons: &[&Text]) -> Text {
    let name = step.tool.as_ref().map_or("", |tool| tool.as_str());
    let because = |lang: Lang| {
        let reasons: Vec<String> = reasons.iter().map(|reason| reason.say(lang)).collect();
        reasons.join(lang.pick("; ", "；"))
    };
    let (en, zh) = match reasons.is_empty() {
        true => {
            ("another part of the request was not understood".to_owned(), "请求的另一部分没有看懂".to_owned())
        }
        false => (because(Lang::En), because(Lang::Zh)),
    };
    let line = call_line(step);
    Text::new(
        format!("not run: `{name}` changes something, and {en}\n  if this is meant: {line}"),
        format!("没有执行：`{name}` 会改变数据，而{zh}\n  如果就是此意：{line}"),
    )
}

/// A call as it is typed in a shell.
pub(crate) fn call_line(step: &Step) -> String {
    let mut line = format!("toolhub call {}", quoted(step.tool.as_ref().map_or("", |tool| tool.as_str())));
    for (name, slot) in &step.arguments {
        let argument = match slot {
            Slot::Value(value) => match value.text() {
                Some(text) => format!("{name}={text}"),
                None => format!("{name}:={}", value.get()),
            },
            Slot::ResultOf(_) => format!("{name}=…"),
            Slot::Template(value) => format!("{name}:={}", RawJson::get(value)),
        };
        line.push(' ');
        line.push_str(&quoted(&argument));
    }
    line
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=:./,@%+…".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use toolhub_core::ToolName;

    use super::*;
    use crate::plan::{Complexity, StepId};

    #[test]
    fn calls_are_quoted_for_a_shell() {
        let value = |text: &str| Slot::Value(RawJson::parse(text.to_owned()).unwrap());
        let step = Step {
            id: StepId::new("step1"),
            description: String::new(),
            tool: Some(ToolName::new("rename")),
            capability: None,
            arguments: vec![
                ("path".to_owned(), value(r#""it's a.txt""#)),
                ("名".to_owned(), value(r#""新.txt""#)),
                ("rows".to_owned(), value("[1, 2]")),
            ],
            dependencies: Vec::new(),
            complexity: Complexity::Simple,
        };
        assert_eq!(call_line(&step), r"toolhub call rename 'path=it'\''s a.txt' 名=新.txt 'rows:=[1, 2]'");
    }
}
