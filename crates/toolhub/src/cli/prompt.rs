//! `toolhub prompt`: the exact prompt for a model, and its approximate number of tokens.

use toolhub::{AskOptions, Hub, NobodyThere};
use toolhub_agent::prompt::{Prompt, Purpose, Wanted, prompt};
use toolhub_core::model::{OfferedTool, ToolTexts};
use toolhub_core::{Lang, RawJson, RawObject};
use toolhub_llm::ToolCalls;

use super::app::App;
use super::exit::{Exit, UsageError};
use super::options_ask::{FormatArg, PromptArgs};
use super::tools::plural;

pub(crate) async fn run(app: &App, args: PromptArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let settings = hub
        .agent_settings(args.agent.as_deref())
        .map_err(|error| anyhow::Error::from(UsageError(error.to_string())))?;
    let options = AskOptions { lang: app.lang(), ..AskOptions::default() };
    let desk = hub.desk(&settings, (&options, &NobodyThere));
    let examples = hub.examples().await;
    let wanted = Wanted {
        purpose: if args.plan { Purpose::Plan } else { Purpose::Talk },
        query: args.query.as_deref(),
        tool_texts: format(args.format, hub),
        instructions: settings.instructions.as_deref(),
        budget: args.budget.unwrap_or(desk.budget.prompt_tokens),
        lang: spoken(app, args.query.as_deref()),
        examples: &examples,
    };
    let prompt = prompt(&desk, wanted).await;
    show(app, &prompt);
    Ok(Exit::Done)
}

/// The given format; otherwise that of the configured model; text without a model.
fn format(asked: Option<FormatArg>, hub: &Hub) -> ToolTexts {
    let configured = hub
        .settings()
        .llm
        .as_ref()
        .filter(|llm| llm.is_enabled())
        .map(|llm| llm.tool_calls.unwrap_or_default());
    match (asked, configured) {
        (Some(FormatArg::Text), _) | (None, None | Some(ToolCalls::Text)) => ToolTexts::InSystem,
        (Some(FormatArg::Native), _) | (None, Some(ToolCalls::Native)) => ToolTexts::Apart,
    }
}

fn spoken(app: &App, query: Option<&str>) -> Lang {
    match query {
        Some(query) => toolhub_agent::spoken(query),
        None => app.lang(),
    }
}

fn show(app: &App, prompt: &Prompt) {
    let apart = prompt.tool_texts == ToolTexts::Apart;
    let definition = |tool: &OfferedTool| {
        RawObject::default()
            .with("name", tool.name.as_str())
            .with("description", tool.description.as_str())
            .with("parameters", tool.schema.clone())
    };
    let tools: Vec<RawObject> = prompt.tools.iter().map(definition).collect();
    let (shown, total, tokens) = (prompt.tools.len(), prompt.total, prompt.tokens);
    if app.screen.json {
        let value = RawObject::default()
            .with("system", prompt.system.as_str())
            .with("tools", RawJson::of(&tools))
            .with("sent_apart", apart)
            .with("shown", RawJson::of(&shown))
            .with("total", RawJson::of(&total))
            .with("tokens", RawJson::of(&tokens));
        app.screen.json(&value.into_raw());
        return;
    }
    app.screen.verbatim(&prompt.system);
    if apart {
        for tool in tools {
            app.screen.verbatim(tool.into_raw().get());
        }
    }
    app.screen.note(&app.lang().pick(
        format!("{shown} of {}, about {tokens} tokens", plural(total, "tool")),
        format!("{total} 个工具中的 {shown} 个，约 {tokens} 词元"),
    ));
}
