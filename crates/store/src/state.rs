//! State that replicas share: its writes as data, with the statements and rows of both databases. The values of a statement
//! are numbered in the order of their first use, as in `responses`.

use std::time::SystemTime;

use toolhub_core::call_log::RecordId;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::StoreError;
use toolhub_core::shared_state::{
    ChangedPart, CounterIncrement, EntryReplacement, EntryRevision, NewEntry, StateEntry, StateKind,
};

use crate::responses::{Statement, StatementValue, has_nul};
use crate::rows::{Columns, from_micros, stored_json, unix_micros};

/// Maximum number of rows of a table that one step of the cleanup deletes.
pub(crate) const MAX_PURGED_ENTRIES: i64 = 200;

/// The columns that [`entry_of`] reads, in order.
macro_rules! entry_columns {
    () => {
        "id, scope, slot, value, revision, created_at, expires_at"
    };
}

/// An entry. The values are its kind, its id, and the current time.
pub(crate) const ENTRY: &str = concat!(
    "SELECT ",
    entry_columns!(),
    " FROM shared_state WHERE kind = $1 AND id = $2 AND expires_at > $3 AND removed = 0"
);

/// The entry in a slot. The values are the kind, the slot, and the current time.
pub(crate) const ENTRY_IN_SLOT: &str = concat!(
    "SELECT ",
    entry_columns!(),
    " FROM shared_state WHERE kind = $1 AND slot = $2 AND expires_at > $3 AND removed = 0"
);

/// Entries of a kind. The values are the kind, the current time, the earliest creation, the beginning of the ids, and the
/// maximum number.
pub(crate) const ENTRIES: &str = concat!(
    "SELECT ",
    entry_columns!(),
    " FROM shared_state WHERE kind = $1 AND expires_at > $2 AND removed = 0 AND created_at >= $3
        AND substr(id, 1, length(CAST($4 AS TEXT))) = CAST($4 AS TEXT)
    ORDER BY created_at, id LIMIT $5"
);

/// Entries of a kind that belong to a principal, which is the second value; the others are those of [`ENTRIES`].
pub(crate) const ENTRIES_OF: &str = concat!(
    "SELECT ",
    entry_columns!(),
    " FROM shared_state WHERE kind = $1 AND scope = $2 AND expires_at > $3 AND removed = 0 AND created_at >= $4
        AND substr(id, 1, length(CAST($5 AS TEXT))) = CAST($5 AS TEXT)
    ORDER BY created_at, id LIMIT $6"
);

/// The versions of all parts.
pub(crate) const VERSIONS: &str = "SELECT part, version FROM changes";

/// Increments the version of a part.
pub(crate) const CHANGE: &str = "INSERT INTO changes (part, version) VALUES ($1, 1)
    ON CONFLICT (part) DO UPDATE SET version = changes.version + 1";

/// Expired and removed entries make room for a new one.
const MAKE_ROOM: &str = "DELETE FROM shared_state WHERE kind = $1 AND (expires_at <= $2 OR removed = 1)
    AND (id = $3 OR slot = nullif($4, ''))";

/// Changes nothing if the id or the slot is in use.
const CREATE: &str = "INSERT INTO shared_state
        (kind, id, scope, slot, value, revision, removed, created_at, expires_at)
    VALUES ($1, $2, $3, nullif($4, ''), $5, $6, 0, $7, $8) ON CONFLICT DO NOTHING";

/// Finds the row that this write has created, also when it is repeated.
const IS_CREATED: &str =
    "UPDATE shared_state SET removed = 0 WHERE kind = $1 AND id = $2 AND revision = $3 AND removed = 0";

/// A repeated replacement finds its own revision.
const REPLACE: &str =
    "UPDATE shared_state SET slot = nullif($1, ''), value = $2, revision = $3, expires_at = $4
    WHERE kind = $5 AND id = $6 AND removed = 0 AND expires_at > $7 AND (revision = $8 OR revision = $3)";

/// Reserves an entry for the caller that removes it. A repeated claim finds its own revision.
const CLAIM: &str = "UPDATE shared_state SET removed = 1, slot = NULL, revision = $1
    WHERE kind = $2 AND id = $3 AND expires_at > $4 AND ((revision = $5 AND removed = 0) OR revision = $1)";

const DELETE_CLAIMED: &str =
    "DELETE FROM shared_state WHERE revision = $1 AND kind = $2 AND id = $3 AND removed = 1";

const TRIM: &str = "DELETE FROM shared_state WHERE kind = $1 AND scope = $2 AND id NOT IN (
    SELECT id FROM shared_state WHERE kind = $1 AND scope = $2 ORDER BY created_at DESC, id DESC LIMIT $3)";

const FORGET_COUNT: &str = "DELETE FROM shared_counts WHERE name = $1 AND expires_at <= $2";

/// A repeated write finds its own revision and adds nothing.
const COUNT: &str = "INSERT INTO shared_counts (name, total, revision, expires_at)
    SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST($3 AS TEXT), CAST($4 AS BIGINT)
    WHERE CAST($2 AS BIGINT) <= CAST($5 AS BIGINT)
        OR EXISTS (SELECT 1 FROM shared_counts WHERE name = CAST($1 AS TEXT))
    ON CONFLICT (name) DO UPDATE SET
        total = CASE WHEN shared_counts.revision = excluded.revision THEN shared_counts.total
            ELSE shared_counts.total + CAST($6 AS BIGINT) END,
        revision = excluded.revision
    WHERE shared_counts.revision = excluded.revision
        OR shared_counts.total + CAST($6 AS BIGINT) <= CAST($5 AS BIGINT)";

