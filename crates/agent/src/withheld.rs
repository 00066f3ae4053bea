//! Messages for calls that a request does not prove: the recognised call, the reasons, and the command that makes it.

use toolhub_core::RawJson;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::shell::shell_quote;

use crate::server_choice::ServerChoice;
use toolhub_planner::plan::{ArgumentSource, Plan, PlanStep};

/// For each changing step of a plan that is held back, the message shown instead of running it.
pub(crate) fn offer_texts(plan: &Plan, servers: ServerChoice<'_>) -> Vec<LocalizedText> {
    if !plan.is_withheld() {
        return Vec::new();
    }
    let mut messages = Vec::new();
    for step in plan.steps.iter().filter(|step| plan.changing.contains(&step.id)) {
        let reasons = plan.unproven.iter().filter(|unproven| unproven.step == step.id);
        let reasons: Vec<&LocalizedText> = reasons.flat_map(|unproven| &unproven.reasons).collect();
        messages.push(not_run(step, &reasons, servers));
    }
    messages
}

/// The message that lists the parts of a request that no tool covers.
pub(crate) fn unserved_text(plan: &Plan) -> Option<LocalizedText> {
    let parts: Vec<String> = plan.unserved.iter().map(|part| format!("`{part}`")).collect();
    (!parts.is_empty()).then(|| {
        LocalizedText::new(
            format!("no tool does this part: {}", parts.join(", ")),
            format!("没有工具能完成这一部分：{}", parts.join("、")),
        )
    })
}

fn not_run(step: &PlanStep, reasons: &[&LocalizedText], servers: ServerChoice<'_>) -> LocalizedText {
    let name = step.tool.as_ref().map_or("", |tool| tool.as_str());
    let because = |lang: Lang| {
        let reasons: Vec<String> = reasons.iter().map(|reason| reason.localize(lang)).collect();
        reasons.join(lang.choose("; ", "；"))
    };
    let (en, zh) = match reasons.is_empty() {
        true => {
            ("another part of the request was not understood".to_owned(), "无法理解请求的另一部分".to_owned())
        }
        false => (because(Lang::En), because(Lang::Zh)),
    };
    let sources = match &step.source {
        Some(source) => vec![Some(source.clone())],
        None => servers.servers(name).into_iter().map(Some).collect(),
    };
    let sources = if sources.is_empty() { vec![None] } else { sources };
    let lines = |lead: &str| {
        let line = |source: &Option<String>| format!("\n  {lead}{}", call_line(step, source.as_deref()));
        sources.iter().map(line).collect::<String>()
    };
    LocalizedText::new(
        format!("not run: `{name}` may change something, and {en}{}", lines("if this is meant: ")),
        format!("没有执行：`{name}` 可能改动数据，而{zh}{}", lines("如果就是此意：")),
    )
}

/// The shell command that makes a call.
pub(crate) fn call_line(step: &PlanStep, source: Option<&str>) -> String {
    let mut line =
        format!("toolhub call {}", shell_quote(step.tool.as_ref().map_or("", |tool| tool.as_str())));
    if let Some(source) = source {
        line.push_str(" --source ");
        line.push_str(&shell_quote(source));
    }
    for (name, slot) in &step.arguments {
        let argument = match slot {
            ArgumentSource::Value(value) => match value.text() {
                Some(text) => format!("{name}={text}"),
                None => format!("{name}:={}", value.get()),
            },
            ArgumentSource::ResultOf(_) => format!("{name}=…"),
            ArgumentSource::Template(value) => format!("{name}:={}", RawJson::get(value)),
        };
        line.push(' ');
        line.push_str(&shell_quote(&argument));
    }
    line
}

#[cfg(test)]
mod tests {
    use toolhub_core::ToolName;

    use super::*;
    use toolhub_planner::plan::{Complexity, StepId};

    #[test]
    fn quotes_call_arguments_for_shell() {
        let value = |text: &str| ArgumentSource::Value(RawJson::parse(text.to_owned()).unwrap());
        let step = PlanStep {
            id: StepId::new("step1"),
            description: String::new(),
            tool: Some(ToolName::new("rename")),
            source: None,
            capability: None,
            arguments: vec![
                ("path".to_owned(), value(r#""it's a.txt""#)),
                ("名".to_owned(), value(r#""新.txt""#)),
                ("rows".to_owned(), value("[1, 2]")),
            ],
            dependencies: Vec::new(),
            complexity: Complexity::Simple,
        };
        assert_eq!(
            call_line(&step, None),
            r"toolhub call rename 'path=it'\''s a.txt' 名=新.txt 'rows:=[1, 2]'"
        );
    }
}
