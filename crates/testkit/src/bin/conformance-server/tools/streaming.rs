//! Tools that send notifications before the response, or whose response arrives on another stream.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ErrorData, LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam,
    ProgressNotificationParam, ServerNotification,
};
use rmcp::service::RequestContext;

use super::{Arguments, Fixture, Outcome, text_content};
use crate::exchange::{Exchange, Step};
use crate::http;

pub(super) const FIXTURES: &[Fixture] = &[
    Fixture {
        name: "test_tool_with_logging",
        description: "Logs three lines before it answers",
        arguments: Arguments::None,
        step: log,
    },
    Fixture {
        name: "test_logging_tool",
        description: "Logs three lines, to a caller that asked for them",
        arguments: Arguments::None,
        step: log,
    },
    Fixture {
        name: "test_tool_with_progress",
        description: "Tells three times how far it is, to a caller that asked for it",
        arguments: Arguments::None,
        step: send_progress,
    },
    Fixture {
        name: "test_reconnection",
        description: "Cuts the stream of a legacy caller, who fetches the answer on a new one",
        arguments: Arguments::None,
        step: cut_stream,
    },
];

/// The pause between two notifications, by which the suite checks that they are streamed.
const PAUSE: Duration = Duration::from_millis(50);

fn log(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    let is_enabled = exchange.least_level().is_some_and(|least| LoggingLevel::Info as u8 >= least as u8);
    let context = exchange.context.clone();
    Ok(Step::Done(Outcome::Later(Box::pin(async move {
        for (index, line) in
            ["Tool execution started", "Tool processing data", "Tool execution completed"].iter().enumerate()
        {
            if index > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            if is_enabled {
                let notification = LoggingMessageNotificationParam::new(LoggingLevel::Info, (*line).into());
                let notification = LoggingMessageNotification::new(notification);
                notify(&context, ServerNotification::LoggingMessageNotification(notification)).await?;
            }
        }
        Ok(text_content("Tool with logging executed successfully"))
    }))))
}

fn send_progress(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    let context = exchange.context.clone();
    Ok(Step::Done(Outcome::Later(Box::pin(async move {
        let token = context.meta.get_progress_token();
        for done in [0.0, 50.0, 100.0] {
            if done > 0.0 {
                tokio::time::sleep(PAUSE).await;
            }
            if let Some(token) = &token {
                let notification = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
                context.peer.notify_progress(notification).await.map_err(unsent)?;
            }
        }
        Ok(text_content("Tool with progress executed successfully"))
    }))))
}

/// A modern stream cannot be resumed (2026-07-28 has no `Last-Event-ID`), so it is not closed.
fn cut_stream(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    if exchange.is_modern() {
        return super::done(answer_after_cut());
    }
    let extensions = exchange.context.extensions.clone();
    Ok(Step::Done(Outcome::Later(Box::pin(async move {
        // The priming event must be sent first: the client needs its id to resume.
        tokio::time::sleep(PAUSE).await;
        http::cut_stream(&extensions);
        tokio::time::sleep(PAUSE).await;
        Ok(answer_after_cut())
    }))))
}

fn answer_after_cut() -> CallToolResult {
    text_content("Reconnection test completed successfully")
}

async fn notify(
    context: &RequestContext<RoleServer>,
    notification: ServerNotification,
) -> Result<(), ErrorData> {
    context.peer.send_notification(notification).await.map_err(unsent)
}

fn unsent(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(format!("a notification could not be sent: {error}"), None)
}
