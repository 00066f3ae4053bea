//! Resolves references of a later part of a request to things named earlier: a name whose kind was given before, `her` and 他
//! for a person, `and in Denver?` for the same question about another place.

use crate::lexer::literal::{Literal, LiteralSpan};
use crate::lexer::literal_scanner;
use crate::lexer::name::has_han;
use crate::lexer::token::is_han;
use crate::rewrite::follow_up;
use crate::rewrite::masked_text::{free_text, mask_literals};

/// Nouns for kinds of things, before or after a name.
const KINDS: [&str; 12] = [
    "sheet",
    "tab",
    "worksheet",
    "event",
    "email",
    "mail",
    "entity",
    "node",
    "branch",
    "邮件",
    "日程",
    "工作表",
];
/// Chinese nouns for kinds of things, after a name.
const KINDS_AFTER: [&str; 6] = ["工作表", "表", "实体", "节点", "邮件", "分支"];

/// The request with the references resolved; `None` if there are none.
pub(crate) fn resolve(text: &str) -> Option<String> {
    let mut result = text.to_owned();
    let mut changed = false;
    let steps: [fn(&str) -> Option<String>; 12] = [
        repeat_question,
        repeat_kind,
        repeat_kind_of_new_object,
        resolve_pronoun,
        insert_path,
        insert_folder,
        inside,
        resolve_those,
        insert_file,
        repeat_kind_of_renamed_sheet,
        resolve_date,
        resolve_branch,
    ];
    for step in steps {
        if let Some(other) = step(&result) {
            result = other;
            changed = true;
        }
    }
    changed.then_some(result)
}

/// 回复邮件 em-55 …，然后把 em-55 删了: repeats the kind at the second mention of a name.
fn repeat_kind(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    for (position, first) in literals.iter().enumerate() {
        let name = match &first.literal {
            Literal::Code(name) | Literal::Quoted(name) => name.clone(),
            _ => continue,
        };
        if name.is_empty() || name.contains(['/', ' ']) {
            continue;
        }
        let Some((kind, after)) = kind_of(text, &masked, first) else { continue };
        let repeated = literals[position + 1..].iter().find(|other| other.literal == first.literal);
        let Some(repeated) = repeated.filter(|repeated| {
            kind_of(text, &masked, repeated).is_none() && repeated.start <= free_text(&masked)
        }) else {
            continue;
        };
        let between = masked.get(first.end..repeated.start)?;
        let later = between.contains(['，', ',', ';', '；', '.', '。'])
            || between.contains(" and ")
            || between.contains(" then ");
        let whole = &text[repeated.start..repeated.end];
        return later.then(|| match after {
            true => format!("{}{whole}{kind}{}", &text[..repeated.start], &text[repeated.end..]),
            false => format!("{}{kind} {whole}{}", &text[..repeated.start], &text[repeated.end..]),
        });
    }
    repeat_kind_of_bare_name(text, &masked)
}

/// `from sheet Rates …, delete row 9 on Rates`: the same for a name without quotes.
fn repeat_kind_of_bare_name(text: &str, masked: &str) -> Option<String> {
    for kind in ["sheet ", "tab ", "worksheet "] {
        let Some(at) = masked.find(kind).map(|at| at + kind.len()) else { continue };
        let rest = &text[at..];
        let name =
            &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(rest.len())];
        if !name.starts_with(char::is_uppercase) || name.len() < 2 {
            continue;
        }
        for joint in [" on ", " in ", " from ", " of "] {
            let words = format!("{joint}{name}");
            let found = text[at..].find(&words).map(|position| at + position);
            let Some(position) = found.filter(|position| *position < free_text(masked)) else { continue };
            let end = position + words.len();
            let whole = !text[end..]
                .starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == '.' || c == '/');
            let split = text[at..position].contains([',', ';', '.']) || text[at..position].contains(" and ");
            if whole && split {
                return Some(format!("{}{joint}{kind}{name}{}", &text[..position], &text[end..]));
            }
        }
    }
    None
}

