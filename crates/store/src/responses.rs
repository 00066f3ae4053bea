//! Responses of the agent and calls that wait for an approval: their writes as data, with the statements and rows of both
//! databases. The values of a statement are numbered in the order of their first use: SQLite reads `$1` as a name, and
//! numbers names in that order.

use std::borrow::Cow;
use std::time::SystemTime;

use toolhub_core::call_log::RecordId;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::StoreError;
use toolhub_core::responses::{
    OwnedResponse, PendingApproval, ResponseLimits, ResponseStatus, ResponseUpdate, StoredResponse,
};

use crate::query::owner_list;
use crate::rows::{Columns, from_micros, stored_json, unix_micros};

/// Maximum number of rows of a table that one write deletes, so that other writes are delayed only briefly.
pub(crate) const MAX_PURGED_RESPONSES: u64 = 50;

/// The condition of responses that are not final, in the form of the partial index.
macro_rules! unfinished {
    () => {
        "status IN ('queued', 'in_progress')"
    };
}

/// The columns that [`response_of`] reads, in order.
macro_rules! response_columns {
    () => {
        "id, principal, previous, status, request, input, body, created_at, expires_at"
    };
}

/// The rows of responses that are not final, for a query of their owners.
pub(crate) const UNFINISHED: &str = concat!("responses WHERE ", unfinished!());

/// A response. The values are its id, its principal, and the current time.
pub(crate) const RESPONSE: &str = concat!(
    "SELECT ",
    response_columns!(),
    " FROM responses WHERE id = $1 AND principal = $2 AND expires_at > $3"
);

/// The responses that a store took over and has not replaced since. The values are the store and the current time.
pub(crate) const ADOPTED: &str = concat!(
    "SELECT ",
    response_columns!(),
    " FROM responses WHERE owner = $1 AND adopted = 1 AND ",
    unfinished!(),
    " AND expires_at > $2 ORDER BY created_at, id"
);

/// The status of a response. The values are its id, its principal, and the current time.
pub(crate) const STATUS: &str =
    "SELECT status FROM responses WHERE id = $1 AND principal = $2 AND expires_at > $3";

/// The unfinished responses that a store owns. The values are the store and the current time.
pub(crate) const OWNED: &str = concat!(
    "SELECT id, principal, cancel_requested, adopted FROM responses WHERE owner = $1 AND ",
    unfinished!(),
    " AND expires_at > $2"
);

/// A call that waits for an approval. The values are its id, its principal, and the current time.
pub(crate) const APPROVAL: &str = "SELECT id, principal, call, expires_at FROM response_approvals
    WHERE id = $1 AND principal = $2 AND expires_at > $3 AND claim IS NULL";

/// A repeated insertion changes nothing; any other response with the same id is an error.
const ADD: &str =
    "INSERT INTO responses (id, principal, previous, status, request, input, body, bytes, created_at,
        expires_at, owner, adopted)
    VALUES ($1, $2, nullif($3, ''), $4, $5, $6, $7, $8, $9, $10, $11, 0)
    ON CONFLICT (id) DO UPDATE SET adopted = responses.adopted WHERE responses.principal = excluded.principal
        AND responses.owner = excluded.owner AND responses.created_at = excluded.created_at
        AND responses.body = excluded.body";

/// A final response stays as it is, except that the write that ended it may be repeated.
const UPDATE: &str = concat!(
    "UPDATE responses SET previous = nullif($1, ''), status = $2, request = $3, input = $4, body = $5,
        bytes = $6, created_at = $7, expires_at = $8, adopted = 0
    WHERE owner = $9 AND id = $10 AND principal = $11 AND expires_at > $12 AND (",
    unfinished!(),
    " OR (status = $2 AND body = $5))"
);

const REQUEST_CANCELLATION: &str = concat!(
    "UPDATE responses SET cancel_requested = 1 WHERE id = $1 AND principal = $2 AND expires_at > $3 AND ",
    unfinished!()
);

/// Deletes some rows of a principal. The values are the principal and the maximum number of rows.
const DELETE_OF: [&str; 2] = [
    "DELETE FROM responses WHERE id IN (SELECT id FROM responses WHERE principal = $1 LIMIT $2)",
    "DELETE FROM response_approvals WHERE id IN (
        SELECT id FROM response_approvals WHERE principal = $1 LIMIT $2)",
];

