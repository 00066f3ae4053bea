//! The binary encoding of one finished call: length-prefixed fields in a fixed order, without the output, which is
//! stored separately. Decoding checks every length, so that damaged bytes yield `None`.

use toolhub_core::call_log::{AttemptStatus, CallEnd, CallStart, CallStatus, RecordId, StoredAttempt};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::{Authorization, CallId, Source, ToolName};

use crate::rows::{
    authorization_of, duration_from_micros, from_micros, micros_of, source_name, stored_json, unix_micros,
};

/// The version of the encoding, its first byte, for a call that another call made.
const ENCODING_VERSION: u8 = 3;
/// The version without the parent, for all other calls: most have none, and need no byte for it.
const VERSION_WITHOUT_PARENT: u8 = 2;
/// The version without authorization, written before principals were recorded.
const VERSION_WITHOUT_AUTHORIZATION: u8 = 1;

/// Maximum number of items in a list: a call has a handful of candidates and attempts.
const MAX_LIST_ITEMS: u64 = 100_000;

/// A decoded call. `end.output` is `None`; `output_bytes` is the length of the output, if the call has one.
#[derive(Debug)]
pub(crate) struct BlockEntry {
    pub(crate) start: CallStart,
    pub(crate) end: CallEnd,
    pub(crate) output_bytes: Option<usize>,
    /// Whether the call belongs in the audit log.
    pub(crate) audit: bool,
}

/// Flags of a call.
const MAY_CHANGE: u8 = 1;
const AUDIT: u8 = 2;

/// Appends the encoding of a finished call; `audit` states whether it belongs in the audit log.
pub(crate) fn encode(start: &CallStart, end: &CallEnd, audit: bool, out: &mut Vec<u8>) {
    out.push(if start.parent.is_some() { ENCODING_VERSION } else { VERSION_WITHOUT_PARENT });
    put_str(out, start.record.as_str());
    put_str(out, start.call.as_str());
    put_str(out, start.tool.as_str());
    put_str(out, &start.strategy);
    put_option(out, start.conversation.as_deref());
    put_option(out, start.request.as_deref());
    put_str(out, &start.authorization.principal);
    put_option(out, start.authorization.rule.as_deref());
    put_option(out, start.authorization.approver.as_deref());
    if let Some(parent) = &start.parent {
        put_str(out, parent.as_str());
    }
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    out.push(flag(start.may_change, MAY_CHANGE) | flag(audit, AUDIT));
    put_number(out, unix_micros(start.at).unsigned_abs());
    out.push(status_code(end.status));
    put_number(out, micros_of(end.took).unsigned_abs());
    put_error(out, end.error.as_ref());
    put_sources(out, &start.candidates);
    put_sources(out, &end.sources);
    put_number(out, end.attempts.len() as u64);
    for attempt in &end.attempts {
        put_source(out, &attempt.source);
        put_str(out, attempt.tool.as_str());
        out.push(attempt_code(attempt.status));
        put_number(out, micros_of(attempt.took).unsigned_abs());
        put_error(out, attempt.error.as_ref());
    }
    put_str(out, start.arguments.get());
    put_number(out, end.output.as_ref().map_or(0, |output| output.get().len() as u64 + 1));
}

