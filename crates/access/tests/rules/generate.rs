//! Random rules, principals and resources from small sets of values, so that many of them match.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use toolhub_access::{AccessResource, Action, HintSpec, ItemKind, RuleEffect, RuleSpec};
use toolhub_core::principal::{PrincipalKind, PrincipalOrigin};
use toolhub_core::{Hints, Principal, RawJson, Role, Source};

const SERVERS: [&str; 5] = ["excel", "Excel", "mail", "native", "skill"];
const SERVER_PATTERNS: [&str; 7] = ["excel", "EXCEL", "mail", "native", "skill", "ex*", "*"];
const NAMES: [&str; 9] =
    ["read", "_write", "Read", "write", "write_all", "excel__write", "send", "\u{17f}end", "数据"];
const NAME_PATTERNS: [&str; 14] = [
    "read",
    "READ",
    "write",
    "write*",
    "wr*",
    "w*e*",
    "*",
    "*ite",
    "excel__*",
    "Excel__write",
    "mail__send",
    "send",
    "*a*",
    "数*",
];
const GROUPS: [&str; 3] = ["staff", "Staff", "ops"];
const PROFILES: [&str; 3] = ["office", "Office", "default"];
const TAGS: [&str; 3] = ["search", "Search", "time"];
const SCOPES: [&str; 3] = ["a", "b", "c:write"];
/// Flat objects; see `reference::arguments_match`.
pub(crate) const ARGUMENTS: [&str; 13] = [
    "{}",
    r#"{"path":"/data/a"}"#,
    r#"{"path":"/etc"}"#,
    r#"{"path":"/data/a","path":"/etc"}"#,
    r#"{"path":"/data/a","pa\u0074h":"/etc"}"#,
    r#"{"p\u0061th":"\u002fetc"}"#,
    r#"{"Path":"/etc"}"#,
    r#"{"n":3}"#,
    r#"{"n":9,"path":"/data/x"}"#,
    r#"{"n":1e400}"#,
    r#"{"force":true}"#,
    "[]",
    "null",
];

/// An owned resource.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) kind: Option<ItemKind>,
    pub(crate) source: Source,
    pub(crate) names: Vec<&'static str>,
    pub(crate) profile: Option<&'static str>,
    pub(crate) tags: Vec<String>,
    pub(crate) hints: Hints,
    pub(crate) arguments: Option<RawJson>,
}

impl Request {
    pub(crate) fn resource(&self) -> AccessResource<'_> {
        AccessResource {
            profile: self.profile,
            kind: self.kind,
            source: &self.source,
            names: &self.names,
            tags: &self.tags,
            hints: self.hints,
            arguments: self.arguments.as_ref(),
        }
    }
}

pub(crate) const ACTIONS: [Action<'static>; 18] = [
    Action::See,
    Action::Call,
    Action::Read,
    Action::GetPrompt,
    Action::Complete,
    Action::Subscribe,
    Action::UseSkill,
    Action::ViewStates,
    Action::ManageServers,
    Action::ManageKeys,
    Action::ManageRules,
    Action::DecideHeldCalls,
    Action::DecideChangedTools,
    Action::ReadAudit,
    Action::ReadPayload { owner: "key:ci" },
    Action::ReadPayload { owner: "local" },
    Action::ReadPayload { owner: "oidc:https://idp.example#ann" },
    Action::ManageOwnKeys,
];

