//! Joins the name of a new folder or file with its parent folder: `a folder called X in /data`, 在 /data 下建一个 X 文件夹.

use crate::lexer::literal::{Literal, LiteralSpan};
use crate::lexer::literal_scanner;
use crate::rewrite::masked_text::mask_literals;

/// Words between a name and its parent folder.
const INTO: [&str; 8] =
    ["in", "inside", "under", "within", "below", "in the folder", "in the directory", "inside the folder"];
const CALLED: [&str; 3] = ["called ", "named ", "titled "];
const KINDS: [&str; 10] = [
    "workbook ",
    "spreadsheet ",
    "subfolder ",
    "subdirectory ",
    "sub-folder ",
    "folder ",
    "directory ",
    "file ",
    "dir ",
    "text file ",
];
const HAN_KINDS: [&str; 6] = ["子文件夹", "子目录", "文件夹", "目录", "文本文件", "文件"];
const MAKES: [&str; 8] = ["create", "make", "add", "mkdir", "set up", "new", "need a", "put a"];
const HAN_MAKES: [&str; 7] = ["新建", "创建", "建立", "建", "新增", "加", "添加"];

/// Returns the request with the joined path; `None` if no name is separate from its folder.
pub(crate) fn joined(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let folder = only_folder(&literals)?;
    let masked = mask_literals(text, &literals);
    english(text, &masked, folder).or_else(|| chinese(text, &masked, folder))
}

/// The path of a folder, if the request contains exactly one.
fn only_folder(literals: &[LiteralSpan]) -> Option<&LiteralSpan> {
    let is_folder = |found: &&LiteralSpan| match &found.literal {
        Literal::Path(path) => {
            let last = path.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or_default();
            path.contains(['/', '\\']) && !last.trim_start_matches('.').contains('.')
        }
        Literal::Code(name) => name.contains('/') && !name.contains('.'),
        _ => false,
    };
    let mut folders = literals.iter().filter(is_folder);
    let first = folders.next()?;
    folders.next().is_none().then_some(first)
}

fn with_name(folder: &str, name: &str) -> Option<String> {
    let name = name.trim().trim_matches(|c: char| "\"'“”「」‘’`".contains(c)).trim();
    let plain = !name.is_empty() && name.chars().count() <= 60 && !name.contains(['/', '\\', '，', ',']);
    plain.then(|| format!("{}/{name}", folder.trim_end_matches('/')))
}

fn english(text: &str, masked: &str, folder: &LiteralSpan) -> Option<String> {
    let makes = MAKES.iter().filter_map(|verb| masked.find(verb)).min()?;
    let kind = KINDS
        .iter()
        .filter_map(|kind| masked.find(kind).map(|at| (at, at + kind.len())))
        .filter(|(at, end)| *at > makes && *end != folder.start)
        .max_by_key(|(_, end)| *end)?;
    let called = CALLED.iter().find(|word| masked[kind.1..].starts_with(**word)).map_or(0, |word| word.len());
    let start = kind.1 + called;
    let path = &text[folder.start..folder.end];
    if start < folder.start {
        // `a folder called X in PATH`
        let between = text.get(start..folder.start)?.trim_end();
        let lower = between.to_lowercase();
        let into =
            INTO.iter().filter(|word| lower.ends_with(&format!(" {word}"))).max_by_key(|word| word.len())?;
        let name = &between[..between.len() - into.len()];
        let one = called > 0 || is_one_word(name);
        let joined = with_name(path, name).filter(|_| one)?;
        return Some(format!("{}{joined}{}", &text[..start], &text[folder.end..]));
    }
    // `in PATH, create a folder called X`
    let head = masked[..folder.start].trim_end();
    let into = INTO.iter().find(|word| head == **word || head.ends_with(&format!(" {word}")))?;
    let rest = text.get(start..)?;
    let end = [" and ", ", ", ". ", " with ", "; ", " then "]
        .iter()
        .filter_map(|mark| masked[start..].find(mark))
        .min()
        .unwrap_or_else(|| rest.trim_end_matches(['.', '!', '?', ' ']).len());
    let name = &rest[..end];
    let one = called > 0 || is_one_word(name);
    let joined = with_name(path, name).filter(|_| one)?;
    let before = text.get(..head.len() - into.len())?;
    let between = text[folder.end..start].trim_start_matches([',', ' ', ':']);
    Some(format!("{before}{between}{joined}{}", &rest[end..]))
}

