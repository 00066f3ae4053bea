//! Aligned columns, including wide characters.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;

use crate::render::sanitize::{Style, one_line};

/// A text and its style.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Text of others may contain escape sequences, so it is sanitized here for all tables.
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        let text: String = text.into();
        match one_line(&text) {
            Cow::Borrowed(_) => Self { text, style },
            Cow::Owned(text) => Self { text, style },
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(text, Style::Plain)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(text, Style::Plain)
    }
}

/// How the last cell of a row is shortened if it exceeds its line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    Cut,
    Fold,
}

/// The minimum width of the last column; with less it is moved to a separate line.
const MIN_LAST_WIDTH: usize = 20;
/// Indentation of continuation lines.
const CONTINUED_INDENT: usize = 4;

/// Aligns rows; the last column gets the rest of `width` and is truncated there. Columns that do not fit are moved to further
/// lines.
pub(crate) fn table_lines(rows: &[Vec<Cell>], indent: &str, width: Option<usize>) -> Vec<String> {
    row_lines(rows, indent, width, Overflow::Cut).into_iter().flatten().collect()
}

/// Like [`table_lines`], with the lines of each row separate. No line is wider than `width`.
pub(crate) fn row_lines(
    rows: &[Vec<Cell>],
    indent: &str,
    width: Option<usize>,
    overflow: Overflow,
) -> Vec<Vec<String>> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width()).max();
    let widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or(0)).collect();
    let begins = line_begins(&widths, indent.width(), width);
    let lines_of = |row: &Vec<Cell>| {
        let mut out = vec![indent.to_owned()];
        let mut used = indent.width();
        for (column, cell) in row.iter().enumerate() {
            let last = column + 1 == row.len();
            if begins.contains(&column) && !cell.is_empty() {
                used = indent.width() + CONTINUED_INDENT;
                out.push(" ".repeat(used));
            }
            let available = width.map_or(usize::MAX, |width| width.saturating_sub(used).max(1));
            let pieces = match (last, overflow) {
                (true, Overflow::Cut) => vec![truncate_to_width(&cell.text, available)],
                (true, Overflow::Fold) => wrap_text(&cell.text, Some(available))
                    .iter()
                    .flat_map(|line| chop(line, available))
                    .collect(),
                (false, _) => chop(&cell.text, available),
            };
            let style = cell.style;
            for (number, text) in pieces.iter().enumerate() {
                if number > 0 {
                    out.push(" ".repeat(used));
                }
                if let (Some(line), false) = (out.last_mut(), text.is_empty()) {
                    *line += &format!("{style}{text}{style:#}");
                }
            }
            used += pieces.last().map_or(0, |text| text.width());
            if !last {
                let pad = widths[column].saturating_sub(cell.text.width()) + 2;
                out.last_mut().into_iter().for_each(|line| line.extend(std::iter::repeat_n(' ', pad)));
                used += pad;
            }
        }
        let written = out.iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty());
        written.collect()
    };
    rows.iter().map(lines_of).collect()
}

/// The columns that begin a further line because they do not fit on the previous one.
fn line_begins(widths: &[usize], indent: usize, width: Option<usize>) -> Vec<usize> {
    let Some(width) = width else { return Vec::new() };
    let mut begins = Vec::new();
    let mut used = indent;
    for (column, desired) in widths.iter().enumerate() {
        let last = column + 1 == widths.len();
        let least = if last { (*desired).min(MIN_LAST_WIDTH) } else { *desired };
        if column > 0 && used + least > width {
            begins.push(column);
            used = indent + CONTINUED_INDENT;
        }
        used += desired + 2;
    }
    begins
}

/// Splits a text into parts of at most this width, at any character.
fn chop(text: &str, width: usize) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut used = 0;
    for character in text.chars() {
        let size = character.encode_utf8(&mut [0; 4]).width();
        if used + size > width && used > 0 {
            out.push(String::new());
            used = 0;
        }
        used += size;
        if let Some(line) = out.last_mut() {
            line.push(character);
        }
    }
    out
}

