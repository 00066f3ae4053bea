//! Chinese translations of the messages of native tools: a table of sentences with placeholders, for errors and notes
//! that are created as English text; and outputs that include both languages.

use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::{RawJson, RawObject};

/// The key in a text block's `_meta` with the Chinese text, which is shown to users; models get the English one.
const CHINESE: &str = "toolhub/zh";

/// English sentences and their translations. `{}` is a placeholder; its text is copied in the same order.
const SENTENCES: &[(&str, &str)] = &[
    // The calculator.
    (
        "the expression has {} characters, more than {}: calculate it in parts",
        "表达式有 {} 个字符，超过 {} 个：请分开计算",
    ),
    (
        "the result has {} characters, more than {}: ask for fewer, as in `… to 20 sf`",
        "结果有 {} 个字符，超过 {} 个：请减少位数，例如 `… to 20 sf`",
    ),
    (
        "the expression cannot be read: an operator or an operand is missing",
        "无法读懂表达式：缺少运算符或运算数",
    ),
    (
        "there are no exchange rates here: look up the rate, leave out the currency and multiply by the rate",
        "这里没有汇率：请先查出汇率，去掉货币单位后乘以汇率",
    ),
    ("there is no clock here: use `get_time`", "这里没有时钟：请使用 `get_time`"),
    ("there are no dates here: use `get_time`", "这里不处理日期：请使用 `get_time`"),
    ("there are no dice and no random numbers here", "这里没有骰子，也没有随机数"),
    ("division by zero: the divisor comes to 0", "除数为零：除数的结果是 0"),
    ("modulo by zero: the divisor comes to 0", "对零取余：除数的结果是 0"),
    ("exponent too large: calculate with the logarithm instead", "指数太大：请改用对数计算"),
    ("value is too large: calculate with the logarithm instead", "数值太大：请改用对数计算"),
    ("expected a number: an operand is missing, or is no number", "这里应是数字：缺少运算数，或者它不是数字"),
    (
        "right-hand side of unit conversion has a numerical value: name a unit alone after `to`",
        "换算的目标带有数值：`to` 之后只写单位",
    ),
    ("expected an object: `of` follows a percentage: `20% of 50`", "`of` 要跟在百分数之后：`20% of 50`"),
    ("{}: the argument is out of the function's range", "参数超出了函数的范围（{}）"),
    ("{}: an operand is missing", "缺少运算数（{}）"),
    (
        "cannot convert from {} to {}: units '{}' and '{}' are incompatible",
        "无法把 {} 换算成 {}：单位 {} 和 {} 不相容",
    ),
    (
        "gave up after {} s: the numbers get too many digits; use smaller exponents, or calculate with the logarithm",
        "计算 {} 秒后放弃：位数太多；请用更小的指数，或改用对数计算",
    ),
    ("`{}` is not a known function", "没有函数 `{}`"),
    (
        "`{}` is not known: write units and functions in English, such as `km`, `kg`, `sqrt`",
        "不认识 `{}`：单位和函数请用英文，例如 `km`、`kg`、`sqrt`",
    ),
    ("`{}` is not known: did you mean `{}`?", "不认识 `{}`：是否指 `{}`？"),
    (
        "`{}` is not known as a unit, constant or function; give it a value with `{}`",
        "`{}` 不是已知的单位、常数或函数；可用 `{}` 给它赋值",
    ),
    ("`{}` needs an argument", "`{}` 需要参数"),
    ("`{}` does not take {} arguments", "`{}` 不接受 {} 个参数"),
    ("only a number can be rounded", "只有数字可以取整"),
    (
        "the result is no number: give functions their arguments, as in `sqrt(2)`",
        "结果不是数字：请给函数写上参数，例如 `sqrt(2)`",
    ),
    (
        "the expression is too long in one piece: put parentheses around its parts",
        "表达式一段太长：请用括号分段",
    ),
    ("`{}` has no meaning in an expression", "`{}` 在表达式中没有意义"),
    (
        "`{}` has no meaning here: write a ratio as a division, and give functions by name",
        "`{}` 在这里没有意义：比例请写成除法，函数请写名称",
    ),
    ("`.` needs a digit beside it", "`.` 旁边要有数字"),
    ("`{}` is out of range: exponents run from {} to {}", "`{}` 超出范围：指数须在 {} 到 {} 之间"),
    ("`{}` is too many: {} at most", "`{}` 太多：最多 {}"),
    ("a `)` has no `(`", "`)` 没有对应的 `(`"),
    ("a `(` is not closed", "`(` 没有闭合"),
    ("a pair of parentheses is empty", "有一对括号是空的"),
    (
        "there is nothing to calculate: give an expression such as `0.1 + 0.2`",
        "没有可计算的内容：请给出表达式，例如 `0.1 + 0.2`",
    ),
    ("write `{}` with parentheses: `{}`", "`{}` 要写括号：`{}`"),
    ("an argument of `{}` is missing", "`{}` 缺少一个参数"),
    (
        "parentheses are nested more than {} deep: calculate the parts first",
        "括号嵌套超过 {} 层：请先计算各部分",
    ),
    (
        "the commas of `{}` have two readings: leave out the separators of thousands",
        "`{}` 中的逗号有两种读法：请去掉千位分隔符",
    ),
    ("`gcd` and `lcm` take whole numbers", "`gcd` 和 `lcm` 只接受整数"),
    // The clock.
    ("an argument has {} bytes, more than {}", "参数有 {} 字节，超过 {}"),
    (
        "`{}` is no time: write `2026-03-29T15:00`, `3pm` or `tomorrow 15:30`, with `Z`, `+02:00` or a place after it where it is not the local time of `zone`",
        "`{}` 不是时间：请写成 `2026-03-29T15:00`、`3pm` 或 `明天15:30`；若不是 `zone` 的当地时间，在后面加上 `Z`、`+02:00` 或地名",
    ),
    (
        "`{}` is no offset: write `+3h`, `-90m`, `in 2 days`, `3 hours ago`, `tomorrow`, `next monday` or `2天后`",
        "`{}` 不是时间偏移：请写成 `+3h`、`-90m`、`2天后`、`三小时前`、`明天` 或 `下周一`",
    ),
    ("`{}` is no offset: they run from -12:00 to +14:00", "`{}` 不是时差：时差从 -12:00 到 +14:00"),
    (
        "`{}` is too far: it leads out of the calendar, which ends with the year 9999",
        "`{}` 太远：超出了日历，日历到 9999 年为止",
    ),
    ("`{}` is ambiguous: name the zone, one of {}", "`{}` 有多个可能：请写出时区，为 {} 之一"),
    (
        "the time zone of `{}` is not known: give an IANA name such as `Asia/Tokyo`, a larger city of the same zone, or an offset such as `UTC+8`",
        "不知道 `{}` 的时区：请给出 IANA 名称（如 `Asia/Tokyo`）、同一时区的大城市，或时差（如 `UTC+8`）",
    ),
    ("the time zone of `{}` is not known: did you mean {}?", "不知道 `{}` 的时区：是否指 {}？"),
    ("{} does not exist in {}: the clocks skip it", "{1} 没有 {0}：时钟在此跳过"),
    (
        "{} comes twice in {}; this is the first, the second has the offset {}",
        "{1} 有两次 {0}；这是第一次，第二次的时差为 {2}",
    ),
    (
        "the variable `TZ` of this machine names no zone, so this is UTC: give `zone`",
        "本机的变量 `TZ` 不是时区，因此这是 UTC：请给出 `zone`",
    ),
    // Files.
    (
        "read as {}, as it is not UTF-8; give `encoding` if this looks wrong",
        "按 {} 读取（不是 UTF-8）；若显示有误，请给出 `encoding`",
    ),
    (
        "line {} is longer than 1 MiB: read on with offset_line = {}, offset_char = {}",
        "第 {} 行超过 1 MiB：用 offset_line = {}、offset_char = {} 继续读取",
    ),
    (
        "line {}; there is more: read on with offset_line = {}",
        "第 {} 行；后面还有：用 offset_line = {} 继续读取",
    ),
    (
        "lines {} to {}; there is more: read on with offset_line = {}",
        "第 {} 至 {} 行；后面还有：用 offset_line = {} 继续读取",
    ),
    ("line {}, the last of the file", "第 {} 行，文件的最后一行"),
    ("lines {} to {}, the last of the file", "第 {} 至 {} 行，到文件末尾"),
    ("characters that could not be read, shown as �: {}", "无法读取、显示为 � 的字符：{} 个"),
    ("`{}` lies too deep", "`{}` 层次太深"),
    (
        "{} more are not shown: give a `pattern`, or the path of a folder inside",
        "另有 {} 项未显示：请给出 `pattern`，或其中某个文件夹的路径",
    ),
    ("only the first {} entries were looked at", "只查看了前 {} 项"),
    (
        "no folder may be read: list some in toolhub.toml, as `[native] folders = [\"…\"]`",
        "没有可读取的文件夹：请在 toolhub.toml 中写明，如 `[native] folders = [\"…\"]`",
    ),
    ("the folder `{}` cannot be opened: {}", "无法打开文件夹 `{}`：{}"),
    (
        "there is no `{}` in {}; use `list_files` to see what there is",
        "{1} 中没有 `{0}`；可用 `list_files` 查看有哪些文件",
    ),
    ("there is no `{}` in {}; did you mean {}?", "{1} 中没有 `{0}`；是否指 {2}？"),
    ("`{}` leads outside of the folders that may be read: {}", "`{}` 在可读取的文件夹之外：{}"),
    ("`{}` is no folder: use `read_file`", "`{}` 不是文件夹：请使用 `read_file`"),
    ("`{}` is a folder: use `list_files`", "`{}` 是文件夹：请使用 `list_files`"),
    ("`{}` is no file that can be read", "`{}` 不是可读取的文件"),
    ("`{}` cannot be opened: {}", "无法打开 `{}`：{}"),
    ("`{}` cannot be read: {}", "无法读取 `{}`：{}"),
    (
        "there is no encoding `{}`: use `utf-8`, `gbk`, `gb18030`, `big5`, `utf-16le` or the like",
        "没有编码 `{}`：请使用 `utf-8`、`gbk`、`gb18030`、`big5`、`utf-16le` 等",
    ),
    ("`{}` has {} line: offset_line = {} is past its end", "`{}` 只有 {} 行：offset_line = {} 已超出末尾"),
    ("`{}` has {} lines: offset_line = {} is past its end", "`{}` 只有 {} 行：offset_line = {} 已超出末尾"),
];

