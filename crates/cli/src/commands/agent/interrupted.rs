//! The output of `toolhub ask --json` after Ctrl-C: the members of an answer, with the calls recorded so far.

use std::time::SystemTime;

use toolhub_core::call_log::{CallQuery, CallRecord, CallStatus};
use toolhub_core::{Localize as _, RawJson, RawObject};

use crate::app::App;

/// Prints the calls of a conversation between `started_at` and the interruption.
pub(crate) async fn show(app: &App, conversation: &str, started_at: SystemTime) {
    let lang = app.lang();
    let message = lang.choose("interrupted", "已中断");
    let query = CallQuery {
        conversation: Some(conversation.to_owned()),
        since: Some(started_at),
        ..CallQuery::default()
    };
    let calls = match app.hub().await {
        Ok(hub) => hub.calls(query).await.unwrap_or_default(),
        Err(_) => Vec::new(),
    };
    let step = |(index, call): (usize, &CallRecord)| {
        let success = call.status == CallStatus::Succeeded;
        let error = match (&call.error, success) {
            (Some((_, text)), _) => RawJson::from(text.localize(lang)),
            (None, true) => RawJson::null(),
            (None, false) => RawJson::from(message),
        };
        RawObject::default()
            .with("id", format!("step{}", index + 1))
            .with("tool", call.start.tool.as_str())
            .with("arguments", call.start.arguments.clone())
            .with("success", success)
            .with("error", error)
    };
    let steps: Vec<RawObject> = calls.iter().rev().enumerate().map(step).collect();
    let json = RawObject::default()
        .with("success", false)
        .with("answer", "")
        .with("error", message)
        .with("steps", RawJson::of(&steps))
        .with("verified", false)
        .with("conversation", conversation);
    app.screen.json(&json.into_raw());
}
