//! A record of the audit log, and its encodings: binary for the hash, JSON for exports. One table of fields per kind
//! ([`visit`]) defines both.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use toolhub_core::audit::{
    AuditAction, AuditEvent, AuditKind, CallEvent, ChangeEvent, ChangeKind, ChangedObject, HeldCallDecision,
    HeldCallEvent, LoginEvent, RefusalEvent, Sha256Digest, UseEvent,
};
use toolhub_core::call_log::CallStatus;
use toolhub_core::hex;

use crate::encoding::{Reader, put_maybe_text, put_number, put_text};

/// The version of the encoding, its first byte.
pub(crate) const VERSION: u8 = 1;
/// Maximum number of texts in a list.
const MAX_TEXTS: u64 = 100_000;

/// A record of the audit log. Times have a precision of microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// Its number; the first record of a log has the number 1, and none is left out.
    pub sequence: u64,
    /// What happened.
    pub event: AuditEvent,
}

impl AuditRecord {
    /// The canonical encoding: version, sequence number, and the encoding of the event.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_number(&mut out, self.sequence);
        encode_event(&self.event, &mut out);
        out
    }

    /// Decodes a record; `None` if the bytes are not the encoding of any record.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader { bytes };
        if reader.byte()? != VERSION {
            return None;
        }
        let sequence = reader.number()?;
        let event = decode_event(&mut reader)?;
        reader.bytes.is_empty().then_some(Self { sequence, event })
    }

    /// Time of the event in microseconds since 1970.
    pub fn micros(&self) -> u64 {
        micros(self.event.at)
    }

    /// The members of the record in an export, without its hash.
    pub(crate) fn to_members(&self) -> Map<String, Value> {
        let mut action = self.event.action.clone();
        let mut writer = MemberWriter(Map::new());
        let members = &mut writer.0;
        members.insert("sequence".to_owned(), self.sequence.into());
        members.insert("time".to_owned(), self.micros().into());
        members.insert("kind".to_owned(), action.kind().name().into());
        members.insert("principal".to_owned(), (*self.event.principal).into());
        let _ = visit(&mut action, &mut writer);
        writer.0
    }

    /// The record with these members; `None` if one is missing or has the wrong type.
    pub(crate) fn from_members(members: &Map<String, Value>) -> Option<Self> {
        let mut action = blank(AuditKind::from_name(members.get("kind")?.as_str()?)?);
        visit(&mut action, &mut MemberReader(members))?;
        let at = from_micros(members.get("time")?.as_u64()?)?;
        let principal = members.get("principal")?.as_str()?.into();
        let sequence = members.get("sequence")?.as_u64()?;
        Some(Self { sequence, event: AuditEvent { at, principal, action } })
    }
}

/// The sequence number of an encoded record.
pub(crate) fn sequence_of(encoding: &[u8]) -> Option<u64> {
    let mut reader = Reader { bytes: encoding };
    (reader.byte()? == VERSION).then(|| reader.number())?
}

/// The part of a call that is recorded, borrowed: calls are encoded on the path of every call.
#[derive(Debug, Clone, Copy)]
pub struct CallFields<'a> {
    /// Start of the call in microseconds since 1970.
    pub micros: u64,
    /// The principal that made it.
    pub principal: &'a str,
    /// The record id.
    pub record: &'a str,
    /// The tool or capability.
    pub tool: &'a str,
    /// The arguments as they are stored.
    pub arguments: &'a str,
    /// The outcome.
    pub status: CallStatus,
    /// Whether it may change state.
    pub may_change: bool,
    /// The rule that allowed it.
    pub rule: Option<&'a str>,
    /// The principal that approved it.
    pub approver: Option<&'a str>,
}

/// Appends the encoding of a call, equal to that of its [`CallEvent`].
pub(crate) fn encode_call<'a>(
    call: &CallFields<'_>,
    sources: impl ExactSizeIterator<Item = &'a str>,
    out: &mut Vec<u8>,
) {
    out.push(kind_code(AuditKind::Call));
    put_number(out, call.micros);
    put_text(out, call.principal);
    put_text(out, call.record);
    put_text(out, call.tool);
    put_number(out, sources.len() as u64);
    for source in sources {
        put_text(out, source);
    }
    out.extend_from_slice(ring::digest::digest(&ring::digest::SHA256, call.arguments.as_bytes()).as_ref());
    out.push(status_code(call.status));
    out.push(u8::from(call.may_change));
    put_maybe_text(out, call.rule);
    put_maybe_text(out, call.approver);
}

