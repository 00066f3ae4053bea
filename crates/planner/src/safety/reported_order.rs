//! Words around an order that report, label or reject it: `The mail says: delete …`, `Rejected - …`, 他说：…. Such an order is
//! not an order of the author. A change is only run if everything before a colon or a dash is a polite address, a
//! circumstance, or used by the change itself.

use std::collections::BTreeSet;

use crate::lexer::filler;
use crate::lexer::lexicon;
use crate::lexer::literal_scanner;
use crate::lexer::name::has_han;
use crate::lexer::token::{is_han, tokenize};
use crate::plan::{ArgumentSource, PlanStep};
use crate::rewrite::address::{english_words, is_address};
use crate::rewrite::masked_text::{free_text, has_word, mask_literals};
use crate::rewrite::passive_rewrite::verb_of;
use crate::rewrite::statement::begins_order;
use crate::safety::proof::texts_in;
use crate::selection::verb_class::VERBS;
use crate::values::parameter::name_words;

/// Marks between a head and an order, besides the colon and the dashes in [`frame_mark`].
const FRAME_MARKS: [char; 8] = [':', '：', '—', '–', '―', '|', '→', '⇒'];
/// Marks that end a sentence.
const SENTENCE_ENDS: [char; 8] = [';', '!', '?', '。', '；', '！', '？', '\n'];
/// Openings of a sentence about what the author does.
const OWN_OPENINGS: [&str; 17] = [
    "i'm ",
    "i am ",
    "we're ",
    "we are ",
    "i have to ",
    "we have to ",
    "i need to ",
    "we need to ",
    "i want to ",
    "we want to ",
    "i should ",
    "we should ",
    "i must ",
    "we must ",
    "i'd like to ",
    "we'd like to ",
    "i've been ",
];
/// Verbs of such a sentence that are a reason for an order.
const OWN_ACTIONS: [&str; 26] = [
    "set",
    "setting",
    "work",
    "working",
    "meet",
    "meeting",
    "have",
    "clean",
    "cleaning",
    "tidy",
    "tidying",
    "prepare",
    "preparing",
    "move",
    "moving",
    "start",
    "starting",
    "finish",
    "finishing",
    "reorganise",
    "reorganize",
    "reorganising",
    "reorganizing",
    "leave",
    "leaving",
    "switch",
];
/// States of a thing that are a reason for an order.
const STATES: [&str; 20] = [
    " there's a typo ",
    " there is a typo ",
    " has a typo ",
    " is misspelt ",
    " has changed",
    " have changed",
    " has a new ",
    " have a new ",
    " has to go",
    " have to go",
    " is missing",
    " are missing",
    " needs a better ",
    " needs a new ",
    " need a new ",
    " is obsolete",
    " are obsolete",
    " is outdated",
    " are outdated",
    " is full",
];
/// The Chinese equivalents, at the end of a head.
const HAN_STATES: [&str; 20] = [
    "升职了",
    "离职了",
    "辞职了",
    "转岗了",
    "转正了",
    "调走了",
    "毕业了",
    "退休了",
    "搬家了",
    "搬走了",
    "换人了",
    "换了",
    "变了",
    "改了",
    "到期了",
    "过期了",
    "过时了",
    "没用了",
    "不用了",
    "不要了",
];
/// Places whose changes may be introduced by their name alone.
const PLACES: [&str; 10] = [
    "graph",
    "knowledge graph",
    "the knowledge graph",
    "calendar",
    "my calendar",
    "知识图谱",
    "图谱",
    "日历",
    "我的日历",
    "知识图谱里",
];
/// `New month, new tab`: words of a heading for a new period.
const PERIOD_WORDS: [&str; 14] = [
    "new", "month", "week", "year", "quarter", "day", "term", "season", "tab", "sheet", "folder", "branch",
    "the", "a",
];
/// Beginnings of words that report, reject or quote, and of the texts in which an order may be reported. None may be in a
/// circumstance.
const REPORT_STEMS: [&str; 67] = [
    "said", "say", "wrote", "writ", "told", "tell", "claim", "ask", "order", "command", "demand", "insist",
    "suggest", "propos", "warn", "refus", "reject", "declin", "deni", "deny", "forb", "prohibit", "cancel",
    "veto", "not", "n't", "no", "never", "nobody", "none", "without", "stop", "avoid", "scam", "spam",
    "phish", "attack", "hack", "fraud", "fake", "mail", "email", "e-mail", "message", "note", "letter",
    "log", "error", "manual", "page", "ticket", "report", "readme", "comment", "chat", "text", "quot",
    "read", "answer", "exampl", "sampl", "titl", "subject", "draft", "idea", "joke", "if",
];
/// Verbs with which a clause reports what someone said or rejected.
const REPORT_VERBS: [&str; 26] = [
    "said",
    "says",
    "wrote",
    "writes",
    "told",
    "tells",
    "claimed",
    "claims",
    "insisted",
    "insists",
    "demanded",
    "demands",
    "commanded",
    "warned",
    "warns",
    "refused",
    "refuses",
    "rejected",
    "rejects",
    "declined",
    "declines",
    "denied",
    "denies",
    "forbade",
    "forbids",
    "vetoed",
];
/// Words that may follow such a verb at the end of its clause.
const REPORT_TAILS: [&str; 18] = [
    "me",
    "us",
    "him",
    "her",
    "them",
    "to",
    "no",
    "it",
    "this",
    "that",
    "so",
    "the",
    "following",
    "order",
    "request",
    "yesterday",
    "today",
    "earlier",
];
/// Words of a clause that is only a verdict about an order: `Rejected.`, `Not allowed.`
const VERDICTS: [&str; 24] = [
    "rejected",
    "refused",
    "declined",
    "denied",
    "cancelled",
    "canceled",
    "forbidden",
    "prohibited",
    "vetoed",
    "scam",
    "spam",
    "phishing",
    "fraud",
    "fake",
    "example",
    "quote",
    "quoted",
    "draft",
    "unauthorized",
    "unauthorised",
    "disapproved",
    "revoked",
    "void",
    "invalid",
];
/// Words that may stand beside a verdict.
const VERDICT_FILLERS: [&str; 12] =
    ["already", "was", "is", "has", "been", "just", "the", "a", "an", "request", "it", "this"];
