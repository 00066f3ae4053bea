//! Responses of the agent, and calls that wait for an approval.

use std::time::SystemTime;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};
use toolhub_core::BoxFuture;
use toolhub_core::call_log::RecordId;
use toolhub_core::ports::StoreError;
use toolhub_core::responses::{
    OwnedResponse, PendingApproval, ResponseLimits, ResponseUpdate, Responses, StoredResponse,
};

use super::{PgStore, liveness, run_query};
use crate::owner::OwnerId;
use crate::query::SqlValue;
use crate::responses::{
    ADOPTED, APPROVAL, ApprovalClaim, MAX_PURGED_RESPONSES, OWNED, RESPONSE, ResponseWrite, STATUS,
    StatementValue, UNFINISHED, approval_of, check_names, has_nul, owned_response_of, response_of,
    unchanged_update,
};
use crate::rows::{Columns as _, unix_micros};
use crate::write::{Write, WriteAnswer};

impl Responses for PgStore {
    fn add_response(&self, response: StoredResponse) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            check_names(&response.id, &response.principal)?;
            self.write_response(ResponseWrite::Add(Box::new(response))).await.map(drop)
        })
    }

    fn update_response(&self, response: StoredResponse) -> BoxFuture<'_, Result<ResponseUpdate, StoreError>> {
        Box::pin(async move {
            if has_nul(&response.id, &response.principal) {
                return Ok(ResponseUpdate::Missing);
            }
            let (id, principal) = (response.id.clone(), response.principal.clone());
            if self.write_response(ResponseWrite::Update(Box::new(response))).await? > 0 {
                return Ok(ResponseUpdate::Written);
            }
            let values = key(&id, &principal);
            let status = self.read(move |session| {
                let values = values.clone();
                async move {
                    run_query(&session, STATUS, values).await?.first().map(|row| row.text(0)).transpose()
                }
            });
            Ok(unchanged_update(status.await?.as_deref()))
        })
    }

    fn request_cancellation<'a>(
        &'a self,
        id: &'a str,
        principal: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            if has_nul(id, principal) {
                return Ok(false);
            }
            let (id, principal) = (id.to_owned(), principal.to_owned());
            Ok(self.write_response(ResponseWrite::RequestCancellation { id, principal }).await? > 0)
        })
    }

    fn owned_responses(&self) -> BoxFuture<'_, Result<Vec<OwnedResponse>, StoreError>> {
        let values = vec![SqlValue::Int(self.owner.0), SqlValue::Int(unix_micros(SystemTime::now()))];
        Box::pin(self.read(move |session| {
            let values = values.clone();
            async move { run_query(&session, OWNED, values).await?.iter().map(owned_response_of).collect() }
        }))
    }

    fn response<'a>(
        &'a self,
        id: &'a str,
        principal: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, StoreError>> {
        Box::pin(async move {
            if has_nul(id, principal) {
                return Ok(None);
            }
            let values = key(id, principal);
            self.read(move |session| {
                let values = values.clone();
                async move { run_query(&session, RESPONSE, values).await?.first().map(response_of).transpose() }
            })
            .await
        })
    }

    fn delete_response<'a>(
        &'a self,
        id: &'a str,
        principal: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            if has_nul(id, principal) {
                return Ok(false);
            }
            let (id, principal) = (id.to_owned(), principal.to_owned());
            Ok(self.write_response(ResponseWrite::Delete { id, principal }).await? > 0)
        })
    }

    fn delete_responses_of<'a>(&'a self, principal: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            if has_nul("", principal) {
                return Ok(0);
            }
            let mut deleted = 0;
            loop {
                let principal = principal.to_owned();
                let rows = self.write_response(ResponseWrite::DeleteOf { principal }).await?;
                deleted += rows;
                if rows == 0 {
                    return Ok(deleted);
                }
            }
        })
    }

    fn unfinished_responses(&self) -> BoxFuture<'_, Result<Vec<StoredResponse>, StoreError>> {
        Box::pin(async move {
            let dead = self.dead_owners_of_responses().await?;
            if !dead.is_empty() {
                self.write_response(ResponseWrite::Adopt(dead)).await?;
            }
            let values = vec![SqlValue::Int(self.owner.0), SqlValue::Int(unix_micros(SystemTime::now()))];
            self.read(move |session| {
                let values = values.clone();
                async move { run_query(&session, ADOPTED, values).await?.iter().map(response_of).collect() }
            })
            .await
        })
    }

    fn put_approval(&self, approval: PendingApproval) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            check_names(&approval.id, &approval.principal)?;
            self.write_response(ResponseWrite::PutApproval(approval)).await.map(drop)
        })
    }

    fn take_approval<'a>(
        &'a self,
        id: &'a str,
        principal: &'a str,
    ) -> BoxFuture<'a, Result<Option<PendingApproval>, StoreError>> {
        Box::pin(async move {
            if has_nul(id, principal) {
                return Ok(None);
            }
            let values = key(id, principal);
            let waiting =
                self.read(move |session| {
                    let values = values.clone();
                    async move {
                        run_query(&session, APPROVAL, values).await?.first().map(approval_of).transpose()
                    }
                });
            let Some(approval) = waiting.await? else { return Ok(None) };
            let (id, principal) = (id.to_owned(), principal.to_owned());
            let claim = ApprovalClaim { key: RecordId::generate(), id, principal };
            if self.write_response(ResponseWrite::ClaimApproval(claim.clone())).await? == 0 {
                return Ok(None);
            }
            // If this fails, the row stays reserved until it expires.
            let _ = self.write_response(ResponseWrite::DeleteApproval(claim)).await;
            Ok(Some(approval))
        })
    }

    fn purge_responses(&self, limits: ResponseLimits) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let dead = self.dead_owners_of_responses().await?;
            let mut deleted = 0;
            loop {
                let rows = self.write_response(ResponseWrite::Purge { limits, dead: dead.clone() }).await?;
                deleted += rows;
                if rows < MAX_PURGED_RESPONSES {
                    return Ok(deleted);
                }
            }
        })
    }
}

