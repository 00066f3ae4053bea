//! The set of repairs, and their descriptions.

use toolhub_core::lang::LocalizedText;

/// A kind of repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Invalid or missing quotes.
    Quotes,
    /// An unescaped quote inside a string.
    InnerQuote,
    /// An invalid escape.
    Escape,
    /// A raw control character inside a string.
    RawControl,
    /// `True`, `None`, a tuple or another Python literal.
    Literal,
    /// A number in a notation that is invalid in JSON.
    Number,
    /// Comments.
    Comments,
    /// A superfluous comma.
    ExtraComma,
    /// A missing comma or colon.
    MissingComma,
    /// Full-width punctuation.
    FullWidth,
    /// Doubled braces.
    DoubledBraces,
    /// An unmatched closing brace.
    ExtraBrace,
    /// An unclosed brace, bracket or tag.
    Unclosed,
    /// Truncated text.
    CutOff,
    /// A key without a value.
    NoValue,
    /// Text around the value.
    TextAround,
    /// An object encoded as a string.
    TextForObject,
    /// Positional arguments.
    Positional,
    /// A misspelled tool name.
    ToolName,
    /// Arguments beside the tool name.
    FlatArguments,
    /// A string in place of the arguments object.
    BareArgument,
    /// The same call in a loop.
    Repeated,
}

const ALL: [(Repair, &str, &str); 22] = [
    (Repair::Quotes, "quotes that JSON does not know, or no quotes", "引号不合 JSON 规范或缺失"),
    (Repair::InnerQuote, "a quote inside a text that was not escaped", "文本中的引号未转义"),
    (Repair::Escape, "an escape that JSON does not know", "JSON 不认识的转义"),
    (Repair::RawControl, "a line break inside a text", "文本中有未转义的换行"),
    (Repair::Literal, "Python literals", "Python 字面量"),
    (Repair::Number, "the spelling of a number", "数字的写法"),
    (Repair::Comments, "comments", "注释"),
    (Repair::ExtraComma, "a comma too many", "多余的逗号"),
    (Repair::MissingComma, "a missing comma or colon", "缺少逗号或冒号"),
    (Repair::FullWidth, "full-width punctuation", "全角标点"),
    (Repair::DoubledBraces, "doubled braces", "重复的花括号"),
    (Repair::ExtraBrace, "a closing brace too many", "多余的右括号"),
    (Repair::Unclosed, "something that was not closed", "未闭合的括号或标签"),
    (Repair::CutOff, "the text broke off inside a value", "文本在值的中间中断"),
    (Repair::NoValue, "a name without a value", "有名称而没有值"),
    (Repair::TextAround, "words around the JSON", "JSON 前后有其他文字"),
    (Repair::TextForObject, "JSON written as a text", "JSON 被写成了文本"),
    (Repair::Positional, "arguments without names", "参数没有名称"),
    (Repair::ToolName, "the spelling of the tool's name", "工具名称的写法"),
    (Repair::FlatArguments, "arguments beside the tool's name", "参数与工具名称并列"),
    (Repair::BareArgument, "one value where named arguments belong", "只有一个值而没有参数名"),
    (Repair::Repeated, "the same calls over and over, each taken once", "同样的调用反复出现，各取一次"),
];

/// A set of repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Repairs(u32);

impl Repairs {
    /// Adds a repair.
    pub fn add(&mut self, repair: Repair) {
        self.0 |= 1 << repair as u32;
    }

    /// Adds all repairs of `other`.
    pub fn join(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether the set contains a repair.
    pub fn has(self, repair: Repair) -> bool {
        self.0 & (1 << repair as u32) != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The descriptions.
    pub fn texts(self) -> Vec<LocalizedText> {
        let noted = ALL.iter().filter(|(repair, ..)| self.has(*repair));
        noted
            .map(|(_, en, zh)| LocalizedText::new(format!("mended: {en}"), format!("已修正：{zh}")))
            .collect()
    }
}