/// Ends of a Chinese clause that reports or rejects an order.
const HAN_REPORTS: [&str; 31] = [
    "说",
    "说道",
    "写道",
    "写着",
    "写的是",
    "他写",
    "她写",
    "骗子写",
    "邮件写",
    "里写",
    "上写",
    "他称",
    "她称",
    "表示",
    "声称",
    "宣称",
    "命令",
    "要求",
    "建议",
    "提到",
    "拒绝",
    "否决",
    "驳回",
    "禁止",
    "已取消",
    "作废",
    "不允许",
    "不准",
    "警告",
    "告诉我",
    "叫我",
];
/// Chinese verbs of messages, whose text may follow 说.
const HAN_SENDING: [&str; 6] = ["回", "答", "发", "寄", "告诉他", "备注"];
/// Chinese headings of texts that may quote an order.
const HAN_HEADINGS: [&str; 13] = [
    "日志",
    "例如",
    "比如",
    "举例",
    "示例",
    "引用",
    "诈骗",
    "诈骗邮件",
    "垃圾邮件",
    "错误",
    "通知",
    "公告",
    "转发",
];
/// Further words of a head that a changing step uses.
const KNOWN_WORDS: [&str; 12] = [
    "under",
    "called",
    "knowledge",
    "regarding",
    "concerning",
    "two",
    "three",
    "four",
    "one",
    "more",
    "both",
    "each",
];
/// Texts in which an order may be reported, even beside a value of the change.
const TEXTS: [&str; 9] = ["log", "logs", "error", "errors", "readme", "ticket", "manual", "title", "subject"];
/// Words that ask for a preview instead of a change.
const PREVIEWS: [&str; 6] = ["dry run", "dry-run", "preview", "预览", "试运行", "模拟"];
/// Length of the beginning of a text that shows that it is the value of an argument, in characters.
const VALUE_PREFIX_CHARS: usize = 8;

/// A changing step's own words.
struct Used {
    /// The texts and numbers of the arguments, in lower case.
    values: Vec<String>,
    /// The words of the tools' names.
    tools: Vec<String>,
    /// The classes of the verbs in those names.
    classes: BTreeSet<&'static str>,
    /// Whether an argument asks for a preview only.
    previews: bool,
}

