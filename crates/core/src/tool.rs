//! Tool definitions: the raw text, and the values that the hub reads from it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use crate::destructive_name::is_destructive_name;
use crate::hex;
use crate::json::{self, KeyProblem, RawJson, RawObject};
use crate::source::Source;

/// Maximum size of an input schema; a tool with a larger one is rejected.
pub const MAX_SCHEMA_BYTES: usize = 1 << 20;

/// The name a tool is called by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// A name as its source provides it.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text as a shared pointer.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl From<&str> for ToolName {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Annotations about a tool's effects. Absent means unknown, not false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Hints {
    /// Does not change state.
    #[serde(rename = "readOnlyHint", alias = "read_only", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// May destroy data.
    #[serde(rename = "destructiveHint", alias = "destructive", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// A second call with the same arguments has no further effect.
    #[serde(rename = "idempotentHint", alias = "idempotent", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Interacts with external systems.
    #[serde(rename = "openWorldHint", alias = "open_world", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl Hints {
    /// Whether a call may be repeated or run concurrently without harm.
    pub fn may_repeat(&self) -> bool {
        self.read_only == Some(true) || self.idempotent == Some(true)
    }

    /// These hints, with missing values taken from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            read_only: self.read_only.or(other.read_only),
            destructive: self.destructive.or(other.destructive),
            idempotent: self.idempotent.or(other.idempotent),
            open_world: self.open_world.or(other.open_world),
        }
    }
}

/// Why a definition is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// It is not an object.
    #[error("the definition is not an object")]
    NotAnObject,
    /// It has no usable name.
    #[error("the definition has no name")]
    NoName,
    /// Its schema is not an object.
    #[error("`inputSchema` is {0}, where an object is needed")]
    SchemaKind(&'static str),
    /// Its schema is too large.
    #[error("`inputSchema` has {0} bytes, more than {MAX_SCHEMA_BYTES}")]
    SchemaSize(usize),
    /// It is nested too deeply.
    #[error("the definition is nested {0} deep, more than {max}", max = json::MAX_DEPTH)]
    TooDeep(usize),
    /// It is ambiguous: parsers differ in how they read it.
    #[error("the definition is ambiguous: {0}")]
    Keys(KeyProblem),
}

/// A tool's definition: the raw text, and the values that the hub reads from it.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    raw: RawJson,
    name: ToolName,
    /// The name at its source, if the catalog uses another one.
    wire_name: Option<ToolName>,
    title: Option<String>,
    description: Option<String>,
    input_schema: RawJson,
    marks_headers: bool,
    hints: Hints,
    /// Computed on first use; most tools of a large catalog never need it.
    digest: OnceLock<Arc<str>>,
}

/// Length of the digest prefix that distinguishes versions, absent an attack.
const VERSION_DIGITS: usize = 16;

impl ToolDefinition {
    /// Parses a definition. Requires only a name and, if there is a schema, that it is an object.
    pub fn parse(raw: RawJson) -> Result<Self, DefinitionError> {
        if let Some(depth) = raw.too_deep() {
            return Err(DefinitionError::TooDeep(depth));
        }
        // The definition that is checked and approved here must be the one that every client reads.
        if let Some(problem) = raw.key_problem() {
            return Err(DefinitionError::Keys(problem));
        }
        let members = raw.object().ok_or(DefinitionError::NotAnObject)?;
        let text = |key: &str| members.get(key).and_then(|value| value.decode::<String>().ok());
        let name = text("name").filter(|name| !name.trim().is_empty()).ok_or(DefinitionError::NoName)?;
        let input_schema = match members.get("inputSchema") {
            None => RawJson::of(&RawObject::default().with("type", "object")),
            Some(schema) if schema.is_object() => schema.clone(),
            Some(schema) => return Err(DefinitionError::SchemaKind(kind_of(schema.get()))),
        };
        if input_schema.get().len() > MAX_SCHEMA_BYTES {
            return Err(DefinitionError::SchemaSize(input_schema.get().len()));
        }
        let annotations = members.get("annotations");
        let hints = annotations.and_then(|raw| raw.decode().ok()).unwrap_or_default();
        let title = text("title").or_else(|| {
            annotations
                .and_then(RawJson::object)
                .and_then(|notes| notes.get("title")?.decode::<String>().ok())
        });
        let description = text("description");
        let marks_headers = input_schema.get().contains("x-mcp-header");
        Ok(Self {
            name: ToolName::new(name),
            wire_name: None,
            title,
            description,
            input_schema,
            marks_headers,
            hints,
            digest: OnceLock::new(),
            raw,
        })
    }

