//! One compiled rule: which principals, items and arguments it matches.

use std::borrow::Cow;
use std::sync::Arc;

use toolhub_core::lang::{Lang, Localize};
use toolhub_core::principal::{LOCAL, PrincipalOrigin};
use toolhub_core::{Hints, Principal, Roles};

use crate::argument_schema::{ArgumentSchema, Arguments, Verdict};
use crate::decision::RuleId;
use crate::pattern::{Certainty, FoldedName, Pattern, match_any, match_item_names};
use crate::request::{Action, ItemKind, PreparedResource};
use crate::spec::{HintSpec, RuleEffect};

/// Why a rule does not match: the first selector that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mismatch {
    /// The rule does not name the local user.
    Local,
    /// The principal has none of the roles.
    Role,
    /// The principal is in none of the groups.
    Group,
    /// The rule names other principals.
    Principal,
    /// The rule concerns other kinds of items.
    Kind,
    /// The rule concerns other profiles.
    Profile,
    /// The rule concerns other sources.
    Server,
    /// The rule names other items.
    Tool,
    /// The item has none of the tags.
    Tag,
    /// The item has other hints.
    Hint,
    /// The arguments do not match the schema.
    Arguments,
    /// The arguments are absent or ambiguous, which grants nothing.
    UnreadableArguments,
    /// The rule matches only if letter case is ignored or missing values are assumed, which grants nothing.
    Uncertain,
}

impl Localize for Mismatch {
    fn localize(&self, lang: Lang) -> String {
        let (en, zh) = match self {
            Self::Local => ("does not name the principal `local`", "没有指名主体 `local`"),
            Self::Role => ("the principal has none of its `roles`", "主体不具备 `roles` 中的任何角色"),
            Self::Group => ("the principal is in none of its `groups`", "主体不属于 `groups` 中的任何组"),
            Self::Principal => ("names other `principals`", "`principals` 指名的是其他主体"),
            Self::Kind => ("concerns other `kinds` of items", "`kinds` 不包含这类条目"),
            Self::Profile => ("concerns other `profiles`", "`profiles` 不包含该配置方案"),
            Self::Server => ("concerns other `servers`", "`servers` 不包含该来源"),
            Self::Tool => ("names other `tools`", "`tools` 不包含该名称"),
            Self::Tag => ("the tool has none of its `tags`", "工具没有 `tags` 中的任何标签"),
            Self::Hint => ("the tool has other `hints`", "工具的 `hints` 不符"),
            Self::Arguments => ("the arguments do not match its schema", "参数不符合其 `arguments` schema"),
            Self::UnreadableArguments => {
                ("the arguments are absent or ambiguous, which grants nothing", "参数缺失或有歧义，不予放行")
            }
            Self::Uncertain => (
                "matches only without letter case or by a missing value, which grants nothing",
                "仅在忽略大小写或对缺失值作假设时才匹配，不予放行",
            ),
        };
        lang.choose(en, zh).to_owned()
    }
}

/// A principal whose names are prepared for comparison with many rules.
#[derive(Debug)]
pub(crate) struct PreparedPrincipal<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) is_local: bool,
    id: FoldedName<'a>,
    groups: Vec<FoldedName<'a>>,
}

impl<'a> PreparedPrincipal<'a> {
    pub(crate) fn new(principal: &'a Principal) -> Self {
        let name = |text: &'a str| FoldedName::new(Cow::Borrowed(text));
        Self {
            principal,
            is_local: principal.origin == PrincipalOrigin::Local,
            id: name(principal.id()),
            groups: principal.groups.iter().map(|group| name(group)).collect(),
        }
    }
}

/// A compiled rule. Empty lists match everything.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: RuleId,
    pub(crate) effect: RuleEffect,
    pub(crate) roles: Roles,
    pub(crate) groups: Vec<Pattern>,
    pub(crate) principals: Vec<Pattern>,
    pub(crate) profiles: Vec<Pattern>,
    pub(crate) servers: Vec<Pattern>,
    pub(crate) tools: Vec<Pattern>,
    pub(crate) tags: Vec<Pattern>,
    pub(crate) hints: HintSpec,
    pub(crate) kinds: Vec<ItemKind>,
    pub(crate) arguments: Option<Arc<ArgumentSchema>>,
    pub(crate) scopes: Vec<Arc<str>>,
}

