//! Explains a decision: which rules match, and why the others do not. Examines every rule, without the index.

use toolhub_core::Principal;
use toolhub_core::lang::{Lang, Localize, LocalizedText};

use crate::abilities::{Abilities, Ability};
use crate::argument_schema::Arguments;
use crate::decision::{Decision, RuleId};
use crate::pattern::Certainty;
use crate::request::{Action, Item, Resource};
use crate::rule::{Mismatch, Rule, Subject};
use crate::rule_set::RuleSet;
use crate::spec::RuleEffect;

/// A decision with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// The reason in one sentence.
    pub summary: LocalizedText,
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
    /// The scopes of a matching rule that the principal's token lacks.
    pub missing_scopes: Vec<String>,
}

impl Localize for RuleExplanation {
    fn localize(&self, lang: Lang) -> String {
        let (rule, effect) = (&self.rule, self.effect.name());
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

/// Explains the decision that [`decide`](crate::decide) makes.
pub fn explain(
    rules: &RuleSet,
    principal: &Principal,
    action: Action<'_>,
    resource: &Resource<'_>,
) -> Explanation {
    let decision = rules.for_principal(principal).decide_for(principal.id(), action, resource);
    let subject = Subject::new(principal);
    let arguments = Arguments::new(resource.arguments);
    let item = Item::new(resource).filter(|_| action.concerns_item());
    let explained = item.map(|item| {
        let explain = |rule: &Rule| {
            let mismatch = find_mismatch(rule, &subject, &item)
                .or_else(|| rule.match_arguments(action, &arguments).err());
            let missing_scopes = match mismatch {
                None => rule.missing_scopes(principal).iter().map(ToString::to_string).collect(),
                Some(_) => Vec::new(),
            };
            RuleExplanation { rule: rule.id.clone(), effect: rule.effect, mismatch, missing_scopes }
        };
        rules.rules().iter().map(explain).collect()
    });
    let summary = summarize(&decision, principal, action, resource);
    Explanation { decision, summary, rules: explained.unwrap_or_default() }
}

fn find_mismatch(rule: &Rule, subject: &Subject<'_>, item: &Item<'_>) -> Option<Mismatch> {
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
    resource: &Resource<'_>,
) -> LocalizedText {
    let id = principal.id();
    match decision {
        Decision::Allow { rule: Some(rule) } => {
            LocalizedText::new(format!("allowed by `{rule}`"), format!("由 `{rule}` 允许"))
        }
        Decision::Allow { rule: None } => LocalizedText::new("allowed: no rule is needed", "允许：无需规则"),
        Decision::Ask { rule } => LocalizedText::new(
            format!("held until an approver decides, by `{rule}`"),
            format!("由 `{rule}` 暂停，等待审批人决定"),
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
        Decision::Forbid { rule: None } => {
            let ability = Ability::of(action);
            let names = |separator: &str| {
                let names: Vec<String> =
                    ability.roles().iter().map(|role| format!("`{}`", role.name())).collect();
                names.join(separator)
            };
            if !Abilities::of(principal.roles).contain(ability) {
                return LocalizedText::new(
                    format!("forbidden: `{id}` has none of the roles {}", names(", ")),
                    format!("禁止：`{id}` 不具备以下任何角色：{}", names("、")),
                );
            }
            let may_use = |profile: Option<&str>| match profile {
                Some(profile) => principal.may_use_profile(profile),
                None => principal.profiles.is_none() || !action.concerns_item(),
            };
            if !may_use(resource.profile) {
                return LocalizedText::new(
                    format!("forbidden: `{id}` may not use this profile"),
                    format!("禁止：`{id}` 无权使用该 profile"),
                );
            }
            LocalizedText::new("forbidden: no rule allows it", "禁止：没有规则允许")
        }
    }
}