    /// Whether its schema may map parameters to headers (`x-mcp-header`). Cached, because every call needs it and
    /// schemas are long.
    pub fn marks_headers(&self) -> bool {
        self.marks_headers
    }

    /// The raw definition.
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// The name.
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// The name at its source, as sent to a server.
    pub fn wire_name(&self) -> &ToolName {
        self.wire_name.as_ref().unwrap_or(&self.name)
    }

    /// Renames the definition in the catalog. The digest remains that of the original definition.
    #[must_use]
    pub fn renamed(&self, name: &str) -> Self {
        self.digest();
        let raw = self.raw.object().unwrap_or_default().with("name", name).into_raw();
        let wire_name = Some(self.wire_name().clone());
        Self { raw, name: ToolName::new(name), wire_name, ..self.clone() }
    }

    /// The definition with the texts and the schema of another one, as clients see it. Name, effect hints and digest remain those of
    /// this definition.
    pub fn with_shown(&self, shown: &RawJson) -> Result<Self, DefinitionError> {
        self.digest();
        let raw = shown.object().ok_or(DefinitionError::NotAnObject)?.with("name", self.name.as_str());
        let (name, wire_name) = (self.name.clone(), self.wire_name.clone());
        let (hints, digest) = (self.hints, self.digest.clone());
        Ok(Self { name, wire_name, hints, digest, ..Self::parse(raw.into_raw())? })
    }

    /// The title, if there is one.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The description; empty if there is none.
    pub fn description(&self) -> &str {
        self.description.as_deref().unwrap_or_default()
    }

    /// The schema of the arguments.
    pub fn input_schema(&self) -> &RawJson {
        &self.input_schema
    }

    /// The effect hints of the definition itself.
    pub fn hints(&self) -> Hints {
        self.hints
    }

    /// A short hash that changes with the meaning of the definition; for display and history.
    pub fn version(&self) -> &str {
        self.digest().get(..VERSION_DIGITS).unwrap_or_default()
    }

    /// The SHA-256 of the canonical definition, in hexadecimal. Approvals use it, because collisions of the short
    /// hash can be constructed.
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| digest_of(&self.raw))
    }
}

fn digest_of(raw: &RawJson) -> Arc<str> {
    let canonical = json::canonical_json(raw.get()).unwrap_or_else(|| raw.get().to_owned());
    hex::sha256(canonical.as_bytes()).into()
}

fn kind_of(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'"') => "a string",
        Some(b'[') => "a list",
        _ => "a number",
    }
}

/// The relation of a tool's definition to the approved one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ApprovalStatus {
    /// It was never approved.
    #[default]
    Unseen,
    /// It equals the approved definition.
    Approved,
    /// It differs from the approved definition; it may be used, with a warning.
    Changed,
    /// It differs from the approved definition, and must not be used.
    Quarantined,
}

impl ApprovalStatus {
    /// Machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unseen => "unseen",
            Self::Approved => "approved",
            Self::Changed => "changed",
            Self::Quarantined => "quarantined",
        }
    }
}

/// A tool in the catalog: a definition and its source.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The source.
    pub source: Source,
    /// The definition.
    pub definition: Arc<ToolDefinition>,
    /// Configured effect hints; they override those of the definition.
    pub owner_hints: Hints,
    /// Configured capabilities; if empty, they are derived from name and description.
    pub tags: Vec<String>,
    /// The relation to the approved definition.
    pub approval: ApprovalStatus,
    /// Whether it is a script of a skill that calls tools for its caller.
    pub is_script: bool,
}

impl Tool {
    /// A tool without configured properties.
    pub fn new(source: Source, definition: ToolDefinition) -> Self {
        let (owner_hints, tags, approval) = (Hints::default(), Vec::new(), ApprovalStatus::default());
        Self { source, definition: Arc::new(definition), owner_hints, tags, approval, is_script: false }
    }

    /// The name.
    pub fn name(&self) -> &ToolName {
        self.definition.name()
    }

    /// The effect hints: configured ones, or else those of the definition.
    pub fn hints(&self) -> Hints {
        self.owner_hints.or(self.definition.hints())
    }

    /// Whether an agent asks its user before it calls the tool: it is marked destructive, or it has no hint about its effect and
    /// its name says that it destroys something.
    pub fn needs_confirmation(&self) -> bool {
        let hints = self.hints();
        match (hints.destructive, hints.read_only) {
            (Some(is_destructive), _) => is_destructive,
            (None, Some(true)) => false,
            (None, _) => is_destructive_name(self.name().as_str()),
        }
    }

