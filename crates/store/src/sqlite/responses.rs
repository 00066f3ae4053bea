//! Responses of the agent, and calls that wait for an approval.

use std::time::SystemTime;

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension as _, ToSql, params, params_from_iter};
use toolhub_core::BoxFuture;
use toolhub_core::call_log::RecordId;
use toolhub_core::ports::StoreError;
use toolhub_core::responses::{
    OwnedResponse, PendingApproval, ResponseLimits, ResponseUpdate, Responses, StoredResponse,
};

use super::{SqliteStore, history};
use crate::owner::OwnerId;
use crate::responses::{
    ADOPTED, APPROVAL, ApprovalClaim, MAX_PURGED_RESPONSES, OWNED, RESPONSE, ResponseWrite, STATUS,
    StatementValue, UNFINISHED, approval_of, check_names, has_nul, owned_response_of, response_of,
    unchanged_update,
};
use crate::rows::unix_micros;
use crate::write::{Write, WriteAnswer};

impl Responses for SqliteStore {
    fn add_response(&self, response: StoredResponse) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            check_names(&response.id, &response.principal)?;
            self.show_alive()?;
            self.write_response(ResponseWrite::Add(Box::new(response))).await.map(drop)
        })
    }

    fn update_response(&self, response: StoredResponse) -> BoxFuture<'_, Result<ResponseUpdate, StoreError>> {
        Box::pin(async move {
            if has_nul(&response.id, &response.principal) {
                return Ok(ResponseUpdate::Missing);
            }
            self.show_alive()?;
            let (id, principal) = (response.id.clone(), response.principal.clone());
            if self.write_response(ResponseWrite::Update(Box::new(response))).await? > 0 {
                return Ok(ResponseUpdate::Written);
            }
            let now = unix_micros(SystemTime::now());
            let status = self.run(move |connection| {
                let mut select = connection.prepare_cached(STATUS)?;
                select.query_row(params![id, principal, now], |row| row.get::<_, String>(0)).optional()
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
            let (id, principal) = (id.to_owned(), principal.to_owned());
            Ok(self.write_response(ResponseWrite::RequestCancellation { id, principal }).await? > 0)
        })
    }

    fn owned_responses(&self) -> BoxFuture<'_, Result<Vec<OwnedResponse>, StoreError>> {
        let (OwnerId(owner_id), now) = (self.owner, unix_micros(SystemTime::now()));
        Box::pin(self.run(move |connection| {
            let mut select = connection.prepare_cached(OWNED)?;
            select.query_map([owner_id, now], |row| owned_response_of(row))?.collect()
        }))
    }

    fn response<'a>(
        &'a self,
        id: &'a str,
        principal: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, StoreError>> {
        let (id, principal, now) = (id.to_owned(), principal.to_owned(), unix_micros(SystemTime::now()));
        Box::pin(self.run(move |connection| {
            let mut select = connection.prepare_cached(RESPONSE)?;
            select.query_row(params![id, principal, now], |row| response_of(row)).optional()
        }))
    }

    fn delete_response<'a>(
        &'a self,
        id: &'a str,
        principal: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let (id, principal) = (id.to_owned(), principal.to_owned());
            Ok(self.write_response(ResponseWrite::Delete { id, principal }).await? > 0)
        })
    }

    fn delete_responses_of<'a>(&'a self, principal: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
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
                self.show_alive()?;
                self.write_response(ResponseWrite::Adopt(dead)).await?;
            }
            let (OwnerId(owner_id), now) = (self.owner, unix_micros(SystemTime::now()));
            self.run(move |connection| {
                let mut select = connection.prepare_cached(ADOPTED)?;
                let rows = select.query_map([owner_id, now], |row| response_of(row))?;
                rows.collect()
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
            let (id, principal, now) = (id.to_owned(), principal.to_owned(), unix_micros(SystemTime::now()));
            let claim = ApprovalClaim { key: RecordId::generate(), id, principal };
            let (id, principal) = (claim.id.clone(), claim.principal.clone());
            let waiting = self.run(move |connection| {
                let mut select = connection.prepare_cached(APPROVAL)?;
                select.query_row(params![id, principal, now], |row| approval_of(row)).optional()
            });
            let Some(approval) = waiting.await? else { return Ok(None) };
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

impl SqliteStore {
    async fn write_response(&self, write: ResponseWrite) -> WriteAnswer {
        self.write_counted(Write::Responses(write)).await
    }

    /// The dead stores that left unfinished responses.
    async fn dead_owners_of_responses(&self) -> Result<Vec<i64>, StoreError> {
        let (folder, owner) = (self.folder.clone(), self.owner);
        self.run(move |connection| history::dead_among(connection, UNFINISHED, &folder, owner)).await
    }

    /// Shows other stores that this one is alive, before it owns a response.
    fn show_alive(&self) -> Result<(), StoreError> {
        self.journals.show_alive().map_err(|error| {
            StoreError(format!("the lock file of this process could not be created: {error}").into())
        })
    }
}

/// Executes a write of the store `owner`.
pub(super) fn apply(
    connection: &Connection,
    write: &ResponseWrite,
    owner: OwnerId,
) -> rusqlite::Result<WriteAnswer> {
    let mut rows = 0;
    for statement in write.statements(owner.0, SystemTime::now()) {
        let mut prepared = connection.prepare_cached(&statement.sql)?;
        rows += prepared.execute(params_from_iter(&statement.values))? as u64;
    }
    Ok(write.answer(rows))
}

/// The size of all responses.
pub(super) fn total_bytes(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached(TOTAL_BYTES)?.query_row([], |row| row.get(0))
}

const TOTAL_BYTES: &str = "SELECT coalesce(sum(bytes), 0) FROM responses";

impl ToSql for StatementValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Text(text) => text.to_sql(),
            Self::Int(number) => number.to_sql(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use toolhub_core::RawJson;
    use toolhub_core::responses::ResponseStatus;

    use super::*;
    use crate::sqlite::migrate::migrate;

    fn database() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        connection
    }

    fn response() -> StoredResponse {
        let json = |text| RawJson::parse(text).unwrap();
        StoredResponse {
            id: "resp_1".to_owned(),
            principal: "key:ann".to_owned(),
            previous: None,
            status: ResponseStatus::InProgress,
            request: json("{}"),
            input: json("[]"),
            body: json("{}"),
            created_at: UNIX_EPOCH,
            expires_at: SystemTime::now() + Duration::from_secs(60),
        }
    }

    fn ended(status: ResponseStatus) -> StoredResponse {
        StoredResponse { status, ..response() }
    }

    /// The result of a commit may be unknown; then the write is repeated.
    #[test]
    fn repeated_writes_have_the_same_answer() {
        let connection = database();
        let claim = |key: &RecordId| ApprovalClaim {
            key: key.clone(),
            id: "mcpr_1".to_owned(),
            principal: "key:ann".to_owned(),
        };
        let approval = PendingApproval {
            id: "mcpr_1".to_owned(),
            principal: "key:ann".to_owned(),
            call: RawJson::null(),
            expires_at: SystemTime::now() + Duration::from_secs(60),
        };
        let (first, second) = (RecordId::generate(), RecordId::generate());
        let apply = |write: &ResponseWrite| apply(&connection, write, OwnerId(7)).unwrap();
        for write in [
            ResponseWrite::Add(Box::new(response())),
            ResponseWrite::Update(Box::new(response())),
            ResponseWrite::RequestCancellation { id: "resp_1".to_owned(), principal: "key:ann".to_owned() },
            ResponseWrite::Update(Box::new(ended(ResponseStatus::Completed))),
            ResponseWrite::PutApproval(approval),
            ResponseWrite::ClaimApproval(claim(&first)),
        ] {
            for repetition in 0..3 {
                assert_eq!(apply(&write).unwrap(), 1, "{write:?}, repetition {repetition}");
            }
        }
        for late in [response(), ended(ResponseStatus::Failed)] {
            assert_eq!(apply(&ResponseWrite::Update(Box::new(late))).unwrap(), 0, "it has ended");
        }
        assert_eq!(apply(&ResponseWrite::ClaimApproval(claim(&second))).unwrap(), 0);
        assert_eq!(apply(&ResponseWrite::DeleteApproval(claim(&second))).unwrap(), 0);
        assert_eq!(apply(&ResponseWrite::DeleteApproval(claim(&first))).unwrap(), 1);
    }

    /// The texts of responses are large: a purge must not read them, nor all rows.
    #[test]
    fn purge_uses_indexes() {
        let connection = database();
        let plan = |sql: &str, values: &[StatementValue<'_>]| {
            let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let rows = explain.query_map(params_from_iter(values), |row| row.get(3)).unwrap();
            rows.collect::<rusqlite::Result<Vec<String>>>().unwrap().join("\n")
        };
        let write = ResponseWrite::Purge { limits: ResponseLimits { max_bytes: 1 }, dead: vec![7] };
        let statements = write.statements(1, SystemTime::now());
        let expected = [
            "SEARCH responses USING INDEX responses_by_expiry (expires_at<?)",
            "SCAN responses USING COVERING INDEX responses_by_age",
            "SEARCH response_approvals USING INDEX response_approvals_by_expiry (expires_at<?)",
        ];
        for (statement, expected) in statements.iter().zip(expected) {
            let plan = plan(&statement.sql, &statement.values);
            let reads_table = |line: &str| line.starts_with("SCAN response") && !line.contains("COVERING");
            assert!(plan.contains(expected) && !plan.lines().any(reads_table), "{plan}");
        }
        let plan_of_sum = plan(TOTAL_BYTES, &[]);
        assert!(plan_of_sum.contains("COVERING INDEX responses_by_age"), "{plan_of_sum}");
        let owners = plan(&format!("SELECT DISTINCT owner FROM {UNFINISHED}"), &[]);
        assert!(owners.contains("INDEX responses_unfinished"), "{owners}");
        for query in [ADOPTED, OWNED] {
            let own = plan(query, &[StatementValue::Int(1), StatementValue::Int(1)]);
            assert!(own.contains("responses_unfinished (owner=?)"), "{own}");
        }
    }
}
