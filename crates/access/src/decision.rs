//! The result of a decision.

use std::fmt;
use std::sync::Arc;

/// A rule of a rule set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RuleId {
    /// Position in the list of rules, from 0.
    pub index: usize,
    /// The unique name, as recorded with a call.
    pub name: Arc<str>,
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Whether an action is permitted. Of several rules with the same result, the first in the list is named.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// Permitted; by this rule, or without one.
    Allow {
        /// The rule that grants it; `None` if no rule is needed.
        rule: Option<RuleId>,
    },
    /// Permitted once a person has approved it.
    Ask {
        /// The rule that holds the call.
        rule: RuleId,
    },
    /// Not permitted.
    Forbid {
        /// The rule that forbids it; `None` if roles or profiles do, or if no rule grants it.
        rule: Option<RuleId>,
    },
    /// Permitted with an access token that has more scopes.
    NeedScope {
        /// The first rule whose scopes are missing.
        rule: RuleId,
        /// All scopes that the token lacks, without duplicates.
        scopes: Vec<String>,
    },
}

impl Decision {
    /// Whether the action may be done now.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }

    /// Whether the action is not possible, neither by approval nor with more scopes.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Forbid { .. })
    }

    /// The rule that led to the decision.
    pub fn rule(&self) -> Option<&RuleId> {
        match self {
            Self::Allow { rule } | Self::Forbid { rule } => rule.as_ref(),
            Self::Ask { rule } | Self::NeedScope { rule, .. } => Some(rule),
        }
    }
}