fn is_one_word(name: &str) -> bool {
    let name = name.trim();
    let quoted = name.starts_with(['"', '\'', '“']);
    quoted
        || !name.is_empty() && !name.contains(' ') && !["it", "them", "there", "that", "this"].contains(&name)
}

fn chinese(text: &str, masked: &str, folder: &LiteralSpan) -> Option<String> {
    let after = text.get(folder.end..)?;
    let inside = [
        "下面",
        "里面",
        "底下",
        "当中",
        "下",
        "里",
        "中",
        "内",
        "这个目录下",
        "目录下",
        "目录里",
        "文件夹里",
        "文件夹下",
    ];
    let rest = after.trim_start();
    let inside = inside.iter().filter(|word| rest.starts_with(**word)).max_by_key(|word| word.len())?;
    let rest = rest[inside.len()..].trim_start();
    let from = text.len() - rest.len();
    let (verb_at, verb) = HAN_MAKES
        .iter()
        .filter_map(|verb| masked[from..].find(verb).map(|at| (from + at, *verb)))
        .min_by_key(|(at, verb)| (*at, std::cmp::Reverse(verb.len())))?;
    if masked[from..verb_at].chars().count() > 6 {
        return None;
    }
    let mut rest = &text[verb_at + verb.len()..];
    for word in ["立", "一个", "个", "一", "名为", "名叫", "叫做", "叫", "名称为", "新的"] {
        rest = rest.trim_start();
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let rest = rest.trim_start();
    // The kind precedes or follows the name.
    let (name, tail) = match HAN_KINDS.iter().find_map(|kind| rest.strip_prefix(*kind)) {
        Some(named) => {
            let named = named.trim_start_matches([' ', '：', ':', '叫', '名', '为']);
            let end = named.find(['，', '。', ',', '；']).unwrap_or(named.len());
            (named[..end].trim(), &named[end..])
        }
        None => {
            let (at, kind) = HAN_KINDS
                .iter()
                .filter_map(|kind| rest.find(kind).map(|at| (at, kind)))
                .min_by_key(|(at, kind)| (*at, std::cmp::Reverse(kind.len())))?;
            (rest[..at].trim().trim_end_matches('的').trim(), &rest[at + kind.len()..])
        }
    };
    let joined = with_name(&text[folder.start..folder.end], name)?;
    let head = text[..folder.start].trim_end().trim_end_matches('在').trim_end();
    let kind = if name.contains('.') { "文件" } else { "文件夹" };
    Some(format!("{head}新建{kind} {joined}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_new_name_with_parent_folder() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(joined(text).as_deref(), expect, "{text}");
        check(
            "Make a new directory called archive in /data/projects",
            Some("Make a new directory called /data/projects/archive"),
        );
        check("in /srv/out create a folder named logs", Some("create a folder named /srv/out/logs"));
        check(
            "create the folder tmp under ~/work and list it",
            Some("create the folder ~/work/tmp and list it"),
        );
        check("在 /data/归档 下面建一个 2026年1月 文件夹", Some("新建文件夹 /data/归档/2026年1月"));
        check("在 ~/文档 里新建一个叫 合同备份 的文件夹", Some("新建文件夹 ~/文档/合同备份"));
        check("在 /srv/a 里新建文件夹 日志", Some("新建文件夹 /srv/a/日志"));
        check("Make a workbook named o.xlsx in /srv/fin", Some("Make a workbook named /srv/fin/o.xlsx"));
        check("create the folder /srv/out", None);
        check("make a folder for the pictures in /srv/out", None);
        check("list the files in /srv/out", None);
    }
}
