//! Describes the change that a call would make, derived from the tool's name and arguments; for confirmations and refusals.

use serde_json::Value;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{RawJson, ToolName};

/// Maximum length of a displayed value, in characters.
const MAX_VALUE_CHARS: usize = 120;

const DELETING: [&str; 14] = [
    "delete",
    "remove",
    "drop",
    "clear",
    "truncate",
    "purge",
    "erase",
    "unlink",
    "wipe",
    "destroy",
    "uninstall",
    "rm",
    "删除",
    "清空",
];
const FILE: [&str; 9] =
    ["file", "path", "filename", "filepath", "uri", "url", "document", "workbook", "文件"];
const CONTAINER: [&str; 4] = ["sheet", "worksheet", "table", "工作表"];

/// Description of the change that a call would make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSummary {
    tool: String,
    /// Whether the tool's name contains a verb of deletion.
    pub deletes: bool,
    /// The file, sheet and range, or else the other scalar arguments; `None` if there are none.
    pub target: Option<String>,
}

impl ChangeSummary {
    /// Derives the summary from a call.
    pub fn new(tool: &ToolName, arguments: &RawJson) -> Self {
        let name = tool.as_str();
        let deletes = words(name).iter().any(|word| DELETING.contains(&word.as_str()));
        Self { tool: name.to_owned(), deletes, target: target(&arguments.value()) }
    }

    /// The description as the beginning of a sentence: "`apply_formula` will change a.xlsx, Sheet1!B5".
    pub fn text(&self) -> LocalizedText {
        let tool = &self.tool;
        match (&self.target, self.deletes) {
            (Some(target), true) => LocalizedText::new(
                format!("`{tool}` will DELETE data: {target}. This may be impossible to undo"),
                format!("`{tool}` 将删除数据：{target}。删除后可能无法恢复"),
            ),
            (Some(target), false) => LocalizedText::new(
                format!("`{tool}` will change {target}"),
                format!("`{tool}` 将更改 {target}"),
            ),
            (None, true) => LocalizedText::new(
                format!("`{tool}` will DELETE data. This may be impossible to undo"),
                format!("`{tool}` 将删除数据。删除后可能无法恢复"),
            ),
            (None, false) => {
                LocalizedText::new(format!("`{tool}` may delete data"), format!("`{tool}` 可能删除数据"))
            }
        }
    }
}

/// The words of a name in lower case: `deleteSheet_rows` has `delete`, `sheet` and `rows`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lowercase = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && after_lowercase) {
            words.push(String::new());
        }
        after_lowercase = letter.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The file, the sheet and the range in the arguments; else every scalar argument as `name=value`.
fn target(arguments: &Value) -> Option<String> {
    let members = arguments.as_object()?;
    let plain = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let find = |predicate: &dyn Fn(&[String]) -> bool| {
        members.iter().find(|(name, _)| predicate(&words(name))).and_then(|(_, value)| plain(value))
    };
    let has = |words: &[String], list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let file = find(&|words| has(words, &FILE));
    let sheet = find(&|words| has(words, &CONTAINER) && !has(words, &FILE));
    let first = find(&|words| has(words, &["cell", "range"]) && !has(words, &["end", "to", "target"]));
    let last = find(&|words| has(words, &["cell", "range"]) && has(words, &["end", "to"]));
    let range = match (first, last) {
        (Some(first), Some(last)) => Some(format!("{first}:{last}")),
        (first, _) => first,
    };
    let location = match (sheet, range) {
        (Some(sheet), Some(range)) => Some(format!("{sheet}!{range}")),
        (sheet, range) => sheet.or(range),
    };
    let used =
        |words: &[String]| has(words, &FILE) || has(words, &CONTAINER) || has(words, &["cell", "range"]);
    let details: Vec<String> = match &file {
        // Other arguments that determine the position of the change (rows, columns, names), but not the written content.
        Some(_) => members
            .iter()
            .filter(|(name, _)| {
                let words = words(name);
                !used(&words)
                    && has(&words, &["row", "rows", "column", "columns", "col", "start", "count", "line"])
            })
            .filter_map(|(name, value)| Some(format!("{name}={}", shown_value(&plain(value)?))))
            .collect(),
        None if location.is_some() => Vec::new(),
        None => members
            .iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", shown_value(&plain(value)?))))
            .collect(),
    };
    let parts: Vec<String> =
        file.iter().chain(&location).map(|part| shown_value(part)).chain(details).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn shown_value(text: &str) -> String {
    toolhub_core::text::truncate(text, MAX_VALUE_CHARS).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use toolhub_core::{Lang, Localize as _};

    use super::*;

    #[test]
    fn names_what_changes_and_where() {
        let check = |tool: &str, arguments: &str, expect: &str| {
            let summary = ChangeSummary::new(&ToolName::new(tool), &RawJson::parse(arguments).unwrap());
            assert_eq!(summary.text().localize(Lang::En), expect, "{tool} {arguments}");
        };
        check(
            "apply_formula",
            r#"{"filepath": "sales.xlsx", "sheet_name": "Sheet1", "cell": "B5", "formula": "=A1"}"#,
            "`apply_formula` will change sales.xlsx, Sheet1!B5",
        );
        check(
            "delete_rows",
            r#"{"filepath": "a.xlsx", "sheet_name": "S", "start_row": 3, "count": 2}"#,
            "`delete_rows` will DELETE data: a.xlsx, S, start_row=3, count=2. This may be impossible to undo",
        );
        check(
            "write_range",
            r#"{"path": "a.xlsx", "start_cell": "A1", "end_cell": "B2", "data": [[1]]}"#,
            "`write_range` will change a.xlsx, A1:B2",
        );
        check(
            "wipe_disk",
            r#"{"disk": "sda"}"#,
            "`wipe_disk` will DELETE data: disk=sda. This may be impossible to undo",
        );
        check("reset", "{}", "`reset` may delete data");
        check("sendMail", r#"{"to": "a@b.c"}"#, "`sendMail` will change to=a@b.c");
    }
}
