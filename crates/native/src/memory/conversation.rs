//! `get_conversation_history`: earlier turns of this or other conversations.

use std::fmt::Write as _;
use std::time::SystemTime;

use jiff::Timestamp;
use toolhub_core::conversation::{ConversationTurn, TurnQuery};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{CallContext, RawJson, RawObject, ToolError, ToolOutput};
use toolhub_macros::tool;

use super::{Memory, store_error};
use crate::localized_output::with_chinese;

/// Default number of turns.
const DEFAULT_TURNS: u32 = 20;

/// The requested part of the history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HistoryKind {
    /// The newest turns.
    #[default]
    Recent,
    /// The first turns.
    First,
    /// The turns that contain `query`.
    Search,
    /// A list of conversations.
    Conversations,
}

/// Looks up what was said before: the newest turns of the conversation, its beginning, turns with certain words, or
/// which conversations there are.
#[tool(read_only, idempotent, open_world = false, crate = crate::private)]
pub async fn get_conversation_history(
    #[state] memory: &Memory,
    #[doc = "`recent` (default), `first`, `search` (needs `query`) or `conversations`"] kind: Option<
        HistoryKind,
    >,
    #[doc = "Words to look for"] query: Option<String>,
    #[doc = "Which conversation; left out, the current one, or all where there is none"] conversation: Option<
        String,
    >,
    #[doc = "How many turns at most (20)"]
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    context: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let store = memory.store()?;
    let limit = limit.unwrap_or(DEFAULT_TURNS) as usize;
    let query = query.filter(|words| !words.trim().is_empty());
    let kind = kind.unwrap_or(if query.is_some() { HistoryKind::Search } else { HistoryKind::Recent });
    if kind == HistoryKind::Conversations {
        let found = store.conversations(Some(limit)).await.map_err(|error| store_error(&error))?;
        let line = |summary: &toolhub_core::conversation::ConversationSummary| {
            format!(
                "{} {} ({} turns): {}",
                summary.id,
                time(summary.last),
                summary.turns,
                first_line(&summary.opening)
            )
        };
        return Ok(list_output(&found.iter().map(line).collect::<Vec<_>>(), "conversations"));
    }
    if kind == HistoryKind::Search && query.is_none() {
        return Err(ToolError::failed(LocalizedText::new(
            "`search` needs `query`: the words to look for",
            "`search` 需要 `query`：要查找的内容",
        )));
    }
    let conversation = conversation.or_else(|| context.conversation.as_deref().map(str::to_owned));
    // Only the first turns are not counted from the end.
    let turn_limit = (kind != HistoryKind::First).then_some(limit);
    let text = query.filter(|_| kind == HistoryKind::Search);
    let turn_query = TurnQuery { conversation, text, role: None, limit: turn_limit };
    let mut turns = store.turns(turn_query).await.map_err(|error| store_error(&error))?;
    turns.truncate(limit);
    Ok(turns_output(&turns))
}

/// Implemented by hand: a plain enum is easier to read in an error than a branch per variant.
impl schemars::JsonSchema for HistoryKind {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HistoryKind".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "enum": ["recent", "first", "search", "conversations"]})
    }
}

fn turns_output(turns: &[ConversationTurn]) -> ToolOutput {
    let mut text = String::new();
    let mut list = Vec::with_capacity(turns.len());
    for turn in turns {
        let at = time(turn.at);
        let _ = writeln!(text, "[{at}] {}: {}", turn.role.name(), turn.text);
        list.push(
            RawObject::default()
                .with("conversation", turn.conversation.as_str())
                .with("role", turn.role.name())
                .with("text", turn.text.as_str())
                .with("at", at),
        );
    }
    let message = match text.is_empty() {
        true => LocalizedText::new("nothing was said yet", "还没有说过什么"),
        false => LocalizedText::from(text.trim_end()),
    };
    output(&message, RawObject::default().with("turns", RawJson::of(&list)))
}

fn list_output(lines: &[String], key: &str) -> ToolOutput {
    let message = match lines.is_empty() {
        true => LocalizedText::new("there are none yet", "还没有"),
        false => LocalizedText::from(lines.join("\n")),
    };
    output(&message, RawObject::default().with(key.to_owned(), RawJson::of(lines)))
}

fn output(message: &LocalizedText, structured: RawObject) -> ToolOutput {
    let members = with_chinese(message).with("structuredContent", structured);
    ToolOutput::from_raw(members.into_raw()).unwrap_or_else(|| ToolOutput::text(message.to_string()))
}

fn time(at: SystemTime) -> String {
    Timestamp::try_from(at).map(|at| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()).unwrap_or_default()
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}
