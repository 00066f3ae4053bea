//! The frame of all pages: navigation, preferences, and small parts that several pages use.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use toolhub_core::{Lang, Principal};

use crate::api::{ACCESS_READERS, AUDITORS, CLUSTER_READERS, OWNERS, SKILL_READERS, TOOL_USERS, VIEWERS};
use crate::browser::{Preferences, Theme};
use crate::request::{ConsoleContext, Credential};
use crate::route::{Permission, encode_segment};

/// An item of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavItem {
    Home,
    Ask,
    Tools,
    Servers,
    Calls,
    HeldCalls,
    Skills,
    Profiles,
    Clients,
    Cluster,
    Access,
    Audit,
    Settings,
}

impl NavItem {
    const ALL: [Self; 13] = [
        Self::Home,
        Self::Ask,
        Self::Tools,
        Self::Servers,
        Self::Calls,
        Self::HeldCalls,
        Self::Skills,
        Self::Profiles,
        Self::Clients,
        Self::Cluster,
        Self::Access,
        Self::Audit,
        Self::Settings,
    ];

    /// The item of the first segment of a path.
    pub(crate) fn of(segment: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|item| item.path() == segment)
    }

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Home => "",
            Self::Ask => "ask",
            Self::Tools => "tools",
            Self::Servers => "servers",
            Self::Calls => "calls",
            Self::HeldCalls => "waiting",
            Self::Skills => "skills",
            Self::Profiles => "profiles",
            Self::Clients => "clients",
            Self::Cluster => "cluster",
            Self::Access => "access",
            Self::Audit => "audit",
            Self::Settings => "settings",
        }
    }

    pub(crate) fn label(self, lang: Lang) -> &'static str {
        match self {
            Self::Home => lang.choose("Home", "首页"),
            Self::Ask => lang.choose("Ask", "提问"),
            Self::Tools => lang.choose("Tools", "工具"),
            Self::Servers => lang.choose("Servers", "服务器"),
            Self::Calls => lang.choose("Calls", "调用"),
            Self::HeldCalls => lang.choose("Waiting", "待审批"),
            Self::Skills => lang.choose("Skills", "技能"),
            Self::Profiles => lang.choose("Profiles", "配置方案"),
            Self::Clients => lang.choose("Clients", "客户端"),
            Self::Cluster => lang.choose("Cluster", "集群"),
            Self::Access => lang.choose("Access", "权限"),
            Self::Audit => lang.choose("Audit", "审计"),
            Self::Settings => lang.choose("Settings", "设置"),
        }
    }

    /// Who may open the page: those who may read what it shows.
    pub(crate) fn permission(self) -> Permission {
        match self {
            Self::Home | Self::Tools | Self::Calls | Self::HeldCalls | Self::Profiles | Self::Clients => {
                Permission::AnyOf(TOOL_USERS)
            }
            Self::Ask => Permission::LocalUser,
            Self::Servers => Permission::AnyOf(VIEWERS),
            Self::Skills => Permission::AnyOf(SKILL_READERS),
            Self::Cluster => Permission::AnyOf(CLUSTER_READERS),
            Self::Access => Permission::AnyOf(ACCESS_READERS),
            Self::Audit => Permission::AnyOf(AUDITORS),
            Self::Settings => Permission::AnyOf(OWNERS),
        }
    }

    /// The key that opens the page after `g`.
    fn shortcut(self) -> &'static str {
        match self {
            Self::Home => "h",
            Self::Ask => "q",
            Self::Tools => "t",
            Self::Servers => "s",
            Self::Calls => "c",
            Self::HeldCalls => "w",
            Self::Skills => "i",
            Self::Profiles => "p",
            Self::Clients => "l",
            Self::Cluster => "m",
            Self::Access => "k",
            Self::Audit => "a",
            Self::Settings => "e",
        }
    }

    /// The shape of its icon, on a grid of 16.
    fn icon(self) -> &'static str {
        match self {
            Self::Home => "M2 7.5 8 2.5l6 5M3.5 6.5v7h9v-7M6.5 13.5v-4h3v4",
            Self::Ask => "M2.5 3h11v8h-6l-3 2.5V11h-2z",
            Self::Tools => {
                "M9.5 3a3.5 3.5 0 0 1 3.6 4.8l-5.8 5.7a1.6 1.6 0 0 1-2.3-2.3l5.7-5.8M9.5 3l2 2-1.5 1.5"
            }
            Self::Servers => "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01",
            Self::Calls => "M2.5 4h8M2.5 8h11M2.5 12h6M12 3l2 1-2 1",
            Self::HeldCalls => "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11M8 5v3.2l2.2 1.3",
            Self::Skills => "M8 2.5l1.6 3.6 3.9.4-2.9 2.6.8 3.9L8 11l-3.4 2 .8-3.9-2.9-2.6 3.9-.4z",
            Self::Profiles => "M2.5 4.5h11M2.5 8h11M2.5 11.5h11M5 3v3M11 6.5v3M7 10v3",
            Self::Clients => "M2.5 3.5h11v7h-11zM6 13.5h4M8 10.5v3",
            Self::Cluster => "M6 2.5h4v3H6zM2 10.5h4v3H2zM10 10.5h4v3h-4zM8 5.5V8M4 10.5V8h8v2.5",
            Self::Access => "M10.5 2.5a3 3 0 1 1-2.2 5L4 11.8V13.5h2v-1.5h1.5v-1.5L9.4 8.4M11 5h.01",
            Self::Audit => "M4 2.5h8v11H4zM6 5.5h4M6 8h4M6 10.5h2",
            Self::Settings => "M2.5 4.5h6M11.5 4.5h2M8.5 3v3h3V3zM2.5 11.5h2M7.5 11.5h6M4.5 10v3h3v-3z",
        }
    }
}

