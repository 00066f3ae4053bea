//! The fields of a tool's definition that are searched, each with its own weight.

use serde::{Deserialize, Serialize};

/// How many fields there are.
pub(crate) const FIELD_COUNT: usize = 9;

/// A part of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// The name, cut into its parts.
    Name,
    /// The title for people.
    Title,
    /// The description.
    Description,
    /// The names of the parameters.
    ParameterName,
    /// The texts and the listed values of the parameters.
    ParameterText,
    /// The tags.
    Tag,
    /// The name of the server, or the kind of source.
    Source,
    /// Examples of its use.
    Example,
    /// What its Chinese texts say, in English.
    Translation,
}

impl Field {
    /// Every field, in the order of its index.
    pub const ALL: [Self; FIELD_COUNT] = [
        Self::Name,
        Self::Title,
        Self::Description,
        Self::ParameterName,
        Self::ParameterText,
        Self::Tag,
        Self::Source,
        Self::Example,
        Self::Translation,
    ];

    /// Its place in arrays that hold one value for each field.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}
