//! Splits a request into clauses, each of which may be an order: at the ends of sentences, at `then` and 然后, and before
//! verbs.

use crate::lexer::lexicon;
use crate::lexer::literal::Literal;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::lexer::token::{Token, TokenKind};

/// A part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clause {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Conjunctions between two orders; they belong to neither.
const BETWEEN: [&[&str]; 42] = [
    &["and", "then"],
    &["and", "also"],
    &["after", "that"],
    &["and", "finally"],
    &["then"],
    &["finally"],
    &["afterwards"],
    &["lastly"],
    &["next", ","],
    &["also", ","],
    &[",", "also"],
    &["plus", ","],
    &["as", "well", "as"],
    &["然", "后"],
    &["接", "着"],
    &["随", "后"],
    &["最", "后"],
    &["同", "时"],
    &["另", "外"],
    &["此", "外"],
    &["并", "且"],
    &["以", "及"],
    &["顺", "便"],
    &["之", "后", "再"],
    &["第", "一", "步"],
    &["第", "二", "步"],
    &["第", "三", "步"],
    &["首", "先"],
    &["其", "次"],
    &["first", ","],
    &["second", ","],
    &["third", ","],
    &["secondly"],
    &["thirdly"],
    &["firstly"],
    &["additionally"],
    &["furthermore"],
    &["moreover"],
    &["meanwhile"],
    &["接", "下", "来"],
    &["还", "有"],
    &["再", "然", "后"],
];

/// Verbs that start an order.
const VERBS: &str = " accept decline reject stage unstage commit checkout mark draft forward fetch relate forget respond answer push tag cancel postpone reschedule archive git pull note log add append apply ask book build buy calculate call cancel change check clear close compare compute convert copy \
chart count create cut delete describe determine display do download draw drop edit email estimate explain extract fetch fill find format \
generate get give help hide identify import insert invite list locate look make merge message move name open order paste place play \
plot post predict print provide put query read recommend remind remove rename replace reply reserve restart retrieve run save \
schedule search select send set share show simulate solve sort start stop submit subtract summarize switch take tell transfer \
translate turn unmerge bold enter type highlight center italicize underline paint grab pull dump kill wipe erase duplicate clone record store work figure let see preview split combine rank align shade fill update upload use validate verify view watch what what's when where which who whose why how wrap write ";

const HAN_VERBS: [&str; 66] = [
    "把",
    "将",
    "给",
    "在",
    "读",
    "读取",
    "写",
    "写入",
    "写上",
    "删",
    "删除",
    "删掉",
    "创建",
    "新建",
    "新增",
    "添加",
    "插入",
    "复制",
    "重命名",
    "改名",
    "合并",
    "取消",
    "搜",
    "搜索",
    "查",
    "查询",
    "查找",
    "计算",
    "算",
    "求",
    "告诉",
    "看",
    "查看",
    "打开",
    "列出",
    "显示",
    "设置",
    "设为",
    "发送",
    "发",
    "翻译",
    "生成",
    "做",
    "画",
    "保存",
    "下载",
    "上传",
    "更新",
    "修改",
    "替换",
    "提醒",
    "预订",
    "订",
    "播放",
    "转换",
    "换算",
    "总结",
    "整理",
    "验证",
    "检查",
    "统计",
    "排序",
    "导出",
    "导入",
    "用",
    "帮",
];

/// The clauses of a text, in order; at least one.
pub(crate) fn clauses(parsed: &ParsedText<'_>) -> Vec<Clause> {
    let tokens = &parsed.tokens;
    let inside = |token: &Token<'_>| {
        let within = |start: usize, end: usize| start < token.end && token.start < end;
        parsed.mentions.iter().any(|mention| within(mention.start, mention.end))
            || parsed.expressions.iter().any(|found| within(found.start, found.end))
    };
    let mut found = Vec::new();
    let mut start = 0;
    let mut depth = 0i32;
    let mut at = 0;
    let quiet = answer_begins(parsed);
    while let Some(token) = tokens.get(at) {
        // A line break starts a new clause unless a mention or a bracket spans it.
        if let Some(before) = at.checked_sub(1).and_then(|before| tokens.get(before))
            && parsed.text.get(before.end..token.start).is_some_and(|gap| gap.contains('\n'))
            && depth <= 0
            && !parsed.mentions.iter().any(|mention| mention.start < before.end && token.start < mention.end)
        {
            found.push(Clause { start, end: before.end });
            start = token.start;
        }
        if inside(token) {
            at += 1;
            continue;
        }
        depth += i32::from(matches!(token.text, "(" | "（" | "["))
            - i32::from(matches!(token.text, ")" | "）" | "]"));
        let in_text = (matches!(token.text, "," | "，" | "、" | "再" | "并") || token.is_word("and"))
            && quiet.is_some_and(|from| from <= token.start);
        let cut = (depth <= 0 && !in_text).then(|| boundary(parsed, at)).flatten();
        match cut {
            Some(length) => {
                found.push(Clause { start, end: token.start });
                start = tokens.get(at + length - 1).map_or(token.start, |last| last.end);
                at += length;
            }
            None => at += 1,
        }
    }
    found.push(Clause { start, end: parsed.text.len() });
    found.retain_mut(|clause| trim(parsed, clause));
    if found.is_empty() {
        found.push(Clause { start: 0, end: parsed.text.len() });
    }
    found
}

