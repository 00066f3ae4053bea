//! The messages between the hub and a script host: one JSON object per line in each direction, with one member that
//! names the message.
//!
//! The hub trusts nothing that a host sends: a script may have taken the process over. Decoding rejects unknown and
//! duplicate members; `session` checks the meaning of every message.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use toolhub_core::RawJson;

/// The version of this protocol. Hub and host are the same program, unless it was replaced while the hub runs.
pub const VERSION: u32 = 2;
/// The argument of the program that makes it a script host.
pub const COMMAND: &str = "script-host";

/// A message of the hub.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToHost {
    /// The only script of this host. Sent once, first.
    Run(Box<ScriptRun>),
    /// The end of a call.
    Answer(CallAnswer),
    /// The end of a sleep.
    Wake(Wake),
}

/// A script with everything that determines its behaviour, apart from the answers of tools.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptRun {
    /// The program.
    pub code: String,
    /// The value of `input`.
    pub input: Box<RawValue>,
    /// The limits that the host applies itself.
    pub limits: HostLimits,
    /// The tools that exist in `tools`.
    pub tools: Vec<ToolPath>,
    /// The seed of `Math.random`.
    pub seed: u64,
    /// The time of `Date.now()` at the start, in milliseconds since 1970.
    pub clock: i64,
    /// Whether the host sends `idle` whenever it waits for a message.
    pub report_idle: bool,
}

/// The limits that a host applies itself, so that a script gets an error with a line number.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostLimits {
    /// CPU time in milliseconds.
    pub cpu_ms: u64,
    /// Bytes of the script's values.
    pub memory: u64,
    /// Number of calls.
    pub calls: u32,
    /// Bytes of the result and the log together.
    pub output: usize,
    /// Bytes of the log.
    pub log: usize,
    /// Bytes of the arguments of one call.
    pub arguments: usize,
}

/// How a script reaches a tool: `tools["NAME"]`, and `tools.SERVER.TOOL` if it has a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPath {
    /// The unique name, which calls carry.
    pub name: String,
    /// The server, and the name of the tool below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<(String, String)>,
}

/// The end of a call: either a value or an error.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallAnswer {
    /// The id of the call.
    pub id: u32,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub value: Option<Box<RawValue>>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// Milliseconds of CPU time that scripts have used which this script has called, since the last answer. They are taken
    /// from the limit of this script.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inner_cpu_ms: u64,
}

/// [`ToHost::Answer`] of a result that the hub keeps.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerMessage<'a> {
    Answer {
        id: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<&'a RawJson>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a CallError>,
        #[serde(skip_serializing_if = "is_zero")]
        inner_cpu_ms: u64,
    },
}

/// A failed call, as the script sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallError {
    /// A stable name for the kind of failure, such as `timeout`.
    pub kind: String,
    /// The message.
    pub message: String,
    /// The next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The signature of the tool, if its arguments were wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// The end of a sleep.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wake {
    /// The id of the sleep.
    pub id: u32,
}

/// A message of a host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromHost {
    /// The host has dropped its permissions and waits for a script. Sent once, first.
    Ready(Ready),
    /// The host has the script and begins to run it. Sent once, before the messages of the script.
    Started(Empty),
    /// The script calls a tool.
    Call(Call),
    /// The script sleeps.
    Sleep(Sleep),
    /// A line of the log.
    Log(LogLine),
    /// The script can go on only after a message of the hub.
    Idle(Empty),
    /// The end of the script. Sent once, last.
    Finished(Box<Finish>),
}

/// The state of a new host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// [`VERSION`] of the host.
    pub version: u32,
    /// Whether the host can make no other system calls than those for computing.
    pub restricted: bool,
}

/// A call of a tool.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Counts from 1.
    pub id: u32,
    /// The unique name of the tool.
    pub tool: String,
    /// A JSON object.
    pub arguments: Box<RawValue>,
}

/// A sleep, which the hub times: the host has no timer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sleep {
    /// Counts from 1, apart from the calls.
    pub id: u32,
    /// Milliseconds.
    pub ms: u64,
}

/// A line of `console.log` and its relatives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    /// The function that was used.
    pub level: LogLevel,
    /// The text.
    pub text: String,
}

/// A function of `console`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// `console.log` and `console.debug`.
    Log,
    /// `console.info`.
    Info,
    /// `console.warn`.
    Warn,
    /// `console.error`.
    Error,
}

/// An empty message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

/// The end of a script: either a value or an error.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finish {
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub value: Option<Box<RawValue>>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<HostError>,
    /// Lines of the log beyond the limit.
    pub dropped_lines: u64,
    /// Calls that the script did not await, and that have no result or failed. Only beside a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_awaited: Vec<NotAwaited>,
    /// Names of tools that the script used and that it was not given, at most [`MAX_UNKNOWN_TOOLS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_tools: Vec<String>,
    /// Milliseconds of CPU time that the script has used.
    #[serde(default)]
    pub cpu_ms: u64,
}

