//! Serializes requests by hand, since every call is one.

use std::borrow::Cow;
use std::sync::LazyLock;

use toolhub_core::{Digits, RawJson, RawObject};

use crate::era::{CAPABILITIES, CLIENT_INFO, INFO, LOG_LEVEL, VERSION};
use crate::scan;

/// Reserved size of a request without the arguments of a call, in bytes.
const ROOM: usize = 448;
/// The `_meta` member with the progress token.
const PROGRESS: &str = "progressToken";

/// The content of a request.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// The method.
    pub method: &'a str,
    /// The name and arguments of a tool call, written before the other params.
    pub call: Option<(&'a str, &'a RawJson)>,
    /// The other params.
    pub params: &'a RawObject,
}

/// The `_meta` of a request.
#[derive(Debug, Default)]
pub struct Meta<'a> {
    /// The members that the client sent.
    pub given: Cow<'a, RawObject>,
    /// The members of a modern request.
    pub modern: Option<Modern<'a>>,
    /// The progress token.
    pub progress: Option<u64>,
}

/// The `_meta` members of a modern request (2026-07-28, basic/index: `_meta`).
#[derive(Debug)]
pub struct Modern<'a> {
    /// The protocol version.
    pub version: &'a str,
    /// The client capabilities.
    pub can: RawJson,
    /// The minimum log level, if log messages are requested.
    pub log_level: Option<RawJson>,
}

/// The members with our name and capabilities, up to the capabilities' value.
static WHO: LazyLock<String> = LazyLock::new(|| format!(r#","{INFO}":{CLIENT_INFO},"{CAPABILITIES}":"#));

impl Meta<'_> {
    fn is_empty(&self) -> bool {
        self.given.is_empty() && self.modern.is_none() && self.progress.is_none()
    }

    /// Whether it sets a member of that name itself, also for a server that ignores the case of keys.
    fn has_own(&self, name: &str) -> bool {
        let is = |own: &str| name.eq_ignore_ascii_case(own);
        let of_modern = |modern: &Modern<'_>| {
            [VERSION, INFO, CAPABILITIES].into_iter().any(is) || (modern.log_level.is_some() && is(LOG_LEVEL))
        };
        self.modern.as_ref().is_some_and(of_modern) || (self.progress.is_some() && is(PROGRESS))
    }

    fn write(&self, text: &mut String) {
        let mut comma = false;
        write_members(text, self.given.iter().filter(|(name, _)| !self.has_own(name)), &mut comma);
        if let Some(Modern { version, can, log_level }) = &self.modern {
            write_own(text, VERSION, &mut comma);
            write_text(text, version);
            text.push_str(&WHO);
            text.push_str(can.get());
            if let Some(level) = log_level {
                write_own(text, LOG_LEVEL, &mut comma);
                text.push_str(level.get());
            }
        }
        if let Some(id) = self.progress {
            write_own(text, PROGRESS, &mut comma);
            text.push_str(Digits::of(id).as_str());
        }
    }
}

/// Serializes a request with its params and `_meta`. Raw values are copied unchanged, including line breaks.
pub fn request(id: u64, said: Said<'_>, meta: &Meta<'_>) -> String {
    let Said { method, call, params } = said;
    let mut text = String::with_capacity(ROOM + call.map_or(0, |(_, arguments)| arguments.get().len()));
    text.push_str(r#"{"jsonrpc":"2.0","id":"#);
    text.push_str(Digits::of(id).as_str());
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
    let said_before = |name: &str| match name {
        "_meta" => !meta.is_empty(),
        "name" | "arguments" => call.is_some(),
        _ => false,
    };
    write_members(&mut text, params.iter().filter(|(name, _)| !said_before(name)), &mut comma);
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
fn write_own(to: &mut String, name: &str, comma: &mut bool) {
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
    fn values_stand_as_they_are() {
        let params = RawObject::default().with("a", RawJson::parse("[1,\n 2e0]").unwrap());
        let said = |method: &'static str| Said { method, call: None, params: &params };
        assert_eq!(
            request(1, said("m"), &Meta::default()),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":[1,\n 2e0]}}"
        );
        let given = Cow::Owned(RawObject::default().with("quo\"te", 1));
        let meta = Meta { given, ..Meta::default() };
        assert_eq!(
            request(20, Said { method: "m", call: None, params: &RawObject::default().with("a", 1) }, &meta),
            r#"{"jsonrpc":"2.0","id":20,"method":"m","params":{"a":1,"_meta":{"quo\"te":1}}}"#
        );
        let nothing = RawObject::default();
        assert_eq!(
            request(u64::MAX, Said { method: "m/\"n", call: None, params: &nothing }, &meta),
            r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"m/\"n","params":{"_meta":{"quo\"te":1}}}"#
        );
    }

    #[test]
    fn a_call_says_what_it_is_about_and_what_goes_along() {
        let arguments = RawJson::parse(r#"{"n":1e2}"#).unwrap();
        let params = RawObject::default().with("name", "other").with("requestState", "s").with("_meta", 1);
        let said = Said { method: "tools/call", call: Some(("a \"b\"", &arguments)), params: &params };
        assert_eq!(
            request(0, said, &Meta { progress: Some(0), ..Meta::default() }),
            concat!(
                r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"a \"b\"","arguments":{"n":1e2},"#,
                r#""requestState":"s","_meta":{"progressToken":0}}}"#
            )
        );
        let given = RawObject::default().with("k", 1).with(VERSION, "old").with(PROGRESS, "theirs");
        let modern =
            |log_level| Some(Modern { version: "2026-07-28", can: RawJson::empty_object(), log_level });
        let given = given.with(LOG_LEVEL, "debug");
        let level = RawJson::from("error");
        let (given, modern) = (Cow::Owned(given), modern(Some(level)));
        let text = request(7, said, &Meta { given, modern, progress: Some(7) });
        let meta = RawJson::parse(text).unwrap().value()["params"]["_meta"].clone();
        let names: Vec<&str> = meta.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["k", VERSION, INFO, CAPABILITIES, LOG_LEVEL, PROGRESS]);
        assert_eq!(meta[LOG_LEVEL], "error");
        assert_eq!((&meta[VERSION], &meta[PROGRESS]), (&"2026-07-28".into(), &7.into()));
        assert_eq!(RawJson::from(meta[INFO].clone()).get(), crate::era::client_info().into_raw().get());
    }
}
