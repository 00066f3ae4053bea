//! The pages of skills and profiles.

use maud::{Markup, html};
use toolhub_core::Lang;

use super::layout::{PageFrame, first_line, state_label};
use super::table::{Column, cell_text, foreign_text, table};
use crate::api::skills::{self, Profile, Skill};
use crate::request::ConsoleContext;
use crate::route::encode_segment;

const DESCRIPTION_CHARACTERS: usize = 200;

fn label(name: &str, lang: Lang) -> &'static str {
    match name {
        "used" => lang.choose("used", "使用中"),
        "hidden" => lang.choose("hidden by another of the same name", "被同名技能覆盖"),
        _ => lang.choose("not approved", "未批准"),
    }
}

const SKILL_COLUMNS: [Column; 5] = [
    Column::new("Name", "名称"),
    Column::description("Description", "说明"),
    Column::new("State", "状态"),
    Column::new("Tools", "工具"),
    Column::muted("Place", "位置"),
];
const PROFILE_COLUMNS: [Column; 5] = [
    Column::new("Name", "名称"),
    Column::number("Tools", "工具"),
    Column::number("In the list", "列表中"),
    Column::number("Size of the list", "列表大小"),
    Column::number("Tokens, about", "约合 token"),
];

fn skill_row(frame: &PageFrame<'_>, skill: &Skill) -> Vec<Markup> {
    vec![
        foreign_text(&skill.name),
        foreign_text(first_line(&skill.description, DESCRIPTION_CHARACTERS)),
        state_label(
            if skill.state == "used" { "ready" } else { "changed" },
            label(&skill.state, frame.lang()),
        ),
        html! {
            @for tool in &skill.tools { a href=(frame.item("tools", tool)) { bdi { (tool) } } " " }
        },
        html! { (skill.origin) " " bdi { (skill.place) } },
    ]
}

fn profile_row(frame: &PageFrame<'_>, profile: &Profile) -> Vec<Markup> {
    let link = format!("{}?profile={}", frame.link("tools"), encode_segment(&profile.name));
    vec![
        html! { a href=(link) { bdi { (profile.name) } } },
        cell_text(profile.tools.to_string()),
        cell_text(profile.listed.to_string()),
        cell_text(format!("{:.1} kB", kilobytes(profile.list_bytes))),
        cell_text(profile.list_tokens.to_string()),
    ]
}

pub(crate) fn skills(context: &ConsoleContext<'_>, frame: &PageFrame<'_>) -> (String, Markup) {
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
            (table(frame, title, &SKILL_COLUMNS, skills.iter().map(|skill| skill_row(frame, skill))))
            p.muted { (frame.text(
                "`toolhub skills approve NAME` shows what a skill may do, and approves it.",
                "`toolhub skills approve 名称` 会显示技能的权限并批准它。",
            )) }
        }
    };
    (title.to_owned(), content)
}

pub(crate) fn profiles(context: &ConsoleContext<'_>, frame: &PageFrame<'_>) -> (String, Markup) {
    let profiles = skills::read_profiles(context);
    let title = frame.text("Profiles", "配置方案");
    let content = html! {
        h1 { (title) " " span.count { (profiles.len()) } }
        p { (frame.text(
            "A profile is a selection of tools with an address of its own. The size of its list is what every client pays in tokens.",
            "配置方案是一组工具，有自己的地址。列表的大小就是每个客户端付出的 token 成本。",
        )) }
        (table(frame, title, &PROFILE_COLUMNS, profiles.iter().map(|profile| profile_row(frame, profile))))
    };
    (title.to_owned(), content)
}

#[expect(clippy::cast_precision_loss, reason = "a rounded size for display")]
fn kilobytes(bytes: usize) -> f64 {
    bytes as f64 / 1_000.0
}
