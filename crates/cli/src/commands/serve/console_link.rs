//! The one-time link into the web console of a hub.

use std::net::SocketAddr;

use toolhub_console::one_time_link;
use toolhub_core::RawObject;

use crate::app::App;
use crate::args::serve::ConsoleLink;
use crate::render::screen::NAME;
use crate::terminal::browser;

/// Prints a one-time link into the console of the hub at an address, and opens it in a browser.
pub(crate) fn present(app: &App, address: SocketAddr, link: ConsoleLink) -> anyhow::Result<()> {
    let lang = app.lang();
    let link_text = one_time_link(&app.places()?.home, address)?;
    let url = link_text.expose();
    if app.screen.json {
        app.screen.json(&RawObject::default().with("url", url).into_raw());
        return Ok(());
    }
    let opened = link.opens_browser && browser::open(url);
    app.screen.to_stderr(match opened {
        true => lang.choose(
            "your browser opens; if it does not, open this link, which works once, within five minutes:",
            "浏览器即将打开；若未打开，请打开以下链接（五分钟内有效，仅限一次）：",
        ),
        false => lang.choose(
            "open this link in a browser; it works once, within five minutes:",
            "请在浏览器中打开以下链接（五分钟内有效，仅限一次）：",
        ),
    });
    app.screen.to_stderr(&format!("{NAME}{url}{NAME:#}"));
    Ok(())
}
