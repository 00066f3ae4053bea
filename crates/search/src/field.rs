//! The fields of a tool's definition that are searched, each with its own weight.

use serde::{Deserialize, Serialize};

/// The number of fields.
pub(crate) const FIELD_COUNT: usize = 9;

/// A part of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// The name, split into its parts.
    Name,
    /// The display title.
    Title,
    /// The description.
    Description,
    /// The names of the parameters.
    ParameterName,
    /// The descriptions and enum values of the parameters.
    ParameterText,
    /// The tags.
    Tag,
    /// The name of the server, or the kind of source.
    Source,
    /// Examples of use.
    Example,
    /// English translations of its Chinese texts.
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

    /// Its index in arrays with one value per field.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}