impl Used {
    fn of(steps: &[&PlanStep]) -> Self {
        let arguments = || steps.iter().flat_map(|step| &step.arguments);
        let values = arguments().filter_map(|(_, slot)| match slot {
            ArgumentSource::Value(raw) | ArgumentSource::Template(raw) => Some(texts_in(&raw.value())),
            ArgumentSource::ResultOf(_) => None,
        });
        let mut values: Vec<String> = values.flatten().map(|text| text.to_lowercase()).collect();
        values.retain(|text| !text.trim().is_empty());
        values.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let tools = steps.iter().filter_map(|step| step.tool.as_ref());
        let tools: Vec<String> = tools.flat_map(|tool| name_words(tool.as_str())).collect();
        let classes = tools.iter().filter_map(|word| VERBS.tools.get(word.as_str()));
        let is_preview = |name: &str| {
            let name = name.to_lowercase();
            name.contains("dry") || name.contains("preview") || name.contains("simulat")
        };
        Self {
            values,
            classes: classes.flatten().copied().collect(),
            tools,
            previews: arguments().any(|(name, _)| is_preview(name)),
        }
    }

    /// Whether the byte at an offset belongs to a text of an argument.
    fn covers(&self, lower: &str, at: usize) -> bool {
        self.values.iter().any(|value| {
            lower.match_indices(value.as_str()).any(|(start, found)| start < at && at < start + found.len())
        })
    }

    /// Whether a text is the beginning of an argument's text.
    fn is_value(&self, text: &str) -> bool {
        let start: String = text.trim_start().chars().take(VALUE_PREFIX_CHARS).collect();
        let start = start.trim();
        !start.is_empty() && self.values.iter().any(|value| value.contains(start))
    }
}

/// The words before, after or around an order that report it or are not known to be harmless. `request` is the original request,
/// `steps` are its changing steps.
pub(crate) fn find(request: &str, steps: &[&PlanStep]) -> Option<String> {
    let used = Used::of(steps);
    let lower = lowercase_of_same_length(request);
    let literals = literal_scanner::find(request);
    let masked = mask_literals(request, &literals);
    let until = free_text(&masked);
    let mut start = 0;
    let mut previous = ' ';
    for (at, mark) in masked.char_indices() {
        let before = std::mem::replace(&mut previous, mark);
        if at < start {
            continue;
        }
        let end = at + mark.len_utf8();
        let after = masked[end..].chars().next();
        let is_end = SENTENCE_ENDS.contains(&mark) || matches!(mark, '(' | ')' | '（' | '）');
        if is_end || mark == '.' && after.is_none_or(char::is_whitespace) {
            start = end;
        } else if is_frame_mark(mark, before, after) {
            let rest = masked[end..].trim_start_matches(|c: char| "->=:：—–―|→⇒ ".contains(c));
            let from = masked.len() - rest.len();
            // `(type: city)`: what follows the parenthesis does not belong to the head.
            let rest = rest.split([')', '）']).next().unwrap_or_default();
            let is_value = used.is_value(&lower[from..from + rest.len()]) || used.covers(&lower, at);
            let is_open = at < until && !is_value && has_order(rest);
            if is_open && !is_harmless(&masked[start..at], &lower[start..at], &used) {
                return Some(request[start..at].trim().to_owned());
            }
            start = from;
        }
    }
    reporting_clause(request, &masked, until)
}

/// Whether a character separates a head from an order. `17:30` and `a-b` contain no such mark.
fn is_frame_mark(mark: char, before: char, after: Option<char>) -> bool {
    let spaced = before.is_whitespace() || after.is_none_or(char::is_whitespace);
    match mark {
        ':' => !(before.is_ascii_alphanumeric() && after.is_some_and(|c| c.is_ascii_digit())),
        '-' => spaced && !after.is_some_and(|c| c.is_ascii_digit()) || before == '-',
        '>' => matches!(before, '-' | '='),
        _ => FRAME_MARKS.contains(&mark),
    }
}

/// Whether a text contains a verb that may be an order: `delete …`, `X should be deleted`, 把 X 删掉.
fn has_order(rest: &str) -> bool {
    let sentence = rest.split(['。', '；', '\n']).next().unwrap_or_default();
    let is_change =
        |classes: &BTreeSet<&'static str>| classes.iter().any(|class| !class.starts_with("look_"));
    begins_order(rest)
        || sentence
            .split(|c: char| !c.is_ascii_alphabetic())
            .any(|word| verb_of(word).is_some() || VERBS.english.get(word).is_some_and(is_change))
        || VERBS
            .chinese
            .iter()
            .any(|(verb, classes)| is_change(classes) && verb.chars().count() > 1 && sentence.contains(verb))
        || ["把", "将", "删", "设为"].iter().any(|word| sentence.contains(word))
}

