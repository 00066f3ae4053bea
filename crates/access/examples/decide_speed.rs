//! Measures decisions with 10,000 rules and 1,000 principals: `cargo run --release -p toolhub-access --example
//! decide_speed`. Prints the mean and the slowest hundredth, in microseconds.
#![expect(clippy::print_stdout, reason = "prints its result")]

use std::hint::black_box;
use std::time::Instant;

use serde_json::json;
use toolhub_access::{Action, PermissionCache, Permissions, Resource, RuleSet, RuleSpec, decide};
use toolhub_core::principal::{Origin, PrincipalKind};
use toolhub_core::{Principal, RawJson, Role, Source};

const RULES: usize = 10_000;
const PRINCIPALS: usize = 1_000;
const DECISIONS: usize = 200_000;

fn main() {
    let rules = match RuleSet::compile(specs()) {
        Ok(rules) => rules,
        Err(error) => return println!("{error}"),
    };
    let principals: Vec<Principal> = (0..PRINCIPALS).map(principal).collect();
    let start = Instant::now();
    let permissions: Vec<Permissions> = principals.iter().map(|one| rules.for_principal(one)).collect();
    let each = start.elapsed().as_secs_f64() * 1e6 / PRINCIPALS as f64;
    println!("{RULES} rules, {PRINCIPALS} principals; permissions of one principal: {each:.1} µs");

    let cache = PermissionCache::new(rules.clone());
    principals.iter().for_each(|one| drop(cache.permissions(one)));
    let sources: Vec<Source> = (0..100).map(|server| Source::from_name(&format!("server{server}"))).collect();
    let names: Vec<String> = (0..500).map(|tool| format!("tool_{tool}")).collect();
    let tags = ["search".to_owned()];
    let arguments = RawJson::of(&json!({"path": "/data/reports/2026.csv", "rows": 20, "format": "csv"}));
    let resource = |position: usize, check: &dyn Fn(&Resource<'_>)| {
        let (source, name) = (&sources[position * 7 % sources.len()], &names[position * 13 % names.len()]);
        let names = [name.as_str()];
        let resource = Resource::tool(source, &names).in_profile("office").with_tags(&tags);
        check(&resource.with_arguments(&arguments));
    };
    for action in [Action::See, Action::Call] {
        measure(&format!("Permissions::decide, {action:?}"), DECISIONS, &|position| {
            resource(position, &|resource| {
                drop(black_box(permissions[position * 31 % PRINCIPALS].decide(action, resource)));
            });
        });
        measure(&format!("PermissionCache::decide, {action:?}"), DECISIONS, &|position| {
            resource(position, &|resource| {
                drop(black_box(cache.decide(&principals[position * 31 % PRINCIPALS], action, resource)));
            });
        });
    }
    measure("decide without a cache, Call", 2_000, &|position| {
        resource(position, &|resource| {
            drop(black_box(decide(&rules, &principals[position % PRINCIPALS], Action::Call, resource)));
        });
    });
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
    println!("{name}: {mean:.2} µs, 99 % below {:.2} µs", times[count * 99 / 100]);
}

fn principal(number: usize) -> Principal {
    let issuer = "https://idp.example".to_owned();
    let origin = Origin::Oidc { issuer, subject: format!("user{number}") };
    let mut principal = Principal::new(origin, PrincipalKind::Person);
    principal.roles = Role::Caller.into();
    principal.groups = (0..3).map(|group| format!("group{}", (number + group * 17) % 50)).collect();
    principal.scopes = vec!["files".to_owned()];
    principal
}

/// A mixture: names of tools, prefixes, patterns without a prefix, servers, principals, hints and arguments.
fn specs() -> Vec<RuleSpec> {
    let spec = |number: usize| {
        let effect = ["allow", "allow", "allow", "ask", "forbid"][number % 5];
        let mut rule = json!({"effect": effect});
        match number % 8 {
            0 | 1 => rule["tools"] = json!([format!("server{}__tool_{}", number % 100, number % 500)]),
            2 => rule["tools"] = json!([format!("server{}__tool_{}*", number % 100, number % 50)]),
            3 => rule["servers"] = json!([format!("server{}", number % 100)]),
            4 => {
                rule["principals"] = json!([format!("oidc:https://idp.example#user{}", number % PRINCIPALS)]);
            }
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
    };
    (0..RULES).filter_map(|number| spec(number).ok()).collect()
}
