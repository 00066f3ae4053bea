//! Needs that follow from the contents of a request and not from its words: arithmetic needs a calculator, 几点 a clock.

use crate::lexer::literal::Literal;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::values::countdown;
use crate::values::parameter::Parameter;
use crate::values::role::Role;

/// A kind of tool that the contents of a text require.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Calculator,
    Clock,
    /// Counts the days until a date.
    Countdown,
    /// Searches the conversation history.
    History,
    /// Fetches a web page.
    Page,
    /// Lists the events of a day.
    Agenda,
}

const AGENDA_WORDS: [&str; 18] = [
    "do i have",
    "am i doing",
    "have i got",
    "what's planned",
    "what is planned",
    "what's happening",
    "my schedule",
    "my agenda",
    "what's on",
    "有什么安排",
    "有哪些安排",
    "有啥安排",
    "有什么事",
    "有哪些事",
    "有什么会",
    "有哪些会",
    "什么日程",
    "哪些日程",
];

const HISTORY_WORDS: [&str; 20] = [
    "what did we talk about",
    "what did we discuss",
    "what have we talked about",
    "what have we discussed",
    "what did i ask",
    "what did i say",
    "what did i just ask",
    "what did you say",
    "what did you tell me",
    "what was my last question",
    "what was the last thing i asked",
    "聊了什么",
    "聊了些什么",
    "聊了啥",
    "说了什么",
    "说了些什么",
    "谈了什么",
    "谈了些什么",
    "问了什么",
    "问过什么",
];

const CLOCK_WORDS: [&str; 31] = [
    "when is that",
    "what time is that",
    "what time would that be",
    "when would that be",
    "what time",
    "current time",
    "time is it",
    "local time",
    "time now",
    "what day is",
    "which day is",
    "what date",
    "today's date",
    "几点",
    "什么时间",
    "现在时间",
    "当前时间",
    "几号",
    "星期几",
    "现在的时间",
    "当地时间",
    "what weekday",
    "which weekday",
    "day of the week",
    "what's the date",
    "周几",
    "礼拜几",
    "哪一天",
    "是哪天",
    "什么日子",
    "what day was",
];

impl Need {
    /// The query for the tool finder.
    fn query(self) -> &'static str {
        match self {
            Self::Calculator => "calculate an arithmetic expression",
            Self::Clock => "tell the current time in a time zone or city",
            Self::Countdown => "count the days until a date",
            Self::History => "look up what was said before in the conversation",
            Self::Agenda => "list the calendar events of a day",
            Self::Page => "fetch the contents of a web page by its URL",
        }
    }

    /// Whether the need is unambiguous.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::Countdown | Self::History)
    }

    /// Whether a tool with these parameters can serve the need.
    pub(crate) fn is_satisfied(self, parameters: &[Parameter]) -> bool {
        if self == Self::History {
            let is_conversation =
                parameters.iter().any(|parameter| parameter.has_word(&["conversation", "chat"]));
            return is_conversation && parameters.iter().all(|parameter| !parameter.required);
        }
        let role = match self {
            Self::Calculator => Role::Expression,
            Self::Clock => Role::Zone,
            Self::Page => Role::Url,
            Self::Agenda => Role::Date,
            Self::Countdown | Self::History => Role::Until,
        };
        let others =
            parameters.iter().filter(|parameter| parameter.required && parameter.role != role).count();
        others == 0 && parameters.iter().any(|parameter| parameter.role == role)
    }
}

/// The needs that a text implies.
pub(crate) fn needs(parsed: &ParsedText<'_>) -> Vec<Need> {
    let lower = parsed.text.to_lowercase();
    let mut found = Vec::new();
    if parsed.mentions.iter().any(|mention| matches!(mention.value, MentionValue::Literal(Literal::Url(_)))) {
        found.push(Need::Page);
    }
    let dated = parsed.mentions.iter().any(|mention| matches!(mention.value, MentionValue::Moment(_)));
    let literal = parsed.mentions.iter().any(|mention| matches!(mention.value, MentionValue::Literal(_)));
    if dated && !literal && AGENDA_WORDS.iter().any(|words| lower.contains(words)) {
        found.push(Need::Agenda);
    }
    if !parsed.expressions.is_empty() {
        found.push(Need::Calculator);
    }
    if HISTORY_WORDS.iter().any(|words| lower.contains(words)) {
        found.push(Need::History);
    }
    if countdown::read(parsed).is_some() {
        found.push(Need::Countdown);
    } else if CLOCK_WORDS.iter().any(|word| lower.contains(word)) || asks_when(parsed, &lower) {
        found.push(Need::Clock);
    }
    found
}

/// `when is Easter`, 中秋节是什么时候: a question for the date of a named day.
fn asks_when(parsed: &ParsedText<'_>, lower: &str) -> bool {
    let named = parsed.mentions.iter().any(|mention| mention.value == MentionValue::Holiday);
    let question_words = ["when is", "when's", "when was", "what date", "什么时候", "哪天", "几月几"];
    named && question_words.iter().any(|words| lower.contains(words))
}

/// Additional queries for the tool finder.
pub(crate) fn queries(parsed: &ParsedText<'_>) -> Vec<&'static str> {
    needs(parsed).into_iter().map(Need::query).collect()
}

pub(crate) fn query(need: Need) -> &'static str {
    need.query()
}
