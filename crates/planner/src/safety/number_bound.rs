//! Words and signs at a number that make it a bound or an approximation: `under 5`, `~5`, `5 or more`, 5 以上.

use crate::rewrite::masked_text::has_word;

/// Words of parameters that take a bound.
pub(crate) const PARAMETERS: [&str; 9] =
    ["limit", "max", "maximum", "min", "minimum", "threshold", "most", "least", "tolerance"];
/// Signs before a number.
const SIGNS_BEFORE: [char; 14] = ['~', '～', '≈', '<', '>', '≤', '≥', '±', '≦', '≧', '＜', '＞', '≲', '≳'];
/// Signs after a number.
const SIGNS_AFTER: [char; 8] = ['+', '~', '～', '±', '^', '≤', '≥', '＋'];
/// Currency signs between such a sign or word and the number.
const CURRENCIES: [char; 6] = ['$', '€', '£', '¥', '￥', ' '];
/// Words before a number.
const BEFORE: [&str; 36] = [
    "under",
    "below",
    "beneath",
    "over",
    "above",
    "beyond",
    "up to",
    "at least",
    "at most",
    "at the most",
    "at the least",
    "no less than",
    "no more than",
    "not more than",
    "not less than",
    "less than",
    "more than",
    "fewer than",
    "greater than",
    "higher than",
    "lower than",
    "about",
    "around",
    "roughly",
    "approximately",
    "approx",
    "approx.",
    "circa",
    "ca.",
    "nearly",
    "almost",
    "within",
    "between",
    "maximum",
    "minimum",
    "max",
];
/// Words after a number and its unit.
const AFTER: [&str; 40] = [
    "or so",
    "or less",
    "or more",
    "or fewer",
    "or above",
    "or below",
    "or over",
    "or under",
    "or higher",
    "or lower",
    "or thereabouts",
    "or cheaper",
    "and up",
    "and upwards",
    "and above",
    "and over",
    "and below",
    "and under",
    "and less",
    "and more",
    "plus",
    "max",
    "max.",
    "maximum",
    "min",
    "min.",
    "minimum",
    "tops",
    "at most",
    "at the most",
    "at least",
    "at the least",
    "upwards",
    "-ish",
    "ish",
    "odd",
    "give or take",
    "more or less",
    "approximately",
    "roughly",
];
/// Chinese words before a number.
const HAN_BEFORE: [&str; 32] = [
    "大约",
    "约",
    "大概",
    "差不多",
    "将近",
    "接近",
    "近",
    "超过",
    "不到",
    "低于",
    "高于",
    "少于",
    "多于",
    "大于",
    "小于",
    "不足",
    "至少",
    "至多",
    "最多",
    "最少",
    "最低",
    "最高",
    "起码",
    "顶多",
    "上限",
    "下限",
    "上限为",
    "下限为",
    "介于",
    "几乎",
    "不超",
    "未满",
];
/// Words that end with one of these and are no bounds.
const HAN_NOT_BEFORE: [&str; 4] = ["最近", "附近", "预约", "合约"];
/// Chinese words after a number and its unit.
const HAN_AFTER: [&str; 30] = [
    "以上",
    "以下",
    "以内",
    "之内",
    "以外",
    "之外",
    "左右",
    "上下",
    "起步",
    "起跳",
    "起",
    "多",
    "开外",
    "不到",
    "封顶",
    "出头",
    "为上限",
    "为下限",
    "为限",
    "打底",
    "内",
    "或以上",
    "或以下",
    "或更",
    "及以上",
    "及以下",
    "上限",
    "下限",
    "之间",
    "余",
];
/// Words that begin with one of these and are no bounds.
const HAN_NOT_AFTER: [&str; 6] = ["起名", "左右对齐", "上下居中", "多次", "内容", "起草"];
/// Units between a number and such a word.
const UNITS: [&str; 34] = [
    "euros",
    "euro",
    "eur",
    "usd",
    "dollars",
    "dollar",
    "cents",
    "cent",
    "pounds",
    "pound",
    "gbp",
    "cny",
    "rmb",
    "yuan",
    "yen",
    "pieces",
    "piece",
    "pcs",
    "units",
    "percent",
    "bucks",
    "美元",
    "欧元",
    "英镑",
    "日元",
    "人民币",
    "块钱",
    "元钱",
    "元",
    "块",
    "个",
    "件",
    "%",
    "€",
];

/// Whether the text before or after a number makes it a bound or an approximation. Both are in lower case.
pub(crate) fn touches(before: &str, after: &str) -> bool {
    bounds_before(before) || bounds_after(after)
}

/// Whether a text contains a bound for a number that is written in words: `nearly five hundred`, 五百左右.
pub(crate) fn is_stated(own: &str) -> bool {
    let weak = [
        "over", "about", "around", "above", "below", "between", "plus", "odd", "max", "min", "within", "ish",
    ];
    let english = BEFORE.iter().chain(&AFTER).filter(|word| !weak.contains(*word));
    let han = HAN_BEFORE.iter().chain(&HAN_AFTER).filter(|word| word.chars().count() > 1);
    english.into_iter().any(|word| has_word(own, word)) || han.into_iter().any(|word| own.contains(*word))
}

fn bounds_before(before: &str) -> bool {
    let lead = before.trim_end_matches(CURRENCIES);
    // `a maximum of 5`
    let lead = lead.strip_suffix(" of").unwrap_or(lead);
    // `3~5` is a range, and `4 -> 5` a change.
    let bare = lead.trim_end_matches(SIGNS_BEFORE);
    let is_range = bare.trim_end().ends_with(|c: char| c.is_ascii_digit()) && lead.ends_with(['~', '～']);
    let is_arrow = lead.ends_with("->") || lead.ends_with("=>");
    if bare.len() < lead.len() && !is_range && !is_arrow {
        return true;
    }
    let is_whole = |word: &str| {
        lead.strip_suffix(word)
            .is_some_and(|rest| !rest.ends_with(|c: char| c.is_alphanumeric() && c.is_ascii()))
    };
    BEFORE.iter().any(|word| is_whole(word))
        || HAN_BEFORE.iter().any(|word| lead.ends_with(word))
            && !HAN_NOT_BEFORE.iter().any(|word| lead.ends_with(word))
}

fn bounds_after(after: &str) -> bool {
    // `5+3` and `5 + 3` are calculations.
    let signs = after.trim_start_matches(SIGNS_AFTER);
    if signs.len() < after.len() && !signs.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        return true;
    }
    let rest = after.trim_start();
    if ends_with_bound(rest) {
        return true;
    }
    let unit = UNITS.iter().find_map(|unit| {
        let rest = rest.strip_prefix(unit)?;
        (!unit.is_ascii() || !rest.starts_with(|c: char| c.is_ascii_alphanumeric())).then_some(rest)
    });
    unit.is_some_and(ends_with_bound)
}

fn ends_with_bound(rest: &str) -> bool {
    let rest = rest.trim_start();
    if HAN_AFTER.iter().any(|word| rest.starts_with(word)) {
        return !HAN_NOT_AFTER.iter().any(|word| rest.starts_with(word));
    }
    let rest = rest.trim_start_matches([',', '(', ' ']);
    AFTER.iter().any(|word| {
        rest.strip_prefix(word)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    })
}
