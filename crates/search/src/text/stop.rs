//! Stop words in both languages: words that do not help to select a tool.

use std::collections::HashSet;
use std::sync::LazyLock;

/// English function words, and fragments of contractions.
const STOP_WORDS: &[&str] = &[
    "a", "an", "the", "this", "that", "these", "those", "and", "or", "but", "nor", "so", "if", "then",
    "than", "of", "to", "in", "on", "at", "by", "for", "from", "with", "without", "into", "onto", "as",
    "about", "is", "are", "was", "were", "be", "been", "being", "am", "do", "does", "did", "done", "has",
    "have", "had", "having", "will", "would", "shall", "should", "can", "could", "may", "might", "must", "i",
    "me", "my", "mine", "we", "us", "our", "you", "your", "he", "she", "it", "its", "they", "them", "their",
    "his", "her", "him", "who", "whom", "whose", "which", "what", "where", "when", "why", "how", "there",
    "here", "not", "no", "yes", "such", "some", "any", "each", "both", "also", "too", "very", "just", "only",
    "own", "same", "other", "s", "t", "d", "ll", "re", "ve", "m", "don", "e", "g", "ie", "eg", "etc",
    "while", "during", "whether", "because", "until", "since", "via", "per", "over", "up", "out", "off",
    "through", "again", "all", "most", "every", "another",
];

/// Phrasing of requests, independent of their purpose. Ignored only in requests: in a definition they may matter.
const REQUEST_WORDS: &[&str] = &[
    "please",
    "help",
    "need",
    "want",
    "like",
    "let",
    "lets",
    "know",
    "tell",
    "hi",
    "hello",
    "hey",
    "thanks",
    "thank",
    "kindly",
    "assist",
    "assistance",
    "interested",
    "wondering",
    "wonder",
    "looking",
    "trying",
    "going",
    "able",
    "wish",
    "hope",
    "really",
    "much",
    "many",
    "more",
    "now",
    "well",
    "good",
    "sure",
    "okay",
    "ok",
    "im",
    "ive",
    "id",
    "gonna",
    "something",
    "anything",
    "someone",
    "everything",
    "thing",
    "things",
    "way",
    "ways",
    "lot",
    "bit",
    "make",
    "give",
    "provide",
    "show",
    "use",
    "using",
    "used",
    "one",
    "two",
    "first",
    "second",
    "next",
    "finally",
    "after",
    "before",
    "once",
    "additionally",
    "furthermore",
    "however",
    "specifically",
    "specific",
    "particular",
    "currently",
    "current",
    "possible",
    "best",
    "great",
    "new",
    "today",
];

/// Chinese characters and pairs for grammar or politeness.
const STOP_GRAMS: &[&str] = &[
    "的", "了", "我", "你", "您", "他", "她", "它", "们", "是", "在", "有", "和", "与", "及", "或", "也",
    "都", "就", "这", "那", "吗", "呢", "吧", "啊", "请", "把", "被", "给", "让", "为", "于", "个", "一",
    "之", "其", "所", "以", "而", "并", "但", "到", "从", "对", "上", "中", "下", "来", "去", "要", "想",
    "能", "可", "会", "还", "又", "再", "将", "已", "很", "最", "更", "么", "怎", "什", "哪", "些", "某",
    "等", "帮", "需", "如", "何", "用", "于", "后", "前", "时", "里", "着", "帮我", "我想", "我要", "请帮",
    "请问", "我需", "需要", "要你", "你帮", "帮忙", "一下", "可以", "一个", "我们", "你们", "他们", "什么",
    "怎么", "如何", "这个", "那个", "能否", "是否", "以及", "并且", "然后", "或者", "因为", "所以", "如果",
    "但是", "现在", "希望", "想要", "想知", "知道", "告诉", "诉我", "我的", "你的", "您的", "的是", "进行",
    "使用", "用于", "和一", "我在", "在我", "给我", "为我", "我把", "我一", "我正", "正在", "想了", "我有",
    "这些", "那些", "一些", "有关", "关于", "一份", "一次", "一篇", "您好", "你好", "谢谢", "能帮", "可否",
    "麻烦", "我现",
];

/// Chinese measure words that say nothing about the counted object. 页, 行 and 列 are not included: they mean a page, a
/// row or a column.
const MEASURE_WORDS: &[char] = &[
    '张', '个', '条', '份', '篇', '本', '封', '位', '只', '件', '项', '次', '首', '台', '辆', '座', '笔',
    '种', '套',
];

/// Characters that precede a measure word.
const COUNTS: &[char] = &[
    '一', '二', '两', '三', '四', '五', '六', '七', '八', '九', '十', '百', '千', '几', '每', '这', '那',
    '哪', '某',
];

static STOP: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.iter().copied().collect());
static REQUEST: LazyLock<HashSet<&str>> = LazyLock::new(|| REQUEST_WORDS.iter().copied().collect());
static GRAMS: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_GRAMS.iter().copied().collect());

/// Whether a lowercase English word is a stop word.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP.contains(word)
}

/// Whether an English word belongs to the phrasing of requests.
pub(crate) fn is_request_word(word: &str) -> bool {
    REQUEST.contains(word)
}

/// Whether a Chinese character or pair is a stop word.
pub(crate) fn is_stop_gram(gram: &str) -> bool {
    GRAMS.contains(gram)
}

/// Whether a Chinese word is a measure word after a number or a demonstrative: 一张, 这篇.
pub(crate) fn is_measure_word(before: &str, word: &str) -> bool {
    let mut characters = word.chars();
    characters.next().is_some_and(|first| MEASURE_WORDS.contains(&first))
        && characters.next().is_none()
        && before.ends_with(|last: char| COUNTS.contains(&last) || last.is_ascii_digit())
}