const DELETE: &str = "DELETE FROM responses WHERE id = $1 AND principal = $2 AND expires_at > $3";

/// A repeated insertion changes nothing, and a caller may put back what it took. Another call with the same id is an
/// error.
const PUT_APPROVAL: &str = "INSERT INTO response_approvals (id, principal, call, expires_at)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, claim = NULL
    WHERE response_approvals.principal = excluded.principal AND response_approvals.call = excluded.call";

const CLAIM_APPROVAL: &str = "UPDATE response_approvals SET claim = $1
    WHERE id = $2 AND principal = $3 AND expires_at > $4 AND (claim IS NULL OR claim = $1)";

const DELETE_APPROVAL: &str = "DELETE FROM response_approvals WHERE claim = $1 AND id = $2";

/// Deletes final responses until the rest has at most `$2` bytes. `held` is the size of a response and of all newer ones of
/// its principal; the response with the largest one is deleted first. So the principal that holds most loses its oldest
/// responses, until all that lose some hold the same. The sums are part of the statement: if two hubs purge at the same
/// time, they choose the same responses.
const PURGE_EXCESS: &str = concat!(
    "DELETE FROM responses WHERE id IN (SELECT id FROM (
        SELECT id, sum(bytes) OVER (ORDER BY held DESC, id) - bytes AS preceding FROM (
            SELECT id, bytes, held FROM (
                SELECT id, status, bytes,
                    sum(bytes) OVER (PARTITION BY principal ORDER BY created_at DESC, id DESC) AS held
                FROM responses) AS counted
            WHERE NOT ",
    unfinished!(),
    " ORDER BY held DESC, id LIMIT $1) AS excess) AS summed
        WHERE preceding < (SELECT coalesce(sum(bytes), 0) FROM responses) - CAST($2 AS BIGINT))"
);

const PURGE_APPROVALS: &str = "DELETE FROM response_approvals WHERE id IN (
    SELECT id FROM response_approvals WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";

/// The statement that deletes expired responses, except unfinished ones of living owners. The values are the current
/// time and the maximum number of rows.
fn purge_expired(dead: &[i64]) -> String {
    let ended = match dead {
        [] => String::new(),
        dead => format!(" OR owner IN ({})", owner_list(dead)),
    };
    format!(
        "DELETE FROM responses WHERE id IN (SELECT id FROM responses
         WHERE expires_at <= $1 AND (NOT {}{ended}) ORDER BY expires_at LIMIT $2)",
        unfinished!()
    )
}

/// A caller that takes an approval. The key distinguishes it from other callers, so that a repeated write is recognised.
#[derive(Debug, Clone)]
pub(crate) struct ApprovalClaim {
    pub(crate) key: RecordId,
    pub(crate) id: String,
    pub(crate) principal: String,
}

/// A write of responses or approvals. The number of rows is its answer.
#[derive(Debug)]
pub(crate) enum ResponseWrite {
    Add(Box<StoredResponse>),
    Update(Box<StoredResponse>),
    /// Requests that the owner of a response cancels it.
    RequestCancellation {
        id: String,
        principal: String,
    },
    Delete {
        id: String,
        principal: String,
    },
    /// Deletes some responses and approvals of a principal.
    DeleteOf {
        principal: String,
    },
    /// Makes this store the owner of the unfinished responses of these dead stores.
    Adopt(Vec<i64>),
    PutApproval(PendingApproval),
    /// Reserves an approval for one caller.
    ClaimApproval(ApprovalClaim),
    /// Deletes an approval that the caller has reserved.
    DeleteApproval(ApprovalClaim),
    /// Deletes some expired and excess rows. The unfinished responses of these dead stores are deleted too.
    Purge {
        limits: ResponseLimits,
        dead: Vec<i64>,
    },
}

