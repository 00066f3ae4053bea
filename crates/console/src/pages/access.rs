//! The page of access: keys, rules, and the simulator.

use maud::{Markup, html};
use toolhub_core::{Lang, RawJson, Role};
use toolhub_server::Authenticator as _;

use super::json_view;
use super::layout::{PageFrame, first_line, state_label, time_element};
use super::table::{Column, cell_text, foreign_text, table};
use crate::api::access::{self, Key, Rule};
use crate::api::tools;
use crate::request::ConsoleContext;
use crate::route::encode_segment;

/// Number of tools that the simulator offers.
const MAX_CHOICES: usize = 500;
const MAX_CRITERION_CHARACTERS: usize = 120;

pub(crate) fn page(context: &ConsoleContext<'_>, frame: &PageFrame<'_>) -> (String, Markup) {
    let (keys, rules) = (access::read_keys(context), access::read_rules(context));
    let is_owner = context.has_role(Role::Owner);
    let is_open = !context.gateways.access().is_required();
    let title = frame.text("Access", "权限");
    let opening = frame.text(
        "Until now every program on this machine may use the gateway. With the first key, every client needs one.",
        "目前本机的任何程序都可使用网关。生成第一个密钥后，所有客户端都需要密钥。",
    );
    let content = html! {
        h1 { (title) }
        section.card {
            h2 { (frame.text("Keys", "密钥")) " " span.count { (keys.len()) } }
            @if keys.is_empty() {
                @if is_open {
                    p.muted { (frame.text("No keys yet.", "还没有密钥。")) }
                } @else {
                    p.problem { (frame.text(
                        "No keys: no client can connect with one. Make a key. To let every program of this machine connect without one again, restart the hub.",
                        "没有密钥：客户端无法用密钥连接。请生成一个密钥。若要让本机的任何程序无需密钥即可连接，请重启 hub。",
                    )) }
                }
            } @else {
                (key_table(frame, &keys, is_owner))
            }
            (role_table(frame))
            @if is_owner {
                h3 { (frame.text("New key", "新密钥")) }
                @if is_open { p.muted { (opening) } }
                div #new-key data-static="true" data-keys=(frame.api("keys"))
                    data-confirm=[is_open.then_some(opening)]
                    data-confirm-action=(frame.text("Make key", "生成密钥")) {}
            }
        }
        section.card {
            h2 { (frame.text("Rules", "规则")) " " span.count { (rules.len()) } }
            @if rules.is_empty() {
                p.muted { (frame.text(
                    "No rules: every caller may call every tool of its profiles.",
                    "没有规则：每个调用方都可调用其配置方案中的所有工具。",
                )) }
            }
            @if !rules.is_empty() {
                p.muted { (frame.text(
                    "Of all rules that match a call, “forbid” beats “ask first”, and that beats “allow”. What no rule allows is forbidden.",
                    "多条规则同时匹配时，“禁止”优先于“先询问”，“先询问”优先于“允许”。没有规则允许的一律禁止。",
                )) }
                (rule_table(frame, &rules))
            }
        }
        section.card {
            h2 { (frame.text("Simulator", "模拟")) }
            p.muted { (frame.text(
                "What may a principal do, and which of the last days’ calls would other rules refuse? Nothing is changed.",
                "某个主体可以做什么？换用其他规则会拒绝最近哪些调用？不会改动任何内容。",
            )) }
            (choices(context, &keys))
            div #simulator data-static="true" data-simulate=(frame.api("access:simulate")) data-rules=(frame.api("rules"))
                data-calls=(frame.link("calls")) {}
        }
    };
    (title.to_owned(), content)
}

/// Known callers and tools, which browsers offer in the fields of the simulator.
fn choices(context: &ConsoleContext<'_>, keys: &[Key]) -> Markup {
    let tools = tools::offered_tools(context, None).unwrap_or_default();
    html! {
        datalist #known-principals {
            option value="local" {}
            @for key in keys { option value=(format!("key:{}", key.name)) {} }
        }
        datalist #known-tools {
            @for tool in tools.iter().take(MAX_CHOICES) { option value=(tool.tool.as_str()) {} }
        }
    }
}