impl Rule {
    /// Compares the selectors of the principal.
    pub(crate) fn match_subject(&self, subject: &PreparedPrincipal<'_>) -> Result<Certainty, Mismatch> {
        if subject.is_local && !self.principals.iter().any(|pattern| pattern.text() == LOCAL) {
            return Err(Mismatch::Local);
        }
        if !self.roles.is_empty() && !self.roles.intersects(subject.principal.roles) {
            return Err(Mismatch::Role);
        }
        let id = std::slice::from_ref(&subject.id);
        let of_principal = select(&self.principals, || match_any(&self.principals, id));
        let of_group = select(&self.groups, || match_any(&self.groups, &subject.groups));
        Ok(of_principal.ok_or(Mismatch::Principal)?.min(of_group.ok_or(Mismatch::Group)?))
    }

    /// Compares the selectors of the item, without its arguments.
    pub(crate) fn match_item(&self, item: &PreparedResource<'_>) -> Result<Certainty, Mismatch> {
        if !self.kinds.contains(&item.kind) {
            return Err(Mismatch::Kind);
        }
        let presumed = Some(Certainty::Presumed);
        let server = std::slice::from_ref(&item.server);
        let of_server = select(&self.servers, || match_any(&self.servers, server)).ok_or(Mismatch::Server)?;
        let of_tool = select(&self.tools, || match item.names.is_empty() {
            true => presumed,
            false => {
                let names_server = !self.servers.is_empty() && of_server == Certainty::Certain;
                match_item_names(&self.tools, &item.names, names_server)
            }
        });
        let of_tool = of_tool.ok_or(Mismatch::Tool)?;
        let of_profile = select(&self.profiles, || match &item.profile {
            None => presumed,
            Some(profile) => match_any(&self.profiles, std::slice::from_ref(profile)),
        });
        let of_profile = of_profile.ok_or(Mismatch::Profile)?;
        let of_tag = select(&self.tags, || match_any(&self.tags, &item.tags)).ok_or(Mismatch::Tag)?;
        let of_hints = match_hints(self.hints, item.hints).ok_or(Mismatch::Hint)?;
        Ok(of_server.min(of_tool).min(of_profile).min(of_tag).min(of_hints))
    }

    /// Compares the arguments, for a rule whose other selectors match.
    pub(crate) fn match_arguments(
        &self,
        action: Action<'_>,
        arguments: &Arguments<'_>,
    ) -> Result<(), Mismatch> {
        let Some(schema) = &self.arguments else { return Ok(()) };
        let grants = self.effect != RuleEffect::Forbid;
        if action == Action::See {
            // Some arguments may match: a grant makes the item visible, and a prohibition does not hide it.
            return if grants { Ok(()) } else { Err(Mismatch::Arguments) };
        }
        match schema.judge(arguments) {
            Verdict::Accepted => Ok(()),
            Verdict::Rejected => Err(Mismatch::Arguments),
            Verdict::Unreadable if self.effect == RuleEffect::Allow => Err(Mismatch::UnreadableArguments),
            Verdict::Unreadable => Ok(()),
        }
    }

    /// The scopes that the principal's token lacks. Only access tokens have scopes.
    pub(crate) fn missing_scopes(&self, principal: &Principal) -> Vec<Arc<str>> {
        if self.effect == RuleEffect::Forbid || !matches!(principal.origin, PrincipalOrigin::Oidc { .. }) {
            return Vec::new();
        }
        let lacks = |scope: &&Arc<str>| !principal.scopes.iter().any(|held| **held == ***scope);
        self.scopes.iter().filter(lacks).cloned().collect()
    }
}

/// The result of a comparison; an empty selector matches everything.
fn select(patterns: &[Pattern], compare: impl FnOnce() -> Option<Certainty>) -> Option<Certainty> {
    if patterns.is_empty() { Some(Certainty::Certain) } else { compare() }
}

/// Compares hints. Missing ones have the default of MCP, which is the dangerous value.
fn match_hints(spec: HintSpec, hints: Hints) -> Option<Certainty> {
    // A tool that declares both contradicts itself, and is not trusted to be read-only.
    let read_only = hints.read_only.filter(|value| !value || hints.destructive != Some(true));
    let is_read_only = read_only == Some(true);
    let destructive = hints.destructive.or(is_read_only.then_some(false));
    let idempotent = hints.idempotent.or(is_read_only.then_some(true));
    [
        match_hint(spec.read_only, read_only, false),
        match_hint(spec.destructive, destructive, true),
        match_hint(spec.idempotent, idempotent, false),
        match_hint(spec.open_world, hints.open_world, true),
    ]
    .into_iter()
    .try_fold(Certainty::Certain, |least, matched| Some(least.min(matched?)))
}

fn match_hint(wanted: Option<bool>, value: Option<bool>, default: bool) -> Option<Certainty> {
    match (wanted, value) {
        (None, _) => Some(Certainty::Certain),
        (Some(wanted), Some(value)) => (wanted == value).then_some(Certainty::Certain),
        (Some(wanted), None) => (wanted == default).then_some(Certainty::Presumed),
    }
}
