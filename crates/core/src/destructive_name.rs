//! Names of tools that say that a call destroys or ends something. Used only for tools without hints about their effect.

/// Words of a name, in lower case.
const WORDS: [&str; 33] = [
    "delete",
    "del",
    "remove",
    "rm",
    "rmdir",
    "rmtree",
    "unlink",
    "drop",
    "destroy",
    "erase",
    "purge",
    "prune",
    "wipe",
    "truncate",
    "overwrite",
    "clear",
    "flush",
    "reset",
    "discard",
    "uninstall",
    "undeploy",
    "unpublish",
    "kill",
    "terminate",
    "shutdown",
    "reboot",
    "revoke",
    "cancel",
    "deactivate",
    "decommission",
    "rollback",
    "evict",
    "nuke",
];
/// Parts of a name in Chinese, which has no separators between words.
const CHINESE_WORDS: [&str; 16] = [
    "删除", "刪除", "删库", "清空", "清除", "清理", "移除", "销毁", "抹除", "卸载", "撤销", "取消", "终止",
    "注销", "覆盖", "重置",
];
/// First words of names of tools that only read: `get_cancel_policy`, `list_revoke_reasons`.
const READING: [&str; 9] = ["get", "list", "show", "read", "search", "find", "describe", "count", "preview"];
/// Beginnings of such names in Chinese.
const CHINESE_READING: [&str; 6] = ["查询", "查看", "获取", "统计", "列出", "搜索"];
/// Words that join two actions: `get_and_delete` does both.
const JOINING: [&str; 3] = ["and", "or", "then"];

/// Whether a name such as `delete_row`, `deleteRow`, `DELETE-ROW`, `rows.delete` or 删除行 says that a call destroys something.
/// A name without such a word may still destroy something.
pub(crate) fn is_destructive_name(name: &str) -> bool {
    // Before `__` stands the name of a server or skill.
    let name = name.rsplit("__").find(|part| !part.is_empty()).unwrap_or(name);
    if CHINESE_WORDS.iter().any(|word| name.contains(word)) {
        return !CHINESE_READING.iter().any(|beginning| name.starts_with(beginning));
    }
    let words = words(name);
    let only_reads = words.first().is_some_and(|first| READING.contains(&first.as_str()))
        && !words.last().is_some_and(|last| is_destructive(last))
        && !words.iter().any(|word| JOINING.contains(&word.as_str()));
    !only_reads && words.iter().any(|word| is_destructive(word))
}

/// `delete`, `deletes`, `deleteall`.
fn is_destructive(word: &str) -> bool {
    let is_verb = |verb: &str| WORDS.contains(&verb);
    let plural = word.strip_suffix('s').filter(|verb| verb.len() > 3);
    is_verb(word) || plural.is_some_and(is_verb) || word.strip_suffix("all").is_some_and(is_verb)
}

/// The words of an identifier in snake, kebab, dotted or camel case, in lower case. Digits end a word.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let letters: Vec<char> = name.chars().collect();
    for (index, letter) in letters.iter().enumerate() {
        let after_lower = index.checked_sub(1).is_some_and(|before| letters[before].is_lowercase());
        let before_lower = letters.get(index + 1).is_some_and(|next| next.is_lowercase());
        let is_first = !letter.is_alphabetic() || letter.is_uppercase() && (after_lower || before_lower);
        if is_first {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphabetic()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_verbs_that_destroy_in_names() {
        for name in [
            "delete",
            "delete_row",
            "row_delete",
            "deleteRow",
            "DeleteRow",
            "rowsDelete",
            "DELETE_ROW",
            "HTTPDeleteRow",
            "sheet.delete-row",
            "delete2rows",
            "deleteall",
            "rm",
            "get_and_delete",
            "find_or_delete",
            "list_delete",
            "read_clear",
            "search-index__delete",
            "uninstall_app",
            "uninstallPackage",
            "deletes",
            "rmdir",
            "刪除",
            "drop_table",
            "files__remove",
            "cancelOrder",
            "删除行",
            "批量删除",
            "清空_表",
        ] {
            assert!(is_destructive_name(name), "{name}");
        }
    }

    #[test]
    fn finds_no_verbs_in_parts_of_other_words() {
        for name in [
            "",
            "read_file",
            "get_deletion_policy",
            "form",
            "rms",
            "model_list",
            "dropdown_options",
            "clearance_level",
            "skills",
            "undelete",
            "eraser_size",
            "list_deleted_rows",
            "delete-helper__read_rows",
            "查询取消原因",
            "统计覆盖率",
            "get_cancel_policy",
            "查询订单",
            "killer_queen",
        ] {
            assert!(!is_destructive_name(name), "{name}");
        }
    }
}
