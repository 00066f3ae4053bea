//! Explains a decision: which rules match, and why the others do not. Examines every rule, without the index.

use toolhub_core::Principal;
use toolhub_core::lang::{Lang, Localize, LocalizedText};

use crate::abilities::{Abilities, Ability};
use crate::argument_schema::Arguments;
use crate::decision::{Decision, RuleId};
use crate::pattern::Certainty;
use crate::request::{AccessResource, Action, PreparedResource};
use crate::rule::{Mismatch, PreparedPrincipal, Rule};
use crate::rule_set::RuleSet;
use crate::spec::RuleEffect;

/// A decision with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// The reason in one sentence.
    pub summary: LocalizedText,
    /// For a call whose arguments are unknown: the rules about arguments that decide. The decision is the one for
    /// arguments that cannot be read.
    pub depends_on: Vec<RuleId>,
    /// Every rule, in the order of the configuration. Empty for administrative actions, which rules do not concern.
    pub rules: Vec<RuleExplanation>,
}

/// Whether one rule matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleExplanation {
    /// The rule.
    pub rule: RuleId,
    /// Its effect.
    pub effect: RuleEffect,
    /// Why it does not match; `None` if it does.
    pub mismatch: Option<Mismatch>,
    /// Whether it matches only some arguments, and the arguments of the call are unknown.
    pub is_conditional: bool,
    /// The scopes of a matching rule that the principal's token lacks.
    pub missing_scopes: Vec<String>,
}

impl Localize for RuleExplanation {
    fn localize(&self, lang: Lang) -> String {
        let (rule, effect) = (&self.rule, self.effect.name());
        if self.is_conditional {
            return lang.choose(
                format!("`{rule}` ({effect}) matches if the arguments fit its `arguments`"),
                format!("`{rule}`（{effect}）是否匹配取决于参数（`arguments`）"),
            );
        }
        match &self.mismatch {
            Some(mismatch) => {
                let reason = mismatch.localize(lang);
                lang.choose(
                    format!("`{rule}` ({effect}) does not match: {reason}"),
                    format!("`{rule}`（{effect}）不匹配：{reason}"),
                )
            }
            None if self.missing_scopes.is_empty() => {
                lang.choose(format!("`{rule}` ({effect}) matches"), format!("`{rule}`（{effect}）匹配"))
            }
            None => {
                let scopes = self.missing_scopes.join(" ");
                lang.choose(
                    format!("`{rule}` ({effect}) matches; the token lacks the scope `{scopes}`"),
                    format!("`{rule}`（{effect}）匹配；令牌缺少 scope `{scopes}`"),
                )
            }
        }
    }
}

/// Explains the decision of [`Permissions::decide_for`](crate::Permissions::decide_for).
pub fn explain(
    rules: &RuleSet,
    principal: &Principal,
    action: Action<'_>,
    resource: &AccessResource<'_>,
) -> Explanation {
    let decision = rules.for_principal(principal).decide_for(principal.id(), action, resource);
    let subject = PreparedPrincipal::new(principal);
    let arguments = Arguments::new(resource.arguments);
    let item = PreparedResource::new(resource).filter(|_| action.concerns_item());
    let explained = item.map(|item| {
        let explain = |rule: &Rule| {
            let mismatch = find_mismatch(rule, &subject, &item);
            let is_unknown = action == Action::Call && resource.arguments.is_none();
            let is_conditional = mismatch.is_none() && is_unknown && rule.arguments.is_some();
            let mismatch = mismatch.or_else(|| rule.match_arguments(action, &arguments).err());
            let missing_scopes = match mismatch {
                None => rule.missing_scopes(principal).iter().map(ToString::to_string).collect(),
                Some(_) => Vec::new(),
            };
            let (rule, effect) = (rule.id.clone(), rule.effect);
            RuleExplanation { rule, effect, mismatch, is_conditional, missing_scopes }
        };
        rules.rules().iter().map(explain).collect()
    });
    let explained: Vec<RuleExplanation> = explained.unwrap_or_default();
    let depends_on = match find_role_problem(principal, action, resource) {
        None => deciding_conditions(&explained, subject.is_local),
        Some(_) => Vec::new(),
    };
    let summary = match depends_on.is_empty() {
        true => summarize(&decision, principal, action, resource),
        false => {
            let names = |separator: &str| {
                let names: Vec<String> = depends_on.iter().map(|rule| format!("`{rule}`")).collect();
                names.join(separator)
            };
            LocalizedText::new(
                format!("depends on the arguments, by {}", names(", ")),
                format!("取决于参数，相关规则：{}", names("、")),
            )
        }
    };
    Explanation { decision, summary, depends_on, rules: explained }
}