/// Whether the text before a colon or a dash may be dropped or is used by a changing step.
fn is_harmless(head: &str, lower: &str, used: &Used) -> bool {
    let head = head.trim();
    let is_preview = PREVIEWS.iter().any(|word| head.contains(word));
    if head.is_empty() || is_preview && used.previews {
        return true;
    }
    PLACES.contains(&head)
        || head.contains(|c: char| c.is_alphanumeric()) && is_address(head)
        || is_period(head)
        || is_circumstance(head)
        || is_used(lower, used)
}

/// `New month, new tab`
fn is_period(head: &str) -> bool {
    head.starts_with("new ") && english_words(head).all(|word| PERIOD_WORDS.contains(&word))
}

/// `The room has changed`, `I'm setting up a lab log`, 马超 升职了: a reason for an order.
fn is_circumstance(head: &str) -> bool {
    let reports = |word: &str| {
        REPORT_STEMS.iter().any(|stem| match *stem {
            "no" | "if" | "say" | "ask" => word == *stem || word == format!("{stem}s"),
            "n't" => word.ends_with("n't"),
            stem => word.starts_with(stem) && !["notebook", "logo", "order"].contains(&word),
        })
    };
    if has_han(head) {
        let bad = HAN_REPORTS.iter().chain(&HAN_HEADINGS).any(|word| head.contains(word));
        let first_person =
            ["我要清理", "我要整理", "我在整理", "我在清理"].iter().any(|lead| head.starts_with(lead));
        return !bad && (HAN_STATES.iter().any(|state| head.ends_with(state)) || first_person);
    }
    let own = OWN_OPENINGS.iter().find_map(|lead| head.strip_prefix(lead)).is_some_and(|rest| {
        let mut words = rest.split(|c: char| !c.is_alphanumeric());
        words.next().is_some_and(|verb| OWN_ACTIONS.contains(&verb))
    });
    let padded = format!(" {head} ");
    // `I'm setting up a lab log`: the author's own action may be about such a text.
    let own_log = |word: &str| own && ["log", "page", "report", "manual", "ticket"].contains(&word);
    let clean = !english_words(head).any(|word| reports(word) && !own_log(word));
    clean && (own || STATES.iter().any(|state| padded.contains(state)))
}

/// The text in lower case. Characters whose other case has another length stay, so that offsets are valid in both texts.
fn lowercase_of_same_length(text: &str) -> String {
    let lower = |c: char| {
        let mut lower = c.to_lowercase();
        lower.next().filter(|one| lower.len() == 0 && one.len_utf8() == c.len_utf8()).unwrap_or(c)
    };
    text.chars().map(lower).collect()
}

/// `In /srv/a, sheet May`: whether a head contains a value of a changing step, or its tool's verb, and no unknown word.
fn is_used(lower: &str, used: &Used) -> bool {
    let mut rest = lower.to_owned();
    let mut has_value = false;
    for value in &used.values {
        if holds(&rest, value) {
            has_value = true;
            rest = rest.replace(value.as_str(), " ");
        }
    }
    let is_quoting = |word: &str| REPORT_STEMS.iter().any(|stem| word.starts_with(stem));
    let is_verb =
        |word: &str| VERBS.english.get(word).is_some_and(|classes| !classes.is_disjoint(&used.classes));
    let mut words = english_words(&rest);
    let first = words.next().unwrap_or_default();
    // `Add an entity`, `Two new entities`: the verb or the object of the tool.
    let names_tool = is_verb(first) && !is_quoting(first)
        || english_words(&rest).any(|word| used.tools.iter().any(|tool| tool == word) && !is_quoting(word));
    let is_text = |word: &str| TEXTS.contains(&word) && !used.tools.iter().any(|tool| tool == word);
    if !has_value && !names_tool
        || english_words(&rest).any(is_text)
        || HAN_HEADINGS.iter().any(|word| rest.contains(word))
    {
        return false;
    }
    let known = lexicon::word_matches(&rest, &tokenize(&rest), &|_| false);
    let mut bytes = rest.clone().into_bytes();
    for word_match in known.iter().filter(|word_match| !word_match.meaning.things.is_empty()) {
        bytes[word_match.start..word_match.end].fill(b' ');
    }
    let rest = String::from_utf8_lossy(&bytes).into_owned();
    let fillers = filler::always();
    let is_known_word = |word: &str| {
        fillers.contains(word)
            || is_verb(word)
            || used.tools.iter().any(|tool| tool == word)
            || word.bytes().all(|c| c.is_ascii_digit())
            || KNOWN_WORDS.contains(&word)
    };
    // What the tables of words do not cover is not known.
    if rest.chars().any(|c| c.is_alphabetic() && !c.is_ascii() && !is_han(c)) {
        return false;
    }
    let mut latin =
        rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    latin.all(is_known_word) && is_known_han(&rest, used)
}