/// `Reply to mail 5520 with: works for me, see you then`: the start of a reply text. Commas do not end it.
pub(crate) fn answer_begins(parsed: &ParsedText<'_>) -> Option<usize> {
    let lower = parsed.text.to_lowercase();
    if let Some(in_text) = text_begins(&lower) {
        return Some(in_text);
    }
    let (at, length) =
        [": ", "："].iter().filter_map(|mark| lower.find(mark).map(|at| (at, mark.len()))).min()?;
    let head = lower.get(..at)?;
    let answers = ["reply", "respond", "回复", "答复", "回信"].iter().any(|verb| head.contains(verb));
    let rest = lower.get(at + length..)?;
    let labelled =
        ["subject", "body", "主题", "正文", "内容"].iter().any(|label| rest.trim_start().starts_with(label));
    let later = [" then ", "然后", "，再", ", and "].iter().any(|word| rest.contains(word));
    (answers && !labelled && !later && head.len() < 80).then_some(at + length)
}

/// `message: drop old and add new`, ，正文 货已到，请安排验收: the start of a labelled text that continues to the end.
fn text_begins(lower: &str) -> Option<usize> {
    const LABELS: [&str; 12] = [
        "message: ",
        "msg: ",
        "body: ",
        "text: ",
        "saying: ",
        ", body ",
        "信息：",
        "正文：",
        "说明：",
        "，正文 ",
        "，信息 ",
        "message is: ",
    ];
    let start = LABELS.iter().filter_map(|label| lower.find(label).map(|at| at + label.len())).min()?;
    let rest = lower.get(start..)?;
    let later = [
        "then ", "然后", "，再", "；", "; ", ", and ", ". ", "另外", "最后", "\n", "\"", "“", "并且", "，并",
    ];
    (!later.iter().any(|word| rest.contains(word))).then_some(start)
}

/// The number of tokens of the boundary at `at`; `None` if there is no boundary.
fn boundary(parsed: &ParsedText<'_>, at: usize) -> Option<usize> {
    let tokens = &parsed.tokens;
    let token = &tokens[at];
    let numbers = at == 0 || parsed.text[..token.start].trim_end().ends_with(|c: char| c.is_ascii_digit());
    let line = parsed.text[..token.start].rsplit('\n').next().unwrap_or_default().trim();
    if numbers && token.text == "." && !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // `without .git`: a dot before a letter does not end a sentence.
    if token.text == "." && parsed.text[token.end..].starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    if matches!(token.text, "." | "?" | "!" | ";" | "。" | "？" | "！" | "；") {
        return Some(1);
    }
    let fits = |words: &&&[&str]| {
        words
            .iter()
            .enumerate()
            .all(|(offset, word)| tokens.get(at + offset).is_some_and(|token| token.is_word(word)))
    };
    if let Some(words) = BETWEEN.iter().filter(fits).max_by_key(|words| words.len()) {
        return Some(words.len());
    }
    let comma = matches!(token.text, "," | "，" | "、");
    let mut next = at + 1;
    if comma {
        if let Some(words) = BETWEEN.iter().find(|words| {
            words
                .iter()
                .enumerate()
                .all(|(offset, word)| tokens.get(next + offset).is_some_and(|token| token.is_word(word)))
        }) {
            return Some(1 + words.len());
        }
        let small = |token: &Token<'_>| {
            token.is_any(&["and", "please", "also", "then", "now", "finally"])
                || "并再先又也请里面帮我还要都需想麻烦它".contains(token.text)
        };
        while tokens.get(next).is_some_and(small) {
            next += 1;
        }
        // ，结果写到 B1: the result is passed to the next order.
        let result = tokens.get(next).zip(tokens.get(next + 1));
        if result.is_some_and(|(first, second)| first.text == "结" && second.text == "果")
            && begins_verb(parsed, next + 2)
        {
            return Some(1);
        }
        if begins_with_other(parsed, at, next) {
            return Some(1);
        }
        if token.text != "、" && both_ask(parsed, at) {
            return Some(1);
        }
        // 、 separates list items; a word that may be a verb starts a clause only if it is unambiguous.
        let begins = match token.text {
            "、" => begins_plainly(parsed, next),
            _ => begins_verb(parsed, next),
        };
        return begins.then_some(next - at);
    }
    if token.is_word("and") || matches!(token.text, "并" | "再") {
        while tokens.get(next).is_some_and(|token| matches!(token.text, "再" | "且" | "也")) {
            next += 1;
        }
        // `and tentatively accept …`: an adverb may precede the verb.
        let adverb = tokens.get(next).is_some_and(|token| token.text.len() > 4 && token.text.ends_with("ly"));
        return (begins_verb(parsed, next)
            || begins_unknown(parsed, next)
            || adverb && begins_verb(parsed, next + 1)
            || noun_clause(parsed, at))
        .then_some(next - at);
    }
    None
}

