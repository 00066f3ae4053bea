//! The one-time link into the web console of a hub.

use std::net::SocketAddr;

use toolhub::Hub;
use toolhub::settings::Settings;
use toolhub_console::one_time_link;
use toolhub_core::RawObject;

use crate::app::App;
use crate::args::serve::ConsoleLink;
use crate::render::screen::NAME;
use crate::terminal::browser;

/// The hub, if its replicas share a store, in which the tickets of links are then.
pub(crate) async fn shared_hub(app: &App) -> anyhow::Result<Option<&Hub>> {
    Ok(match Settings::read(&app.paths()?)?.store.is_shared() {
        true => Some(app.hub().await?),
        false => None,
    })
}

/// Prints a one-time link into the console of the hub at an address, and opens it in a browser.
pub(crate) async fn present(
    app: &App,
    address: SocketAddr,
    link: ConsoleLink,
    hub: Option<&Hub>,
) -> anyhow::Result<()> {
    let lang = app.lang();
    let store = hub.and_then(Hub::store).map(|store| &**store);
    let link_text = one_time_link(&app.paths()?.data_dir, address, store).await?;
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
