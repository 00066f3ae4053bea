//! What each role permits, without rules.

use toolhub_access::{AccessResource, Action, ItemKind, RuleSet};
use toolhub_core::{Principal, Role, Source};

use crate::support::{decide, key};

#[test]
fn each_role_permits_its_actions_only() {
    const OTHER: Action<'static> = Action::ReadPayload { owner: "key:other" };
    let table: [(Action<'static>, &[Role]); 15] = [
        (Action::See, &Role::ALL),
        (Action::Call, &[Role::Caller, Role::Owner]),
        (Action::Read, &[Role::Caller, Role::Owner]),
        (Action::GetPrompt, &[Role::Caller, Role::Owner]),
        (Action::Subscribe, &[Role::Caller, Role::Owner]),
        (Action::UseSkill, &[Role::Caller, Role::Owner]),
        (Action::ViewStates, &Role::ALL),
        (Action::ManageServers, &[Role::Operator, Role::Owner]),
        (Action::ManageKeys, &[Role::Owner]),
        (Action::ManageRules, &[Role::Owner]),
        (Action::ManageOwnKeys, &[Role::Caller, Role::Owner]),
        (Action::DecideHeldCalls, &[Role::Approver, Role::Owner]),
        (Action::DecideChangedTools, &[Role::Approver, Role::Owner]),
        (Action::ReadAudit, &[Role::Auditor]),
        (OTHER, &[Role::Auditor]),
    ];
    let source = Source::from_name("files");
    for (action, permitted) in table {
        let kind = match action {
            Action::See | Action::Call => Some(ItemKind::Tool),
            Action::Read | Action::Subscribe => Some(ItemKind::Resource),
            Action::GetPrompt => Some(ItemKind::Prompt),
            Action::UseSkill => Some(ItemKind::Skill),
            _ => None,
        };
        let resource = match kind {
            Some(kind) => AccessResource::item(kind, &source, &["x"]),
            None => AccessResource::hub(),
        };
        for role in Role::ALL {
            let decision = decide(&RuleSet::default(), &key("ci", &[role]), action, &resource);
            assert_eq!(decision.is_allowed(), permitted.contains(&role), "{action:?} {role:?}");
        }
        assert!(
            decide(&RuleSet::default(), &Principal::local(), action, &resource).is_allowed(),
            "{action:?}"
        );
    }
}

#[test]
fn a_principal_reads_its_own_payloads() {
    let own = Action::ReadPayload { owner: "key:ci" };
    let other = Action::ReadPayload { owner: "key:dev" };
    let rules = RuleSet::default();
    let (ci, dev) = (key("ci", &[Role::Caller]), key("dev", &[Role::Caller]));
    assert!(decide(&rules, &ci, own, &AccessResource::hub()).is_allowed());
    assert!(decide(&rules, &ci, other, &AccessResource::hub()).is_forbidden());
    // Equal permissions are shared by principals, and must not share payloads.
    assert_eq!(rules.for_principal(&ci), rules.for_principal(&dev));
    let shared = rules.for_principal(&ci);
    assert!(shared.decide_for(dev.id(), own, &AccessResource::hub()).is_forbidden());
    assert!(shared.decide(own, &AccessResource::hub()).is_forbidden());
}

#[test]
fn an_item_outside_the_principals_profiles_is_forbidden() {
    let mut ci = key("ci", &[Role::Caller, Role::Operator]);
    ci.profiles = Some(vec!["office".to_owned()]);
    let source = Source::from_name("files");
    let tool = AccessResource::tool(&source, &["read"]);
    let call = |resource: &AccessResource<'_>| decide(&RuleSet::default(), &ci, Action::Call, resource);
    assert!(call(&tool.in_profile("office")).is_allowed());
    assert!(call(&tool.in_profile("Office")).is_forbidden());
    assert!(call(&tool).is_forbidden());
    let manage =
        |resource: AccessResource<'_>| decide(&RuleSet::default(), &ci, Action::ManageServers, &resource);
    assert!(manage(AccessResource::hub()).is_allowed());
    assert!(manage(AccessResource::hub().in_profile("home")).is_forbidden());
}

#[test]
fn an_action_needs_an_item_of_its_kind() {
    let source = Source::from_name("files");
    let ci = key("ci", &[Role::Caller]);
    for kind in ItemKind::ALL {
        let resource = AccessResource::item(kind, &source, &["x"]);
        let call = decide(&RuleSet::default(), &ci, Action::Call, &resource);
        assert_eq!(call.is_allowed(), kind == ItemKind::Tool);
    }
    assert!(decide(&RuleSet::default(), &ci, Action::Call, &AccessResource::hub()).is_forbidden());
}
