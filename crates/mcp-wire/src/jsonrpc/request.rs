//! Serializes requests by hand, since every call is one.

use std::borrow::Cow;
use std::sync::LazyLock;

use toolhub_core::{RawJson, RawObject};

use crate::era::{CAPABILITIES, CLIENT_INFO, INFO, LOG_LEVEL, VERSION};
use crate::scan;

/// Reserved size of a request without the arguments of a call, in bytes.
const BASE_CAPACITY: usize = 448;
/// The `_meta` member with the progress token.
const PROGRESS_TOKEN: &str = "progressToken";

/// The content of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestContent<'a> {
    /// The method.
    pub method: &'a str,
    /// The name and arguments of a tool call, written before the other params.
    pub call: Option<(&'a str, &'a RawJson)>,
    /// The other params.
    pub params: &'a RawObject,
}

/// The `_meta` of a request.
#[derive(Debug, Default)]
pub struct RequestMeta<'a> {
    /// The members that the client sent.
    pub forwarded: Cow<'a, RawObject>,
    /// The members of a modern request.
    pub modern: Option<ModernMeta<'a>>,
    /// The progress token.
    pub progress: Option<u64>,
}

/// The `_meta` members of a modern request (2026-07-28, basic/index: `_meta`).
#[derive(Debug)]
pub struct ModernMeta<'a> {
    /// The protocol version.
    pub version: &'a str,
    /// The client capabilities.
    pub capabilities: RawJson,
    /// The minimum log level, if log messages are requested.
    pub log_level: Option<RawJson>,
}

/// The members with our name and capabilities, up to the capabilities' value.
static CLIENT_MEMBERS: LazyLock<String> =
    LazyLock::new(|| format!(r#","{INFO}":{CLIENT_INFO},"{CAPABILITIES}":"#));

impl RequestMeta<'_> {
    fn is_empty(&self) -> bool {
        self.forwarded.is_empty() && self.modern.is_none() && self.progress.is_none()
    }

    /// Whether it sets a member of that name itself, also for a server that ignores the case of keys.
    fn sets_member(&self, name: &str) -> bool {
        let is = |own: &str| name.eq_ignore_ascii_case(own);
        let of_modern = |modern: &ModernMeta<'_>| {
            [VERSION, INFO, CAPABILITIES].into_iter().any(is) || (modern.log_level.is_some() && is(LOG_LEVEL))
        };
        self.modern.as_ref().is_some_and(of_modern) || (self.progress.is_some() && is(PROGRESS_TOKEN))
    }

    fn write(&self, text: &mut String) {
        let mut comma = false;
        write_members(text, self.forwarded.iter().filter(|(name, _)| !self.sets_member(name)), &mut comma);
        if let Some(ModernMeta { version, capabilities, log_level }) = &self.modern {
            write_plain_name(text, VERSION, &mut comma);
            write_text(text, version);
            text.push_str(&CLIENT_MEMBERS);
            text.push_str(capabilities.get());
            if let Some(level) = log_level {
                write_plain_name(text, LOG_LEVEL, &mut comma);
                text.push_str(level.get());
            }
        }
        if let Some(id) = self.progress {
            write_plain_name(text, PROGRESS_TOKEN, &mut comma);
            text.push_str(itoa::Buffer::new().format(id));
        }
    }
}