fn words(values: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<String>> {
    let some = subsequence(values.to_vec(), 1..=most);
    prop_oneof![2 => Just(Vec::new()), 1 => some.prop_map(|some| some.into_iter().map(str::to_owned).collect())]
}

fn argument_schemas() -> Vec<Value> {
    vec![
        json!({}),
        json!({"properties": {"path": {"pattern": "^/data/"}}}),
        json!({"properties": {"path": {"pattern": "^/data/"}}, "required": ["path"]}),
        json!({"properties": {"n": {"maximum": 5}}}),
        json!({"properties": {"force": {"const": true}}, "required": ["force"]}),
    ]
}

pub(crate) fn rule() -> impl Strategy<Value = RuleSpec> {
    let hint = || prop_oneof![4 => Just(None), 1 => any::<bool>().prop_map(Some)];
    let hints =
        (hint(), hint(), hint(), hint()).prop_map(|(read_only, destructive, idempotent, open_world)| {
            HintSpec { read_only, destructive, idempotent, open_world }
        });
    let effect = select(vec![RuleEffect::Allow, RuleEffect::Allow, RuleEffect::Ask, RuleEffect::Forbid]);
    let roles = words(&["viewer", "caller", "approver", "owner"], 2);
    let principals = words(&["ci", "key:CI", "local", "oidc:https://idp.example#ann", "key:dev"], 2);
    let kinds = prop_oneof![
        3 => Just(Vec::new()),
        1 => subsequence(ItemKind::ALL.to_vec(), 1..=3),
    ];
    let rarely = |schemas: Vec<Value>| prop_oneof![2 => Just(None), 1 => select(schemas).prop_map(Some)];
    let scope = prop_oneof![
        3 => Just(None),
        1 => subsequence(SCOPES.to_vec(), 1..=2).prop_map(|scopes| Some(scopes.join(" "))),
    ];
    let subject = (roles, words(&GROUPS, 2), principals, words(&PROFILES, 2));
    let item = (words(&SERVER_PATTERNS, 2), words(&NAME_PATTERNS, 3), words(&TAGS, 1), hints, kinds);
    (effect, subject, item, rarely(argument_schemas()), scope).prop_map(
        |(
            effect,
            (roles, groups, principals, profiles),
            (servers, tools, tags, hints, kinds),
            arguments,
            scope,
        )| {
            RuleSpec {
                name: None,
                effect,
                roles,
                groups,
                principals,
                profiles,
                servers,
                tools,
                tags,
                hints,
                kinds,
                arguments,
                scope,
            }
        },
    )
}

pub(crate) fn rules(most: usize) -> impl Strategy<Value = Vec<RuleSpec>> {
    prop::collection::vec(rule(), 0..most)
}

pub(crate) fn principal() -> impl Strategy<Value = Principal> {
    let oidc = PrincipalOrigin::Oidc { issuer: "https://idp.example".to_owned(), subject: "ann".to_owned() };
    let key = |name: &str| PrincipalOrigin::Key { name: name.to_owned() };
    let origin = select(vec![oidc.clone(), oidc, key("ci"), key("dev"), PrincipalOrigin::Local]);
    let roles = prop_oneof![
        2 => Just(vec![Role::Caller]),
        2 => subsequence(Role::ALL.to_vec(), 0..=3),
    ];
    let held = |values: &'static [&'static str]| {
        subsequence(values.to_vec(), 0..=2)
            .prop_map(|held| held.into_iter().map(str::to_owned).collect::<Vec<String>>())
    };
    let profiles = option::weighted(0.3, held(&PROFILES));
    (origin, roles, held(&GROUPS), held(&SCOPES), profiles).prop_map(
        |(origin, roles, groups, scopes, profiles)| {
            let mut principal = Principal::new(origin, PrincipalKind::Person);
            principal.roles = roles.into_iter().collect();
            principal.groups = groups;
            principal.scopes = scopes;
            principal.profiles = profiles;
            principal
        },
    )
}

pub(crate) fn request() -> impl Strategy<Value = Request> {
    let kind = prop_oneof![
        6 => Just(Some(ItemKind::Tool)),
        3 => select(ItemKind::ALL.to_vec()).prop_map(Some),
        1 => Just(None),
    ];
    let hints = prop::array::uniform4(option::of(any::<bool>())).prop_map(
        |[read_only, destructive, idempotent, open_world]| Hints {
            read_only,
            destructive,
            idempotent,
            open_world,
        },
    );
    let names = prop_oneof![9 => subsequence(NAMES.to_vec(), 1..=2), 1 => Just(Vec::new())];
    let tags = subsequence(TAGS.to_vec(), 0..=2)
        .prop_map(|tags| tags.into_iter().map(str::to_owned).collect::<Vec<String>>());
    let arguments = option::weighted(0.9, select(ARGUMENTS.to_vec()))
        .prop_map(|text| text.map(|text| RawJson::parse(text).unwrap()));
    let profile = option::weighted(0.8, select(PROFILES.to_vec()));
    (kind, select(SERVERS.to_vec()), names, profile, tags, hints, arguments).prop_map(
        |(kind, server, names, profile, tags, hints, arguments)| Request {
            kind,
            source: Source::from_name(server),
            names,
            profile,
            tags,
            hints,
            arguments,
        },
    )
}