/// `rename the sheet A to Summary, …, then insert rows on Summary`: the new name of a sheet is a sheet, too.
fn repeat_kind_of_renamed_sheet(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    let at = ["rename the sheet ", "rename sheet ", "rename the tab ", "rename the worksheet "]
        .iter()
        .find_map(|verb| masked.find(verb).map(|at| at + verb.len()))?;
    let to = at + masked[at..].find(" to ")? + " to ".len();
    let rest = &text[to..];
    let name =
        &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(rest.len())];
    let after = to + name.len();
    let (position, joint) = [" on ", " in ", " of "].iter().find_map(|joint| {
        text[after..].find(&format!("{joint}{name}")).map(|position| (after + position, *joint))
    })?;
    let end = position + joint.len() + name.len();
    let whole = !text[end..].starts_with(|c: char| c.is_alphanumeric() || "_-./".contains(c));
    let named = name.starts_with(char::is_uppercase) && name.len() > 1;
    (named && whole && position < free_text(&masked))
        .then(|| format!("{}{joint}the sheet {name}{}", &text[..position], &text[end..]))
}

/// 先切到 develop，再基于它新建分支: the branch that was checked out.
fn resolve_branch(text: &str) -> Option<String> {
    let at = text.find("基于它").or_else(|| text.find("基于该分支")).or_else(|| text.find("基于这个分支"))?;
    let length =
        ["基于它", "基于该分支", "基于这个分支"].iter().find(|word| text[at..].starts_with(**word))?.len();
    let (start, verb) = ["切换到 ", "切到 ", "切换至 "]
        .iter()
        .find_map(|verb| text[..at].find(verb).map(|start| (start, *verb)))?;
    let rest = &text[start + verb.len()..at];
    let name = &rest
        [..rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/-_.".contains(c))).unwrap_or(rest.len())];
    (!name.is_empty()).then(|| format!("{}从 {name} {}", &text[..at], &text[at + length..]))
}

/// `List my events for D and find 30 minutes on that day`, 这几天: repeats the date named before.
fn resolve_date(text: &str) -> Option<String> {
    const DAYS: [&str; 7] = ["on that day", "that same day", "那一天", "那天", "当天", "这几天", "那几天"];
    let masked = mask_literals(text, &literal_scanner::find(text));
    let (at, word) = DAYS.iter().filter_map(|word| masked.find(word).map(|at| (at, *word))).min()?;
    let dates: Vec<&str> = text[..at]
        .split(|c: char| !(c.is_ascii_digit() || c == '-'))
        .filter(|part| {
            part.len() == 10
                && part.bytes().filter(|byte| *byte == b'-').count() == 2
                && part.starts_with("20")
        })
        .collect();
    let several = word.contains('几');
    let named = match dates.as_slice() {
        [day] if !several => (*day).to_owned(),
        [first, last] if several => format!("{first} 到 {last} "),
        _ => return None,
    };
    let lead = if word.starts_with("on ") { "on " } else { "" };
    (at < free_text(&masked)).then(|| format!("{}{lead}{named}{}", &text[..at], &text[at + word.len()..]))
}

/// The noun for the kind beside a literal, and whether it follows the literal.
fn kind_of(text: &str, masked: &str, found: &LiteralSpan) -> Option<(&'static str, bool)> {
    let before = masked[..found.start].trim_end();
    let lead = KINDS.iter().find(|kind| {
        before
            .strip_suffix(**kind)
            .is_some_and(|head| !kind.is_ascii() || !head.ends_with(|c: char| c.is_ascii_alphanumeric()))
    });
    if let Some(kind) = lead {
        return Some((*kind, false));
    }
    let after = text[found.end..].trim_start();
    let after = ["这个", "这张", "这封", "那个"]
        .iter()
        .fold(after, |after, word| after.strip_prefix(word).unwrap_or(after));
    KINDS_AFTER.iter().find(|kind| after.starts_with(**kind)).map(|kind| (*kind, true))
}

/// `… from her`, 他的观察: replaces the pronoun by the only person named before.
fn resolve_pronoun(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    if !["graph", "entity", "observation", "图谱", "实体", "观察", "node"]
        .iter()
        .any(|word| masked.contains(word))
    {
        return None;
    }
    let until = free_text(&masked);
    if has_han(&masked) {
        let at = ["给他", "给她", "给它", "他的", "她的", "它的", "他名下", "她名下", "它名下"]
            .iter()
            .filter_map(|word| masked.find(word).map(|at| (at, *word)))
            .min()?;
        let position = at.0 + at.1.find(['他', '她', '它'])?;
        let head = text.get(..position)?;
        let name = han_name(head).or_else(|| given_name(head)).or_else(|| only_quoted(head, &literals))?;
        let rest = &text[position + '他'.len_utf8()..];
        let rest = rest.strip_prefix("名下").map_or(rest.to_owned(), |rest| format!("的{rest}"));
        // 图谱里已有“甲”，请给它…: drops a clause that only states that the entity exists.
        let known = head.find('，').filter(|comma| {
            let clause = head[..*comma].replace(&name, "");
            ["图谱中已有", "图谱里已有", "知识图谱中已有", "知识图谱里已有", "图谱里有", "知识图谱里有"]
                .contains(&clause.trim())
        });
        let head = known.map_or(head, |comma| &head[comma + '，'.len_utf8()..]);
        return (position < until).then(|| format!("{head} {name} {rest}"));
    }
    let words = [
        " from her",
        " from him",
        " from it",
        " to her",
        " to him",
        " to it",
        " for her",
        " for him",
        " about her",
        " about him",
    ];
    let (at, word) = words.iter().filter_map(|word| masked.find(word).map(|at| (at, *word))).min()?;
    let end = at + word.len();
    let placed = [" in the knowledge graph", " in the graph", " please"]
        .iter()
        .any(|position| masked[end..].starts_with(position));
    if text[end..].starts_with(|c: char| {
        c.is_alphanumeric() || c == ' ' && text[end + 1..].starts_with(char::is_lowercase) && !placed
    }) || at > until
    {
        return None;
    }
    let name = capital_name(&text[..at], &literals)?;
    let joint = &word[..word.rfind(' ')? + 1];
    Some(format!("{}{joint}{name}{}", &text[..at], &text[end..]))
}

/// The only run of capitalised words in a text that does not begin a sentence.
pub(crate) fn capital_name(text: &str, literals: &[LiteralSpan]) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    let mut run: Vec<&str> = Vec::new();
    let mut at = 0;
    for (position, word) in text.split(' ').enumerate() {
        let start = at;
        at += word.len() + 1;
        let inside = literals.iter().any(|found| found.start <= start && start < found.end);
        let trimmed = word.trim_end_matches([',', '.', ';', ':']);
        // A capitalised word begins a name at the start of a text if another one follows.
        let begins = position > 0
            || text.split(' ').nth(1).is_some_and(|next| next.starts_with(char::is_uppercase))
                && word.len() > 1;
        if begins && !inside && trimmed.starts_with(char::is_uppercase) && !ends_sentence(text, start) {
            run.push(trimmed);
        } else if !run.is_empty() {
            names.push(run.join(" "));
            run.clear();
        }
    }
    if !run.is_empty() {
        names.push(run.join(" "));
    }
    names.dedup();
    match names.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}