/// Appends the encoding of an event: kind, time, principal, and the fields of the kind.
pub(crate) fn encode_event(event: &AuditEvent, out: &mut Vec<u8>) {
    out.push(kind_code(event.action.kind()));
    put_number(out, micros(event.at));
    put_text(out, &event.principal);
    // Encoding does not fail.
    let _ = visit(&mut event.action.clone(), &mut Encoder(out));
}

fn decode_event(reader: &mut Reader<'_>) -> Option<AuditEvent> {
    let kind = *AuditKind::ALL.get(usize::from(reader.byte()?))?;
    let at = from_micros(reader.number()?)?;
    let principal: Arc<str> = reader.text()?.into();
    let mut action = blank(kind);
    visit(&mut action, &mut Decoder(reader))?;
    Some(AuditEvent { at, principal, action })
}

/// The code of a kind: its place among all.
pub(crate) fn kind_code(kind: AuditKind) -> u8 {
    code(&AuditKind::ALL, kind)
}

fn status_code(status: CallStatus) -> u8 {
    code(&CallStatus::ALL, status)
}

fn code<T: PartialEq + Copy>(all: &[T], value: T) -> u8 {
    let place = all.iter().position(|one| *one == value);
    u8::try_from(place.unwrap_or(all.len())).unwrap_or(u8::MAX)
}

fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

fn from_micros(micros: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_micros(micros))
}

/// An action of a kind without content, to be filled by a visitor.
fn blank(kind: AuditKind) -> AuditAction {
    let change = |object| {
        let change = ChangeKind::Created;
        AuditAction::Change(ChangeEvent { object, name: String::new(), change, sha256: None, detail: None })
    };
    match kind {
        AuditKind::Login => AuditAction::Login(LoginEvent {
            method: String::new(),
            accepted: false,
            reason: None,
            address: None,
        }),
        AuditKind::Refusal => AuditAction::Refusal(RefusalEvent {
            operation: String::new(),
            resource: String::new(),
            rule: None,
            reference: String::new(),
        }),
        AuditKind::Call => AuditAction::Call(CallEvent {
            record: String::new(),
            tool: String::new(),
            sources: Vec::new(),
            arguments_sha256: [0; 32],
            status: CallStatus::Unknown,
            may_change: false,
            rule: None,
            approver: None,
        }),
        AuditKind::HeldCall => AuditAction::HeldCall(HeldCallEvent {
            reference: String::new(),
            tool: String::new(),
            caller: String::new(),
            decision: HeldCallDecision::Held,
            rule: None,
            arguments_sha256: None,
        }),
        AuditKind::KeyChange => change(ChangedObject::Key),
        AuditKind::RuleChange => change(ChangedObject::Rule),
        AuditKind::ConfigChange => change(ChangedObject::Config),
        AuditKind::ServerChange => change(ChangedObject::Server),
        AuditKind::Use => AuditAction::Use(UseEvent {
            operation: String::new(),
            item: String::new(),
            server: None,
            rule: None,
        }),
    }
}