/// Translates an error of a native tool; English only if the table has no matching sentence.
pub(crate) fn in_chinese(english: String) -> LocalizedText {
    let found = SENTENCES.iter().find_map(|(sentence, chinese)| Some((gaps(sentence, &english)?, *chinese)));
    match found {
        Some((gaps, chinese)) => LocalizedText::new(english.clone(), filled(chinese, &gaps)),
        None => LocalizedText::from(english),
    }
}

/// A text block in English with the Chinese text in `_meta`, if it differs.
pub(crate) fn block(said: &LocalizedText) -> RawObject {
    let (en, zh) = (said.localize(Lang::En), said.localize(Lang::Zh));
    let meta = (en != zh).then(|| RawObject::default().with(CHINESE, zh));
    let block = RawObject::default().with("type", "text").with("text", en);
    meta.into_iter().fold(block, |block, meta| block.with("_meta", meta))
}

/// An output with one such block.
pub(crate) fn with_chinese(said: &LocalizedText) -> RawObject {
    RawObject::default().with("content", RawJson::of(&[block(said)]))
}

/// Notes in brackets, for the end of an output.
pub(crate) fn bracketed(notes: Vec<String>) -> Option<LocalizedText> {
    let notes: Vec<LocalizedText> = notes.into_iter().map(in_chinese).collect();
    let said = |lang: Lang| notes.iter().map(|note| note.localize(lang)).collect::<Vec<_>>();
    let both = || {
        LocalizedText::new(
            format!("[{}]", said(Lang::En).join("; ")),
            format!("[{}]", said(Lang::Zh).join("；")),
        )
    };
    (!notes.is_empty()).then(both)
}