/// `… providers. Remove`: whether the word at a byte offset begins another sentence.
fn ends_sentence(text: &str, start: usize) -> bool {
    text[..start].trim_end().ends_with(['.', '!', '?'])
}

/// The name at the beginning of a Chinese text, followed by a blank.
fn han_name(text: &str) -> Option<String> {
    let first = text.split(|c: char| c.is_whitespace() || "，：:,。".contains(c)).next()?;
    let short = (2..=4).contains(&first.chars().count());
    (short && first.chars().all(is_han) && text[first.len()..].starts_with(' ')).then(|| first.to_owned())
}

/// 给 薛敏 加一条观察: the name between blanks after 给 or after the noun for its kind.
fn given_name(text: &str) -> Option<String> {
    let start =
        ["给 ", "实体 ", "节点 "].iter().find_map(|word| text.find(word).map(|at| at + word.len()))?;
    let name = text[start..].split(' ').next()?;
    let ends = text[start + name.len()..].starts_with(' ');
    (ends && (2..=8).contains(&name.chars().count()) && name.chars().all(is_han)).then(|| name.to_owned())
}

/// The only quoted text before a byte offset, with its quotes.
fn only_quoted(text: &str, literals: &[LiteralSpan]) -> Option<String> {
    let mut quoted = literals
        .iter()
        .filter(|found| matches!(found.literal, Literal::Quoted(_)) && found.end <= text.len());
    let first = quoted.next()?;
    quoted.next().is_none().then(|| text[first.start..first.end].to_owned())
}

