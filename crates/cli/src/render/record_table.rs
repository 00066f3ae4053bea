//! Formats JSON arrays of flat objects as tables for a terminal.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::render::sanitize::Style;
use crate::render::screen::BOLD;
use crate::render::table::{Cell, table_lines, truncate_to_width};

/// The maximum number of columns; records with more are shown as JSON.
const MAX_COLUMNS: usize = 12;
/// The maximum width of all columns but the last.
const MAX_CELL_WIDTH: usize = 40;

/// The lines of a table, if the text is a list of at least two records, or an object with one such list. Other members are shown
/// above it. Spreadsheet cells (`row`, `column`, `value`) are laid out as a sheet.
pub(crate) fn record_table(text: &str, width: usize) -> Option<Vec<String>> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    let (scalars, list) = list_in(&value)?;
    let rows = sheet(list).or_else(|| table(list))?;
    let shows_all_digits = |cell: &String| !cell.contains(['e', 'E']) || text.contains(cell.as_str());
    if !rows.iter().flatten().all(shows_all_digits) {
        return None;
    }
    let mut out: Vec<String> = Vec::new();
    for (name, value) in scalars {
        out.extend(table_lines(
            &[vec![Cell::from(format!("{name}: {}", plain(Some(value))))]],
            "",
            Some(width),
        ));
    }
    let style = |number: usize| if number == 0 { BOLD } else { Style::Plain };
    let cells = |(number, row): (usize, &Vec<String>)| {
        row.iter().map(|text| Cell::new(truncate_to_width(text, MAX_CELL_WIDTH), style(number))).collect()
    };
    let rows: Vec<Vec<Cell>> = rows.iter().enumerate().map(cells).collect();
    out.extend(table_lines(&rows, "", Some(width)));
    Some(out)
}

type Members<'a> = Vec<(&'a String, &'a Value)>;

/// The only list in a value, and the scalar members next to it.
fn list_in(value: &Value) -> Option<(Members<'_>, &Vec<Value>)> {
    let members = match value {
        Value::Array(list) => return Some((Vec::new(), list)),
        Value::Object(members) => members,
        _ => return None,
    };
    let (lists, scalars): (Vec<_>, Vec<_>) = members.iter().partition(|(_, value)| value.is_array());
    let [(_, Value::Array(list))] = lists.as_slice() else { return None };
    scalars.iter().all(|(_, value)| !value.is_object()).then_some((scalars, list))
}

/// The header and rows of a list whose items are all objects with scalar values.
fn table(list: &[Value]) -> Option<Vec<Vec<String>>> {
    let flat =
        |record: &&Map<String, Value>| record.values().all(|value| !value.is_object() && !value.is_array());
    let records: Vec<_> = list.iter().filter_map(Value::as_object).filter(flat).collect();
    if records.len() < 2 || records.len() != list.len() {
        return None;
    }
    let mut columns: Vec<&String> = Vec::new();
    for name in records.iter().flat_map(|record| record.keys()) {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    if columns.is_empty() || columns.len() > MAX_COLUMNS {
        return None;
    }
    let values = |record: &&Map<String, Value>| columns.iter().map(|name| plain(record.get(*name))).collect();
    let names = columns.iter().map(|name| (*name).clone()).collect();
    Some(std::iter::once(names).chain(records.iter().map(values)).collect())
}

/// Spreadsheet cells as rows, with column letters and row numbers. Returns `None` if a cell has members besides its position and
/// value, such as a validation rule.
fn sheet(list: &[Value]) -> Option<Vec<Vec<String>>> {
    let mut cells = BTreeMap::new();
    for cell in list {
        let cell = cell.as_object()?;
        let position = (cell.get("row")?.as_u64()?, cell.get("column")?.as_u64()?);
        let value = cell.get("value").filter(|value| !value.is_object() && !value.is_array())?;
        let says_more = cell.iter().any(|(name, value)| match name.as_str() {
            "row" | "column" | "value" | "address" => false,
            "validation" => value["has_validation"] != Value::Bool(false),
            _ => true,
        });
        if says_more || position.1 == 0 || cells.insert(position, plain(Some(value))).is_some() {
            return None;
        }
    }
    let columns: BTreeSet<u64> = cells.keys().map(|(_, column)| *column).collect();
    if cells.len() < 2 || columns.len() > MAX_COLUMNS {
        return None;
    }
    let head = std::iter::once(String::new()).chain(columns.iter().map(|column| letters(*column))).collect();
    let rows: BTreeSet<u64> = cells.keys().map(|(row, _)| *row).collect();
    let line = |row: u64| {
        let values = columns.iter().map(|column| cells.get(&(row, *column)).cloned().unwrap_or_default());
        std::iter::once(row.to_string()).chain(values).collect()
    };
    Some(std::iter::once(head).chain(rows.into_iter().map(line)).collect())
}

/// The letters of a column: 1 is `A`, 27 is `AA`.
fn letters(mut column: u64) -> String {
    let mut out = Vec::new();
    while column > 0 {
        column -= 1;
        out.push(char::from(b'A' + (column % 26) as u8));
        column /= 26;
    }
    out.iter().rev().collect()
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
    fn renders_lists_of_flat_records_as_tables() {
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
            r#"{"range": {"from": 1}, "cells": [{"a": 1}, {"a": 2}]}"#,
            r#"{"one": [{"a": 1}, {"a": 2}], "two": [{"a": 1}, {"a": 2}]}"#,
            r#"[{"a": 12345678901234567890123}, {"a": 2}]"#,
            "[]",
        ] {
            assert!(record_table(other, 80).is_none(), "{other}");
        }
    }

    /// A read result of the Excel server.
    #[test]
    fn renders_sheet_cells_as_grid() {
        let cell = |address: &str, value: &str, (row, column): (u64, u64), validation: bool| {
            format!(
                r#"{{"address": "{address}", "value": {value}, "row": {row}, "column": {column}, "validation": {{"has_validation": {validation}}}}}"#
            )
        };
        let answer = |validation: bool| {
            let cells = [
                cell("A1", "\"城市\"", (1, 1), false),
                cell("B1", "\"Sales\"", (1, 2), false),
                cell("A2", "\"Kyoto\"", (2, 1), validation),
                cell("B2", "12.5", (2, 2), false),
                cell("A3", "null", (3, 1), false),
                cell("B3", "7", (3, 2), false),
            ];
            format!(r#"{{"range": "A1:B3", "sheet_name": "Sheet1", "cells": [{}]}}"#, cells.join(", "))
        };
        let table = record_table(&answer(false), 60).unwrap();
        let plain: Vec<String> = table
            .iter()
            .map(|line| crate::render::sanitize::with_styles(line, crate::render::sanitize::Breaks::Kept))
            .map(|line| anstream::adapter::strip_str(&line).to_string())
            .collect();
        let expect = [
            "range: A1:B3",
            "sheet_name: Sheet1",
            "   A      B",
            "1  城市   Sales",
            "2  Kyoto  12.5",
            "3         7",
        ];
        assert_eq!(plain, expect);
        assert!(record_table(&answer(true), 60).is_none(), "a validation rule is shown as JSON");
        assert_eq!(
            (letters(1), letters(26), letters(27), letters(703)),
            ("A".into(), "Z".into(), "AA".into(), "AAA".into())
        );
    }
}