fn effect_text(effect: &str, lang: Lang) -> &'static str {
    match effect {
        "allow" => lang.choose("allow", "允许"),
        "ask" => lang.choose("ask first", "先询问"),
        _ => lang.choose("forbid", "禁止"),
    }
}

fn effect_class(effect: &str) -> &'static str {
    match effect {
        "allow" => "approved",
        "ask" => "waiting",
        _ => "denied",
    }
}

const KEY_COLUMNS: [Column; 6] = [
    Column::new("Name", "名称"),
    Column::new("Roles", "角色"),
    Column::new("Profiles", "配置方案"),
    Column::new("Expires", "过期"),
    Column::number("Calls per day", "每日调用上限"),
    Column::new("Actions", "操作"),
];

fn key_table(frame: &PageFrame<'_>, keys: &[Key], is_owner: bool) -> Markup {
    let row = |key: &Key| {
        let profiles = key.profiles.as_ref().map(|all| all.join(", "));
        let mut cells = vec![
            foreign_text(&key.name),
            cell_text(key.roles.join(", ")),
            cell_text(profiles.as_deref().unwrap_or(frame.text("all", "全部"))),
            html! {
                @match &key.expires { Some(at) => (time_element(at)), None => "–" }
                @if key.is_expired { " " (state_label("failed", frame.text("expired", "已过期"))) }
            },
            cell_text(key.per_day.map_or_else(|| "–".to_owned(), |limit| limit.to_string())),
        ];
        if is_owner {
            cells.push(key_actions(frame, key));
        }
        cells
    };
    let columns = if is_owner { &KEY_COLUMNS[..] } else { &KEY_COLUMNS[..KEY_COLUMNS.len() - 1] };
    table(frame, frame.text("Keys", "密钥"), columns, keys.iter().map(row))
}

/// The buttons that change a key.
fn key_actions(frame: &PageFrame<'_>, key: &Key) -> Markup {
    let path = frame.api(&format!("keys/{}", encode_segment(&key.name)));
    let question = |en: &str, zh: &str| frame.text(en, zh).replace("NAME", &key.name);
    html! {
        button type="button" data-post=(format!("{path}:rotate")) data-secret="key"
            data-confirm=(question(
                "Replace the secret of the key “NAME”? The old one is refused at once.",
                "更换密钥“NAME”？旧密钥立即失效。",
            )) data-confirm-action=(frame.text("Replace secret", "更换密钥")) {
            (frame.text("Rotate", "更换"))
        }
        " "
        button type="button" data-post=(path) data-method="DELETE"
            data-confirm=(question(
                "Revoke the key “NAME”? Its streams end, and its logins at servers are removed.",
                "吊销密钥“NAME”？其连接会断开，在服务器上的登录也会移除。",
            )) data-confirm-action=(frame.text("Revoke key", "吊销密钥")) {
            (frame.text("Revoke", "吊销"))
        }
    }
}

const ROLE_COLUMNS: [Column; 2] = [Column::new("Role", "角色"), Column::description("Permits", "权限")];

/// What each role permits.
fn role_table(frame: &PageFrame<'_>) -> Markup {
    let row = |role: Role| vec![html! { code { (role.name()) } }, cell_text(role_text(role, frame.lang()))];
    html! {
        details {
            summary { (frame.text("What the roles permit", "各角色的权限")) }
            (table(frame, frame.text("Roles", "角色"), &ROLE_COLUMNS, Role::ALL.into_iter().map(row)))
            p.muted { (frame.text(
                "A key with several roles may do what any of them permits. The user of this machine (`local`) has every role.",
                "拥有多个角色的密钥可做其中任一角色允许的事。本机用户（`local`）拥有全部角色。",
            )) }
        }
    }
}

