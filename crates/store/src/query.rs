//! SQL statements for queries, in both dialects.

use toolhub_core::approval::Approval;
use toolhub_core::call_log::{CallQuery, CallStatus, RecordId};
use toolhub_core::conversation::{ConversationSummary, ConversationTurn, TurnQuery, TurnRole};
use toolhub_core::principal::LOCAL;
use toolhub_core::{Source, ToolName};

use crate::rows::{COLUMNS, Columns, from_micros, source_pattern, stored_hash, stored_json, unix_micros};

/// The SQL dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "for PostgreSQL alone"))]
    Postgres,
}

impl Dialect {
    /// The condition that `column` contains a text, case-insensitive.
    pub(crate) fn contains(self, column: &str, text: &str) -> String {
        match self {
            // A custom function: SQLite folds only ASCII.
            Self::Sqlite => format!("folded_contains({column}, {text})"),
            // Columns with the collation `C` would be folded by ASCII rules.
            Self::Postgres => {
                format!("position(lower({text}::text) in lower(({column}) COLLATE \"default\")) > 0")
            }
        }
    }

    fn holds(self, column: &str, text: &str) -> String {
        match self {
            Self::Sqlite => format!("instr({column}, {text}) > 0"),
            Self::Postgres => format!("position({text}::text in {column}) > 0"),
        }
    }
}

/// A parameter value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SqlValue {
    Text(String),
    Int(i64),
}

/// Conditions of a statement under construction, with their values.
#[derive(Debug)]
pub(crate) struct Conditions {
    dialect: Dialect,
    conditions: Vec<String>,
    values: Vec<SqlValue>,
}

impl Conditions {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, conditions: Vec::new(), values: Vec::new() }
    }

    /// Adds a value and returns its placeholder.
    fn place(&mut self, value: SqlValue) -> String {
        self.values.push(value);
        let number = self.values.len();
        match self.dialect {
            Dialect::Sqlite => format!("?{number}"),
            Dialect::Postgres => format!("${number}"),
        }
    }

    /// Adds a comparison of `left` with a value, if there is one.
    pub(crate) fn compare(&mut self, left: &str, relation: &str, value: Option<SqlValue>) {
        if let Some(value) = value {
            let place = self.place(value);
            self.conditions.push(format!("{left} {relation} {place}"));
        }
    }

    /// Adds the condition that one of the columns contains a text, if there is one.
    pub(crate) fn contains(&mut self, columns: &[&str], text: Option<&str>) {
        if let Some(text) = text {
            let place = self.place(SqlValue::Text(text.to_owned()));
            let each: Vec<String> =
                columns.iter().map(|column| self.dialect.contains(column, &place)).collect();
            self.conditions.push(format!("({})", each.join(" OR ")));
        }
    }

    /// Adds a condition without values.
    pub(crate) fn push(&mut self, condition: String) {
        self.conditions.push(condition);
    }

    /// Adds the condition that `column` contains a text or is `NULL`, which means unknown.
    pub(crate) fn may_hold(&mut self, column: &str, text: String) {
        let place = self.place(SqlValue::Text(text));
        let condition = self.dialect.holds(column, &place);
        self.conditions.push(format!("({column} IS NULL OR {condition})"));
    }

    /// Adds the condition that the row follows the one with these values, in descending order of the columns.
    pub(crate) fn less_than(&mut self, columns: [&str; 2], values: [SqlValue; 2]) {
        let places = values.map(|value| self.place(value));
        let (columns, places) = (columns.join(", "), places.join(", "));
        self.conditions.push(format!("({columns}) < ({places})"));
    }

    /// The `WHERE` clause with all conditions, and the values.
    pub(crate) fn finish(self) -> (String, Vec<SqlValue>) {
        let clause = match self.conditions.as_slice() {
            [] => String::new(),
            all => format!(" WHERE {}", all.join(" AND ")),
        };
        (clause, self.values)
    }
}

/// ` LIMIT n`, if there is a limit.
pub(crate) fn limit(limit: Option<usize>) -> String {
    limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default()
}