/// The frame of a page.
pub(crate) struct PageFrame<'a> {
    below: &'a str,
    query: String,
    preferences: Preferences,
    nav: Option<NavItem>,
    csrf: &'a str,
    principal: &'a Principal,
    held_calls: usize,
    /// Whether the hub is a replica of a cluster.
    in_cluster: bool,
    /// The id of the state that the page shows.
    events: &'a str,
}

impl<'a> PageFrame<'a> {
    pub(crate) async fn new(
        below: &'a str,
        context: &'a ConsoleContext<'_>,
        preferences: Preferences,
        nav: Option<NavItem>,
    ) -> Self {
        let csrf = match &context.caller.credential {
            Credential::Session { csrf } => csrf.as_str(),
            Credential::Key => "",
        };
        let held_calls = crate::api::held_calls::visible(context, false).await.map_or(0, |calls| calls.len());
        let (query, principal) = (context.query.with("", None), &**context.principal());
        let in_cluster = context.hub().is_in_cluster();
        Self { below, query, preferences, nav, csrf, principal, held_calls, in_cluster, events: "" }
    }

    /// Names the state that the page shows.
    pub(crate) fn with_events(mut self, events: &'a str) -> Self {
        self.events = events;
        self
    }

    pub(crate) fn lang(&self) -> Lang {
        self.preferences.lang
    }

    /// Selects a text by language.
    pub(crate) fn text<'t>(&self, en: &'t str, zh: &'t str) -> &'t str {
        self.lang().choose(en, zh)
    }

    /// A link to a page of the console, relative to this page.
    pub(crate) fn link(&self, path: &str) -> String {
        format!("{}{path}", root(self.below))
    }

    /// A link to an item, such as `tools/NAME`.
    pub(crate) fn item(&self, kind: &str, name: &str) -> String {
        self.link(&format!("{kind}/{}", encode_segment(name)))
    }

    /// A link to a route of the API, relative to this page.
    pub(crate) fn api(&self, path: &str) -> String {
        format!("{}../api/v1/{path}", root(self.below))
    }

