//! Finds the literals of a text, with their byte ranges.

use std::cell::RefCell;

use serde_json::Value;

use crate::lexer::file_extension::{is_bare_file, is_extension};
use crate::lexer::han_path::{han_folder, han_path, han_slashed};
use crate::lexer::literal::{Literal, LiteralSpan, begins_word, cells};
use crate::lexer::spaced_path;
use crate::lexer::token::is_han;

const QUOTES: [(char, char); 12] = [
    ('【', '】'),
    ('"', '"'),
    ('“', '”'),
    ('‘', '’'),
    ('「', '」'),
    ('『', '』'),
    ('《', '》'),
    ('«', '»'),
    ('`', '`'),
    ('\'', '\''),
    ('„', '“'),
    ('＂', '＂'),
];

thread_local! {
    /// The last text and its literals: dozens of rules read the same text in turn.
    static LAST: RefCell<(String, Vec<LiteralSpan>)> = const { RefCell::new((String::new(), Vec::new())) };
}

/// The literals of a text, in order, without overlaps.
pub(crate) fn find(text: &str) -> Vec<LiteralSpan> {
    let known = LAST.with_borrow(|(last, found)| (last == text).then(|| found.clone()));
    known.unwrap_or_else(|| {
        let found = scan(text);
        LAST.set((text.to_owned(), found.clone()));
        found
    })
}

fn scan(text: &str) -> Vec<LiteralSpan> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..)
        && let Some(first) = rest.chars().next()
    {
        let read = quoted(text, at)
            .or_else(|| spaced_path::read(text, at))
            .or_else(|| rooted(text, at))
            .or_else(|| han_path(text, at))
            .or_else(|| han_slashed(text, at))
            .or_else(|| han_folder(text, at))
            .or_else(|| json(rest))
            .or_else(|| formula(text, at))
            .or_else(|| scan_word(text, at));
        match read {
            Some((literal, length)) if length > 0 => {
                found.push(LiteralSpan { literal, start: at, end: at + length });
                at += length;
            }
            _ => at += first.len_utf8(),
        }
    }
    found
}

fn quoted(text: &str, at: usize) -> Option<(Literal, usize)> {
    let rest = &text[at..];
    let first = rest.chars().next()?;
    let (_, close) = QUOTES.iter().find(|(open, _)| *open == first)?;
    // An apostrophe in or after a word does not open a quote.
    if first == '\'' && !begins_word(text, at) {
        return None;
    }
    let inner = &rest[first.len_utf8()..];
    let end = inner.char_indices().find(|(offset, c)| {
        let after = inner[offset + c.len_utf8()..].chars().next();
        c == close
            && *offset > 0
            && (*close != '\'' && *close != '’' || !after.is_some_and(|c| c.is_alphanumeric() && !is_han(c)))
    });
    let (end, _) = end?;
    let content = &inner[..end];
    (!content.trim().is_empty())
        .then(|| (Literal::Quoted(content.trim().to_owned()), first.len_utf8() + end + close.len_utf8()))
}

/// A list or an object, also with single quotes or in round brackets.
fn json(rest: &str) -> Option<(Literal, usize)> {
    let first = rest.chars().next().filter(|c| matches!(c, '[' | '{' | '('))?;
    let mut depth = 0usize;
    let end = rest.char_indices().find_map(|(at, c)| {
        match c {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at + c.len_utf8())
    })?;
    let matched = &rest[..end];
    let text = if first == '(' { matched.replace('(', "[").replace(')', "]") } else { matched.to_owned() };
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    let value = parse(&text)
        .or_else(|| parse(&text.replace('\'', "\"")))
        .or_else(|| parse(&text.replace('\'', "\"").replace("True", "true").replace("False", "false")))
        .or_else(|| (first != '(').then(|| bare(&text)).flatten())?;
    let useful = match &value {
        Value::Array(items) => {
            !items.is_empty() && (first != '(' || items.len() > 1 && items.iter().all(Value::is_number))
        }
        Value::Object(members) => !members.is_empty(),
        _ => false,
    };
    useful.then_some((Literal::Json(value), end))
}