/// The texts of the placeholders of a sentence; `None` if the text does not match.
fn gaps<'a>(sentence: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = sentence.split("{}");
    let mut rest = text.strip_prefix(parts.next()?)?;
    let parts: Vec<&str> = parts.collect();
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        let end = match (last, part.is_empty()) {
            (true, true) => rest.len(),
            (true, false) => rest.len().checked_sub(part.len()).filter(|_| rest.ends_with(part))?,
            (false, _) => rest.find(part)?,
        };
        found.push(&rest[..end]);
        rest = &rest[end + part.len()..];
    }
    rest.is_empty().then_some(found)
}

/// Replaces the placeholders of a sentence, in order or by number.
fn filled(sentence: &str, gaps: &[&str]) -> String {
    let mut text = sentence.to_owned();
    for (at, gap) in gaps.iter().enumerate() {
        let numbered = format!("{{{at}}}");
        text = match text.contains(&numbered) {
            true => text.replacen(&numbered, gap, 1),
            false => text.replacen("{}", gap, 1),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_said_in_chinese() {
        let check = |english: &str, expect: &str| {
            let text = in_chinese(english.to_owned());
            assert_eq!(
                (text.localize(Lang::En), text.localize(Lang::Zh)),
                (english.to_owned(), expect.to_owned())
            );
        };
        check("division by zero: the divisor comes to 0", "除数为零：除数的结果是 0");
        check(
            "there is no `a.txt` in `docs`; use `list_files` to see what there is",
            "`docs` 中没有 `a.txt`；可用 `list_files` 查看有哪些文件",
        );
        check("`x` is not known: did you mean `y`?", "不认识 `x`：是否指 `y`？");
        check("something new", "something new");
        check(
            "lines 3 to 9; there is more: read on with offset_line = 10",
            "第 3 至 9 行；后面还有：用 offset_line = 10 继续读取",
        );
    }

    #[test]
    fn every_sentence_keeps_its_gaps() {
        for (english, chinese) in SENTENCES {
            let count = english.matches("{}").count();
            let numbered = (0..count).filter(|at| chinese.contains(&format!("{{{at}}}"))).count();
            assert_eq!(chinese.matches("{}").count() + numbered, count, "{english}");
        }
    }
}
