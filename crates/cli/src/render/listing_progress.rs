//! Progress output while servers are being listed.

use std::io::IsTerminal as _;
use std::time::Duration;

use toolhub::{Hub, ListingProgress};
use toolhub_core::Lang;

use crate::app::App;
use crate::exit::Interrupted;
use crate::render::plural::plural;

/// Redraw interval of the status line on a terminal.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
/// Interval of log lines without a terminal.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// The maximum number of running servers that are named.
const MAX_LISTED_SERVERS: usize = 3;

/// Waits for servers to be listed, and shows the progress: as a status line on a terminal, otherwise as occasional log lines.
pub(crate) async fn show_listing_progress<T>(
    app: &App,
    hub: &Hub,
    work: impl Future<Output = T>,
) -> Result<T, Interrupted> {
    let terminal = std::io::stderr().is_terminal();
    let display_loop = async {
        loop {
            tokio::time::sleep(if terminal { REDRAW_INTERVAL } else { LOG_INTERVAL }).await;
            let Some(text) = describe(&hub.progress(), app.lang()) else { continue };
            if terminal {
                app.screen.status(&text);
            } else {
                app.screen.note(&text);
            }
        }
    };
    let done = tokio::select! {
        done = app.interruptible(work) => done,
        never = display_loop => never,
    };
    app.screen.hide_status();
    done
}

/// The progress as one line; `None` if nothing is being listed.
fn describe(progress: &ListingProgress, lang: Lang) -> Option<String> {
    let ListingProgress { total, done, running } = progress;
    if *total == 0 {
        return None;
    }
    let names: Vec<String> = running.iter().take(MAX_LISTED_SERVERS).map(ToString::to_string).collect();
    let more = running.len().saturating_sub(MAX_LISTED_SERVERS);
    let more = match more {
        0 => String::new(),
        _ => lang.choose(format!(" and {more} more"), format!(" 等 {} 个", running.len())),
    };
    let names = format!("{}{more}", names.join(lang.choose(", ", "、")));
    Some(lang.choose(
        format!("listed {done} of {}; starting {names}", plural(*total, "server")),
        format!("已列出 {done}/{total} 个服务器；正在启动 {names}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolhub_core::ServerId;

    #[test]
    fn names_at_most_three_starting_servers() {
        let running = ["a", "b", "c", "d"].map(ServerId::new).to_vec();
        let progress = ListingProgress { total: 100, done: 12, running };
        let localize = |lang| describe(&progress, lang).unwrap();
        assert_eq!(localize(Lang::En), "listed 12 of 100 servers; starting a, b, c and 1 more");
        assert_eq!(localize(Lang::Zh), "已列出 12/100 个服务器；正在启动 a、b、c 等 4 个");
        assert_eq!(describe(&ListingProgress::default(), Lang::En), None);
    }
}
