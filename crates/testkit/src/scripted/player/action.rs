//! The actions of a script; `act` performs them.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Map, Value, value::RawValue};

use super::shuffle::Shuffle;

/// A step of an action list: an object with one key.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    DelayMs(u64),
    Reply(Box<RawValue>),
    Error(ErrorBody),
    Text(String),
    ToolError(String),
    Env(Vec<String>),
    Answer(True),
    Default(True),
    Raw(String),
    BytesHex(Hex),
    Endless(usize),
    Ignore(True),
    Exit(u8),
    Close(True),
    Twice(True),
    WrongId(Value),
    Stderr(String),
    FloodStderr(usize),
    Notify(Call),
    Progress(Map<String, Value>),
    Acknowledge(True),
    Request(Call),
    Status(u16),
    Header(BTreeMap<String, String>),
    ContentType(String),
    DropSessions(True),
    SpawnChild(Child),
    StopReading(True),
    Count(PathBuf),
    Repeat(Repeat),
    Shuffle(Shuffle),
}

impl Action {
    /// Whether the action requires an event stream over HTTP.
    pub(super) fn streams(&self) -> bool {
        match self {
            Self::Notify(_) | Self::Progress(_) | Self::Acknowledge(_) | Self::Request(_) => true,
            Self::ContentType(kind) => kind.starts_with("text/event-stream"),
            Self::Repeat(repeat) => repeat.actions.iter().any(Self::streams),
            _ => false,
        }
    }
}

/// A JSON-RPC error as written in the script.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorBody {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Box<RawValue>>,
}

/// A notification or request to the client.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    #[serde(default = "yes")]
    pub(super) wait: bool,
}

fn yes() -> bool {
    true
}

/// Repeated actions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Repeat {
    pub(super) times: usize,
    #[serde(rename = "do")]
    pub(super) actions: Vec<Action>,
}

/// `true`; any other value is an error in the script.
#[derive(Debug, Clone, Copy)]
pub(super) struct True;

impl<'de> Deserialize<'de> for True {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if bool::deserialize(deserializer)? {
            Ok(Self)
        } else {
            Err(D::Error::custom("the only value is `true`"))
        }
    }
}

/// A child process, with its own output or that of the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Child {
    pub(super) inherits: bool,
}

impl<'de> Deserialize<'de> for Child {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(true) => Ok(Self { inherits: false }),
            Value::String(text) if text == "inherit" => Ok(Self { inherits: true }),
            other => Err(D::Error::custom(format!("`{other}` is neither `true` nor `\"inherit\"`"))),
        }
    }
}

/// Bytes in hexadecimal; spaces are ignored.
#[derive(Debug, Clone)]
pub(super) struct Hex(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits: Option<Vec<u32>> =
            text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect();
        let digits = digits.ok_or_else(|| D::Error::custom("not hexadecimal"))?;
        let pairs = digits.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Err(D::Error::custom("an odd number of hexadecimal digits"));
        }
        Ok(Self(pairs.filter_map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok()).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_raw_values_verbatim() {
        let text = r#"{"reply": {"b":1,  "a":1234567890123456789012345678901234567890}}"#;
        let Action::Reply(raw) = serde_json::from_str(text).unwrap() else { panic!("not a reply") };
        assert_eq!(raw.get(), r#"{"b":1,  "a":1234567890123456789012345678901234567890}"#);
    }

    #[test]
    fn rejects_invalid_actions() {
        for text in [
            r#"{"ignore": false}"#,
            r#"{"bytes_hex": "abc"}"#,
            r#"{"bytes_hex": "zz"}"#,
            r#"{"spawn_child": "x"}"#,
            r#"{"shuffle": {"of": 2}}"#,
            r#"{"unheard_of": 1}"#,
            r#"{"delay_ms": 1, "text": "two keys"}"#,
        ] {
            assert!(serde_json::from_str::<Action>(text).is_err(), "{text}");
        }
    }
}
