//! Rules as the configuration states them, and the errors in them. No decisions.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolhub_core::lang::{Lang, Localize, LocalizedText};

use crate::request::ItemKind;

/// What a matching rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleEffect {
    /// Grants, unless another rule asks or forbids.
    Allow,
    /// Grants after a person has approved the call; a call that an `allow` rule grants is held, too.
    Ask,
    /// Forbids, regardless of other rules.
    Forbid,
}

impl RuleEffect {
    /// The name in the configuration and in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Forbid => "forbid",
        }
    }
}

/// One `[[auth.rules]]` of `toolhub.toml`. Every given selector must match; a missing or empty one matches everything.
/// Within a list one match is enough.
///
/// Uncertainty never grants. Names are compared exactly where a rule grants, and without letter case where it holds or
/// forbids. A missing hint has the default of MCP (not read-only, destructive, not idempotent, open world) where a rule
/// holds or forbids, and never matches where it grants. Arguments that are absent or ambiguous match `forbid` and
/// `ask`, and do not match `allow`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {
    /// Name in the audit log and in explanations; `rule N` (from 1) if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What a match does.
    pub effect: RuleEffect,
    /// Names of roles.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Groups at the identity provider.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Ids of principals: `local`, `key:NAME`, `oidc:ISSUER#SUBJECT`; `NAME` alone means `key:NAME`.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Vec::is_empty")]
    pub principals: Vec<String>,
    /// Names of profiles.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// Sources: `native`, `skill`, or the id of a server; `*` stands for any text.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Names of items; `*` stands for any text. Compared with the name in the catalog, the name at the server, and
    /// both with `SERVER__` before them.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Tags of tools.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Effect hints of tools.
    #[serde(default, skip_serializing_if = "HintSpec::is_empty")]
    pub hints: HintSpec,
    /// Kinds of items. If empty: tools only for a rule with `tools`, `tags`, `hints` or `arguments`; else every kind.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<ItemKind>,
    /// A JSON Schema (2020-12, without references) for the arguments of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The scopes that an access token needs, separated by spaces. Without meaning for keys, for the local user, and
    /// for `forbid`. A call that an `ask` rule holds needs the scopes of every `ask` rule that matches; of several
    /// `allow` rules those of one are enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

impl RuleSpec {
    /// A rule that matches everything.
    pub fn new(effect: RuleEffect) -> Self {
        Self {
            name: None,
            effect,
            roles: Vec::new(),
            groups: Vec::new(),
            principals: Vec::new(),
            profiles: Vec::new(),
            servers: Vec::new(),
            tools: Vec::new(),
            tags: Vec::new(),
            hints: HintSpec::default(),
            kinds: Vec::new(),
            arguments: None,
            scope: None,
        }
    }

    /// The kinds of items that the rule concerns.
    pub(crate) fn concerned_kinds(&self) -> Vec<ItemKind> {
        if !self.kinds.is_empty() {
            return self.kinds.clone();
        }
        let of_tools = !self.tools.is_empty()
            || !self.tags.is_empty()
            || !self.hints.is_empty()
            || self.arguments.is_some();
        if of_tools { vec![ItemKind::Tool] } else { ItemKind::ALL.to_vec() }
    }
}

/// The effect hints that a rule selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct HintSpec {
    /// Does not change state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// May destroy data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// A second call with the same arguments has no further effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Interacts with external systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl HintSpec {
    /// Whether it selects no hint.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An invalid rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// Position of the rule in the list, from 0.
    pub index: usize,
    /// The key of the rule.
    pub key: &'static str,
    /// What is wrong, and what to write.
    pub text: LocalizedText,
}

impl Localize for RuleError {
    fn localize(&self, lang: Lang) -> String {
        let (number, key, text) = (self.index + 1, self.key, self.text.localize(lang));
        lang.choose(
            format!("`[[auth.rules]]` {number}, `{key}`: {text}"),
            format!("第 {number} 条 `[[auth.rules]]` 的 `{key}`：{text}"),
        )
    }
}

/// Reads a list that is not empty. An empty list could mean everything or nothing, so that it is refused.
fn non_empty<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let list = Vec::deserialize(deserializer)?;
    match list.is_empty() {
        true => Err(serde::de::Error::custom(
            "the list is empty: leave the key out to match everything, or name something",
        )),
        false => Ok(list),
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.localize(Lang::En))
    }
}

impl std::error::Error for RuleError {}