    /// The description for users and clients, with its tags: the raw members of the definition, then those of the
    /// hub. A member of the hub whose name the definition uses is called `toolhub/NAME`.
    pub fn describe(&self, tags: &[String]) -> RawObject {
        let mut described = self.definition.raw().object().unwrap_or_default();
        let hub_members = [
            ("source", RawJson::from(self.source.to_string())),
            ("tags", RawJson::of(tags)),
            ("hints", RawJson::of(&self.hints())),
            ("version", RawJson::from(self.definition.version())),
            ("trust", RawJson::from(self.approval.name())),
        ];
        for (key, value) in hub_members {
            let key = if described.contains(key) { format!("toolhub/{key}") } else { key.to_owned() };
            described.set(key, value);
        }
        described
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn define(text: &str) -> Result<ToolDefinition, DefinitionError> {
        ToolDefinition::parse(RawJson::parse(text).unwrap())
    }

    #[test]
    fn keeps_unusual_definitions_verbatim() {
        let text = r#"{"x-vendor":{"b":1,"a":1234567890123456789012345678901234567890},"inputSchema":{"type":"object"},"name":"odd"}"#;
        let definition = define(text).unwrap();
        assert_eq!(definition.raw().get(), text);
        let described = Tool::new(Source::Native, definition).describe(&[]).into_raw();
        assert!(described.get().starts_with(&text[..text.len() - 1]), "{described}");
    }

    #[test]
    fn keeps_name_of_vendor_member() {
        let described =
            Tool::new(Source::Native, define(r#"{"name":"t","source":7}"#).unwrap()).describe(&[]);
        assert_eq!(described.get("source").unwrap().get(), "7");
        assert_eq!(described.get("toolhub/source").unwrap().get(), "\"native\"");
    }

    #[test]
    fn needs_confirmation_by_hint_or_else_by_name() {
        let check = |text: &str, expected: bool| {
            assert_eq!(
                Tool::new(Source::Native, define(text).unwrap()).needs_confirmation(),
                expected,
                "{text}"
            );
        };
        check(r#"{"name":"delete_row"}"#, true);
        check(r#"{"name":"删除行"}"#, true);
        check(r#"{"name":"delete_row","annotations":{"idempotentHint":true}}"#, true);
        check(r#"{"name":"delete_row","annotations":{"readOnlyHint":false}}"#, true);
        check(r#"{"name":"delete_row","annotations":{"readOnlyHint":true}}"#, false);
        check(r#"{"name":"delete_row","annotations":{"destructiveHint":false}}"#, false);
        check(r#"{"name":"write_row"}"#, false);
        check(r#"{"name":"write_row","annotations":{"destructiveHint":true}}"#, true);
    }

    #[test]
    fn rejects_invalid_definitions_with_reason() {
        let check = |text: &str, expect: &str| assert_eq!(define(text).unwrap_err().to_string(), expect);
        check("[]", "the definition is not an object");
        check(r#"{"name":" "}"#, "the definition has no name");
        check(r#"{"name":"t","inputSchema":null}"#, "`inputSchema` is null, where an object is needed");
        check(r#"{"name":"t","inputSchema":true}"#, "`inputSchema` is a boolean, where an object is needed");
        let deep = format!(r#"{{"name":"t","inputSchema":{}1{}}}"#, r#"{"a":"#.repeat(200), "}".repeat(200));
        check(&deep, "the definition is nested 201 deep, more than 128");
        // Parsers that use the first and the last duplicate would see two different tools.
        let ambiguous = |key: &str| format!("the definition is ambiguous: duplicate key {key}");
        check(r#"{"name":"safe","name":"rm"}"#, &ambiguous("\"name\""));
        check(r#"{"name":"t","\u006eame":"rm"}"#, &ambiguous("\"name\""));
        check(
            r#"{"name":"t","inputSchema":{"properties":{"a":{"type":"string","type":"object"}}}}"#,
            &ambiguous("\"type\""),
        );
    }

    #[test]
    fn version_changes_only_with_content() {
        let a = define(r#"{"name":"t","description":"d"}"#).unwrap();
        let b = define(r#"{ "description" : "d", "name" : "t" }"#).unwrap();
        let c = define(r#"{"name":"t","description":"e"}"#).unwrap();
        assert_eq!(a.version(), b.version());
        assert_ne!(a.version(), c.version());
        assert_eq!((a.digest().len(), a.version().len()), (64, 16));
        assert!(a.digest() == b.digest() && a.digest().starts_with(a.version()));
    }
}
