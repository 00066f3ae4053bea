//! The content of a file whose name is unknown, and how strongly it points to a client.

use serde_json::Value;

/// The content of a file whose name is unknown.
pub(crate) struct Sample<'a> {
    pub(crate) content: SampleSyntax,
    pub(crate) text: &'a str,
}

/// The syntax of a file, by its ending, or else by its first character.
pub(crate) enum SampleSyntax {
    Json(Value),
    InvalidJson,
    Toml,
    Yaml,
    Unknown,
}

/// What points to a client, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Evidence {
    /// A layout that several clients use.
    CommonLayout,
    /// The syntax of variables.
    Variables,
    /// Fields of entries, or of the file, that no other client with this layout has.
    Fields,
    /// A layout that no other client uses.
    OwnLayout,
}
