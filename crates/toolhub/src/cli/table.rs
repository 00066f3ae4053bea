//! Columns that line up, with Chinese text too.

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

/// A piece of text and how it looks.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(text, Style::new())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(text, Style::new())
    }
}

/// Lines up rows; the last column takes what is left of `width` and is cut there.
pub(crate) fn lines(rows: &[Vec<Cell>], indent: &str, width: Option<usize>) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width()).max();
    let widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or(0)).collect();
    let line = |row: &Vec<Cell>| {
        let mut out = indent.to_owned();
        let mut used = indent.width();
        for (column, cell) in row.iter().enumerate() {
            let last = column + 1 == row.len();
            let text = match width {
                Some(width) if last => fit(&cell.text, width.saturating_sub(used).max(10)),
                _ => cell.text.clone(),
            };
            let style = cell.style;
            if !text.is_empty() {
                out += &format!("{style}{text}{style:#}");
            }
            used += text.width();
            if !last {
                let pad = widths[column].saturating_sub(cell.text.width()) + 2;
                out.extend(std::iter::repeat_n(' ', pad));
                used += pad;
            }
        }
        out.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A text cut to a width, with `…` where it was cut.
pub(crate) fn fit(text: &str, width: usize) -> String {
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
    fn columns_line_up_in_both_languages() {
        let rows = [vec!["名称".into(), "x".into()], vec!["abc".into(), "说明文字".into()]];
        assert_eq!(lines(&rows, " ", None), [" 名称  x", " abc   说明文字"]);
        assert_eq!(fit("说明文字", 5), "说明…");
        assert_eq!(fit("abc", 3), "abc");
    }
}