/// The rules about arguments whose match would change the decision.
fn deciding_conditions(rules: &[RuleExplanation], needs_no_grant: bool) -> Vec<RuleId> {
    let matches = |effect: RuleEffect| {
        let is_match = |rule: &&RuleExplanation| {
            rule.effect == effect && !rule.is_conditional && rule.mismatch.is_none()
        };
        rules.iter().find(is_match).is_some()
    };
    let [forbids, asks, allows] = [RuleEffect::Forbid, RuleEffect::Ask, RuleEffect::Allow].map(matches);
    let may_grant = |rule: &RuleExplanation| rule.is_conditional && rule.effect != RuleEffect::Forbid;
    let is_grantable = needs_no_grant || asks || allows || rules.iter().any(may_grant);
    let decides = |rule: &&RuleExplanation| {
        rule.is_conditional
            && !forbids
            && match rule.effect {
                RuleEffect::Forbid => is_grantable,
                RuleEffect::Ask => !asks,
                RuleEffect::Allow => !(asks || allows || needs_no_grant),
            }
    };
    rules.iter().filter(decides).map(|rule| rule.rule.clone()).collect()
}

/// Why roles or profiles forbid an action, whatever the rules.
fn find_role_problem(
    principal: &Principal,
    action: Action<'_>,
    resource: &AccessResource<'_>,
) -> Option<LocalizedText> {
    let (id, ability) = (principal.id(), Ability::of(action));
    let names = |separator: &str| {
        let names: Vec<String> = ability.roles().iter().map(|role| format!("`{}`", role.name())).collect();
        names.join(separator)
    };
    if !Abilities::of(principal.roles).contain(ability) {
        return Some(LocalizedText::new(
            format!("forbidden: `{id}` has none of the roles {}", names(", ")),
            format!("禁止：`{id}` 不具备以下任何角色：{}", names("、")),
        ));
    }
    let may_use = match resource.profile {
        Some(profile) => principal.may_use_profile(profile),
        None => principal.profiles.is_none() || !action.concerns_item(),
    };
    let forbidden = LocalizedText::new(
        format!("forbidden: `{id}` may not use this profile"),
        format!("禁止：`{id}` 无权使用该配置方案"),
    );
    (!may_use).then_some(forbidden)
}

fn find_mismatch(
    rule: &Rule,
    subject: &PreparedPrincipal<'_>,
    item: &PreparedResource<'_>,
) -> Option<Mismatch> {
    let matched = rule.match_subject(subject).and_then(|certainty| Ok(certainty.min(rule.match_item(item)?)));
    match matched {
        Err(mismatch) => Some(mismatch),
        Ok(Certainty::Presumed) if rule.effect == RuleEffect::Allow => Some(Mismatch::Uncertain),
        Ok(_) => None,
    }
}

fn summarize(
    decision: &Decision,
    principal: &Principal,
    action: Action<'_>,
    resource: &AccessResource<'_>,
) -> LocalizedText {
    match decision {
        Decision::Allow { rule: Some(rule) } => {
            LocalizedText::new(format!("allowed by `{rule}`"), format!("由 `{rule}` 允许"))
        }
        Decision::Allow { rule: None } => LocalizedText::new("allowed: no rule is needed", "允许：无需规则"),
        Decision::Ask { rule } => LocalizedText::new(
            format!("held until an approver decides, by `{rule}`"),
            format!("由 `{rule}` 拦下，待审批人批准"),
        ),
        Decision::NeedScope { scopes, .. } => {
            let scopes = scopes.join(" ");
            LocalizedText::new(
                format!("needs an access token with the scope `{scopes}`"),
                format!("访问令牌需要 scope `{scopes}`"),
            )
        }
        Decision::Forbid { rule: Some(rule) } => {
            LocalizedText::new(format!("forbidden by `{rule}`"), format!("被 `{rule}` 禁止"))
        }
        Decision::Forbid { rule: None } => find_role_problem(principal, action, resource)
            .unwrap_or_else(|| LocalizedText::new("forbidden: no rule allows it", "禁止：没有规则允许")),
    }
}
