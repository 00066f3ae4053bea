//! The table of prompts, and `prompts/get`.

use rmcp::model::{
    ContentBlock, ErrorData, GetPromptResponse, GetPromptResult, Prompt, PromptArgument, PromptMessage,
    ResourceContents, Role,
};
use serde_json::Value;

use crate::exchange::{Exchange, Step};
use crate::input_requests::field;
use crate::media::PNG;
use crate::server_state::ServerState;

struct Fixture {
    name: &'static str,
    description: &'static str,
    /// Names and descriptions; all arguments are required.
    arguments: &'static [(&'static str, &'static str)],
    step: fn(&Exchange) -> Result<Step<GetPromptResult>, ErrorData>,
}

const FIXTURES: &[Fixture] = &[
    Fixture {
        name: "test_simple_prompt",
        description: "One text",
        arguments: &[],
        step: |_| done(vec![text("This is a simple prompt for testing.")]),
    },
    Fixture {
        name: "test_prompt_with_arguments",
        description: "A text with two arguments in it",
        arguments: &[("arg1", "The first of them"), ("arg2", "The second of them")],
        step: |exchange| {
            let (first, second) = (exchange.text("arg1")?, exchange.text("arg2")?);
            done(vec![text(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))])
        },
    },
    Fixture {
        name: "test_prompt_with_embedded_resource",
        description: "A resource, and what to do with it",
        arguments: &[("resourceUri", "Which resource")],
        step: with_resource,
    },
    Fixture {
        name: "test_prompt_with_image",
        description: "A picture, and what to do with it",
        arguments: &[],
        step: |_| {
            let picture = PromptMessage::new(Role::User, ContentBlock::image(PNG, "image/png"));
            done(vec![picture, text("Please analyze the image above.")])
        },
    },
    Fixture {
        name: "test_input_required_result_prompt",
        description: "Asks a person before there is a prompt",
        arguments: &[],
        step: ask_first,
    },
];

/// The prompt that each change of the list adds or removes.
const EXTRA: Fixture = Fixture {
    name: "test_added_prompt",
    description: "Is there after every other change of the list",
    arguments: &[],
    step: |_| done(vec![text("I was added.")]),
};

fn fixtures(server_state: &ServerState) -> impl Iterator<Item = &'static Fixture> {
    FIXTURES.iter().chain(server_state.extra_prompt.is_on().then_some(&EXTRA))
}

/// The current prompts.
pub(crate) fn list(server_state: &ServerState) -> Vec<Prompt> {
    fixtures(server_state).map(Fixture::prompt).collect()
}

/// Gets a prompt.
pub(crate) async fn get(name: &str, mut exchange: Exchange) -> Result<GetPromptResponse, ErrorData> {
    let fixture = fixtures(&exchange.server_state)
        .find(|fixture| fixture.name == name)
        .ok_or_else(|| ErrorData::invalid_params(format!("there is no prompt `{name}`"), None))?;
    match exchange.take(fixture.step).await? {
        Step::Ask(requested) => Ok(requested.into()),
        Step::Done(result) => Ok(result.with_description(fixture.description).into()),
    }
}

impl Fixture {
    fn prompt(&self) -> Prompt {
        let arguments: Vec<_> = self
            .arguments
            .iter()
            .map(|(name, meaning)| PromptArgument::new(*name).with_description(*meaning).with_required(true))
            .collect();
        Prompt::new(self.name, Some(self.description), (!arguments.is_empty()).then_some(arguments))
    }
}

fn text(words: &str) -> PromptMessage {
    PromptMessage::new_text(Role::User, words)
}

fn done(messages: Vec<PromptMessage>) -> Result<Step<GetPromptResult>, ErrorData> {
    Ok(Step::Done(GetPromptResult::new(messages)))
}

fn with_resource(exchange: &Exchange) -> Result<Step<GetPromptResult>, ErrorData> {
    let uri = exchange.text("resourceUri")?;
    let resource = ResourceContents::text("Embedded resource content for testing.", uri);
    let resource = ContentBlock::resource(resource.with_mime_type("text/plain"));
    let request = text("Please process the embedded resource above.");
    done(vec![PromptMessage::new(Role::User, resource), request])
}

fn ask_first(exchange: &Exchange) -> Result<Step<GetPromptResult>, ErrorData> {
    if let Some(Value::String(context)) = exchange.field("user_context", "context")? {
        return done(vec![text(&format!("Keep in mind: {context}"))]);
    }
    let requested = field("What context should the prompt use?", "context", "string");
    Step::ask([("user_context", requested)])
}