/// Visits the fields of an action in the order of the encoding. Never change the fields of a kind: add a version.
fn visit(action: &mut AuditAction, visitor: &mut impl Visitor) -> Option<()> {
    match action {
        AuditAction::Login(login) => {
            visitor.text("method", &mut login.method)?;
            visitor.flag("accepted", &mut login.accepted)?;
            visitor.maybe_text("reason", &mut login.reason)?;
            visitor.maybe_text("address", &mut login.address)
        }
        AuditAction::Refusal(refusal) => {
            visitor.text("operation", &mut refusal.operation)?;
            visitor.text("resource", &mut refusal.resource)?;
            visitor.maybe_text("rule", &mut refusal.rule)?;
            visitor.text("reference", &mut refusal.reference)
        }
        AuditAction::Call(call) => {
            visitor.text("record", &mut call.record)?;
            visitor.text("tool", &mut call.tool)?;
            visitor.texts("sources", &mut call.sources)?;
            visitor.digest("arguments_sha256", &mut call.arguments_sha256)?;
            visitor.choice("status", &mut call.status, &CallStatus::ALL.map(|one| (one, one.name())))?;
            visitor.flag("may_change", &mut call.may_change)?;
            visitor.maybe_text("rule", &mut call.rule)?;
            visitor.maybe_text("approver", &mut call.approver)
        }
        AuditAction::HeldCall(held) => {
            visitor.text("reference", &mut held.reference)?;
            visitor.text("tool", &mut held.tool)?;
            visitor.text("caller", &mut held.caller)?;
            let decisions = HeldCallDecision::ALL.map(|one| (one, one.name()));
            visitor.choice("decision", &mut held.decision, &decisions)?;
            visitor.maybe_text("rule", &mut held.rule)?;
            visitor.maybe_digest("arguments_sha256", &mut held.arguments_sha256)
        }
        AuditAction::Change(change) => {
            visitor.text("name", &mut change.name)?;
            visitor.choice("change", &mut change.change, &ChangeKind::ALL.map(|one| (one, one.name())))?;
            visitor.maybe_digest("sha256", &mut change.sha256)?;
            visitor.maybe_text("detail", &mut change.detail)
        }
        AuditAction::Use(used) => {
            visitor.text("operation", &mut used.operation)?;
            visitor.text("item", &mut used.item)?;
            visitor.maybe_text("server", &mut used.server)?;
            visitor.maybe_text("rule", &mut used.rule)
        }
    }
}