/// `08:00 London in Tokyo? and in Denver?`, 柏林几点？洛杉矶呢？: repeats the question for another place.
fn repeat_question(text: &str) -> Option<String> {
    let trimmed = text.trim_end();
    let marks: Vec<usize> = trimmed.match_indices(['?', '？', '，']).map(|(at, _)| at).collect();
    let before_last = marks.iter().rev().find(|at| {
        let rest = trimmed[**at..].trim_start_matches(['?', '？', '，', ' ']);
        !rest.is_empty() && rest.len() < trimmed.len()
    })?;
    let head = &trimmed[..*before_last];
    let tail = trimmed[*before_last..].trim_start_matches(['?', '？', '，', ' ']);
    let is_question = tail.ends_with("呢？")
        || tail.ends_with("呢?")
        || tail.ends_with('呢')
        || tail.to_ascii_lowercase().starts_with("and in ")
        || tail.to_ascii_lowercase().starts_with("what about ")
        || tail.to_ascii_lowercase().starts_with("and what about ")
        || tail.to_ascii_lowercase().starts_with("and ") && tail.ends_with('?');
    if !is_question || tail.chars().count() > 24 {
        return None;
    }
    let repeated = follow_up::exchanged(tail, head)?;
    let joint = if has_han(text) { "？然后" } else { "? then " };
    Some(format!("{head}{joint}{repeated}"))
}

/// `my events on A and then those on B`: replaces `those` by its noun.
fn resolve_those(text: &str) -> Option<String> {
    let (at, word) =
        [" those on ", " those of ", " those in ", " those from ", " the ones on ", " the ones in "]
            .iter()
            .find_map(|word| text.find(word).map(|at| (at, *word)))?;
    let preposition = word.rsplit(' ').nth(1)?;
    let head = text[..at].find(&format!(" {preposition} "))?;
    let first = text[..head].trim();
    let noun: Vec<&str> = first.split(' ').collect();
    (noun.len() <= 4 && !first.contains([',', '.']))
        .then(|| format!("{} {first} {preposition} {}", &text[..at], &text[at + word.len()..]))
}

/// 日程 ev-12 取消，建个：…: a new thing has the kind that was mentioned before.
fn repeat_kind_of_new_object(text: &str) -> Option<String> {
    let (at, word) = ["建个：", "建个:", "建一个：", "新建一个：", "约个：", "新建："]
        .iter()
        .find_map(|word| text.find(word).map(|at| (at, *word)))?;
    let kind = ["日程", "会议", "实体", "草稿", "分支"].iter().find(|kind| text[..at].contains(**kind))?;
    let verb = word.trim_end_matches(['：', ':']);
    Some(format!("{}{verb}{kind}，{}", &text[..at], &text[at + word.len()..]))
}

/// `make the folder X and move Y in word`, `read X, then change A to B in it`: inserts the path named before.
fn insert_path(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    let words = [
        " in there",
        " into there",
        " in it",
        " into it",
        " to that folder",
        " into that folder",
        " in that file",
    ];
    let (at, word) = words.iter().filter_map(|word| masked.find(word).map(|at| (at, *word))).min()?;
    let end = at + word.len();
    let ends = masked[end..].trim_start_matches(['.', '!', ' ']).is_empty()
        || masked[end..].starts_with([',', ';', '.']);
    let clause = masked[..at].rfind([',', ';', '.']).into_iter().chain(masked[..at].rfind(" and ")).max()?;
    let earlier: Vec<&LiteralSpan> = literals.iter().filter(|found| found.end <= clause).collect();
    let path = |found: &LiteralSpan| match &found.literal {
        Literal::Path(_) => true,
        Literal::Code(code) => code.contains('/'),
        _ => false,
    };
    let [one] = earlier.iter().filter(|found| path(found)).collect::<Vec<_>>()[..] else { return None };
    let name = &text[one.start..one.end];
    let folder = !name.rsplit('/').next().unwrap_or_default().contains('.');
    let moved = literals.iter().any(|found| found.start > clause && found.end <= at && path(found));
    let made = ["folder", "directory", "dir"].iter().any(|kind| masked[..clause].contains(kind));
    let position = match (folder && made && moved, folder) {
        (true, _) => format!(" into the folder {name}"),
        (false, false) if !moved => format!(" in {name}"),
        _ => return None,
    };
    (ends && at < free_text(&masked)).then(|| format!("{}{position}{}", &text[..at], &text[end..]))
}

/// `change A to B in F, then show me the file`: inserts the only file named before.
fn insert_file(text: &str) -> Option<String> {
    const WORDS: [&str; 10] = [
        " show me the file",
        " show me that file",
        " show the file",
        " read the file",
        " show me the whole file",
        " open the file",
        " show me the result",
        "给我看文件内容",
        "显示文件内容",
        "把文件内容给我看",
    ];
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    let (at, word) = WORDS.iter().find_map(|word| masked.rfind(word).map(|at| (at, *word)))?;
    let ends = masked[at + word.len()..].trim_matches(['.', '!', '。', ' ', '吧', '?']).is_empty();
    let [file] = literals
        .iter()
        .filter(
            |found| matches!(&found.literal, Literal::Path(path) if !crate::lexer::implied::is_bare(path)),
        )
        .collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let changes = literals.iter().any(|found| matches!(found.literal, Literal::Quoted(_)));
    let path = &text[file.start..file.end];
    (ends && file.end <= at && changes && !path.contains(".xls") && at < free_text(&masked)).then(|| {
        match word.is_ascii() {
            true => format!("{} show me the file {path}", &text[..at]),
            false => format!("{}读取 {path}", &text[..at]),
        }
    })
}

