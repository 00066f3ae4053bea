//! Properties of the decision for random rules, principals and resources.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use proptest::prelude::*;
use toolhub_access::{AccessResource, Action, Decision, PermissionCache, RuleEffect, RuleSet, RuleSpec};
use toolhub_core::{Principal, RawJson, Roles};

use crate::generate::{ACTIONS, ARGUMENTS, Request, principal, request, rule, rules};
use crate::reference::{self, Expected};
use crate::support::decide;

fn compile(specs: &[RuleSpec]) -> RuleSet {
    RuleSet::compile(specs.to_vec()).unwrap()
}

fn positions(decision: &Decision) -> Expected {
    let position = decision.rule().map(|rule| rule.index);
    match decision {
        Decision::Allow { .. } => Expected::Allow(position),
        Decision::Ask { rule } => Expected::Ask(rule.index),
        Decision::Forbid { .. } => Expected::Forbid(position),
        Decision::NeedScope { rule, scopes } => Expected::NeedScope(rule.index, scopes.clone()),
    }
}

/// How much a decision permits.
fn rank(decision: &Decision) -> u8 {
    match decision {
        Decision::Forbid { .. } => 0,
        Decision::NeedScope { .. } => 1,
        Decision::Ask { .. } => 2,
        Decision::Allow { .. } => 3,
    }
}

