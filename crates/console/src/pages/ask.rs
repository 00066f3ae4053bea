//! The page that asks the agent.

use maud::{Markup, html};
use toolhub_core::principal::PrincipalOrigin;

use super::layout::PageFrame;
use crate::problem::Problem;
use crate::request::ConsoleContext;

pub(crate) fn page(context: &ConsoleContext<'_>, frame: &PageFrame<'_>) -> Result<(String, Markup), Problem> {
    if context.principal().origin != PrincipalOrigin::Local {
        return Err(Problem::forbidden(
            "the agent acts as the local user: only the console of the local user may ask it",
            "智能体以本机用户身份运行：只有本机用户的控制台可以使用",
        ));
    }
    let title = frame.text("Ask", "提问");
    let content = html! {
        h1 { (title) }
        p.muted { (frame.text(
            "Say what you want done. The agent finds the tools and runs them. It asks before it runs a tool that is marked destructive, or has no hints and a name such as delete_row; other tools run at once, also those that may change something. “Show the plan” shows first what would run.",
            "说明想做什么。智能体会查找并运行工具。运行标记为破坏性的工具，或没有提示而名称类似 delete_row 的工具之前，会先询问；其他工具会直接运行，包括可能改动数据的工具。“查看计划”可先显示将要运行的内容。",
        )) }
        div #ask data-static="true" data-ask=(frame.api("ask")) data-plan=(frame.api("plan")) data-calls=(frame.link("calls")) {
            noscript { p.muted { (frame.text("Scripts are needed to ask from here.", "在此提问需要启用脚本。")) } }
        }
    };
    Ok((title.to_owned(), content))
}