fn role_text(role: Role, lang: Lang) -> &'static str {
    match role {
        Role::Viewer => lang
            .choose("sees the tools and states of servers, calls nothing", "查看工具和服务器状态，不能调用"),
        Role::Caller => {
            lang.choose("sees and calls tools; for most clients", "查看并调用工具；适合大多数客户端")
        }
        Role::Approver => lang.choose(
            "decides calls that wait for approval, and changed tool definitions",
            "处理待审批的调用和有改动的工具定义",
        ),
        Role::Operator => lang.choose(
            "adds, changes, restarts and removes servers, and so starts any program as the user of the hub",
            "添加、修改、重启、移除服务器，因而能以 hub 用户的身份启动任何程序",
        ),
        Role::Auditor => lang.choose(
            "reads the audit log, and arguments and results of all calls; changes nothing",
            "查看审计日志以及所有调用的参数和结果；不能改动任何内容",
        ),
        Role::Owner => lang.choose(
            "manages keys, servers and settings, approves and calls",
            "管理密钥、服务器和设置，可审批和调用",
        ),
    }
}

const RULE_COLUMNS: [Column; 5] = [
    Column::new("Effect", "效果"),
    Column::new("Name", "名称"),
    Column::new("Who", "对象"),
    Column::new("What", "范围"),
    Column::new("Definition", "定义"),
];

/// The rules in force, each with the callers and items that it concerns.
fn rule_table(frame: &PageFrame<'_>, rules: &[Rule]) -> Markup {
    let row = |rule: &Rule| {
        vec![
            state_label(effect_class(&rule.effect), effect_text(&rule.effect, frame.lang())),
            foreign_text(&rule.name),
            criteria(frame, rule, &WHO, frame.text("all callers but local", "除 local 外的所有调用方")),
            criteria(frame, rule, &WHAT, frame.text("everything", "全部")),
            html! {
                details {
                    summary { "JSON" }
                    (json_view::json(&rule.definition, &rule.name))
                }
            },
        ]
    };
    table(frame, frame.text("Rules", "规则"), &RULE_COLUMNS, rules.iter().map(row))
}

/// A member of a rule with its name for people.
type Criterion = (&'static str, &'static str, &'static str);
const WHO: [Criterion; 4] = [
    ("principals", "callers", "调用方"),
    ("roles", "roles", "角色"),
    ("groups", "groups", "用户组"),
    ("scope", "with the scopes", "需要的授权范围"),
];
const WHAT: [Criterion; 7] = [
    ("profiles", "profiles", "配置方案"),
    ("servers", "servers", "服务器"),
    ("tools", "names", "名称"),
    ("tags", "tags", "标签"),
    ("hints", "hints", "提示"),
    ("kinds", "kinds", "种类"),
    ("arguments", "arguments that fit the schema", "符合 schema 的参数"),
];

/// The criteria of a rule. A rule without any concerns all.
fn criteria(frame: &PageFrame<'_>, rule: &Rule, names: &[Criterion], all: &str) -> Markup {
    let members = rule.definition.object().unwrap_or_default();
    let given = names.iter().filter_map(|(name, en, zh)| Some((frame.text(en, zh), members.get(name)?)));
    let given: Vec<(&str, &RawJson)> = given.collect();
    html! {
        @if given.is_empty() { span.muted { (all) } }
        @for (name, value) in given {
            div { span.muted { (name) (frame.text(": ", "：")) } bdi { (criterion_text(value, frame.text(", ", "、"))) } }
        }
    }
}

fn criterion_text(value: &RawJson, separator: &str) -> String {
    match value.decode::<serde_json::Value>() {
        Ok(serde_json::Value::Array(values)) => {
            let values =
                values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            values.collect::<Vec<_>>().join(separator)
        }
        Ok(serde_json::Value::String(text)) => text,
        _ => first_line(value.get(), MAX_CRITERION_CHARACTERS),
    }
}