/// Compares every way to decide with the reference.
fn check_all(
    specs: &[RuleSpec],
    principal: &Principal,
    resource: &AccessResource<'_>,
) -> Result<(), TestCaseError> {
    let rules = compile(specs);
    let cache = PermissionCache::new(rules.clone());
    for action in ACTIONS {
        let expected = reference::decide(specs, principal, action, resource);
        let decision = decide(&rules, principal, action, resource);
        prop_assert_eq!(positions(&decision), expected, "{:?}", action);
        // The second one is answered by the cache.
        prop_assert_eq!(&cache.decide(principal, action, resource), &decision);
        prop_assert_eq!(&cache.decide(principal, action, resource), &decision);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn decides_as_the_reference_does(specs in rules(8), principal in principal(), request in request()) {
        check_all(&specs, &principal, &request.resource())?;
    }

    #[test]
    fn visible_if_and_only_if_some_use_is_possible(
        specs in rules(6),
        mut principal in principal(),
        request in request(),
    ) {
        principal.roles = Roles::all();
        let rules = compile(&specs);
        let sees = decide(&rules, &principal, Action::See, &request.resource());
        prop_assert!(matches!(rank(&sees), 0 | 3));
        let usable = ARGUMENTS.iter().any(|text| {
            let arguments = RawJson::parse(*text).unwrap();
            let resource = request.resource();
            let resource = resource.with_arguments(&arguments);
            ACTIONS[1..7].iter().any(|action| !decide(&rules, &principal, *action, &resource).is_forbidden())
        });
        prop_assert!(!usable || sees.is_allowed(), "usable and hidden");
        let has_arguments = specs.iter().any(|spec| spec.arguments.is_some());
        prop_assert!(usable || has_arguments || !sees.is_allowed(), "visible and unusable");
    }

    #[test]
    fn order_of_rules_has_no_influence(
        (specs, shuffled) in rules(7).prop_flat_map(|specs| (Just(specs.clone()), Just(specs).prop_shuffle())),
        principal in principal(),
        request in request(),
    ) {
        let (rules, shuffled) = (compile(&specs), compile(&shuffled));
        for action in ACTIONS {
            let one = decide(&rules, &principal, action, &request.resource());
            let other = decide(&shuffled, &principal, action, &request.resource());
            prop_assert_eq!(rank(&one), rank(&other));
            if let (Decision::NeedScope { scopes: one, .. }, Decision::NeedScope { scopes: other, .. }) = (one, other) {
                prop_assert_eq!(HashSet::<String>::from_iter(one), HashSet::from_iter(other));
            }
        }
    }

    #[test]
    fn prohibitions_never_widen_and_grants_never_narrow(
        specs in prop::collection::vec(rule(), 1..6),
        added in rule(),
        principal in principal(),
        request in request(),
    ) {
        // Without any rule everything is permitted, so that the first rule narrows in any case.
        let with_added: Vec<RuleSpec> = specs.iter().cloned().chain([added.clone()]).collect();
        let (rules, with_added) = (compile(&specs), compile(&with_added));
        for action in ACTIONS {
            let before = decide(&rules, &principal, action, &request.resource());
            let after = decide(&with_added, &principal, action, &request.resource());
            match added.effect {
                RuleEffect::Allow => prop_assert!(rank(&after) >= rank(&before)),
                RuleEffect::Forbid => prop_assert!(rank(&after) <= rank(&before)),
                RuleEffect::Ask => prop_assert!(!after.is_allowed() || before.is_allowed() || action == Action::See),
            }
        }
    }

    #[test]
    fn fewer_roles_and_scopes_never_widen(
        specs in rules(6),
        principal in principal(),
        request in request(),
        keep in any::<[bool; 3]>(),
    ) {
        // Rules that forbid or ask by role bind the holders of the role only.
        let specs: Vec<RuleSpec> = specs
            .into_iter()
            .map(|spec| if spec.effect == RuleEffect::Allow { spec } else { RuleSpec { roles: Vec::new(), ..spec } })
            .collect();
        let rules = compile(&specs);
        let mut weaker = principal.clone();
        weaker.scopes = weaker.scopes.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(scope, _)| scope).collect();
        weaker.roles = weaker.roles.iter().zip(keep).filter(|(_, keep)| *keep).map(|(role, _)| role).collect();
        for action in ACTIONS {
            let full = decide(&rules, &principal, action, &request.resource());
            let less = decide(&rules, &weaker, action, &request.resource());
            prop_assert!(rank(&less) <= rank(&full), "{:?}: {:?} {:?}", action, less, full);
        }
    }

    #[test]
    fn a_principal_without_roles_is_refused_everything(
        specs in rules(6),
        mut principal in principal(),
        request in request(),
    ) {
        principal.roles = Roles::NONE;
        let rules = compile(&specs);
        for action in ACTIONS {
            prop_assert!(decide(&rules, &principal, action, &request.resource()).is_forbidden());
        }
    }

    #[test]
    fn letter_case_of_a_name_never_escapes_a_rule(
        specs in rules(6),
        principal in principal(),
        request in request(),
        upper in any::<bool>(),
    ) {
        let names: Vec<String> =
            request.names.iter().map(|name| if upper { name.to_uppercase() } else { name.to_lowercase() }).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let resource = request.resource();
        let respelled = AccessResource { names: &names, ..resource };
        let rules = compile(&specs);
        for action in ACTIONS {
            let original = decide(&rules, &principal, action, &resource);
            let other = decide(&rules, &principal, action, &respelled);
            if matches!(original, Decision::Forbid { rule: Some(_) }) {
                prop_assert!(other.is_forbidden(), "{:?}: {:?}", action, other);
            }
            if matches!(original, Decision::Ask { .. }) {
                prop_assert!(!other.is_allowed(), "{:?}: {:?}", action, other);
            }
        }
    }

    #[test]
    fn more_names_of_an_item_never_escape_a_prohibition(
        specs in rules(6),
        principal in principal(),
        request in request(),
        alias in prop::sample::select(vec!["read", "harmless", "mail__send", "WRITE"]),
    ) {
        let mut renamed = request.clone();
        renamed.names.insert(0, alias);
        if request.names.is_empty() {
            // Presumed to match every name.
            return Ok(());
        }
        let rules = compile(&specs);
        for action in ACTIONS {
            if matches!(decide(&rules, &principal, action, &request.resource()), Decision::Forbid { rule: Some(_) }) {
                prop_assert!(decide(&rules, &principal, action, &renamed.resource()).is_forbidden());
            }
        }
    }

    #[test]
    fn equal_permissions_decide_alike(
        specs in rules(4),
        one in principal(),
        other in principal(),
        request in request(),
    ) {
        let rules = compile(&specs);
        let (first, second) = (rules.for_principal(&one), rules.for_principal(&other));
        prop_assert_eq!(&first, &rules.for_principal(&one));
        let cache = PermissionCache::new(rules);
        prop_assert_eq!(&cache.permissions(&one), &first);
        prop_assert_eq!(&cache.permissions(&other), &second);
        if first == second {
            let hasher = RandomState::new();
            prop_assert_eq!(hasher.hash_one(&first), hasher.hash_one(&second));
            for action in ACTIONS {
                let resource = request.resource();
                prop_assert_eq!(first.decide(action, &resource), second.decide(action, &resource));
            }
        }
    }
}

proptest! {
    // Enough rules for every kind of bucket of the index.
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn decides_as_the_reference_does_with_many_rules(
        specs in prop::collection::vec(rule(), 70..260),
        principals in prop::collection::vec(principal(), 4),
        requests in prop::collection::vec(request(), 8),
    ) {
        // Nearly every random rule set of this size forbids everything otherwise.
        let kept = |(position, spec): (usize, RuleSpec)| {
            let effect = if position % 20 > 0 && spec.effect == RuleEffect::Forbid { RuleEffect::Allow } else { spec.effect };
            RuleSpec { effect, arguments: None, ..spec }
        };
        let specs: Vec<RuleSpec> = specs.into_iter().enumerate().map(kept).collect();
        let rules = compile(&specs);
        let check = |principal: &Principal, request: &Request| -> Result<(), TestCaseError> {
            let permissions = rules.for_principal(principal);
            for action in ACTIONS {
                let decision = permissions.decide_for(principal.id(), action, &request.resource());
                let expected = reference::decide(&specs, principal, action, &request.resource());
                prop_assert_eq!(positions(&decision), expected);
            }
            Ok(())
        };
        for principal in &principals {
            for request in &requests {
                check(principal, request)?;
            }
        }
    }
}
