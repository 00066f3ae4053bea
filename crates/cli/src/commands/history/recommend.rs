//! `toolhub recommend`: tools that usually succeed next, or for similar requests.

use toolhub_core::{Localize as _, RawJson, RawObject};
use toolhub_engine::recommend::{Recommendation, RecommendationQuery};

use crate::app::App;
use crate::args::history::RecommendArgs;
use crate::exit::Exit;
use crate::render::screen::{DIM, NAME};
use crate::render::table::{Cell, table_lines};

pub(crate) async fn run(app: &App, args: RecommendArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let query = match (&args.after, &args.request) {
        (Some(tool), _) => RecommendationQuery::After(tool),
        (None, Some(request)) => RecommendationQuery::For(request),
        (None, None) => RecommendationQuery::Anything,
    };
    let advice = hub.recommend(query, args.limit).await?;
    let lang = app.lang();
    if app.screen.json {
        let all: Vec<RawObject> = advice.iter().map(|one| as_json(app, one)).collect();
        app.screen.json(&RawJson::of(&all));
        return Ok(Exit::Done);
    }
    if advice.is_empty() {
        let why = match query {
            RecommendationQuery::After(tool) => lang.choose(
                format!("nothing has worked after `{tool}` yet"),
                format!("还没有在 `{tool}` 之后成功用过的工具"),
            ),
            RecommendationQuery::For(_) => lang.choose(
                "no request like this was served yet; say what a call is for with `toolhub call --for`"
                    .to_owned(),
                "还没有处理过类似的请求；调用时可用 `toolhub call --for` 说明目的".to_owned(),
            ),
            RecommendationQuery::Anything => {
                lang.choose("nothing was called yet".to_owned(), "还没有调用".to_owned())
            }
        };
        app.screen.note(&why);
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<Cell>> = advice
        .iter()
        .map(|one| {
            vec![
                Cell::new(one.tool.as_str(), NAME),
                Cell::new(format!("{:.2}", one.score), DIM),
                Cell::from(one.why.localize(lang)),
            ]
        })
        .collect();
    for line in table_lines(&rows, "", app.screen.width()) {
        app.screen.line(&line);
    }
    Ok(Exit::Done)
}

fn as_json(app: &App, one: &Recommendation) -> RawObject {
    RawObject::default()
        .with("tool", one.tool.as_str())
        .with("score", RawJson::of(&one.score))
        .with("calls", one.calls)
        .with("successes", one.successes)
        .with("why", one.why.localize(app.lang()))
}
