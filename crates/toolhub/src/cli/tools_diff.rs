//! `toolhub tools diff`: what changed in a tool's definition since it was last listed.

use similar::TextDiff;
use toolhub::Request;
use toolhub_core::ports::ToolVersion;
use toolhub_core::{RawJson, RawObject, Say as _, Source, json};

use super::app::App;
use super::exit::Exit;
use super::options::ShowArgs;
use super::screen::{BAD, BOLD, DIM, GOOD};

pub(crate) async fn run(app: &App, args: ShowArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let request = Request { source: args.source.as_deref(), ..Request::named(&args.tool) };
    let route = match app.interruptible(hub.explain(request)).await? {
        Ok(route) => route,
        Err(error) => {
            app.screen.error(&error.say(app.lang()));
            return Ok(Exit::from(&error));
        }
    };
    let mut history = Vec::new();
    let source = route.candidates.first().map(|candidate| candidate.source().clone());
    if let Some(Source::Server(server)) = &source {
        history = hub.history_of(server, &args.tool).await?;
    }
    let shown = source.map(|source| source.to_string()).unwrap_or_default();
    if app.screen.json {
        app.screen.json(&as_json(&args.tool, &shown, &history));
    } else {
        show(app, &args.tool, &shown, &history);
    }
    Ok(Exit::Done)
}

/// The lines that differ between the two newest versions, with three lines around them.
fn difference(history: &[ToolVersion]) -> String {
    let [new, old, ..] = history else { return String::new() };
    let (old, new) = (json::pretty(old.definition.get()), json::pretty(new.definition.get()));
    TextDiff::from_lines(&old, &new).unified_diff().context_radius(3).to_string()
}

fn as_json(tool: &str, source: &str, history: &[ToolVersion]) -> RawJson {
    let millis = |time: std::time::SystemTime| {
        let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    };
    let versions: Vec<RawObject> = history
        .iter()
        .map(|one| {
            RawObject::default()
                .with("version", one.version.as_str())
                .with("first_seen_ms", millis(one.first_seen))
                .with("last_seen_ms", millis(one.last_seen))
                .with("definition", one.definition.clone())
        })
        .collect();
    RawObject::default()
        .with("tool", tool)
        .with("source", source)
        .with("versions", RawJson::of(&versions))
        .with("diff", difference(history))
        .into_raw()
}

fn show(app: &App, tool: &str, source: &str, history: &[ToolVersion]) {
    let lang = app.lang();
    let [new, old, ..] = history else {
        app.screen.line(&lang.pick(
            format!("`{tool}` ({source}) has had one definition since it was first listed"),
            format!("`{tool}`（{source}）自首次列出以来定义没有变化"),
        ));
        return;
    };
    app.screen
        .line(&format!("{BOLD}{tool}{BOLD:#} {DIM}({source}){DIM:#}  {} → {}", old.version, new.version));
    for line in difference(history).lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => BAD,
            _ => DIM,
        };
        app.screen.line(&format!("{style}{line}{style:#}"));
    }
}
