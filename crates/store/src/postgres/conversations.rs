//! Conversations as lists of turns.

use tokio_postgres::{Client, Error};
use toolhub_core::BoxFuture;
use toolhub_core::call_log::RecordId;
use toolhub_core::conversation::{ConversationSummary, ConversationTurn, Conversations, TurnQuery};
use toolhub_core::ports::StoreError;

use super::{PgStore, replace_nul, run_query};
use crate::query::{self as sql_query, Dialect};
use crate::rows::unix_micros;
use crate::write::Write;

impl Conversations for PgStore {
    fn append_turn(&self, turn: ConversationTurn) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { self.write(Write::AppendTurn(RecordId::generate(), turn)).await.map(drop) })
    }

    fn turns(&self, turn_query: TurnQuery) -> BoxFuture<'_, Result<Vec<ConversationTurn>, StoreError>> {
        Box::pin(
            self.read(move |session| {
                let (sql, values) = sql_query::turns(Dialect::Postgres, &turn_query);
                async move {
                    run_query(&session, &sql, values).await?.iter().rev().map(sql_query::turn_of).collect()
                }
            }),
        )
    }

    fn conversations(
        &self,
        limit: Option<usize>,
    ) -> BoxFuture<'_, Result<Vec<ConversationSummary>, StoreError>> {
        Box::pin(self.read(move |session| async move {
            let sql = sql_query::conversations(limit);
            run_query(&session, &sql, Vec::new()).await?.iter().map(sql_query::conversation_of).collect()
        }))
    }
}

/// Adds a turn; returns whether it was new.
pub(super) async fn append_turn(
    client: &Client,
    key: &RecordId,
    turn: &ConversationTurn,
) -> Result<bool, Error> {
    let sql = "INSERT INTO turns VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key) DO NOTHING";
    let (conversation, text) = (replace_nul(&turn.conversation), replace_nul(&turn.text));
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&key.as_str(), &conversation, &turn.role.name(), &text, &unix_micros(turn.at)];
    Ok(client.execute(sql, &values).await? == 1)
}