/// 现在东京几点，23*47 等于多少: whether a question follows a comma and another question or a calculation precedes it.
fn both_ask(parsed: &ParsedText<'_>, comma: usize) -> bool {
    const QUESTIONS: [&str; 15] = [
        "几点",
        "多少",
        "几个",
        "几天",
        "几号",
        "几月",
        "几年",
        "星期几",
        "周几",
        "什么",
        "哪些",
        "哪个",
        "哪里",
        "谁",
        "吗",
    ];
    const ELLIPTICAL: [&str; 11] =
        ["有", "是", "都", "分别", "一共", "共", "总共", "还", "各", "其中", "里面"];
    const ENDS: [char; 8] = ['，', ',', '。', '？', '?', '！', '；', '\n'];
    let comma = &parsed.tokens[comma];
    let before_comma = parsed.text[..comma.start].rsplit(ENDS).next().unwrap_or_default();
    let right = parsed.text[comma.end..].split(ENDS).next().unwrap_or_default();
    let is_question = |part: &str| QUESTIONS.iter().any(|word| part.contains(word));
    let calculates = parsed
        .expressions
        .iter()
        .any(|found| found.end <= comma.start && found.start + before_comma.len() >= comma.start);
    // 这个仓库是什么状态，有哪些文件变了: a question without a subject continues the one before the comma.
    let is_elliptical = ELLIPTICAL.iter().any(|word| right.trim_start().starts_with(word));
    is_question(right) && !is_elliptical && (is_question(before_comma) || calculates)
}

/// ev-88 的邀请接受，ev-89 的邀请拒绝掉: whether another thing of the same kind with its own verb follows.
fn begins_with_other(parsed: &ParsedText<'_>, comma: usize, at: usize) -> bool {
    // ，邮件 mail-72 删掉: the noun of the thing may precede its name.
    let rest = parsed.tokens.get(at).and_then(|token| parsed.text.get(token.start..)).unwrap_or_default();
    let kind = ["邮件", "日程", "会议"].iter().find(|kind| rest.starts_with(**kind));
    let at = at + kind.map_or(0, |kind| kind.chars().count());
    let Some(token) = parsed.tokens.get(at).filter(|_| parsed.tokens[comma].text != "、") else {
        return false;
    };
    let code = |value: &MentionValue| {
        matches!(value, MentionValue::Literal(Literal::Code(_) | Literal::Mail(_)))
            || kind.is_some() && matches!(value, MentionValue::Number(_))
    };
    let begins = parsed.mentions.iter().any(|mention| mention.start == token.start && code(&mention.value));
    let comma = &parsed.tokens[comma];
    let before = parsed.mentions.iter().any(|mention| mention.end <= comma.start && code(&mention.value));
    let own = |start: usize, end: usize| {
        let text = parsed.text.get(start..end).unwrap_or_default();
        let word_matches = lexicon::word_matches(text, &crate::lexer::token::tokenize(text), &|_| false);
        word_matches.iter().any(|word_match| {
            !word_match.meaning.verbs.is_empty()
                && crate::lexer::name::has_han(&text[word_match.start..word_match.end])
        })
    };
    let rest = parsed.text.get(token.start..).unwrap_or_default();
    let end = token.start + rest.find(['，', '。', '；', ',']).unwrap_or(rest.len());
    begins && before && own(0, comma.start) && own(token.start, end)
}

