//! The page of access: keys, rules, and the simulator.

use maud::{Markup, html};
use toolhub_core::{Lang, Role};
use toolhub_server::Authenticator as _;

use super::json_view;
use super::layout::{Frame, state, time};
use crate::api::access::{self, Key};
use crate::request::Context;
use crate::route::encode;

pub(crate) fn page(context: &Context<'_>, frame: &Frame<'_>) -> (String, Markup) {
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
                    "没有规则：每个调用方都可调用其配置档中的所有工具。",
                )) }
            }
            @for rule in &rules {
                details {
                    summary { (state(effect_class(&rule.effect), &rule.effect)) " " bdi { (rule.name) } }
                    (json_view::json(&rule.definition, &rule.name))
                }
            }
        }
        section.card {
            h2 { (frame.text("Simulator", "模拟")) }
            p.muted { (frame.text(
                "What may a principal do, and which of the last days’ calls would other rules refuse? Nothing is changed.",
                "某个主体可以做什么？换用其他规则会拒绝最近哪些调用？不会改动任何内容。",
            )) }
            div #simulator data-static="true" data-simulate=(frame.api("access:simulate")) data-rules=(frame.api("rules"))
                data-calls=(frame.link("calls")) {}
        }
    };
    (title.to_owned(), content)
}

fn effect_class(effect: &str) -> &'static str {
    match effect {
        "allow" => "approved",
        "ask" => "waiting",
        _ => "denied",
    }
}

fn key_table(frame: &Frame<'_>, keys: &[Key], is_owner: bool) -> Markup {
    let question = |en: &str, zh: &str, key: &Key| match frame.lang() {
        Lang::En => en.replace("NAME", &key.name),
        Lang::Zh => zh.replace("NAME", &key.name),
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label=(frame.text("Keys", "密钥")) {
            table {
                thead { tr {
                    th scope="col" { (frame.text("Name", "名称")) }
                    th scope="col" { (frame.text("Roles", "角色")) }
                    th scope="col" { (frame.text("Profiles", "配置档")) }
                    th scope="col" { (frame.text("Expires", "过期")) }
                    th.number scope="col" { (frame.text("Calls per day", "每日调用上限")) }
                    @if is_owner { th scope="col" { (frame.text("Actions", "操作")) } }
                } }
                tbody {
                    @for key in keys {
                        @let path = frame.api(&format!("keys/{}", encode(&key.name)));
                        tr {
                            td { bdi { (key.name) } }
                            td { (key.roles.join(", ")) }
                            td { (key.profiles.as_ref().map_or_else(|| frame.text("all", "全部").to_owned(), |all| all.join(", "))) }
                            td {
                                @match &key.expires { Some(at) => (time(at)), None => "–" }
                                @if key.is_expired { " " (state("failed", frame.text("expired", "已过期"))) }
                            }
                            td.number { (key.per_day.map_or_else(|| "–".to_owned(), |limit| limit.to_string())) }
                            @if is_owner {
                                td {
                                    button type="button" data-post=(format!("{path}:rotate")) data-secret="key"
                                        data-confirm=(question(
                                            "Replace the secret of the key “NAME”? The old one is refused at once.",
                                            "更换密钥“NAME”？旧密钥立即失效。",
                                            key,
                                        )) data-confirm-action=(frame.text("Replace secret", "更换密钥")) {
                                        (frame.text("Rotate", "更换"))
                                    }
                                    " "
                                    button type="button" data-post=(path) data-method="DELETE"
                                        data-confirm=(question(
                                            "Revoke the key “NAME”? Its streams end, and its logins at servers are removed.",
                                            "吊销密钥“NAME”？其连接会断开，在服务器上的登录也会移除。",
                                            key,
                                        )) data-confirm-action=(frame.text("Revoke key", "吊销密钥")) {
                                        (frame.text("Revoke", "吊销"))
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