/// `[red, green]`: a list of bare words.
fn bare(text: &str) -> Option<Value> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    if inner.contains(['[', '{', '"']) || inner.trim().is_empty() {
        return None;
    }
    let item = |item: &str| serde_json::from_str(item.trim()).unwrap_or_else(|_| Value::from(item.trim()));
    Some(Value::Array(inner.split([',', '，', '、']).map(item).collect()))
}

/// A spreadsheet formula: `=` that does not follow an operand.
fn formula(text: &str, at: usize) -> Option<(Literal, usize)> {
    let rest = &text[at..];
    let formula = rest.strip_prefix('=')?;
    // `B10 = SUM(B2:B9)`: a blank before the name of a function.
    let spaced = formula.strip_prefix(' ').filter(|body| {
        let name = body.bytes().take_while(u8::is_ascii_uppercase).count();
        name > 1 && body[name..].starts_with('(')
    });
    let blank = usize::from(spaced.is_some());
    let body = spaced.unwrap_or(formula);
    let before = text[..at].trim_end();
    let is_sum = before.ends_with(|c: char| c.is_ascii_alphanumeric()) && text[..at].len() == before.len();
    if is_sum || !body.starts_with(|c: char| c.is_ascii_alphabetic() || c == '(' || c == '-') {
        return None;
    }
    let mut depth = 0i32;
    let end = body.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        let stops = (depth == 0 && is_han(c))
            || matches!(c, '，' | '。' | '；' | '？' | '”' | '`')
            || (depth == 0 && matches!(c, '"' | '\''))
            || (depth == 0 && (c.is_whitespace() || matches!(c, ',' | ';' | '?')))
            || depth < 0;
        stops.then_some(at)
    });
    let length = end.unwrap_or(body.len());
    let matched = body[..length].trim_end_matches('.');
    let formula_like = matched.contains('(') || cells(matched).is_some() || has_cell(matched);
    formula_like.then(|| (Literal::Formula(format!("={matched}")), 1 + blank + matched.len()))
}

fn has_cell(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '$').any(|part| cells(part).is_some())
}

/// A run of characters without blanks that is an address, a path, a cell or a code.
fn scan_word(text: &str, at: usize) -> Option<(Literal, usize)> {
    if !begins_word(text, at) || text[..at].ends_with(['/', '\\', '_', '-', '@']) {
        return None;
    }
    let rest = &text[at..];
    if rest.starts_with("http://") || rest.starts_with("https://") || rest.starts_with("www.") {
        let address = rest[..url_length(rest)].trim_end_matches(['.', ',', ';', ')', '?', '!']);
        return Some((Literal::Url(address.to_owned()), address.len()));
    }
    let fits = |c: char| (c.is_alphanumeric() && !is_han(c)) || "._-/\\@~+*:$#%".contains(c);
    let end = rest.find(|c: char| !fits(c)).unwrap_or(rest.len());
    let word = rest[..end].trim_end_matches(['.', ':', '-', '/', '*', '+', '?']);
    let formula = &rest[..end];
    if let Some((user, host)) = word.split_once('@')
        && !user.is_empty()
        && host.contains('.')
        && !host.contains('@')
    {
        return Some((Literal::Mail(word.to_owned()), word.len()));
    }
    if is_address(word) {
        return Some((Literal::Url(word.to_owned()), word.len()));
    }
    if let Some(path) = scan_path(formula.trim_end_matches(['.', ':', '-', '+', '?'])) {
        return Some((Literal::Path(path.to_owned()), path.len()));
    }
    if is_named(text, at, word) {
        return Some((Literal::Code(word.to_owned()), word.len()));
    }
    let room_suffixes = ["机房", "会议室", "室", "楼", "栋", "座", "厅", "馆", "层", "教室"];
    if let Some(cells) =
        cells(word).filter(|_| !room_suffixes.iter().any(|word| rest[end..].starts_with(word)))
    {
        return Some((Literal::Cells(cells.to_owned()), cells.len()));
    }
    if is_slashed(word) || is_version(word) {
        return Some((Literal::Code(word.to_owned()), word.len()));
    }
    is_code_identifier(word).then(|| (Literal::Code(word.trim_start_matches('#').to_owned()), word.len()))
}

