//! Formats rows of text as aligned columns.

/// Formats rows with each column as wide as its widest cell. The first row is the header.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| match column {
                0 => format!("{cell:<wide$}", wide = width(0)),
                _ => format!("{cell:>wide$}", wide = width(column)),
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A share as percent with one decimal place.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}
