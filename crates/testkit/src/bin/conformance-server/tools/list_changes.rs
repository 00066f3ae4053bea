//! Tools that change the lists of the server or its watched resource, and notify subscribers.

use rmcp::model::{ErrorData, ResourceUpdatedNotificationParam};

use super::{Arguments, Fixture, Outcome, done, text_content};
use crate::exchange::{Exchange, Step};
use crate::resources::WATCHED;
use crate::server_state::Change;

pub(super) const FIXTURES: &[Fixture] = &[
    Fixture {
        name: "test_trigger_tool_change",
        description: "Adds a tool, or removes it again",
        arguments: Arguments::None,
        step: |exchange| {
            exchange.server_state.extra_tool.flip();
            notify_change(exchange, Change::Tools)
        },
    },
    Fixture {
        name: "test_trigger_prompt_change",
        description: "Adds a prompt, or removes it again",
        arguments: Arguments::None,
        step: |exchange| {
            exchange.server_state.extra_prompt.flip();
            notify_change(exchange, Change::Prompts)
        },
    },
    Fixture {
        name: "test_trigger_resource_update",
        description: "Says that the watched resource has changed",
        arguments: Arguments::None,
        step: |exchange| notify_change(exchange, Change::Resource(WATCHED.to_owned())),
    },
];

/// The tool that each change of the list adds or removes.
pub(super) const EXTRA: Fixture = Fixture {
    name: "test_added_tool",
    description: "Is there after every other change of the list",
    arguments: Arguments::None,
    step: |_| done(text_content("I was added")),
};

/// Modern clients get changes through subscriptions; a legacy client is notified in its session, of a resource only if
/// it has subscribed to it.
fn notify_change(exchange: &Exchange, change: Change) -> Result<Step<Outcome>, ErrorData> {
    exchange.server_state.notify_change(change.clone());
    let unwatched = matches!(&change, Change::Resource(uri) if !exchange.session.watches(uri));
    if exchange.is_modern() || unwatched {
        return done(text_content("Changed"));
    }
    let peer = exchange.context.peer.clone();
    Ok(Step::Done(Outcome::Later(Box::pin(async move {
        let notified = match change {
            Change::Tools => peer.notify_tool_list_changed().await,
            Change::Prompts => peer.notify_prompt_list_changed().await,
            Change::Resource(uri) => {
                peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await
            }
        };
        notified.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(text_content("Changed"))
    }))))
}