/// `email m88`, 邮件 A1029: letters and digits after the noun of a thing with an ID.
fn is_named(text: &str, at: usize, word: &str) -> bool {
    const KINDS: [&str; 12] = [
        "邮件",
        "日程",
        "会议",
        "邀请",
        "email",
        "mail",
        "message",
        "event",
        "meeting",
        "invitation",
        "invite",
        "emails",
    ];
    let before = text[..at].trim_end().to_ascii_lowercase();
    let named = KINDS.iter().any(|kind| {
        before
            .strip_suffix(kind)
            .is_some_and(|head| !kind.is_ascii() || !head.ends_with(|c: char| c.is_ascii_alphanumeric()))
    });
    named
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && word.contains(|c: char| c.is_ascii_digit())
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// `en.wikipedia.org/wiki/Aurora`: a URL without a scheme: a host with a known top-level domain, and a path.
fn is_address(word: &str) -> bool {
    const TOP_LEVEL_DOMAINS: [&str; 14] =
        ["com", "org", "net", "edu", "gov", "io", "dev", "cn", "de", "uk", "eu", "example", "info", "app"];
    let Some((host, path)) = word.split_once('/') else { return false };
    let labels: Vec<&str> = host.split('.').collect();
    let plain = |label: &&str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    !path.is_empty()
        && labels.len() > 1
        && labels.iter().all(plain)
        && labels.last().is_some_and(|last| TOP_LEVEL_DOMAINS.contains(last))
}

/// The length of a URL. Chinese characters belong to it after a slash, up to the end of that segment.
fn url_length(text: &str) -> usize {
    let mut in_han = false;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c.is_whitespace() || "，。；！？、）」』》\"”'`<>".contains(c) {
            return at;
        }
        if is_han(c) {
            let particle = matches!(c, '的' | '里' | '上' | '中');
            if particle || (!in_han && before != '/') {
                return at;
            }
            in_han = true;
        } else {
            in_han = in_han && c.is_alphanumeric();
        }
        before = c;
    }
    text.len()
}

/// `feature/login-form`, `origin/main`: a name with slashes, such as that of a branch.
fn is_slashed(word: &str) -> bool {
    let mut parts = word.split('/');
    let plain = |part: &str| {
        part.len() > 1
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && part.bytes().any(|byte| byte.is_ascii_alphanumeric())
    };
    let first =
        parts.next().is_some_and(|part| plain(part) && part.bytes().any(|byte| byte.is_ascii_alphabetic()));
    let rest: Vec<&str> = parts.collect();
    let and_or = ["and/or", "he/she", "yes/no", "read/write", "input/output", "km/h"];
    first
        && !rest.is_empty()
        && rest.iter().all(|part| plain(part))
        && !and_or.contains(&word.to_lowercase().as_str())
}

/// `1.9.0`, `v2.3.1`: a version has more than one point, or begins with `v`.
fn is_version(word: &str) -> bool {
    let digits = word.strip_prefix(['v', 'V']).unwrap_or(word);
    let parts: Vec<&str> = digits.split('.').collect();
    let number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() > 2 && parts.len() < 5 && parts.iter().all(number)
        || digits.len() < word.len() && parts.len() == 2 && parts.iter().all(number)
}