/// 新建目录 /data/a，再把 b.txt 移到这个目录里: inserts the folder created before.
fn insert_folder(text: &str) -> Option<String> {
    const VERBS: [&str; 11] =
        ["移动到", "移到", "放到", "放进", "移进", "挪到", "挪进", "搬到", "搬进", "移入", "放入"];
    const LOCATION_WORDS: [&str; 8] =
        ["这个文件夹", "那个文件夹", "该文件夹", "这个目录", "那个目录", "该目录", "新文件夹", "新目录"];
    let literals = literal_scanner::find(text);
    // 再把 b.txt 移进去
    let inside = ["移进去", "放进去", "挪进去", "搬进去", "移过去"];
    let moved = inside
        .iter()
        .find_map(|verb| text.rfind(verb).map(|at| (at + verb.len() - "进去".len(), at + verb.len())));
    let (start, end) = moved.or_else(|| {
        VERBS.iter().find_map(|verb| {
            LOCATION_WORDS.iter().find_map(|word| {
                let at = text.find(&format!("{verb}{word}"))? + verb.len();
                Some((at, at + word.len()))
            })
        })
    })?;
    let folder = |found: &&LiteralSpan| matches!(&found.literal, Literal::Path(path) if crate::lexer::implied::is_bare(path));
    let mut folders = literals.iter().filter(folder).filter(|found| found.end < start);
    let (one, made) =
        (folders.next()?, ["新建", "创建", "建"].iter().any(|verb| text[..start].contains(verb)));
    (made && folders.next().is_none()).then(|| {
        let name = text[one.start..one.end].trim_end_matches('/');
        let into = if moved.is_some() { "到" } else { "" };
        format!("{}{into} {name} 文件夹{}", &text[..start], &text[end..])
    })
}

/// 新建目录 /data/a，并在里面写一个 b.txt: prefixes a file that is created inside a folder with the folder's path.
fn inside(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let (at, word) = ["在里面", "里面", "inside it ", "in it "]
        .iter()
        .find_map(|word| text.find(word).map(|at| (at, *word)))?;
    let folder = |found: &&LiteralSpan| matches!(&found.literal, Literal::Path(path) if crate::lexer::implied::is_bare(path));
    let folder = literals.iter().rev().filter(folder).find(|found| found.end < at)?;
    let trimmed = |found: &&LiteralSpan| matches!(&found.literal, Literal::Path(path) if !path.contains(['/', '\\', '*']));
    let file = literals.iter().filter(trimmed).find(|found| found.start > at)?;
    let between = text.get(folder.end..at)?;
    let apart = between.contains(['，', ',', '；', ';']) || between.contains(" and ");
    let path =
        format!("{}/{}", text[folder.start..folder.end].trim_end_matches('/'), &text[file.start..file.end]);
    apart.then(|| format!("{}{}{path}{}", &text[..at], &text[at + word.len()..file.start], &text[file.end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_references_to_earlier_names() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(resolve(text).as_deref(), expect, "{text}");
        check("回复邮件 em-55“好”，然后把 em-55 删了", Some("回复邮件 em-55“好”，然后把 邮件 em-55 删了"));
        check(
            "a.xlsx 的“草稿”表先复制成“备份”，再把“草稿”删了",
            Some("a.xlsx 的“草稿”表先复制成“备份”，再把“草稿”表删了"),
        );
        check(
            "copy A1:C5 from sheet Rates to sheet History, then delete row 9 on Rates",
            Some("copy A1:C5 from sheet Rates to sheet History, then delete row 9 on sheet Rates"),
        );
        check(
            "Add the observation \"x\" to Sofia Brandt in the graph, and drop the observation \"y\" from her",
            Some(
                "Add the observation \"x\" to Sofia Brandt in the graph, and drop the observation \"y\" from Sofia Brandt",
            ),
        );
        check(
            "my events on 2027-03-01 and then those on 2027-03-08",
            Some("my events on 2027-03-01 and then my events on 2027-03-08"),
        );
        check("delete em-55", None);
    }
}
