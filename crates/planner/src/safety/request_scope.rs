//! Checks for other information in a request than its verbs: all items of a kind, the contents of a folder, workbooks, time
//! zones.

use crate::selection::choice::Choice;
use crate::values::candidate::ArgumentValue;

/// Whether a text is about the contents of a folder.
pub(crate) fn mentions_contents(text: &str) -> bool {
    let lower = format!(" {} ", text.to_lowercase());
    let words = [
        " in ",
        " inside ",
        " under ",
        " below ",
        " list ",
        " ls ",
        "folder",
        "director",
        "files",
        "里",
        "下",
        "目录",
        "文件夹",
        "列",
        "有哪些",
        "有什么",
        "中",
        "tree",
        "size",
    ];
    // These phrases mean the text of a file.
    let text = ["written in", " say?", " says", "写了什么", "写着什么", "写的什么"];
    words.iter().any(|word| lower.contains(word)) && !text.iter().any(|word| lower.contains(word))
}

/// Whether a call reads a workbook.
pub(crate) fn opens_workbook(choice: &Choice) -> bool {
    choice.assignment.slots.iter().flatten().any(|slot| {
        let text = match &slot.value {
            ArgumentValue::FromRequest(value) => value.as_str().unwrap_or_default().to_lowercase(),
            ArgumentValue::Result => return false,
        };
        [".xlsx", ".xls", ".xlsm"].iter().any(|ending| text.ends_with(ending))
    })
}

/// Whether a text requests all items of a kind.
pub(crate) fn asks_for_all(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = [
        "list", "files", "all", "every", "which", "what", "recent", "history", "哪些", "列", "所有", "全部",
        "什么", "啥", "最近", "记录",
    ];
    words.iter().any(|word| lower.contains(word))
}

pub(crate) fn mentions_tools(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.contains("tool") || lower.contains("工具") || lower.contains("function")
}

/// `her time zone`, 他那边的时间: whether a request refers to a time zone without naming it.
pub(crate) fn lacks_zone(text: &str) -> bool {
    let lower = text.to_lowercase();
    let owners = ["her", "his", "their", "your", "my"];
    let zones = ["time zone", "timezone", "local time"];
    owners.iter().any(|owner| zones.iter().any(|zone| lower.contains(&format!(" {owner} {zone}"))))
        || ["他那边", "她那边", "他们那边", "对方时区", "他的时区", "她的时区"]
            .iter()
            .any(|word| lower.contains(word))
}