/// A path from a root, with Chinese characters in its folders. It extends to a blank or punctuation, and ends before a word
/// for a location inside it.
fn rooted(text: &str, at: usize) -> Option<(Literal, usize)> {
    if !begins_word(text, at) || text[..at].ends_with(['/', '\\', '_', '-', '@', '.', '~', ':']) {
        return None;
    }
    let rest = &text[at..];
    // `D:\报表`: a drive letter.
    let bytes = rest.as_bytes();
    let drive = bytes.len() > 3
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'\\' | b'/');
    if !drive && !["/", "~/", "./", "../"].iter().any(|root| rest.starts_with(root)) {
        return None;
    }
    let root = if drive { 2 } else { 0 };
    let fits = |c: char| c.is_alphanumeric() || "._-/~+@·\\".contains(c);
    let run = &rest[..root + rest[root..].find(|c: char| !fits(c)).unwrap_or(rest.len() - root)];
    if !run.contains(is_han) {
        return None;
    }
    // 读 /tmp/账单.csv的前三行: a known extension ends the path.
    let ended = run.match_indices('.').find_map(|(dot, _)| {
        let ending = &run[dot + 1..];
        let length = ending.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(ending.len());
        is_extension(&ending[..length].to_ascii_lowercase()).then_some(dot + 1 + length)
    });
    let last = run.rfind(['/', '\\']).map_or(0, |slash| slash + 1);
    let inside = ["里面", "里", "中的", "下面", "下的", "目录", "文件夹", "的", "仓库"];
    let cut = inside.iter().filter_map(|word| run[last..].find(word)).filter(|at| *at > 0).min();
    let end = ended.unwrap_or_else(|| cut.map_or(run.len(), |cut| last + cut));
    let path = run[..end].trim_end_matches(['.', '-']);
    (path.len() > 1).then(|| (Literal::Path(path.to_owned()), path.len()))
}

fn scan_path(word: &str) -> Option<&str> {
    let word = word.strip_suffix(':').unwrap_or(word);
    let known = |name: &str| {
        name.rsplit_once('.')
            .is_some_and(|(stem, ending)| !stem.is_empty() && is_extension(&ending.to_ascii_lowercase()))
    };
    let letters = word.contains(|c: char| c.is_alphabetic());
    let is_rooted = (word.starts_with('/')
        || word.starts_with("./")
        || word.starts_with("../")
        || word.starts_with("~/"))
        && letters;
    let is_drive = word.len() > 3 && word.as_bytes()[1] == b':' && matches!(word.as_bytes()[2], b'\\' | b'/');
    let is_glob = word.contains('*') && letters && (word.contains("*.") || word.contains("**/"));
    let is_folder = word.ends_with('/') && word.len() > 2 && letters && !word.contains(':');
    let has_folders = word.contains('/') && letters && known(word) && !word.contains("//");
    let two_folders = word.matches('/').count() >= 2 && letters && !word.contains(':') && word.len() > 6;
    let bare = !word.contains(['/', ':', '@']) && (known(word) || is_bare_file(word));
    (is_rooted || is_drive || is_glob || is_folder || has_folders || two_folders || bare).then_some(word)
}

