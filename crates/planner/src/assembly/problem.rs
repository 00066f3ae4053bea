//! Messages for plans that lack something: the parameter, its tool, and how to phrase it.

use toolhub_core::lang::LocalizedText;

use crate::values::parameter::{Parameter, ValueType};
use crate::values::role::Role;

/// The request is a prohibition or a question, not an order.
pub(crate) fn no_order(request: &str) -> LocalizedText {
    LocalizedText::new(
        format!(
            "nothing was run: `{request}` says what not to do, or asks about it; say only what is to be done"
        ),
        format!("没有执行：“{request}”说的是不要做的事，或是在询问；请只说要做的事"),
    )
}

/// No tool fits.
pub(crate) fn no_tool(part: &str) -> LocalizedText {
    LocalizedText::new(
        format!("no tool fits `{part}`: say it in other words, or name a tool"),
        format!("没有合适的工具可以完成 `{part}`：请换个说法，或直接写出工具名"),
    )
}

/// A series of values needs more calls than one sentence may make.
pub(crate) fn too_many(tool: &str, calls: usize, limit: usize) -> LocalizedText {
    LocalizedText::new(
        format!(
            "`{tool}` would be called {calls} times, and one sentence may make {limit} calls: split the request"
        ),
        format!("`{tool}` 需要调用 {calls} 次，而一句话最多 {limit} 次：请拆分请求"),
    )
}

/// A tool was found, but the request does not give one of its required parameters.
pub(crate) fn missing(tool: &str, parameter: &Parameter) -> LocalizedText {
    let (en, zh) = phrasing_hint(parameter);
    let description = parameter.description.split(['\n', '。']).next().unwrap_or_default().trim();
    let description = if description.is_empty() { String::new() } else { format!(" ({description})") };
    let name = &parameter.name;
    LocalizedText::new(
        format!("`{tool}` needs `{name}`{description}: {en}"),
        format!("`{tool}` 还缺少 `{name}`{description}：{zh}"),
    )
}

fn phrasing_hint(parameter: &Parameter) -> (String, String) {
    let name = &parameter.name;
    if !parameter.choices.is_empty() {
        let listed: Vec<String> = parameter
            .choices
            .iter()
            .take(8)
            .map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned))
            .collect();
        let listed = listed.join(", ");
        return (format!("choose one of {listed}"), format!("请从中选择：{listed}"));
    }
    let (en, zh) = match (parameter.role, &parameter.shape) {
        (_, ValueType::Boolean) => ("say yes or no, as in", "请说明是或否，例如"),
        (_, ValueType::Integer | ValueType::Number) => ("give a number, as in", "请给出数字，例如"),
        (_, ValueType::List(_)) => ("list the values, as in", "请列出各项，例如"),
        (Role::Path | Role::Folder, _) => ("name the file, as in", "请写出文件，例如"),
        (Role::Date | Role::DateTime | Role::Time, _) => ("say when, as in", "请说明时间，例如"),
        (Role::Place | Role::Zone, _) => ("say where, as in", "请说明地点，例如"),
        _ => ("say it with its name, as in", "请连同名称一起写出，例如"),
    };
    let example = match (parameter.role, &parameter.shape) {
        (_, ValueType::Boolean) => "true".to_owned(),
        (_, ValueType::Integer | ValueType::Number) => "3".to_owned(),
        (_, ValueType::List(_)) => "[1, 2, 3]".to_owned(),
        (Role::Path, _) => "report.xlsx".to_owned(),
        (Role::Sheet, _) => "Sheet1".to_owned(),
        (Role::Cell, _) => "A1".to_owned(),
        (Role::Range, _) => "A1:B10".to_owned(),
        (Role::Date, _) => "2026-01-31".to_owned(),
        (Role::Mail, _) => "somebody@example.com".to_owned(),
        _ => parameter.examples.first().cloned().unwrap_or_else(|| "…".to_owned()),
    };
    (format!("{en} `{name} = \"{example}\"`"), format!("{zh} `{name} = \"{example}\"`"))
}
