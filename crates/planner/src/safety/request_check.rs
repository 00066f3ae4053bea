//! Finds negations, conditions and questions in a request for a complete plan. Rules recognise the operation in a request, but not
//! whether it is wanted: a change is run only if the request contains no negation, condition or question.

use toolhub_core::lang::LocalizedText;

/// Maximum number of steps of one request.
const MAX_PLAN_STEPS: usize = 40;
/// Maximum length of a request for rules, in bytes. The rest of a longer one is not planned.
pub(crate) const MAX_REQUEST_BYTES: usize = 8 << 10;

/// Words that forbid an action or take it back, wherever they are in a request.
const FORBIDDING_WORDS: [&str; 24] = [
    "never mind",
    "must not",
    "should not",
    "shouldn't",
    "not to",
    "不需要",
    "没必要",
    "不准",
    "不许",
    "no need to",
    "先不",
    "不必",
    "don't",
    "don’t",
    "do not",
    "never",
    "without",
    "avoid",
    "instead of",
    "不要",
    "别",
    "请勿",
    "不用",
    "无需",
];
/// Words of a question how to do something.
const HOW_TO_WORDS: [&str; 12] = [
    "what would happen",
    "what command",
    "is it possible to",
    "how do",
    "how can i",
    "how to",
    "how would",
    "how should",
    "怎么",
    "如何",
    "怎样",
    "what happens if",
];

/// Words that mark a question whether to do something, a condition, or an alternative.
const UNDECIDED_WORDS: [&str; 22] = [
    "should i",
    "shall i",
    "should we",
    "is it safe",
    "is it ok",
    "is it okay",
    "if",
    "unless",
    "except",
    "only when",
    "or",
    "要不要",
    "该不该",
    "应不应该",
    "是否应该",
    "是否需要",
    "如果",
    "假如",
    "要是",
    "除非",
    "除了",
    "或者",
];

/// Words that begin a question about a past action.
const PAST_QUESTION_STARTS: [&str; 12] = [
    "did ",
    "was ",
    "were ",
    "has ",
    "have ",
    "who ",
    "why did ",
    "when did ",
    "why was ",
    "when was ",
    "hasn't ",
    "didn't ",
];
/// The Chinese equivalents, at any position.
const PAST_QUESTION_WORDS_HAN: [&str; 13] = [
    "了没有",
    "了没？",
    "了吗",
    "是谁",
    "是不是被",
    "有没有被",
    "是否被",
    "是不是已经",
    "谁把",
    "谁删",
    "谁改",
    "为什么被",
    "什么时候被",
];

/// Whether a request asks if something was done, or for the person that did it.
pub(crate) fn asks_about_past(request: &str) -> bool {
    let own = own_words(&request.to_lowercase());
    PAST_QUESTION_STARTS.iter().any(|word| own.trim_start().starts_with(word))
        || PAST_QUESTION_WORDS_HAN.iter().any(|word| own.contains(word))
}

/// Whether a request forbids an action, or is a question about how to do it.
pub(crate) fn forbids_action(request: &str) -> bool {
    let own = own_words(&request.to_lowercase());
    let negated = FORBIDDING_WORDS.iter().filter(|word| !["without", "avoid", "instead of"].contains(*word));
    let how = HOW_TO_WORDS.iter();
    negated.chain(how).any(|word| match word.is_ascii() {
        true => has_word(&own, word),
        false => plain_han(&own).contains(*word),
    })
}

/// The position of the question word in a Chinese how-to question.
pub(crate) fn how_to_position(request: &str) -> Option<usize> {
    let found = ["怎么", "如何", "怎样"].iter().filter_map(|word| request.find(word)).min()?;
    let state = ["怎么样", "怎样了", "怎么用", "怎么回事", "怎么说"]
        .iter()
        .any(|word| request[found..].starts_with(word));
    (!state).then_some(found)
}

/// The text without the words in which 别 is not a negation.
fn plain_han(text: &str) -> String {
    let words = ["区别", "分别", "类别", "级别", "特别", "别名", "识别", "性别", "怎么样", "怎样了"];
    words.iter().fold(text.to_owned(), |text, word| text.replace(word, ""))
}

/// The request without quoted texts and formulas: they are values, not instructions.
pub(crate) fn own_words(request: &str) -> String {
    let mut remaining = String::with_capacity(request.len());
    let mut until: Option<char> = None;
    let mut before = ' ';
    for letter in request.chars() {
        match until {
            Some(end) if letter == end => until = None,
            Some(_) => {}
            // An apostrophe within a word does not open a quotation.
            None if letter == '\'' && before.is_alphanumeric() => remaining.push(letter),
            None => match letter {
                '"' | '\'' | '`' => until = Some(letter),
                '“' => until = Some('”'),
                '‘' => until = Some('’'),
                '「' => until = Some('」'),
                '《' => until = Some('》'),
                '=' => until = Some(' '),
                _ => remaining.push(letter),
            },
        }
        before = letter;
    }
    remaining
}

