//! Conversations as lists of turns.

use rusqlite::{Connection, params, params_from_iter};
use toolhub_core::BoxFuture;
use toolhub_core::call_log::RecordId;
use toolhub_core::conversation::{ConversationSummary, ConversationTurn, Conversations, TurnQuery};
use toolhub_core::ports::StoreError;

use super::SqliteStore;
use crate::query::{self, Dialect};
use crate::rows::unix_micros;
use crate::write::Write;

impl Conversations for SqliteStore {
    fn append_turn(&self, turn: ConversationTurn) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { self.write(Write::AppendTurn(RecordId::generate(), turn)).await.map(drop) })
    }

    fn turns(&self, query: TurnQuery) -> BoxFuture<'_, Result<Vec<ConversationTurn>, StoreError>> {
        Box::pin(self.run(move |connection| {
            let (sql, values) = query::turns(Dialect::Sqlite, &query);
            let mut select = connection.prepare_cached(&sql)?;
            let rows = select.query_map(params_from_iter(values), |row| query::turn_of(row))?;
            let mut turns = rows.collect::<rusqlite::Result<Vec<ConversationTurn>>>()?;
            turns.reverse();
            Ok(turns)
        }))
    }

    fn conversations(
        &self,
        limit: Option<usize>,
    ) -> BoxFuture<'_, Result<Vec<ConversationSummary>, StoreError>> {
        Box::pin(self.run(move |connection| {
            let mut select = connection.prepare_cached(&query::conversations(limit))?;
            let rows = select.query_map([], |row| query::conversation_of(row))?;
            rows.collect()
        }))
    }
}

/// Adds a turn; returns whether it was new.
pub(super) fn append_turn(
    connection: &Connection,
    key: &RecordId,
    turn: &ConversationTurn,
) -> rusqlite::Result<bool> {
    let inserted = connection
        .prepare_cached("INSERT INTO turns VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING")?
        .execute(params![
            key.as_str(),
            turn.conversation,
            turn.role.name(),
            turn.text,
            unix_micros(turn.at)
        ])?;
    Ok(inserted == 1)
}
