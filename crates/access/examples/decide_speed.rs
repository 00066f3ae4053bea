//! Measures decisions with 10,000 rules and 1,000 principals: `cargo run --release -p toolhub-access --example
//! decide_speed`. Prints the mean, the median and the slowest hundredth, in microseconds.
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use serde_json::json;
use toolhub_access::{AccessResource, Action, Decision, PermissionCache, Permissions, RuleSet, RuleSpec};
use toolhub_core::principal::{PrincipalKind, PrincipalOrigin};
use toolhub_core::{Principal, RawJson, Role, Source};

const RULES: usize = 10_000;
const PRINCIPALS: usize = 1_000;
const DECISIONS: usize = 200_000;

/// The rules of one measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mixture {
    /// Rules for servers and principals allow; those that name tools have every effect.
    NamedTools,
    /// Every fifth rule forbids, of whatever kind it is.
    ManyProhibitions,
    /// Every rule concerns every principal, and no literal part of its pattern is at an end of a name. The index does
    /// not help.
    Unindexed,
}

fn main() {
    for mixture in [Mixture::NamedTools, Mixture::ManyProhibitions, Mixture::Unindexed] {
        match (0..RULES).map(|number| spec(mixture, number)).collect::<Result<Vec<RuleSpec>, _>>() {
            Ok(specs) => run(mixture, specs),
            Err(error) => println!("{error}"),
        }
    }
}

fn run(mixture: Mixture, specs: Vec<RuleSpec>) {
    let rules = match RuleSet::compile(specs) {
        Ok(rules) => rules,
        Err(error) => return println!("{error}"),
    };
    let principals: Vec<Principal> = (0..PRINCIPALS).map(principal).collect();
    let start = Instant::now();
    let permissions: Vec<Permissions> = principals.iter().map(|one| rules.for_principal(one)).collect();
    let each = start.elapsed().as_secs_f64() * 1e6 / PRINCIPALS as f64;
    println!("{mixture:?}: {} rules, {PRINCIPALS} principals", rules.len());
    println!("  permissions of one principal: {each:.1} µs");

    let cache = PermissionCache::new(rules.clone());
    principals.iter().for_each(|one| drop(cache.permissions(one)));
    let sources: Vec<Source> = (0..100).map(|server| Source::from_name(&format!("server{server}"))).collect();
    let names: Vec<String> = (0..500).map(|tool| format!("tool_{tool}")).collect();
    let tags = ["search".to_owned()];
    let arguments = RawJson::of(&json!({"path": "/data/reports/2026.csv", "rows": 20, "format": "csv"}));
    let request = |position: usize, check: &mut dyn FnMut(usize, &AccessResource<'_>)| {
        let random = scatter(position);
        let (source, name) = (&sources[random % sources.len()], &names[(random >> 16) % names.len()]);
        let names = [name.as_str()];
        let resource = AccessResource::tool(source, &names).in_profile("office").with_tags(&tags);
        check((random >> 32) % PRINCIPALS, &resource.with_arguments(&arguments));
    };
    let count = if mixture == Mixture::Unindexed { DECISIONS / 100 } else { DECISIONS };
    let mut counts = BTreeMap::new();
    for position in 0..count {
        request(position, &mut |number, resource| {
            let word = match permissions[number].decide(Action::Call, resource) {
                Decision::Allow { .. } => "allow",
                Decision::Ask { .. } => "ask",
                Decision::Forbid { rule: Some(_) } => "forbid by rule",
                Decision::Forbid { rule: None } => "forbid without rule",
                Decision::NeedScope { .. } => "scope",
            };
            *counts.entry(word).or_insert(0) += 1;
        });
    }
    println!("  calls: {counts:?}");
    for action in [Action::See, Action::Call] {
        measure(&format!("Permissions::decide, {action:?}"), count, &|position| {
            request(position, &mut |number, resource| {
                drop(black_box(permissions[number].decide(action, resource)));
            });
        });
        measure(&format!("PermissionCache::decide, {action:?}"), count, &|position| {
            request(position, &mut |number, resource| {
                drop(black_box(cache.decide(&principals[number], action, resource)));
            });
        });
    }
    measure("decide without a cache, Call", 2_000, &|position| {
        request(position, &mut |number, resource| {
            let principal = &principals[number];
            let permissions = rules.for_principal(principal);
            drop(black_box(permissions.decide_for(principal.id(), Action::Call, resource)));
        });
    });
}

/// A number that looks random, so that neither requests nor branches repeat in a short cycle (SplitMix64).
fn scatter(position: usize) -> usize {
    let mut bits = position.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn measure(name: &str, count: usize, run: &dyn Fn(usize)) {
    (0..count / 10).for_each(run);
    let mut times: Vec<f64> = (0..count)
        .map(|position| {
            let start = Instant::now();
            run(position);
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / count as f64;
    let (median, slow) = (times[count / 2], times[count * 99 / 100]);
    println!("  {name}: mean {mean:.2} µs, median {median:.2} µs, 99 % below {slow:.2} µs");
}

fn principal(number: usize) -> Principal {
    let issuer = "https://idp.example".to_owned();
    let origin = PrincipalOrigin::Oidc { issuer, subject: format!("user{number}") };
    let mut principal = Principal::new(origin, PrincipalKind::Person);
    principal.roles = Role::Caller.into();
    principal.groups = (0..3).map(|group| format!("group{}", (number + group * 17) % 50)).collect();
    principal.scopes = vec!["files".to_owned()];
    principal
}

/// A rule: names of tools, prefixes, suffixes, servers, principals, groups and arguments.
fn spec(mixture: Mixture, number: usize) -> serde_json::Result<RuleSpec> {
    let effect = match (mixture, number % 8, number % 37) {
        (Mixture::ManyProhibitions, ..) => ["allow", "allow", "allow", "ask", "forbid"][number % 5],
        (Mixture::Unindexed, ..) | (Mixture::NamedTools, 3 | 4 | 7, _) => "allow",
        (Mixture::NamedTools, _, 0..4) => "forbid",
        (Mixture::NamedTools, _, 4..8) => "ask",
        (Mixture::NamedTools, ..) => "allow",
    };
    let mut rule = json!({"effect": effect});
    if mixture == Mixture::Unindexed {
        rule["tools"] = json!([format!("*word{number}*")]);
        return serde_json::from_value(rule);
    }
    match number % 8 {
        0 | 1 => rule["tools"] = json!([format!("server{}__tool_{}", number % 100, number % 500)]),
        2 => rule["tools"] = json!([format!("server{}__tool_{}*", number % 100, number % 50)]),
        3 => rule["servers"] = json!([format!("server{}", number % 100)]),
        4 => rule["principals"] = json!([format!("oidc:https://idp.example#user{}", number % PRINCIPALS)]),
        5 => rule["tools"] = json!([format!("tool_{}", number % 500)]),
        6 => {
            rule["tools"] = json!([format!("*_{}", number % 500)]);
            rule["groups"] = json!([format!("group{}", number % 50)]);
        }
        _ => {
            rule["servers"] = json!([format!("server{}", number % 100)]);
            rule["arguments"] = json!({"properties": {"path": {"type": "string", "pattern": "^/data/"}}});
        }
    }
    if number % 8 < 6 && number.is_multiple_of(3) {
        rule["groups"] = json!([format!("group{}", number % 50)]);
    }
    serde_json::from_value(rule)
}
