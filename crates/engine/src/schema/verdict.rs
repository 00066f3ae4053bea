//! The result of the evaluation of a schema.

/// Whether a value is valid. Ordered, so that the verdict of several conditions is their minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Invalid,
    /// Cannot be decided here; the server decides.
    Undecided,
    Valid,
}

impl From<bool> for Verdict {
    fn from(valid: bool) -> Self {
        if valid { Self::Valid } else { Self::Invalid }
    }
}

impl Verdict {
    pub(super) fn not(self) -> Self {
        match self {
            Self::Invalid => Self::Valid,
            Self::Undecided => Self::Undecided,
            Self::Valid => Self::Invalid,
        }
    }
}
