//! Parses the messages of clients: the envelope is parsed, the rest stays as received.

use std::borrow::Cow;

use bytestring::ByteString;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use toolhub_core::caller::ClientResponse;
use toolhub_core::json::{MAX_DEPTH, key_problem, too_deep};
use toolhub_core::{RawJson, RawObject};
use toolhub_mcp_wire::jsonrpc::MAX_ID_BYTES;
use toolhub_mcp_wire::scan::{self, CheckedJsonScanner};

use crate::rpc_error::{INVALID_REQUEST, PARSE_ERROR, RpcError};
pub(crate) use toolhub_mcp_wire::jsonrpc::on_one_line as one_line;

/// A message of a client.
#[derive(Debug)]
pub(crate) enum ClientMessage {
    /// A request.
    Request(ClientRequest, RequestParams),
    /// A notification.
    Notification { method: String, params: Option<RawJson> },
    /// The response to a server request.
    Response { id: u64, answer: ClientResponse },
}

/// A request of a client.
#[derive(Debug, Clone)]
pub(crate) struct ClientRequest {
    /// The request id: a string or a number, as received.
    pub(crate) id: RawJson,
    pub(crate) method: ByteString,
}

/// The params of a request, parsed once.
#[derive(Debug, Default)]
pub(crate) struct RequestParams {
    /// All members except `_meta`.
    pub(crate) members: RawObject,
    /// The members of `_meta`.
    pub(crate) meta: RawObject,
}

impl RequestParams {
    fn of(params: Option<&RawJson>) -> Self {
        let mut members = params.and_then(RawJson::object).unwrap_or_default();
        let meta = members.get("_meta").and_then(RawJson::object).unwrap_or_default();
        members.remove("_meta");
        Self { members, meta }
    }

