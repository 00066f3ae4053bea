//! The pages of the console: HTML that the server renders, readable without scripts. Everything that a server or a model wrote
//! is escaped.

mod access;
mod ask;
mod audit;
mod calls;
mod clients;
mod cluster;
mod comparison;
mod held_calls;
mod home;
mod json_view;
mod labels;
mod layout;
mod servers;
mod settings;
mod skills;
mod table;
mod tools;

use axum::body::Body;
use http::{Response, StatusCode};
use maud::{Markup, html};
use toolhub_core::Localize as _;
use toolhub_server::hash_of;

use self::layout::{NavItem, PageFrame};
use crate::api::visible_topics;
use crate::browser::{self, Preferences};
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::Route;

/// The page for a path below the console.
pub(crate) async fn respond(
    below: &str,
    mut context: ConsoleContext<'_>,
    preferences: Preferences,
) -> Response<Body> {
    let mut segments: Vec<String> = below.split('/').map(str::to_owned).collect();
    let is_item = segments.len() == 2 && !segments[1].is_empty();
    if is_item {
        // The same decoding as in the API.
        context.path = Route::decode_segment(&segments[1]).into_iter().collect();
        segments.truncate(1);
    }
    let path = if is_item || segments.len() == 1 { segments[0].as_str() } else { "?" };
    let nav = NavItem::of(path);
    // Before the contents are read: a change in between is announced to the page.
    let events = context.events.current_id(context.hub(), visible_topics(&context)).await;
    let frame = PageFrame::new(below, &context, preferences, nav).await.with_events(&events);
    let is_allowed = nav.is_none_or(|nav| nav.permission().allows(context.principal()));
    if !is_allowed {
        context.gateways.note_refused_operation(context.principal(), "open page", below);
    }
    let content: Result<(String, Markup), Problem> = match (path, is_item) {
        _ if !is_allowed => Err(Problem::forbidden(
            "your roles do not allow this page; the owner of the hub can give you another role",
            "你的角色无权查看此页面；hub 的所有者可以授予其他角色",
        )),
        ("", false) => home::page(&context, &frame).await,
        ("tools", false) => tools::list(&context, &frame).await,
        ("tools", true) => tools::item(&context, &frame).await,
        ("servers", false) => Ok(servers::list(&context, &frame)),
        ("servers", true) => servers::item(&context, &frame),
        ("calls", false) => calls::list(&context, &frame).await,
        ("calls", true) => calls::item(&context, &frame).await,
        ("waiting", false) => held_calls::page(&context, &frame).await,
        ("waiting", true) => held_calls::item(&context, &frame).await,
        ("clients", false) => clients::page(&context, &frame).await,
        ("cluster", false) => cluster::page(&context, &frame).await,
        ("ask", false) => ask::page(&context, &frame),
        ("skills", false) => Ok(skills::skills(&context, &frame)),
        ("profiles", false) => Ok(skills::profiles(&context, &frame)),
        ("access", false) => Ok(access::page(&context, &frame)),
        ("audit", false) => audit::page(&context, &frame).await,
        ("settings", false) => settings::page(&context, &frame),
        _ => Err(Problem::not_found("there is no such page", "没有此页面")),
    };
    match content {
        Ok((title, content)) => browser::html(StatusCode::OK, frame.render(&title, &content).into_string()),
        Err(problem) => {
            let status = problem.status;
            let list = nav.filter(|_| is_item && is_allowed && status == StatusCode::NOT_FOUND);
            let (title, content) = problem_content(&problem, &frame, list);
            browser::html(status, frame.render(&title, &content).into_string())
        }
    }
}

/// What is wrong. `list` is the page with the items of which one was not found.
fn problem_content(problem: &Problem, frame: &PageFrame<'_>, list: Option<NavItem>) -> (String, Markup) {
    let title = match problem.status {
        StatusCode::NOT_FOUND => frame.text("Not found", "未找到"),
        StatusCode::FORBIDDEN => frame.text("Not allowed", "不允许"),
        _ => frame.text("Something is wrong", "出错了"),
    };
    let content = html! {
        h1 { (title) }
        div.empty {
            p { (problem.detail.localize(frame.lang())) }
            @if let Some(server) = &problem.server {
                p { a.button href=(frame.item("servers", server)) {
                    (frame.text("Open the server", "打开服务器")) " " bdi { (server) }
                } }
            }
            @if let Some(list) = list {
                p { a.button href=(frame.link(list.path())) {
                    (frame.text("Back to the list: ", "返回列表：")) (list.label(frame.lang()))
                } }
            }
            p { a.button href=(frame.link("")) { (frame.text("Back to the start", "返回首页")) } }
        }
    };
    (title.to_owned(), content)
}

/// A short name of a provider for links.
pub(crate) fn issuer_id(issuer: &str) -> String {
    hash_of(issuer).chars().take(16).collect()
}

/// The page for a browser without a session. People can log in at the identity providers.
pub(crate) fn login(below: &str, preferences: Preferences, issuers: &[String]) -> Response<Body> {
    let lang = preferences.lang;
    let link = |issuer: &str| {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("issuer", &issuer_id(issuer)).append_pair("next", below);
        format!("{}login?{}", layout::root(below), query.finish())
    };
    let host = |issuer: &str| {
        let url = url::Url::parse(issuer).ok();
        url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_else(|| issuer.to_owned())
    };
    let content = html! {
        h1 { (lang.choose("Log in to the console", "登录控制台")) }
        @for issuer in issuers {
            p { a.button.primary href=(link(issuer)) {
                (lang.choose("Log in at ", "登录：")) (host(issuer))
            } }
        }
        @if !issuers.is_empty() {
            h2 { (lang.choose("As the owner of the hub", "以 hub 所有者身份登录")) }
        }
        p { (lang.choose(
            "On the machine of the hub, run this command. It opens this console with a one-time link:",
            "请在 hub 所在的机器上运行以下命令，它会用一次性链接打开控制台：",
        )) }
        pre.command { "toolhub console" }
        p.muted { (lang.choose(
            "If the browser runs on another machine, copy the link that the command prints.",
            "如果浏览器在另一台机器上，请复制命令输出的链接。",
        )) }
    };
    browser::html(StatusCode::UNAUTHORIZED, layout::bare(below, preferences, &content).into_string())
}

/// The page after a login that failed.
pub(crate) fn failed_login(preferences: Preferences, why: &str) -> Response<Body> {
    let lang = preferences.lang;
    let content = html! {
        h1 { (lang.choose("You are not logged in", "未能登录")) }
        p { (why) }
        p { a.button href="./" { (lang.choose("Try again", "重试")) } }
    };
    browser::html(StatusCode::FORBIDDEN, layout::bare("callback", preferences, &content).into_string())
}

/// The page for a link that was used before, or is too old.
pub(crate) fn used_link(preferences: Preferences) -> Response<Body> {
    let lang = preferences.lang;
    let content = html! {
        h1 { (lang.choose("This link is not valid any more", "此链接已失效")) }
        p { (lang.choose(
            "A link works once, within five minutes. Run the command again to get a new one:",
            "链接只能使用一次，五分钟内有效。请重新运行命令获取新链接：",
        )) }
        pre.command { "toolhub console" }
    };
    browser::html(StatusCode::FORBIDDEN, layout::bare("open/x", preferences, &content).into_string())
}
