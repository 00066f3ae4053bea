//! Errors of messages, with what they say about the request: whether it may have been processed.

use std::time::Duration;

use toolhub_core::error::Effect;
use toolhub_core::lang::{Lang, Localize};

/// Why a message was not delivered, or why its answer is missing.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.localize(Lang::En))]
pub enum BusError {
    /// The message could not be sent: there is no connection to a NATS server.
    Disconnected,
    /// The NATS server reports that nothing subscribes to the subject.
    NoResponders,
    /// The receiver did not request the rest of a large message, and so has not seen it.
    NotTaken,
    /// The receiver has refused the message and will not process it.
    Refused,
    /// The message is too large.
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
    },
    /// No answer within this time.
    Silent(Duration),
    /// A part of the answer is missing.
    Gap,
    /// The answer ended without its result.
    Incomplete,
    /// A message of the answer cannot be read.
    Unreadable,
    /// A message of the answer is not allowed at this point.
    Unexpected,
    /// A message of the answer is too large.
    AnswerTooLarge {
        /// Its size in bytes, as far as it was received.
        bytes: usize,
    },
    /// The client of NATS rejects the request.
    Client(String),
}

impl BusError {
    /// Whether the receiver may have processed the message.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Disconnected
            | Self::NoResponders
            | Self::NotTaken
            | Self::Refused
            | Self::TooLarge { .. }
            | Self::Client(_) => Effect::None,
            Self::Silent(_)
            | Self::Gap
            | Self::Incomplete
            | Self::Unreadable
            | Self::Unexpected
            | Self::AnswerTooLarge { .. } => Effect::Unknown,
        }
    }
}

impl Localize for BusError {
    fn localize(&self, lang: Lang) -> String {
        match self {
            Self::Disconnected => lang
                .choose(
                    "there is no connection to NATS: check `[cluster] nats` and that the server runs",
                    "没有到 NATS 的连接：请检查 `[cluster] nats`，并确认 NATS 服务器正在运行",
                )
                .to_owned(),
            Self::NoResponders => lang.choose("nothing receives messages there", "没有接收方").to_owned(),
            Self::NotTaken => lang
                .choose("the receiver did not take a large message", "接收方没有接收较大的消息")
                .to_owned(),
            Self::Refused => lang.choose("the receiver refused the message", "接收方拒绝了该消息").to_owned(),
            Self::TooLarge { bytes } => lang.choose(
                format!("a message of {bytes} bytes is too large"),
                format!("消息有 {bytes} 字节，太大"),
            ),
            Self::Silent(limit) => {
                let seconds = limit.as_secs_f32();
                lang.choose(format!("no sign of life for {seconds} s"), format!("{seconds} 秒内没有任何响应"))
            }
            Self::Gap => lang.choose("a part of the answer is missing", "响应缺失了一部分").to_owned(),
            Self::Incomplete => {
                lang.choose("the answer ended without a result", "响应结束，但没有结果").to_owned()
            }
            Self::Unreadable => {
                lang.choose("a message of the answer cannot be read", "无法解析响应中的消息").to_owned()
            }
            Self::Unexpected => {
                lang.choose("a message of the answer was not expected", "响应中出现了意外的消息").to_owned()
            }
            Self::AnswerTooLarge { bytes } => lang.choose(
                format!("a message of the answer is too large: at least {bytes} bytes"),
                format!("响应中的消息太大：至少 {bytes} 字节"),
            ),
            Self::Client(why) => why.clone(),
        }
    }
}