/// Like [`table_lines`], but wraps the last column instead of truncating it.
pub(crate) fn wrapped_table_lines(rows: &[Vec<Cell>], indent: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return table_lines(rows, indent, None) };
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width()).max();
    let before: usize = (0..columns.saturating_sub(1)).map(|column| widest(column).unwrap_or(0) + 2).sum();
    // On a narrow terminal the last column is on separate lines.
    let (start, below) = match width.saturating_sub(indent.width() + before) {
        available if available >= 24 => (indent.width() + before, false),
        _ => (indent.width() + 4, true),
    };
    let mut out = Vec::new();
    for row in rows {
        let Some((last, first)) = row.split_last() else { continue };
        let mut folded = wrap_text(&last.text, Some(width.saturating_sub(start).max(10))).into_iter();
        let head = if below { None } else { folded.next() };
        let mut cells = first.to_vec();
        cells.push(Cell::new(head.unwrap_or_default(), last.style));
        let padded: Vec<Cell> = cells
            .iter()
            .enumerate()
            .map(|(column, cell)| {
                let pad = widest(column).unwrap_or(0).saturating_sub(cell.text.width());
                let pad = if column + 1 == cells.len() { 0 } else { pad };
                Cell::new(format!("{}{}", cell.text, " ".repeat(pad)), cell.style)
            })
            .collect();
        out.extend(table_lines(&[padded], indent, None));
        out.extend(folded.filter(|line| !line.is_empty()).map(|line| format!("{}{line}", " ".repeat(start))));
    }
    out
}

/// Wraps a text at word boundaries, and between any Chinese characters.
pub(crate) fn wrap_text(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return vec![text.to_owned()] };
    let mut out = vec![String::new()];
    let mut used = 0;
    for piece in pieces(text) {
        let size = piece.width();
        if used + piece.trim_end().width() > width && used > 0 {
            out.push(String::new());
            used = 0;
        }
        // Removes the whitespace at which a line was broken; the text's own indentation is kept.
        let continued = out.len() > 1 && used == 0;
        if let Some(line) = out.last_mut() {
            line.push_str(if continued { piece.trim_start() } else { piece });
        }
        used += size;
    }
    out.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The parts between which a line may be broken: words with the space after them, and wide characters.
fn pieces(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut after_space = false;
    for (at, character) in text.char_indices() {
        let wide = character.len_utf8() > 1 && character.to_string().width() == 2;
        if at > start && (after_space && !character.is_whitespace() || wide) {
            out.push(&text[start..at]);
            start = at;
        }
        after_space = character.is_whitespace() || wide;
    }
    out.push(&text[start..]);
    out
}

/// Truncates a text to a width; `…` marks the truncation.
pub(crate) fn truncate_to_width(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for character in text.chars() {
        let mut buffer = [0; 4];
        used += character.encode_utf8(&mut buffer).width();
        if used > width {
            break;
        }
        out.push(character);
    }
    out + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_columns_in_both_languages() {
        let rows = [vec!["名称".into(), "x".into()], vec!["abc".into(), "说明文字".into()]];
        assert_eq!(table_lines(&rows, " ", None), [" 名称  x", " abc   说明文字"]);
        assert_eq!(truncate_to_width("说明文字", 5), "说明…");
        assert_eq!(truncate_to_width("abc", 3), "abc");
        assert_eq!(wrap_text("one two three", Some(8)), ["one two", "three"]);
        assert_eq!(wrap_text("说明 文字很长", Some(6)), ["说明", "文字很", "长"]);
        let rows = [vec!["a".into(), "b".repeat(30).into(), "c".repeat(30).into(), "d".repeat(90).into()]];
        for width in [20, 40, 60, 80] {
            let rendered = table_lines(&rows, "", Some(width));
            assert!(rendered.iter().all(|line| line.width() <= width), "{rendered:#?}");
            let folded = row_lines(&rows, "", Some(width), Overflow::Fold).concat();
            assert!(folded.iter().all(|line| line.width() <= width), "{folded:#?}");
            let all = folded.concat();
            assert_eq!((all.matches('b').count(), all.matches('d').count()), (30, 90), "{folded:#?}");
        }
        let rows = [vec!["a".into(), "wordy words that go on and on and on".into()]];
        assert_eq!(
            wrapped_table_lines(&rows, " ", Some(32)),
            [" a  wordy words that go on and", "    on and on"]
        );
    }
}