/// `… and water the plants`: whether a word that is in no table stands in the position of a verb, before an object.
fn begins_unknown(parsed: &ParsedText<'_>, at: usize) -> bool {
    const OBJECTS: [&str; 11] =
        ["it", "them", "the", "my", "our", "this", "that", "me", "these", "us", "him"];
    let (Some(word), Some(object)) = (parsed.tokens.get(at), parsed.tokens.get(at + 1)) else {
        return false;
    };
    let known =
        !lexicon::word_matches(word.text, &crate::lexer::token::tokenize(word.text), &|_| false).is_empty();
    let mentioned =
        parsed.mentions.iter().any(|mention| mention.start < word.end && word.start < mention.end);
    word.kind == TokenKind::Word
        && word.text.len() > 2
        && word.text.bytes().all(|byte| byte.is_ascii_lowercase())
        && !known
        && !mentioned
        && !crate::lexer::stop_words::is_stop(word.text)
        && !word.text.ends_with("ly")
        && object.is_any(&OBJECTS)
}

/// `… and the last 3 commits`: whether another kind of thing follows as a second object of the same verb.
fn noun_clause(parsed: &ParsedText<'_>, at: usize) -> bool {
    let tokens = &parsed.tokens;
    let Some(next) = tokens.get(at + 1).filter(|next| next.is_any(&["the", "its", "their", "also", "all"]))
    else {
        return false;
    };
    let literal = |token: &Token<'_>| {
        parsed.mentions.iter().any(|mention| {
            matches!(mention.value, MentionValue::Literal(_))
                && mention.start < token.end
                && token.start < mention.end
        })
    };
    let word_matches = lexicon::word_matches(parsed.text, tokens, &literal);
    let end = tokens.get(at + 6).map_or(parsed.text.len(), |token| token.start);
    let own = |row: &usize| {
        ["commit", "branch", "status", "diff", "staged", "unstaged"].contains(&lexicon::thing(*row).name)
    };
    let later = word_matches.iter().find(|word_match| {
        word_match.start >= next.start && word_match.end <= end && word_match.meaning.things.iter().any(own)
    });
    let Some(later) = later else { return false };
    word_matches.iter().take_while(|word_match| word_match.end <= next.start).any(|word_match| {
        word_match.meaning.things.iter().any(own)
            && word_match.meaning.things.iter().all(|row| !later.meaning.things.contains(row))
    })
}

/// Whether a word is a verb that starts an order.
pub(crate) fn is_verb(word: &str) -> bool {
    VERBS.contains(&format!(" {} ", word.to_lowercase()))
}

fn begins_plainly(parsed: &ParsedText<'_>, at: usize) -> bool {
    let rest = parsed.tokens.get(at).and_then(|token| parsed.text.get(token.start..)).unwrap_or_default();
    HAN_VERBS.iter().any(|verb| rest.starts_with(verb))
}

fn begins_verb(parsed: &ParsedText<'_>, at: usize) -> bool {
    let Some(token) = parsed.tokens.get(at) else { return false };
    match token.kind {
        // `A1 写 …`: a cell followed by its verb.
        _ if parsed.mentions.iter().any(|mention| {
            matches!(mention.value, MentionValue::Literal(Literal::Cells(_))) && mention.start == token.start
        }) =>
        {
            let next = parsed.tokens.get(at + 1);
            next.is_some_and(|next| next.kind == TokenKind::Han && begins_verb(parsed, at + 1))
        }
        // A capitalised word inside a sentence is a name: `write Name, Email into …`.
        TokenKind::Word => {
            is_verb(token.text)
                && !(at > 0 && token.is_capital() && !starts_sentence(parsed, at))
                && !is_label(parsed, at)
        }
        TokenKind::Han => {
            let rest = &parsed.text[token.start..];
            // ，抄送 a@b.cn adds a recipient.
            if rest.starts_with("抄送") && at > 0 {
                return false;
            }
            // 放在 E2 is a location, not a separate order.
            let word_matches = lexicon::word_matches(rest, &crate::lexer::token::tokenize(rest), &|_| false);
            let first = word_matches.first().filter(|word_match| {
                word_match.start == 0
                    && (!rest.starts_with('放')
                        || ["放首", "放一首", "放点"].iter().any(|play| rest.starts_with(play)))
            });
            // ，求和 alone names an aggregation, not a separate order.
            let sums = ["求和", "求平均", "取平均", "求平均值", "计数", "求总和", "求最大值", "求最小值"];
            let end = rest.find(|c: char| !crate::lexer::token::is_han(c)).unwrap_or(rest.len());
            if sums.contains(&&rest[..end]) {
                return false;
            }
            begins_plainly(parsed, at) || first.is_some_and(|word_match| !word_match.meaning.verbs.is_empty())
        }
        TokenKind::Number => {
            let next = parsed.tokens.get(at + 1);
            next.is_some_and(|next| matches!(next.text, "." | "、" | ")")) && begins_verb(parsed, at + 2)
        }
        TokenKind::Mark => false,
    }
}