/// The reason not to run a plan that changes something, if the request contains one.
pub(crate) fn find_objection(request: &str) -> Option<LocalizedText> {
    let request = own_words(&request.to_lowercase());
    // 删除了 is a past deletion, not the exception 除了.
    let han = request.replace("删除了", "");
    let has = |word: &&&str| match word.is_ascii() {
        true => has_word(&request, word),
        false => han.contains(**word),
    };
    // 别 is part of many words that are not negations.
    let plain = plain_han(&request);
    if let Some(word) =
        FORBIDDING_WORDS.iter().find(|word| if word.is_ascii() { has(word) } else { plain.contains(**word) })
    {
        return Some(LocalizedText::new(
            format!(
                "nothing was run: the request says `{word}`, and what would be run changes something; say only what is to be done"
            ),
            format!("没有执行：请求中有“{word}”，而要执行的操作会改动数据；请只说要做的事"),
        ));
    }
    if let Some(word) = UNDECIDED_WORDS.iter().find(has) {
        return Some(LocalizedText::new(
            format!(
                "nothing was run: `{word}` leaves something to be decided, which needs a language model, and what would be run changes something; say only what is to be done"
            ),
            format!(
                "没有执行：“{word}”表示还需要判断，这要用到语言模型，而要执行的操作会改动数据；请只说要做的事"
            ),
        ));
    }
    HOW_TO_WORDS.iter().find(has).map(|_| {
        LocalizedText::new(
            "nothing was run: the request is a question about how to do something, and the tool would change something; write it as an instruction to run the tool",
            "没有执行：请求是在问怎么做，而该工具会改动数据；若要执行，请写成指令",
        )
    })
}

/// Words that introduce a condition.
const CONDITIONS: [&str; 16] = [
    "if",
    "unless",
    "only when",
    "as soon as",
    "once",
    "in case",
    "provided that",
    "如果",
    "假如",
    "要是",
    "除非",
    "万一",
    "一旦",
    "假设",
    "倘若",
    "的话",
];

/// Whether a request contains a condition.
pub(crate) fn is_conditional(request: &str) -> bool {
    let own = own_words(&request.to_lowercase());
    // `Should the numbers look off, remove …`: an inverted condition before a comma.
    let inverted = [
        "should the ",
        "should any ",
        "should it ",
        "should they ",
        "should there ",
        "were the ",
        "had the ",
    ]
    .iter()
    .any(|lead| own.starts_with(lead))
        && own.contains(", ")
        && !own.trim_end().ends_with('?');
    inverted
        || CONDITIONS.iter().any(|word| match word.is_ascii() {
            true => has_word(&own, word),
            false => own.contains(word),
        })
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let letter = |found: Option<char>| found.is_some_and(char::is_alphanumeric);
        !letter(text[..at].chars().next_back()) && !letter(text[at + word.len()..].chars().next())
    })
}

/// The reason why a request exceeds the limits of the rules.
pub fn exceeds_limits(request: &str, steps: usize) -> Option<LocalizedText> {
    if request.len() > MAX_REQUEST_BYTES {
        return Some(LocalizedText::new(
            format!(
                "the request is longer than the {MAX_REQUEST_BYTES} bytes that are read without a model: say it shorter"
            ),
            format!("请求超过不用模型时能读取的 {MAX_REQUEST_BYTES} 字节：请说得简短些"),
        ));
    }
    (steps > MAX_PLAN_STEPS).then(|| {
        LocalizedText::new(
            format!("the request asks for {steps} things at once: ask for {MAX_PLAN_STEPS} at most"),
            format!("请求一次要做 {steps} 件事：一次最多 {MAX_PLAN_STEPS} 件"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_negations_questions_and_conditions() {
        for request in [
            "don't delete row 1 in sheet Data of b.xlsx",
            "不要删除 c.xlsx 中 Sheet1 工作表的第1行",
            "how do I delete row 1?",
            "怎么删除第一行",
            "read it but do not delete row 1",
            "别删第一行",
            "should I delete sheet Old from m.xlsx?",
            "if Old is empty, delete sheet Old from m.xlsx",
            "如果 Old 是空的就删除 m.xlsx 的 Old 工作表",
            "delete the sheet Old or Sheet1",
            "delete everything in Sheet1 except the header",
        ] {
            assert!(find_objection(request).is_some(), "{request}");
        }
        for request in [
            "delete row 1 in sheet Data",
            "删除类别工作表",
            "write 'however' into A1",
            "分别写入 1 和 2",
            "write \"do it or don't\" into A1",
            "put =IF(A1>0,1,0) into B1",
            "在 B1 写入“如果”",
        ] {
            assert!(find_objection(request).is_none(), "{request}");
        }
        assert!(
            exceeds_limits("1+1", 41).is_some()
                && exceeds_limits(&"x".repeat(9_000), 1).is_some()
                && exceeds_limits("x", 1).is_none()
        );
    }
}