impl PgStore {
    async fn write_response(&self, write: ResponseWrite) -> WriteAnswer {
        self.queue.write(Write::Responses(write)).await
    }

    /// The dead stores that left unfinished responses.
    async fn dead_owners_of_responses(&self) -> Result<Vec<i64>, StoreError> {
        let owner = self.owner;
        self.read(move |session| async move { session.dead_owners(UNFINISHED, owner).await }).await
    }
}

/// The values that select a row of a principal that has not expired.
fn key(id: &str, principal: &str) -> Vec<SqlValue> {
    let texts = [id, principal].map(|text| SqlValue::Text(text.to_owned()));
    texts.into_iter().chain([SqlValue::Int(unix_micros(SystemTime::now()))]).collect()
}

/// Executes a write of the store `owner`.
pub(super) async fn apply(
    client: &Client,
    write: &ResponseWrite,
    owner: OwnerId,
) -> Result<WriteAnswer, Error> {
    let mut rows = 0;
    let adoption = match write {
        ResponseWrite::Adopt(dead) => match liveness::still_dead(client, dead).await? {
            dead if dead.is_empty() => return Ok(Ok(0)),
            dead => Some(ResponseWrite::Adopt(dead)),
        },
        _ => None,
    };
    let write = adoption.as_ref().unwrap_or(write);
    for statement in write.statements(owner.0, SystemTime::now()) {
        let values: Vec<&(dyn ToSql + Sync)> = statement
            .values
            .iter()
            .map(|value| match value {
                StatementValue::Text(text) => text as &(dyn ToSql + Sync),
                StatementValue::Int(number) => number,
            })
            .collect();
        rows += client.execute(&*statement.sql, &values).await?;
    }
    Ok(write.answer(rows))
}
