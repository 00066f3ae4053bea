//! `toolhub console`: opens the web console with a one-time link. Starts a hub if none is running.

use toolhub_console::running_addresses;

use crate::app::App;
use crate::args::serve::{ConsoleArgs, ConsoleLink, ServeArgs};
use crate::commands::serve;
use crate::commands::serve::console_link;
use crate::exit::Exit;

pub(crate) async fn run(app: &App, args: ConsoleArgs) -> anyhow::Result<Exit> {
    let link = ConsoleLink { opens_browser: !args.no_browser };
    let running = running_addresses(&app.paths()?.data_dir);
    if let Some(address) = running.first().filter(|_| args.bind.is_none()) {
        let hub = console_link::shared_hub(app).await?;
        console_link::present(app, *address, link, hub).await?;
        return Ok(Exit::Done);
    }
    let options = ServeArgs {
        bind: args.bind,
        stdio: false,
        profile: None,
        no_servers: false,
        new_token: None,
        check: false,
        console_link: Some(link),
    };
    serve::run(app, options).await
}
