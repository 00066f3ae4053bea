//! Finds paths and slashed names with Chinese characters, which have no blanks around them.

use crate::lexer::file_extension::is_extension;
use crate::lexer::literal::{Literal, begins_word};
use crate::lexer::token::is_han;

/// Words directly before a file name, without a blank.
const BEFORE_FILES: [&str; 37] = [
    "读取",
    "打开",
    "查看",
    "看看",
    "创建",
    "新建",
    "删除",
    "复制",
    "检查",
    "取消",
    "根据",
    "保存到",
    "保存为",
    "写入",
    "写到",
    "导入",
    "导出",
    "名为",
    "叫做",
    "文件",
    "工作簿",
    "表格",
    "帮我",
    "请",
    "把",
    "将",
    "在",
    "从",
    "给",
    "用",
    "对",
    "到",
    "为",
    "叫",
    "的",
    "和",
    "与",
];

/// A file name with Chinese characters: it extends from a blank, punctuation or one of `BEFORE_FILES` to a known extension.
pub(crate) fn han_path(text: &str, at: usize) -> Option<(Literal, usize)> {
    let fits = |c: char| c.is_alphanumeric() || "._-/\\~+·".contains(c);
    let before = &text[..at];
    if before.ends_with(fits) && !BEFORE_FILES.iter().any(|word| before.ends_with(word)) {
        return None;
    }
    let rest = &text[at..];
    let run = &rest[..rest.find(|c: char| !fits(c)).unwrap_or(rest.len())];
    // 填到 用电.xlsx: a blank before the name separates it from the words before.
    let is_separate = before.ends_with(' ')
        && before.trim_end().ends_with(is_han)
        && run.starts_with(['用', '对', '和', '与', '为']);
    if !run.contains(is_han) || BEFORE_FILES.iter().any(|word| run.starts_with(word)) && !is_separate {
        return None;
    }
    run.match_indices('.').find_map(|(dot, _)| {
        let extension = &run[dot + 1..];
        let length = extension.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(extension.len());
        let known = is_extension(&extension[..length].to_ascii_lowercase());
        let end = dot + 1 + length;
        (known && run[..dot].contains(is_han)).then(|| (Literal::Path(run[..end].to_owned()), end))
    })
}

/// `feature/支付`, `fix/v2.0-重构`: a name with slashes that has Chinese characters after a slash, and no file extension.
pub(crate) fn han_slashed(text: &str, at: usize) -> Option<(Literal, usize)> {
    if !begins_word(text, at) || text[..at].ends_with(['/', '\\', '_', '-', '@', '.', '~', ':']) {
        return None;
    }
    let rest = &text[at..];
    let fits = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    let run = &rest[..rest.find(|c: char| !fits(c)).unwrap_or(rest.len())];
    let slash = run.find('/').filter(|slash| *slash > 1)?;
    let head = run[..slash].bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let particle =
        run.char_indices().skip_while(|(at, _)| *at < slash).find(|(_, c)| "的里中这那分".contains(*c));
    let name = run[..particle.map_or(run.len(), |(at, _)| at)].trim_end_matches(['.', '-', '/', '_']);
    (head && name.len() > slash + 1 && name.contains(is_han))
        .then(|| (Literal::Code(name.to_owned()), name.len()))
}

/// 财务/发票: a relative folder with a Chinese name, between blanks or punctuation.
pub(crate) fn han_folder(text: &str, at: usize) -> Option<(Literal, usize)> {
    let before = &text[..at];
    let opens =
        before.is_empty() || before.ends_with(|c: char| c.is_whitespace() || "“\"（(：，".contains(c));
    let rest = &text[at..];
    if !opens || !rest.starts_with(is_han) {
        return None;
    }
    let fits = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    let run = &rest[..rest.find(|c: char| !fits(c)).unwrap_or(rest.len())];
    let parts: Vec<&str> = run.split('/').collect();
    let name = |part: &&str| part.chars().count() > 1;
    let closes = rest[run.len()..].chars().next().is_none_or(|c| !c.is_alphanumeric());
    (parts.len() > 1 && parts.iter().all(name) && closes && !run.contains(['的', '把', '或']))
        .then(|| (Literal::Path(run.to_owned()), run.len()))
}