    /// Returns a member that is a string.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        self.members.get(key)?.text()
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct ErrorObject {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

/// The error message for batches.
pub(crate) const BATCHES_UNSUPPORTED: &str =
    "send one message at a time: batches were removed from the protocol with revision 2025-06-18";

/// Parses a request in the form that nearly all have, in one pass over the text. Returns `None` for any other message,
/// which is parsed by [`read_general`].
fn read_fast(text: &ByteString) -> Option<(ClientRequest, RequestParams)> {
    let (mut version, mut id, mut method, mut params) = (None, None, None, None);
    let mut scan = CheckedJsonScanner::over(text);
    scan.members(|scan, name| {
        let twice = match name {
            "jsonrpc" => version.replace(scan.value()?).is_some(),
            "id" => id.replace(scan.value()?).is_some(),
            "method" => method.replace(scan.plain()?).is_some(),
            "params" => params.replace(read_params_fast(scan, text)?).is_some(),
            _ => scan.value().is_none(),
        };
        (!twice).then_some(())
    })?;
    let (id, params) = (id?, params?);
    let named = matches!(id.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
    if !scan.is_at_end() || version != Some("\"2.0\"") || !named || scan.has_duplicate_key() {
        return None;
    }
    let request =
        ClientRequest { id: RawJson::part(text, scan::found(id)?), method: text.slice_ref(method?) };
    Some((request, params))
}

/// Reads the members of the params and of their `_meta`.
fn read_params_fast<'a>(scan: &mut CheckedJsonScanner<'a>, text: &'a ByteString) -> Option<RequestParams> {
    let (mut members, mut meta) = (RawObject::default(), None);
    let add = |to: &mut RawObject, scan: &mut CheckedJsonScanner<'a>, name: &str| {
        to.push(text.slice_ref(name), RawJson::part(text, scan::found(scan.value()?)?));
        Some(())
    };
    scan.members(|scan, name| {
        if name != "_meta" {
            return add(&mut members, scan, name);
        }
        let mut members_of_meta = RawObject::default();
        scan.members(|scan, name| add(&mut members_of_meta, scan, name))?;
        meta.replace(members_of_meta).is_none().then_some(())
    })?;
    Some(RequestParams { members, meta: meta.unwrap_or_default() })
}

/// Why a message was refused, and its id, if known.
pub(crate) type Rejection = (Option<RawJson>, RpcError);

/// Parses a message.
pub(crate) fn parse_message(text: &ByteString) -> Result<ClientMessage, Rejection> {
    let message = match read_fast(text) {
        Some((request, params)) => ClientMessage::Request(request, params),
        None => read_general(text)?,
    };
    // A short message has no long parts.
    match &message {
        ClientMessage::Request(request, params) if text.len() > MAX_ID_BYTES => {
            check_lengths(request, params)?;
        }
        _ => {}
    }
    Ok(message)
}

/// Refuses ids and progress tokens that are too long: they are kept, and repeated in each message about the request. A
/// refused id is not repeated in the error either.
fn check_lengths(request: &ClientRequest, params: &RequestParams) -> Result<(), Rejection> {
    let refuse = |what: &str| {
        RpcError::new(
            INVALID_REQUEST,
            format!("{what} is too long: at most {MAX_ID_BYTES} bytes are allowed"),
        )
    };
    if request.id.get().len() > MAX_ID_BYTES {
        return Err((None, refuse("`id`")));
    }
    let token = params.meta.get("progressToken");
    if token.is_some_and(|token| token.get().len() > MAX_ID_BYTES) {
        return Err((Some(request.id.clone()), refuse("`progressToken`")));
    }
    Ok(())
}

/// Parses any message, and reports what is invalid.
fn read_general(text: &ByteString) -> Result<ClientMessage, Rejection> {
    if too_deep(text).is_some() {
        return Err((None, RpcError::new(PARSE_ERROR, format!("nested more than {MAX_DEPTH} deep"))));
    }
    let no_message = |error: serde_json::Error| {
        let code = if error.is_data() { INVALID_REQUEST } else { PARSE_ERROR };
        (None, RpcError::new(code, format!("this is no message: {error}")))
    };
    serde_json::from_str::<IgnoredAny>(text).map_err(no_message)?;
    // With duplicate keys, a check may read one value and a server the other, so such messages are refused.
    if let Some(problem) = key_problem(text) {
        let error =
            RpcError::new(INVALID_REQUEST, format!("{problem}: each key may occur once in an object"));
        return Err((only_id(text), error));
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(no_message)?;
    let Envelope { jsonrpc, id, method, params, result, error } = envelope;
    let part = |value: &RawValue| RawJson::part(text, value);
    let id = id.map(part).filter(|id| id.get() != "null");
    let refuse = |id: Option<RawJson>, why: &str| Err((id, RpcError::new(INVALID_REQUEST, why)));
    // Checked first: an invalid id must not be repeated in a response, and may contain line breaks.
    if id.as_ref().is_some_and(|id| id.get().starts_with(['{', '[', 't', 'f'])) {
        return refuse(None, "an id is a string or a number");
    }
    if jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return refuse(id, "`jsonrpc` must be \"2.0\"");
    }
    let params = params.map(part).filter(|params| params.get() != "null");
    match (method, id) {
        (Some(_), id) if params.as_ref().is_some_and(|params| !params.is_object()) => {
            refuse(id, "`params` must be an object")
        }
        (Some(method), Some(id)) => {
            let request = ClientRequest { id, method: method.into() };
            Ok(ClientMessage::Request(request, RequestParams::of(params.as_ref())))
        }
        (Some(method), None) => Ok(ClientMessage::Notification { method, params }),
        (None, id) => {
            let answer = match (result, error) {
                (Some(result), None) => Ok(part(result)),
                (_, Some(ErrorObject { code, message })) => Err((code, message)),
                (None, None) => return refuse(id, "there is neither `method`, `result` nor `error`"),
            };
            // Server requests have numeric ids; a response with any other id matches none.
            match id.as_ref().and_then(|id| id.decode().ok()) {
                Some(id) => Ok(ClientMessage::Response { id, answer }),
                None => refuse(id, "the response matches no request of the server"),
            }
        }
    }
}

/// Returns the id of a message that is refused for duplicate keys, if it has exactly one.
fn only_id(text: &ByteString) -> Option<RawJson> {
    let members = RawJson::parse(&**text).ok()?.object()?;
    let mut ids = members.iter().filter(|(name, _)| *name == "id").map(|(_, id)| id);
    let id = ids.next().filter(|_| ids.next().is_none())?;
    id.get().starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']).then(|| id.clone())
}

/// Serializes the response to a request.
pub(crate) fn serialize_response(id: &RawJson, outcome: &Result<RawJson, RpcError>) -> String {
    match outcome {
        Ok(result) => {
            // One allocation of the exact size, so that it can be sent without copying.
            [r#"{"jsonrpc":"2.0","id":"#, id.get(), r#","result":"#, result.get(), "}"].concat()
        }
        Err(error) => error_response(Some(id), error),
    }
}

/// Serializes an error response.
pub(crate) fn error_response(id: Option<&RawJson>, error: &RpcError) -> String {
    let id = id.map_or("null", RawJson::get);
    let message = RawJson::of(&error.message);
    let data = error.data.as_ref().map(|data| format!(r#","data":{data}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{},"message":{message}{data}}}}}"#, error.code)
}

/// Serializes a notification.
pub(crate) fn serialize_notification(method: &str, params: Option<&RawJson>) -> String {
    let method = RawJson::of(method);
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","method":{method}{params}}}"#)
}

#[cfg(test)]
mod attacks;
#[cfg(test)]
#[path = "../../../fuzz/shared/json_text.rs"]
mod json_text;
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::json_text::{any_text, broken};
    use super::*;

    /// Returns a printable form of the parsed message.
    fn parse_and_describe(text: &str) -> String {
        describe(parse_message(&text.into()))
    }

    fn describe(read: Result<ClientMessage, Rejection>) -> String {
        match read {
            Ok(ClientMessage::Request(request, params)) => {
                let RequestParams { members, meta } = params;
                format!("{} {} {} {}", request.id, request.method, members.into_raw(), meta.into_raw())
            }
            Ok(other) => format!("{other:?}"),
            Err((id, error)) => format!("{id:?} {}", error.code),
        }
    }

    #[test]
    fn parses_requests_in_common_and_uncommon_form() {
        let check = |text: &str, expect: &str| assert_eq!(parse_and_describe(text), expect, "{text}");
        let usual =
            r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"b":1e2,"_meta":{"k":[1]},"a":{"_meta":1}}}"#;
        check(usual, r#"7 m {"b":1e2,"a":{"_meta":1}} {"k":[1]}"#);
        // In another order, with unknown members and with escapes.
        check(
            r#"{"params":{"\u0061":1,"_meta":{"_meta":2}},"x":{},"method":"\u006d","id":"7","jsonrpc":"2.0"}"#,
            r#""7" m {"a":1} {"_meta":2}"#,
        );
        check(r#"{"jsonrpc":"2.0","id":-1,"method":"m"}"#, "-1 m {} {}");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#, "1 m {} {}");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":3}}"#, "1 m {} {}");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, "Some(1) -32600");
        check(r#"{"jsonrpc":"2.0","id":{},"method":"m","params":{}}"#, "None -32600");
        check(r#"{"jsonrpc":"2","id":1,"method":"m","params":{}}"#, "Some(1) -32600");
        check("{\"jsonrpc\":\"2\",\"id\":[1,\n2],\"method\":\"m\",\"params\":{}}", "None -32600");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}} x"#, "None -32700");
        check(
            r#"{"jsonrpc":"2.0","id":null,"method":"m","params":{"a":1}}"#,
            r#"Notification { method: "m", params: Some({"a":1}) }"#,
        );
    }

    #[test]
    fn rejects_long_ids_and_progress_tokens() {
        let request = |id: usize, token: usize| {
            let (id, token) = ("i".repeat(id), "t".repeat(token));
            let meta = format!(r#""_meta":{{"progressToken":"{token}"}}"#);
            let usual = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"m","params":{{{meta}}}}}"#);
            let unusual = usual.replace(r#""method""#, r#""\u006dethod""#);
            [usual, unusual]
        };
        let quotes = 2;
        let longest = MAX_ID_BYTES - quotes;
        for text in request(longest, longest) {
            assert!(matches!(parse_message(&text.as_str().into()), Ok(ClientMessage::Request(..))));
        }
        for text in request(longest + 1, 1) {
            let (id, error) = parse_message(&text.as_str().into()).unwrap_err();
            assert!(
                id.is_none() && error.code == INVALID_REQUEST && error.message.contains("`id` is too long")
            );
        }
        for text in request(1, longest + 1) {
            let (id, error) = parse_message(&text.as_str().into()).unwrap_err();
            assert_eq!((id.unwrap().get(), error.code), ("\"i\"", INVALID_REQUEST));
            assert!(error.message.contains("`progressToken` is too long"));
        }
    }

    #[test]
    fn fast_path_accepts_common_requests() {
        let usual = |text: &str| read_fast(&text.into()).is_some();
        assert!(usual(r#"{"jsonrpc":"2.0","id":"a\"b","method":"m","params":{"a":"\u00e9","_meta":{}}}"#));
        assert!(usual(" {\"method\" : \"m\",\"x\":[],\n\"params\":{ },\"id\":-1,\"jsonrpc\":\"2.0\"}\r\n"));
        for unusual in [
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{},"_meta":{"a":1}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m\n","params":{}}"#,
            r#"{"jsonrpc":"2.0","\u0069d":1,"method":"m","params":{}}"#,
        ] {
            assert!(!usual(unusual), "{unusual}");
        }
    }

    /// Valid messages, and many invalid ones: members in any order, missing, repeated, or of the wrong type.
    fn any_message() -> impl Strategy<Value = String> {
        let params = (any_text(), any_text(), any_text())
            .prop_map(|(one, meta, two)| format!(r#"{{"a":{one}, "_meta" : {meta},"b":{two}}}"#));
        let meta = any_text().prop_map(|one| format!(r#"{{"_meta":{{"k":{one},"k":1}},"n":null}}"#));
        let value = prop_oneof![3 => any_text(), 2 => params, 2 => meta, 1 => Just("{}".to_owned())];
        let member = prop_oneof![
            3 => Just(r#""jsonrpc":"2.0""#.to_owned()),
            2 => Just(r#""id":7"#.to_owned()),
            1 => any_text().prop_map(|id| format!(r#""id":{id}"#)),
            2 => Just(r#""method" : "tools/call""#.to_owned()),
            1 => any_text().prop_map(|method| format!(r#""method":{method}"#)),
            4 => value.clone().prop_map(|params| format!(r#""params":{params}"#)),
            1 => value.prop_map(|result| format!(r#""result":{result}"#)),
            1 => any_text().prop_map(|other| format!(r#""\u0070arams":{other}"#)),
        ];
        let order = Just(vec![0, 1, 2, 3]).prop_shuffle();
        let full = (order, any_text(), any_text()).prop_map(|(order, one, meta)| {
            let params = format!(r#""params":{{"a":{one},"_meta":{{"k":{meta}}},"b":1}}"#);
            let all = [r#""jsonrpc":"2.0""#, r#""id":"x""#, r#""method":"m""#, &params];
            let members: Vec<&str> = order.iter().map(|index: &usize| all[*index]).collect();
            format!("{{{}}}", members.join(" ,"))
        });
        let unusual =
            prop::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(",")));
        prop_oneof![full, unusual]
    }

    proptest! {
        #[test]
        fn fast_path_and_general_parser_agree(text in any_message()) {
            prop_assert_eq!(parse_and_describe(&text), describe(read_general(&text.as_str().into())), "{}", text);
        }

        #[test]
        fn fast_path_and_general_parser_agree_on_broken_text(
            text in any_message(),
            at in any::<prop::sample::Index>(),
            with in "[\\[\\]{}\",:\\\\0-9a-z\u{0}\n ]{0,2}",
        ) {
            let text = broken(&text, at, &with);
            prop_assert_eq!(parse_and_describe(&text), describe(read_general(&text.as_str().into())), "{}", text);
        }
    }
}
