//! The permissions of one principal: the rules that can concern it, and what its roles permit.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use toolhub_core::{Principal, RawJson};

use crate::abilities::{Abilities, Ability};
use crate::argument_schema::Arguments;
use crate::decision::{Decision, RuleId};
use crate::narrow::{ArgumentLimits, narrow};
use crate::pattern::Certainty;
use crate::request::{AccessResource, Action, PreparedResource};
use crate::rule::{PreparedPrincipal, Rule};
use crate::rule_bits::RuleBits;
use crate::rule_set::RuleSet;
use crate::spec::RuleEffect;

/// What one principal may do, under one snapshot of the rules. A clone shares the memory.
///
/// Two principals with equal permissions are decided alike in everything but their own payloads, so that one view of the
/// catalog serves both.
#[derive(Debug, Clone)]
pub struct Permissions(Arc<PermissionsInner>);

#[derive(Debug)]
struct PermissionsInner {
    rules: RuleSet,
    key: Key,
}

/// Everything that decisions depend on, beside the rules themselves.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    digest: u64,
    abilities: Abilities,
    /// Whether an item that no rule grants is permitted.
    needs_no_grant: bool,
    /// `None` for all.
    profiles: Option<BTreeSet<String>>,
    /// Rules that match the principal.
    applicable: RuleBits,
    /// Those of them whose match is only presumed.
    presumed: RuleBits,
    /// Rules with scopes that the principal's token lacks, by their position.
    missing_scopes: Vec<(usize, Vec<Arc<str>>)>,
}

impl PartialEq for Permissions {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.key == other.0.key
    }
}

impl Eq for Permissions {}

impl Hash for Permissions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl RuleSet {
    /// The permissions of a principal. Examines every rule, so that callers keep the result, as
    /// [`PermissionCache`](crate::PermissionCache) does.
    pub fn for_principal(&self, principal: &Principal) -> Permissions {
        let subject = PreparedPrincipal::new(principal);
        let mut applicable = RuleBits::with_capacity(self.len());
        let mut presumed = RuleBits::with_capacity(self.len());
        let mut missing_scopes = Vec::new();
        for (position, rule) in self.rules().iter().enumerate() {
            let Ok(certainty) = rule.match_subject(&subject) else { continue };
            applicable.insert(position);
            if certainty == Certainty::Presumed {
                presumed.insert(position);
            }
            let missing = rule.missing_scopes(principal);
            if !missing.is_empty() {
                missing_scopes.push((position, missing));
            }
        }
        let key = Key {
            digest: self.digest(),
            abilities: Abilities::of(principal.roles),
            needs_no_grant: self.is_empty() || subject.is_local,
            profiles: principal.profiles.as_ref().map(|profiles| profiles.iter().cloned().collect()),
            applicable,
            presumed,
            missing_scopes,
        };
        Permissions(Arc::new(PermissionsInner { rules: self.clone(), key }))
    }
}

impl Permissions {
    /// Whether the roles permit calls at all, whatever the rules say about each.
    pub fn may_use(&self) -> bool {
        self.0.key.abilities.contain(Ability::Use)
    }

    /// Decides by roles, profiles and rules. Permissions have no identity: [`Action::ReadPayload`] is permitted to
    /// auditors only; [`Permissions::decide_for`] also permits a principal's own payloads.
    pub fn decide(&self, action: Action<'_>, resource: &AccessResource<'_>) -> Decision {
        let forbidden = Decision::Forbid { rule: None };
        if !self.0.key.abilities.contain(Ability::of(action)) || !self.may_use_profile(action, resource) {
            return forbidden;
        }
        let Some(kinds) = action.item_kinds() else { return Decision::Allow { rule: None } };
        if !resource.kind.is_some_and(|kind| kinds.contains(&kind)) {
            return forbidden;
        }
        if self.0.rules.is_empty() {
            return Decision::Allow { rule: None };
        }
        let Some(item) = PreparedResource::new(resource) else { return forbidden };
        let arguments = Arguments::new(resource.arguments);
        let mut tally = Tally::default();
        let candidates = self.collect_candidates(&item);
        // The strictest first: a prohibition makes the comparison of most other rules unnecessary.
        for effect in [RuleEffect::Forbid, RuleEffect::Ask, RuleEffect::Allow] {
            let of_effect =
                candidates.iter().filter(|position| self.0.rules.effect(**position) == Some(effect));
            for position in of_effect.copied() {
                let lacks_scope = self.missing_scopes_of(position).is_some();
                if tally.needs(effect, position, lacks_scope)
                    && let Some(rule) = self.0.rules.rules().get(position)
                    && let Some(certainty) = self.match_item(rule, &item)
                    && rule.match_arguments(action, &arguments).is_ok()
                {
                    tally.add(rule, certainty, lacks_scope);
                }
            }
        }
        if action == Action::See { self.decide_visibility(&tally) } else { self.decide_use(tally) }
    }

