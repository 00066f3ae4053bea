//! Finds paths that contain blanks, if the words around them are unambiguous: `/data/ann/My Documents/Plan.xlsx`, `sales
//! figures.xlsx`.

use crate::lexer::file_extension::is_extension;
use crate::lexer::literal::{Literal, begins_word};
use crate::lexer::split;
use crate::lexer::stop_words::is_stop;
use crate::lexer::token::is_han;

/// Maximum number of words of a path; longer runs are sentences.
const MAX_PATH_WORDS: usize = 6;
/// Nouns for kinds of files, which are not part of a file name.
const KINDS: [&str; 16] = [
    "file",
    "workbook",
    "spreadsheet",
    "sheet",
    "tab",
    "worksheet",
    "book",
    "document",
    "excel",
    "folder",
    "table",
    "named",
    "called",
    "existing",
    "text",
    "log",
];
/// Prepositions and verbs before a file name.
const BEFORE: [&str; 8] = ["of", "in", "from", "into", "open", "to", "inside", "within"];

/// 里的, 移到: words that follow a path are not part of it.
const FOLLOWING: [&str; 25] = [
    "里",
    "中",
    "下",
    "的",
    "目录",
    "文件夹",
    "和",
    "与",
    "到",
    "移",
    "重",
    "改",
    "上",
    "仓库",
    "代码库",
    "项目",
    "暂存",
    "提交",
    "把",
    "将",
    "切",
    "新建",
    "这",
    "那",
    "跟",
];

/// The path with a blank that begins at a byte offset.
pub(crate) fn read(text: &str, at: usize) -> Option<(Literal, usize)> {
    if !begins_word(text, at) || text[..at].ends_with(['/', '\\', '.', '-', '_', '~', ':']) {
        return None;
    }
    let rest = &text[at..];
    let first = rest.split(' ').next()?;
    // Chinese punctuation does not occur in paths: it starts a new clause. A comma after a file name ends it, too.
    if first.contains(['，', '。', '；', '、', '！', '？', '：']) || first.ends_with([',', ';']) {
        return None;
    }
    let named = text[..at]
        .trim_end()
        .rsplit(' ')
        .next()
        .is_some_and(|word| BEFORE.contains(&word.to_lowercase().as_str()));
    if follows_file(&text[..at])
        && let Some(found) = after_file(rest)
    {
        return Some(found);
    }
    let begins = if is_folder(first) { !ends_file(first) } else { named && is_plain(first) };
    if !begins {
        return None;
    }
    let mut end = first.len();
    // Whether a path separator occurs between words, which is the case in paths only.
    let rooted = is_folder(first);
    for word in rest[end..].split(' ').skip(1).take(MAX_PATH_WORDS) {
        let trimmed =
            word.trim_end_matches(['.', ',', ';', '?', '!', ')', ':', '，', '。', '；', '？', '！']);
        let cut =
            trimmed.find(is_han).filter(|_| !first.contains(is_han)).map_or(trimmed, |cut| &trimmed[..cut]);
        if ends_file(cut)
            && !cut.contains('*')
            && (rooted || is_plain(cut.rsplit_once('.').map_or(cut, |(stem, _)| stem)))
        {
            end += 1 + cut.len();
            return Some((Literal::Path(rest[..end].to_owned()), end));
        }
        if trimmed.contains(['*', '，', '。', '；', '、'])
            || FOLLOWING.iter().any(|word| trimmed.starts_with(word))
        {
            return None;
        }
        let continues =
            if rooted { !trimmed.is_empty() && trimmed == word && is_part(trimmed) } else { is_plain(word) };
        if !continues {
            return None;
        }
        end += 1 + word.len();
    }
    None
}

/// Whether the word before announces a file name.
fn follows_file(before: &str) -> bool {
    let before = before.trim_end();
    let last = before.rsplit(' ').next().unwrap_or_default().to_lowercase();
    ["file", "workbook", "document", "spreadsheet"].contains(&last.as_str())
}