/// A value of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StatementValue<'a> {
    Text(&'a str),
    Int(i64),
}

/// A statement with its values.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) values: Vec<StatementValue<'a>>,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: impl Into<Cow<'static, str>>, values: impl Into<Vec<StatementValue<'a>>>) -> Self {
        Self { sql: sql.into(), values: values.into() }
    }
}

impl ResponseWrite {
    /// The statements of this write by the store `owner`.
    pub(crate) fn statements(&self, owner: i64, now: SystemTime) -> Vec<Statement<'_>> {
        use StatementValue::{Int, Text};
        let now = Int(unix_micros(now));
        let statement = match self {
            Self::Add(response) => {
                let [previous, status, request, input, body, bytes, created, expires] = binds(response);
                let (id, principal) = (Text(&response.id), Text(&response.principal));
                let values = [id, principal, previous, status, request, input, body, bytes, created, expires];
                Statement::new(ADD, [values.as_slice(), &[Int(owner)]].concat())
            }
            Self::Update(response) => {
                let key = [Int(owner), Text(&response.id), Text(&response.principal), now];
                Statement::new(UPDATE, [binds(response).as_slice(), &key].concat())
            }
            Self::RequestCancellation { id, principal } => {
                Statement::new(REQUEST_CANCELLATION, [Text(id), Text(principal), now])
            }
            Self::Delete { id, principal } => Statement::new(DELETE, [Text(id), Text(principal), now]),
            Self::DeleteOf { principal } => {
                let values = [Text(principal), Int(MAX_PURGED_RESPONSES.cast_signed())];
                return DELETE_OF.map(|sql| Statement::new(sql, values)).into();
            }
            Self::Adopt(dead) => Statement::new(adopt(dead), [Int(owner), now]),
            Self::PutApproval(approval) => {
                let expires = Int(unix_micros(approval.expires_at));
                let texts = [Text(&approval.id), Text(&approval.principal), Text(approval.call.get())];
                Statement::new(PUT_APPROVAL, [texts.as_slice(), &[expires]].concat())
            }
            Self::ClaimApproval(claim) => {
                let values = [Text(claim.key.as_str()), Text(&claim.id), Text(&claim.principal), now];
                Statement::new(CLAIM_APPROVAL, values)
            }
            Self::DeleteApproval(claim) => {
                Statement::new(DELETE_APPROVAL, [Text(claim.key.as_str()), Text(&claim.id)])
            }
            Self::Purge { limits, dead } => {
                let rows = Int(MAX_PURGED_RESPONSES.cast_signed());
                let bytes = Int(i64::try_from(limits.max_bytes).unwrap_or(i64::MAX));
                return vec![
                    Statement::new(purge_expired(dead), [now, rows]),
                    Statement::new(PURGE_EXCESS, [rows, bytes]),
                    Statement::new(PURGE_APPROVALS, [now, rows]),
                ];
            }
        };
        vec![statement]
    }

    /// The answer to this write, which changed so many rows.
    pub(crate) fn answer(&self, rows: u64) -> Result<u64, StoreError> {
        match self {
            Self::Add(response) if rows == 0 => Err(id_in_use(&response.id)),
            Self::PutApproval(approval) if rows == 0 => Err(id_in_use(&approval.id)),
            _ => Ok(rows),
        }
    }
}