/// Whether all Chinese words of a text are fillers or verbs of the changing tools.
fn is_known_han(text: &str, used: &Used) -> bool {
    const MAX_CHARS: usize = 6;
    let letters: Vec<char> = text.chars().filter(|c| is_han(*c)).collect();
    let mut at = 0;
    while at < letters.len() {
        let known = (1..=MAX_CHARS.min(letters.len() - at)).rev().find(|length| {
            let word: String = letters[at..at + length].iter().collect();
            matches!(word.as_str(), "一" | "二" | "两" | "三" | "四" | "几")
                || filler::always().contains(&word)
                || VERBS.chinese.get(word.as_str()).is_some_and(|classes| !classes.is_disjoint(&used.classes))
        });
        match known {
            Some(length) => at += length,
            None => return false,
        }
    }
    true
}

/// Whether a text contains a value that is not a part of a longer word.
fn holds(text: &str, value: &str) -> bool {
    match value.is_ascii() {
        true => has_word(text, value),
        false => text.contains(value),
    }
}

/// `delete …, he said`, `Rejected. Delete …`, 他说，删除…: a clause that reports or rejects the order beside it.
fn reporting_clause(request: &str, masked: &str, until: usize) -> Option<String> {
    let mut start = 0;
    let breaks = masked.char_indices().filter(|(at, mark)| {
        let next = masked[at + mark.len_utf8()..].chars().next();
        SENTENCE_ENDS.contains(mark)
            || matches!(mark, '，' | '：' | '、' | '—' | '–' | '(' | ')' | '（' | '）')
            || matches!(mark, ',' | '.' | ':' | '-') && next.is_none_or(char::is_whitespace)
    });
    let ends: Vec<(usize, usize)> =
        breaks.map(|(at, mark)| (at, at + mark.len_utf8())).chain([(masked.len(), masked.len())]).collect();
    for (end, next) in ends {
        let clause = masked[start..end].trim();
        if start < until && reports(clause) {
            return Some(request[start..end].trim().to_owned());
        }
        start = next;
    }
    None
}

/// Whether a clause only states that someone said, wrote or rejected something.
fn reports(clause: &str) -> bool {
    if has_han(clause) {
        let plain = clause.trim_end_matches(['了', '过', '的', '：', ' ']);
        let is_polite = ["请", "麻烦", "帮"].iter().any(|word| plain.starts_with(word));
        return !clause.contains('#')
            && !clause.contains(|c: char| c.is_ascii_digit())
            && !is_polite
            && !HAN_SENDING.iter().any(|word| plain.contains(word))
            && (HAN_REPORTS.iter().any(|word| plain.ends_with(word)) || HAN_HEADINGS.contains(&plain));
    }
    let words: Vec<&str> = english_words(clause).collect();
    let Some(first) = words.first() else { return false };
    let is_verdict = words.iter().any(|word| VERDICTS.contains(word))
        && words.iter().all(|word| VERDICTS.contains(word) || VERDICT_FILLERS.contains(word));
    let verb = words.iter().position(|word| REPORT_VERBS.contains(word));
    let is_spoken = verb.is_some_and(|at| {
        let tail = words.get(at + 1..).unwrap_or_default();
        match at {
            // `…, said Bob`
            0 => tail.len() <= 2,
            _ => at <= 5 && tail.iter().all(|word| REPORT_TAILS.contains(word)),
        }
    });
    is_verdict || is_spoken && !VERBS.english.contains_key(*first) && !begins_order(clause)
}
