//! The pages of skills and profiles.

use maud::{Markup, html};
use toolhub_core::Lang;

use super::layout::{Frame, first_line, state};
use crate::api::skills;
use crate::request::Context;

const DESCRIPTION_CHARACTERS: usize = 200;

fn label(name: &str, lang: Lang) -> &'static str {
    match name {
        "used" => lang.choose("used", "使用中"),
        "hidden" => lang.choose("hidden by another of the same name", "被同名技能遮盖"),
        _ => lang.choose("not approved", "未批准"),
    }
}

pub(crate) fn skills(context: &Context<'_>, frame: &Frame<'_>) -> (String, Markup) {
    let skills = skills::read_skills(context);
    let title = frame.text("Skills", "技能");
    let content = html! {
        h1 { (title) " " span.count { (skills.len()) } }
        @if skills.is_empty() {
            div.empty {
                p { (frame.text("No skills yet. In a terminal:", "还没有技能。在终端中运行：")) }
                pre.command { "toolhub skills new NAME" }
            }
        } @else {
            div.scroll tabindex="0" role="region" aria-label=(title) {
                table {
                    thead { tr {
                        th scope="col" { (frame.text("Name", "名称")) }
                        th scope="col" { (frame.text("Description", "说明")) }
                        th scope="col" { (frame.text("State", "状态")) }
                        th scope="col" { (frame.text("Tools", "工具")) }
                        th scope="col" { (frame.text("Place", "位置")) }
                    } }
                    tbody {
                        @for skill in &skills {
                            tr {
                                td { bdi { (skill.name) } }
                                td.description { bdi { (first_line(&skill.description, DESCRIPTION_CHARACTERS)) } }
                                td { (state(if skill.state == "used" { "ready" } else { "changed" }, label(&skill.state, frame.lang()))) }
                                td {
                                    @for tool in &skill.tools { a href=(frame.item("tools", tool)) { bdi { (tool) } } " " }
                                }
                                td.muted { (skill.origin) " " bdi { (skill.place) } }
                            }
                        }
                    }
                }
            }
            p.muted { (frame.text(
                "`toolhub skills approve NAME` shows what a skill may do, and approves it.",
                "`toolhub skills approve 名称` 会显示技能的权限并批准它。",
            )) }
        }
    };
    (title.to_owned(), content)
}

pub(crate) fn profiles(context: &Context<'_>, frame: &Frame<'_>) -> (String, Markup) {
    let profiles = skills::read_profiles(context);
    let title = frame.text("Profiles", "配置档");
    let content = html! {
        h1 { (title) " " span.count { (profiles.len()) } }
        p { (frame.text(
            "A profile is a selection of tools with an address of its own. The size of its list is what every client pays in tokens.",
            "配置档是一组工具，有自己的地址。列表的大小就是每个客户端付出的 token 成本。",
        )) }
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table {
                thead { tr {
                    th scope="col" { (frame.text("Name", "名称")) }
                    th.number scope="col" { (frame.text("Tools", "工具")) }
                    th.number scope="col" { (frame.text("In the list", "列表中")) }
                    th.number scope="col" { (frame.text("Size of the list", "列表大小")) }
                    th.number scope="col" { (frame.text("Tokens, about", "约合 token")) }
                } }
                tbody {
                    @for profile in &profiles {
                        tr {
                            td { a href=(format!("{}?profile={}", frame.link("tools"), crate::route::encode(&profile.name))) { bdi { (profile.name) } } }
                            td.number { (profile.tools) }
                            td.number { (profile.listed) }
                            td.number { (format!("{:.1} kB", kilobytes(profile.list_bytes))) }
                            td.number { (profile.list_tokens) }
                        }
                    }
                }
            }
        }
    };
    (title.to_owned(), content)
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn kilobytes(bytes: usize) -> f64 {
    bytes as f64 / 1_000.0
}