/// Owners as a list of numbers.
pub(crate) fn owner_list(owners: &[i64]) -> String {
    owners.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

/// The conditions that a call has a status. A running call of a dead owner is unknown.
fn status_conditions(status: CallStatus, dead: &[i64]) -> Vec<String> {
    let condition = format!("status = '{}'", status.name());
    let list = owner_list(dead);
    match status {
        CallStatus::Running if !dead.is_empty() => vec![condition, format!("owner NOT IN ({list})")],
        CallStatus::Unknown if !dead.is_empty() => {
            let either = format!("status IN ('{}', '{}')", status.name(), CallStatus::Running.name());
            vec![either, format!("({condition} OR owner IN ({list}))")]
        }
        _ => vec![condition],
    }
}

/// Whether another filter has an index that is usually better than that of the status.
fn has_selective_index(query: &CallQuery) -> bool {
    let is_other = query.principal.as_deref().is_some_and(|principal| principal != LOCAL);
    query.tool.is_some() || query.conversation.is_some() || query.parent.is_some() || is_other
}

/// The statement that selects calls, and its values. `dead` are dead owners: their running calls have the status
/// `unknown`.
pub(crate) fn calls(dialect: Dialect, query: &CallQuery, dead: &[i64]) -> (String, Vec<SqlValue>) {
    let status = match dead {
        [] => "status".to_owned(),
        dead => {
            let dead = owner_list(dead);
            format!("CASE WHEN status = 'running' AND owner IN ({dead}) THEN 'unknown' ELSE status END")
        }
    };
    let text = |text: &Option<String>| text.clone().map(SqlValue::Text);
    let record =
        |record: &Option<RecordId>| record.as_ref().map(|record| SqlValue::Text(record.as_str().to_owned()));
    let mut filter = Conditions::new(dialect);
    filter.compare("tool", "=", text(&query.tool));
    filter.compare("conversation", "=", text(&query.conversation));
    filter.compare("principal", "=", text(&query.principal));
    if query.principal.as_deref().is_some_and(|principal| principal != LOCAL) {
        // Implied by the condition above; states it in the form of the partial index.
        filter.push(format!("principal <> '{LOCAL}'"));
    }
    filter.compare("call", "=", text(&query.call));
    filter.compare("parent", "=", text(&query.parent));
    if let Some(status) = query.status {
        status_conditions(status, dead).into_iter().for_each(|condition| filter.push(condition));
        if status != CallStatus::Succeeded && !has_selective_index(query) {
            // Implied by the conditions above; states it in the form of the partial index.
            filter.push(format!("status <> '{}'", CallStatus::Succeeded.name()));
        }
    }
    let hash = query.arguments.as_deref().map(stored_hash);
    filter.compare("arguments_hash", "=", hash.map(SqlValue::Int));
    filter.compare("began", ">=", query.since.map(|since| SqlValue::Int(unix_micros(since))));
    // Implied by the condition above, since ids sort by time; older calls are not read.
    filter.compare("record", ">=", record(&query.since.map(RecordId::lower_bound)));
    filter.compare("record", ">", record(&query.after));
    filter.compare("record", "<", record(&query.before));
    filter.compare("record", ">=", record(&query.from));
    if let Some(source) = &query.source {
        let at = filter.place(SqlValue::Text(source_pattern(source)));
        let condition = dialect.holds("places", &at);
        filter.conditions.push(condition);
    }
    filter.contains(
        &["tool", "coalesce(unescaped, arguments)", "coalesce(request, '')"],
        query.text.as_deref(),
    );
    let (clause, values) = filter.finish();
    let columns: Vec<&str> =
        COLUMNS.iter().map(|column| if *column == "status" { status.as_str() } else { *column }).collect();
    let limit = limit(query.limit);
    (format!("SELECT {} FROM calls{clause} ORDER BY record DESC{limit}", columns.join(", ")), values)
}

/// The statement that selects the oldest of the newest `calls` single calls before a record, and its values.
pub(crate) fn part_of_calls(
    dialect: Dialect,
    before: Option<&RecordId>,
    calls: usize,
) -> (String, Vec<SqlValue>) {
    let (clause, values) = before_record(dialect, "record", before);
    let skipped = calls.saturating_sub(1);
    (format!("SELECT record FROM calls{clause} ORDER BY record DESC LIMIT 1 OFFSET {skipped}"), values)
}

/// The statement that selects start and size of the blocks before a record, newest first, and its values. Each block has at
/// least one call, so that this many are enough.
pub(crate) fn part_of_blocks(
    dialect: Dialect,
    before: Option<&RecordId>,
    calls: usize,
) -> (String, Vec<SqlValue>) {
    let (clause, values) = before_record(dialect, "first", before);
    let limit = limit(Some(calls));
    (format!("SELECT first, calls FROM call_blocks{clause} ORDER BY last DESC, id DESC{limit}"), values)
}

fn before_record(dialect: Dialect, column: &str, before: Option<&RecordId>) -> (String, Vec<SqlValue>) {
    let mut filter = Conditions::new(dialect);
    filter.compare(column, "<", before.map(|before| SqlValue::Text(before.as_str().to_owned())));
    filter.finish()
}

/// The statement that selects turns, newest first, and its values.
pub(crate) fn turns(dialect: Dialect, query: &TurnQuery) -> (String, Vec<SqlValue>) {
    let mut filter = Conditions::new(dialect);
    filter.compare("conversation", "=", query.conversation.clone().map(SqlValue::Text));
    filter.compare("role", "=", query.role.map(|role| SqlValue::Text(role.name().to_owned())));
    filter.contains(&["text"], query.text.as_deref());
    let (clause, values) = filter.finish();
    let limit = limit(query.limit);
    let columns = "conversation, role, text, at";
    (format!("SELECT {columns} FROM turns{clause} ORDER BY at DESC, key DESC{limit}"), values)
}

/// The turn in a row of [`turns`].
pub(crate) fn turn_of<C: Columns>(row: &C) -> Result<ConversationTurn, C::Error> {
    Ok(ConversationTurn {
        conversation: row.text(0)?,
        role: TurnRole::from_name(&row.text(1)?).unwrap_or(TurnRole::User),
        text: row.text(2)?,
        at: from_micros(row.int(3)?),
    })
}

/// The statement that lists conversations.
pub(crate) fn conversations(limit: Option<usize>) -> String {
    let limit = self::limit(limit);
    format!(
        "SELECT conversation, count(*), min(at), max(at),
             (SELECT text FROM turns AS first WHERE first.conversation = turns.conversation
              ORDER BY at, key LIMIT 1)
         FROM turns GROUP BY conversation ORDER BY max(at) DESC, max(key) DESC{limit}"
    )
}

/// The conversation in a row of [`conversations`].
pub(crate) fn conversation_of<C: Columns>(row: &C) -> Result<ConversationSummary, C::Error> {
    Ok(ConversationSummary {
        id: row.text(0)?,
        turns: row.int(1)?.unsigned_abs(),
        first: from_micros(row.int(2)?),
        last: from_micros(row.int(3)?),
        opening: row.text(4)?,
    })
}

/// The statement that lists approvals.
pub(crate) const APPROVALS: &str =
    "SELECT source, tool, version, definition, at FROM approvals ORDER BY source, tool";

/// The approval in a row of [`APPROVALS`].
pub(crate) fn approval_of<C: Columns>(row: &C) -> Result<Approval, C::Error> {
    Ok(Approval {
        source: Source::from_name(&row.text(0)?),
        tool: ToolName::new(row.text(1)?),
        version: row.text(2)?,
        definition: stored_json(row.text(3)?),
        at: from_micros(row.int(4)?),
    })
}

/// The statement that deletes some of the oldest results: those that began before a time, and the oldest until a
/// number of bytes is freed. The values are the maximum number of rows, the time, and the bytes.
macro_rules! delete_results {
    ($table:literal, $key:literal, [$rows:literal, $before:literal, $excess:literal]) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE ",
            $key,
            " IN (SELECT ",
            $key,
            " FROM (SELECT ",
            $key,
            ", began, sum(bytes) OVER (ORDER BY ",
            $key,
            ") - bytes AS preceding FROM (SELECT ",
            $key,
            ", began, bytes FROM ",
            $table,
            " ORDER BY ",
            $key,
            " LIMIT ",
            $rows,
            ") AS oldest) AS summed WHERE began < ",
            $before,
            " OR preceding < ",
            $excess,
            ") RETURNING bytes"
        )
    };
}
pub(crate) use delete_results;