fn is_code_identifier(word: &str) -> bool {
    let letters = word.chars().filter(char::is_ascii_alphabetic).count();
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let is_hash = word.starts_with('#') && word.len() > 1 && word[1..].chars().all(char::is_alphanumeric);
    let after_digits = word.find(|c: char| !c.is_ascii_digit()).filter(|at| *at > 0);
    let is_measure = after_digits.is_some_and(|at| {
        let rest = word[at..].to_ascii_lowercase();
        let ordinal = ["st", "nd", "rd", "th", "am", "pm", "d", "x", "e"].contains(&rest.as_str());
        ordinal || crate::lexer::units::of(&rest).is_some() || (rest.starts_with('-') && letters > 0)
    });
    // `7f21`, `66-A`, `20260-7`: a letter between digits, capitals after a dash, or a long number before a dash.
    let inner =
        |pair: &[u8]| pair[0].is_ascii_digit() && pair[2].is_ascii_digit() && pair[1].is_ascii_lowercase();
    let has_inner_letter =
        word.len() >= 4 && digits > 2 && word.as_bytes().windows(3).any(inner) && !word.contains('x');
    let (head, tail) = word.split_once('-').unwrap_or_default();
    let counted = head.len() > 1 && head.bytes().all(|byte| byte.is_ascii_digit());
    let large = (1..3).contains(&tail.len()) && tail.bytes().all(|byte| byte.is_ascii_uppercase());
    let long =
        head.len() > 4 && !tail.is_empty() && tail.len() < 4 && tail.bytes().all(|b| b.is_ascii_digit());
    if plain && (has_inner_letter || counted && (large || long)) {
        return true;
    }
    // A plain number is not a code.
    if word.parse::<f64>().is_ok() {
        return false;
    }
    // `7be90fa`: the hash of a commit may begin with digits.
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if (7..=40).contains(&word.len()) && word.bytes().all(hex) && letters > 1 && digits > 1 {
        return true;
    }
    // `2019-2020` is a code, and `10-15` is not.
    let is_years = word.len() >= 7
        && word.split('-').count() == 2
        && digits + 1 == word.len()
        && word.find('-') == Some(4)
        && matches!(word.len(), 7 | 9);
    let is_identifier = letters > 1 && word.contains('_') && !word.starts_with('_');
    let marked =
        digits > 3 || word.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte == b'-');
    let is_mixed = letters > 0 && digits > 0 && word.len() >= 3 && marked;
    let is_handle = plain
        && word.len() >= 5
        && digits >= 2
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && !word
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic());
    is_hash || is_handle || (plain && !is_measure && (is_years || is_identifier || is_mixed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_literals() {
        let check = |text: &str, expect: &[Literal]| {
            let found: Vec<_> = find(text).into_iter().map(|found| found.literal).collect();
            assert_eq!(found, expect, "{text}");
        };
        let owned = str::to_owned;
        check("read myfile.xlsx now", &[Literal::Path(owned("myfile.xlsx"))]);
        check(
            "帮我读取myfile.xlsx的Sheet1",
            &[Literal::Path(owned("myfile.xlsx")), Literal::Code(owned("Sheet1"))],
        );
        check("在 销售数据.xlsx 的", &[Literal::Path(owned("销售数据.xlsx"))]);
        check("读取销售.xlsx的内容", &[Literal::Path(owned("销售.xlsx"))]);
        check("读取 docs/需求.md", &[Literal::Path(owned("docs/需求.md"))]);
        check("=IF(B2>1,\"a\",\"b\") is", &[Literal::Formula(owned("=IF(B2>1,\"a\",\"b\")"))]);
        check("at docs/a.md.", &[Literal::Path(owned("docs/a.md"))]);
        check(
            "/etc/hosts and C:\\a\\b.txt",
            &[Literal::Path(owned("/etc/hosts")), Literal::Path(owned("C:\\a\\b.txt"))],
        );
        check(
            "write =SUM(B1:B10) in A1",
            &[Literal::Formula(owned("=SUM(B1:B10)")), Literal::Cells(owned("A1"))],
        );
        check(
            "在A1单元格写入公式 =SUM(B1:B10)。",
            &[Literal::Cells(owned("A1")), Literal::Formula(owned("=SUM(B1:B10)"))],
        );
        check("a=1, b = -3", &[]);
        check("mail jo.doe@example.com.", &[Literal::Mail(owned("jo.doe@example.com"))]);
        check("see https://example.com/a?b=1, ok", &[Literal::Url(owned("https://example.com/a?b=1"))]);
        check(
            "say “hello” and 'it's fine' and 「好」",
            &[
                Literal::Quoted(owned("hello")),
                Literal::Quoted(owned("it's fine")),
                Literal::Quoted(owned("好")),
            ],
        );
        check("it's John's", &[]);
        check(
            "[1, 2, 3] and {'a': 1}",
            &[Literal::Json(serde_json::json!([1, 2, 3])), Literal::Json(serde_json::json!({"a": 1}))],
        );
        check("(3, 2) (see above)", &[Literal::Json(serde_json::json!([3, 2]))]);
        check("[red, green]", &[Literal::Json(serde_json::json!(["red", "green"]))]);
        check(
            "copy_range in the 2019-2020 season, rs6034464",
            &[
                Literal::Code(owned("copy_range")),
                Literal::Code(owned("2019-2020")),
                Literal::Code(owned("rs6034464")),
            ],
        );
        check(
            "event 7f21, 66-A and 20260-7 at 5x3 10-15",
            &[Literal::Code(owned("7f21")), Literal::Code(owned("66-A")), Literal::Code(owned("20260-7"))],
        );
        check("移到 财务/发票 文件夹", &[Literal::Path(owned("财务/发票"))]);
        check("INV-2024-7 5kg 2nd 10am", &[Literal::Code(owned("INV-2024-7"))]);
        check("range B1:B10 in A:C", &[Literal::Cells(owned("B1:B10")), Literal::Cells(owned("A:C"))]);
    }
}
