//! `toolhub servers offers`: the resources, resource templates and prompts of a server.

use toolhub::{Hub, Offer, ToolError};
use toolhub_core::{Localize as _, RawJson, RawObject};

use crate::app::App;
use crate::commands::servers::unknown_server;
use crate::exit::Exit;
use crate::render::screen::{BOLD, DIM, NAME};
use crate::render::table::{Cell, table_lines};

pub(crate) async fn run(app: &App, id: &str) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    if !hub.servers().iter().any(|server| server.spec.id.as_str() == id) {
        return Err(unknown_server(app, hub, id).into());
    }
    match app.interruptible(gather(hub, id)).await? {
        Ok(offers) if app.screen.json => {
            let all = offers
                .iter()
                .fold(RawObject::default(), |all, (offer, items)| all.with(offer.key(), RawJson::of(items)));
            app.screen.json(&all.into_raw());
        }
        Ok(offers) => offers.iter().for_each(|(offer, items)| show(app, *offer, items)),
        Err(error) => {
            app.screen.error(&error.localize(app.lang()));
            return Ok(Exit::from(&error));
        }
    }
    Ok(Exit::Done)
}

async fn gather(hub: &Hub, id: &str) -> Result<Vec<(Offer, Vec<RawJson>)>, ToolError> {
    let mut offers = Vec::new();
    for offer in Offer::ALL {
        if let Some(items) = hub.offers(id, offer).await {
            offers.push((offer, items?));
        }
    }
    Ok(offers)
}

fn show(app: &App, offer: Offer, items: &[RawJson]) {
    let heading = match offer {
        Offer::Resources => app.lang().choose("resources", "资源"),
        Offer::ResourceTemplates => app.lang().choose("resource templates", "资源模板"),
        Offer::Prompts => app.lang().choose("prompts", "提示词"),
    };
    app.screen.line(&format!("{BOLD}{heading}{BOLD:#} {DIM}({}){DIM:#}", items.len()));
    let row = |item: &RawJson| {
        let members = item.object().unwrap_or_default();
        let text = |key: &str| members.get(key).and_then(|value| value.decode::<String>().ok());
        let name = text("uri").or_else(|| text("uriTemplate")).or_else(|| text("name")).unwrap_or_default();
        let description = text("description").or_else(|| text("title")).unwrap_or_default();
        vec![Cell::new(name, NAME), Cell::from(description.lines().next().unwrap_or_default())]
    };
    let rows: Vec<Vec<Cell>> = items.iter().map(row).collect();
    for line in table_lines(&rows, "  ", app.screen.width()) {
        app.screen.line(&line);
    }
}
