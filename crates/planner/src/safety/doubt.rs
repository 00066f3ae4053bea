//! The reasons why a changing step is unproven, with their messages.

use toolhub_core::lang::LocalizedText;

/// Maximum number of words shown.
pub(crate) const MAX_SHOWN_WORDS: usize = 8;

/// A reason why a step is unproven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// No verb of the request is in the class of the tool's verb.
    Verb,
    /// Words that the step does not use.
    Unused(Vec<String>),
    /// An argument that was taken only because no other value was left, or for which another value fits equally well.
    Guessed(String),
    /// Another tool that the same words prove.
    Rival(String),
}

impl Doubt {
    pub(crate) fn text(&self, tool: &str) -> LocalizedText {
        match self {
            Self::Verb => LocalizedText::new(
                format!("the request has no verb for what `{tool}` does"),
                format!("请求中没有与 `{tool}` 的操作相符的动词"),
            ),
            Self::Unused(words) => {
                let listed: Vec<String> =
                    words.iter().take(MAX_SHOWN_WORDS).map(|word| format!("`{word}`")).collect();
                LocalizedText::new(
                    format!("not understood: {}", listed.join(", ")),
                    format!("无法理解：{}", listed.join("、")),
                )
            }
            Self::Guessed(parameter) => LocalizedText::new(
                format!("the value of `{parameter}` is a guess: write it as `{parameter} = …`"),
                format!("`{parameter}` 的值是猜测的：请写成 `{parameter} = …`"),
            ),
            Self::Rival(other) => LocalizedText::new(
                format!("`{other}` fits as well: name the tool that is meant"),
                format!("`{other}` 同样适合：请写出要用的工具名"),
            ),
        }
    }
}