    /// The whole page.
    pub(crate) fn render(&self, title: &str, content: &Markup) -> Markup {
        let lang = self.lang();
        let body = html! {
            a.skip href="#main" { (lang.choose("Skip to content", "跳到内容")) }
            div.shell {
                header.side {
                    a.brand href=(self.link("")) { "toolhub" }
                    nav aria-label=(lang.choose("Main", "主导航")) {
                        ul {
                            @for item in NavItem::ALL.into_iter().filter(|item| self.has_item(*item)) {
                                li {
                                    a href=(self.link(item.path())) data-shortcut=(item.shortcut())
                                        aria-current=[(self.nav == Some(item)).then_some("page")] {
                                        (icon(item.icon()))
                                        span { (item.label(lang)) }
                                        @if item == NavItem::HeldCalls && self.held_calls > 0 {
                                            span.count { (self.held_calls) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                    (self.footer())
                }
                main #main tabindex="-1" data-live="main" { (content) }
            }
            div #toast role="status" aria-live="polite" {}
        };
        PageHead {
            title,
            below: self.below,
            preferences: self.preferences,
            csrf: self.csrf,
            events: self.events,
        }
        .render(&body)
    }

    /// Whether the navigation has this item. The page of the cluster is for hubs that are in one.
    fn has_item(&self, item: NavItem) -> bool {
        item.permission().allows(self.principal) && (item != NavItem::Cluster || self.in_cluster)
    }

    fn footer(&self) -> Markup {
        let lang = self.lang();
        html! {
            div.preferences {
                p.muted { (self.principal.display) }
                p {
                    @for (name, label) in [("en", "English"), ("zh", "中文")] {
                        a href=(self.preference("lang", name)) hreflang=(name) lang=(name)
                            aria-current=[(lang.choose("en", "zh") == name).then_some("true")] { (label) }
                        " "
                    }
                }
                p {
                    @for theme in [Theme::Auto, Theme::Light, Theme::Dark] {
                        a href=(self.preference("theme", theme.name()))
                            aria-current=[(self.preferences.theme == theme).then_some("true")] {
                            (theme_label(theme, lang))
                        }
                        " "
                    }
                }
                p {
                    button.link type="button" data-post=(self.api("session:end")) data-then=(self.link("")) {
                        (lang.choose("Log out", "退出登录"))
                    }
                }
            }
        }
    }

    fn preference(&self, name: &str, value: &str) -> String {
        let back = if self.query.is_empty() {
            self.below.to_owned()
        } else {
            format!("{}?{}", self.below, self.query)
        };
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair(name, value).append_pair("back", &back);
        format!("{}?{}", self.link("preferences"), query.finish())
    }
}

fn theme_label(theme: Theme, lang: Lang) -> &'static str {
    match theme {
        Theme::Auto => lang.choose("Auto", "自动"),
        Theme::Light => lang.choose("Light", "浅色"),
        Theme::Dark => lang.choose("Dark", "深色"),
    }
}

/// The path from a page to the root of the console.
pub(crate) fn root(below: &str) -> String {
    match below.matches('/').count() {
        0 => "./".to_owned(),
        depth => "../".repeat(depth),
    }
}

/// A page without navigation.
pub(crate) fn bare(below: &str, preferences: Preferences, content: &Markup) -> Markup {
    let body = html! { main.bare #main { p.brand { "toolhub" } (content) } };
    PageHead { title: "toolhub", below, preferences, csrf: "", events: "" }.render(&body)
}

/// The head of a page.
struct PageHead<'a> {
    title: &'a str,
    below: &'a str,
    preferences: Preferences,
    /// The token of the session; empty without one.
    csrf: &'a str,
    events: &'a str,
}

impl PageHead<'_> {
    fn render(&self, body: &Markup) -> Markup {
        let Self { title, below, preferences, csrf, events } = *self;
        let root = root(below);
        let lang = preferences.lang.choose("en", "zh-CN");
        html! {
            (DOCTYPE)
            html lang=(lang) data-theme=(preferences.theme.name()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    @if !csrf.is_empty() {
                        meta name="csrf-token" content=(csrf);
                        meta name="events" content=(events);
                        meta name="api-root" content=(format!("{root}../api/v1/"));
                    }
                    title { (title) @if title != "toolhub" { " · toolhub" } }
                    link rel="icon" href="data:,";
                    link rel="stylesheet" href=(format!("{root}assets/console.css"));
                    link rel="stylesheet" href=(format!("{root}assets/schema_form.css"));
                    @if !csrf.is_empty() {
                        script type="module" src=(format!("{root}assets/console.js")) {}
                    }
                }
                body { (body) }
            }
        }
    }
}

/// An icon that is drawn with lines.
pub(crate) fn icon(shape: &'static str) -> Markup {
    html! {
        (PreEscaped("<svg class=\"icon\" viewBox=\"0 0 16 16\" aria-hidden=\"true\"><path d=\""))
        (shape)
        (PreEscaped("\"/></svg>"))
    }
}

/// A time. Scripts show it in the time zone of the browser.
pub(crate) fn time_element(at: &str) -> Markup {
    html! { time datetime=(at) { (time_text(at)) } }
}

/// A time in UTC, for people.
pub(crate) fn time_text(at: &str) -> String {
    let shown = at.replace('T', " ");
    format!("{} UTC", shown.split('.').next().unwrap_or_default())
}

/// A duration for people. `duration_text` of `try_tool.js` rounds alike. Rounding never reaches the next unit.
pub(crate) fn duration_text(ms: f64) -> String {
    let tenths = |value: f64| (value * 10.0).round() / 10.0;
    match ms {
        ms if (ms * 1_000.0).round() < 1_000.0 => format!("{} µs", (ms * 1_000.0).round()),
        ms if tenths(ms) < 10.0 => format!("{:.1} ms", tenths(ms)),
        ms if ms.round() < 1_000.0 => format!("{} ms", ms.round()),
        ms if tenths(ms / 1_000.0) < 60.0 => format!("{:.1} s", tenths(ms / 1_000.0)),
        ms => format!("{} min", (ms / 60_000.0).round()),
    }
}

/// A coloured label of a state.
pub(crate) fn state_label(name: &str, label: &str) -> Markup {
    let class = match name {
        "connected" | "ready" | "succeeded" | "approved" => "good",
        "failed" | "circuit_open" | "quarantined" | "denied" => "bad",
        "slow" | "unknown" | "changed" | "waiting" | "running" => "odd",
        _ => "dim",
    };
    html! { span class=(format!("state {class}")) { (label) } }
}

/// A short text of the first line.
pub(crate) fn first_line(text: &str, characters: usize) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    toolhub_core::text::truncate(line, characters).unwrap_or_else(|| line.to_owned())
}

/// The link to the next page of a list.
pub(crate) fn next_link(context: &ConsoleContext<'_>, next: Option<&str>, lang: Lang) -> Markup {
    html! {
        @if let Some(next) = next {
            nav.pages aria-label=(lang.choose("Pages", "分页")) {
                a.button href=(format!("?{}", context.query.with("cursor", Some(next)))) {
                    (lang.choose("Older", "更早"))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_relative_to_the_page() {
        for (below, expected) in [("", "./"), ("tools", "./"), ("tools/a", "../"), ("a/b/c", "../../")] {
            assert_eq!(root(below), expected, "{below}");
        }
    }

    #[test]
    fn durations_have_few_digits() {
        for (ms, expected) in [
            (0.2, "200 µs"),
            (0.9996, "1.0 ms"),
            (1.25, "1.3 ms"),
            (9.97, "10 ms"),
            (12.4, "12 ms"),
            (999.7, "1.0 s"),
            (1_500.0, "1.5 s"),
            (59_990.0, "1 min"),
            (120_000.0, "2 min"),
        ] {
            assert_eq!(duration_text(ms), expected, "{ms}");
        }
    }
}