    /// Decides for the principal with this id, whose permissions these are or equal.
    pub fn decide_for(&self, principal: &str, action: Action<'_>, resource: &AccessResource<'_>) -> Decision {
        if let Action::ReadPayload { owner } = action
            && owner == principal
            && self.0.key.abilities.contain(Ability::ReadOwnPayloads)
            && self.may_use_profile(action, resource)
        {
            return Decision::Allow { rule: None };
        }
        self.decide(action, resource)
    }

    /// Narrows the schema of a tool's arguments to those that the rules permit, for lists. The result accepts arguments
    /// if and only if the schema accepts them and a call with them is not forbidden. Exception: a key that differs from
    /// a rule's key in letter case only makes the arguments ambiguous for a decision, which the schema does not express.
    pub fn narrow_schema(&self, resource: &AccessResource<'_>, schema: &RawJson) -> RawJson {
        if self.0.rules.is_empty() {
            return schema.clone();
        }
        let Some(item) = PreparedResource::new(resource) else { return schema.clone() };
        let mut limits = ArgumentLimits::new(self.0.key.needs_no_grant);
        let mut candidates = self.collect_candidates(&item);
        candidates.sort_unstable();
        candidates.dedup();
        for rule in candidates.iter().filter_map(|position| self.0.rules.rules().get(*position)) {
            if let Some(certainty) = self.match_item(rule, &item) {
                let schema = rule.arguments.as_ref().map(|arguments| arguments.schema());
                match rule.effect {
                    RuleEffect::Forbid => limits.forbid(schema),
                    _ if certainty == Certainty::Certain => limits.grant(schema),
                    _ => {}
                }
            }
        }
        narrow(schema, limits)
    }

    /// The digest of the rules, see [`RuleSet::digest`].
    pub fn digest(&self) -> u64 {
        self.0.key.digest
    }

    /// Whether the principal may use the profile of the resource. Administrative actions need no profile.
    fn may_use_profile(&self, action: Action<'_>, resource: &AccessResource<'_>) -> bool {
        match (&self.0.key.profiles, resource.profile) {
            (None, _) => true,
            (Some(profiles), Some(profile)) => profiles.contains(profile),
            (Some(_), None) => !action.concerns_item(),
        }
    }

    /// The positions of the rules that match the principal and may match the item, possibly repeated, in any order.
    fn collect_candidates(&self, item: &PreparedResource<'_>) -> Vec<usize> {
        let mut candidates = Vec::new();
        let PermissionsInner { rules, key } = &*self.0;
        rules.index().for_each(item, &key.applicable, &mut |position| candidates.push(position));
        candidates
    }

    /// How certain it is that a candidate matches the principal and the item, regardless of arguments and scopes.
    fn match_item(&self, rule: &Rule, item: &PreparedResource<'_>) -> Option<Certainty> {
        let certainty = rule.match_item(item).ok()?;
        let is_presumed = self.0.key.presumed.contains(rule.id.index);
        Some(if is_presumed { Certainty::Presumed } else { certainty })
    }

    fn missing_scopes_of(&self, rule: usize) -> Option<&[Arc<str>]> {
        let missing = &self.0.key.missing_scopes;
        let at = missing.binary_search_by_key(&rule, |(position, _)| *position).ok()?;
        missing.get(at).map(|(_, scopes)| &**scopes)
    }