/// Maximum number of [`Finish::unknown_tools`].
pub const MAX_UNKNOWN_TOOLS: usize = 16;

/// A call whose end the script has not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotAwaited {
    /// The number of the call.
    pub id: u32,
    /// The line of the call in the script, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column in the line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// An error that ended a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostError {
    /// What ended the script.
    pub kind: HostErrorKind,
    /// The name of the error object, such as `TypeError`.
    pub name: String,
    /// Its message.
    pub message: String,
    /// The line in the script, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column in the line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The unique name of the tool that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The kind of a [`CallError`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_kind: Option<String>,
}

/// What ended a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostErrorKind {
    /// The script is not JavaScript.
    Syntax,
    /// An error that the script did not catch.
    #[default]
    Thrown,
    /// It waits for a promise that nothing will settle.
    Stalled,
    /// It used up its CPU time.
    Cpu,
    /// It used up its memory.
    Memory,
    /// Its result is too long.
    Output,
    /// Its result cannot be written as JSON.
    Result,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A member that is present; without this, `null` would be read as an absent one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::deserialize(deserializer).map(Some)
}

/// Writes a message as one line.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = Vec::new();
    append_line(&mut line, message)?;
    Ok(line)
}

/// Appends a value as one line, or nothing if it cannot be written.
pub(crate) fn append_line(lines: &mut Vec<u8>, value: &impl Serialize) -> Result<(), serde_json::Error> {
    let start = lines.len();
    if let Err(error) = serde_json::to_writer(&mut *lines, value) {
        lines.truncate(start);
        return Err(error);
    }
    join_lines(lines.get_mut(start..).unwrap_or_default());
    lines.push(b'\n');
    Ok(())
}

/// Makes one line of a JSON text. Its line breaks are white space: JSON escapes them in strings.
fn join_lines(text: &mut [u8]) {
    // Most texts have none, which is found quickly.
    if text.contains(&b'\n') || text.contains(&b'\r') {
        text.iter_mut().filter(|byte| matches!(**byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_values_with_line_breaks_stay_on_one_line() {
        let value = RawValue::from_string("{\n  \"a\\n\": 1\r\n}".to_owned()).unwrap();
        let line =
            encode(&ToHost::Answer(CallAnswer { id: 1, value: Some(value), error: None, inner_cpu_ms: 0 }))
                .unwrap();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let ToHost::Answer(answer) = serde_json::from_slice(&line).unwrap() else { panic!() };
        assert_eq!(answer.value.unwrap().get(), "{   \"a\\n\": 1  }");
        // The hub writes the same from a result that it keeps.
        let value = RawJson::parse("{\n  \"a\\n\": 1\r\n}").unwrap();
        let kept = AnswerMessage::Answer { id: 1, value: Some(&value), error: None, inner_cpu_ms: 0 };
        assert_eq!(encode(&kept).unwrap(), line);
    }

    #[test]
    fn null_is_a_value() {
        let read: FromHost =
            serde_json::from_str("{\"finished\":{\"value\":null,\"dropped_lines\":0}}").unwrap();
        let FromHost::Finished(finished) = read else { panic!() };
        assert_eq!(finished.value.unwrap().get(), "null");
        let read: ToHost = serde_json::from_str("{\"answer\":{\"id\":1,\"value\":null}}").unwrap();
        let ToHost::Answer(answer) = read else { panic!() };
        assert!(answer.value.is_some() && answer.error.is_none());
    }

    #[test]
    fn rejects_messages_of_another_form() {
        for line in [
            "",
            "null",
            "[]",
            "\"idle\"",
            "{}",
            "{\"idle\":{}} {\"idle\":{}}",
            "{\"idle\":{},\"call\":{}}",
            "{\"idle\":{\"a\":1}}",
            "{\"exec\":{}}",
            "{\"call\":{\"id\":1,\"tool\":\"a\"}}",
            "{\"call\":{\"id\":-1,\"tool\":\"a\",\"arguments\":{}}}",
            "{\"call\":{\"id\":1,\"id\":2,\"tool\":\"a\",\"arguments\":{}}}",
            "{\"call\":{\"id\":1,\"tool\":\"a\",\"arguments\":{},\"as\":\"root\"}}",
            "{\"log\":{\"level\":\"fatal\",\"text\":\"a\"}}",
            "{\"sleep\":{\"id\":1,\"ms\":1e99}}",
        ] {
            assert!(serde_json::from_str::<FromHost>(line).is_err(), "{line}");
        }
    }
}
