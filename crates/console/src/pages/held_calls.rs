//! The page of held calls.

use maud::{Markup, html};
use toolhub_access::may_decide_held_calls;
use toolhub_core::{Lang, Localize as _};

use super::json_view;
use super::layout::{PageFrame, state_label, time_element};
use super::servers::fact_row;
use crate::api::held_calls::{self, Held};
use crate::problem::Problem;
use crate::request::ConsoleContext;

pub(crate) async fn page(
    context: &ConsoleContext<'_>,
    frame: &PageFrame<'_>,
) -> Result<(String, Markup), Problem> {
    let all = context.query.get("all") == Some("true");
    let held = held_calls::visible(context, all).await?;
    let title = frame.text("Waiting", "待审批");
    let decides = decides(context);
    let content = html! {
        h1 { (title) }
        p {
            @if all {
                a href="?" { (frame.text("Only calls that wait", "只看等待中的")) }
            } @else {
                a href="?all=true" { (frame.text("Decided ones, too", "包括已决定的")) }
            }
        }
        @if held.is_empty() {
            div.empty {
                p { (frame.text("No call waits for a decision.", "没有待审批的调用。")) }
                p.muted { (frame.text(
                    "A rule with `effect = \"ask\"` in `[[auth.rules]]` holds calls until a person decides.",
                    "`[[auth.rules]]` 中 `effect = \"ask\"` 的规则会暂停调用，直到有人决定。",
                )) }
            }
        }
        @for call in &held { (card(frame, call, decides)) }
    };
    Ok((title.to_owned(), content))
}

/// One held call in any state: the page that clients open for their users.
pub(crate) async fn item(
    context: &ConsoleContext<'_>,
    frame: &PageFrame<'_>,
) -> Result<(String, Markup), Problem> {
    let held = held_calls::visible(context, true).await?;
    let Some(call) = held.iter().find(|call| call.id == context.id()) else {
        return Err(Problem::not_found(
            "no held call that you may see has this reference; it may have expired",
            "没有你可以查看的、具有此编号的待审批调用；它可能已过期",
        ));
    };
    let content = html! {
        p.crumbs { a href=(frame.link("waiting")) { (frame.text("Waiting", "待审批")) } }
        h1 { (frame.text("Held call", "待审批的调用")) }
        @if call.state == "waiting" && !decides(context) {
            p { (frame.text(
                "An approver has to decide. This page shows the decision when you reload it; your client goes on by itself, or repeats the call.",
                "须由审批人决定。刷新本页可查看决定；你的客户端会自动继续，或重新发起调用。",
            )) }
        }
        (card(frame, call, decides(context)))
    };
    Ok((call.tool.clone(), content))
}

fn decides(context: &ConsoleContext<'_>) -> bool {
    may_decide_held_calls(context.principal().roles)
}

fn card(frame: &PageFrame<'_>, call: &Held, decides: bool) -> Markup {
    let action = |verb: &str| frame.api(&format!("waiting/{}:{verb}", call.id));
    let question = match frame.lang() {
        Lang::En => format!("Let “{}” of {} run once with these arguments?", call.tool, call.principal),
        Lang::Zh => format!("允许 {} 的“{}”以这些参数执行一次？", call.principal, call.tool),
    };
    // What is approved must be what was shown.
    let is_complete = json_view::indented(&call.arguments).is_complete;
    html! {
        section.card {
            div.head {
                h2 { bdi { (call.tool) } }
                (state_label(&call.state, &call.label.localize(frame.lang())))
                @if decides && call.state == "waiting" {
                    div.actions {
                        @if call.may_approve && is_complete {
                            button.primary type="button" data-post=(action("approve")) data-confirm=(question)
                                data-confirm-action=(frame.text("Approve call", "批准调用")) {
                                (frame.text("Approve", "批准"))
                            }
                        }
                        button type="button" data-post=(action("deny")) { (frame.text("Deny", "拒绝")) }
                    }
                }
            }
            @if decides && call.state == "waiting" && !call.may_approve {
                p.muted { (frame.text("This is your own call: another approver has to decide.", "这是你自己的调用：须由其他审批人决定。")) }
            }
            @if !is_complete {
                p.problem { (frame.text(
                    "The arguments are too long to be shown: read them with `toolhub waiting --json`.",
                    "参数过长，无法完整显示：请用 `toolhub waiting --json` 查看。",
                )) }
            }
            dl.facts {
                (fact_row(frame.text("Caller", "调用方"), &call.principal))
                (fact_row(frame.text("Rule", "规则"), &call.rule))
                (fact_row(frame.text("Source", "来源"), &call.sources.join(", ")))
                (fact_row(frame.text("Profile", "配置方案"), &call.profile))
                dt { (frame.text("Made", "提出时间")) } dd { (time_element(&call.at)) }
                dt { (frame.text("Expires", "过期时间")) } dd { (time_element(&call.expires)) }
                @if let Some(by) = &call.decided_by { (fact_row(frame.text("Decided by", "决定人"), by)) }
                (fact_row(frame.text("Reference", "编号"), &call.id))
            }
            (json_view::json(&call.arguments, frame.text("Arguments", "参数")))
        }
    }
}
