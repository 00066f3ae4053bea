//! The drafts of JSON Schema.

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    Four,
    Six,
    Seven,
    V2019,
    V2020,
}

impl Draft {
    /// The draft that a schema declares; 2020-12 if it is unknown.
    pub(super) fn of(schema: &Value) -> Self {
        let name = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let drafts = [
            ("/draft-04/", Self::Four),
            ("/draft-06/", Self::Six),
            ("/draft-07/", Self::Seven),
            ("/draft/2019-09/", Self::V2019),
        ];
        drafts.iter().find(|(part, _)| name.contains(part)).map_or(Self::V2020, |(_, draft)| *draft)
    }
}
