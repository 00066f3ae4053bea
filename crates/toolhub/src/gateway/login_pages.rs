//! The pages of a caller's login to a server, in both languages, without scripts.

use toolhub_server::LoginPage;
use url::Url;

/// A short text in both languages, with a sign above it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageText<'a> {
    pub(super) sign: &'a str,
    pub(super) en: &'a str,
    pub(super) zh: &'a str,
}

impl PageText<'static> {
    pub(super) const UNKNOWN_LINK: Self = Self {
        sign: "?",
        en: "This link is not valid any more. Repeat the call to get a new one.",
        zh: "此链接已失效。请重新调用以获取新链接。",
    };
    pub(super) const OTHER_SITE: Self = Self {
        sign: "✗",
        en: "This form was not sent from its own page. Open the link again.",
        zh: "此表单不是从本页面提交的。请重新打开链接。",
    };
    pub(super) const OTHER_PRINCIPAL: Self = Self {
        sign: "✗",
        en: "That is not the key or token of the caller that this link is for.",
        zh: "这不是该链接所属调用方的密钥或令牌。",
    };
    pub(super) const TOO_MANY_ATTEMPTS: Self = Self {
        sign: "✗",
        en: "Too many attempts. Repeat the call to get a new link.",
        zh: "尝试次数过多。请重新调用以获取新链接。",
    };
    pub(super) const OTHER_BROWSER: Self = Self {
        sign: "✗",
        en: "This browser did not begin a login here, or it took too long. Open the link again.",
        zh: "此浏览器没有在这里开始登录，或已超时。请重新打开链接。",
    };
    pub(super) const DONE: Self =
        Self {
            sign: "✓", en: "You are logged in. You can close this page.", zh: "登录成功，可以关闭本页。"
        };
}

/// The contents of the confirmation form.
pub(super) struct LoginForm<'a> {
    pub(super) principal: &'a str,
    pub(super) server: &'a str,
    pub(super) host: &'a str,
}

/// A page with a text.
pub(super) fn message(status: u16, text: &PageText<'_>) -> LoginPage {
    let (en, zh) = (escape(text.en), escape(text.zh));
    page(status, &format!("<b>{}</b><p>{en}</p><p lang=\"zh\">{zh}</p>", text.sign))
}

/// The page on which the caller enters its key or token.
pub(super) fn form(status: u16, form: &LoginForm<'_>, problem: Option<&PageText<'_>>) -> LoginPage {
    let [principal, server, host] = [form.principal, form.server, form.host].map(escape);
    let problem = problem.map_or_else(String::new, |text| {
        format!("<p role=\"alert\">{}<br><span lang=\"zh\">{}</span></p>", escape(text.en), escape(text.zh))
    });
    page(
        status,
        &format!(
            "<h1>toolhub</h1><p><code>{principal}</code> → <code>{server}</code> ({host})</p>{problem}\
             <p>Your calls of this server need a login of your own. Continue only if you made such a call yourself.</p>\
             <p lang=\"zh\">调用此服务器需要你自己登录。仅当你本人发起了该调用时才继续。</p>\
             <form method=\"post\"><label>Your key or token of this gateway · 你在此网关的密钥或令牌<br>\
             <input type=\"password\" name=\"credential\" required autofocus autocomplete=\"off\" spellcheck=\"false\">\
             </label><p><button>Log in · 登录</button></p></form>"
        ),
    )
}

/// The page that leads to the authorization server, and names its host: the server chooses it.
pub(super) fn forward(url: &Url, server: &str) -> LoginPage {
    let [url, server, host] = [url.as_str(), server, url.host_str().unwrap_or_default()].map(escape);
    page(
        200,
        &format!(
            "<p><a href=\"{url}\">Continue to the login of <code>{server}</code> at <code>{host}</code></a></p>\
             <p lang=\"zh\"><a href=\"{url}\">前往 <code>{host}</code> 登录 <code>{server}</code></a></p>"
        ),
    )
}

fn page(status: u16, body: &str) -> LoginPage {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>toolhub</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>:root{{color-scheme:light dark}}\
         body{{font:1.1rem/1.6 system-ui,sans-serif;max-width:36rem;margin:10vh auto;padding:0 1rem;text-align:center}}\
         b{{font-size:3rem}}input{{font:inherit;width:100%;box-sizing:border-box;padding:.4rem}}\
         button{{font:inherit;padding:.4rem 1.2rem}}[role=alert]{{color:#c00}}code{{overflow-wrap:anywhere}}</style></head>\
         <body>{body}</body></html>\n"
    );
    LoginPage { status, html, cookie: None }
}

fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, character| {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_from_elsewhere_are_escaped() {
        let attack = "\"><script>alert('1')</script>&";
        let form = form(200, &LoginForm { principal: attack, server: attack, host: attack }, None);
        let text = PageText { sign: "✗", en: attack, zh: attack };
        let mut url = Url::parse("https://a.example").unwrap();
        url.set_fragment(Some(attack));
        for page in [form, message(400, &text), forward(&url, attack)] {
            assert!(!page.html.contains("<script") && !page.html.contains("alert('"), "{}", page.html);
            assert!(page.html.contains("&quot;&gt;&lt;script&gt;"), "{}", page.html);
        }
    }
}
