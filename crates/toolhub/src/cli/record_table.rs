//! Lists of records as tables: what a tool gives as a JSON array of flat objects, for people at a terminal.

use serde_json::{Map, Value};

use super::screen::BOLD;
use super::table::{Cell, fit, lines};

/// Columns that a table has at most; records with more are shown as JSON.
const MAX_COLUMNS: usize = 12;
/// Widest text of a column that is not the last.
const MAX_CELL_WIDTH: usize = 40;

/// The lines of a table, where the text is a list of at least two records, or an object with one such list.
pub(super) fn record_table(text: &str, width: usize) -> Option<Vec<String>> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    let records = records(&value)?;
    let mut columns: Vec<&str> = Vec::new();
    for record in &records {
        for name in record.keys() {
            if !columns.contains(&name.as_str()) {
                columns.push(name);
            }
        }
    }
    if columns.is_empty() || columns.len() > MAX_COLUMNS {
        return None;
    }
    let mut rows = vec![columns.iter().map(|name| Cell::new(*name, BOLD)).collect::<Vec<_>>()];
    rows.extend(records.iter().map(|record| {
        columns.iter().map(|name| Cell::from(fit(&plain(record.get(*name)), MAX_CELL_WIDTH))).collect()
    }));
    Some(lines(&rows, "", Some(width)))
}

/// The records of a list whose items are all objects of plain values.
fn records(value: &Value) -> Option<Vec<&Map<String, Value>>> {
    let list = match value {
        Value::Array(list) => list,
        // An envelope such as `{"range": "A1:B2", "cells": [...]}` would lose what stands beside the list.
        Value::Object(members) if members.len() == 1 => members.values().next()?.as_array()?,
        _ => return None,
    };
    let flat =
        |record: &&Map<String, Value>| record.values().all(|value| !value.is_object() && !value.is_array());
    let records: Vec<_> = list.iter().filter_map(Value::as_object).filter(flat).collect();
    (records.len() > 1 && records.len() == list.len()).then_some(records)
}

fn plain(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_flat_records_become_tables() {
        let table = record_table(r#"[{"a": 1, "名": "甲"}, {"a": 22, "b": null}]"#, 80).unwrap();
        let plain: Vec<String> =
            table.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        assert_eq!(plain.len(), 3, "{plain:?}");
        assert!(plain[1].contains('甲') && plain[2].contains("22"), "{plain:?}");
        assert!(record_table(r#"{"rows": [{"a": 1}, {"a": 2}]}"#, 80).is_some());
        for other in [
            "plain text",
            "[1, 2]",
            r#"[{"a": 1}]"#,
            r#"[{"a": {"b": 1}}, {"a": 2}]"#,
            r#"{"range": "A1", "cells": [{"a": 1}, {"a": 2}]}"#,
            "[]",
        ] {
            assert!(record_table(other, 80).is_none(), "{other}");
        }
    }
}