/// `my files/a note.txt` after the word `file`: all words up to the file extension, if a folder is among them.
fn after_file(rest: &str) -> Option<(Literal, usize)> {
    let mut end = 0;
    for (index, word) in rest.split(' ').take(MAX_PATH_WORDS).enumerate() {
        let trimmed = word.trim_end_matches(['.', ',', ';', '?', '!', ')', ':']);
        let joins = [
            "and", "or", "in", "from", "to", "into", "of", "with", "then", "named", "called", "at", "on",
            "is", "under", "as", "inside", "within", "for", "by", "below", "via",
        ]
        .contains(&word.to_lowercase().as_str());
        if trimmed.is_empty()
            || joins
            || trimmed.contains(['"', '\'', '(', '=', '“'])
            || trimmed.contains(is_han)
        {
            return None;
        }
        end += usize::from(index > 0);
        if ends_file(trimmed) {
            end += trimmed.len();
            let path = &rest[..end];
            let folder = path.contains(['/', '\\']) && index > 0;
            return folder.then(|| (Literal::Path(path.to_owned()), end));
        }
        if trimmed != word {
            return None;
        }
        end += word.len();
    }
    None
}

fn is_folder(word: &str) -> bool {
    let drive = word.len() > 3 && word.as_bytes()[1] == b':' && matches!(word.as_bytes()[2], b'\\' | b'/');
    (word.contains('/') && word.contains(char::is_alphabetic) && !word.contains("//") && !word.contains('@'))
        && !word.starts_with(|c: char| c.is_ascii_digit())
        || drive
}

fn ends_file(word: &str) -> bool {
    word.rsplit_once('.')
        .is_some_and(|(stem, extension)| !stem.is_empty() && is_extension(&extension.to_ascii_lowercase()))
}

/// Whether a word may be inside a path that begins with a folder.
fn is_part(word: &str) -> bool {
    let sentence = is_stop(word) || split::is_verb(word) || KINDS.contains(&word.to_lowercase().as_str());
    (word.contains(['/', '\\']) || !sentence) && !word.contains(['"', '\'', '(', '=', '“', '”'])
}

/// Whether a lower-case word may be part of a file name and is not a common word of requests.
fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && word
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-')
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && !is_stop(word)
        && !split::is_verb(word)
        && !KINDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::literal_scanner::find;

    #[test]
    fn finds_paths_with_spaces() {
        let check = |text: &str, expect: &[&str]| {
            let found: Vec<String> = find(text)
                .into_iter()
                .filter_map(|found| match found.literal {
                    Literal::Path(path) => Some(path),
                    _ => None,
                })
                .collect();
            assert_eq!(found, expect, "{text}");
        };
        check(
            "Open /data/ann/My Documents/Yearly Plan.xlsx and show",
            &["/data/ann/My Documents/Yearly Plan.xlsx"],
        );
        check("新建 /data/m1.xlsx，再新建 /data/m2.xlsx", &["/data/m1.xlsx", "/data/m2.xlsx"]);
        check("read C:\\My Files\\a b.txt.", &["C:\\My Files\\a b.txt"]);
        check("the sheet Goals of sales figures.xlsx", &["sales figures.xlsx"]);
        check("打开 文档/年度 计划.xlsx 看看", &["文档/年度 计划.xlsx"]);
        check("list /etc and read notes.txt", &["/etc", "notes.txt"]);
        check("look in the file notes.txt", &["notes.txt"]);
        check("read docs/a.md and docs/b.md", &["docs/a.md", "docs/b.md"]);
        check("Week of planner.xlsx", &["planner.xlsx"]);
        check("read the file my files/a note.txt", &["my files/a note.txt"]);
        check("the file notes.txt and docs/b.md", &["notes.txt", "docs/b.md"]);
    }
}