/// Reads or writes the fields of an action. `None` if a field cannot be read.
trait Visitor {
    fn text(&mut self, name: &'static str, value: &mut String) -> Option<()>;
    fn maybe_text(&mut self, name: &'static str, value: &mut Option<String>) -> Option<()>;
    fn texts(&mut self, name: &'static str, value: &mut Vec<String>) -> Option<()>;
    fn flag(&mut self, name: &'static str, value: &mut bool) -> Option<()>;
    fn digest(&mut self, name: &'static str, value: &mut Sha256Digest) -> Option<()>;
    fn maybe_digest(&mut self, name: &'static str, value: &mut Option<Sha256Digest>) -> Option<()>;
    fn choice<T: Copy + PartialEq>(
        &mut self,
        name: &'static str,
        value: &mut T,
        all: &[(T, &'static str)],
    ) -> Option<()>;
}

/// Appends the binary encoding.
struct Encoder<'a>(&'a mut Vec<u8>);

impl Visitor for Encoder<'_> {
    fn text(&mut self, _: &'static str, value: &mut String) -> Option<()> {
        put_text(self.0, value);
        Some(())
    }

    fn maybe_text(&mut self, _: &'static str, value: &mut Option<String>) -> Option<()> {
        put_maybe_text(self.0, value.as_deref());
        Some(())
    }

    fn texts(&mut self, _: &'static str, value: &mut Vec<String>) -> Option<()> {
        put_number(self.0, value.len() as u64);
        value.iter().for_each(|text| put_text(self.0, text));
        Some(())
    }

    fn flag(&mut self, _: &'static str, value: &mut bool) -> Option<()> {
        self.0.push(u8::from(*value));
        Some(())
    }

    fn digest(&mut self, _: &'static str, value: &mut Sha256Digest) -> Option<()> {
        self.0.extend_from_slice(value);
        Some(())
    }

    fn maybe_digest(&mut self, _: &'static str, value: &mut Option<Sha256Digest>) -> Option<()> {
        self.0.push(u8::from(value.is_some()));
        self.0.extend_from_slice(value.as_ref().map_or(&[], |digest| digest.as_slice()));
        Some(())
    }

    fn choice<T: Copy + PartialEq>(
        &mut self,
        _: &'static str,
        value: &mut T,
        all: &[(T, &'static str)],
    ) -> Option<()> {
        let place = all.iter().position(|(one, _)| one == value)?;
        self.0.push(u8::try_from(place).ok()?);
        Some(())
    }
}

/// Reads the binary encoding.
struct Decoder<'a, 'b>(&'a mut Reader<'b>);

impl Decoder<'_, '_> {
    fn is_set(&mut self) -> Option<bool> {
        match self.0.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Visitor for Decoder<'_, '_> {
    fn text(&mut self, _: &'static str, value: &mut String) -> Option<()> {
        self.0.text()?.clone_into(value);
        Some(())
    }

    fn maybe_text(&mut self, _: &'static str, value: &mut Option<String>) -> Option<()> {
        *value = self.0.maybe_text()?.map(str::to_owned);
        Some(())
    }

    fn texts(&mut self, _: &'static str, value: &mut Vec<String>) -> Option<()> {
        let count = self.0.number().filter(|count| *count <= MAX_TEXTS)?;
        *value = (0..count).map(|_| self.0.text().map(str::to_owned)).collect::<Option<_>>()?;
        Some(())
    }

    fn flag(&mut self, _: &'static str, value: &mut bool) -> Option<()> {
        *value = self.is_set()?;
        Some(())
    }

    fn digest(&mut self, _: &'static str, value: &mut Sha256Digest) -> Option<()> {
        *value = self.0.array()?;
        Some(())
    }

    fn maybe_digest(&mut self, _: &'static str, value: &mut Option<Sha256Digest>) -> Option<()> {
        *value = if self.is_set()? { Some(self.0.array()?) } else { None };
        Some(())
    }

    fn choice<T: Copy + PartialEq>(
        &mut self,
        _: &'static str,
        value: &mut T,
        all: &[(T, &'static str)],
    ) -> Option<()> {
        *value = all.get(usize::from(self.0.byte()?))?.0;
        Some(())
    }
}

/// Adds JSON members. An absent value is `null`.
struct MemberWriter(Map<String, Value>);

impl MemberWriter {
    fn put(&mut self, name: &str, value: impl Into<Value>) -> Option<()> {
        self.0.insert(name.to_owned(), value.into());
        Some(())
    }
}

impl Visitor for MemberWriter {
    fn text(&mut self, name: &'static str, value: &mut String) -> Option<()> {
        self.put(name, value.as_str())
    }

    fn maybe_text(&mut self, name: &'static str, value: &mut Option<String>) -> Option<()> {
        self.put(name, value.as_deref())
    }

    fn texts(&mut self, name: &'static str, value: &mut Vec<String>) -> Option<()> {
        self.put(name, value.as_slice())
    }

    fn flag(&mut self, name: &'static str, value: &mut bool) -> Option<()> {
        self.put(name, *value)
    }

    fn digest(&mut self, name: &'static str, value: &mut Sha256Digest) -> Option<()> {
        self.put(name, hex::encode(value))
    }

    fn maybe_digest(&mut self, name: &'static str, value: &mut Option<Sha256Digest>) -> Option<()> {
        self.put(name, value.map(|digest| hex::encode(&digest)))
    }

    fn choice<T: Copy + PartialEq>(
        &mut self,
        name: &'static str,
        value: &mut T,
        all: &[(T, &'static str)],
    ) -> Option<()> {
        let chosen = all.iter().find(|(one, _)| one == value)?.1;
        self.put(name, chosen)
    }
}

/// Reads JSON members.
struct MemberReader<'a>(&'a Map<String, Value>);

impl MemberReader<'_> {
    fn maybe<T>(&self, name: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
        match self.0.get(name)? {
            Value::Null => Some(None),
            value => read(value.as_str()?).map(Some),
        }
    }
}

impl Visitor for MemberReader<'_> {
    fn text(&mut self, name: &'static str, value: &mut String) -> Option<()> {
        self.0.get(name)?.as_str()?.clone_into(value);
        Some(())
    }

    fn maybe_text(&mut self, name: &'static str, value: &mut Option<String>) -> Option<()> {
        *value = self.maybe(name, |text| Some(text.to_owned()))?;
        Some(())
    }

    fn texts(&mut self, name: &'static str, value: &mut Vec<String>) -> Option<()> {
        let texts = self.0.get(name)?.as_array()?;
        *value = texts.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<_>>()?;
        Some(())
    }

    fn flag(&mut self, name: &'static str, value: &mut bool) -> Option<()> {
        *value = self.0.get(name)?.as_bool()?;
        Some(())
    }

    fn digest(&mut self, name: &'static str, value: &mut Sha256Digest) -> Option<()> {
        *value = hex::decode(self.0.get(name)?.as_str()?)?;
        Some(())
    }

    fn maybe_digest(&mut self, name: &'static str, value: &mut Option<Sha256Digest>) -> Option<()> {
        *value = self.maybe(name, hex::decode)?;
        Some(())
    }

    fn choice<T: Copy + PartialEq>(
        &mut self,
        name: &'static str,
        value: &mut T,
        all: &[(T, &'static str)],
    ) -> Option<()> {
        let chosen = self.0.get(name)?.as_str()?;
        *value = all.iter().find(|(_, one)| *one == chosen)?.0;
        Some(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