/// Deletes expired rows. The values are the current time and the maximum number of rows.
pub(crate) const PURGE: [&str; 2] = [
    "DELETE FROM shared_state WHERE (kind, id) IN (
        SELECT kind, id FROM shared_state WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
    "DELETE FROM shared_counts WHERE name IN (
        SELECT name FROM shared_counts WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
];

/// A write of shared state. The number of rows is its answer.
#[derive(Debug)]
pub(crate) enum StateWrite {
    Create(Box<NewEntry>, EntryRevision),
    Replace(Box<EntryReplacement>, EntryRevision),
    /// Reserves an entry in the state `expected` for the caller with the key `claim`.
    Claim {
        kind: StateKind,
        id: String,
        expected: EntryRevision,
        claim: EntryRevision,
    },
    /// Deletes an entry that the caller has reserved.
    DeleteClaimed {
        kind: StateKind,
        id: String,
        claim: EntryRevision,
    },
    Trim {
        kind: StateKind,
        scope: String,
        keep: usize,
    },
    Count(CounterIncrement, EntryRevision),
    Announce(ChangedPart),
}

/// A new revision.
pub(crate) fn new_revision() -> EntryRevision {
    EntryRevision(RecordId::generate().as_str().to_owned())
}

impl StateWrite {
    /// The statements of this write. The rows of the last one are the answer.
    pub(crate) fn statements(&self, now: SystemTime) -> Vec<Statement<'_>> {
        use StatementValue::{Int, Text};
        let now = Int(unix_micros(now));
        match self {
            Self::Create(entry, revision) => {
                let (kind, id) = (Text(entry.kind.name()), Text(&entry.id));
                let slot = Text(entry.slot.as_deref().unwrap_or_default());
                let value = [Text(&entry.scope), slot, Text(entry.value.get()), Text(&revision.0)];
                let times = [now, Int(unix_micros(entry.expires_at))];
                vec![
                    Statement::new(MAKE_ROOM, [kind, now, id, slot]),
                    Statement::new(CREATE, [&[kind, id], value.as_slice(), &times].concat()),
                    Statement::new(IS_CREATED, [kind, id, Text(&revision.0)]),
                ]
            }
            Self::Replace(change, revision) => {
                let slot = Text(change.slot.as_deref().unwrap_or_default());
                let expires = Int(unix_micros(change.expires_at));
                let new = [slot, Text(change.value.get()), Text(&revision.0), expires];
                let key = [Text(change.kind.name()), Text(&change.id), now, Text(&change.expected.0)];
                vec![Statement::new(REPLACE, [new, key].concat())]
            }
            Self::Claim { kind, id, expected, claim } => {
                let values = [Text(&claim.0), Text(kind.name()), Text(id), now, Text(&expected.0)];
                vec![Statement::new(CLAIM, values)]
            }
            Self::DeleteClaimed { kind, id, claim } => {
                vec![Statement::new(DELETE_CLAIMED, [Text(&claim.0), Text(kind.name()), Text(id)])]
            }
            Self::Trim { kind, scope, keep } => {
                let keep = Int(i64::try_from(*keep).unwrap_or(i64::MAX));
                vec![Statement::new(TRIM, [Text(kind.name()), Text(scope), keep])]
            }
            Self::Count(counting, revision) => {
                let int = |number: u64| Int(i64::try_from(number).unwrap_or(i64::MAX));
                let first = int(counting.initial.saturating_add(counting.amount));
                let expires = Int(unix_micros(counting.expires_at));
                let name = Text(&counting.name);
                let values =
                    [name, first, Text(&revision.0), expires, int(counting.limit), int(counting.amount)];
                vec![Statement::new(FORGET_COUNT, [name, now]), Statement::new(COUNT, values)]
            }
            // The change itself is all there is to write.
            Self::Announce(_) => Vec::new(),
        }
    }

    /// The part whose version this write increments if it changed so many rows.
    pub(crate) fn part(&self, rows: u64) -> Option<ChangedPart> {
        match self {
            Self::Announce(part) => Some(*part),
            Self::Create(entry, _) if rows > 0 => entry.kind.part(),
            Self::Replace(change, _) if rows > 0 => change.kind.part(),
            Self::Claim { kind, .. } | Self::Trim { kind, .. } if rows > 0 => kind.part(),
            _ => None,
        }
    }
}

/// Rejects names with NUL, which PostgreSQL cannot store.
pub(crate) fn check_entry(entry: &NewEntry) -> Result<(), StoreError> {
    let slot = entry.slot.as_deref().unwrap_or_default();
    match has_nul(&entry.id, &entry.scope) || slot.contains('\0') || entry.slot.as_deref() == Some("") {
        false => Ok(()),
        true => Err(StoreError(LocalizedText::new(
            "the name of a shared entry contains a NUL character, or its slot is empty",
            "共享条目的名称包含 NUL 字符，或其槽位为空",
        ))),
    }
}

/// The entry in a row.
pub(crate) fn entry_of<C: Columns>(row: &C) -> Result<StateEntry, C::Error> {
    Ok(StateEntry {
        id: row.text(0)?,
        scope: row.text(1)?,
        slot: row.maybe_text(2)?,
        value: stored_json(row.text(3)?),
        revision: EntryRevision(row.text(4)?),
        created_at: from_micros(row.int(5)?),
        expires_at: from_micros(row.int(6)?),
    })
}

/// The version in a row of [`VERSIONS`]. A part of a newer version of the program is ignored.
pub(crate) fn version_of<C: Columns>(row: &C) -> Result<Option<(ChangedPart, i64)>, C::Error> {
    let (part, version) = (ChangedPart::parse(&row.text(0)?), row.int(1)?);
    Ok(part.map(|part| (part, version)))
}