/// The values of the columns that a replacement changes.
fn binds(response: &StoredResponse) -> [StatementValue<'_>; 8] {
    let texts = [&response.request, &response.input, &response.body].map(|json| json.get());
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    [
        StatementValue::Text(response.previous.as_deref().unwrap_or_default()),
        StatementValue::Text(response.status.name()),
        StatementValue::Text(texts[0]),
        StatementValue::Text(texts[1]),
        StatementValue::Text(texts[2]),
        StatementValue::Int(i64::try_from(bytes).unwrap_or(i64::MAX)),
        StatementValue::Int(unix_micros(response.created_at)),
        StatementValue::Int(unix_micros(response.expires_at)),
    ]
}

/// The statement that makes a store the owner of unfinished responses. Expired ones keep their owner, so that they can be
/// deleted. The values are the store and the current time.
fn adopt(dead: &[i64]) -> String {
    let dead = owner_list(dead);
    format!(
        "UPDATE responses SET owner = $1, adopted = 1 WHERE {} AND owner IN ({dead}) AND expires_at > $2",
        unfinished!()
    )
}

fn id_in_use(id: &str) -> StoreError {
    StoreError(LocalizedText::new(format!("the id `{id}` is in use"), format!("标识 `{id}` 已被使用")))
}

/// Whether an id or the name of a principal contains NUL. Nothing is stored under such a name: PostgreSQL replaces NUL by
/// another character, and then two names could be equal.
pub(crate) fn has_nul(id: &str, principal: &str) -> bool {
    id.contains('\0') || principal.contains('\0')
}

/// Rejects a new row under a name with NUL.
pub(crate) fn check_names(id: &str, principal: &str) -> Result<(), StoreError> {
    match has_nul(id, principal) {
        false => Ok(()),
        true => Err(StoreError(LocalizedText::new(
            "an id or the name of a principal contains a NUL character",
            "标识或主体名称包含 NUL 字符",
        ))),
    }
}

/// The response in a row of [`RESPONSE`] or [`ADOPTED`].
pub(crate) fn response_of<C: Columns>(row: &C) -> Result<StoredResponse, C::Error> {
    Ok(StoredResponse {
        id: row.text(0)?,
        principal: row.text(1)?,
        previous: row.maybe_text(2)?,
        status: ResponseStatus::parse(&row.text(3)?).unwrap_or(ResponseStatus::Failed),
        request: stored_json(row.text(4)?),
        input: stored_json(row.text(5)?),
        body: stored_json(row.text(6)?),
        created_at: from_micros(row.int(7)?),
        expires_at: from_micros(row.int(8)?),
    })
}

/// The response in a row of [`OWNED`].
pub(crate) fn owned_response_of<C: Columns>(row: &C) -> Result<OwnedResponse, C::Error> {
    Ok(OwnedResponse {
        id: row.text(0)?,
        principal: row.text(1)?,
        is_cancelled: row.int(2)? != 0,
        is_adopted: row.int(3)? != 0,
    })
}

/// What became of an update that changed no row, of a response with this status now.
pub(crate) fn unchanged_update(status: Option<&str>) -> ResponseUpdate {
    match status.map(|status| ResponseStatus::parse(status).unwrap_or(ResponseStatus::Failed)) {
        None => ResponseUpdate::Missing,
        Some(status) if status.is_final() => ResponseUpdate::Ended(status),
        Some(_) => ResponseUpdate::OtherOwner,
    }
}

/// The call in a row of [`APPROVAL`].
pub(crate) fn approval_of<C: Columns>(row: &C) -> Result<PendingApproval, C::Error> {
    Ok(PendingApproval {
        id: row.text(0)?,
        principal: row.text(1)?,
        call: stored_json(row.text(2)?),
        expires_at: from_micros(row.int(3)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_statuses_are_those_that_are_not_final() {
        let names: Vec<String> = ResponseStatus::ALL
            .into_iter()
            .filter(|status| !status.is_final())
            .map(|status| format!("'{}'", status.name()))
            .collect();
        assert_eq!(format!("status IN ({})", names.join(", ")), unfinished!());
    }
}