    fn decide_visibility(&self, tally: &Tally) -> Decision {
        if tally.forbid.is_some() {
            return Decision::Forbid { rule: self.id(tally.forbid) };
        }
        let grant = [tally.allow, tally.ask, tally.allow_lacking_scope.iter().min().copied()]
            .into_iter()
            .flatten()
            .min();
        if grant.is_none() && !self.0.key.needs_no_grant {
            return Decision::Forbid { rule: None };
        }
        Decision::Allow { rule: self.id(grant) }
    }

    fn decide_use(&self, mut tally: Tally) -> Decision {
        if tally.forbid.is_some() {
            return Decision::Forbid { rule: self.id(tally.forbid) };
        }
        let is_granted = self.0.key.needs_no_grant || tally.ask.is_some() || tally.allow.is_some();
        if !is_granted && tally.allow_lacking_scope.is_empty() {
            return Decision::Forbid { rule: None };
        }
        // A rule that holds applies in any case; of the rules that allow, one with all scopes is enough.
        let mut lacking = std::mem::take(&mut tally.hold_lacking_scope);
        if !is_granted {
            lacking.append(&mut tally.allow_lacking_scope);
        }
        lacking.sort_unstable();
        lacking.dedup();
        if let Some(rule) = self.id(lacking.first().copied()) {
            return Decision::NeedScope { rule, scopes: self.collect_scopes(&lacking) };
        }
        match self.id(tally.hold) {
            Some(rule) => Decision::Ask { rule },
            None => Decision::Allow { rule: self.id(tally.allow) },
        }
    }

    fn collect_scopes(&self, rules: &[usize]) -> Vec<String> {
        let mut scopes: Vec<String> = Vec::new();
        for scope in rules.iter().filter_map(|rule| self.missing_scopes_of(*rule)).flatten() {
            if !scopes.iter().any(|collected_scope| **collected_scope == **scope) {
                scopes.push(scope.to_string());
            }
        }
        scopes
    }

    fn id(&self, rule: Option<usize>) -> Option<RuleId> {
        self.0.rules.rules().get(rule?).map(|rule| rule.id.clone())
    }
}

/// The positions of the matching rules, the first of each kind.
#[derive(Debug, Default)]
struct Tally {
    forbid: Option<usize>,
    /// Rules that ask, also with a presumed match.
    hold: Option<usize>,
    hold_lacking_scope: Vec<usize>,
    /// Rules that ask and grant.
    ask: Option<usize>,
    /// Rules that allow, with all scopes.
    allow: Option<usize>,
    allow_lacking_scope: Vec<usize>,
}

impl Tally {
    /// Whether a match of the rule could change the decision. Most candidates need no comparison for this reason.
    fn needs(&self, effect: RuleEffect, position: usize, lacks_scope: bool) -> bool {
        let is_before = |first: Option<usize>| first.is_none_or(|first| position < first);
        match effect {
            RuleEffect::Forbid => is_before(self.forbid),
            _ if self.forbid.is_some() => false,
            RuleEffect::Ask => lacks_scope || is_before(self.hold) || is_before(self.ask),
            RuleEffect::Allow => is_before(self.allow),
        }
    }

    fn add(&mut self, rule: &Rule, certainty: Certainty, lacks_scope: bool) {
        let position = rule.id.index;
        let note =
            |first: &mut Option<usize>| *first = Some(first.map_or(position, |first| first.min(position)));
        match rule.effect {
            RuleEffect::Forbid => note(&mut self.forbid),
            RuleEffect::Ask => {
                note(&mut self.hold);
                if certainty == Certainty::Certain {
                    note(&mut self.ask);
                }
                if lacks_scope {
                    self.hold_lacking_scope.push(position);
                }
            }
            RuleEffect::Allow if certainty == Certainty::Presumed => {}
            RuleEffect::Allow if lacks_scope => self.allow_lacking_scope.push(position),
            RuleEffect::Allow => note(&mut self.allow),
        }
    }
}