/// `…, type "project"`: whether a word that may be a verb is a label, with its value directly after it.
fn is_label(parsed: &ParsedText<'_>, at: usize) -> bool {
    let labels = ["type", "name", "title", "note", "message", "text", "place"];
    let Some(next) = parsed.tokens.get(at + 1) else { return false };
    at > 0
        && parsed.tokens[at].is_any(&labels)
        && (matches!(next.text, "\"" | "“" | "'" | ":" | "=")
            || next.is_word("is")
            || is_reported(parsed, at))
}

/// `…, type person, observation …`: whether exactly one word stands between a label and the next mark.
fn is_reported(parsed: &ParsedText<'_>, at: usize) -> bool {
    let after = parsed.tokens.get(at + 2);
    parsed.tokens[at].is_any(&["type", "name", "title"])
        && parsed.tokens.get(at + 1).is_some_and(|next| next.kind == TokenKind::Word)
        && after.is_none_or(|after| matches!(after.text, "," | "." | ":" | ";"))
}

/// Whether a word is at the start of a sentence or of a list item.
fn starts_sentence(parsed: &ParsedText<'_>, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| parsed.tokens.get(at));
    let gap =
        before.and_then(|before| parsed.text.get(before.end..parsed.tokens[at].start)).unwrap_or_default();
    gap.contains('\n')
        || before.is_some_and(|before| !matches!(before.text, "," | "，" | "、") && !before.is_word("and"))
}

/// Trims whitespace, separators and list numbers. Returns whether anything is left.
fn trim(parsed: &ParsedText<'_>, clause: &mut Clause) -> bool {
    let Some(text) = parsed.text.get(clause.start..clause.end) else { return false };
    let trimmed = text.trim_matches(|c: char| c.is_whitespace() || ",，、:：;；".contains(c));
    // Removes an unpaired quote at either end; paired quotes belong to the text that they enclose.
    let trimmed = match trimmed.matches('"').count() {
        1 => trimmed.trim_matches('"').trim(),
        _ => trimmed,
    };
    let number = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let after = &trimmed[number..];
    let item = after.strip_prefix(['.', '、', ')', '）']).filter(|_| number > 0);
    // `3.5` is a number, not the start of a list item.
    let item = item.filter(|item| !item.starts_with(|c: char| c.is_ascii_digit()));
    let trimmed = item.map_or(trimmed, str::trim_start);
    let trimmed = trimmed.strip_prefix("- ").unwrap_or(trimmed);
    let start = trimmed.as_ptr() as usize - parsed.text.as_ptr() as usize;
    *clause = Clause { start, end: start + trimmed.len() };
    trimmed.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;

    #[test]
    fn splits_request_into_clauses() {
        let check = |text: &str, expect: &[&str]| {
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            let found: Vec<_> =
                clauses(&parsed).iter().map(|clause| &text[clause.start..clause.end]).collect();
            assert_eq!(found, expect, "{text}");
        };
        check("Read a.txt and then list docs/", &["Read a.txt", "list docs/"]);
        check("计算 88*12，并把结果写入 a.xlsx", &["计算 88*12", "把结果写入 a.xlsx"]);
        check("1. read a.txt\n2. delete b.txt", &["read a.txt", "delete b.txt"]);
        check("what time is it in Tokyo and in Berlin?", &["what time is it in Tokyo and in Berlin"]);
        check("say \"one. two; then\" to me", &["say \"one. two; then\" to me"]);
        check("先看看 a.xlsx，再读取“2026”", &["先看看 a.xlsx", "读取“2026”"]);
        check("Compute 15 * 24 and write the result to B2", &["Compute 15 * 24", "write the result to B2"]);
        check("现在东京几点，23*47 等于多少", &["现在东京几点", "23*47 等于多少"]);
        check("算一下 3*7，现在几点？", &["算一下 3*7", "现在几点"]);
        check("这个仓库是什么状态，有哪些文件变了", &["这个仓库是什么状态，有哪些文件变了"]);
        check("一件 5 元，3 件多少钱", &["一件 5 元，3 件多少钱"]);
        check("", &[""]);
    }
}