/// Decodes one call. Returns `None` if the bytes are not a whole entry.
pub(crate) fn decode(bytes: &[u8]) -> Option<BlockEntry> {
    let mut reader = Reader { bytes };
    let version = reader.byte()?;
    if ![ENCODING_VERSION, VERSION_WITHOUT_PARENT, VERSION_WITHOUT_AUTHORIZATION].contains(&version) {
        return None;
    }
    let record = RecordId::new(reader.str()?);
    let call = CallId::new(reader.str()?);
    let tool = ToolName::new(reader.str()?);
    let strategy = reader.str()?.to_owned();
    let conversation = reader.option()?;
    let request = reader.option()?;
    let authorization = match version {
        ENCODING_VERSION | VERSION_WITHOUT_PARENT => {
            let principal = reader.str()?;
            authorization_of(principal, reader.option()?.as_deref(), reader.option()?.as_deref())
        }
        _ => Authorization::default(),
    };
    let parent = match version {
        ENCODING_VERSION => Some(CallId::new(reader.str()?)),
        _ => None,
    };
    let flags = reader.byte()?;
    let (may_change, audit) = (flags & MAY_CHANGE != 0, flags & AUDIT != 0);
    let at = from_micros(reader.micros()?);
    let status = status_of(reader.byte()?)?;
    let took = duration_from_micros(reader.micros()?);
    let error = reader.error()?;
    let candidates = reader.sources()?;
    let sources = reader.sources()?;
    let mut attempts = Vec::new();
    for _ in 0..reader.count()? {
        attempts.push(StoredAttempt {
            source: Source::from_name(reader.str()?),
            tool: ToolName::new(reader.str()?),
            status: attempt_of(reader.byte()?)?,
            took: duration_from_micros(reader.micros()?),
            error: reader.error()?,
        });
    }
    let arguments = stored_json(reader.str()?.to_owned());
    let output_bytes = match reader.number()? {
        0 => None,
        length => Some(usize::try_from(length - 1).ok()?),
    };
    if !reader.bytes.is_empty() {
        return None;
    }
    let start = CallStart {
        record: record.clone(),
        call,
        tool,
        arguments,
        conversation,
        request,
        strategy,
        candidates,
        may_change,
        at,
        authorization,
        parent,
    };
    let end = CallEnd { record, status, took, error, sources, attempts, output: None };
    Some(BlockEntry { start, end, output_bytes, audit })
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_str(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// `None` is encoded as zero, a text as its length plus one and its bytes.
fn put_option(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        None => out.push(0),
        Some(text) => {
            put_number(out, text.len() as u64 + 1);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

fn put_source(out: &mut Vec<u8>, source: &Source) {
    put_str(out, source_name(source));
}

fn put_sources(out: &mut Vec<u8>, sources: &[Source]) {
    put_number(out, sources.len() as u64);
    for source in sources {
        put_source(out, source);
    }
}

fn put_error(out: &mut Vec<u8>, error: Option<&(String, LocalizedText)>) {
    put_option(out, error.map(|(kind, _)| kind.as_str()));
    if let Some((_, text)) = error {
        put_str(out, &text.localize(Lang::En));
        put_str(out, &text.localize(Lang::Zh));
    }
}

/// The code of a status, which is also its bit in the summary of a block.
pub(crate) fn status_code(status: CallStatus) -> u8 {
    match status {
        CallStatus::Running => 0,
        CallStatus::Succeeded => 1,
        CallStatus::Failed => 2,
        CallStatus::Unknown => 3,
    }
}

fn status_of(code: u8) -> Option<CallStatus> {
    CallStatus::ALL.into_iter().find(|status| status_code(*status) == code)
}

fn attempt_code(status: AttemptStatus) -> u8 {
    match status {
        AttemptStatus::Succeeded => 0,
        AttemptStatus::Failed => 1,
        AttemptStatus::Cancelled => 2,
    }
}

fn attempt_of(code: u8) -> Option<AttemptStatus> {
    [AttemptStatus::Succeeded, AttemptStatus::Failed, AttemptStatus::Cancelled]
        .into_iter()
        .find(|status| attempt_code(*status) == code)
}

/// The bytes that are left to decode.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn count(&mut self) -> Option<u64> {
        self.number().filter(|count| *count <= MAX_LIST_ITEMS)
    }

    fn micros(&mut self) -> Option<i64> {
        i64::try_from(self.number()?).ok()
    }

    fn text_of(&mut self, length: u64) -> Option<&'a str> {
        let (text, rest) = self.bytes.split_at_checked(usize::try_from(length).ok()?)?;
        self.bytes = rest;
        std::str::from_utf8(text).ok()
    }

    fn str(&mut self) -> Option<&'a str> {
        let length = self.number()?;
        self.text_of(length)
    }

    fn option(&mut self) -> Option<Option<String>> {
        match self.number()? {
            0 => Some(None),
            length => self.text_of(length - 1).map(|text| Some(text.to_owned())),
        }
    }

    fn sources(&mut self) -> Option<Vec<Source>> {
        let count = self.count()?;
        (0..count).map(|_| self.str().map(Source::from_name)).collect()
    }

    fn error(&mut self) -> Option<Option<(String, LocalizedText)>> {
        let Some(kind) = self.option()? else { return Some(None) };
        let (en, zh) = (self.str()?, self.str()?);
        Some(Some((kind, LocalizedText::new(en, zh))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Duration;

    use toolhub_core::RawJson;

    use crate::blocks::tests::call;

    #[test]
    fn decodes_what_was_encoded_and_rejects_every_prefix() {
        for parent in [None, Some(CallId::new("call_安")), Some(CallId::new(""))] {
            check_decoding(parent);
        }
    }

    fn check_decoding(parent: Option<CallId>) {
        let (mut start, mut end) = call("t");
        start.parent = parent;
        start.conversation = Some("c".to_owned());
        start.request = Some("写\n\"it\"\0".to_owned());
        start.candidates = vec![Source::Native, Source::Skill, Source::from_name("excel")];
        start.arguments =
            RawJson::parse("{\"a\": 12345678901234567890123,\n \"b\": \"中\"}".to_owned()).unwrap();
        start.authorization =
            authorization_of("oidc:https://idp.example#安", Some("rule 3"), Some("key:ops"));
        end.error = Some(("failed".to_owned(), LocalizedText::new("no", "不")));
        end.took = Duration::from_micros(u64::MAX >> 20);
        end.attempts[0].error = Some(("failed".to_owned(), LocalizedText::new("no", "不")));
        let mut bytes = Vec::new();
        encode(&start, &end, true, &mut bytes);
        let entry = decode(&bytes).unwrap();
        assert!(entry.audit && entry.start.may_change == start.may_change);
        assert_eq!(entry.output_bytes, end.output.as_ref().map(|output| output.get().len()));
        end.output = None;
        assert_eq!(format!("{:?}", entry.start), format!("{start:?}"));
        assert_eq!(format!("{:?}", entry.end), format!("{end:?}"));
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_none(), "{length}");
        }
        bytes.push(0);
        assert!(decode(&bytes).is_none());
    }

    /// The entry of a call as it was written before principals were recorded.
    pub(crate) fn encode_without_authorization(start: &CallStart, end: &CallEnd) -> Vec<u8> {
        let (mut bytes, mut authorization) = (Vec::new(), Vec::new());
        encode(start, end, false, &mut bytes);
        put_str(&mut authorization, &start.authorization.principal);
        put_option(&mut authorization, start.authorization.rule.as_deref());
        put_option(&mut authorization, start.authorization.approver.as_deref());
        let at = bytes.windows(authorization.len()).position(|part| part == authorization).unwrap();
        bytes.drain(at..at + authorization.len());
        bytes[0] = VERSION_WITHOUT_AUTHORIZATION;
        bytes
    }

    #[test]
    fn decodes_entries_without_authorization_as_local() {
        let (mut start, end) = call("t");
        start.authorization = authorization_of("key:ci", Some("rule 1"), None);
        let entry = decode(&encode_without_authorization(&start, &end)).unwrap();
        start.authorization = Authorization::default();
        assert_eq!(format!("{:?}", entry.start), format!("{start:?}"));
        // Bytes of the older format, written out: a change of the encoder cannot change them.
        let fixed = b"\x01\x02r1\x02c1\x01t\x05first\x00\x03hi\x01\xe8\x07\x01\x05\x00\x01\x06native\x00\x00\x02{}\x00";
        let entry = decode(fixed).unwrap();
        assert_eq!((entry.start.record.as_str(), entry.start.request.as_deref()), ("r1", Some("hi")));
        assert_eq!((entry.start.may_change, entry.end.status), (true, CallStatus::Succeeded));
        assert_eq!(entry.start.authorization, Authorization::default());
    }

    #[test]
    fn encodes_calls_without_a_parent_as_before() {
        // Bytes of the version without parents, written out: a change of the encoder cannot change them.
        let fixed = b"\x02\x02r1\x02c1\x01t\x05first\x00\x03hi\x06key:ci\x07rule 1\x00\x03\xe8\x07\x01\x05\x00\x01\x06native\x00\x00\x02{}\x00";
        let BlockEntry { start, end, audit, .. } = decode(fixed).unwrap();
        assert_eq!((start.record.as_str(), &start.parent), ("r1", &None));
        assert_eq!(start.authorization, authorization_of("key:ci", Some("rule 1"), None));
        assert!(start.may_change && audit);
        let mut bytes = Vec::new();
        encode(&start, &end, true, &mut bytes);
        assert_eq!(bytes, fixed);
        let nested = CallStart { parent: Some(CallId::new("c0")), ..start };
        bytes.clear();
        encode(&nested, &end, true, &mut bytes);
        assert_eq!((bytes[0], bytes.len()), (ENCODING_VERSION, fixed.len() + 3));
        assert_eq!(decode(&bytes).unwrap().start.parent, Some(CallId::new("c0")));
    }

    #[test]
    fn survives_random_bytes() {
        let (mut start, end) = call("t");
        start.parent = Some(CallId::new("c0"));
        let mut bytes = Vec::new();
        encode(&start, &end, false, &mut bytes);
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            for _ in 0..fastrand::usize(1..6) {
                let at = fastrand::usize(..damaged.len());
                damaged[at] = fastrand::u8(..);
            }
            drop(decode(&damaged));
        }
    }
}