/// Serializes a request with its params and `_meta`. Raw values are copied unchanged, including line breaks.
pub fn serialize_request(id: u64, content: RequestContent<'_>, meta: &RequestMeta<'_>) -> String {
    let RequestContent { method, call, params } = content;
    let mut text =
        String::with_capacity(BASE_CAPACITY + call.map_or(0, |(_, arguments)| arguments.get().len()));
    text.push_str(r#"{"jsonrpc":"2.0","id":"#);
    text.push_str(itoa::Buffer::new().format(id));
    text.push_str(r#","method":"#);
    write_text(&mut text, method);
    text.push_str(r#","params":{"#);
    let mut comma = call.is_some();
    if let Some((name, arguments)) = call {
        text.push_str(r#""name":"#);
        write_text(&mut text, name);
        text.push_str(r#","arguments":"#);
        text.push_str(arguments.get());
    }
    let is_written = |name: &str| match name {
        "_meta" => !meta.is_empty(),
        "name" | "arguments" => call.is_some(),
        _ => false,
    };
    write_members(&mut text, params.iter().filter(|(name, _)| !is_written(name)), &mut comma);
    if !meta.is_empty() {
        text.push_str(if comma { r#","_meta":{"# } else { r#""_meta":{"# });
        meta.write(&mut text);
        text.push('}');
    }
    text.push_str("}}");
    text
}

/// Writes a string; escapes are rare.
fn write_text(to: &mut String, text: &str) {
    if scan::is_plain(text) {
        to.push('"');
        to.push_str(text);
        to.push('"');
    } else {
        to.push_str(RawJson::from(text).get());
    }
}

/// Writes one of our own member names, which need no escapes.
fn write_plain_name(to: &mut String, name: &str, comma: &mut bool) {
    to.push_str(if std::mem::replace(comma, true) { ",\"" } else { "\"" });
    to.push_str(name);
    to.push_str("\":");
}

/// Writes a member name.
fn write_name(to: &mut String, name: &str, comma: &mut bool) {
    if std::mem::replace(comma, true) {
        to.push(',');
    }
    write_text(to, name);
    to.push(':');
}

fn write_members<'a>(
    to: &mut String,
    members: impl Iterator<Item = (&'a str, &'a RawJson)>,
    comma: &mut bool,
) {
    for (name, value) in members {
        write_name(to, name, comma);
        to.push_str(value.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serializes_raw_values_unchanged() {
        let params = RawObject::default().with("a", RawJson::parse("[1,\n 2e0]").unwrap());
        let content = |method: &'static str| RequestContent { method, call: None, params: &params };
        assert_eq!(
            serialize_request(1, content("m"), &RequestMeta::default()),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":[1,\n 2e0]}}"
        );
        let forwarded = Cow::Owned(RawObject::default().with("quo\"te", 1));
        let meta = RequestMeta { forwarded, ..RequestMeta::default() };
        assert_eq!(
            serialize_request(
                20,
                RequestContent { method: "m", call: None, params: &RawObject::default().with("a", 1) },
                &meta
            ),
            r#"{"jsonrpc":"2.0","id":20,"method":"m","params":{"a":1,"_meta":{"quo\"te":1}}}"#
        );
        let nothing = RawObject::default();
        assert_eq!(
            serialize_request(
                u64::MAX,
                RequestContent { method: "m/\"n", call: None, params: &nothing },
                &meta
            ),
            r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"m/\"n","params":{"_meta":{"quo\"te":1}}}"#
        );
    }

    #[test]
    fn serializes_tool_call_with_params_and_meta() {
        let arguments = RawJson::parse(r#"{"n":1e2}"#).unwrap();
        let params = RawObject::default().with("name", "other").with("requestState", "s").with("_meta", 1);
        let content =
            RequestContent { method: "tools/call", call: Some(("a \"b\"", &arguments)), params: &params };
        assert_eq!(
            serialize_request(0, content, &RequestMeta { progress: Some(0), ..RequestMeta::default() }),
            concat!(
                r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"a \"b\"","arguments":{"n":1e2},"#,
                r#""requestState":"s","_meta":{"progressToken":0}}}"#
            )
        );
        let forwarded = RawObject::default().with("k", 1).with(VERSION, "old").with(PROGRESS_TOKEN, "theirs");
        let modern = |log_level| {
            Some(ModernMeta { version: "2026-07-28", capabilities: RawJson::empty_object(), log_level })
        };
        let forwarded = forwarded.with(LOG_LEVEL, "debug");
        let level = RawJson::from("error");
        let (forwarded, modern) = (Cow::Owned(forwarded), modern(Some(level)));
        let text = serialize_request(7, content, &RequestMeta { forwarded, modern, progress: Some(7) });
        let meta = RawJson::parse(text).unwrap().value()["params"]["_meta"].clone();
        let names: Vec<&str> = meta.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["k", VERSION, INFO, CAPABILITIES, LOG_LEVEL, PROGRESS_TOKEN]);
        assert_eq!(meta[LOG_LEVEL], "error");
        assert_eq!((&meta[VERSION], &meta[PROGRESS_TOKEN]), (&"2026-07-28".into(), &7.into()));
        assert_eq!(RawJson::from(meta[INFO].clone()).get(), crate::era::client_info().into_raw().get());
    }
}
